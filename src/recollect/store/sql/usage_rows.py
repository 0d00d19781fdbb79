"""How often memories were used: counted in a table of its own, so that no reader waits for a writer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Executable, Integer, bindparam, select

from recollect.store.sql import mapping
from recollect.store.sql.column_types import UtcDateTime
from recollect.store.sql.database import Database
from recollect.store.sql.dialect import Dialect
from recollect.store.sql.expressions import any_of
from recollect.store.sql.tables import memory, usage


@dataclass(frozen=True, slots=True)
class UsageRows:
    """Counts uses of memories."""

    _database: Database

    def add(self, ids: Sequence[int], at: datetime, *, accessed: int = 0, recalled: int = 0) -> None:
        """Add so many uses to each memory; no writer is waited for, and one that is being deleted is left out."""
        values = {"ids": ids, "accessed": accessed, "recalled": recalled, "at": at}
        self._database.write_alone(_counting(self._database.dialect), values)


@lru_cache
def _counting(dialect: Dialect) -> Executable:
    """Return the statement that adds `accessed` and `recalled` to what is counted of the memories `ids`."""
    numbers = (bindparam(name, type_=Integer) for name in ("accessed", "recalled"))
    known = (
        select(memory.c.id, *numbers, bindparam("at", type_=UtcDateTime))
        .where(any_of(memory.c.id, mapping.IDS))
        .order_by(memory.c.id)
    )
    names = ["memory_id", "accessed_count", "recalled_count", "last_accessed_at"]
    held = known.with_for_update(read=True, key_share=True, skip_locked=True)
    counted = dialect.insert(usage).from_select(names, held)
    more = {name: usage.c[name] + counted.excluded[name] for name in names[1:3]}
    latest = {"last_accessed_at": counted.excluded["last_accessed_at"]}
    statement: Executable = counted.on_conflict_do_update(index_elements=["memory_id"], set_=more | latest)
    return statement
