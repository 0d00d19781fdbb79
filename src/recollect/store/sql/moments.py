"""By which words the moments of memories are looked up: a row for each, derived from the label that holds its text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Text, bindparam, delete, select

from recollect.domain.moments import Kind, read
from recollect.domain.search import View
from recollect.store.entries import Entry
from recollect.store.sql.database import Database
from recollect.store.sql.expressions import Listed, any_of, unindexed
from recollect.store.sql.statements import insert_all
from recollect.store.sql.tables import label, memory, moment
from recollect.store.sql.visibility import run_visible

FIELD: Final = "when"
"""The field of a memory that holds its moments, which is the kind of their labels."""
_MOST: Final = 5_000  # moments of one lookup that are compared: those of the newest memories

_text = (label.c.memory_id == moment.c.memory_id) & (label.c.kind == FIELD) & (label.c.position == moment.c.position)
_leads = bindparam("leads", type_=Listed())
_LED_TO = (
    select(moment.c.memory_id, label.c.value)
    .join(memory, memory.c.id == moment.c.memory_id)
    .join(label, _text)
    .where(
        moment.c.kind == bindparam("kind", type_=Text),
        any_of(moment.c.lead, _leads),
        any_of(unindexed(moment.c.second), _leads),
    )
    .order_by(moment.c.memory_id.desc())
    .limit(_MOST)
)


class SqlMoments:
    """The part of `Records` that looks moments up."""

    _database: Database

    def moments(self, kind: Kind, leads: Collection[str], view: View) -> Sequence[tuple[int, str]]:
        """Return the moments of a kind whose words are among `leads`, of memories that `view` may see: id and text."""
        with self._database.reading() as connection:
            found = run_visible(connection, _LED_TO, view, kind=str(kind), leads=list(leads))
            return [(row.memory_id, row.value) for row in found]

    def rebuild_moments(self) -> None:
        """Derive the rows of all moments again from their labels."""
        with self._database.exclusive() as connection:
            connection.execute(delete(moment))
            texts = select(label.c.memory_id, label.c.position, label.c.value).where(label.c.kind == FIELD)
            rows = connection.execute(texts).all()
            insert_all(connection, moment, (_row(*row) for row in rows))


def rows_of(memory_id: int, entry: Entry) -> Iterator[dict[str, Any]]:
    """Yield the rows of a draft's moments."""
    yield from (_row(memory_id, position, text) for position, text in enumerate(entry.cleared.value.when))


def replace(connection: Connection, memory_id: int, rows: Iterable[dict[str, Any]]) -> None:
    """Put these rows in the place of those that a memory had."""
    connection.execute(delete(moment).where(moment.c.memory_id == memory_id))
    insert_all(connection, moment, rows)


def _row(memory_id: int, position: int, text: str) -> dict[str, Any]:
    found = read(text)
    lead, second = found.leads
    return {"memory_id": memory_id, "position": position, "kind": str(found.kind), "lead": lead, "second": second}
