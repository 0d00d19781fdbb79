"""The `memory.json` of the MCP reference server: entities with observations become memories, relations facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from recollect.domain import Carried, Load, Problem
from recollect.operations.exchange.lines import Unreadable, moment, names, numbered, object_of, parsed, said

_KEY: Final = 480


def read(source: BinaryIO, name: str) -> Iterator[Carried | Problem]:
    """Yield what the file carries, line by line; a file that is one object with both lists is read too."""
    seen: dict[str, int] = {}
    for number, data in numbered(source):
        where = f"{name}:{number}"
        try:
            yield from _of_line(object_of(data), where, seen)
        except Unreadable as error:
            yield Problem(where, str(error))


def read_whole(source: BinaryIO, name: str) -> Iterator[Carried | Problem]:
    """Yield what a graph carries that was saved as one object, as `read_graph` answers; raise `Unreadable`."""
    graph = parsed(source.read())
    seen: dict[str, int] = {}
    for kind, plural in (("entity", "entities"), ("relation", "relations")):
        found = graph.get(plural, []) if isinstance(graph, dict) else None
        if not isinstance(found, list):
            raise Unreadable(f"`{plural}` is no list.")
        for number, one in enumerate(found, 1):
            where = f"{name}, {kind} {number}"
            try:
                if not isinstance(one, dict):
                    raise Unreadable("It is no JSON object.")
                yield from _of_line({**one, "type": kind}, where, seen)
            except Unreadable as error:
                yield Problem(where, str(error))


def _of_line(line: dict[str, Any], where: str, seen: dict[str, int]) -> Iterator[Carried]:
    match line.get("type"):
        case "entity":
            yield _entity(line, where, seen)
        case "relation":
            parts = {"subject": line.get("from"), "predicate": line.get("relationType"), "object": line.get("to")}
            kept = said({"created_at": moment(line.get("createdAt"))})
            yield Carried(load=Load.FACT, where=where, fields=parts, kept=kept)
        case _:
            raise Unreadable("Its `type` is neither `entity` nor `relation`.")


def _entity(line: dict[str, Any], where: str, seen: dict[str, int]) -> Carried:
    entity, kind = line.get("name"), line.get("entityType")
    if not isinstance(entity, str) or not entity.strip():
        raise Unreadable("The entity has no name.")
    about = f" ({kind})" if isinstance(kind, str) and kind.strip() else ""
    held = line.get("observations")
    observations = [text for one in (held if isinstance(held, list) else [held]) if (text := _observed(one))]
    key = f"entity:{' '.join(entity.split())}"[:_KEY]
    seen[key] = seen.get(key, 0) + 1
    fields = {
        "content": "\n".join([f"{entity.strip()}{about}", *(f"- {one}" for one in observations)]),
        "key": key if seen[key] == 1 else f"{key}~{seen[key]}",
        "fact_type": "entity",
        "title": entity.strip()[:500],
        "tags": names([kind]),
    }
    kept = {"created_at": moment(line.get("createdAt")), "updated_at": moment(line.get("updatedAt"))}
    return Carried(load=Load.MEMORY, where=where, fields=said(fields), kept=said(kept))


def _observed(one: object) -> str:
    """Read an observation: a text, or in the server's descendants an object that holds it."""
    if isinstance(one, dict):
        one = one.get("content") or one.get("text")
    return one.strip() if isinstance(one, str) else ""
