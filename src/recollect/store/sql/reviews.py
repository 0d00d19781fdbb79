"""What waits for a person's decision, what was decided of sources, and what was withdrawn."""

from __future__ import annotations

from sqlalchemy import select

from recollect.store.sql.database import Database
from recollect.store.sql.tables import namespace, source_rule

_RULE = select(source_rule.c.approved).join(namespace, namespace.c.id == source_rule.c.namespace_id)


class SqlReviews:
    """The part of `Records` that reads what waits for a decision."""

    _database: Database

    def source_rule(self, name: str, source: str) -> bool | None:
        """Return whether everything from a source is approved in a namespace; None where nobody has decided."""
        query = _RULE.where(namespace.c.name == name, source_rule.c.source == source)
        with self._database.reading() as connection:
            return connection.execute(query).scalar()
