"""Exports that are one JSON document: of mcp-memory-service, and of mem0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from recollect.domain import Carried, FactType, Load, Observation, Problem
from recollect.operations.exchange.lines import Unreadable, moment, names, parsed, said

_LISTS: Final = ("results", "memories", "records")
_TEXTS: Final = ("category", "project", "session_id", "speaker", "title")
_KEY: Final = 480


def read_service(source: BinaryIO, name: str) -> Iterator[Carried | Problem]:
    """Yield a memory for each entry of an export of mcp-memory-service; raise `Unreadable` when it is none."""
    return _each(_entries(parsed(source.read())), name, _of_service)


def read_mem0(source: BinaryIO, name: str) -> Iterator[Carried | Problem]:
    """Yield a memory for each entry of an export of mem0, an object or a bare list; raise `Unreadable`."""
    return _each(_entries(parsed(source.read())), name, _of_mem0)


def _entries(document: Any) -> list[Any]:
    """Find the list of memories in whatever the export wraps it."""
    if isinstance(document, dict):
        nested = next((document[one] for one in _LISTS if one in document), document.get("data"))
        return _entries(nested)
    if not isinstance(document, list):
        raise Unreadable("There is no list of memories in it.")
    return document


def _each(entries: list[Any], name: str, read: Callable[[dict[str, Any], str], Carried]) -> Iterator[Carried | Problem]:
    for number, entry in enumerate(entries, 1):
        where = f"{name}, memory {number}"
        try:
            if not isinstance(entry, dict):
                raise Unreadable("It is no JSON object.")
            yield read(entry, where)
        except Unreadable as error:
            yield Problem(where, str(error))


def _of_service(entry: dict[str, Any], where: str) -> Carried:
    kind = entry.get("memory_type")
    fields = _aside(entry) | {"content": entry.get("content"), **_kind(kind), "tags": names(entry.get("tags"))}
    if isinstance(kind, str) and not _kind(kind):
        fields["tags"] = names([*fields["tags"], kind])
    return Carried(load=Load.MEMORY, where=where, fields=said(fields), kept=_times(entry))


def _of_mem0(entry: dict[str, Any], where: str) -> Carried:
    held = entry.get("payload") or entry.get("source_payload")
    inner: dict[str, Any] = held if isinstance(held, dict) else {}
    whole = inner | said(entry)
    content = next((whole[one] for one in ("memory", "content", "text", "data") if whole.get(one)), None)
    owners = [f"{one}:{whole[f'{one}_id']}" for one in ("user", "agent", "run", "app") if whole.get(f"{one}_id")]
    number = whole.get("id")
    fields = _aside(whole) | {"content": content, "tags": names([*names(whole.get("categories")), *owners])}
    if isinstance(number, str | int) and not isinstance(number, bool):
        fields["key"] = f"mem0:{number}"[:_KEY]
    return Carried(load=Load.MEMORY, where=where, fields=said(fields), kept=_times(whole))


def _kind(kind: object) -> dict[str, str]:
    """Take a type for ours where it is one, as a kind of knowledge or else as a kind of observation."""
    word = kind.strip().lower() if isinstance(kind, str) else ""
    if word in set(FactType):
        return {"fact_type": word}
    return {"type": word} if word in set(Observation) else {}


def _aside(entry: dict[str, Any]) -> dict[str, Any]:
    """Take out of an entry's metadata what has a field here; the rest has no home and is left behind."""
    metadata = entry.get("metadata")
    inner: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    found: dict[str, Any] = {one: inner[one] for one in _TEXTS if isinstance(inner.get(one), str)}
    weight = inner.get("importance")
    if isinstance(weight, int | float) and not isinstance(weight, bool) and 0 <= weight <= 1:
        found["importance"] = weight
    return found


def _times(entry: dict[str, Any]) -> dict[str, Any]:
    created = moment(entry.get("created_at")) or moment(entry.get("created_at_iso"))
    updated = moment(entry.get("updated_at")) or moment(entry.get("updated_at_iso"))
    return said({"created_at": created, "updated_at": updated or created})
