"""A memory for tests of pure policy: every field at its default but those that a test names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from recollect.domain.enums import FactType, Scope, Sensitivity, Source
from recollect.domain.results import Memory

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_memory(**fields: Any) -> Memory:
    """Return a memory written now, with `fields` as given."""
    texts = dict.fromkeys(("title", "subtitle", "abstract", "overview", "content_hash"), "")
    absent = ("key", "type", "category", "session_id", "project", "discovery_tokens", "speaker", "position")
    times = ("last_accessed_at", "observed_at", "expires_at", "deleted_at")
    lists = ("concepts", "tags", "files_read", "files_modified")
    plain: dict[str, Any] = {
        "id": 1,
        "content": "Something",
        "namespace": "project:crew/engine",
        "scope": Scope.PROJECT,
        "fact_type": FactType.GENERAL,
        "importance": 0.5,
        "confidence": 0.5,
        "trust": 0.5,
        "sensitivity": Sensitivity.PUBLIC,
        "author": "ada",
        "source": Source.TOOL,
        "accessed_count": 0,
        "recalled_count": 0,
        "created_at": NOW,
        "updated_at": NOW,
    }
    nothing = dict.fromkeys((*absent, *times)) | dict.fromkeys(lists, ())
    return Memory(**texts | nothing | plain | fields)
