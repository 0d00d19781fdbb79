"""A digest beside each vector, by which it is compared with its text.

What is stored already gets it when it is next written, embedded or looked at by `doctor --deep`.
"""

from __future__ import annotations

from recollect.store.sql.migrations import add_columns
from recollect.store.sql.tables import vector, vector_shadow

revision = "8"
down_revision = "7"


def upgrade() -> None:
    """Add the column of the digest."""
    for table in (vector, vector_shadow):
        add_columns(table, "digest")
