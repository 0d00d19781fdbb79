"""Imports on SQLite and PostgreSQL alike: ids, times and counts are kept, and the journal tells where from."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from callers import EVERY_LEVEL
from entries import AT, make_entry
from recollect.domain.enums import Sensitivity
from recollect.domain.origin import Origin
from recollect.domain.requests import StoreFact
from recollect.domain.search import View
from recollect.domain.transfer import FactRecord, MemoryLink, MemoryRecord
from recollect.gate import clear
from recollect.store import journal
from recollect.store.entries import FactEntry, ImportedMemory
from recollect.store.sql.database import Database
from recollect.store.sql.export_reader import ExportReader
from recollect.store.sql.records import Records

HERE, THERE = "project:crew/engine", "user:ada"
VIEW = View(namespaces=(HERE, THERE), now=AT, sensitivities=EVERY_LEVEL)


@pytest.fixture
def records(database: Database) -> Records:
    """Return the way in, on each kind of database."""
    return Records(database, lambda: AT, lambda: None)


@pytest.fixture
def export_reader(database: Database) -> ExportReader:
    """Return the way out of the same database."""
    return ExportReader(database)


def imported(content: str, **kept: Any) -> ImportedMemory:
    record = clear(MemoryRecord(content=content, **kept))
    return ImportedMemory(make_entry(content, tags=["a", "b"], speaker="Ada"), record)


def link(memory_id: int, **targets: int) -> MemoryLink:
    return MemoryLink(where="a line", id=memory_id, **targets)


def fact(text: str, **kept: Any) -> tuple[FactEntry, Any]:
    parts = {"subject": "Ada", "predicate": "likes", "object": text}
    stored = clear(StoreFact(**parts))
    entry = FactEntry(
        cleared=stored,
        memory_id=None,
        sensitivity=Sensitivity.PUBLIC,
        valid_from=AT,
        at=AT,
        author="ada",
        stamp=Origin(),
    )
    return entry, clear(FactRecord(**parts, **kept))


def test_numbers_are_kept_where_they_are_free(records: Records, export_reader: ExportReader) -> None:
    """A number that no memory ever had stays; one that was given before becomes another, beyond all of the file's."""
    with records.importing([HERE, THERE], "ada") as namespaces:
        assert namespaces[HERE].imports.insert([imported("one", id=5), imported("two"), imported("three", id=9)]) == [
            5,
            10,
            9,
        ]
    with records.importing([HERE, THERE], "ada") as namespaces:
        assert namespaces[THERE].imports.insert([imported("four", id=5), imported("five", id=12)]) == [13, 12]
    assert [one.id for one in export_reader.memories(VIEW, 0, 10)] == [5, 9, 10, 12, 13]


def test_no_file_uses_up_the_numbers(records: Records, store: Any) -> None:
    """Numbers in the upper half of those that there are become others, and the next ones follow those."""
    with records.importing([HERE, THERE], "ada") as namespaces:
        assert namespaces[HERE].imports.insert([imported("one", id=2**31 - 1), imported("two", id=2**30 + 1)]) == [1, 2]
        assert namespaces[HERE].facts.insert_imported(*fact("tea", id=2**31 - 1))
    with store.records.writing(HERE, "ada") as writing:
        assert writing.memories.insert(make_entry("three")) == 3
    assert [row[0] for row in store.rows("SELECT id FROM fact")] == [1]


def test_what_cannot_give_way_is_told(records: Records, store: Any) -> None:
    """A link to itself, in a circle or into another namespace is given back, and changes nothing."""
    with records.importing([HERE, THERE], "ada") as namespaces:
        namespaces[HERE].imports.insert([imported(str(number), id=number, merged_into=1) for number in (1, 2, 3)])
        namespaces[THERE].imports.insert([imported("four", id=4)])
        wrong = [link(1, merged_into=1), link(3, merged_into=2), link(1, merged_into=4)]
        links = [link(2, merged_into=3), *wrong]
        assert [one for one in links if not any(room.imports.link(one) for room in namespaces.values())] == wrong
    assert [row[0] for row in store.rows("SELECT merged_into FROM memory ORDER BY id")] == [0, 3, 0, None]


def test_what_is_written_later_goes_on_after_them(records: Records, store: Any) -> None:
    """A memory that is remembered after an import gets the next number."""
    with records.importing([HERE, THERE], "ada") as namespaces:
        namespaces[HERE].imports.insert([imported("one", id=41)])
    with store.records.writing(HERE, "ada") as writing:
        assert writing.memories.insert(make_entry("two")) == 42


