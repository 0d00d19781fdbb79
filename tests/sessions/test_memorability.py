"""Memorability: what is worth a draft passes the gate, routine does not, and a person can work out each score."""

from __future__ import annotations

import pytest

from recollect.domain.enums import ObservationType as Kind
from recollect.sessions.memorability import (
    FULL,
    GATE,
    STANDS_OUT,
    TYPE_WEIGHTS,
    Memorability,
    distinctiveness,
    memorability,
    signs_of,
)
from recollect.sessions.observations.statements import statements, states_rule

WORDS = "harbour violin copper glacier lantern meadow thunder pepper saddle window orchard pebble ribbon".split()
RULE = "Never deploy on Fridays, because support is away."
FAILURE = "`make docs`: DocsError: the index has a broken anchor"
ROUTINE = "Build the docs: the index of the docs is written"
NOTHING = "great work, see you tomorrow"


def best(prompt: str) -> Memorability:
    """Score the best sentence of a prompt."""
    scores = [memorability(one, Kind.DECISION if states_rule(one) else None) for one in statements(prompt)]
    return max(scores, key=lambda one: one.score)


@pytest.mark.parametrize(
    ("text", "kind", "words", "signs", "expected"),
    [
        # 0.35 × 5/12 + 0.40 × min(0.9 + 0.4, 1) + 0.25 × 1.0
        (RULE, Kind.DECISION, 5, ["a rule", "a reason"], Memorability(0.417, 1.0, 1.0)),
        # 0.35 × 7/12 + 0.40 × (0.5 + 0.1) + 0.25 × 0.5
        (FAILURE, Kind.DISCOVERY, 7, ["a failure", "a name"], Memorability(0.583, 0.6, 0.5)),
        # 0.35 × 4/12 + 0.25 × 0.5
        (ROUTINE, Kind.DISCOVERY, 4, [], Memorability(0.333, 0.0, 0.5)),
        # 0.35 × 4/12 + 0.25 × 0.2
        (NOTHING, None, 4, [], Memorability(0.333, 0.0, 0.2)),
    ],
    ids=["a rule", "a failing command", "a routine output", "a sentence that states nothing"],
)
def test_a_score_can_be_worked_out(
    text: str, kind: Kind | None, words: int, signs: list[str], expected: Memorability
) -> None:
    """Substance is the topic words of twelve, salience the sum of what stands out, and the type has its weight."""
    found = memorability(text, kind)
    assert found == expected
    assert found.substance == pytest.approx(words / FULL, abs=0.0005)
    assert list(signs_of(text, kind)) == signs


@pytest.mark.parametrize(
    ("text", "kind", "score", "passes"),
    [
        (RULE, Kind.DECISION, 0.796, True),
        (FAILURE, Kind.DISCOVERY, 0.569, True),
        (ROUTINE, Kind.DISCOVERY, 0.242, False),
        (NOTHING, None, 0.167, False),
    ],
)
def test_the_formula_has_these_values(text: str, kind: Kind | None, score: float, passes: bool) -> None:
    """A rule and a failure pass the gate of 0.30; routine and small talk do not."""
    found = memorability(text, kind)
    assert (found.score, found.passes()) == (score, passes)
    assert GATE == 0.30


@pytest.mark.parametrize(("words", "expected"), [(0, 0.0), (1, 0.083), (6, 0.5), (11, 0.917), (12, 1.0), (13, 1.0)])
def test_substance_is_full_at_twelve_words(words: int, expected: float) -> None:
    """Each topic word counts a twelfth; stop words, bare numbers and the same word again count nothing."""
    text = " ".join(WORDS[:words])
    for said in (text, f"{text} {text}", f"and then it was {text} 42"):
        assert memorability(said, Kind.DISCOVERY).substance == expected


@pytest.mark.parametrize(
    ("text", "kind", "passes_now", "expected"),
    [
        ("the mast is oak", Kind.DISCOVERY, False, 0.0),
        ("the mast is oak", Kind.DECISION, False, STANDS_OUT["a rule"]),
        ("the mast is oak", Kind.BUGFIX, True, STANDS_OUT["passes now"]),
        ("MastError at sea", Kind.DISCOVERY, False, STANDS_OUT["a failure"]),
        ("the mast is oak because it lasts", Kind.DISCOVERY, False, STANDS_OUT["a reason"]),
        ("the mast has 12 mm", Kind.DISCOVERY, False, STANDS_OUT["a figure"]),
        ("the mast is in `rig`", Kind.DISCOVERY, False, STANDS_OUT["a name"]),
        ("MastError in `rig` after 12 mm because of wind", Kind.BUGFIX, True, 1.0),
    ],
)
def test_salience_is_the_sum_of_what_stands_out(text: str, kind: Kind, passes_now: bool, expected: float) -> None:
    """Each sign adds its own, and all of them together no more than one."""
    assert memorability(text, kind, passes_now=passes_now).salience == expected
    assert [*STANDS_OUT.values()] == [0.9, 0.8, 0.5, 0.4, 0.3, 0.1]


