"""Which format a file has, and how it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from recollect.domain import Carried, Format, Problem
from recollect.errors import InvalidInput
from recollect.operations.exchange import documents, markdown, memories_jsonl, memory_json, own
from recollect.operations.exchange.lines import Unreadable

Reader = Callable[[BinaryIO, str], Iterator[Carried | Problem]]

HEAD: Final = 65_536
"""Bytes at the beginning of a file by which its format is known."""

_LAYERED: Final = frozenset({"abstract", "overview"})
_NAMED: Final = re.compile(rb'"(\w+)"\s*:')


def _graph(source: BinaryIO, name: str) -> Iterator[Carried | Problem]:
    """Read the reference server's file: lines, or one object with both lists."""
    whole = b'"entities"' in source.read(HEAD)
    source.seek(0)
    return memory_json.read_whole(source, name) if whole else memory_json.read(source, name)


READERS: Final[dict[Format, Reader]] = {
    Format.RECOLLECT: own.read,
    Format.MARKDOWN: markdown.read,
    Format.MEMORY_JSON: _graph,
    Format.MEMORIES_JSONL: memories_jsonl.read,
    Format.MCP_MEMORY_SERVICE: documents.read_service,
    Format.MEM0: documents.read_mem0,
}


def detect(name: str, head: bytes) -> Format | None:
    """Return the format of a file from its name and its first bytes; None when it is none that is known here."""
    if name.lower().endswith((".md", ".markdown")):
        return Format.MARKDOWN
    plain = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not plain.startswith((b"{", b"[")):
        return None
    first = _object(plain.partition(b"\n")[0])
    if first.get("format") == own.NAME:
        return Format.RECOLLECT
    if first.get("type") in ("entity", "relation"):
        return Format.MEMORY_JSON
    if _LAYERED & memories_jsonl.plainly(first).keys():
        return Format.MEMORIES_JSONL
    names = {found.decode().lower() for found in _NAMED.findall(plain)}
    return _document(names, bare=plain.startswith(b"["))


def _document(names: set[str], *, bare: bool) -> Format | None:
    """Tell one JSON document from another by the names at its beginning."""
    if "export_metadata" in names or {"memories", "content_hash"} <= names:
        return Format.MCP_MEMORY_SERVICE
    if {"entities", "observations"} <= names or {"entities", "relations"} <= names:
        return Format.MEMORY_JSON
    if names >= _LAYERED and not bare:
        return Format.MEMORIES_JSONL
    return Format.MEM0 if "memory" in names and (bare or names & {"results", "memories", "records", "data"}) else None


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def opened(path: Path, name: str, chosen: Format | None) -> Iterator[Carried | Problem]:
    """Yield what a file carries; raise `InvalidInput` when it cannot be read or is of no known format."""
    try:
        with path.open("rb") as source:
            found = chosen or detect(path.name, source.read(HEAD))
            if found is None:
                raise InvalidInput("file", f"{path} is of no format known here; say which with `--format`.")
            source.seek(0)
            yield from READERS[found](source, name)
    except OSError as error:
        raise InvalidInput("file", f"{path} cannot be read: {error.strerror or error}.") from None
    except Unreadable as error:
        raise InvalidInput("file", f"{path} cannot be imported as {found}: {error}") from None
