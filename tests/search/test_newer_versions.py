"""Currency: which of two answers about one subject comes first."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ranked_memories import NOW
from recollect.domain.enums import FactType, ObservationType
from recollect.domain.search import RankingRow
from recollect.search.versions import Asked, asks_past, newer_by_older, version_pairs
from recollect.text.terms import STOP_WORDS, stem, vocabulary

JENKINS, ACTIONS = "We deploy with Jenkins.", "We deploy with GitHub Actions now, Jenkins is gone."
STAGING = "The staging database runs on host db-stage-2 in Frankfurt."
PRODUCTION = "The production database runs on host db-prod-1 in Dublin."


def row(number: int, days: float, content: str = JENKINS, **changes: Any) -> RankingRow:
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
        "content": content,
        "words": " ".join(sorted(vocabulary([content]))),
    }
    return RankingRow(number, **(fields | changes))


def newer(
    *rows: RankingRow,
    asked: str = "what do we deploy with",
    matches: tuple[float, ...] = (0.6, 0.6, 0.6),
) -> dict[int, int]:
    """Return what is newer, for a question and the matches of the rows."""
    ids = [one.id for one in rows]
    question = Asked(asked, {stem(word): 1.0 for word in asked.split() if word not in STOP_WORDS})
    known = {one.id: one for one in rows}
    pairs = version_pairs(question, known, dict(zip(ids, matches, strict=False)))
    return newer_by_older(pairs, known, {one.id: one.authority for one in rows})


def test_the_newest_version_is_named() -> None:
    """Each older one names the newest, whatever their order in the store; the newest names none."""
    assert newer(row(1, 5), row(2, 90), row(3, 30)) == {2: 1, 3: 1}


@pytest.mark.parametrize(
    ("asked", "older", "later", "version"),
    [
        ("on which host does the staging database run", STAGING, PRODUCTION, False),
        ("on which host does the database run", STAGING, PRODUCTION, True),
        ("until when is release 4.2 supported", "Release 4.2 ends in May.", "Release 5.0 ends in June.", False),
        ("when does release 4.2 end", "Release 4.2 ends in May.", "Release 4.2 ends in June.", True),
        ("what do we deploy with", JENKINS, ACTIONS, True),
        (
            "which package manager does the web app use",
            "We use Yarn as the package manager of the web app.",
            "The web app switched from Yarn to pnpm.",
            True,
        ),
        (
            "which package manager does the web app use",
            "We use Yarn as the package manager of the web app.",
            "The web app and Yarn are slow.",
            False,
        ),
        ("what do we deploy with", JENKINS, "Tests run in parallel.", False),
        (
            "how long does the staging gateway wait",
            "The staging gateway waits 12 s.",
            "The production gateway waits 45 s now.",
            False,
        ),
        (
            "which lamp calibrates spectrometer A",
            "The neon lamp calibrates spectrometer A.",
            "An argon lamp calibrates spectrometer B now.",
            False,
        ),
        (
            "what log level do we use in integration",
            "Log level is DEBUG in the integration environment.",
            "Log level is WARNING in the preproduction environment now.",
            False,
        ),
        (
            "how fast must a webhook be answered",
            "The webhook of Stripe must be answered in 5 seconds.",
            "The webhook of Adyen must be answered in 9 seconds.",
            False,
        ),
        (
            "how fast must a webhook be answered",
            "The webhook of Stripe must be answered in 5 seconds.",
            "The webhook of Stripe must be answered in 9 seconds.",
            True,
        ),
        ("which iOS version is the least", "The least iOS version is 15.", "Dropped iOS 15; the least is 17.", True),
    ],
)
def test_a_version_names_what_the_question_names(asked: str, older: str, later: str, version: bool) -> None:
    """Or it says that something changed, and repeats of the older one what the question does not name.

    What the question names matches it better than its sibling does, but another name in its place is enough.
    """
    matches = (0.6, 0.6 if version or " now." in later else 0.45)
    assert newer(row(1, 60, older), row(2, 0, later), asked=asked, matches=matches) == ({1: 2} if version else {})


def test_what_was_written_at_the_same_time_replaces_nothing() -> None:
    """The later one is newer, however close; a note without a date of its own counts from when it was written."""
    assert newer(row(1, 10), row(2, 10)) == {}
    assert newer(row(1, 10), row(2, 9.99)) == {1: 2}
    assert newer(row(1, 10), row(2, 0, observed_at=None)) == {1: 2}


def test_both_must_answer_about_as_well() -> None:
    """A newer memory of the subject that hardly answers the query stays where it is, and so does the older one."""
    assert newer(row(1, 90), row(2, 5), matches=(0.6, 0.1)) == {}
    assert newer(row(1, 90), row(2, 5), matches=(0.1, 0.6)) == {}
    assert newer(row(1, 90), row(2, 5), matches=(0.6, 0.5)) == {1: 2}


def test_turns_of_a_talk_replace_nothing() -> None:
    """What was said stays said, what one session wrote belongs together, and a summary replaces no fact."""
    assert newer(row(1, 90), row(2, 5, position=3)) == {}
    assert newer(row(1, 90, position=3), row(2, 5)) == {}
    assert newer(row(1, 90, session_id="a"), row(2, 5, session_id="a")) == {}
    assert newer(row(1, 90, session_id="a"), row(2, 5, session_id="b")) == {1: 2}
    assert newer(row(1, 90), row(2, 5, type=ObservationType.SESSION_SUMMARY)) == {}


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
