"""The table of formats: how each is recognised and read, and how an export is written."""

from __future__ import annotations

import json
import lzma
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePath
from typing import IO, Any, BinaryIO, Final, NamedTuple, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from recollect.domain.transfer import ExportFormat, FileSections, ImportFormat, ImportItem, ItemKind, Problem
from recollect.errors import InvalidInput, RecollectError
from recollect.transfer import (
    chatgpt_export,
    claude_code_transcript,
    claude_export,
    claude_mem,
    codex_transcript,
    json_documents,
    markdown_export,
    markdown_import,
    memories_db,
    memories_jsonl,
    memory_json,
    recollect_jsonl,
    sqlite_file,
)
from recollect.transfer.reading import LARGEST_FILE, Unreadable, check_json

Read = Iterator[ImportItem | Problem | FileSections]

HEAD: Final = 65_536
"""Bytes at the beginning of a file by which its format is known."""

_NAME: Final = re.compile(rb'"(\w+)"\s*:\s*(")?')
_LAYERS: Final = frozenset({"abstract", "overview"})
_GRAPH: Final = frozenset({"observations", "relations"})
_LISTS: Final = frozenset({"results", "memories", "records", "data"})
_MARKDOWN: Final = (".md", ".markdown", ".mdc", ".cursorrules", ".windsurfrules", ".clinerules")
_JSON: Final = (".json", ".jsonl")
_PACKED: Final = (b"PK\x03\x04", b"\x1f\x8b")
_ARCHIVE: Final = ".zip"
_DAMAGED: Final = (BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)
"""What reading an archive raises that is damaged, has a password, or is packed in a way that is not known here."""
_MOST_TIMES: Final = 200  # as large as it is packed may a member of an archive be that is larger than other files
_IN_ARCHIVE: Final = re.compile(r"(?:.*/)?(?:conversations[\w-]*|memories)\.json")
"""The files of an archive that ChatGPT or Claude exports in which memories may be."""
_TIMES: Final = frozenset({"created_at", "updated_at"})
_CHAT: Final = frozenset({"current_node", "create_time", "conversation_id"})

WRITERS: Final[dict[ExportFormat, Callable[[Iterable[dict[str, Any]]], Iterator[str]]]] = {
    ExportFormat.JSONL: recollect_jsonl.export_lines,
    ExportFormat.MARKDOWN: markdown_export.write_notes,
}


class FileHead(NamedTuple):
    """A file's name and beginning: the JSON object in its first line, the names of fields, whether it is a list.

    `texts` are the names of fields that hold a text, `tables` those of a database's tables.
    """

    name: str
    first: dict[str, Any]
    names: frozenset[str]
    texts: frozenset[str]
    is_list: bool
    tables: frozenset[str]


class Format(NamedTuple):
    """One format that can be imported: `fits` says whether a file has it; `read` raises `Unreadable`.

    A `transcript` of an agent is only imported where that is asked for; a `streamed` one may be of any size.
    """

    fits: Callable[[FileHead], object]
    read: Callable[[BinaryIO, str], Read]
    transcript: bool = False
    streamed: bool = False


class Recognised(NamedTuple):
    """What a file is: its format, its size in bytes, and its place on the disk (device and number)."""

    format: ImportFormat
    size: int
    place: tuple[int, int]


