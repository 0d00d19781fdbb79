"""The sessions of coding agents with their observations, and how far each memory is consolidated."""

from __future__ import annotations

from alembic import op

from recollect.store.sql import tables

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Make the three tables; one that is there already is an error."""
    added = [tables.session, tables.observation, tables.consolidation]
    tables.metadata.create_all(op.get_bind(), added, checkfirst=False)
