"""Anthropic's memory tool, which Claude uses as a folder `/memories`, over `Files`; the answers are those it knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from anyio.to_thread import run_sync

from recollect.client.connection import Connection
from recollect.domain.enums import Scope
from recollect.errors import NotFound, RecollectError
from recollect.frameworks.files import File, FileInfo, Files, lines_with

ROOT: Final = "/memories"
_DEPTH: Final = 2
_AROUND: Final = 2  # lines shown before and after an edit
_MOST_LINES: Final = 999_999
_WIDTH: Final = len(str(_MOST_LINES))
_KIB: Final = 1024


class MemoryTool(BetaAbstractMemoryTool):
    """One of the `tools` of `client.beta.messages.tool_runner`; its files are those of one scope under `/memories`."""

    def __init__(
        self,
        memory: Connection,
        *,
        scope: Scope = Scope.PROJECT,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = Files(memory, scope=scope)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or the entries of a folder up to two levels below it."""
        path = _check_path(command.path)
        with _raising_tool_errors():
            file = self._find_file(path)
            if file is not None:
                return _numbered_text(file, command.view_range)
            below = self._files_below(path)
        if not below and path != ROOT:
            raise ToolError(f"The path {command.path} does not exist. Please provide a valid path.")
        return _folder_text(path, below)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Write a new file."""
        path = _check_path(command.path)
        with _raising_tool_errors():
            if self._find_file(path) is not None:
                raise ToolError(f"File {command.path} already exists")
            self._files.create(path, command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands in a file exactly once, and show the lines around it."""
        path, old = _check_path(command.path), command.old_str
        with _raising_tool_errors():
            file = self._require_file(path, command.path)
            lines = lines_with(file.text, old)
            if not lines:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                )
            if len(lines) > 1:
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                    f"{', '.join(map(str, lines))}. Please ensure it is unique"
                )
            changed = self._files.replace(path, old, command.new_str).text.split("\n")
        first = max(0, lines[0] - 1 - _AROUND)
        shown = _number_lines(changed[first : lines[0] + _AROUND], first + 1)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text behind a line of a file, 0 being its beginning."""
        path, line = _check_path(command.path), command.insert_line
        with _raising_tool_errors():
            most = self._require_file(path, command.path).lines
            if not 0 <= line <= most:
                raise ToolError(f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {most}].")
            self._files.insert(path, line, command.insert_text)
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file or a folder for good."""
        path = _check_path(command.path)
        if path == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        with _raising_tool_errors(missing=f"The path {command.path} does not exist"):
            self._files.delete(path)
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or a folder another path."""
        path, to = _check_path(command.old_path), _check_path(command.new_path)
        if path == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        with _raising_tool_errors(missing=f"The path {command.old_path} does not exist"):
            if to == ROOT or self._find_file(to) is not None or self._files_below(to):
                raise ToolError(f"The destination {command.new_path} already exists")
            self._files.rename(path, to)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Delete all files under `/memories` for good."""
        with _raising_tool_errors():
            if self._files_below(ROOT):
                self._files.delete(ROOT)
        return "All memory cleared"

    def _find_file(self, path: str) -> File | None:
        try:
            return self._files.view(path)
        except NotFound:
            return None

    def _require_file(self, path: str, typed: str) -> File:
        """Return the file at a path; raise `ToolError` where there is none, or a folder."""
        file = self._find_file(path)
        if file is None and (path == ROOT or self._files_below(path)):
            raise ToolError(f"The path {typed} is not a file.")
        if file is None:
            raise ToolError(f"The path {typed} does not exist. Please provide a valid path.")
        return file

    def _files_below(self, path: str) -> tuple[FileInfo, ...]:
        try:
            return self._files.list(path)
        except NotFound:
            return ()


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for an asynchronous client: each command runs in a thread, so that none holds up the event loop."""

    def __init__(
        self,
        memory: Connection,
        *,
        scope: Scope = Scope.PROJECT,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(memory, scope=scope)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or what a folder holds up to two levels below it."""
        return await run_sync(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Write a new file."""
        return await run_sync(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands in a file exactly once, and show the lines around it."""
        return await run_sync(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text behind a line of a file, 0 being its beginning."""
        return await run_sync(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file or a folder for good."""
        return await run_sync(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or a folder another path."""
        return await run_sync(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Delete all files under `/memories` for good."""
        return await run_sync(self._tool.clear_all_memory)


@contextmanager
def _raising_tool_errors(missing: str = "") -> Iterator[None]:
    """Raise an error of ours as the result that the model gets; `missing` is the sentence for a missing file."""
    try:
        yield
    except NotFound as error:
        raise ToolError(missing or str(error)) from error
    except RecollectError as error:
        raise ToolError(str(error)) from error


def _check_path(path: str) -> str:
    """Return a path under `/memories` without a `/` at its end; raise `ToolError` for any other path."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    if ".." in path.split("/"):
        raise ToolError(f"Path {path} would escape {ROOT} directory")
    return path.rstrip("/")


def _numbered_text(file: File, wanted: list[int] | None) -> str:
    """Return the lines of a file with their numbers, of the `wanted` range where the model names one."""
    lines = file.text.split("\n")
    if len(lines) > _MOST_LINES:
        raise ToolError(f"File {file.path} exceeds maximum line limit of 999,999 lines.")
    start, stop = 0, len(lines)
    if wanted is not None and len(wanted) == 2:
        start = max(1, wanted[0]) - 1
        stop = len(lines) if wanted[1] == -1 else wanted[1]
    return f"Here's the content of {file.path} with line numbers:\n{_number_lines(lines[start:stop], start + 1)}"


def _number_lines(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _folder_text(path: str, files: tuple[FileInfo, ...]) -> str:
    """Return a folder as text: each file and folder up to two levels below it, with its size."""
    whole: dict[str, Any] = {}
    for file in files:
        *folders, name = file.path.removeprefix(f"{path}/").split("/")
        place = whole
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = file.size
    lines = [
        f"{_size_text(_size_of_folder(whole))}\t{path}",
        *(f"{_size_text(size)}\t{path}/{name}" for name, size in _walk_folder(whole, _DEPTH)),
    ]
    header = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([header, *lines])


def _walk_folder(folder: dict[str, Any], depth: int, above: str = "") -> Iterator[tuple[str, int]]:
    """Yield path and size in bytes of each entry that is not hidden, down to this depth."""
    for name in sorted(entry for entry in folder if not entry.startswith(".")):
        if isinstance(folder[name], int):
            yield above + name, folder[name]
            continue
        yield f"{above}{name}/", _size_of_folder(folder[name])
        if depth > 1:
            yield from _walk_folder(folder[name], depth - 1, f"{above}{name}/")


def _size_of_folder(folder: dict[str, Any]) -> int:
    return sum(entry if isinstance(entry, int) else _size_of_folder(entry) for entry in folder.values())


def _size_text(count: float) -> str:
    units = iter("BKM")
    unit = next(units)
    while count >= _KIB and (larger := next(units, "")):
        count, unit = count / _KIB, larger
    return f"{count:.0f}{unit}" if count == int(count) else f"{count:.1f}{unit}"
