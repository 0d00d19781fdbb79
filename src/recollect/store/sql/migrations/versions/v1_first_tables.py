"""Every table, index and trigger of the first release, as `tables.py` and the database's dialect declare them.

What later revisions add is left to them.
"""

from __future__ import annotations

from alembic import context, op

from recollect.store.sql import tables
from recollect.store.sql.database import Database

revision = "1"
down_revision = None

_LATER = (
    *("consolidation", "observation", "session"),
    *("source_rule", "withdrawal"),
    "moment",
    *("account", "team", "membership", "team_project", "project_membership", "token"),
)


def upgrade() -> None:
    """Make them all; a table that is there already is an error."""
    database: Database = context.config.attributes["database"]
    first = [one for one in tables.metadata.sorted_tables if one.name not in _LATER]
    tables.metadata.create_all(op.get_bind(), first, checkfirst=False)
    for statement in database.dialect.schema:
        op.execute(statement)
