"""Memories of other programs in JSON: mcp-memory-service, mem0, the memory server of MCP, layered lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from recollect.domain.enums import FactType, Observation
from recollect.domain.fields import singular
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.transfer.reading import Unreadable, document, items_of, labels, lines, parsed, set_only, time_of

_LISTS: Final = ("results", "memories", "records")
_TEXTS: Final = ("category", "project", "session_id", "speaker", "title")
_KEY: Final = 480
_FieldsOf = Callable[[dict[str, Any]], dict[str, Any]]


def read_documents(source: BinaryIO, name: str, *, fields_of: _FieldsOf) -> Iterator[ImportItem | Problem]:
    """Yield a memory, made by `fields_of`, for each entry of the list in the document; raise `Unreadable` for none."""
    found = parsed(document(source))
    while isinstance(found, dict):
        found = next((found[one] for one in _LISTS if one in found), found.get("data"))
    if not isinstance(found, list):
        raise Unreadable("There is no list of memories in it.")
    entries = ((f"{name}, memory {number}", entry) for number, entry in enumerate(found, 1))
    return items_of(
        entries,
        lambda entry, where: [ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(fields_of(entry)))],
    )


def of_service(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry of mcp-memory-service."""
    kind, tags = entry.get("memory_type"), labels(entry.get("tags"))
    word = kind.strip().lower() if isinstance(kind, str) else ""
    known = {"fact_type": word} if word in set(FactType) else {"type": word} if word in set(Observation) else {}
    if isinstance(kind, str) and not known:
        tags = labels([*tags, kind])
    if isinstance(source := _metadata(entry).get("source", entry.get("source")), str):
        tags = labels([*tags, f"source:{source}"])
    return _of_metadata(entry) | {"content": entry.get("content"), "tags": tags} | known | _times(entry)


def of_mem0(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry of mem0."""
    held = entry.get("payload") or entry.get("source_payload")
    whole = (held if isinstance(held, dict) else {}) | set_only(entry)
    content = next((whole[one] for one in ("memory", "content", "text", "data") if whole.get(one)), None)
    owners = [f"{one}:{whole[f'{one}_id']}" for one in ("user", "agent", "run", "app") if whole.get(f"{one}_id")]
    number = whole.get("id")
    named = isinstance(number, str | int) and not isinstance(number, bool)
    fields = {"content": content, "tags": labels([*labels(whole.get("categories")), *owners])}
    fields |= {"key": f"mem0:{number}"[:_KEY] if named else None, "expires_at": time_of(whole.get("expiration_date"))}
    return _of_metadata(whole) | fields | _times(whole)


def _of_metadata(entry: dict[str, Any]) -> dict[str, Any]:
    """Take out of an entry's metadata what has a field here; the rest has no home and is left behind."""
    inner = _metadata(entry)
    found: dict[str, Any] = {one: inner[one] for one in _TEXTS if isinstance(inner.get(one), str)}
    weight = inner.get("importance")
    if isinstance(weight, int | float) and not isinstance(weight, bool) and 0 <= weight <= 1:
        found["importance"] = weight
    return found


def _metadata(entry: dict[str, Any]) -> dict[str, Any]:
    metadata = entry.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _times(entry: dict[str, Any]) -> dict[str, Any]:
    created = time_of(entry.get("created_at")) or time_of(entry.get("created_at_iso"))
    updated = time_of(entry.get("updated_at")) or time_of(entry.get("updated_at_iso"))
    return {"created_at": created, "updated_at": updated or created}


_HEAD: Final = 65_536


def read_graph(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield what the file holds: line by line, or as one object with both lists; raise `Unreadable` for any other."""
    whole = b'"entities"' in source.read(_HEAD)
    source.seek(0)
    names = Counter[str]()

    def item(line: dict[str, Any], where: str) -> Iterator[ImportItem]:
        if line.get("type") == "relation":
            parts = {"subject": line.get("from"), "predicate": line.get("relationType"), "object": line.get("to")}
            times = set_only({"created_at": time_of(line.get("createdAt"))})
            yield ImportItem(kind=ItemKind.FACT, where=where, fields=parts | times)
        elif line.get("type") == "entity":
            fields = _entity(line)
            names[fields["key"]] += 1
            if names[fields["key"]] > 1:  # so that none of two entities of one name overwrites the other
                fields["key"] += f"~{names[fields['key']]}"
            yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=fields)
        else:
            raise Unreadable("Its `type` is neither `entity` nor `relation`.")

    return items_of(_graph(parsed(document(source)), name) if whole else lines(source, name), item)


def _graph(graph: Any, name: str) -> Iterator[tuple[str, Any]]:
    for kind, plural in (("entity", "entities"), ("relation", "relations")):
        found = graph.get(plural, []) if isinstance(graph, dict) else None
        if not isinstance(found, list):
            raise Unreadable(f"`{plural}` is no list.")
        for number, one in enumerate(found, 1):
            yield f"{name}, {kind} {number}", one | {"type": kind} if isinstance(one, dict) else one


def _entity(line: dict[str, Any]) -> dict[str, Any]:
    entity, kind = line.get("name"), line.get("entityType")
    if not isinstance(entity, str) or not entity.strip():
        raise Unreadable("The entity has no name.")
    about = f" ({kind})" if isinstance(kind, str) and kind.strip() else ""
    held = line.get("observations")
    observations = [text for one in (held if isinstance(held, list) else [held]) if (text := _observed(one))]
    fields = {
        "content": "\n".join([f"{entity.strip()}{about}", *(f"- {one}" for one in observations)]),
        "key": f"entity:{' '.join(entity.split())}"[:_KEY],
        "fact_type": "entity",
        "title": entity.strip()[:500],
        "tags": labels([kind]),
        "created_at": time_of(line.get("createdAt")),
        "updated_at": time_of(line.get("updatedAt")),
    }
    return set_only(fields)


def _observed(one: object) -> str:
    """Read an observation: a text, or in the server's descendants an object that holds it."""
    if isinstance(one, dict):
        one = one.get("content") or one.get("text")
    return one.strip() if isinstance(one, str) else ""


_CATEGORIES: Final = ("profile", "preference", "entity", "event", "case", "pattern")
_USES: Final = ("activecount", "usecount", "usagecount", "usage", "uses", "count")
_MOST_USES: Final = 2**31 - 1


def read_layered(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield a memory for each line; its vector is left behind, since another model made it."""
    return items_of(lines(source, name), _layered)


def plain_names(line: dict[str, Any]) -> dict[str, Any]:
    """Name the fields without case and underscores, since its writer may name them `ActiveCount` or `active_count`."""
    return {name.replace("_", "").lower(): value for name, value in line.items()}


def _layered(line: dict[str, Any], where: str) -> list[ImportItem]:
    found = plain_names(line)
    category = found.get("category")
    if isinstance(category, str) and singular(category) not in _CATEGORIES:
        raise Unreadable("Its category is none of the six.")
    abstract, overview = found.get("abstract"), found.get("overview")
    uses = next((found[one] for one in _USES if isinstance(found.get(one), int)), 0)
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
    return [ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(fields))]
