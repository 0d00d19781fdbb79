"""Finds the files to be imported: those named, and in folders those of a known format; what is passed over is counted.

Links inside a folder are not followed, so nothing outside of it is read. Of hidden folders only instructions are read.

What a file holds becomes something to write, or a problem: every string passes the gate before anything else.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple, TypeVar

from recollect.domain.enums import OnSecret, Scope, Sensitivity, Source, strictest
from recollect.domain.fields import MAX_NAME
from recollect.domain.origin import APPROVED, MOST_TRUST, Origin, SaidBy, in_words
from recollect.domain.requests import Caller
from recollect.domain.transfer import (
    IMPORT_COUNTS,
    FactRecord,
    ImportBatch,
    Imported,
    ImportFormat,
    ImportItem,
    MemoryRecord,
    Problem,
)
from recollect.environment import working_folder
from recollect.errors import Forbidden, InvalidInput, SecretFound
from recollect.gate import Cleared, clear
from recollect.projects import checkout_of
from recollect.transfer.conversations import USER
from recollect.transfer.formats import FORMATS, members_of, recognised
from recollect.transfer.instructions import is_instruction, speaker_of
from recollect.transfer.own_transcripts import is_own
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
    """Find what is to be imported of files, folders and patterns, each file once.

    In folders only `instructions` are taken if that is asked for, and `transcripts` of agents only if they are. A file
    that is empty, damaged or unreadable is among the files, with its problem. Raises `InvalidInput` for a named file
    that is not there or is of no known format, and where nothing is left, or only one file with a problem.
    """
    search = _Search(format, transcripts=transcripts, instructions=instructions)
    named = list(paths)
    for path in named:
        for one in _expanded(path):
            search.look_at(one)
    found = search.found
    if not found.files:
        passed = ", ".join(f"{count} {reason}" for reason, count in found.skipped.items())
        raise InvalidInput("paths", f"There is nothing to import in {', '.join(map(str, named))}. Skipped: {passed}.")
    if len(found.files) == 1 and found.files[0].problem:
        raise InvalidInput("file", found.files[0].problem)
    return found


def name_of(path: Path) -> str:
    """Return a file's path from the root of the checkout that one works in, else from the working folder.

    The path of a file elsewhere is whole, so that no two files have one name; undecodable bytes are escaped.
    """
    whole, root, home = path.parent.resolve() / path.name, working_root(), Path.home()
    inside, at_home = whole.is_relative_to(root), whole.is_relative_to(home)
    name = whole.relative_to(root) if inside else Path("~", whole.relative_to(home)) if at_home else whole
    return os.fsencode(name.as_posix()).decode(errors="backslashreplace")


def working_root() -> Path:
    """Return the root of the checkout around the working folder, else that folder."""
    here = working_folder()
    return checkout_of(here) or here


def _expanded(path: Path) -> list[Path]:
    """Return a path, or what the pattern in it matches where no file has that name."""
    whole = path.expanduser()
    if os.path.lexists(whole) or not glob.has_magic(str(path)):
        return [whole]
    matched = glob.glob(str(whole), recursive=True)  # noqa: PTH207 - as a shell does, it passes over hidden files
    return [Path(one) for one in sorted(matched)] or [whole]


class _Search:
    """One search for files; `found` is what it has found so far."""

    def __init__(self, format: ImportFormat | None, *, transcripts: bool, instructions: bool) -> None:
        self._format = format
        self._transcripts = transcripts
        self._instructions = instructions
        self._root = working_root()
        self._seen: set[tuple[tuple[int, int], str]] = set()
        self.found = FoundPaths()

    def look_at(self, path: Path) -> None:
        """Take a named file, or what is in a named folder."""
        if path.is_dir():
            for one in self._inside(path):
                self._take_found(one)
            return
        try:
            for member in members_of(path):
                self._take(path, member)
        except InvalidInput as error:
            if error.field == _FORMAT or not path.is_file():
                raise
            self._note_problem(path, "", str(error))

    def _inside(self, folder: Path) -> Iterator[Path]:
        """Yield the files below a folder in the order of their names, without any of a kind that nobody means."""
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            try:
                with os.scandir(here) as entries:
                    there = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                self._note_problem(here, "", f"{here} cannot be read: {error.strerror or error}.")
                continue
            if here != folder and _MARKERS & {one.name for one in there}:
                self._skip(LIBRARIES)
                continue
            below: list[Path] = []
            for one in there:
                path = Path(one.path)
                if (reason := _unwanted(one, path.relative_to(folder))) is not None:
                    self._skip(reason)
                elif one.is_dir(follow_symlinks=False):
                    below.append(path)
                else:
                    yield path
            waiting += reversed(below)

    def _take_found(self, path: Path) -> None:
        """Take a file out of a folder, or say why not: it is counted, or has a problem."""
        instruction = is_instruction(path)
        if self._instructions and not instruction:
            self._skip(OTHER_NOTES)
        elif path.suffix.lower() not in _SUFFIXES and not instruction:
            self._skip(UNKNOWN)
        else:
            try:
                for member in members_of(path):
                    self._take(path, member)
            except InvalidInput as error:
                if error.field == _FORMAT:
                    self._skip(UNKNOWN)
                else:
                    self._note_problem(path, "", str(error))

    def _take(self, path: Path, member: str) -> None:
        """Take a file; of a member of an archive that cannot be taken, say why and go on."""
        try:
            head = recognised(path, self._format, member)
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
            own = not member and is_own(path, head.format)
            said_by = speaker_of(path, self._root) if head.format is ImportFormat.MARKDOWN else None
            found = FoundFile(path, name, head.format, head.size, member, own, said_by=said_by)
            self.found.files.append(found)

    def _note_problem(self, path: Path, member: str, why: str) -> None:
        name = f"{name_of(path)}/{member}" if member else name_of(path)
        if all((one.path, one.member) != (path, member) for one in self.found.files):
            self.found.files.append(FoundFile(path, name, None, 0, member, problem=why))

    def _skip(self, reason: str) -> None:
        self.found.skipped[reason] += 1


def _unwanted(entry: os.DirEntry[str], inside: PurePath) -> str | None:
    """Say why an entry of a folder is passed over, if it is; `inside` is its path from the folder that was named."""
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


R = TypeVar("R", MemoryRecord, FactRecord)

CLAIMED: Final = "claimed-author:"
"""What the tag begins with that tells who wrote a memory, as the file has it."""
CLAIMED_ORIGIN: Final = "claimed-origin:"
"""The same of who said it, and where that stood."""
_MOST_TAGS: Final = 198  # beside those two


@dataclass(frozen=True, slots=True)
class CheckedMemory:
    """A memory out of a file that the gate let pass, and the namespace it goes to; `said` is what the file says.

    That may claim another author and any trust, what is written does not. `place` is its place in the batch.
    """

    place: int
    namespace: str
    cleared: Cleared[MemoryRecord]
    content_hash: str
    said: MemoryRecord
    former_key: str | None = None
    former_hash: str | None = None

    @property
    def record(self) -> MemoryRecord:
        """Return the memory."""
        return self.cleared.value


@dataclass(slots=True)
class Report:
    """What has become of a batch so far; `outcomes` are those of its items, by their places.

    `waiting` are the places of those that wait for a decision.
    """

    outcomes: dict[int, str] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    ids: list[tuple[int, int]] = field(default_factory=list)
    refusals: list[tuple[str, str, tuple[str, ...], Sensitivity]] = field(default_factory=list)

    def fail(self, place: int, where: str, why: str) -> None:
        """Note that an item cannot be written."""
        self.outcomes[place] = "failed"
        self.problems.append(Problem(where, why))

    def answer(self, size: int) -> Imported:
        """Return it, for a batch of so many items, as the noun that doors show."""
        found = Counter(self.outcomes.values())
        counts: dict[str, Any] = {name: found[name] for name in IMPORT_COUNTS}
        kinds = Counter(kind for _, _, several, _ in self.refusals for kind in several)
        outcomes = tuple(self.outcomes.get(place, "") for place in range(size))
        return Imported(
            **counts,
            problems=tuple(self.problems),
            refused_kinds=dict(kinds),
            waiting=len(self.waiting),
            ids=tuple(self.ids),
            outcomes=outcomes,
        )


@dataclass(frozen=True, slots=True)
class Checks:
    """Checks the items of one batch for one caller and notes in `report` what did not pass."""

    request: ImportBatch
    caller: Caller
    on_secret: OnSecret
    report: Report

    def memory(self, place: int, item: ImportItem) -> CheckedMemory | None:
        """Return a memory to be written, or note why there is none; `place` is that of the item in the batch."""
        category = {"category": self.request.category} if self.request.category else {}
        fact_type = {"fact_type": self.request.fact_type} if self.request.fact_type else {}
        fields = {"source": Source.IMPORT} | category | item.fields | fact_type
        found = self._checked(MemoryRecord, fields, place, item)
        if found is None:
            return None
        namespace, cleared, said = found
        content_hash = hashlib.sha256(cleared.value.content.encode()).hexdigest()
        return CheckedMemory(place, namespace, cleared, content_hash, said, item.former_key, item.former_hash)

    def fact(self, place: int, item: ImportItem) -> tuple[str, Cleared[FactRecord]] | None:
        """Return a fact to be written and its namespace, or note why there is none."""
        found = self._checked(FactRecord, item.fields, place, item)
        return None if found is None else found[:2]

    def _checked(
        self, record: type[R], fields: dict[str, Any], place: int, item: ImportItem
    ) -> tuple[str, Cleared[R], R] | None:
        where = item.where
        chosen: dict[str, Any] = {"origin": where} | ({"scope": self.request.scope} if self.request.scope else {})
        namespace, level = "", Sensitivity.PUBLIC
        try:
            found = self._at_level(record(**fields | chosen))
            namespace, level = self.caller.writable(self.caller.namespace(found.scope)), found.sensitivity or level
            return namespace, clear(self._marked(found, item.said), self.on_secret), found
        except SecretFound as error:
            self.report.outcomes[place] = "refused"
            self.report.refusals.append((namespace, error.field, error.kinds, level))
            why = f"Secret detection: found in `{error.field}`: {', '.join(error.kinds)}."
            self.report.problems.append(Problem(where, why))
        except (InvalidInput, Forbidden) as error:
            self.report.fail(place, where, str(error))
        except TypeError:
            self.report.fail(place, where, "It has a field that has no name here.")
        return None

    def _at_level(self, record: R) -> R:
        """Store nothing at a lower level than the one that was chosen for all."""
        if self.request.sensitivity is None:
            return record
        level = strictest(record.sensitivity or Sensitivity.PUBLIC, self.request.sensitivity)
        return record.model_copy(update={"sensitivity": level})

    def _marked(self, record: R, said: Origin | None) -> R:
        """Let nobody but the importer be the author; what else a file says of author and origin is a claim, in a tag.

        What names the importer comes back as it was, where they say that it is their own export. A file of a project
        counts as that in the scope of the project alone.
        """
        if self.request.own and record.author == self.caller.user:
            return record
        stamp = said or Origin(said_by=SaidBy.IMPORT, came_from=record.origin[:MAX_NAME])
        if stamp.said_by is SaidBy.FILE and record.scope is not Scope.PROJECT:
            stamp = Origin(said_by=SaidBy.IMPORT, came_from=stamp.came_from)
        origin: dict[str, Any] = {"said_by": stamp.said_by, "came_from": stamp.came_from or None}
        if not isinstance(record, MemoryRecord):
            return record.model_copy(update=origin)
        claims: list[str] = [] if record.author in (None, self.caller.user) else [f"{CLAIMED}{record.author}"]
        if record.said_by is not None:
            claims.append(f"{CLAIMED_ORIGIN}{in_words(record.said_by, record.came_from)}")
        marked: dict[str, Any] = {
            "trust": min(record.trust, MOST_TRUST[stamp.said_by]),
            "source": Source.IMPORT,
            "review": APPROVED if self._is_vouched_for(record, said) else None,
        } | origin
        if record.author is not None:
            marked["author"] = self.caller.user
        if claims:
            marked["tags"] = (*record.tags[:_MOST_TAGS], *(one[:MAX_NAME] for one in claims))
        return record.model_copy(update={name: one for name, one in marked.items() if one != getattr(record, name)})

    def _is_vouched_for(self, record: MemoryRecord, said: Origin | None) -> bool:
        """Say whether the importer calls the file their own, and a memory in it names nobody else as its speaker."""
        others = record.author is not None or record.said_by is not None or record.speaker not in (None, USER)
        return self.request.own and said is None and not others
