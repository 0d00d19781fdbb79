"""Alembic's way in: runs the revisions over the engine it is handed, in one transaction each."""

from __future__ import annotations

from typing import Any

from alembic import context

from recollect.store import tables
from recollect.store.database import Database

BY_HAND = ("memory_text", "memory_trigram", "word_trigram")
"""FTS5 tables (and their shadows) that revisions create by hand, unseen by SQLModel."""


def include_object(_: Any, name: str | None, kind: str, *_rest: Any) -> bool:
    """Leave the text index out of the comparison with the tables."""
    return not (kind == "table" and name is not None and name.startswith(BY_HAND))


database: Database = context.config.attributes["database"]
with database.writing() as connection:
    context.configure(
        connection=connection,
        target_metadata=tables.metadata,
        render_as_batch=database.sqlite,
        compare_type=True,
        include_object=include_object,
    )
    context.run_migrations()
