"""Our own export: a header, then the memories, the facts and the journal, one JSON object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, BinaryIO, Final

from recollect.domain.requests import Levels
from recollect.domain.results import Fact, JournalEntry, Memory
from recollect.domain.transfer import FactRecord, ImportItem, ItemKind, MemoryRecord, Problem
from recollect.transfer.reading import Unreadable, items_of, lines, object_of

NAME: Final = "recollect"
VERSION: Final = 1

_FIELDS: Final = {
    "memory": tuple(name for name in MemoryRecord.model_fields if name in Memory.model_fields),
    "fact": tuple(name for name in FactRecord.model_fields if name not in ("origin", "replaces", *Levels.model_fields)),
    "journal": ("id", "at", "actor", "namespace", "action", "memory_id", "changes"),
}
_FORMER: Final = {"memory": frozenset[str](), "fact": frozenset[str](), "journal": frozenset({"hash"})}
"""What earlier versions wrote too."""
_OF_PERSON: Final = frozenset(("account", "identity", "token", "session", "observation", "namespace"))
"""The further kinds of lines in the export of a person, which no import stores."""
_COUNTED: Final = {"memory": "memories", "fact": "facts", "journal": "journal"}
_STEERING: Final = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # JSON itself escapes the others
_COUNTS: Final = ("accessed_count", "recalled_count")


def line_of(kind: str, noun: Memory | Fact | JournalEntry) -> dict[str, Any]:
    """Return a memory, a fact or a line of the journal as a line of the export: the fields that say something."""
    values = {name: getattr(noun, name) for name in _FIELDS[kind]}
    fields = {
        name: value.isoformat() if isinstance(value, datetime) else list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value not in (None, "", ()) and not (value == 0 and name in _COUNTS)
    }
    return {kind: fields}


def export_lines(exported: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the text of an export line by line; characters that could control a terminal are escaped."""
    made = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in exported)
    return (_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", line) + "\n" for line in made)


def read_export(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield memories and facts, and last whether the header's counts are met; raise `Unreadable` for a bad header."""
    rest = lines(source, name)
    _, first = next(rest, ("", b""))
    header = object_of(first)
    version = header.get("version")
    if header.get("format") != NAME or not isinstance(version, int):
        raise Unreadable("It does not begin like an export of Recollect.")
    if version > VERSION:
        raise Unreadable(f"It is of version {version}; this program reads up to version {VERSION}.")
    found = dict.fromkeys(_COUNTED, 0)

    def item(line: dict[str, Any], where: str) -> Iterator[ImportItem]:
        ((kind, fields),) = line.items() if len(line) == 1 else [("", None)]
        if kind in _OF_PERSON:
            return
        if kind not in _FIELDS or not isinstance(fields, dict):
            raise Unreadable("It is neither a memory, nor a fact, nor a line of the journal.")
        if not fields.keys() <= _FORMER[kind].union(_FIELDS[kind]):
            raise Unreadable("It has a field that has no name here.")
        found[kind] += 1
        if kind in set(ItemKind):
            yield ImportItem(kind=ItemKind(kind), where=where, fields=fields)

    yield from items_of(rest, item)
    for kind, plural in _COUNTED.items():
        promised = header.get(plural)
        if isinstance(promised, int) and promised != found[kind]:
            yield Problem(name, f"The header promises {promised} of `{kind}`, and {found[kind]} are there.")
