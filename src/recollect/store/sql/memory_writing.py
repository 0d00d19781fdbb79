"""The rows of memories in a write transaction: a memory, its children, vocabulary, vectors, outbox and journal line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, delete, insert, literal, null, select, update

from recollect.domain.enums import strictest
from recollect.domain.leaving import Hold
from recollect.domain.results import KEPT_AS, Memory
from recollect.domain.transfer import MemoryState
from recollect.store.entries import Entry
from recollect.store.sql import child_tables, mapping, moments, store_metadata
from recollect.store.sql.column_types import AWAY, QUARANTINED, WITHDRAWN
from recollect.store.sql.fact_writing import FactWriting
from recollect.store.sql.memory_lookup import MemoryLookup
from recollect.store.sql.sessions import forget_texts
from recollect.store.sql.statements import count, insert_all
from recollect.store.sql.tables import fact, label, level_of, memory, moment, outbox, usage, vector
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import shown

LINKED_LATER: Final = 0
"""Stands for a memory of the same file, until it is known which id it has here."""
_COUNTED = tuple(column.name for column in usage.c if column.name != "memory_id")
_BY_RULE = frozenset({"evict", "purge"})
"""How memories are removed that nobody wants gone: a summary of them keeps their facts."""
_FOLLOWING = frozenset({"content", "confidence", "expires_at"})
"""The fields that every entry sets."""
_JOURNALLED: Final = frozenset(("importance", "confidence", "trust", "fact_type", "type"))
"""The fields of which the journal tells both values: none of them is a text, which has to be gone once forgotten."""


@dataclass(frozen=True, slots=True)
class MemoryWriting:
    """Writes memories in one open transaction."""

    _transaction: Transaction
    _lookup: MemoryLookup
    _facts: FactWriting

    def insert(self, entry: Entry, merged_into: int | None = None) -> int:
        """Write a new memory and return its id; what is merged into another memory is kept out of sight."""
        (memory_id,) = self.insert_rows([(entry, MemoryState(merged_into=merged_into))], merged_into=merged_into)
        more = {"merged_into": merged_into} if merged_into else {}
        self._transaction.journal("insert", (memory_id, entry.cleared.value.sensitivity, fields_of(entry) | more))
        return memory_id

    def insert_rows(
        self, pairs: Sequence[tuple[Entry, MemoryState]], merged_into: int | None = LINKED_LATER
    ) -> list[int]:
        """Write new memories with all that hangs on them, and queue those in sight; the journal is the caller's."""
        own = self._transaction
        connection, number = own.connection, own.namespace_id
        ids = own.claim_ids(memory, [state.id for _, state in pairs])
        new = [(memory_id, entry, state) for memory_id, (entry, state) in zip(ids, pairs, strict=True)]
        rows = (
            {"id": at} | _memory_row(self._entry_columns(entry), entry, state, merged_into) for at, entry, state in new
        )
        insert_all(connection, memory, (row | {"namespace_id": number} for row in rows))
        levels = {at: own.stored(entry.cleared.value.sensitivity) for at, entry, _ in new}
        for level, count_of_level in Counter(levels.values()).items():
            child_tables.count_memories(connection, number, level, count_of_level)
        child_tables.add_speakers(connection, number, (entry for _, entry, _ in new))
        insert_all(connection, label, (row for at, entry, _ in new for row in child_tables.label_rows(at, entry)))
        insert_all(connection, moment, (row for at, entry, _ in new for row in moments.rows_of(at, entry)))
        decided = ((at, state.standing) for at, _, state in new if state.standing)
        insert_all(connection, label, (child_tables.standing_row(at, standing) for at, standing in decided))
        counts = [{"memory_id": at} | {name: getattr(state, name) for name in _COUNTED} for at, _, state in new]
        insert_all(connection, usage, (row for row in counts if any(row[name] for name in _COUNTED)))
        words = {at: (levels[at], frozenset() if state.hidden else entry.parts.words) for at, entry, state in new}
        child_tables.write_words(connection, number, words)
        found = {at: entry.chunks if own.embeds else None for at, entry, state in new if not state.hidden}
        hashes = {at: entry.content_hash for at, entry, _ in new}
        model = store_metadata.model_of(store_metadata.read(connection))
        made = (child_tables.chunk_rows(at, found[at] or (), hashes[at], model) for at in found)
        insert_all(connection, vector, chain.from_iterable(made))
        queued = ({"memory_id": at, "embedded": found[at] is not None} for at in found)
        insert_all(connection, outbox, (row | {"namespace_id": number, "chunks": 0} for row in queued))
        own.changed = own.changed or bool(found)
        return ids

    def update(self, old: Memory, entry: Entry, action: str, *, revive: bool = True, keep: bool = True) -> int | None:
        """Write the given fields and what follows from them over `old`; vectors change with the content only.

        A text that changes is first kept as a hidden memory, whose id is returned. Without `keep` it is not: for what
        takes a text away, and for what keeps it otherwise. Nor is a text that is in quarantine or withdrawn, since no
        undo may bring it back. With `revive` a memory that was hidden, merged or superseded is in sight again. Raises
        `NotFound` when `old` is not a memory of this namespace.
        """
        own, connection = self._transaction, self._transaction.connection
        stored = self._lookup.stored_level(old.id)
        values = self._entry_columns(entry, entry.given)
        changes = _changed_fields(old, entry, values)
        kept: int | None = None
        if keep and entry.content_hash != old.content_hash and not stored.startswith(AWAY):
            kept = self.archive(old, values.get("sensitivity"))
            changes |= {KEPT_AS: kept}
        if revive:
            values |= {"deleted_at": None, "superseded_by": None, "merged_into": None}
        own.execute(update(memory).where(self._is(old.id)).values(**values))
        if "speaker" in entry.given and entry.cleared.value.speaker != old.speaker:
            child_tables.add_speakers(connection, own.namespace_id, [entry])
            child_tables.prune_speaker(connection, own.namespace_id, old.speaker)
        child_tables.replace_labels(connection, old.id, entry)
        if moments.FIELD in entry.given:
            moments.replace(connection, old.id, moments.rows_of(old.id, entry))
        hidden = old.deleted_at is not None or old.merged_into is not None
        level = values.get("sensitivity", own.stored(old.sensitivity))
        self._write_words(old.id, level, entry.parts.words if revive or not hidden else frozenset())
        self._change_level(old, level)
        if entry.content_hash != old.content_hash or (revive and hidden):
            chunks = entry.chunks if own.embeds else None
            self._queue_for_index(old.id, embedded=chunks is not None)
            child_tables.replace_chunks(connection, old.id, chunks or (), entry.content_hash)
        own.journal(action, (old.id, strictest(old.sensitivity, level), changes))
        return kept

    def archive(self, old: Memory, level: str | None = None) -> int:
        """Keep what `old` says now as a memory of its own, merged into it and out of sight; return its id.

        Where `old` is about to be of a stricter `level`, what is kept is so at once, and no line tells of it. What is
        away, in quarantine or withdrawn, is kept there. Raises `NotFound` when `old` is not a memory of this namespace.
        """
        own = self._transaction
        before = self._lookup.stored_level(old.id)
        away = next((prefix for prefix in AWAY if before.startswith(prefix)), "")
        held = before.removeprefix(away)
        kept_level = own.stored(strictest(held, level or held))
        (memory_id,) = own.claim_ids(memory, [None])
        merged = {
            "id": literal(memory_id),
            "key": null(),
            "merged_into": literal(old.id),
            "sensitivity": literal(away + kept_level),
        }
        self._copy_rows(memory, memory.c.id == old.id, merged)
        for table in (label, moment):
            self._copy_rows(table, table.c.memory_id == old.id, {"memory_id": literal(memory_id)})
        self._write_words(memory_id, kept_level, frozenset())
        self._count(kept_level, 1)
        own.journal("insert", (memory_id, kept_level, {"merged_into": old.id}))
        return memory_id

    def supersede(self, memory_id: int, by: int) -> None:
        """Mark a memory as replaced by another: no recall shows it, its history does."""
        self._set_replaced_by(self._is(memory_id), by)

    def hide(self, memory_id: int, action: str = "delete") -> bool:
        """Delete the memory softly: its row stays, no index holds it. Return whether there was such a row in sight."""
        row = self._lookup.row(memory_id, shown())
        if row is None:
            return False
        own = self._transaction
        own.execute(update(memory).where(self._is(memory_id)).values(deleted_at=own.now))
        self._leave_indexes(memory_id, row.level)
        own.journal(action, (memory_id, row.level, {"soft": True}))
        return True

    def quarantine(self, memory_id: int, *, back: bool = False) -> None:
        """Put a memory where no read looks: hidden, and at a level of sensitivity that nobody can ask for.

        What is withdrawn stays so, unless it comes `back` from there.
        """
        withdrawn = memory.c.sensitivity.in_([WITHDRAWN + level for level in self._transaction.levels])
        row = self._lookup.row(memory_id, withdrawn if back else ~withdrawn)
        if row is not None:
            self.hide(memory_id)
            mine = update(memory).where(self._is(memory_id))
            self._transaction.execute(mine.values(sensitivity=QUARANTINED + row.level))
            self._transaction.journal("quarantine", (memory_id, row.level, {}))

    def delete(self, memory_id: int, action: str = "delete") -> bool:
        """Remove the memory, what was merged into it and all their traces; return whether it was there.

        What a legal hold keeps is hidden instead, and was not there to remove.
        """
        if self._lookup.row(memory_id) is None:
            return False
        if self.hold_on(memory_id) is not None:
            self.hide(memory_id)
            return False
        self._remove_memory(memory_id, action)
        return True

    def hold_on(self, memory_id: int) -> Hold | None:
        """Return the legal hold that keeps a memory, something merged into it, or a fact of these; None without any."""
        own = self._transaction
        if own.holds.whole is not None or not own.holds.people:
            return own.holds.whole
        found, new = list[int](), [memory_id]
        while new:
            found += new
            new = list(own.execute(select(memory.c.id).where(memory.c.merged_into.in_(new))).scalars())
        written = select(memory.c.author, level_of(memory)).where(memory.c.id.in_(found))
        stated = select(fact.c.author, level_of(fact)).where(fact.c.memory_id.in_(found))
        rows = [*own.execute(written), *own.execute(stated)]
        return next(filter(None, (own.holds.keeping(row.author, row.level) for row in rows)), None)

    def request_purge(self) -> None:
        """Have the text index rewritten, so that nothing is left in it of what was overwritten."""
        self._transaction.dialect.mark_deleted_text(self._transaction.connection)

    def _remove_memory(self, memory_id: int, action: str) -> None:
        """Delete a memory that is there, and the memories merged into it at whatever level."""
        own = self._transaction
        mine = memory.c.namespace_id == own.known_id
        parts = select(memory.c.id).where(mine, memory.c.merged_into == memory_id)
        for part in own.execute(parts).scalars().all():
            self._remove_memory(part, action)
        columns = (memory.c.speaker, memory.c.superseded_by, memory.c.deleted_at, level_of(memory))
        row = own.execute(select(*columns).where(mine, memory.c.id == memory_id)).one()
        self._leave_indexes(memory_id, row.level)
        if action in _BY_RULE and row.superseded_by is not None and row.deleted_at is None:
            self._facts.pass_to_summary(memory_id, row.superseded_by)
        own.execute(delete(memory).where(mine, memory.c.id == memory_id))
        forget_texts(own.connection, memory_id)
        self._count(row.level, -1)
        self._set_replaced_by(mine & (memory.c.superseded_by == memory_id), row.superseded_by)
        child_tables.prune_speaker(own.connection, own.namespace_id, row.speaker)
        own.journal(action, (memory_id, row.level, {}))

    def _is(self, memory_id: int) -> ColumnElement[bool]:
        """Return the condition that a row is this memory, in the namespace of the transaction."""
        return (memory.c.id == memory_id) & self._transaction.here()

    def _entry_columns(self, entry: Entry, given: Collection[str] | None = None) -> dict[str, Any]:
        """Return the columns that an entry fills; what is not public is stored as the writer's own."""
        values = mapping.columns_of(entry, given)
        level = {"sensitivity": self._transaction.stored(values["sensitivity"])} if "sensitivity" in values else {}
        return values | level

    def _copy_rows(self, table: Table, mine: ColumnElement[bool], changed: Mapping[str, Any]) -> None:
        """Write the rows that meet `mine` once more, with some columns `changed`."""
        row = select(*(changed.get(column.name, column) for column in table.c)).where(mine)
        self._transaction.execute(insert(table).from_select([column.name for column in table.c], row))

    def _leave_indexes(self, memory_id: int, level: str) -> None:
        """Take a memory out of the vocabulary, and queue it so that both indexes drop what they hold of it."""
        self._write_words(memory_id, level, frozenset())
        self._queue_for_index(memory_id, embedded=True)
        self.request_purge()

    def _set_replaced_by(self, condition: ColumnElement[bool], by: int | None) -> None:
        """Let memories be replaced by another one, or be current again; journal it for those who may see both."""
        own = self._transaction
        replaced = own.execute(select(memory.c.id, level_of(memory)).where(condition)).all()
        if replaced:
            found = own.execute(select(level_of(memory)).where(memory.c.id == by)).scalar()
            own.execute(update(memory).where(condition).values(superseded_by=by))
            lines = ((row.id, strictest(row.level, found or row.level)) for row in replaced)
            own.journal("update", *((number, level, {"superseded_by": by}) for number, level in lines))

    def _change_level(self, old: Memory, level: str) -> None:
        """Count a memory at its new level; where that is stricter, what was merged into it goes along."""
        own = self._transaction
        before = own.stored(old.sensitivity)
        if level == before:
            return
        self._count(before, -1)
        self._count(level, 1)
        for part in self._lookup.archived(old.id):
            held = own.stored(part.sensitivity)
            if strictest(held, level) != held:
                self._count(held, -1)
                self._count(level, 1)
                for away in ("", *AWAY):  # what is in quarantine or withdrawn stays there
                    of_part = (memory.c.id == part.id) & (memory.c.sensitivity == away + held)
                    own.execute(update(memory).where(of_part).values(sensitivity=away + level))
                own.journal("update", (part.id, level, {"fields": ["sensitivity"]}))

    def _count(self, level: str, change: int) -> None:
        """Change how many memories of a level the namespace has."""
        child_tables.count_memories(self._transaction.connection, self._transaction.namespace_id, level, change)

    def _write_words(self, memory_id: int, level: str, words: frozenset[str]) -> None:
        """Let these be the words of a memory in the vocabulary of the namespace; none takes them out."""
        own = self._transaction
        child_tables.write_words(own.connection, own.namespace_id, {memory_id: (level, words)})

    def _queue_for_index(self, memory_id: int, *, embedded: bool) -> None:
        """Queue a memory for the vector index, which may hold as many of its vectors as SQL does now."""
        own = self._transaction
        if embedded:
            child_tables.mark_embedded(own.connection, memory_id)
        held = count(own.connection, vector, vector.c.memory_id == memory_id)
        values = {"memory_id": memory_id, "namespace_id": own.namespace_id, "chunks": held, "embedded": embedded}
        own.execute(insert(outbox).values(**values))
        own.changed = True


