"""One write: the row, its children, vocabulary, vectors, outbox and journal line, all in one transaction."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    Text,
    delete,
    false,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    type_coerce,
    update,
)

from recollect.domain.enums import Sensitivity, strictest
from recollect.domain.results import KEPT_AS, Memory, Outcome, WriteStatus
from recollect.domain.search import View
from recollect.domain.transfer import MemoryLink, MemoryState
from recollect.engines.reconcile import Judgement
from recollect.errors import InvalidInput, NotFound
from recollect.store.entries import Entry, ImportedMemory
from recollect.store.sql import child_tables, mapping, moments, store_metadata
from recollect.store.sql.column_types import AWAY, QUARANTINED, WITHDRAWN
from recollect.store.sql.consolidation import ConsolidationWriting
from recollect.store.sql.decisions import DecisionWriting
from recollect.store.sql.fact_writing import FactWriting
from recollect.store.sql.reviews import ReviewWriting, taken_by
from recollect.store.sql.sessions import forget_texts, forget_words
from recollect.store.sql.statements import count, in_batches, insert_all
from recollect.store.sql.tables import held, label, level_of, memory, moment, outbox, request_outcome, usage, vector
from recollect.store.sql.transaction import origin
from recollect.store.sql.visibility import alive, of_levels, shown, visible

OF_NOTHING: Final = "0"
"""The id in an outcome that names no memory."""
_OF_ID: Final = 40
"""How many of the 64 characters that are kept of a request come from its id; the others from what was asked."""
_FEW_PREFIXES = 20  # above that reading all keys of a namespace is quicker than asking for each
_LINKED_LATER = 0  # stands for a memory of the same file, until it is known which id it has here
_COUNTED = tuple(one.name for one in usage.c if one.name != "memory_id")
_BY_RULE = frozenset({"evict", "purge"})
"""How memories are removed that nobody wants gone: a summary of them keeps their facts."""
_FOLLOWING = frozenset({"content", "confidence", "expires_at"})
"""The fields that an entry sets whatever was given."""
_JOURNALLED: Final = frozenset(("importance", "confidence", "trust", "fact_type", "type"))
"""The fields of which the journal tells both values: none of them is a text, which has to be gone once forgotten."""


class Writing(FactWriting, ConsolidationWriting, DecisionWriting, ReviewWriting):
    """Writes memories in one open transaction."""

    def previous_outcome(self, operation: str, request_id: str) -> Outcome | None:
        """Return how this very request ended when it was made before, so that a retry does nothing twice."""
        return previous_outcome(self._connection, [self._namespace], self._actor, operation, request_id)

    def record_outcome(self, operation: str, request_id: str, outcome: Outcome) -> None:
        """Keep the outcome under the request's id, in the transaction of the write itself.

        What is no number names nothing, now or later; it may be any text, even a secret, and is not kept.
        """
        if request_id and outcome.id.isdecimal():
            own = _request(self._namespace, self._actor, operation, request_id)
            kept = {"request_id": own, "status": str(outcome.status), "memory_id": outcome.id}
            dated = {"at": self._now, "notes": json.dumps(outcome.notes)}
            self._connection.execute(insert(request_outcome).values(**kept, **dated))

    def by_key(self, key: str, level: Sensitivity | None = None) -> Memory | None:
        """Find the memory with this key, of this level or the strictest, whatever its state: it holds the key."""
        return self._strictest(memory.c.key == key, level)

    def by_hash(self, content_hash: str, level: Sensitivity | None = None) -> Memory | None:
        """Find the oldest memory with this content, of this level or the strictest, if not deleted or merged."""
        return self._strictest((memory.c.content_hash == content_hash) & shown(), level)

    def by_id(self, memory_id: int) -> Memory | None:
        """Find the memory with this id, whatever its state."""
        return next(iter(self._find(memory.c.id == memory_id)), None)

    def insert(self, entry: Entry, merged_into: int | None = None) -> int:
        """Write a new memory and return its id; one that is merged into another is kept out of sight."""
        (memory_id,) = self._insert([(entry, MemoryState(merged_into=merged_into))], merged_into=merged_into)
        more = {"merged_into": merged_into} if merged_into else {}
        self._journal("insert", (memory_id, entry.cleared.value.sensitivity, _fields(entry) | more))
        return memory_id

    def insert_many(self, imported: Sequence[ImportedMemory]) -> list[int]:
        """Write memories out of a file and return their ids: those they had, where no memory here ever had them.

        Which memories they gave way to is not known before all of the file are there: `link` says so.
        """
        pairs = [(one.entry, one.record.value) for one in imported]
        ids = self._insert(pairs)
        named = zip(ids, pairs, strict=True)
        lines = (
            (one, entry.cleared.value.sensitivity, _fields(entry) | origin(state.origin))
            for one, (entry, state) in named
        )
        self._journal("import", *lines)
        return ids

    def update(self, old: Memory, entry: Entry, action: str, *, revive: bool = True, keep: bool = True) -> int | None:
        """Write the given fields and what follows from them over `old`; vectors change with the content only.

        A text that changes is first kept as a hidden memory, whose id is returned. Without `keep` it is not: for what
        takes a text away, and for what keeps it otherwise. Nor is a text that is in quarantine or withdrawn, since no
        undo may bring it back. With `revive` a memory that was hidden, merged or superseded is in sight again. Raises
        `NotFound` when `old` is not a memory of this namespace.
        """
        stored = self._sensitivity(old.id)
        values = self._columns(entry, entry.given)
        changes = _changed(old, entry, values)
        kept: int | None = None
        if keep and entry.content_hash != old.content_hash and not stored.startswith(AWAY):
            kept = self.archive(old, values.get("sensitivity"))
            changes |= {KEPT_AS: kept}
        if revive:
            values |= {"deleted_at": None, "superseded_by": None, "merged_into": None}
        self._connection.execute(update(memory).where(self._is(old.id)).values(**values))
        if "speaker" in entry.given and entry.cleared.value.speaker != old.speaker:
            child_tables.add_speakers(self._connection, self._namespace_id, [entry])
            child_tables.prune_speaker(self._connection, self._namespace_id, old.speaker)
        child_tables.replace_labels(self._connection, old.id, entry)
        if moments.FIELD in entry.given:
            moments.replace(self._connection, old.id, moments.rows_of(old.id, entry))
        hidden = old.deleted_at is not None or old.merged_into is not None
        level = values.get("sensitivity", self._stored(old.sensitivity))
        self._write_words(old.id, level, entry.words if revive or not hidden else frozenset())
        self._move(old, level)
        if entry.content_hash != old.content_hash or (revive and hidden):
            chunks = entry.chunks if self._embeds else None
            self._enqueue(old.id, embedded=chunks is not None)
            child_tables.replace_chunks(self._connection, old.id, chunks or (), entry.content_hash)
        self._journal(action, (old.id, strictest(old.sensitivity, level), changes))
        return kept

    def archive(self, old: Memory, level: str | None = None) -> int:
        """Keep what `old` says now as a memory of its own, merged into it and out of sight; return its id.

        Where `old` is about to be of a stricter `level`, what is kept is so at once, and no line tells of it. What is
        away, in quarantine or withdrawn, is kept there. Raises `NotFound` when `old` is not a memory of this namespace.
        """
        before = self._sensitivity(old.id)
        away = next((prefix for prefix in AWAY if before.startswith(prefix)), "")
        own = before.removeprefix(away)
        kept_level = self._stored(strictest(own, level or own))
        (memory_id,) = self._claim_ids(memory, [None])
        merged = {
            "id": literal(memory_id),
            "key": null(),
            "merged_into": literal(old.id),
            "sensitivity": literal(away + kept_level),
        }
        self._copy(memory, memory.c.id == old.id, merged)
        for table in (label, moment):
            self._copy(table, table.c.memory_id == old.id, {"memory_id": literal(memory_id)})
        self._write_words(memory_id, kept_level, frozenset())
        self._count(kept_level, 1)
        self._journal("insert", (memory_id, kept_level, {"merged_into": old.id}))
        return memory_id

    def archived(self, memory_id: int) -> list[Memory]:
        """Return what was merged into the memory, oldest first."""
        return self._find(memory.c.merged_into == memory_id)

    def supersede(self, memory_id: int, by: int) -> None:
        """Mark a memory as replaced by another: no recall shows it, its history does."""
        self._replace(self._is(memory_id), by)

    def note_judgement(self, memory_id: int, judgement: Judgement, about: int | None) -> None:
        """Journal what a language model said of a memory's text, and which older memory that is about."""
        said = {"choice": str(judgement.choice), "reason": str(judgement.reason)}
        level = self._connection.execute(select(level_of(memory)).where(self._is(memory_id))).scalar()
        named = {} if about is None else {"about": about}
        self._journal("judge", (memory_id, level or Sensitivity.SECRET, said | named))

    def hide(self, memory_id: int, action: str = "delete") -> bool:
        """Delete the memory softly: its row stays, no index holds it. Say whether there was one in sight."""
        row = self._row(memory_id, shown())
        if row is None:
            return False
        self._connection.execute(update(memory).where(self._is(memory_id)).values(deleted_at=self._now))
        self._leave_indexes(memory_id, row.level)
        self._journal(action, (memory_id, row.level, {"soft": True}))
        return True

    def delete(self, memory_id: int, action: str = "delete") -> bool:
        """Remove the memory, what was merged into it and all their traces; say whether it was there."""
        if self._row(memory_id) is None:
            return False
        self._remove(memory_id, action)
        return True

    def _remove(self, memory_id: int, action: str) -> None:
        """Remove a memory that is there; what was merged into it goes with it at whatever level it is."""
        mine = memory.c.namespace_id == self._known_id
        parts = select(memory.c.id).where(mine, memory.c.merged_into == memory_id)
        for part in self._connection.execute(parts).scalars().all():
            self._remove(part, action)
        columns = (memory.c.speaker, memory.c.superseded_by, memory.c.deleted_at, level_of(memory))
        row = self._connection.execute(select(*columns).where(mine, memory.c.id == memory_id)).one()
        self._leave_indexes(memory_id, row.level)
        if action in _BY_RULE and row.superseded_by is not None and row.deleted_at is None:
            self._pass_facts(memory_id, row.superseded_by)
        self._connection.execute(delete(memory).where(mine, memory.c.id == memory_id))
        forget_texts(self._connection, memory_id)
        self._count(row.level, -1)
        replaced = (memory.c.namespace_id == self._known_id) & (memory.c.superseded_by == memory_id)
        self._replace(replaced, row.superseded_by)
        child_tables.prune_speaker(self._connection, self._namespace_id, row.speaker)
        self._journal(action, (memory_id, row.level, {}))

    def drop_old_withdrawals(self, days: int) -> list[int]:
        """Remove for good what was withdrawn more than so many days ago, if it is still hidden; return the ids."""
        gone: list[int] = []
        for number, undo in self.old_withdrawals(days):
            away = [one for one in taken_by(undo) if self._row(one, memory.c.deleted_at.is_not(None)) is not None]
            gone += [one for one in away if self.delete(one, "purge")]
            self.drop_withdrawal(number)
        return gone

    def page(self, after: int, limit: int) -> list[Memory]:
        """Return the next memories of the namespace in the order of their ids, whatever their state."""
        page = select(memory.c.id).where(self._here, memory.c.id > after).order_by(memory.c.id).limit(limit)
        return self._find(memory.c.id.in_(self._connection.execute(page).scalars().all()))

    def quarantine(self, memory_id: int, *, back: bool = False) -> None:
        """Put a memory where no read looks: hidden, and at a level of sensitivity that nobody can ask for.

        What is withdrawn stays so, unless it comes `back` from there.
        """
        withdrawn = memory.c.sensitivity.in_([WITHDRAWN + level for level in self._levels])
        row = self._row(memory_id, withdrawn if back else ~withdrawn)
        if row is not None:
            self.hide(memory_id)
            mine = update(memory).where(self._is(memory_id))
            self._connection.execute(mine.values(sensitivity=QUARANTINED + row.level))
            self._journal("quarantine", (memory_id, row.level, {}))

    def withdraw(self, memory_id: int, *, forgotten: bool = False) -> bool:
        """Hide a memory where only the undoing of its withdrawal looks; say whether there was one in sight.

        With `forgotten` it is one that was softly deleted before, and stays so.
        """
        deleted = memory.c.deleted_at.is_not(None) & of_levels(memory.c.sensitivity, self._levels)
        row = self._row(memory_id, deleted if forgotten else shown())
        if row is None:
            return False
        self._connection.execute(update(memory).where(self._is(memory_id)).values(sensitivity=WITHDRAWN + row.level))
        if forgotten:
            self._journal("withdraw", (memory_id, row.level, {"soft": True}))
        return forgotten or self.hide(memory_id, "withdraw")

    def forget_words(self, memory_ids: Collection[int], sessions: Collection[int]) -> None:
        """Let sessions know no words any more of what was withdrawn."""
        forget_words(self._connection, memory_ids, sessions)

    def request_purge(self) -> None:
        """Have the text index rewritten, so that nothing is left in it of what was overwritten."""
        self._dialect.mark_deleted_text(self._connection)

    def expired(self) -> list[int]:
        """Return what has passed its time, in the order of its ids."""
        query = select(memory.c.id).where(self._here, memory.c.expires_at <= self._now).order_by(memory.c.id)
        return list(self._connection.execute(query).scalars())

    def evictable(self, most: int, sparing: int) -> list[int]:
        """Return what is beyond `most` memories: first what is out of sight, then the least used, oldest, slightest.

        The memory to be spared is never among them. What was replaced goes before what replaced it, or it would be
        current again. Each level of sensitivity is counted by itself, so that none tells of another.
        """
        return [one for level in self._levels for one in self._evictable(level, most, sparing)]

    def _evictable(self, level: str, most: int, sparing: int) -> list[int]:
        own = (held.c.namespace_id == self._known_id) & (held.c.sensitivity == level)
        beyond = int(self._connection.execute(select(held.c.memories).where(own)).scalar() or 0) - most
        if beyond <= 0:
            return []
        of_level = of_levels(memory.c.sensitivity, [level], away=True)
        query = (
            select(memory.c.id)
            .outerjoin(usage, usage.c.memory_id == memory.c.id)
            .where(self._here, of_level, memory.c.id != sparing)
            .order_by(alive(self._now) & memory.c.superseded_by.is_(None))
            .order_by(func.coalesce(usage.c.accessed_count, 0))
            .order_by(memory.c.updated_at, memory.c.importance, memory.c.id)
            .limit(beyond)
        )
        return list(self._connection.execute(query).scalars())

    def find(self, keys: Iterable[str], hashes: Iterable[str]) -> list[Memory]:
        """Return the memories that have one of these keys or contents, whatever their state."""
        found: dict[int, Memory] = {}
        for column, values in ((memory.c.key, keys), (memory.c.content_hash, hashes)):
            for batch in in_batches(values):
                found |= {one.id: one for one in self._find(column.in_(batch))}
        return [found[one] for one in sorted(found)]

    def keys_with_prefixes(self, prefixes: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the living memories whose key begins with a prefix, by both; of several levels the strictest.

        Where one prefix begins another, a key is that of the longer one.
        """
        wanted = sorted(set(prefixes))
        view = View(namespaces=(self._namespace,), now=self._now, sensitivities=self._levels, superseded=True)
        seen = visible(self._connection, view)
        named = [memory.c.key.startswith(prefix, autoescape=True) for prefix in wanted]
        mine = or_(false(), *named) if len(named) <= _FEW_PREFIXES else memory.c.key.is_not(None)
        query = select(memory.c.key, memory.c.id).where(self._here, mine, seen).order_by(memory.c.id)
        found: dict[str, dict[str, int]] = {prefix: {} for prefix in wanted}
        for key, number in self._connection.execute(query):
            place = bisect_right(wanted, key)
            if place and key.startswith(wanted[place - 1]):
                found[wanted[place - 1]][key] = number
        return found

    def link(self, one: MemoryLink) -> bool:
        """Say which memory an imported one gave way to, now that all are there; say whether that can be.

        A memory gives way within its namespace, and never to itself, at whatever remove.
        """
        possible = True
        for name in ("superseded_by", "merged_into"):
            target = getattr(one, name)
            levels = self._leads(one.id, target, name) if target is not None else ()
            if levels:
                waiting = self._is(one.id) & (memory.c[name] == _LINKED_LATER)
                self._connection.execute(update(memory).where(waiting).values({name: target}))
                self._journal("update", (one.id, strictest(*levels), {name: target}))
            elif target is not None:
                possible = False
        return possible

    def refuse(self, field: str, kinds: Sequence[str], level: str = Sensitivity.PUBLIC) -> None:
        """Journal that the gate refused something of a level: the field and the kinds, never a value."""
        self._journal("refuse", (None, level, {"field": field, "kinds": list(kinds)}))

    @property
    def _here(self) -> ColumnElement[bool]:
        """Select what this transaction may find at all: all else does not exist for it."""
        return self._of(self._levels)

    def _of(self, levels: Sequence[str]) -> ColumnElement[bool]:
        let_in = of_levels(memory.c.sensitivity, levels, away=True)
        return (memory.c.namespace_id == self._known_id) & let_in

    def _is(self, memory_id: int) -> ColumnElement[bool]:
        return (memory.c.id == memory_id) & self._here

    def _find(self, condition: ColumnElement[bool], level: Sensitivity | None = None) -> list[Memory]:
        levels = self._levels if level is None else (self._stored(level),)
        if not self._known_id:
            return []
        found = mapping.load(self._connection, condition & self._of(levels), (*self._levels, *levels))
        return sorted(found, key=lambda one: one.id)

    def _strictest(self, condition: ColumnElement[bool], level: Sensitivity | None) -> Memory | None:
        """Find the oldest memory of a level, which is let in by its name, or else of the strictest that has one."""
        found = self._find(condition, level)
        level = strictest(*(one.sensitivity for one in found)) if found else None
        return next((one for one in found if one.sensitivity is level), None)

    def _sensitivity(self, memory_id: int) -> str:
        """Return a memory's level as it is stored, with what says that it is away; raise `NotFound` without one."""
        query = select(type_coerce(memory.c.sensitivity, Text)).where(self._is(memory_id))
        found = self._connection.execute(query).scalar()
        if found is None:
            raise NotFound(f"Memory {memory_id} not found.")
        return str(found)

    def _row(self, memory_id: int, *conditions: ColumnElement[bool]) -> Any:
        """Return what a memory leaves behind in other tables, where it meets the conditions."""
        columns = (memory.c.speaker, memory.c.superseded_by, level_of(memory))
        return self._connection.execute(select(*columns).where(self._is(memory_id), *conditions)).first()

    def _insert(self, pairs: Sequence[tuple[Entry, MemoryState]], merged_into: int | None = _LINKED_LATER) -> list[int]:
        """Write new memories with all that hangs on them, and queue those in sight; the journal is the caller's."""
        connection, number = self._connection, self._namespace_id
        ids = self._claim_ids(memory, [state.id for _, state in pairs])
        new = [(one, entry, state) for one, (entry, state) in zip(ids, pairs, strict=True)]
        rows = ({"id": one} | _row(self._columns(entry), entry, state, merged_into) for one, entry, state in new)
        insert_all(connection, memory, (row | {"namespace_id": number} for row in rows))
        levels = {one: self._stored(entry.cleared.value.sensitivity) for one, entry, _ in new}
        for level, count_of_level in Counter(levels.values()).items():
            self._count(level, count_of_level)
        child_tables.add_speakers(connection, number, (entry for _, entry, _ in new))
        insert_all(connection, label, (row for one, entry, _ in new for row in child_tables.labels_of(one, entry)))
        insert_all(connection, moment, (row for one, entry, _ in new for row in moments.rows_of(one, entry)))
        decided = ((one, state.standing) for one, _, state in new if state.standing)
        insert_all(connection, label, (child_tables.standing_of(one, standing) for one, standing in decided))
        counts = [{"memory_id": one} | {name: getattr(state, name) for name in _COUNTED} for one, _, state in new]
        insert_all(connection, usage, (row for row in counts if any(row[name] for name in _COUNTED)))
        words = {one: (levels[one], frozenset() if state.hidden else entry.words) for one, entry, state in new}
        child_tables.write_words(connection, number, words)
        found = {one: entry.chunks if self._embeds else None for one, entry, state in new if not state.hidden}
        hashes = {one: entry.content_hash for one, entry, _ in new}
        model = store_metadata.model_of(store_metadata.read(connection))
        made = (child_tables.chunk_rows(one, found[one] or (), hashes[one], model) for one in found)
        insert_all(connection, vector, chain.from_iterable(made))
        queued = ({"memory_id": one, "embedded": found[one] is not None} for one in found)
        insert_all(connection, outbox, (row | {"namespace_id": number, "chunks": 0} for row in queued))
        self.changed = self.changed or bool(found)
        return ids

    def _columns(self, entry: Entry, given: Collection[str] | None = None) -> dict[str, Any]:
        """Return the columns that an entry fills; what is not public is stored as the writer's own."""
        values = mapping.columns_of(entry, given)
        return values | ({"sensitivity": self._stored(values["sensitivity"])} if "sensitivity" in values else {})

    def _copy(self, table: Table, mine: ColumnElement[bool], changed: Mapping[str, Any]) -> None:
        """Write the rows that meet `mine` once more, with some columns `changed`."""
        row = select(*(changed.get(one.name, one) for one in table.c)).where(mine)
        self._connection.execute(insert(table).from_select([one.name for one in table.c], row))

    def _leave_indexes(self, memory_id: int, level: str) -> None:
        """Take a memory out of the vocabulary, and let both indexes forget what they hold of it."""
        self._write_words(memory_id, level, frozenset())
        self._enqueue(memory_id, embedded=True)
        self._dialect.mark_deleted_text(self._connection)

    def _replace(self, condition: ColumnElement[bool], by: int | None) -> None:
        """Let memories be replaced by another one, or be current again; who may not see either sees no line of it."""
        replaced = self._connection.execute(select(memory.c.id, level_of(memory)).where(condition)).all()
        if replaced:
            found = self._connection.execute(select(level_of(memory)).where(memory.c.id == by)).scalar()
            self._connection.execute(update(memory).where(condition).values(superseded_by=by))
            lines = ((row.id, strictest(row.level, found or row.level)) for row in replaced)
            self._journal("update", *((one, level, {"superseded_by": by}) for one, level in lines))

    def _move(self, old: Memory, level: str) -> None:
        """Count a memory at its new level; where that is stricter, what was merged into it goes along."""
        before = self._stored(old.sensitivity)
        if level == before:
            return
        self._count(before, -1)
        self._count(level, 1)
        for part in self.archived(old.id):
            held = self._stored(part.sensitivity)
            if strictest(held, level) != held:
                self._count(held, -1)
                self._count(level, 1)
                for away in ("", *AWAY):  # what is in quarantine or withdrawn stays there
                    of_part = (memory.c.id == part.id) & (memory.c.sensitivity == away + held)
                    self._connection.execute(update(memory).where(of_part).values(sensitivity=away + level))
                self._journal("update", (part.id, level, {"fields": ["sensitivity"]}))

    def _leads(self, memory_id: int, to: int, name: str) -> Sequence[str]:
        """Return the levels of both memories, if this transaction finds them and no way on leads back to the first."""
        both = select(level_of(memory)).where(self._here, memory.c.id.in_({memory_id, to}))
        levels = self._connection.execute(both).scalars().all()
        if len(levels) != 2 or (name == "merged_into" and levels[0] != levels[1]):
            return ()
        at: int | None = to
        while at and at != memory_id:
            at = self._connection.execute(select(memory.c[name]).where(memory.c.id == at)).scalar()
        return levels if at != memory_id else ()

    def _count(self, level: str, change: int) -> None:
        child_tables.count_memories(self._connection, self._namespace_id, level, change)

    def _write_words(self, memory_id: int, level: str, words: frozenset[str]) -> None:
        child_tables.write_words(self._connection, self._namespace_id, {memory_id: (level, words)})

    def _enqueue(self, memory_id: int, *, embedded: bool) -> None:
        """Let the vector index look at the memory again; it may hold as many vectors of it as SQL does now."""
        if embedded:
            child_tables.mark_embedded(self._connection, memory_id)
        held = count(self._connection, vector, vector.c.memory_id == memory_id)
        values = {"memory_id": memory_id, "namespace_id": self._namespace_id, "chunks": held, "embedded": embedded}
        self._connection.execute(insert(outbox).values(**values))
        self.changed = True


def _fields(entry: Entry) -> dict[str, Any]:
    return {"fields": sorted(entry.given)} if entry.given else {}


def _changed(old: Memory, entry: Entry, values: dict[str, Any]) -> dict[str, Any]:
    """Return the names of the fields that now differ from what the memory said, but for headings that follow them."""
    lists = {name: getattr(entry.cleared.value, name) for name in entry.given if name in mapping.LISTS}
    new = {name: value for name, value in (values | lists).items() if name in entry.given | _FOLLOWING}
    fields = sorted(name for name, value in new.items() if value != getattr(old, name))
    both = {name: [getattr(old, name), new[name]] for name in fields if name in _JOURNALLED}
    return ({"fields": fields} if fields else {}) | both


def _row(columns: dict[str, Any], entry: Entry, state: MemoryState, merged_into: int | None) -> dict[str, Any]:
    """Return the columns of a new memory but for its ids; `merged_into` is what one says that was merged."""
    row = columns | {"created_at": state.created_at or entry.at, "deleted_at": state.deleted_at}
    row["superseded_by"] = None if state.superseded_by is None else _LINKED_LATER
    row["merged_into"] = None if state.merged_into is None else merged_into
    return row | ({"key": None} if state.merged_into else {})


def _request(namespace: str, actor: str, operation: str, request_id: str) -> str:
    """Return the id as that of this actor, place and operation: no other request can have been this one.

    What follows a line break in the id is what was asked under it, and makes the last characters.
    """
    key, _, asked = request_id.partition("\n")
    known = hashlib.sha256(json.dumps([namespace, actor, operation, key]).encode()).hexdigest()
    return known[:_OF_ID] + hashlib.sha256(asked.encode()).hexdigest()[_OF_ID:]


def previous_outcome(
    connection: Connection, namespaces: Iterable[str], actor: str, operation: str, request_id: str
) -> Outcome | None:
    """Return how this very request ended in one of these namespaces; None for an empty id.

    Raises `InvalidInput` where something else was asked under the same id.
    """
    if not request_id:
        return None
    mine = [_request(name, actor, operation, request_id) for name in namespaces]
    ids = request_outcome.c.request_id
    of_id = [ids.between(one[:_OF_ID], one[:_OF_ID] + "g") for one in mine]  # "g" comes after all hexadecimal digits
    row = connection.execute(select(request_outcome).where(or_(*of_id))).first()
    if row is not None and row.request_id not in mine:
        raise InvalidInput(
            "Idempotency-Key", "Invalid Idempotency-Key: Another request was sent with it; each one needs its own"
        )
    return None if row is None else Outcome(WriteStatus(row.status), row.memory_id, tuple(json.loads(row.notes)))
