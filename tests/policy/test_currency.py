"""Currency: which of two answers about one subject comes first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from memories import NOW

from recollect.domain.enums import FactType
from recollect.domain.search import RankingRow
from recollect.policy.currency import asks_past, lifted, newer_by_older, of_one_subject


def row(number: int, days: float, **changes: Any) -> RankingRow:
    """Return a memory observed so many days ago."""
    fields: dict[str, Any] = {
        "fact_type": FactType.GENERAL,
        "importance": 0.5,
        "trust": 0.5,
        "updated_at": NOW,
        "accessed_count": 0,
        "recalled_count": 0,
        "speaker": None,
        "session_id": None,
        "position": None,
        "observed_at": NOW - timedelta(days=days),
    }
    return RankingRow(number, **(fields | changes))


def newer(*rows: RankingRow, matches: tuple[float, ...] = (0.6, 0.6, 0.6)) -> dict[int, int]:
    """Return what is newer, where all rows are about one subject."""
    ids = [one.id for one in rows]
    pairs = {(one, two) for one in ids for two in ids if one < two}
    return newer_by_older({one.id: one for one in rows}, dict(zip(ids, matches, strict=False)), pairs)


def test_the_newest_of_one_subject_is_named() -> None:
    """Each older one names the newest, whatever their order in the store; the newest names none."""
    assert newer(row(1, 5), row(2, 90), row(3, 30)) == {2: 1, 3: 1}


def test_one_subject_stands_out() -> None:
    """A pair counts that is near enough, alone or far above the others; where all are near, none is of one subject."""
    assert of_one_subject({(1, 2): 0.5}, 0.48) == [(1, 2)]
    assert of_one_subject({(1, 2): 0.47}, 0.48) == []
    assert of_one_subject({(1, 2): 0.6, (1, 3): 0.2, (2, 3): 0.3}, 0.48) == [(1, 2)]
    assert of_one_subject({(1, 2): 0.6, (1, 3): 0.5, (2, 3): 0.55}, 0.48) == []
    assert of_one_subject({}, 0.48) == []


def test_what_lies_close_in_time_belongs_together() -> None:
    """Notes of one day replace nothing; a note without a date of its own counts from when it was written."""
    assert newer(row(1, 10), row(2, 10.9)) == {}
    assert newer(row(1, 10), row(2, 0, observed_at=None)) == {1: 2}


def test_both_must_answer_about_as_well() -> None:
    """A newer memory of the subject that hardly answers the query stays where it is, and so does the older one."""
    assert newer(row(1, 90), row(2, 5), matches=(0.6, 0.4)) == {}
    assert newer(row(1, 90), row(2, 5), matches=(0.4, 0.6)) == {}
    assert newer(row(1, 90), row(2, 5), matches=(0.6, 0.5)) == {1: 2}


def test_turns_of_a_talk_replace_nothing() -> None:
    """What was said stays said."""
    assert newer(row(1, 90), row(2, 5, position=3)) == {}
    assert newer(row(1, 90, position=3), row(2, 5)) == {}


def test_the_newer_one_is_lifted_to_the_older() -> None:
    """It takes the best score of what it comes before, and none where it is ahead already."""
    scores = {1: 0.5, 2: 0.7, 3: 0.6}
    assert lifted(scores, {2: 1, 3: 1}, past=False, fits={}) == {1: 0.7}
    assert lifted({1: 0.8, 2: 0.7}, {2: 1}, past=False, fits={}) == {}
    assert lifted({1: 0.7, 2: 0.7}, {2: 1}, past=False, fits={}) == {1: 0.7}


def test_asked_for_the_past_the_older_one_is_lifted() -> None:
    """The older comes before the newer then."""
    assert lifted({1: 0.8, 2: 0.7}, {2: 1}, past=True, fits={}) == {2: 0.8}


def test_what_fits_the_named_period_better_is_lifted() -> None:
    """The older one comes first where the query names its time, the newer one where it names that."""
    assert lifted({1: 0.8, 2: 0.7}, {2: 1}, past=False, fits={1: 0.0, 2: 1.0}) == {2: 0.8}
    assert lifted({1: 0.7, 2: 0.8}, {2: 1}, past=True, fits={1: 1.0, 2: 0.0}) == {1: 0.8}


@pytest.mark.parametrize(
    ("query", "past"),
    [
        ("Which pool mode did PgBouncer use before?", True),
        ("what was the solver budget before the switch?", True),
        ("who used to own etaservice?", True),
        ("the previous Kafka client", True),
        ("where were settings originally stored?", True),
        ("which checks run before a deploy?", False),
        ("what do I do before releasing", False),
        ("who owns etaservice?", False),
    ],
)
def test_a_query_asks_for_the_past(query: str, past: bool) -> None:
    """Words of former times ask for the past; "before" only at the end, or before a change."""
    assert asks_past(query) is past