def test_everything_is_as_one_by_one(records: Records, export_reader: ExportReader, store: Any) -> None:
    """A memory that is brought in looks like one that was remembered, but for what the file says of it."""
    with records.importing([HERE, THERE], "ada") as namespaces:
        (old,) = namespaces[HERE].imports.insert([imported("one", created_at=AT - timedelta(days=9), accessed_count=4)])
    with store.records.writing(THERE, "ada") as writing:
        new = writing.memories.insert(make_entry("one", tags=["a", "b"], speaker="Ada"))
    first, second = export_reader.memories(VIEW, 0, 10)
    assert (first.id, second.id) == (old, new)
    assert (first.created_at, first.accessed_count) == (AT - timedelta(days=9), 4)
    for name in ("content", "tags", "speaker", "title", "abstract", "overview", "updated_at", "author", "content_hash"):
        assert getattr(first, name) == getattr(second, name), name
    counted = store.rows("SELECT namespace_id, text, uses FROM word ORDER BY namespace_id, text")
    words = [[tuple(row)[1:] for row in counted if row[0] == number] for number in (1, 2)]
    assert words[0] == words[1] != []
    assert [row[0] for row in store.rows("SELECT memories FROM held")] == [1, 1]


def test_hidden_memories_leave_no_trace_in_the_indexes(
    records: Records, export_reader: ExportReader, store: Any
) -> None:
    """What was deleted softly or merged has neither words nor vectors, and links are made once all are there."""
    with records.importing([HERE, THERE], "ada") as namespaces:
        ids = namespaces[HERE].imports.insert(
            [imported("one", id=1), imported("two", id=2, merged_into=1), imported("three", id=3, deleted_at=AT)],
        )
        assert export_reader.memories(VIEW, 0, 0) == []
        links = [link(2, merged_into=1), link(1, superseded_by=3)]
        assert all(namespaces[HERE].imports.link(one) for one in links)
    assert ids == [1, 2, 3]
    found = {one.id: one for one in export_reader.memories(VIEW, 0, 10)}
    assert (found[2].merged_into, found[1].superseded_by) == (1, None)
    assert found[3].deleted_at == AT
    assert {row[0] for row in store.rows("SELECT memory_id FROM vector")} == {1}
    assert {row[0] for row in store.rows("SELECT memory_id FROM outbox")} == {1}


def test_a_dry_run_leaves_nothing(records: Records, export_reader: ExportReader) -> None:
    """Neither memories nor namespaces nor journal lines stay, and the next one does not stumble over it."""
    with records.importing([HERE, THERE], "ada", dry=True) as namespaces:
        namespaces[HERE].imports.insert([imported("one")])
    assert export_reader.counts(VIEW) == {"memories": 0, "facts": 0, "journal": 0}
    with records.importing([HERE, THERE], "ada") as namespaces:
        namespaces[HERE].imports.insert([imported("one")])
    assert export_reader.counts(VIEW)["memories"] == 1


def test_a_failed_import_leaves_nothing(records: Records, export_reader: ExportReader) -> None:
    """When something breaks in the middle of a transaction, nothing of it was ever there."""

    def breaking() -> None:
        with records.importing([HERE, THERE], "ada") as namespaces:
            namespaces[HERE].imports.insert([imported("one")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        breaking()
    with records.importing([HERE, THERE], "ada") as namespaces:
        namespaces[HERE].imports.insert([imported("two")])
    assert [one.content for one in export_reader.memories(VIEW, 0, 10)] == ["two"]


def test_facts_keep_their_numbers_and_times(records: Records, export_reader: ExportReader) -> None:
    """A fact arrives once; told again as ended, it ends; told again the same, nothing changes."""
    earlier = AT - timedelta(days=3)
    with records.importing([HERE, THERE], "ada") as namespaces:
        assert namespaces[HERE].facts.insert_imported(*fact("tea", id=7, valid_from=AT, created_at=earlier))
        assert not namespaces[HERE].facts.insert_imported(*fact("  TEA ", id=7, valid_from=AT))
        assert namespaces[HERE].facts.insert_imported(*fact("tea", valid_from=AT, valid_to=AT + timedelta(days=1)))
        assert not namespaces[HERE].facts.insert_imported(*fact("tea", valid_from=AT, valid_to=AT + timedelta(days=1)))
    (one,) = export_reader.facts(VIEW, 0, 10)
    assert (one.id, one.created_at, one.valid_to) == (7, earlier, AT + timedelta(days=1))


def test_the_journal_tells_where_things_came_from(
    records: Records, export_reader: ExportReader, database: Database
) -> None:
    """Each memory and fact that is imported leaves a line that names its place in the file; the chain holds."""
    with records.importing([HERE, THERE], "ada") as namespaces:
        (memory_id,) = namespaces[HERE].imports.insert([imported("one", origin="notes.md:3")])
        namespaces[HERE].facts.insert_imported(*fact("tea", id=7, valid_from=AT, origin="notes.md:4"))
        namespaces[HERE].facts.insert_imported(
            *fact("tea", valid_from=AT, valid_to=AT + timedelta(days=1), origin="new.md:1")
        )
    lines = export_reader.lines(VIEW, 0, 10)
    assert [(one.actor, one.action, one.memory_id) for one in lines] == [
        ("ada", "import", memory_id),
        ("ada", "import", None),
        ("ada", "update", None),
    ]
    assert [one.changes["from"] for one in lines] == ["notes.md:3", "notes.md:4", "new.md:1"]
    with database.reading() as connection:
        assert journal.walk(connection).broken == {}
