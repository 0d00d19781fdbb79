"""By which words the moments of memories are looked up. What is stored already has none."""

from __future__ import annotations

from alembic import op

from recollect.store.sql.tables import metadata, moment

revision = "10"
down_revision = "9"


def upgrade() -> None:
    """Make the table and its index; a table that is there already is an error."""
    metadata.create_all(op.get_bind(), tables=[moment], checkfirst=False)
