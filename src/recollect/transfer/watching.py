"""Keeps a folder of Markdown notes and its memories in step: reads what differs from the last time, then each change.

The folder is what holds: what is gone from it is hidden, and what comes back to it is in sight again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from recollect.domain.transfer import FileSections, ImportBatch, Imported, ImportFormat, ImportItem, ItemKind
from recollect.errors import InvalidInput
from recollect.private_files import write_private
from recollect.transfer import ignore_files
from recollect.transfer.formats import read_file
from recollect.transfer.import_client import FileImport, Import
from recollect.transfer.import_paths import LIBRARY_FOLDERS, FoundFile, name_of
from recollect.transfer.instructions import MARKDOWN

LARGEST_NOTE: Final = 4 * 2**20
"""Bytes: what is larger is no note."""
_TOO_LARGE: Final = f"It is larger than {LARGEST_NOTE // 2**20} MiB."
_BINARY: Final = "It is no text."
_MOST: Final = 1_000  # files of one message

Send = Callable[[ImportBatch], Imported]


class Change(NamedTuple):
    """What became of a note: `+` is new, `~` has changed, `>` was moved, `-` is gone, `!` is left out."""

    sign: str
    note: str
    detail: str

    def __str__(self) -> str:
        return f"{self.sign} {self.note}  {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class _Note:
    """A note as it was read last: size, time, a digest of its text, and what the keys of its memories begin with.

    `why` says why it was left out, where it was.
    """

    size: int
    changed: int
    digest: str
    prefix: str
    why: str = ""


class Vault:
    """A folder of notes; `file` is where what was read of it is kept, `options` are those of an import."""

    def __init__(self, folder: Path, file: Path, send: Send, options: dict[str, Any]) -> None:
        if not folder.is_dir():
            raise InvalidInput("watch", f"Invalid watch: {folder} is no folder")
        self._folder = folder.resolve()
        self._file = file
        self._send = send
        self._options = options | {"in_step": True}
        self._base, self._notes = self._load_state()

    def step(self) -> Iterator[Change]:
        """Import the notes that changed since the last time, and yield the outcome of each note."""
        there = dict(_notes_in(self._folder))
        seen = {name: self._read_note(name, path) for name, path in there.items() if self._is_changed(name, path)}
        gone = {name: note for name, note in self._notes.items() if name not in there}
        if not seen and not gone:
            return
        moved = self._moved_notes(seen, gone)
        prefixes = {seen[name].prefix: gone[old].prefix for name, old in moved.items()}
        read = [name for name, note in seen.items() if not note.why]
        files = self._import_notes([self._note_file(there[name], name) for name in read], prefixes)
        yield from self._hide_deleted(set(gone) - set(moved.values()))
        for name, note in seen.items():
            known, done = self._notes.get(name), files.get(name)
            prefix = f"{self._base}/{name}"
            if note.why or done is None:
                yield Change("!", prefix, note.why)
            elif name in moved:
                yield Change(">", prefix, f"was {self._base}/{moved[name]}; {_change_text(done)}")
            else:
                yield Change("~" if known and not known.why else "+", prefix, _change_text(done))
            self._notes[name] = note
        for name in gone:
            del self._notes[name]
        self._save_state()

    def follow(self, stop: threading.Event) -> Iterator[Change]:
        """Yield the changes since the last time, then each further change, until `stop` is set."""
        from watchfiles import watch

        changes = watch(
            self._folder,
            watch_filter=None,
            stop_event=stop,
            raise_interrupt=False,
            rust_timeout=500,
            yield_on_timeout=True,
        )
        next(changes, None)  # from here on no change is missed
        yield from self.step()
        for some in changes:
            if some:
                yield from self.step()

    def _note_file(self, path: Path, name: str) -> FoundFile:
        return FoundFile(path, f"{self._base}/{name}", ImportFormat.MARKDOWN, path.stat().st_size)

    def _is_changed(self, name: str, path: Path) -> bool:
        known, there = self._notes.get(name), path.stat()
        return known is None or (known.size, known.changed) != (there.st_size, there.st_mtime_ns)

    def _read_note(self, name: str, path: Path) -> _Note:
        """Return a note as it is now, or the reason why it is left out."""
        there = path.stat()
        known = self._notes.get(name)
        prefix = known.prefix if known else ""
        if there.st_size > LARGEST_NOTE:
            return _Note(there.st_size, there.st_mtime_ns, "", prefix, _TOO_LARGE)
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if not _is_text(data):
            return _Note(there.st_size, there.st_mtime_ns, digest, prefix, _BINARY)
        things = read_file(path, f"{self._base}/{name}", ImportFormat.MARKDOWN)
        prefix = next(thing.prefix for thing, _ in things if isinstance(thing, FileSections))
        return _Note(there.st_size, there.st_mtime_ns, digest, prefix)

    def _moved_notes(self, seen: dict[str, _Note], gone: dict[str, _Note]) -> dict[str, str]:
        """Return the former name of each new note that was moved, by its new name."""
        left = {note.digest: name for name, note in gone.items() if note.digest and not note.why}
        new = ((name, note) for name, note in seen.items() if name not in self._notes and not note.why)
        return {name: left.pop(note.digest) for name, note in new if note.digest in left}

    def _import_notes(self, files: Sequence[FoundFile], moved: dict[str, str]) -> dict[str, FileImport]:
        """Import notes; a `moved` note updates its memories, which had another prefix of their keys."""

        def send(batch: ImportBatch) -> Imported:
            return self._send(
                batch.model_copy(update={"items": tuple(_with_former_key(item, moved) for item in batch.items)})
            )

        importing = Import(send, self._options)
        importing.run(files, lambda *_: None)
        start = len(self._base) + 1
        return {file.source.name[start:]: file for file in importing.files}

    def _hide_deleted(self, names: set[str]) -> Iterator[Change]:
        """Hide the memories of deleted notes; a file that was no note is only dropped from the state."""
        ordered = sorted(names)
        for start in range(0, len(ordered), _MOST):
            sections = tuple(
                FileSections(where=f"{self._base}/{name}", prefix=note.prefix, keys=frozenset())
                for name in ordered[start : start + _MOST]
                if (note := self._notes[name]).prefix
            )
            every = {"allow_private": True, "allow_secret": True}
            done = self._send(ImportBatch(sections=sections, last=True, **self._options | every))
            why: dict[str, list[str]] = {}
            for problem in done.problems:
                why.setdefault(problem.where, []).append(problem.why)
            for name in ordered[start : start + _MOST]:
                yield Change("-", f"{self._base}/{name}", " ".join(why.get(f"{self._base}/{name}", [])))

    def _load_state(self) -> tuple[str, dict[str, _Note]]:
        """Return the name that the folder has in keys, as at its first time, and the notes read last."""
        try:
            state = json.loads(self._file.read_text(encoding="utf-8"))
            return str(state["name"]), {name: _Note(**note) for name, note in state["notes"].items()}
        except (OSError, ValueError, KeyError, TypeError):  # the first time, or none of ours
            return name_of(self._folder), {}

    def _save_state(self) -> None:
        """Write the folder, its name and the notes read last to the state file."""
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        notes = {
            name: {
                "size": note.size,
                "changed": note.changed,
                "digest": note.digest,
                "prefix": note.prefix,
                "why": note.why,
            }
            for name, note in self._notes.items()
        }
        write_private(self._file, json.dumps({"folder": str(self._folder), "name": self._base, "notes": notes}))


def state_file(home: Path, folder: Path, caller: Sequence[str]) -> Path:
    """Return the state file, in a data folder, of a watched folder and a caller."""
    own = "\n".join((str(folder.resolve()), *caller))
    return home / "watched" / f"{hashlib.sha256(own.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.json"


def _with_former_key(item: ImportItem, moved: Mapping[str, str]) -> ImportItem:
    """Return an item of a moved note with the key that it had before."""
    key = str(item.fields.get("key", ""))
    prefix = next((each for each in moved if item.kind is ItemKind.MEMORY and key.startswith(each)), None)
    if prefix is None:
        return item
    return item.model_copy(update={"former_key": moved[prefix] + key.removeprefix(prefix)})


def _change_text(done: FileImport) -> str:
    counts = [f"{count} {name}" for name, count in done.counts.items() if count]
    return "; ".join([", ".join(counts) or "nothing new", *(problem.why for problem in done.problems)])


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _notes_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each note below a folder with its path from there; no hidden or ignored files, no libraries, no links."""
    waiting: list[tuple[Path, tuple[ignore_files.Rules, ...]]] = [(folder, ())]
    while waiting:
        here, rules = waiting.pop()
        if own := ignore_files.ignore_rules(here):
            rules = (*rules, own)
        try:
            with os.scandir(here) as entries:
                there = sorted(entries, key=lambda entry: entry.name)
        except OSError:  # it is gone meanwhile, or may not be looked at
            continue
        for entry in there:
            path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
            if (
                entry.name.startswith(".")
                or entry.is_symlink()
                or ignore_files.ignores(rules, path, is_folder=is_folder)
            ):
                continue
            if is_folder and entry.name not in LIBRARY_FOLDERS:
                waiting.append((path, rules))
            elif entry.is_file(follow_symlinks=False) and path.suffix.lower() in MARKDOWN:
                yield os.fsencode(path.relative_to(folder).as_posix()).decode(errors="backslashreplace"), path
