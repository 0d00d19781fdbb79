"""Reads whole lists page by page, for commands that do something with each memory of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recollect.domain.fields import MAX_LIMIT
from recollect.domain.results import Listed, Memory

Ask = Callable[..., Any]
"""Runs a verb by its name."""


def every(ask: Ask, filters: Mapping[str, Any]) -> list[Memory]:
    """Return all memories that meet the filters, page by page, the newest first unless they name an order."""
    found: dict[int, Memory] = {}
    asked = {"order": "newest"} | dict(filters) | {"limit": MAX_LIMIT}
    while True:
        page: Listed = ask("list_memories", **asked)
        found |= {memory.id: memory for memory in page.memories}
        if page.after is None:
            return list(found.values())
        asked["after"] = page.after
