"""Reads whole lists page by page, for commands that do something with each memory of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from recollect.domain.fields import MAX_LIMIT
from recollect.domain.requests import MemoryFilters
from recollect.domain.results import Listed, Memory

Ask = Callable[..., Any]
"""Runs an operation by its name."""

_NEWEST: Final = "newest"


def every(ask: Ask, filters: Mapping[str, Any]) -> list[Memory]:
    """Return all memories that meet the filters, the newest first unless they name an order."""
    found: dict[int, Memory] = {}
    while True:
        page: Listed = ask("list_memories", **({"order": _NEWEST} | dict(filters)), limit=MAX_LIMIT, offset=len(found))
        before = len(found)
        found |= {one.id: one for one in page.memories}
        if len(found) in (before, page.total):
            return list(found.values())


def narrowing(given: Mapping[str, Any]) -> list[str]:
    """Name the filters that leave something out."""
    return [name for name in given if name in MemoryFilters.model_fields]
