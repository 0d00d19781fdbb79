"""The function that keeps PostgreSQL's text index: a long text changes without comparing its words with each other."""

from __future__ import annotations

from alembic import context, op

from recollect.store.sql.database import Database

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Put today's functions in the place of those of an older database."""
    database: Database = context.config.attributes["database"]
    for statement in database.dialect.functions:
        op.execute(statement)
