"""Where each memory came from, what waits for a decision, and what was withdrawn.

What is stored already has no origin; its way in and its trust tell who said it.
"""

from __future__ import annotations

from alembic import op

from recollect.store.sql.migrations import add_columns
from recollect.store.sql.tables import memory, metadata, source_rule, withdrawal

revision = "6"
down_revision = "5"


def upgrade() -> None:
    """Add the columns of the origin, and the tables of decisions and withdrawals."""
    add_columns(memory, "said_by", "came_from", "review")
    connection = op.get_bind()
    metadata.create_all(connection, tables=[source_rule, withdrawal])
    for index in memory.indexes:
        if index.name == "ix_memory_review":
            index.create(connection, checkfirst=True)