def fields_of(entry: Entry) -> dict[str, Any]:
    """Return what the journal tells of a new memory: the names of the fields that were set."""
    return {"fields": sorted(entry.given)} if entry.given else {}


def _changed_fields(old: Memory, entry: Entry, values: dict[str, Any]) -> dict[str, Any]:
    """Return the names of the fields that differ from those of the memory, without headings that only follow."""
    lists = {name: getattr(entry.cleared.value, name) for name in entry.given if name in mapping.LISTS}
    new = {name: value for name, value in (values | lists).items() if name in entry.given | _FOLLOWING}
    fields = sorted(name for name, value in new.items() if value != getattr(old, name))
    both = {name: [getattr(old, name), new[name]] for name in fields if name in _JOURNALLED}
    return ({"fields": fields} if fields else {}) | both


def _memory_row(columns: dict[str, Any], entry: Entry, state: MemoryState, merged_into: int | None) -> dict[str, Any]:
    """Return the columns of a new memory but for its ids; `merged_into` is the id of what it was merged into."""
    row = columns | {"created_at": state.created_at or entry.at, "deleted_at": state.deleted_at}
    row["superseded_by"] = None if state.superseded_by is None else LINKED_LATER
    row["merged_into"] = None if state.merged_into is None else merged_into
    return row | ({"key": None} if state.merged_into else {})
