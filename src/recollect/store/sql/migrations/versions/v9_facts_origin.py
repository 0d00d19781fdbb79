"""Where each fact came from. What is stored already has the origin of the memory that states it."""

from __future__ import annotations

from recollect.store.sql.migrations import add_columns
from recollect.store.sql.tables import fact

revision = "9"
down_revision = "8"


def upgrade() -> None:
    """Add the columns of the origin."""
    add_columns(fact, "said_by", "came_from")
