"""Memorability: what is worth a memory passes the gate, routine does not, and each score says why."""

from __future__ import annotations

import pytest

from recollect.domain.enums import Observation
from recollect.policy.memorability import (
    GATE,
    TYPE_WEIGHTS,
    WEIGHTS,
    Part,
    distinctiveness,
    memorability,
    salience,
    substance,
)

DECISION = "We decided to keep sessions in PostgreSQL instead of Redis, because a restart of Redis lost every login."


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (DECISION, Observation.DECISION),
        (DECISION, None),
        (
            "The flaky upload test failed because two workers shared one port; fixed by asking for port 0.",
            Observation.BUGFIX,
        ),
        ("The importer reads dates as UTC, which the old exporter wrote in local time.", Observation.DISCOVERY),
        ("Never run migrations on Friday.", None),
    ],
)
def test_what_is_worth_it_passes(text: str, kind: Observation | None) -> None:
    """Decisions, cures, findings and rules reach 0.30."""
    assert memorability(text, kind).passes()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", None),
        ("ok", Observation.CHANGE),
        ("README.md\nsetup.cfg\nsrc\ntests\npyproject.toml\nCHANGELOG.md\ndocs\nscripts\nLICENSE", None),
        ("total 48\ndrwxr-xr-x 2 ada ada 4096 Mar  1 12:00 src\n-rw-r--r-- 1 ada ada 120 Mar  1 12:00 setup.cfg", None),
        ("12 passed in 0.31s", Observation.CHANGE),
        ("On branch main\nnothing to commit, working tree clean", None),
    ],
)
def test_routine_does_not_pass(text: str, kind: Observation | None) -> None:
    """Listings and short confirmations stay below the gate, although no memory is near them."""
    assert not memorability(text, kind).passes()


def test_the_gate_can_be_moved() -> None:
    """A lower gate keeps what the usual one of 0.30 drops."""
    routine = memorability("12 passed in 0.31s", Observation.CHANGE)
    assert GATE == 0.30
    assert routine.passes(routine.score)
    assert not routine.passes()


def test_the_weights_are_one_whole() -> None:
    """Four parts make one score of 0–1, and each type of observation has a weight."""
    assert set(WEIGHTS) == set(Part)
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)
    assert set(TYPE_WEIGHTS) == {*Observation, None}
    assert all(0 <= weight <= 1 for weight in TYPE_WEIGHTS.values())


def test_a_score_explains_itself() -> None:
    """The parts add up to the score, and its line names each with its weight and value."""
    found = memorability(DECISION, Observation.DECISION, [0.2, 0.725])
    assert found.score == pytest.approx(sum(WEIGHTS[part] * value for part, value in found.parts.items()))
    assert found.parts[Part.DISTINCTIVENESS] == pytest.approx(0.5)
    assert found.explained().startswith(f"{found.score:.2f} = substance 0.35 × ")
    assert "distinctiveness 0.15 × 0.50" in found.explained()
    assert "type weight 0.20 × 1.00" in found.explained()


@pytest.mark.parametrize(
    ("cosines", "expected"), [([], 1), ([0.5, -1], 1), ([0.1, 0.725], 0.5), ([0.95], 0), ([1.0], 0)]
)
def test_only_the_nearest_memory_counts(cosines: list[float], expected: float) -> None:
    """What is stored already is not distinct, and what is far from everything is."""
    assert distinctiveness(cosines) == pytest.approx(expected)


def test_type_weighs() -> None:
    """The same text is worth more as a decision than as a change, and as a change than without a type."""
    scores = [memorability(DECISION, kind).score for kind in (Observation.DECISION, Observation.CHANGE, None)]
    assert scores == sorted(set(scores), reverse=True)


def test_substance_is_prose() -> None:
    """A sentence says more than one of fewer words, and names in a list say nothing; other languages count too."""
    assert substance("src\ntests\ndocs") == 0
    assert 0 < substance("The parser is slow.") < substance(DECISION) <= 1
    assert substance("Das Archiv enthält die geprüften Rechnungen früherer Jahre.") > 0


def test_salience_counts_different_signs() -> None:
    """One sign is half, two different ones are all, and the same one twice is still one."""
    assert salience("a plain remark") == 0
    assert salience("It failed and failed") == 0.5
    assert salience("It failed because of the clock, and is fixed.") == 1
