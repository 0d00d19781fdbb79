"""The table of formats: how each is recognised and read, and how an export is written."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from recollect.domain.transfer import ExportFormat, FileSections, ImportFormat, ImportItem, Problem
from recollect.errors import InvalidInput
from recollect.transfer import (
    json_documents,
    markdown_export,
    markdown_import,
    memories_jsonl,
    memory_json,
    recollect_jsonl,
)
from recollect.transfer.memories_jsonl import plain_names
from recollect.transfer.reading import Unreadable

Read = Iterator[ImportItem | Problem | FileSections]

HEAD: Final = 65_536
"""Bytes at the beginning of a file by which its format is known."""

_NAME: Final = re.compile(rb'"(\w+)"\s*:')
_LAYERS: Final = frozenset({"abstract", "overview"})
_GRAPH: Final = frozenset({"observations", "relations"})
_LISTS: Final = frozenset({"results", "memories", "records", "data"})


class FileHead(NamedTuple):
    """A file's name and beginning: the JSON object in its first line, the names of fields, whether it is a list."""

    name: str
    first: dict[str, Any]
    names: frozenset[str]
    is_list: bool


class Format(NamedTuple):
    """One format that can be imported: `fits` says whether a file has it; `read` raises `Unreadable`."""

    fits: Callable[[FileHead], object]
    read: Callable[[BinaryIO, str], Read]


FORMATS: Final = {
    ImportFormat.MARKDOWN: Format(lambda head: head.name.lower().endswith((".md", ".markdown")), markdown_import.read),
    ImportFormat.RECOLLECT: Format(lambda head: head.first.get("format") == recollect_jsonl.NAME, recollect_jsonl.read),
    ImportFormat.MCP_MEMORY_SERVICE: Format(
        lambda head: "export_metadata" in head.names or {"memories", "content_hash"} <= head.names,
        partial(json_documents.read, fields_of=json_documents.of_service),
    ),
    ImportFormat.MEMORY_JSON: Format(
        lambda head: (
            head.first.get("type") in ("entity", "relation") or ("entities" in head.names and head.names & _GRAPH)
        ),
        memory_json.read,
    ),
    ImportFormat.MEMORIES_JSONL: Format(
        lambda head: _LAYERS & plain_names(head.first).keys() or (head.names >= _LAYERS and not head.is_list),
        memories_jsonl.read,
    ),
    ImportFormat.MEM0: Format(
        lambda head: "memory" in head.names and (head.is_list or head.names & _LISTS),
        partial(json_documents.read, fields_of=json_documents.of_mem0),
    ),
}
"""In the order in which they are tried."""

WRITERS: Final[dict[ExportFormat, Callable[[Iterable[dict[str, Any]]], Iterator[str]]]] = {
    ExportFormat.JSONL: recollect_jsonl.write,
    ExportFormat.MARKDOWN: markdown_export.write,
}


def detect(name: str, head: bytes) -> ImportFormat | None:
    """Return the format of a file from its name and its first bytes; None when it is none that is known here."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        first = json.loads(text.partition(b"\n")[0])
    except (ValueError, RecursionError):
        first = {}
    names = (found.decode().lower() for found in _NAME.findall(text if text.startswith((b"{", b"[")) else b""))
    begins = FileHead(name, first if isinstance(first, dict) else {}, frozenset(names), text.startswith(b"["))
    return next((one for one, format in FORMATS.items() if format.fits(begins)), None)


def read_file(path: Path, name: str, chosen: ImportFormat | None) -> Read:
    """Yield what a file holds; raise `InvalidInput` when it cannot be read or is of no known format."""
    try:
        with open(path, "rb", opener=_of_regular_file) as source:
            found = chosen or detect(path.name, source.read(HEAD))
            if found is None:
                raise InvalidInput("file", f"{path} is of no format known here; say which with `--format`.")
            source.seek(0)
            yield from FORMATS[found].read(source, name)
    except OSError as error:
        raise InvalidInput("file", f"{path} cannot be read: {error.strerror or error}.") from None
    except Unreadable as error:
        raise InvalidInput("file", f"{path} cannot be imported as {found}: {error}") from None


def _of_regular_file(path: str, flags: int) -> int:
    """Open a file, but nothing that may have no end or no beginning: a pipe, a device, a socket or a folder."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe that nobody writes to would be waited for
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it is no regular file")
    return handle
