"""The index that pages and counts of many memories are read from, in a database whose entries are long enough."""

from __future__ import annotations

from alembic import context, op

from recollect.store.sql.database import Database

revision = "7"
down_revision = "6"


def upgrade() -> None:
    """Make it, unless the first revision has."""
    database: Database = context.config.attributes["database"]
    for statement in database.dialect.covering:
        op.execute(statement)
