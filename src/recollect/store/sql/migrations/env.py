"""Alembic's way in: runs the revisions over the engine it is handed, in one transaction each."""

from __future__ import annotations

import warnings
from typing import Any

from alembic import context

from recollect.store.sql import tables
from recollect.store.sql.database import Database

database: Database = context.config.attributes["database"]
BY_DIALECT = {
    "table": (
        "memory_text",
        "memory_trigram",
        "word_trigram",
        "text_length",
        "text_size",
        "posting",
        "live_size",
        "request_rate",
    ),
    "column": ("text_vector", "text_length"),
    "index": ("ix_memory_namespace_id_happened_at", "ix_label_kind_folded", "ix_memory_everything", "ix_word_text_"),
}
"""What the text indexes and the measures of limits add, and indexes on expressions: Alembic cannot compare them."""


def include_object(_: Any, name: str | None, kind: str, *_rest: Any) -> bool:
    """Leave out of the comparison what Alembic cannot compare."""
    return not (name is not None and name.startswith(BY_DIALECT.get(kind, ())))


with warnings.catch_warnings(), database.exclusive() as connection:
    warnings.filterwarnings("ignore", ".*expression-based index")
    context.configure(
        connection=connection,
        target_metadata=tables.metadata,
        render_as_batch=database.file is not None,
        compare_type=True,
        include_object=include_object,
    )
    context.run_migrations()
