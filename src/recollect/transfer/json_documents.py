"""Exports that are one JSON document: of mcp-memory-service, and of mem0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from recollect.domain.enums import FactType, ObservationType
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.transfer.reading import (
    LONGEST_KEY,
    Unreadable,
    items_of,
    labels,
    parse_json,
    read_document,
    time_of,
    without_empty,
)

_LISTS: Final = ("results", "memories", "records")
_TEXTS: Final = ("category", "project", "session_id", "speaker", "title")

_FieldsOf = Callable[[dict[str, Any]], dict[str, Any]]


def read_documents(source: BinaryIO, name: str, *, fields_of: _FieldsOf) -> Iterator[ImportItem | Problem]:
    """Yield a memory, made by `fields_of`, for each entry of the list in the document; raise `Unreadable` for none."""
    found = parse_json(read_document(source))
    while isinstance(found, dict):
        found = next((found[name] for name in _LISTS if name in found), found.get("data"))
    if not isinstance(found, list):
        raise Unreadable("There is no list of memories in it.")
    entries = ((f"{name}, memory {number}", entry) for number, entry in enumerate(found, 1))
    return items_of(
        entries,
        lambda entry, where: [ImportItem(kind=ItemKind.MEMORY, where=where, fields=without_empty(fields_of(entry)))],
    )


def service_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry of mcp-memory-service."""
    kind, tags = entry.get("memory_type"), labels(entry.get("tags"))
    word = kind.strip().lower() if isinstance(kind, str) else ""
    known = {"fact_type": word} if word in set(FactType) else {"type": word} if word in set(ObservationType) else {}
    if isinstance(kind, str) and not known:
        tags = labels([*tags, kind])
    if isinstance(source := _metadata_of(entry).get("source", entry.get("source")), str):
        tags = labels([*tags, f"source:{source}"])
    return _metadata_fields(entry) | {"content": entry.get("content"), "tags": tags} | known | _time_fields(entry)


def mem0_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry of mem0."""
    held = entry.get("payload") or entry.get("source_payload")
    whole = (held if isinstance(held, dict) else {}) | without_empty(entry)
    content = next((whole[name] for name in ("memory", "content", "text", "data") if whole.get(name)), None)
    owners = [
        f"{owner}:{whole[f'{owner}_id']}" for owner in ("user", "agent", "run", "app") if whole.get(f"{owner}_id")
    ]
    number = whole.get("id")
    named = isinstance(number, str | int) and not isinstance(number, bool)
    fields = {"content": content, "tags": labels([*labels(whole.get("categories")), *owners])}
    fields |= {
        "key": f"mem0:{number}"[:LONGEST_KEY] if named else None,
        "expires_at": time_of(whole.get("expiration_date")),
    }
    return _metadata_fields(whole) | fields | _time_fields(whole)


def _metadata_fields(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry's metadata that a memory has too; the others are dropped."""
    inner = _metadata_of(entry)
    found: dict[str, Any] = {name: inner[name] for name in _TEXTS if isinstance(inner.get(name), str)}
    weight = inner.get("importance")
    if isinstance(weight, int | float) and not isinstance(weight, bool) and 0 <= weight <= 1:
        found["importance"] = weight
    return found


def _metadata_of(entry: dict[str, Any]) -> dict[str, Any]:
    metadata = entry.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _time_fields(entry: dict[str, Any]) -> dict[str, Any]:
    created = time_of(entry.get("created_at")) or time_of(entry.get("created_at_iso"))
    updated = time_of(entry.get("updated_at")) or time_of(entry.get("updated_at_iso"))
    return {"created_at": created, "updated_at": updated or created}
