"""Our own export: a header, then the memories, the facts and the journal, one JSON object a line.

Export: everything of the caller's namespaces as JSON lines that can be imported again, or as Markdown for people.

The journal's lines come along for information: an import passes them over. `backup` is what copies a whole store.
Levels of sensitivity above public leave only when they are let in by name; expired memories never do.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from recollect.app import App
from recollect.domain.enums import Sensitivity, owned, sensitivity_of
from recollect.domain.requests import Caller, Levels
from recollect.domain.results import Fact, JournalEntry, Memory
from recollect.domain.search import View
from recollect.domain.transfer import ExportPage, FactRecord, ImportItem, ItemKind, MemoryRecord, Page, Problem
from recollect.errors import InvalidInput
from recollect.search.visibility import levels_of
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


def write(exported: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the text of an export line by line; what would steer a terminal is escaped."""
    made = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in exported)
    return (_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", line) + "\n" for line in made)


def read(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
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


_LINES_A_PAGE: Final = 500
_SQLITE: Final = b"SQLite format 3\0"
_NEXT: Final = {"memory": "fact:0", "fact": "journal:0", "journal": ""}
_FIRST: Final = ExportPage.model_fields["after"].default


def export_page(app: App, request: ExportPage, caller: Caller) -> Page:
    """Return the next lines of an export; the first page begins with the header."""
    namespaces = caller.namespaces(request.scope)
    view = View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller))
    part, _, number = request.after.partition(":")
    reader = app.export_reader
    reads: dict[str, Callable[[View, int, int], Sequence[Any]]]
    reads = {"memory": reader.memories, "fact": reader.facts, "journal": reader.lines}
    with app.records.snapshot():
        header = [_header(app, request, view, caller)] if request.after == _FIRST else []
        found = reads[part](view, int(number), _LINES_A_PAGE)
    lines = (line_of(part, one) for one in found)
    after = f"{part}:{found[-1].id}" if len(found) == _LINES_A_PAGE else _NEXT[part]
    return Page((*header, *lines), after, reader.take_unreadable())


def pages(
    request: ExportPage, ask: Callable[[ExportPage], Page], unreadable: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield every line, asking for one page after the other; note in `unreadable` what could not be read."""
    after = request.after
    while after:
        page = ask(request.model_copy(update={"after": after}))
        if unreadable is not None:
            unreadable += page.unreadable
        yield from page.lines
        after = page.after


def save(path: Path, pieces: Iterable[str]) -> None:
    """Put text in a file that nobody else can read, and that is never seen half written; a database is left alone."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        if path.is_file():
            with path.open("rb") as old:
                if old.read(len(_SQLITE)) == _SQLITE:
                    raise InvalidInput("file", f"{path} is a database; name another file.")
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput("file", f"{path} cannot be written: {error.strerror or error}.") from None


def _header(app: App, request: ExportPage, view: View, caller: Caller) -> dict[str, Any]:
    return {
        "format": NAME,
        "version": VERSION,
        "exported_at": view.now.isoformat(),
        "model": app.export_reader.stamps(),
        "scope": request.scope,
        "sensitivities": [sensitivity_of(level) for level in view.sensitivities],
        **app.export_reader.counts(view),
        "left_out": _left_out(app, view, caller),
    }


def _left_out(app: App, view: View, caller: Caller) -> dict[str, int]:
    """Count the caller's own memories of each level that was not let in."""
    levels = {level: owned(level, caller.user) for level in Sensitivity}
    views = {
        level: view.model_copy(update={"sensitivities": (stored,)})
        for level, stored in levels.items()
        if stored not in view.sensitivities
    }
    counts = {str(level): app.export_reader.counts(one).get("memories", 0) for level, one in views.items()}
    return {level: count for level, count in counts.items() if count}
