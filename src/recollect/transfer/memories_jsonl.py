"""The `memories.jsonl` of a three-layer agent memory: six categories, abstract, overview, content, a usage count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from recollect.domain.fields import singular
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.transfer.reading import Unreadable, items_of, lines, time_of, without_empty

_CATEGORIES: Final = ("profile", "preference", "entity", "event", "case", "pattern")
_USES: Final = ("activecount", "usecount", "usagecount", "usage", "uses", "count")
_MOST_USES: Final = 2**31 - 1


def read_layered(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield a memory for each line; its vector is left behind, since another model made it."""
    return items_of(lines(source, name), _layered_items)


def without_case(line: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with names in lower case and without underscores, such as `activecount` for `active_count`."""
    return {name.replace("_", "").lower(): value for name, value in line.items()}


def _layered_items(line: dict[str, Any], where: str) -> list[ImportItem]:
    """Return the memory of a line; its counts of use may have several names."""
    found = without_case(line)
    category = found.get("category")
    if isinstance(category, str) and singular(category) not in _CATEGORIES:
        raise Unreadable("Its category is none of the six.")
    abstract, overview = found.get("abstract"), found.get("overview")
    uses = next((found[field] for field in _USES if isinstance(found.get(field), int)), 0)
    fields = {
        "content": found.get("content") or overview or abstract,
        "key": found.get("id"),
        "fact_type": category,
        "abstract": abstract,
        "overview": overview,
        "created_at": time_of(found.get("createdat")),
        "updated_at": time_of(found.get("updatedat")),
        "accessed_count": min(max(int(uses), 0), _MOST_USES) or None,
    }
    return [ImportItem(kind=ItemKind.MEMORY, where=where, fields=without_empty(fields))]
