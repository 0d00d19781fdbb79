"""By which words the moments of memories are looked up: a row for each, derived from the label that holds its text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Text, bindparam, delete, func, or_, select

from recollect.domain.enums import RULES
from recollect.domain.moments import Kind, Led, parse_moment
from recollect.domain.origin import TOLD
from recollect.domain.search import View
from recollect.store.entries import Entry
from recollect.store.sql.database import Database
from recollect.store.sql.expressions import Listed, any_of, unindexed
from recollect.store.sql.statements import insert_all
from recollect.store.sql.tables import label, memory, moment
from recollect.store.sql.visibility import run_visible

FIELD: Final = "when"
"""The field of a memory that holds its moments, which is the kind of their labels."""
_MOST: Final = 500  # moments of one lookup that are compared: those of rules, and then of the newest memories

_is_rule = memory.c.fact_type.in_(sorted(RULES)) & or_(memory.c.said_by.is_(None), memory.c.said_by.in_(sorted(TOLD)))
_at = func.coalesce(memory.c.observed_at, memory.c.updated_at, type_=memory.c.updated_at.type)
_leads = bindparam("leads", type_=Listed())
_LED_TO = (
    select(moment.c.memory_id, moment.c.position, _is_rule.label("is_rule"), _at.label("at"), memory.c.updated_at)
    .join(memory, memory.c.id == moment.c.memory_id)
    .where(
        moment.c.kind == bindparam("kind", type_=Text),
        any_of(moment.c.lead, _leads),
        any_of(unindexed(moment.c.second), _leads),
    )
    .order_by(_is_rule.desc(), _at.desc(), moment.c.memory_id.desc())
    .limit(_MOST)
)
_TEXTS = select(label.c.memory_id, label.c.position, label.c.value).where(
    label.c.kind == FIELD, any_of(label.c.memory_id, bindparam("ids", type_=Listed()))
)


@dataclass(frozen=True, slots=True)
class Moments:
    """Looks moments up."""

    _database: Database

    def find(self, kind: Kind, leads: Collection[str], view: View) -> Sequence[Led]:
        """Return the moments of a kind whose words are among `leads`, of memories that `view` may see.

        Where there are more than an agent could ever be reminded of at once, those of rules come first, then those of
        the newest memories.
        """
        with self._database.reading() as connection:
            rows = run_visible(connection, _LED_TO, view, kind=str(kind), leads=list(leads))
            return [Led(row.memory_id, row.position, row.is_rule, row.at, row.updated_at) for row in rows]

    def texts(self, places: Iterable[Led]) -> dict[tuple[int, int], str]:
        """Return the text of each of these moments by its memory and its place there."""
        with self._database.reading() as connection:
            rows = connection.execute(_TEXTS, {"ids": list({one.memory_id for one in places})})
            return {(row.memory_id, row.position): row.value for row in rows}

    def rebuild(self) -> None:
        """Derive the rows of all moments again from their labels."""
        with self._database.exclusive() as connection:
            connection.execute(delete(moment))
            texts = select(label.c.memory_id, label.c.position, label.c.value).where(label.c.kind == FIELD)
            rows = connection.execute(texts).all()
            insert_all(connection, moment, (_moment_row(*row) for row in rows))


def rows_of(memory_id: int, entry: Entry) -> Iterator[dict[str, Any]]:
    """Yield the rows of a draft's moments."""
    yield from (_moment_row(memory_id, position, text) for position, text in enumerate(entry.cleared.value.when))


def replace(connection: Connection, memory_id: int, rows: Iterable[dict[str, Any]]) -> None:
    """Put these rows in the place of those that a memory had."""
    connection.execute(delete(moment).where(moment.c.memory_id == memory_id))
    insert_all(connection, moment, rows)


def _moment_row(memory_id: int, position: int, text: str) -> dict[str, Any]:
    """Return the row of a moment, with the words by which it is found."""
    found = parse_moment(text)
    lead, second = found.leads
    return {"memory_id": memory_id, "position": position, "kind": str(found.kind), "lead": lead, "second": second}
