"""The `memories.jsonl` of a three-layer agent memory: six categories, abstract, overview, content, a usage count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from recollect.domain import Carried, Load, Problem
from recollect.operations.exchange.lines import Unreadable, moment, numbered, object_of, said

SIX: Final = frozenset({"profile", "preferences", "entities", "events", "cases", "patterns"})
_SINGLE: Final = frozenset({"preference", "entity", "event", "case", "pattern"})
_USES: Final = ("activecount", "usecount", "usagecount", "usage", "uses", "count")
_MOST: Final = 2**31 - 1


def read(source: BinaryIO, name: str) -> Iterator[Carried | Problem]:
    """Yield a memory for each line; its vector is left behind, since another model made it."""
    for number, data in numbered(source):
        where = f"{name}:{number}"
        try:
            yield _memory(object_of(data), where)
        except Unreadable as error:
            yield Problem(where, str(error))


def plainly(line: dict[str, Any]) -> dict[str, Any]:
    """Name the fields without case and underscores, since its writer may name them `ActiveCount` or `active_count`."""
    return {name.replace("_", "").lower(): value for name, value in line.items()}


def _memory(line: dict[str, Any], where: str) -> Carried:
    found = plainly(line)
    category = found.get("category")
    if isinstance(category, str) and category.strip().lower() not in SIX | _SINGLE:
        raise Unreadable("Its category is none of the six.")
    layers = {layer: found.get(layer) for layer in ("abstract", "overview")}
    fields = {
        "content": found.get("content") or layers["overview"] or layers["abstract"],
        "key": found.get("id"),
        "fact_type": category,
        **layers,
    }
    uses = next((found[one] for one in _USES if isinstance(found.get(one), int)), 0)
    times = {"created_at": moment(found.get("createdat")), "updated_at": moment(found.get("updatedat"))}
    kept = times | {"accessed_count": min(max(int(uses), 0), _MOST) or None}
    return Carried(load=Load.MEMORY, where=where, fields=said(fields), kept=said(kept))
