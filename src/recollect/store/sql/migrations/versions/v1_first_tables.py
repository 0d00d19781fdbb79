"""Every table, index and trigger, as `tables.py` and the database's dialect declare them."""

from __future__ import annotations

from alembic import context, op

from recollect.store.sql import tables
from recollect.store.sql.database import Database

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make them all; a table that is there already is an error."""
    database: Database = context.config.attributes["database"]
    tables.metadata.create_all(op.get_bind(), checkfirst=False)
    for statement in database.dialect.schema:
        op.execute(statement)
