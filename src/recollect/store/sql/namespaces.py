"""The namespaces of the store: which exist, which a team has, and which holds a memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import ColumnElement, func, select

from recollect.domain.enums import Sensitivity
from recollect.domain.search import View
from recollect.store.sql.database import Database
from recollect.store.sql.tables import memory, namespace
from recollect.store.sql.visibility import inside, namespace_ids, of_levels, visible

N = TypeVar("N", bound=str)


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Reads namespaces by their names."""

    _database: Database

    def existing(self, namespaces: Sequence[N]) -> tuple[N, ...]:
        """Return those of `namespaces` in which something was ever stored."""
        with self._database.reading() as connection:
            found = namespace_ids(connection, namespaces)
        return tuple(name for name in namespaces if name in found)

    def of_team(self, team: str) -> tuple[str, ...]:
        """Return the namespaces of all projects of a team in which something was ever stored, by their names."""
        name = namespace.c.name
        mine = select(name).where(name.startswith(f"project:{team}/", autoescape=True)).order_by(name)
        with self._database.reading() as connection:
            return tuple(connection.execute(mine).scalars())

    def of_memory(
        self, memory_id: int, namespaces: Sequence[str], levels: Sequence[str] = (Sensitivity.PUBLIC,)
    ) -> str | None:
        """Return the one of `namespaces` that holds the memory, whatever its state, if it is of one of `levels`."""
        found = home_of(self._database, memory_id, of_levels(memory.c.sensitivity, levels, away=True))
        return found if found in namespaces else None

    def counts(self, view: View) -> Counter[str]:
        """Count the memories that `view` may see in each of its namespaces, in one query."""
        name = namespace.c.name
        each = select(name, func.count()).join(memory, memory.c.namespace_id == namespace.c.id).group_by(name)
        with self._database.reading() as connection:
            here = each.where(visible(connection, view), inside(connection, view.namespaces))
            return Counter(dict(map(tuple, connection.execute(here))))


def home_of(database: Database, memory_id: int, *conditions: ColumnElement[bool]) -> str | None:
    """Return the namespace of a memory that meets the conditions."""
    query = select(namespace.c.name).join(memory, memory.c.namespace_id == namespace.c.id)
    rows = database.rows(query.where(memory.c.id == memory_id, *conditions))
    return rows[0].name if rows else None
