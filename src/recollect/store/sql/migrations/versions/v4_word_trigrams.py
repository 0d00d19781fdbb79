"""The trigrams of words on PostgreSQL, over an expression: an index over the column also served whole words, slowly."""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

from recollect.store.text.postgres_schema import WORD_PIECES

revision = "4"
down_revision = "3"

_NAME = "ix_word_text_trigram"


def upgrade() -> None:
    """Make the index anew where there is one, which needs an extension."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    if connection.scalar(text("SELECT to_regclass(:name)"), {"name": _NAME}) is not None:
        op.execute(f"DROP INDEX {_NAME}")
        op.execute(f"CREATE INDEX {_NAME} ON word USING gin ({WORD_PIECES} gin_trgm_ops)")
