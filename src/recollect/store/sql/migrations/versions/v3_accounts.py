"""The users, teams, projects and tokens of a deployment."""

from __future__ import annotations

from alembic import op

from recollect.store.sql import tables

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Make the six tables; one that is there already is an error."""
    added = [tables.account, tables.team, tables.membership]
    added += [tables.team_project, tables.project_membership, tables.token]
    tables.metadata.create_all(op.get_bind(), added, checkfirst=False)
