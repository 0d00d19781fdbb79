"""Text files by their paths, over any connection: each file is a memory whose key is its path.

So a file passes the gate, is journalled, is found by recall, and is shared by its scope like every memory. An edit
writes only over the text that it was made from, and the earlier text is kept as a version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from recollect.client.connection import Connection
from recollect.domain.enums import Order, Scope
from recollect.domain.fields import MAX_LIMIT, MAX_NAME, NO_MEMORY
from recollect.domain.results import Listed, Memory
from recollect.errors import Conflict, InvalidInput, NotFound, TooLarge

MAX_BYTES: Final = 102_400
"""How large a file may be, in UTF-8: 100 KB."""
_ATTEMPTS: Final = 5
_PLACE: Final = re.compile(r"/(?:[^/\\\x00-\x1f\x7f]+(?:/[^/\\\x00-\x1f\x7f]+)*)?")


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file without its text; `hash` is the SHA-256 of the text, `size` its bytes."""

    path: str
    hash: str
    size: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class File(FileInfo):
    """A file, or an earlier version of one; `id` is that of the memory which holds it."""

    id: str
    text: str

    @property
    def lines(self) -> int:
        """Return the number of lines; a newline at the end begins no further line."""
        return len(lines_of(self.text))


class Files:
    """The files of one scope."""

    def __init__(self, memory: Connection, *, scope: Scope = Scope.PROJECT) -> None:
        self._memory = memory
        self._scope = scope

    def list(self, folder: str = "/") -> tuple[FileInfo, ...]:
        """Return the files in a folder and in all folders below it, by their paths; raise `NotFound` without any."""
        found = [_info_of(memory) for memory in self._files_below(checked(folder))]
        if not found and folder != "/":
            raise NotFound(f"There is no folder {folder}.")
        return tuple(sorted(found, key=lambda memory: memory.path))

    def view(self, path: str, *, version: str = "") -> File:
        """Return a file, or an earlier `version` of it; raise `NotFound` where there is none."""
        memory = self._require_memory(path)
        if not version:
            return _to_file(memory, path)
        earlier: Memory | None = None
        if version in self.versions(path):
            earlier = self._memory.get_memory(version)
        if earlier is None:
            raise NotFound(f"The file {path} has no version {version}.")
        return _to_file(earlier, path)

    def versions(self, path: str) -> tuple[str, ...]:
        """Return the ids of a file's earlier texts, oldest first."""
        whole = self._memory.get_memory(self._require_memory(path).id)
        return tuple(str(memory_id) for memory_id in whole.merged_from)

    def create(self, path: str, text: str) -> File:
        """Write a new file; raise `Conflict` where the path is in use, `SecretFound` when the gate refuses the text."""
        self._check_free(checked(path))
        return self._write_file(path, text, NO_MEMORY)

    def write(self, path: str, text: str, *, if_hash: str) -> File:
        """Replace the text with this hash; raise `Conflict` where the file has another hash now."""
        self._require_memory(path)
        return self._write_file(path, text, if_hash)

    def replace(self, path: str, old: str, new: str) -> File:
        """Replace `old` by `new`; raise `InvalidInput` unless `old` is there exactly once."""

        def replaced(text: str) -> str:
            lines = lines_with(text, old)
            if len(lines) != 1:
                where = f"stands there {len(lines)} times, in lines {', '.join(map(str, lines))}" if lines else ""
                raise InvalidInput(
                    "old", f"Invalid old: It {where or 'does not stand'} in {path}; must stand there once"
                )
            return text.replace(old, new)

        return self._edit_file(path, replaced)

    def insert(self, path: str, line: int, text: str) -> File:
        """Insert a text after the line with this number, 0 for the beginning; the file then ends with its last line."""

        def inserted(whole: str) -> str:
            lines = lines_of(whole)
            if not 0 <= line <= len(lines):
                raise InvalidInput("line", f"Invalid line: Must be a whole number from 0 to {len(lines)}")
            lines.insert(line, text.rstrip("\n"))
            return "".join(f"{line}\n" for line in lines)

        return self._edit_file(path, inserted)

    def delete(self, path: str) -> int:
        """Delete a file, or all files of a folder, with their versions; return the number of files."""
        if checked(path) == "/":
            raise InvalidInput("path", "Invalid path: The root cannot be deleted")
        found = self._require_any(path)
        for memory in found:
            self._memory.forget(memory.id, scope=self._scope)
        return len(found)

    def rename(self, path: str, to: str) -> int:
        """Give a file or a folder another path that is not in use; return the number of files moved.

        Each file moves at once and keeps its versions; a reader may see a folder that is half moved.
        """
        if checked(path) == "/" or f"{checked(to)}/".startswith(f"{path}/"):
            raise InvalidInput("to", f"Invalid to: {path} cannot be moved to {to}")
        found = self._require_any(path)
        self._check_free(to)
        moves = [(memory, checked(to + (memory.key or "").removeprefix(path))) for memory in found]
        for memory, key in moves:
            self._memory.update_memory(memory.id, key=key)
        return len(found)

    def _edit_file(self, path: str, change: Callable[[str], str]) -> File:
        """Change a file, and try again where somebody else has changed it meanwhile."""
        for attempt in range(_ATTEMPTS):
            memory = self._require_memory(path)
            try:
                return self._write_file(path, change(memory.content), memory.content_hash)
            except Conflict:
                if attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _write_file(self, path: str, text: str, if_hash: str) -> File:
        """Store the text of a file if it still has this hash; raise for an empty or too large text."""
        if not text.strip():
            raise InvalidInput("text", f"Invalid text: {path} must hold some text; a file of none can only be deleted")
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_BYTES:
            raise TooLarge(f"A file has at most {MAX_BYTES} bytes (100 KB); {path} would have {size}.")
        self._memory.remember(text, key=path, if_hash=if_hash, scope=self._scope)
        return self.view(path)

    def _require_memory(self, path: str) -> Memory:
        found = self._find_memory(checked(path))
        if found is None:
            raise NotFound(f"There is no file {path}.")
        return found

    def _require_any(self, path: str) -> tuple[Memory, ...]:
        """Return the file at a path, or all files of that folder; raise `NotFound` without any."""
        file = self._find_memory(path)
        found = (file,) if file is not None else tuple(self._files_below(path))
        if not found:
            raise NotFound(f"There is no file or folder {path}.")
        return found

    def _check_free(self, path: str) -> None:
        """Raise `Conflict` where a path is taken by a file or a folder, or leads through a file."""
        above = [path[:at] for at in range(1, len(path)) if path[at] == "/"]
        if path == "/" or self._find_memory(path) is not None or next(self._files_below(path), None) is not None:
            raise Conflict(f"{path} exists already. Nothing was written.")
        if through := next((parent for parent in above if self._find_memory(parent) is not None), ""):
            raise Conflict(f"{through} is a file, not a folder. Nothing was written.")

    def _find_memory(self, path: str) -> Memory | None:
        return next(iter(self._first_memories(path, 1)), None)

    def _files_below(self, folder: str) -> Iterator[Memory]:
        """Yield all files below a folder."""
        prefix = folder if folder == "/" else f"{folder}/"
        after = None
        while True:
            page = self._list_page(prefix, MAX_LIMIT, after)
            yield from page.memories
            if (after := page.after) is None:
                return

    def _first_memories(self, key: str, limit: int) -> tuple[Memory, ...]:
        """Return the first memories with that key, or below it."""
        return self._list_page(key, limit).memories

    def _list_page(self, key: str, limit: int, after: str | None = None) -> Listed:
        """Return a page of the memories with that key, or below it; a replaced file is listed too."""
        return self._memory.list_memories(
            key=key, scope=self._scope, superseded=True, order=Order.OLDEST, limit=limit, after=after
        )


