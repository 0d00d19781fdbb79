"""Plans: what SQLite does for the statements of a recall, so that none walks a namespace that may hold everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event

from recollect.domain.enums import FactType, Order
from recollect.store.sql.tables import namespace, outbox
from recollect.store.sql.visibility import passing, values_of
from recollect.store.text.index import Term

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def planned(parts: Any) -> Iterator[Callable[[Callable[[], object]], list[str]]]:
    """Return a function that calls another and returns the steps of every statement that was run meanwhile."""
    asked: list[tuple[str, Any]] = []
    for number in range(30):
        parts.add(f"Turn {number}", session_id="s1", position=number, speaker="Ada", tags=("Tide",))

    def steps(call: Callable[[], object]) -> list[str]:
        call()
        asked.clear()
        call()
        statements = [one for one in asked if one[0].startswith(("SELECT", "WITH"))]
        with parts.database.reading() as connection:
            plans = [connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values) for sql, values in statements]
            steps = [row[-1] for plan in plans for row in plan]
            return [step for step in steps if "json_each" not in step and "SUBQUERY" not in step]  # given values

    listener = lambda *told: asked.append(told[2:4])  # noqa: E731
    event.listen(parts.database.engine, "before_cursor_execute", listener)
    yield steps
    event.remove(parts.database.engine, "before_cursor_execute", listener)


@pytest.mark.parametrize("wish", [{}, {"tags": ("tide",)}, {"since": LONG_AGO}, {"fact_type": FactType.GENERAL}])
@pytest.mark.parametrize("read", ["load", "abstracts", "contents"])
def test_memories_are_looked_up_by_id(parts: Any, planned: Any, read: str, wish: dict[str, Any]) -> None:
    """Reading memories by id goes to their rows, whatever else the view asks; the namespace's size is no matter."""
    ids, view = list(range(1, 20)), parts.view(**wish)
    steps = planned(lambda: getattr(parts.records, read)(ids, view))
    assert "SEARCH memory USING INTEGER PRIMARY KEY (rowid=?)" in steps
    assert [step for step in steps if step.startswith("SCAN") or "(namespace_id=?)" in step] == []


def test_the_words_of_a_query_lead_to_the_memories(parts: Any, planned: Any) -> None:
    """A search begins in the text index and looks up what it found there, and by their type what sums up sessions."""
    steps = planned(lambda: parts.text.search([Term("turn")], parts.view(), 10))
    assert [step for step in steps if step.startswith("SCAN") and step != "SCAN asked"] == [
        "SCAN place VIRTUAL TABLE INDEX 1:",
        "SCAN memory_text VIRTUAL TABLE INDEX 0:M4",
    ]
    assert {one for one in steps if one.startswith("SEARCH") and "AUTOMATIC" not in one} == {
        "SEARCH text_size USING INDEX sqlite_autoindex_text_size_1 (namespace_id=? AND sensitivity=?)",
        "SEARCH text_length USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH memory USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH memory USING INDEX ix_memory_namespace_id_type (namespace_id=? AND type=?)",
    }


def test_counts_and_names_walk_nothing(parts: Any, planned: Any) -> None:
    """How many there are, how often a word stands and who is named are looked up."""
    view = parts.view()
    steps = planned(lambda: (parts.text.size(view), parts.text.frequencies(["turn"], view)))
    facts = planned(lambda: parts.records.query_facts(["turn"], ["ada"], view))
    steps += [step for step in facts if step not in ("SCAN store_metadata", "SCAN waiting", "COMPOUND QUERY")]
    steps += planned(lambda: parts.records.embeddings.unembedded(1))
    steps += planned(lambda: parts.records.embeddings.unembedded(1, view))
    assert len(steps) >= 4
    assert [step for step in steps if step.startswith("SCAN")] == []


@pytest.mark.parametrize(
    ("wish", "index"),
    [
        ({"type": "bugfix"}, "ix_memory_namespace_id_type (namespace_id=? AND type=?)"),
        ({"project": "hull"}, "ix_memory_namespace_id_project (namespace_id=? AND project=?)"),
        ({"category": "ops"}, "ix_memory_namespace_id_category (namespace_id=? AND category=?)"),
        ({"fact_type": FactType.EVENT}, "ix_memory_namespace_id_fact_type (namespace_id=? AND fact_type=?)"),
        ({"session_id": "s1"}, "ix_memory_namespace_id_session_id_position (namespace_id=? AND session_id=?)"),
        ({"since": LONG_AGO}, "ix_memory_namespace_id_happened_at (namespace_id=? AND <expr>>?)"),
        ({"tags": ("Tide",)}, "ix_label_kind_folded (kind=? AND <expr>=?)"),
        ({"file": "src"}, "ix_label_kind_folded (kind=?)"),
    ],
)
def test_a_filter_begins_at_its_index(parts: Any, planned: Any, wish: dict[str, Any], index: str) -> None:
    """What passes a filter is found through the index that was made for it."""
    view = parts.view(**wish)

    def found() -> list[int]:
        with parts.database.reading() as connection:
            return list(connection.execute(passing(view), values_of(connection, view)).scalars())

    assert planned(found)[0].endswith(index)


@pytest.mark.parametrize("condition", [namespace.c.name.not_in(["other"]), namespace.c.name.in_(["project:hull/tide"])])
def test_the_queue_is_read_in_the_order_of_its_index(parts: Any, planned: Any, condition: Any) -> None:
    """The next memories for the vector index are read without sorting all that wait, which may be a million."""
    steps = planned(lambda: parts.vectors._outbox._next_batch(outbox.c.embedded.is_(True), condition))
    assert any(step.startswith("SEARCH outbox USING INDEX") for step in steps)
    assert [step for step in steps if step.startswith(("SCAN outbox", "USE TEMP"))] == []


@pytest.mark.parametrize("wish", [{}, {"since": LONG_AGO}, {"session_id": "s1"}, {"hidden": True}])
@pytest.mark.parametrize("order", Order)
def test_overviews_are_read_from_their_index(
    parts: Any, planned: Any, order: Order, wish: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages and counts of many memories look at no row of them, in whatever order and with whatever filter."""
    monkeypatch.setattr(parts.records.overview._counted, "get", lambda *given: given[-1]())
    view = parts.view(**wish)
    steps = planned(
        lambda: (parts.records.overview.page_after(view, order, None, 5), parts.records.overview.facets(view, 10))
    )
    steps += planned(lambda: parts.records.overview.states(view))
    found = [step for step in steps if " memory USING" in step]
    assert len(found) >= 3
    assert {step.partition(" USING ")[2] for step in found} == {"COVERING INDEX ix_memory_overview (<expr>=?)"}


def test_what_waits_is_counted_without_what_is_approved(
    parts: Any, planned: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number that waits is read from both ends of the index of decisions, between which stands what is approved."""
    monkeypatch.setattr(parts.records.overview._counted, "get", lambda *given: given[-1]())
    steps = planned(lambda: parts.records.reviews.count_waiting(parts.view(), 100))
    found = [step for step in steps if " memory USING" in step]
    assert [step.split()[-1].rpartition("(")[2] for step in found] == ["review<?)", "review>?)", "sensitivity=?)"]