FORMATS: Final = {
    ImportFormat.MARKDOWN: Format(lambda head: head.name.lower().endswith(_MARKDOWN), markdown_import.read_notes),
    ImportFormat.CLAUDE_MEM: Format(
        lambda head: head.tables >= claude_mem.CLAUDE_MEM, claude_mem.read_claude_mem, streamed=True
    ),
    ImportFormat.MEMORIES_DB: Format(
        lambda head: memories_db.MEMORIES in head.tables, memories_db.read_memories, streamed=True
    ),
    ImportFormat.RECOLLECT: Format(
        lambda head: head.first.get("format") == recollect_jsonl.NAME, recollect_jsonl.read_export, streamed=True
    ),
    ImportFormat.CLAUDE_CODE: Format(
        lambda head: head.names >= {"sessionid", "parentuuid"} or "leafuuid" in head.names,
        claude_code_transcript.read_claude_code,
        transcript=True,
        streamed=True,
    ),
    ImportFormat.CODEX: Format(
        lambda head: (
            head.first.get("type") == "session_meta" or (head.name.startswith("rollout-") and "timestamp" in head.names)
        ),
        codex_transcript.read_codex,
        transcript=True,
        streamed=True,
    ),
    ImportFormat.CHATGPT: Format(
        lambda head: "mapping" in head.names and head.names & _CHAT, chatgpt_export.read_chatgpt, streamed=True
    ),
    ImportFormat.CLAUDE: Format(
        lambda head: head.names & {"chat_messages", "conversations_memory"}, claude_export.read_claude, streamed=True
    ),
    ImportFormat.MCP_MEMORY_SERVICE: Format(
        lambda head: "export_metadata" in head.names or {"memories", "content_hash"} <= head.names,
        partial(json_documents.read_documents, fields_of=json_documents.service_fields),
    ),
    ImportFormat.MEMORY_JSON: Format(
        lambda head: (
            head.first.get("type") in ("entity", "relation")
            or head.names & {"entitytype", "relationtype"}
            or ("entities" in head.names and head.names & _GRAPH)
        ),
        memory_json.read_graph,
        streamed=True,
    ),
    ImportFormat.MEMORIES_JSONL: Format(
        lambda head: (
            _LAYERS & memories_jsonl.without_case(head.first).keys() or (head.names >= _LAYERS and not head.is_list)
        ),
        memories_jsonl.read_layered,
        streamed=True,
    ),
    ImportFormat.MEM0: Format(
        lambda head: "memory" in head.texts and (head.is_list or head.names & _LISTS),
        partial(json_documents.read_documents, fields_of=json_documents.mem0_fields),
    ),
}
"""In the order in which they are tried."""


