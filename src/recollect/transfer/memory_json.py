"""The `memory.json` of the MCP reference server: entities with observations become memories, relations facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.transfer.reading import (
    LONGEST_KEY,
    Unreadable,
    items_of,
    labels,
    lines,
    parse_json,
    read_document,
    time_of,
    without_empty,
)

_HEAD: Final = 65_536


def read_graph(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield the items of a file: of its lines, or of a single object with both lists; else raise `Unreadable`."""
    whole = b'"entities"' in source.read(_HEAD)
    source.seek(0)
    names = Counter[str]()

    def item(line: dict[str, Any], where: str) -> Iterator[ImportItem]:
        if line.get("type") == "relation":
            parts = {"subject": line.get("from"), "predicate": line.get("relationType"), "object": line.get("to")}
            times = without_empty({"created_at": time_of(line.get("createdAt"))})
            yield ImportItem(kind=ItemKind.FACT, where=where, fields=parts | times)
        elif line.get("type") == "entity":
            fields = _entity_memory(line)
            names[fields["key"]] += 1
            if names[fields["key"]] > 1:  # so that none of two entities of one name overwrites the other
                fields["key"] += f"~{names[fields['key']]}"
            yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=fields)
        else:
            raise Unreadable("Its `type` is neither `entity` nor `relation`.")

    return items_of(_graph_entries(parse_json(read_document(source)), name) if whole else lines(source, name), item)


def _graph_entries(graph: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each entity and relation of a graph with its place; raise `Unreadable` where it has neither list."""
    for kind, plural in (("entity", "entities"), ("relation", "relations")):
        found = graph.get(plural, []) if isinstance(graph, dict) else None
        if not isinstance(found, list):
            raise Unreadable(f"`{plural}` is no list.")
        for number, entry in enumerate(found, 1):
            yield f"{name}, {kind} {number}", entry | {"type": kind} if isinstance(entry, dict) else entry


def _entity_memory(line: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entity as a memory: its name, its type, and its observations as the text."""
    entity, kind = line.get("name"), line.get("entityType")
    if not isinstance(entity, str) or not entity.strip():
        raise Unreadable("The entity has no name.")
    about = f" ({kind})" if isinstance(kind, str) and kind.strip() else ""
    held = line.get("observations")
    observations = [
        text for observation in (held if isinstance(held, list) else [held]) if (text := _observation_text(observation))
    ]
    fields = {
        "content": "\n".join([f"{entity.strip()}{about}", *(f"- {observation}" for observation in observations)]),
        "key": f"entity:{' '.join(entity.split())}"[:LONGEST_KEY],
        "fact_type": "entity",
        "title": entity.strip()[:500],
        "tags": labels([kind]),
        "created_at": time_of(line.get("createdAt")),
        "updated_at": time_of(line.get("updatedAt")),
    }
    return without_empty(fields)


def _observation_text(observation: object) -> str:
    """Read an observation: a text, or in the server's descendants an object that holds it."""
    if isinstance(observation, dict):
        observation = observation.get("content") or observation.get("text")
    return observation.strip() if isinstance(observation, str) else ""
