"""Memorability: what is worth a memory passes the gate, routine does not, and each score says why."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from recollect import App
from recollect.sessions.memorability import (
    GATE,
    KNOWN,
    PERSON,
    TOOL,
    Dimension,
    Meaning,
    Memorability,
    distinctiveness,
    meanings,
    memorability,
    part_of,
    with_meaning,
)
from recollect.sessions.observations.features import TYPE_FEATURES, Feature
from recollect.sessions.observations.observe import parts_of

Judge = Callable[[str], Memorability]
HALF = len(TOOL.meaning) // 2
NOTHING = Meaning(np.zeros(HALF, dtype=np.float32), np.zeros(HALF, dtype=np.float32))
TOLD = {Feature.COMMAND: 1.0, Feature.AFTER_EDIT: 1.0, Feature.MEASURED: 1.0, Feature.PROSE: 0.5, Feature.NAMES: 0.667}


@pytest.fixture
def judged(app: App) -> Judge:
    """Return what scores the best sentence of a prompt with the real model."""

    def score(prompt: str) -> Memorability:
        parts = parts_of(prompt)
        known = meanings(app.embedder, parts) or []
        scores = [memorability(part.features, meant) for part, meant in zip(parts, known, strict=True)]
        return max(scores, key=lambda one: one.score)

    return score


@pytest.mark.parametrize(
    "prompt",
    [
        "from now on every migration gets a down step, no exceptions",
        "Never call the billing host from a laptop, every request costs money.",
        "decision: amounts are integer cents, floats nowhere, because the export must match",
        "we moved the queue to NATS last week, redis streams are gone. update the readme",
        "Integration tests need the VPN.",
        "Only the ingest service may write to the events table.",
        "Auf dem Prüfstand läuft nur die Firmware vom Mai, die neue ist noch nicht freigegeben.",
        "Les sauvegardes partent toujours vers le site de Lille.",
    ],
)
def test_what_people_state_is_kept(judged: Judge, prompt: str) -> None:
    """Rules, decisions, facts and what is replaced pass, also within a prompt that asks, and in other languages."""
    assert judged(prompt).passes()


@pytest.mark.parametrize(
    "prompt",
    [
        *("thanks", "great work, see you tomorrow", "run the tests", "why is the build red?", "yes, go ahead"),
        "next: the importer takes nine minutes. find out where the time goes",
        "can you rename this variable to pickList?",
        "Please always print the row count in this script",
        "¿puedes mirar por qué falla la importación?",
    ],
)
def test_what_people_ask_is_not(judged: Judge, prompt: str) -> None:
    """Thanks, tasks, questions and complaints do not pass."""
    assert not judged(prompt).passes()


def test_nothing_is_below_the_gate() -> None:
    """Without a feature that speaks for it nothing that a tool wrote is kept."""
    assert GATE == 0.30
    assert not memorability({Feature.OTHER: 1.0}).passes()
    assert not memorability({}, NOTHING).passes(0.5)


def test_the_gate_can_be_moved() -> None:
    """A lower gate keeps what the usual one of 0.30 drops."""
    routine = memorability({Feature.COMMAND: 1.0, Feature.AGAIN: 1.0})
    assert routine.passes(routine.score)
    assert not routine.passes()


def test_without_the_model_less_is_kept() -> None:
    """What is not known of the meaning is held against a text."""
    for features, meaning in ((TOLD, NOTHING), ({Feature.PROMPT: 1.0, Feature.LENGTH: 1.0}, Meaning(NOTHING.text))):
        assert memorability(features).score < memorability(features, meaning).score
        assert "without the embedding model -" in memorability(features).explained()


def test_what_waited_gets_the_score_that_it_would_have_had() -> None:
    """A score without the model becomes that with it once the meaning is known."""
    meaning = Meaning(*np.random.RandomState(7).rand(2, HALF).astype(np.float32) / 10)
    later = with_meaning(memorability(TOLD).score, meaning)
    assert later.score == pytest.approx(memorability(TOLD, meaning).score, abs=1e-4)


def test_every_feature_has_a_weight_and_a_part() -> None:
    """The table is whole for what people say and for what tools tell."""
    for weights in (PERSON, TOOL):
        assert set(weights.features) == set(Feature)
        assert weights.alone < 0
    assert {part_of(one) for one in Feature} == set(Dimension) - {Dimension.DISTINCTIVENESS}
    assert part_of("its meaning") is Dimension.SALIENCE
    assert {Feature.PROMPT, Feature.ANSWER} <= TYPE_FEATURES


def test_a_score_explains_itself() -> None:
    """Its line has the score, what weighs most, and what each of the four parts adds to the log-odds."""
    found = memorability(TOLD, None, [0.2, 0.94])
    line = found.explained()
    assert line.startswith(f"{found.score:.2f}: ")
    assert "near a stored memory -2.0" in line
    for part, value in found.parts.items():
        assert f"{part} {value:+.1f}" in line


@pytest.mark.parametrize(
    ("cosines", "expected"), [([], 1), ([0.9, -1], 1), ([0.1, 0.94], 0.5), ([0.98], 0), ([1.0], 0)]
)
def test_only_the_nearest_memory_counts(cosines: list[float], expected: float) -> None:
    """What is stored already is not distinct, and what is far from everything is."""
    assert distinctiveness(cosines) == pytest.approx(expected)
    assert memorability(TOLD, None, cosines).parts[Dimension.DISTINCTIVENESS] == pytest.approx(KNOWN * (1 - expected))
