"""Our own export: a header, then the journal, the memories and the facts, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO, Final

from recollect.domain import Carried, Draft, Fact, JournalEntry, Kept, KeptFact, Load, Memory, Problem
from recollect.operations.exchange.lines import Unreadable, numbered, object_of

NAME: Final = "recollect"
VERSION: Final = 1
WHOLE: Final = "whole"
"""The word in a header for a journal of which nothing was left out."""

_DRAFT: Final = tuple(name for name in Draft.model_fields)
_KEPT: Final = tuple(name for name in Kept.model_fields if name != "origin")
_FACT: Final = tuple(name for name in KeptFact.model_fields if name != "origin")
_COUNTS: Final = ("accessed_count", "recalled_count")
_LINE: Final = ("id", "at", "actor", "namespace", "action", "memory_id", "changes", "hash")
_KNOWN: Final = {"journal": frozenset(_LINE), "memory": frozenset((*_DRAFT, *_KEPT)), "fact": frozenset(_FACT)}
_LOADS: Final = {"journal": Load.JOURNAL, "memory": Load.MEMORY, "fact": Load.FACT}
_COUNTED: Final = {"journal": "journal", "memory": "memories", "fact": "facts"}


def memory_line(memory: Memory) -> dict[str, Any]:
    """Return a memory as a line of the export."""
    return {"memory": _said(memory, (*_DRAFT, *_KEPT))}


def fact_line(fact: Fact) -> dict[str, Any]:
    """Return a fact as a line of the export."""
    return {"fact": _said(fact, _FACT)}


def journal_line(entry: JournalEntry) -> dict[str, Any]:
    """Return a line of the journal as a line of the export."""
    return {"journal": _said(entry, _LINE)}


def header_of(data: bytes | None) -> dict[str, Any]:
    """Read the first line of an export; raise `Unreadable` when this program cannot read what follows."""
    header = object_of(data)
    version = header.get("version")
    if header.get("format") != NAME or not isinstance(version, int):
        raise Unreadable("It does not begin like an export of Recollect.")
    if version > VERSION:
        raise Unreadable(f"It is of version {version}; this program reads up to version {VERSION}.")
    return header


def read(source: BinaryIO, name: str) -> Iterator[Carried | Problem]:
    """Yield what each line carries; at the end, whether as much was there as the header promised."""
    lines = numbered(source)
    _, first = next(lines, (1, b""))
    header = header_of(first)
    found = dict.fromkeys(_LOADS, 0)
    for number, data in lines:
        where = f"{name}:{number}"
        try:
            kind, fields = _only(object_of(data))
        except Unreadable as error:
            yield Problem(where, str(error))
            continue
        found[kind] += 1
        kept = {one: fields.pop(one) for one in _KEPT if one in fields} if kind == "memory" else {}
        kept |= {"chain": header.get("chain")} if kind == "journal" else {}
        yield Carried(load=_LOADS[kind], where=where, fields=fields, kept=kept)
    for kind, plural in _COUNTED.items():
        promised = header.get(plural)
        if isinstance(promised, int) and promised != found[kind]:
            yield Problem(name, f"The header promises {promised} of `{kind}`, and {found[kind]} are there.")


def _only(line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    kinds = [kind for kind in _LOADS if kind in line]
    if len(line) != 1 or not kinds or not isinstance(line[kinds[0]], dict):
        raise Unreadable("It is neither a memory, nor a fact, nor a line of the journal.")
    kind, fields = kinds[0], dict(line[kinds[0]])
    if not fields.keys() <= _KNOWN[kind]:
        raise Unreadable("It has a field that has no name here.")
    return kind, fields


def _said(noun: object, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields that say something, as JSON values; a count of nothing and an empty label say nothing."""
    values = {name: getattr(noun, name) for name in names}
    return {
        name: _plain(value)
        for name, value in values.items()
        if value not in (None, "", ()) and not (value == 0 and name in _COUNTS)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value
