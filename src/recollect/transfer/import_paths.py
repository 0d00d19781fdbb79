"""Finds the files to be imported: those named, and in folders those of a known format; what is passed over is counted.

Links inside a folder are not followed, so nothing outside of it is read. Of hidden folders only instructions are read.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from recollect.domain.origin import SaidBy
from recollect.domain.transfer import ImportFormat
from recollect.environment import working_folder
from recollect.errors import InvalidInput
from recollect.projects import checkout_of
from recollect.transfer.formats import FORMATS, archive_members, recognise_file
from recollect.transfer.instructions import is_instruction, speaker_of
from recollect.transfer.own_transcripts import is_own_transcript
from recollect.transfer.reading import LARGEST_FILE

_SUFFIXES: Final = frozenset({".md", ".markdown", ".mdc", ".json", ".jsonl", ".db", ".sqlite", ".sqlite3", ".zip"})
_HIDDEN: Final = frozenset({".claude", ".codex", ".cursor", ".gemini", ".github", ".windsurf"})
"""Hidden folders in which agents keep instructions; of other files in them none is read."""
LIBRARY_FOLDERS: Final = frozenset({"node_modules", "bower_components", "site-packages", "__pycache__"})
_MARKERS: Final = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
"""Files of folders that some tool made and can make again."""

_FORMAT: Final = "format"
"""The field of an error that says a file is sound, but of no known format."""

HIDDEN: Final = "hidden files and folders"
LIBRARIES: Final = "folders of libraries and caches"
LINKS: Final = "links"
SPECIAL: Final = "pipes, devices and sockets"
LARGE: Final = f"files larger than {LARGEST_FILE // 2**20} MiB"
UNKNOWN: Final = "files of no known format"
TRANSCRIPTS: Final = "transcripts of agents (`--transcripts` takes them)"
OTHER_NOTES: Final = "files that are no instructions"


class FoundFile(NamedTuple):
    """A file to be imported: the name that its memories' keys begin with, its format, its size in bytes.

    `member` is the one of an archive that is meant. An `own` one is a transcript that this user's agent wrote here.
    `said_by` is whose words an instruction file holds. A file with a `problem` cannot be read, and has no format.
    """

    path: Path
    name: str
    format: ImportFormat | None
    size: int
    member: str = ""
    own: bool = False
    problem: str = ""
    said_by: SaidBy | None = None


@dataclass(frozen=True, slots=True)
class FoundPaths:
    """The files to be imported in their order, and how much was passed over, by reason."""

    files: list[FoundFile] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def find_files(
    paths: Iterable[Path],
    format: ImportFormat | None = None,
    *,
    transcripts: bool = False,
    instructions: bool = False,
) -> FoundPaths:
    """Find the files to import among files, folders and patterns, each file once.

    In folders only `instructions` are taken if that is asked for, and `transcripts` of agents only if they are. A file
    that is empty, damaged or unreadable is among the files, with its problem. Raises `InvalidInput` for a named file
    that is not there or is of no known format, and where nothing is left, or only one file with a problem.
    """
    search = _Search(format, transcripts=transcripts, instructions=instructions)
    named = list(paths)
    for path in named:
        for path_found in _expand_pattern(path):
            search.add_path(path_found)
    found = search.found
    if not found.files:
        passed = ", ".join(f"{count} {reason}" for reason, count in found.skipped.items())
        raise InvalidInput("paths", f"There is nothing to import in {', '.join(map(str, named))}. Skipped: {passed}.")
    if len(found.files) == 1 and found.files[0].problem:
        raise InvalidInput("file", found.files[0].problem)
    return found


def name_of(path: Path) -> str:
    """Return a file's path from the root of the current checkout, else from the working folder.

    The path of a file elsewhere is whole, so that no two files have the same name; undecodable bytes are escaped.
    """
    whole, root, home = path.parent.resolve() / path.name, working_root(), Path.home()
    inside, at_home = whole.is_relative_to(root), whole.is_relative_to(home)
    name = whole.relative_to(root) if inside else Path("~", whole.relative_to(home)) if at_home else whole
    return os.fsencode(name.as_posix()).decode(errors="backslashreplace")


def working_root() -> Path:
    """Return the root of the checkout around the working folder, else that folder."""
    here = working_folder()
    return checkout_of(here) or here


def _expand_pattern(path: Path) -> list[Path]:
    """Return a path, or the matches of the pattern in it where no file has that name."""
    whole = path.expanduser()
    if os.path.lexists(whole) or not glob.has_magic(str(path)):
        return [whole]
    matched = glob.glob(str(whole), recursive=True)  # noqa: PTH207 - as a shell does, it passes over hidden files
    return [Path(match) for match in sorted(matched)] or [whole]


class _Search:
    """One search for files; `found` is what it has found so far."""

    def __init__(self, format: ImportFormat | None, *, transcripts: bool, instructions: bool) -> None:
        self._format = format
        self._transcripts = transcripts
        self._instructions = instructions
        self._root = working_root()
        self._seen: set[tuple[tuple[int, int], str]] = set()
        self.found = FoundPaths()

    def add_path(self, path: Path) -> None:
        """Add a named file, or the files in a named folder."""
        if path.is_dir():
            for file in self._files_below(path):
                self._add_found(file)
            return
        try:
            for member in archive_members(path):
                self._add_file(path, member)
        except InvalidInput as error:
            if error.field == _FORMAT or not path.is_file():
                raise
            self._note_problem(path, "", str(error))

    def _files_below(self, folder: Path) -> Iterator[Path]:
        """Yield the files below a folder in the order of their names, without hidden, ignored or installed files."""
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            try:
                with os.scandir(here) as entries:
                    there = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                self._note_problem(here, "", f"{here} cannot be read: {error.strerror or error}.")
                continue
            if here != folder and _MARKERS & {entry.name for entry in there}:
                self._skip(LIBRARIES)
                continue
            below: list[Path] = []
            for entry in there:
                path = Path(entry.path)
                if (reason := _skip_reason(entry, path.relative_to(folder))) is not None:
                    self._skip(reason)
                elif entry.is_dir(follow_symlinks=False):
                    below.append(path)
                else:
                    yield path
            waiting += reversed(below)

    def _add_found(self, path: Path) -> None:
        """Add a file of a folder, or count the reason why it is skipped, or note its problem."""
        instruction = is_instruction(path)
        if self._instructions and not instruction:
            self._skip(OTHER_NOTES)
        elif path.suffix.lower() not in _SUFFIXES and not instruction:
            self._skip(UNKNOWN)
        else:
            try:
                for member in archive_members(path):
                    self._add_file(path, member)
            except InvalidInput as error:
                if error.field == _FORMAT:
                    self._skip(UNKNOWN)
                else:
                    self._note_problem(path, "", str(error))

    def _add_file(self, path: Path, member: str) -> None:
        """Add a file; note the problem of an archive's member that cannot be added, and go on."""
        try:
            head = recognise_file(path, self._format, member)
        except InvalidInput as error:
            if not member:
                raise
            if error.field == _FORMAT:
                self._skip(UNKNOWN)
            else:
                self._note_problem(path, member, str(error))
            return
        if (head.place, member) in self._seen:
            return
        self._seen.add((head.place, member))
        format = FORMATS[head.format]
        if format.transcript and not (self._transcripts or self._format):
            self._skip(TRANSCRIPTS)
        elif head.size > LARGEST_FILE and not format.streamed:
            self._skip(LARGE)
        else:
            name = f"{name_of(path)}/{member}" if member else name_of(path)
            own = not member and is_own_transcript(path, head.format)
            said_by = speaker_of(path, self._root) if head.format is ImportFormat.MARKDOWN else None
            found = FoundFile(path, name, head.format, head.size, member, own, said_by=said_by)
            self.found.files.append(found)

    def _note_problem(self, path: Path, member: str, why: str) -> None:
        name = f"{name_of(path)}/{member}" if member else name_of(path)
        if all((file.path, file.member) != (path, member) for file in self.found.files):
            self.found.files.append(FoundFile(path, name, None, 0, member, problem=why))

    def _skip(self, reason: str) -> None:
        self.found.skipped[reason] += 1


def _skip_reason(entry: os.DirEntry[str], inside: PurePath) -> str | None:
    """Return why an entry of a folder is skipped, None where it is not; `inside` is its path from the named folder."""
    if entry.is_symlink():
        return LINKS
    if not entry.is_dir(follow_symlinks=False) and not entry.is_file(follow_symlinks=False):
        return SPECIAL
    if entry.is_dir(follow_symlinks=False) and entry.name in LIBRARY_FOLDERS:
        return LIBRARIES
    hidden = next((part for part in inside.parts if part.startswith(".")), None)
    if hidden is None or (entry.is_file(follow_symlinks=False) and is_instruction(inside)):
        return None
    if hidden in _HIDDEN and entry.is_dir(follow_symlinks=False):
        return None
    return HIDDEN
