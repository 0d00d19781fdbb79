"""The tables of legal holds, of retention, and of users who left."""

from __future__ import annotations

from alembic import op

from recollect.store.sql.tables import departure, legal_hold, metadata, retention_rule

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Make the tables; in an empty database the first revision has made them already, as they are declared today."""
    metadata.create_all(op.get_bind(), tables=[legal_hold, retention_rule, departure])
