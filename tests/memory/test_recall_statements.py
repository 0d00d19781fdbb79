"""Statements: how often one recall asks the database, and that an exact scan answers as the vector index does."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from callers import ADA
from clock import Clock
from recollect import App, Draft, Query, recall, remember
from recollect.search import candidates
from recollect.search.visibility import view_of
from recollect.store.vectors import vector_search

MOST = 6  # and the beginning of their transaction
SCAN = 3  # of a namespace that is so small that all of its vectors are looked at
GUESSES = 3  # of the words that a misspelt one may be
NOTES = [f"The {thing} keeps its settings in {place}." for thing in ("daemon", "index", "gate") for place in "abcdefgh"]


@pytest.fixture
def notes(app: App) -> App:
    """Return a store with some notes, each in a session, so that there are neighbours to read."""
    for number, text in enumerate(NOTES):
        remember(app, Draft(content=text, session_id="s1", position=number), ADA)
    return app


def statements(app: App, query: Query) -> list[str]:
    """Return what one recall asks the database within its one read transaction, the counting of uses aside."""
    index: Any = app.vectors
    asked: list[str] = []
    listener = lambda *told: asked.append(told[2])  # noqa: E731
    engine = index._database.engine
    recall(app, query, ADA)
    event.listen(engine, "before_cursor_execute", listener)
    recall(app, query, ADA)
    event.remove(engine, "before_cursor_execute", listener)
    assert asked.count("BEGIN") == 1
    return [one for one in asked if one.startswith(("SELECT", "WITH"))]


@pytest.mark.parametrize(("filters", "scanned"), [({}, 0), ({}, 2_000), ({"fact_type": "general"}, 2_000)])
def test_a_recall_asks_the_database_a_few_times(
    notes: App, filters: dict[str, Any], scanned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One recall is one read transaction of at most seven statements, and a few more for what a limit above 10 adds."""
    notes.vectors.sync()
    monkeypatch.setattr(vector_search, "_SCANNED", scanned)
    monkeypatch.setattr(candidates, "_CORE", 50 if scanned else 10)  # the index is to find as many as are asked for
    most = MOST + SCAN * bool(scanned) + len(filters)

    def count(limit: int) -> int:
        return len(statements(notes, Query(query="Where does the daemon keep its settings?", limit=limit, **filters)))

    assert count(1) == count(10) <= most
    if scanned:  # else the index of so few is asked again and again
        assert count(20) == count(100) <= most + 3


def test_what_is_held_of_spellings_is_asked_at_once(notes: App) -> None:
    """Memories are searched as often for three misspelt words as for one; each word adds what resembles it."""
    notes.vectors.sync()

    def asked(words: str) -> list[str]:
        return statements(notes, Query(query=f"{words} of the index"))

    several = [asked(words) for words in ("setings", "setings deamon", "setings deamon keps")]
    assert [sum("memory_text" in one for one in some) for some in several] == [3, 3, 3]
    assert [len(some) - len(several[0]) for some in several] == [0, GUESSES, 2 * GUESSES]
    assert sum("memory_text" in one for one in asked("settings")) == 1


def test_a_recall_with_its_counting_is_at_most_eight_statements(notes: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The uses of the hits are written in one statement, so that everything of one recall is no more than eight."""
    notes.vectors.sync()
    monkeypatch.setattr(vector_search, "_SCANNED", 0)
    monkeypatch.setattr(candidates, "_CORE", 10)
    index: Any = notes.vectors
    asked: list[str] = []
    event.listen(index._database.engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    hits = recall(notes, Query(query="Where does the daemon keep its settings?"), ADA).hits
    notes.usage.write()
    assert len(asked) <= 8, asked
    memories = notes.records.load([hits[0].memory.id], view_of(notes, Query(query="daemon"), ADA))
    assert memories[hits[0].memory.id].recalled_count == 1


def test_a_larger_limit_finds_what_stands_behind_hidden_memories(
    app: App, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where expired memories are most of the best by words, a larger limit finds all others, and the ten best stay."""
    monkeypatch.setattr(candidates, "_CORE", 10)
    monkeypatch.setattr(candidates, "_DEEP", 30)
    for number in range(40):
        gone = number >= 10
        remember(app, Draft(content=f"The harbour pilot, {number}.", ttl_days=1.0 if gone else None), ADA)
    behind = [f"Note {number} on tides, on wind, on berths and on the harbour of the old town." for number in range(20)]
    for content in behind:
        remember(app, Draft(content=content), ADA)
    clock.pass_days(2)
    monkeypatch.setattr(vector_search.VectorSearch, "nearest", lambda *_: {})  # by words alone
    few, many = (recall(app, Query(query="harbour pilot", limit=limit, min_score=0.0), ADA).hits for limit in (10, 50))
    assert [hit.memory.id for hit in few] == [hit.memory.id for hit in many[:10]]
    assert [hit.match for hit in few] == [hit.match for hit in many[:10]]
    assert {hit.memory.content for hit in many} >= frozenset(behind)
    assert all(hit.signals.bm25 > 0.0 for hit in many)


@pytest.mark.parametrize("bound", ["_SCANNED", "_SCANNED_CHUNKS"])
def test_a_scan_answers_as_the_index_does(notes: App, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    """A small namespace of short memories is scanned exactly, and the index finds the same nearest memories."""
    vector = notes.embedder.read(["Where are the settings of the gate?"], "query")[0].vector
    view = view_of(notes, Query(query="gate"), ADA)
    scanned = notes.vectors.nearest(vector, view, 10)
    notes.vectors.sync()
    monkeypatch.setattr(vector_search, bound, 0)
    monkeypatch.setattr(vector_search, "OF_IDS", None)  # what a scan would need
    indexed = notes.vectors.nearest(vector, view, 10)
    assert list(indexed) == list(scanned)
    assert indexed == pytest.approx(scanned, abs=1e-5)


def test_what_all_memories_share_is_left_to_the_vectors(notes: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a large store a word of nearly every memory is not looked up: that would rank all of them."""
    monkeypatch.setattr(candidates, "_LARGE", len(NOTES))
    assert not any("MATCH" in one for one in statements(notes, Query(query="settings")))
    assert any("MATCH" in one for one in statements(notes, Query(query="daemon settings c")))
    assert recall(notes, Query(query="settings"), ADA).hits
