"""Reads a file and sends it to where the store is, batch by batch: in this process or through a daemon."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from recollect.domain.enums import Scope, Sensitivity
from recollect.domain.fields import fold_part
from recollect.domain.transfer import (
    IMPORT_COUNTS,
    FileSections,
    ImportBatch,
    Imported,
    ImportFormat,
    ImportItem,
    ItemKind,
    MemoryLink,
    Problem,
)
from recollect.errors import RecollectError
from recollect.transfer.formats import Read, read_file

Send = Callable[[ImportBatch], Imported]
Progress = Callable[[int], None]

_BATCH_ITEMS: Final = 1_000
_BATCH_CHARACTERS: Final = 4_000_000
_MOST_PROBLEMS: Final = 200
_NOBODY: Final = 2**31 - 1  # an id that no memory has
_TARGETS: Final = ("superseded_by", "merged_into")
_COMPARED: Final = {
    ItemKind.MEMORY: ("content", "key", "scope", "sensitivity"),
    ItemKind.FACT: ("subject", "predicate", "object", "valid_from", "scope", "sensitivity"),
}


def count_items(path: Path, format: ImportFormat | None) -> int:
    """Read a file to its end and return how many things it holds; raise `InvalidInput` when it cannot be read."""
    return sum(1 for _ in read_file(path, name_of(path), format))


def send_file(
    send: Send, path: Path, format: ImportFormat | None, options: dict[str, Any], progress: Progress
) -> Imported:
    """Send a file and return what became of it all; `progress` gets the number of things done."""
    return _FileImport(send, options).run(_counted(read_file(path, name_of(path), format), progress))


def name_of(path: Path) -> str:
    """Return a file's path from the root of the checkout that one works in, else from the working folder.

    The path of a file elsewhere is whole, so that no two files have one name; undecodable bytes are escaped.
    """
    whole, here, home = path.parent.resolve() / path.name, Path.cwd(), Path.home()
    root = next((one for one in (here, *here.parents) if (one / ".git").exists()), here)
    inside, at_home = whole.is_relative_to(root), whole.is_relative_to(home)
    name = whole.relative_to(root) if inside else Path("~", whole.relative_to(home)) if at_home else whole
    return os.fsencode(name.as_posix()).decode(errors="backslashreplace")


class _FileImport:
    """One file on its way: what became of it so far, and which ids its memories have here."""

    def __init__(self, send: Send, options: dict[str, Any]) -> None:
        self._send = send
        self._options = options
        self._dry = bool(options.get("dry_run"))
        self._counts = Counter[str]()
        self._problems: list[Problem] = []
        self._untold = 0
        self._ids: dict[int, int] = {}
        self._uses_of_id = Counter[int]()
        self._links: list[tuple[str, dict[str, int]]] = []
        self._keys: set[tuple[str, str, str]] = set()
        self._let_in: dict[str, bool] = {}  # the levels of sensitivity that the file names, as a request allows them
        self._sections: FileSections | None = None
        self._sent: set[bytes] = set()

    def run(self, things: Read) -> Imported:
        """Send everything in its order, then which memory gave way to which; return what became of it all.

        An error on the way says what was written until then.
        """
        try:
            self._send_all(things)
        except RecollectError as error:
            if any(self._counts.values()):
                error.args = (f"{error} Before that: {self._done().message}", *error.args[1:])
            raise
        return self._done()

    def _send_all(self, things: Read) -> None:
        for batch in _batches(self._accepted(things)):
            self._send_items([self._with_id_here(one) for one in batch])
        links = [] if self._dry else list(self._links_here())
        for start in range(0, len(links), _BATCH_ITEMS):
            self._count(self._ask(links=tuple(links[start : start + _BATCH_ITEMS])))
        self._count(self._ask(sections=self._sections, last=True))

    def _done(self) -> Imported:
        """Return what became of all that was sent."""
        more = [Problem("", f"{self._untold} more problems.")] if self._untold else []
        counts: dict[str, Any] = {name: self._counts[name] for name in IMPORT_COUNTS}
        return Imported(**counts, problems=(*self._problems, *more))

    def _accepted(self, things: Read) -> Iterator[ImportItem]:
        for one in things:
            if isinstance(one, FileSections):
                self._sections = one
            elif isinstance(one, Problem):
                self._tell([one], failed=1)
            elif one.kind is ItemKind.MEMORY and self._repeats_key(one):
                self._tell([Problem(one.where, "Its key is that of an earlier memory in the file.")], failed=1)
            else:
                if one.kind is ItemKind.MEMORY:
                    self._note_links(one)
                if (level := str(one.fields.get("sensitivity")).strip().lower()) in ("private", "secret"):
                    self._let_in[f"allow_{level}"] = True
                yield one

    def _tell(self, problems: Sequence[Problem], **counts: int) -> None:
        """Keep the first problems, and count the others."""
        self._counts.update(counts)
        room = _MOST_PROBLEMS - len(self._problems)
        self._problems += problems[:room]
        self._untold += len(problems[room:])

    def _ask(self, **parts: Any) -> Imported:
        return self._send(ImportBatch(**parts, **self._options | self._let_in))

    def _send_items(self, batch: Sequence[ImportItem]) -> None:
        """Send a batch; a dry run stores nothing, so earlier items that it repeats go first, and count once."""
        marks = [_mark(one) for one in batch] if self._dry else []
        before = tuple(one for one, mark in zip(batch, marks, strict=False) if mark in self._sent)
        self._sent.update(marks)
        if before:
            alone = self._ask(items=before)
            self._counts.subtract(alone.counts)
            self._count(self._ask(items=(*before, *batch)), len(alone.problems))
        else:
            self._count(self._ask(items=tuple(batch)))

    def _count(self, done: Imported, known: int = 0) -> None:
        self._tell(done.problems[known:], **done.counts)
        self._ids.update(done.ids)

    def _repeats_key(self, one: ImportItem) -> bool:
        """Say whether the key was in the file before: only one of the two can be that memory."""
        key = one.fields.get("key")
        if not isinstance(key, str) or not key.strip():
            return False
        scope = self._options.get("scope") or one.fields.get("scope") or Scope.PROJECT
        level = one.fields.get("sensitivity") or Sensitivity.PUBLIC
        own = (str(scope).strip().lower(), str(level).strip().lower(), key.strip())
        known = own in self._keys
        self._keys.add(own)
        return known

    def _note_links(self, one: ImportItem) -> None:
        named = {name: _id(one.fields.get(name)) for name in ("id", *_TARGETS)}
        if any(one.fields.get(name) is not None for name in _TARGETS):
            self._links.append((one.where, named))
        if own := named["id"]:
            self._uses_of_id[own] += 1
            if self._uses_of_id[own] == 2:
                why = "Its number is that of an earlier memory in the file: what either gave way to is not known."
                self._tell([Problem(one.where, why)])

    def _with_id_here(self, one: ImportItem) -> ImportItem:
        """Let a fact name its memory by the id it has here; in a dry run, where it has none, by no id."""
        if one.kind is not ItemKind.FACT or one.fields.get("memory_id") is None:
            return one
        here = self._ids.get(_id(one.fields["memory_id"]))
        memory_id = None if self._dry and here else str(here or _NOBODY)
        return one.model_copy(update={"fields": one.fields | {"memory_id": memory_id}})

    def _links_here(self) -> Iterator[MemoryLink]:
        """Yield which memory gave way to which, but for ids that two memories of the file have."""
        for where, named in self._links:
            here = {
                name: self._ids[one] for name, one in named.items() if self._uses_of_id[one] == 1 and one in self._ids
            }
            if "id" in here and len(here) > 1:
                yield MemoryLink(where=where, **here)


def _counted(things: Read, progress: Progress) -> Read:
    for done, one in enumerate(things, 1):
        yield one
        progress(done)


def _id(value: object) -> int:
    """Return an id of the file, or 0 for what is none."""
    return value if type(value) is int else 0


def _mark(one: ImportItem) -> bytes:
    """Return what is the same for all items that a store takes for the same."""
    values = [one.fields.get(name) for name in _COMPARED[one.kind]]
    texts = [fold_part(part) if one.kind is ItemKind.FACT and isinstance(part, str) else str(part) for part in values]
    return hashlib.sha256(json.dumps([one.kind, *texts]).encode()).digest()


def _batches(items: Iterable[ImportItem]) -> Iterator[list[ImportItem]]:
    """Cut what is to be sent: facts come after the ids of all memories before them are known."""
    batch: list[ImportItem] = []
    characters = 0
    for one in items:
        size = sum(len(value) for value in one.fields.values() if isinstance(value, str))
        turning = batch and one.kind is not batch[-1].kind
        if turning or len(batch) == _BATCH_ITEMS or (batch and characters + size > _BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(one)
        characters += size
    if batch:
        yield batch