def checked(path: str) -> str:
    """Return a valid path of a file or folder; raise `InvalidInput` for any other."""
    names = path.split("/")[1:]
    if not _PLACE.fullmatch(path) or {".", ".."} & set(names) or any(name != name.strip() for name in names):
        raise InvalidInput(
            "path",
            f"Invalid path: `{path}`. Must begin with `/` and have names between single `/`, none of them `.` or `..`, "
            "without spaces at their ends",
        )
    if len(path) > MAX_NAME:
        raise InvalidInput("path", f"Invalid path: Must have at most {MAX_NAME} characters")
    return path


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; a newline at the end begins no further line."""
    return text.removesuffix("\n").split("\n")


def lines_with(text: str, part: str) -> list[int]:
    """Return the numbers of the lines in which a part of a text begins, the first line being 1."""
    found: list[int] = []
    at = text.find(part) if part else -1
    while at >= 0:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(part, at + 1)
    return found


def _info_of(memory: Memory) -> FileInfo:
    return FileInfo(
        path=memory.key or "",
        hash=memory.content_hash,
        size=len(memory.content.encode()),
        created_at=memory.created_at,
        updated_at=memory.updated_at,
    )


def _to_file(memory: Memory, path: str) -> File:
    return File(**asdict(_info_of(memory)) | {"path": path}, id=str(memory.id), text=memory.content)
