"""The memories that a write transaction finds: by id, key and content, with their parts, in any state."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Text, false, or_, select, type_coerce

from recollect.domain.enums import Sensitivity, strictest
from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.errors import NotFound
from recollect.store.sql import mapping
from recollect.store.sql.statements import in_batches
from recollect.store.sql.tables import level_of, memory
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import of_levels, shown, visible

_FEW_PREFIXES = 20  # above that reading all keys of a namespace is quicker than asking for each


@dataclass(frozen=True, slots=True)
class Matches:
    """The memories that a draft may be written over: those with the id that it names, its key and its content."""

    named: Memory | None
    keyed: Memory | None
    same: Memory | None


@dataclass(frozen=True, slots=True)
class MemoryLookup:
    """Finds memories in one open write transaction."""

    _transaction: Transaction

    def matches(self, memory_id: int | None, key: str | None, content_hash: str, level: Sensitivity | None) -> Matches:
        """Find the memories with this id, and with this key and this content as `by_key` and `by_hash` find them."""
        return Matches(
            named=self.by_id(memory_id) if memory_id else None,
            keyed=self.by_key(key, level) if key else None,
            same=self.by_hash(content_hash, level),
        )

    def by_id(self, memory_id: int) -> Memory | None:
        """Find the memory with this id, whatever its state."""
        return next(iter(self.matching(memory.c.id == memory_id)), None)

    def by_key(self, key: str, level: Sensitivity | None = None) -> Memory | None:
        """Find the memory with this key, of this level or the strictest, whatever its state: it holds the key."""
        return self._oldest_of_strictest(memory.c.key == key, level)

    def by_hash(self, content_hash: str, level: Sensitivity | None = None) -> Memory | None:
        """Find the oldest memory with this content, of this level or the strictest, if not deleted or merged."""
        return self._oldest_of_strictest((memory.c.content_hash == content_hash) & shown(), level)

    def by_keys_or_hashes(self, keys: Iterable[str], hashes: Iterable[str]) -> list[Memory]:
        """Return the memories that have one of these keys or contents, whatever their state."""
        found: dict[int, Memory] = {}
        for column, values in ((memory.c.key, keys), (memory.c.content_hash, hashes)):
            for batch in in_batches(values):
                found |= {each.id: each for each in self.matching(column.in_(batch))}
        return [found[number] for number in sorted(found)]

    def archived(self, memory_id: int) -> list[Memory]:
        """Return what was merged into the memory, oldest first."""
        return self.matching(memory.c.merged_into == memory_id)

    def page(self, after: int, limit: int) -> list[Memory]:
        """Return the next memories of the namespace in the order of their ids, whatever their state."""
        here = self._transaction.here()
        page = select(memory.c.id).where(here, memory.c.id > after).order_by(memory.c.id).limit(limit)
        return self.matching(memory.c.id.in_(self._transaction.execute(page).scalars().all()))

    def keys_with_prefixes(self, prefixes: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the living memories whose key begins with a prefix, by both; of several levels the strictest.

        Where one prefix begins another, a key is that of the longer one.
        """
        wanted = sorted(set(prefixes))
        own = self._transaction
        view = View(namespaces=(own.namespace,), now=own.now, sensitivities=own.levels, superseded=True)
        seen = visible(own.connection, view)
        named = [memory.c.key.startswith(prefix, autoescape=True) for prefix in wanted]
        mine = or_(false(), *named) if len(named) <= _FEW_PREFIXES else memory.c.key.is_not(None)
        query = select(memory.c.key, memory.c.id).where(own.here(), mine, seen).order_by(memory.c.id)
        found: dict[str, dict[str, int]] = {prefix: {} for prefix in wanted}
        for key, number in map(tuple, own.execute(query)):
            place = bisect_right(wanted, key)
            if place and key.startswith(wanted[place - 1]):
                found[wanted[place - 1]][key] = number
        return found

    def matching(self, condition: ColumnElement[bool], level: Sensitivity | None = None) -> list[Memory]:
        """Return the memories that meet a condition, by their ids; a `level` is let in by its name."""
        own = self._transaction
        levels = own.levels if level is None else (own.stored(level),)
        if not own.known_id:
            return []
        here = (memory.c.namespace_id == own.known_id) & of_levels(memory.c.sensitivity, levels, away=True)
        found = mapping.load(own.connection, condition & here, (*own.levels, *levels))
        return sorted(found, key=lambda each: each.id)

    def in_state(self, condition: ColumnElement[bool], away: str = "") -> list[Memory]:
        """Return the memories that meet a condition and are `away` in this way, or in sight of their levels."""
        own = self._transaction
        let_in = memory.c.sensitivity.in_([away + level for level in own.levels])
        here = (memory.c.namespace_id == own.known_id) & let_in
        found = mapping.load(own.connection, condition & here, own.levels) if own.known_id else []
        return sorted(found, key=lambda each: each.id)

    def stored_level(self, memory_id: int) -> str:
        """Return a memory's level as it is stored, with what says that it is away; raise `NotFound` without one."""
        found = self.row(memory_id)
        if found is None:
            raise NotFound(f"Memory {memory_id} not found.")
        return str(found.stored)

    def row(self, memory_id: int, *conditions: ColumnElement[bool]) -> Any:
        """Return the levels of a memory that meets the conditions, and what of it other tables know; None without."""
        stored = type_coerce(memory.c.sensitivity, Text).label("stored")
        columns = (stored, level_of(memory), memory.c.speaker, memory.c.superseded_by)
        here = (memory.c.id == memory_id) & self._transaction.here()
        return self._transaction.execute(select(*columns).where(here, *conditions)).first()

    def _oldest_of_strictest(self, condition: ColumnElement[bool], level: Sensitivity | None) -> Memory | None:
        """Return the oldest memory of a level, or else of the strictest level that has a memory; None without any."""
        found = self.matching(condition, level)
        level = strictest(*(each.sensitivity for each in found)) if found else None
        return next((each for each in found if each.sensitivity is level), None)