def detect(name: str, head: bytes, tables: frozenset[str] = frozenset()) -> ImportFormat | None:
    """Return the format of a file from its name, its first bytes and its tables; None for an unknown format."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = _first_object(text.split(b"\n") if name.endswith(".jsonl") else [text.partition(b"\n")[0]])
    found = _NAME.findall(text if text.startswith((b"{", b"[")) or name.endswith(_JSON) else b"")
    begins = FileHead(
        name=name,
        first=first,
        names=frozenset(string.decode().lower() for string, _ in found),
        texts=frozenset(string.decode().lower() for string, quote in found if quote),
        is_list=text.startswith(b"["),
        tables=tables,
    )
    return next((name for name, format in FORMATS.items() if format.fits(begins)), None)


def _first_object(lines: Iterable[bytes]) -> dict[str, Any]:
    """Return the JSON object of the first line that holds an object, else an empty object."""
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def archive_members(path: Path) -> Sequence[str]:
    """Return the names of the conversations in an archive; `[""]` for any other file.

    Raises `InvalidInput` when it cannot be read.
    """
    with _open_member(path) as (source, _, _):
        archive = path.suffix.lower() == _ARCHIVE or source.read(len(_PACKED[0])) == _PACKED[0]
        with _raise_if_damaged(path):
            found = ZipFile(cast(IO[bytes], source)).namelist() if archive else []
    return [member for member in found if _IN_ARCHIVE.fullmatch(member)] or [""]


def recognise_file(path: Path, chosen: ImportFormat | None, member: str = "") -> Recognised:
    """Return the format of a file or of an archive's member, from as little of it as is needed.

    Raises `InvalidInput`: for the field `file` when it cannot be read, is empty or damaged, for the field `format` when
    it is sound and of no known format.
    """
    named = _name_for_error(path, member)
    try:
        with _open_member(path, member) as (source, known, size):
            if not size:
                raise InvalidInput("file", f"{named} cannot be imported: It is empty.")
            head = b"" if chosen else source.read(HEAD)
            tables = sqlite_file.names_in(path) if head.startswith(sqlite_file.MAGIC) else frozenset()
            found = chosen or detect(member or path.name, head, tables)
            if found is None and (PurePath(member or path.name).suffix.lower() in _JSON or _looks_like_json(head)):
                source.seek(0)
                check_json(source)
    except Unreadable as error:
        raise InvalidInput("file", f"{named} cannot be imported: {error}") from None
    if found is None:
        advice = "unpack it first" if head.startswith(_PACKED) else "name it with `--format`"
        raise InvalidInput("format", f"{named} has an unrecognised format; {advice}.")
    return Recognised(found, size, (known.st_dev, known.st_ino))


def read_file(
    path: Path, name: str, format: ImportFormat, member: str = "", read: Callable[[BinaryIO, str], Read] | None = None
) -> Iterator[tuple[ImportItem | Problem | FileSections, int]]:
    """Yield the items of a file, each with the number of bytes read so far; raise `InvalidInput` when unreadable.

    A memory without any time is as old as the file. `read` reads it in the place of what the format has for that.
    """
    try:
        with _open_member(path, member) as (source, known, _):
            written = datetime.fromtimestamp(min(known.st_mtime, time.time()), UTC).isoformat()
            for thing in (read or FORMATS[format].read)(source, name):
                yield _with_file_time(thing, written), source.tell()
    except Unreadable as error:
        raise InvalidInput("file", f"{_name_for_error(path, member)} cannot be imported as {format}: {error}") from None


def _name_for_error(path: Path, member: str) -> str:
    """Return the name of a file, or of a member of an archive, for an error."""
    return f"{path}/{member}" if member else str(path)


def _looks_like_json(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith((b"{", b"["))


def _with_file_time(thing: ImportItem | Problem | FileSections, written: str) -> ImportItem | Problem | FileSections:
    """Return an item, with the file's time in place of a missing time."""
    if not isinstance(thing, ImportItem) or thing.kind is not ItemKind.MEMORY or _TIMES & thing.fields.keys():
        return thing
    return thing.model_copy(update={"fields": thing.fields | {"created_at": written}})


@contextmanager
def _open_member(path: Path, member: str = "") -> Iterator[tuple[BinaryIO, os.stat_result, int]]:
    """Open a file or a member of an archive, and yield it with its file's status and the number of bytes to read.

    Raises `InvalidInput` where that fails.
    """
    try:
        with open(path, "rb", opener=_open_regular_file) as source:
            known = os.fstat(source.fileno())
            if member:
                with _raise_if_damaged(path, member), ZipFile(source) as archive, archive.open(member) as inside:
                    yield cast(BinaryIO, inside), known, _unpacked_size(archive.getinfo(member))
            else:
                yield source, known, known.st_size
    except OSError as error:
        raise InvalidInput(
            "file", f"{_name_for_error(path, member)} cannot be read: {error.strerror or error}."
        ) from None


@contextmanager
def _raise_if_damaged(path: Path, member: str = "") -> Iterator[None]:
    """Raise `InvalidInput` where an archive, or a member of it, is damaged or locked by a password."""
    try:
        yield
    except (RecollectError, Unreadable):
        raise
    except _DAMAGED:
        why = "the archive is damaged, or has a password"
        raise InvalidInput("file", f"{_name_for_error(path, member)} cannot be read: {why}.") from None


def _unpacked_size(member: ZipInfo) -> int:
    """Return the unpacked size of a member; raise `OSError` for a decompression bomb."""
    if member.file_size > max(LARGEST_FILE, _MOST_TIMES * member.compress_size):
        raise OSError("it unpacks to far more than any export does")
    return member.file_size


def _open_regular_file(path: str, flags: int) -> int:
    """Open a file; raise `OSError` for a pipe, a device, a socket or a folder, which may have no end."""
    handle = os.open(path, flags | os.O_NONBLOCK)  # a pipe that nobody writes to would be waited for
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it is no regular file")
    return handle
