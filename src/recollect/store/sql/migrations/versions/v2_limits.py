"""Limits of users and teams, the sizes that they are measured by, and the requests of each user and team."""

from __future__ import annotations

from alembic import op
from sqlalchemy import inspect

from recollect.store.sql import limit_schema
from recollect.store.sql.tables import usage_limit

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Make what is not there yet, as the first revision makes the tables of today, and count the memories."""
    connection = op.get_bind()
    there, database = inspect(connection).get_table_names(), connection.dialect.name
    if usage_limit.name not in there:
        usage_limit.create(connection)
    if "live_size" not in there:
        for statement in (*limit_schema.SCHEMA[database], *limit_schema.FILLED[database]):
            op.execute(statement)
