"""Every table, index and trigger, as `tables.py` and the database's dialect declare them.

While no version is released there is this one revision, and it follows the declarations. With the first release it is
written out here, so that later revisions begin at what that release had.
"""

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
