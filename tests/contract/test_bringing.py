"""Bringing in on SQLite and PostgreSQL alike: numbers, times and counts are kept, and the journal stays whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from entries import AT, make_entry
from recollect.domain import Kept, KeptFact, KeptLine, Link, Sensitivity, StoreFact, View
from recollect.gate import clear
from recollect.ports import Brought, FactEntry
from recollect.store import journal
from recollect.store.bringing import SqlImports
from recollect.store.database import Database
from recollect.store.leaving import SqlLeaving

HERE, THERE = "project:crew/engine", "user:ada"
VIEW = View((HERE, THERE), AT, tuple(Sensitivity))


@pytest.fixture
def imports(database: Database) -> SqlImports:
    """Return the way in, on each kind of database."""
    return SqlImports(database, lambda: AT, lambda: None)


@pytest.fixture
def leaving(database: Database) -> SqlLeaving:
    """Return the way out of the same database."""
    return SqlLeaving(database)


def brought(content: str, **kept: Any) -> Brought:
    return Brought(make_entry(content, tags=["a", "b"], speaker="Ada"), clear(Kept(**kept)))


def fact(text: str, **kept: Any) -> tuple[FactEntry, Any]:
    parts = {"subject": "Ada", "predicate": "likes", "object": text}
    stored = clear(StoreFact(**parts))
    entry = FactEntry(
        cleared=stored, memory_id=None, sensitivity=Sensitivity.PUBLIC, valid_from=AT, at=AT, author="ada"
    )
    return entry, clear(KeptFact(**parts, **kept))


def test_numbers_are_kept_where_they_are_free(imports: SqlImports, leaving: SqlLeaving) -> None:
    """A number that no memory ever had stays; one that was given before becomes another, beyond all of the file's."""
    with imports.bringing("ada") as bringing:
        assert bringing.insert(HERE, [brought("one", id=5), brought("two"), brought("three", id=9)]) == [5, 10, 9]
    with imports.bringing("ada") as bringing:
        assert bringing.insert(THERE, [brought("four", id=5), brought("five", id=12)]) == [13, 12]
    assert [one.id for one in leaving.memories(VIEW, 0, 10)] == [5, 9, 10, 12, 13]


def test_no_file_uses_up_the_numbers(imports: SqlImports, store: Any) -> None:
    """Numbers in the upper half of those that there are become others, and the next ones follow those."""
    with imports.bringing("ada") as bringing:
        assert bringing.insert(HERE, [brought("one", id=2**31 - 1), brought("two", id=2**30 + 1)]) == [1, 2]
        assert bringing.put_fact(HERE, *fact("tea", id=2**31 - 1))
        bringing.close([HERE])
    with store.records.writing(HERE, "ada") as writing:
        assert writing.insert(make_entry("three")) == 3
    assert [row[0] for row in store.rows("SELECT id FROM fact")] == [1]


def test_what_cannot_give_way_is_told(imports: SqlImports, store: Any) -> None:
    """A link to itself, in a circle or into another namespace is given back, and changes nothing."""
    with imports.bringing("ada") as bringing:
        bringing.insert(HERE, [brought(str(number), id=number, merged_into=1) for number in (1, 2, 3)])
        bringing.insert(THERE, [brought("four", id=4)])
        wrong = [Link(id=1, merged_into=1), Link(id=3, merged_into=2), Link(id=1, merged_into=4)]
        assert bringing.link([Link(id=2, merged_into=3), *wrong], [HERE, THERE]) == wrong
    assert [row[0] for row in store.rows("SELECT merged_into FROM memory ORDER BY id")] == [0, 3, 0, None]


def test_what_is_written_later_goes_on_after_them(imports: SqlImports, store: Any) -> None:
    """A memory that is remembered after an import gets the next number."""
    with imports.bringing("ada") as bringing:
        bringing.insert(HERE, [brought("one", id=41)])
    with store.records.writing(HERE, "ada") as writing:
        assert writing.insert(make_entry("two")) == 42


def test_everything_is_as_one_by_one(imports: SqlImports, leaving: SqlLeaving, store: Any) -> None:
    """A memory that is brought in looks like one that was remembered, but for what the file says of it."""
    with imports.bringing("ada") as bringing:
        (old,) = bringing.insert(HERE, [brought("one", created_at=AT - timedelta(days=9), accessed_count=4)])
    with store.records.writing(THERE, "ada") as writing:
        new = writing.insert(make_entry("one", tags=["a", "b"], speaker="Ada"))
    first, second = leaving.memories(VIEW, 0, 10)
    assert (first.id, second.id) == (old, new)
    assert (first.created_at, first.accessed_count) == (AT - timedelta(days=9), 4)
    for name in ("content", "tags", "speaker", "title", "abstract", "overview", "updated_at", "author", "content_hash"):
        assert getattr(first, name) == getattr(second, name), name
    counted = store.rows("SELECT namespace_id, text, uses FROM word ORDER BY namespace_id, text")
    words = [[tuple(row)[1:] for row in counted if row[0] == number] for number in (1, 2)]
    assert words[0] == words[1] != []
    assert [row[0] for row in store.rows("SELECT memories FROM namespace")] == [1, 1]


