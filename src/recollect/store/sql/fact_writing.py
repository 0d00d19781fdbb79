"""The facts that a write transaction stores, ends where others replace them, and takes away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, insert, select, update

from recollect.domain.enums import ObservationType, Sensitivity, strictest
from recollect.domain.results import Fact
from recollect.domain.transfer import FactRecord
from recollect.errors import Conflict
from recollect.gate import Cleared
from recollect.store.entries import FactEntry
from recollect.store.sql import mapping
from recollect.store.sql.column_types import QUARANTINED, WITHDRAWN
from recollect.store.sql.facts import PARTS, compared, holds_after, known, same_parts
from recollect.store.sql.tables import fact, level_of, memory
from recollect.store.sql.transaction import Transaction, origin

_FROM_REQUEST = PARTS | {"confidence", "valid_to"}
_FROM_ENTRY = ("memory_id", "valid_from", "sensitivity", "author")


@dataclass(frozen=True, slots=True)
class FactWriting:
    """Finds and writes facts in one open transaction."""

    _transaction: Transaction

    def about(self, subject: str, predicate: str, at: datetime) -> list[Fact]:
        """Return the facts of this subject and predicate that hold `at` a time or later, letter case aside."""
        same = same_parts({"subject": subject, "predicate": predicate})
        return self._find_facts(*same, holds_after(at), known(self._transaction.levels, away=False))

    def page(self, after: int, limit: int) -> list[Fact]:
        """Return the next facts of the namespace in the order of their ids, whatever their state."""
        return self._find_facts(fact.c.id > after, known(self._transaction.levels), limit=limit)

    def insert(self, entry: FactEntry) -> int:
        """Write a new fact and return its id."""
        fact_id = self._insert_row(entry, None, entry.at, entry.at)
        self._transaction.journal("insert", (entry.memory_id, entry.sensitivity, {"fact": fact_id}))
        return fact_id

    def insert_imported(self, entry: FactEntry, record: Cleared[FactRecord]) -> bool:
        """Write a fact with the id and the times it had; say whether it, or that it holds no more, was new.

        The same triple is the same fact where it holds from the same time on, or where the file has no such time. One
        that was said with less authority is another fact, and one that was said with more does not end.
        """
        own = self._transaction
        had = record.value
        begins = fact.c.valid_to.is_(None) if had.valid_from is None else fact.c.valid_from == had.valid_from
        mine = known(own.levels, away=False) & (fact.c.sensitivity == own.stored(entry.sensitivity))
        alike, rank = self._find_facts(*same_parts(had.model_dump(include=PARTS)), begins, mine), entry.stamp.authority
        old = next((one for one in alike if one.stamp.authority >= rank), None)
        if old is None:
            fact_id = self._insert_row(entry, had.id, had.created_at or entry.at, had.updated_at or entry.at)
            claimed = {"claimed_author": had.author} if had.author not in (None, entry.author) else {}
            said = {"fact": fact_id} | claimed | origin(had.origin)
            own.journal("import", (entry.memory_id, entry.sensitivity, said))
            return True
        ended = had.valid_to is not None and old.valid_to is None and old.stamp.authority is rank
        if ended:
            self._change(old, valid_to=had.valid_to, updated_at=own.now)
            own.journal("update", (old.memory_id, old.sensitivity, {"fact": old.id} | origin(had.origin)))
        return ended

    def confirm(self, old: Fact, confidence: float) -> None:
        """Note that a fact was stated again."""
        self._change(old, confidence=confidence, updated_at=self._transaction.now)
        self._transaction.journal("refresh", (old.memory_id, old.sensitivity, {"fact": old.id}))

    def end(self, old: Fact, at: datetime, by: int, level: Sensitivity) -> None:
        """Let a fact hold no longer than until `at`, because another, of this level, replaces it."""
        self._change(old, valid_to=at, updated_at=self._transaction.now)
        self._transaction.journal(
            "update", (old.memory_id, strictest(old.sensitivity, level), {"fact": old.id, "replaced_by": by})
        )

    def of_memories(self, ids: Iterable[int]) -> list[Fact]:
        """Return the facts that these memories state."""
        return self._find_facts(fact.c.memory_id.in_(list(ids)), known(self._transaction.levels))

    def ended_by(self, gone: Fact) -> list[Fact]:
        """Return the facts that a fact ended: they end where it begins, and were changed when it was stored or later.

        An end that somebody stated is older than that.
        """
        same = same_parts({"subject": gone.subject, "predicate": gone.predicate})
        ended = (fact.c.valid_to == gone.valid_from) & (fact.c.updated_at >= gone.created_at) & (fact.c.id != gone.id)
        return self._find_facts(*same, ended, known(self._transaction.levels))

    def set_end(self, fact_id: int, at: datetime | None) -> None:
        """Let a fact hold until another time, None for without end, because of a withdrawal or its undoing."""
        own = self._transaction
        for old in self._find_facts(fact.c.id == fact_id, known(own.levels)):
            self._change(old, valid_to=at, updated_at=own.now)
            own.journal("withdraw", (old.memory_id, old.sensitivity, {"fact": old.id}))

    def rewrite(self, old: Fact, parts: Mapping[str, str]) -> None:
        """Write other words in the place of a fact's own, and what they are compared by."""
        self._change(old, **parts, **compared(parts))
        self._transaction.journal("redact", (old.memory_id, old.sensitivity, {"fact": old.id, "fields": sorted(parts)}))

    def from_origin(self, source: str | None, author: str | None, times: Sequence[datetime | None]) -> list[Fact]:
        """Return the facts of no memory that an author stated, or that were stated in a time, or from a source.

        Of a `source` it is those of any memory whose address holds it; the caller checks that.
        """
        since, until = times
        asked: list[ColumnElement[bool]] = [fact.c.memory_id.is_(None)] if source is None else []
        asked += [fact.c.came_from.contains(source, autoescape=True)] if source is not None else []
        asked += [fact.c.author == author] if author is not None else []
        asked += [fact.c.created_at >= since] if since else []
        asked += [fact.c.created_at <= until] if until else []
        return self._find_facts(*asked, known(self._transaction.levels, away=False))

    def withdraw(self, old: Fact, *, back: bool = False) -> None:
        """Put a fact where only the undoing of its withdrawal looks, or bring it back from there."""
        self._change(old, sensitivity=("" if back else WITHDRAWN) + self._transaction.stored(old.sensitivity))
        self._transaction.journal("restore" if back else "withdraw", (old.memory_id, old.sensitivity, {"fact": old.id}))

    def by_ids(self, ids: Iterable[int]) -> list[Fact]:
        """Return these facts, whatever their state."""
        return self._find_facts(fact.c.id.in_(list(ids)), known(self._transaction.levels))

    def quarantine(self, old: Fact) -> None:
        """Put a fact where no read looks."""
        self._change(old, sensitivity=QUARANTINED + self._transaction.stored(old.sensitivity))
        self._transaction.journal("quarantine", (old.memory_id, old.sensitivity, {"fact": old.id}))

    def delete(self, fact_id: int) -> bool:
        """Remove a fact for good; say whether it was there. Raises `Conflict` for a fact that a legal hold keeps."""
        own = self._transaction
        old = next(iter(self._find_facts(fact.c.id == fact_id, known(own.levels))), None)
        if old is None:
            return False
        if (hold := own.holds.keeping(old.author, own.stored(old.sensitivity))) is not None:
            raise Conflict(f"Fact {fact_id} stays as it is: {hold.called_by(own.actor)} keeps it.")
        own.execute(fact.delete().where(fact.c.id == fact_id))
        own.journal("delete", (None, old.sensitivity, {"fact": fact_id}))
        return True

    def pass_to_summary(self, memory_id: int, to: int) -> None:
        """Let the facts of a memory belong to the summary that replaced it; another memory does not say them."""
        own = self._transaction
        summary = select(level_of(memory)).where(
            memory.c.id == to, memory.c.type == str(ObservationType.COMPRESSED_SUMMARY)
        )
        level = own.execute(summary).scalar()
        ids = select(fact.c.id, level_of(fact)).where(fact.c.memory_id == memory_id)
        found = own.execute(ids).all() if level is not None else []
        if level is not None and found:
            own.execute(update(fact).where(fact.c.memory_id == memory_id).values(memory_id=to))
            lines = ((to, strictest(one.level, level), {"fact": one.id, "of": memory_id}) for one in found)
            own.journal("update", *lines)

    def _find_facts(self, *conditions: ColumnElement[bool], limit: int | None = None) -> list[Fact]:
        """Return the facts of the namespace that meet the conditions, in the order of their ids."""
        query = mapping.FACTS.where(fact.c.namespace_id == self._transaction.known_id, *conditions)
        return mapping.facts(self._transaction.connection, query.order_by(fact.c.id).limit(limit))

    def _insert_row(self, entry: FactEntry, wanted: int | None, created_at: datetime, updated_at: datetime) -> int:
        """Write a fact and return its id: the `wanted` id where it is free, else a new one."""
        own = self._transaction
        (fact_id,) = own.claim_ids(fact, [wanted])
        asked = entry.cleared.value
        values = asked.model_dump(include=_FROM_REQUEST) | {name: getattr(entry, name) for name in _FROM_ENTRY}
        values |= {"id": fact_id, "namespace_id": own.namespace_id}
        values |= {"said_by": entry.stamp.said_by, "came_from": entry.stamp.came_from or None}
        values |= {
            "created_at": created_at,
            "updated_at": updated_at,
            "sensitivity": own.stored(entry.sensitivity),
        }
        own.execute(insert(fact).values(**values, **compared(asked.model_dump(include=PARTS))))
        return fact_id

    def _change(self, old: Fact, **values: Any) -> None:
        """Write columns of a fact anew."""
        self._transaction.execute(update(fact).where(fact.c.id == old.id).values(**values))
