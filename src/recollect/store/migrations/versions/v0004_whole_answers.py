"""The notes of an outcome, kept with it under its request's id."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("answered", sa.Column("notes", sa.Text(), server_default="[]", nullable=False))