def test_hidden_memories_leave_no_trace_in_the_indexes(imports: SqlImports, leaving: SqlLeaving, store: Any) -> None:
    """What was deleted softly or merged has neither words nor vectors, and links are made once all are there."""
    with imports.bringing("ada") as bringing:
        ids = bringing.insert(
            HERE,
            [brought("one", id=1), brought("two", id=2, merged_into=1), brought("three", id=3, deleted_at=AT)],
        )
        assert leaving.memories(VIEW, 0, 0) == []
        bringing.link([Link(id=2, merged_into=1), Link(id=1, superseded_by=3)], [HERE])
    assert ids == [1, 2, 3]
    found = {one.id: one for one in leaving.memories(VIEW, 0, 10)}
    assert (found[2].merged_into, found[1].superseded_by) == (1, None)
    assert found[3].deleted_at == AT
    assert {row[0] for row in store.rows("SELECT memory_id FROM vector")} == {1}
    assert {row[0] for row in store.rows("SELECT memory_id FROM outbox")} == {1}


def test_a_dry_run_leaves_nothing(imports: SqlImports, leaving: SqlLeaving) -> None:
    """Neither memories nor namespaces nor journal lines stay, and the next one does not stumble over it."""
    with imports.bringing("ada", dry=True) as bringing:
        bringing.insert(HERE, [brought("one")])
    assert leaving.counts(VIEW) == {"memories": 0, "facts": 0, "journal": 0, "all": 0}
    with imports.bringing("ada") as bringing:
        bringing.insert(HERE, [brought("one")])
    assert leaving.counts(VIEW)["memories"] == 1


def test_a_failed_import_leaves_nothing(imports: SqlImports, leaving: SqlLeaving) -> None:
    """When something breaks in the middle of a transaction, nothing of it was ever there."""

    def breaking() -> None:
        with imports.bringing("ada") as bringing:
            bringing.insert(HERE, [brought("one")])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        breaking()
    with imports.bringing("ada") as bringing:
        bringing.insert(HERE, [brought("two")])
    assert [one.content for one in leaving.memories(VIEW, 0, 10)] == ["two"]


def test_facts_keep_their_numbers_and_times(imports: SqlImports, leaving: SqlLeaving) -> None:
    """A fact arrives once; told again as ended, it ends; told again the same, nothing changes."""
    earlier = AT - timedelta(days=3)
    with imports.bringing("ada") as bringing:
        assert bringing.put_fact(HERE, *fact("tea", id=7, valid_from=AT, created_at=earlier))
        assert not bringing.put_fact(HERE, *fact("  TEA ", id=7, valid_from=AT))
        assert bringing.put_fact(HERE, *fact("tea", valid_from=AT, valid_to=AT + timedelta(days=1)))
        assert not bringing.put_fact(HERE, *fact("tea", valid_from=AT, valid_to=AT + timedelta(days=1)))
    (one,) = leaving.facts(VIEW, 0, 10)
    assert (one.id, one.created_at, one.valid_to) == (7, earlier, AT + timedelta(days=1))


def test_a_journal_is_restored_line_by_line(
    imports: SqlImports, leaving: SqlLeaving, database: Database, make_lines: Callable[[int], list[KeptLine]]
) -> None:
    """Lines that follow from each other are written under their numbers and hashes; the chain holds."""
    lines = [clear(one) for one in make_lines(6)]
    with imports.bringing("ada") as bringing:
        tip, count = bringing.restore(lines[:4], "", rechained=False) or ("", 0)
        assert count == 4
        assert bringing.restore(lines[4:], tip, rechained=False) == (lines[-1].value.hash, 2)
        assert bringing.restore(lines[:3], "", rechained=False) == (lines[2].value.hash, 0)
        assert bringing.restore(lines[1:2], "0" * 64, rechained=False) == (lines[1].value.hash, 0)
    assert [one.hash for one in leaving.lines(VIEW, 0, 10)] == [one.value.hash for one in lines]
    with database.reading() as connection:
        assert journal.first_broken(connection) is None


def test_a_line_that_does_not_follow_is_not_restored(
    imports: SqlImports, leaving: SqlLeaving, make_lines: Callable[[int], list[KeptLine]]
) -> None:
    """Where one is missing or was changed nothing is written; as a part of a journal it gets a chain of its own."""
    lines = make_lines(4)
    changed = [lines[0], lines[1].model_copy(update={"actor": "eve"}), *lines[2:]]
    with imports.bringing("ada") as bringing:
        for wrong in (lines[1:], [lines[0], lines[2]], changed):
            assert bringing.restore([clear(one) for one in wrong], "", rechained=False) is None
        assert leaving.counts(VIEW)["all"] == 0
        part = bringing.restore([clear(lines[1]), clear(lines[3])], "", rechained=True)
    assert part is not None
    assert part[1] == 2
    assert [one.id for one in leaving.lines(VIEW, 0, 10)] == [lines[1].id, lines[3].id]


@pytest.fixture
def make_lines() -> Callable[[int], list[KeptLine]]:
    """Return a function that makes a journal as another store would have written it."""

    def making(count: int) -> list[KeptLine]:
        previous, lines = journal.FIRST, []
        for number in range(1, count + 1):
            line = {"at": AT, "actor": "ada", "namespace": HERE, "action": "insert"}
            line |= {"memory_id": number, "changes": {"fields": ["key"]}}
            previous = journal.chained(previous, line)
            lines.append(KeptLine(id=number + 2, hash=previous, **line))
        return lines

    return making