def test_every_type_has_a_weight() -> None:
    """The six types and no type have weights of 0.2 to 1, decisions and fixes the greatest."""
    assert TYPE_WEIGHTS == {
        **{Kind.DECISION: 1.0, Kind.BUGFIX: 1.0, Kind.DISCOVERY: 0.5},
        **{Kind.FEATURE: 0.5, Kind.REFACTOR: 0.3, Kind.CHANGE: 0.3, None: 0.2},
    }
    for kind, weight in TYPE_WEIGHTS.items():
        assert memorability("oak", kind).type_weight == weight


@pytest.mark.parametrize(
    ("cosines", "expected"),
    [
        *(([], 1.0), ([-1.0], 1.0), ([0.90], 1.0), ([0.92], 0.75), ([0.94], 0.5), ([0.96], 0.25)),
        *(([0.98], 0.0), ([1.0], 0.0), ([0.1, 0.94, -1.0], 0.5)),
    ],
)
def test_only_the_nearest_memory_counts(cosines: list[float], expected: float) -> None:
    """What is stored already is not distinct, what is far from everything is, and the whole score is that share."""
    assert distinctiveness(cosines) == expected
    alone, beside = memorability(RULE, Kind.DECISION), memorability(RULE, Kind.DECISION, cosines)
    assert beside.distinctiveness == expected
    assert beside.score == pytest.approx(alone.score * expected, abs=0.001)


def test_a_score_lies_between_nothing_and_one() -> None:
    """With every dimension full it is one, and with any text that says what is stored already nothing."""
    full = f"Never {' '.join(WORDS[:11])}, because."
    assert memorability(full, Kind.DECISION) == Memorability(1.0, 1.0, 1.0, 1.0)
    assert memorability(full, Kind.DECISION).score == 1.0
    assert memorability(full, Kind.DECISION, [1.0]).score == 0.0
    assert memorability("", None).score == 0.05
    assert not memorability("", None).passes()


@pytest.mark.parametrize(
    "prompt",
    [
        "from now on every migration gets a down step, no exceptions",
        "Never call the billing host from a laptop, every request costs money.",
        "decision: amounts are integer cents, floats nowhere, because the export must match",
        "we moved the queue to NATS last week, redis streams are gone. update the readme",
        "Always answer me in German",
        "By the way, I prefer zoneinfo over pytz everywhere",
        "Only the ingest service may write to the events table.",
        "Auf dem Prüfstand läuft nur die Firmware vom Mai, die neue ist noch nicht freigegeben.",
        "Les sauvegardes partent toujours vers le site de Lille.",
    ],
)
def test_what_people_state_is_kept(prompt: str) -> None:
    """Rules, decisions and what is replaced pass, also within a prompt that asks, and in other languages."""
    assert best(prompt).passes()


@pytest.mark.parametrize(
    "prompt",
    [
        *("thanks", "great work, see you tomorrow", "run the tests", "why is the build red?", "yes, go ahead"),
        "next: the importer takes nine minutes. find out where the time goes",
        "can you rename this variable to pickList?",
        "The warm-up script can't connect to Redis, connection refused",
        "¿puedes mirar por qué falla la importación?",
    ],
)
def test_what_people_ask_is_not(prompt: str) -> None:
    """Thanks, tasks, questions and complaints do not pass."""
    assert not best(prompt).passes()


def test_the_gate_can_be_moved() -> None:
    """A lower gate keeps what the usual one of 0.30 drops, and what just reaches a gate passes it."""
    routine = memorability(ROUTINE, Kind.DISCOVERY)
    assert routine.passes(routine.score)
    assert not routine.passes()
    assert Memorability(0.5, 0.0, 0.5).score == GATE
    assert Memorability(0.5, 0.0, 0.5).passes()


def test_a_score_explains_itself() -> None:
    """Its line has the score and each of the four dimensions."""
    found = memorability(RULE, Kind.DECISION, [0.2, 0.94])
    assert found.on_one_line() == "0.40: substance 0.42, salience 1.00, type 1.00, distinctiveness 0.50"
