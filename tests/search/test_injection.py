"""Which memories are worth a place before a prompt that asked for none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from ranked_memories import NOW
from recollect.domain.enums import FactType, ObservationType
from recollect.domain.search import QuerySignals, RankingRow, Signals
from recollect.search.injection import Candidate, chosen, question_of

DAY = timedelta(days=1)
QUERY = QuerySignals(words=6, rarest=3.0, unknown=0.4, semantic=True, weight=10.0, size=40)
NEAR = Signals(cosine=0.55, late=0.45, rare=0.45, bm25=9.0, coverage=0.3, rarest=0.9)
FAR = Signals(cosine=0.2, late=0.2, rare=0.2, bm25=1.0, coverage=0.05, rarest=0.3)


def row(one: int, content: str = "", days: float = 0, **fields: object) -> RankingRow:
    """Return a row of a memory that was true so many days ago."""
    at = NOW - days * DAY
    known = RankingRow(one, FactType.GENERAL, 0.5, 0.5, at, 0, 0, None, None, None, at, content=content)
    return replace(known, **fields)


def candidate(one: int, signals: Signals = NEAR, match: float = 0.5, content: str = "", days: float = 0) -> Candidate:
    """Return a candidate of these signals."""
    return Candidate(row(one, content, days), signals, match)


def best(*found: Candidate, query: QuerySignals = QUERY, newer: dict[int, int] | None = None) -> list[int]:
    """Return what of these has a place."""
    return chosen(found, query, newer or {})


@pytest.mark.parametrize(
    "prompt",
    [
        *("thanks", "Yes, go ahead!", "run the tests", "commit this", "show me the diff", "undo the last change"),
        *("continue", "write a docstring for this function", "what does the error on line 12 mean?", "ok do it"),
        *("run cargo clippy and fix what it finds", "what's the password of the staging database?"),
        *("/compact", "lgtm, merge", "```\nx = 1\n```\nexplain this"),
    ],
)
def test_a_prompt_that_only_directs_asks_nothing(prompt: str) -> None:
    """Thanks, consent and orders about what lies before the agent name no subject."""
    assert question_of(prompt) == ""


@pytest.mark.parametrize(
    "prompt",
    [
        *("how do i run the tests?", "where are the logs?", "deploy 91be2d0 to staging", "add a status to item_status"),
        *("why does the digest arrive late?", "tests fail on ryuk", "/etc/hosts is read twice by the proxy"),
    ],
)
def test_a_prompt_with_a_subject_is_searched(prompt: str) -> None:
    """What names something of the project, or asks how things are done there, is looked up."""
    assert question_of(prompt) == prompt


def test_a_line_of_dashes_is_read_at_once() -> None:
    """A dash is no part of a word, so that a row of them can be read in one way only."""
    asked = "What happened?\n" + "-" * 60 + "\nTraceback (most recent call last)"
    assert question_of(asked) == " ".join(asked.split())
    assert question_of("what is - just asking - the user-name's password") == ""


def test_a_long_prompt_is_read_at_both_ends() -> None:
    """A pasted log does not drown what is wanted of it."""
    asked = question_of(f"the importer dies with this: {'x ' * 5_000} why does the importer stop?")
    assert len(asked) < 1_100
    assert asked.startswith("the importer dies")
    assert asked.endswith("why does the importer stop?")


def test_only_what_is_near_has_a_place() -> None:
    """What is far has none; neither has what is much worse than the best."""
    middling = Signals(cosine=0.33, late=0.33, rare=0.33, bm25=3.0, coverage=0.1, rarest=0.6)
    assert best(candidate(1), candidate(2, FAR), candidate(3, middling)) == [1]
    assert best(candidate(3, middling)) == [3]
    assert best(candidate(2, FAR)) == []


def test_without_the_model_words_must_be_sure() -> None:
    """Where the model reads no such language, a likely answer by words is enough, a weak one is not."""
    by_words = replace(QUERY, semantic=False)
    signals = replace(NEAR, cosine=0.0, late=None, rare=None)
    assert best(candidate(1, signals, 0.5), candidate(2, signals, 0.2), query=by_words) == [1]
    assert best(candidate(2, signals, 0.15), query=by_words) == []


def test_what_is_replaced_gives_its_place_to_the_newer() -> None:
    """The newer one stands for both, even where it is not near enough itself."""
    found = candidate(1, days=9), candidate(2, FAR)
    assert best(*found, newer={1: 2}) == [2]
    assert best(*found) == [1]


def test_the_best_match_has_the_first_place() -> None:
    """Worth says what has a place, the match which comes first."""
    assert best(candidate(1, match=0.5), candidate(2, match=0.8)) == [2, 1]


def test_summaries_do_not_crowd_out_facts() -> None:
    """What sums up a session gives its place to any fact, however near it is; without one the best of them stays."""
    nearer = replace(NEAR, cosine=0.8)
    summaries = [
        replace(one, row=replace(one.row, type=ObservationType.SESSION_SUMMARY))
        for one in (candidate(2), candidate(3, nearer))
    ]
    assert best(candidate(1), *summaries) == [1]
    assert best(*summaries) == [3]
