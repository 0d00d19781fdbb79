"""Reads files and sends them to where the store is, batch by batch: in this process or through a daemon."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from recollect.domain.enums import Scope, Sensitivity
from recollect.domain.fields import fold_part
from recollect.domain.origin import Origin, SaidBy
from recollect.domain.transfer import (
    IMPORT_COUNTS,
    FileSections,
    ImportBatch,
    Imported,
    ImportItem,
    ItemKind,
    MemoryLink,
    Problem,
)
from recollect.errors import InvalidInput, RecollectError
from recollect.transfer.conversations import Outside, any_tool
from recollect.transfer.formats import read_file
from recollect.transfer.import_paths import FoundFile
from recollect.transfer.own_transcripts import read_own_transcript

Send = Callable[[ImportBatch], Imported]
Progress = Callable[[int, int], None]
"""Takes how many bytes of the files are done, and how many memories and facts were sent."""

_BATCH_ITEMS: Final = 1_000
_BATCH_CHARACTERS: Final = 1_000_000
_MOST_PROBLEMS: Final = 200
_NOBODY: Final = 2**31 - 1  # an id that no memory has
_TARGETS: Final = ("superseded_by", "merged_into")
_WRITTEN: Final = ("new", "updated", "facts")
_COMPARED: Final = {
    ItemKind.MEMORY: ("content", "key", "scope", "sensitivity"),
    ItemKind.FACT: ("subject", "predicate", "object", "valid_from", "scope", "sensitivity"),
}


class _Waiting(NamedTuple):
    """An item that waits to be sent, and the file it comes from."""

    file: FileImport
    item: ImportItem


class FileImport:
    """One file on its way: what became of it so far, and which ids its memories have here."""

    def __init__(self, source: FoundFile) -> None:
        self.source = source
        self.counts = Counter[str]()
        self.problems: list[Problem] = []
        self.ids: dict[int, int] = {}
        self.uses_of_id = Counter[int]()
        self.links: list[tuple[str, dict[str, int]]] = []
        self.let_in: dict[str, bool] = {}  # the levels of sensitivity that the file names, as a request allows them
        self.error: InvalidInput | None = None
        self._untold = 0
        self._keys: set[tuple[str, str, str]] = set()

    def done(self) -> Imported:
        """Return the outcome of the file so far."""
        more = [Problem("", f"{self._untold} more problems.")] if self._untold else []
        counts: dict[str, Any] = {name: self.counts[name] for name in IMPORT_COUNTS}
        return Imported(**counts, problems=(*self.problems, *more))

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Keep the first problems, and count the others."""
        for problem in problems:
            if len(self.problems) < _MOST_PROBLEMS:
                self.problems.append(problem)
            else:
                self._untold += 1

    def accepts(self, item: ImportItem, scope: object) -> bool:
        """Note the item's links to others, and say whether to send it; `scope` is the scope chosen for all items."""
        if item.kind is ItemKind.MEMORY:
            if self._repeats_key(item, scope):
                self.counts["failed"] += 1
                self.add_problems([Problem(item.where, "Its key is that of an earlier memory in the file.")])
                return False
            self._note_links(item)
        if (level := str(item.fields.get("sensitivity")).strip().lower()) in ("private", "secret"):
            self.let_in[f"allow_{level}"] = True
        return True

    def links_here(self) -> list[MemoryLink]:
        """Return the links between memories, with their ids here, without ids that two memories of the file share."""
        found = []
        for where, named in self.links:
            here = {name: self.ids[id] for name, id in named.items() if self.uses_of_id[id] == 1 and id in self.ids}
            if "id" in here and len(here) > 1:
                found.append(MemoryLink(where=where, **here))
        return found

    def _repeats_key(self, item: ImportItem, scope: object) -> bool:
        """Say whether the key was in the file before: only one of the two can be that memory."""
        key = item.fields.get("key")
        if not isinstance(key, str) or not key.strip():
            return False
        place = scope or item.fields.get("scope") or Scope.PROJECT
        level = item.fields.get("sensitivity") or Sensitivity.PUBLIC
        own = (str(place).strip().lower(), str(level).strip().lower(), key.strip())
        known = own in self._keys
        self._keys.add(own)
        return known

    def _note_links(self, item: ImportItem) -> None:
        """Note the ids of the memories that an item replaces and has, for `links_here`."""
        named = {name: _id_or_zero(item.fields.get(name)) for name in ("id", *_TARGETS)}
        if any(item.fields.get(name) is not None for name in _TARGETS):
            self.links.append((item.where, named))
        if own := named["id"]:
            self.uses_of_id[own] += 1
            if self.uses_of_id[own] == 2:
                why = "Its number is that of an earlier memory in the file: what either gave way to is not known."
                self.add_problems([Problem(item.where, why)])


class Import:
    """Files on their way: `files` tells at any time what became of those that were begun.

    `outside_of` says what of a tool's use in one's own transcripts comes from outside.

    After `stop` it ends with `KeyboardInterrupt` once the batch that is on its way was answered, so
    that all that was written is counted.
    """

    def __init__(self, send: Send, options: dict[str, Any], outside_of: Outside = any_tool) -> None:
        self._send = send
        self._outside_of = outside_of
        self._options = options
        self.dry_run = bool(options.get("dry_run"))
        self._memories: list[_Waiting] = []
        self._facts: list[_Waiting] = []
        self._sections: list[tuple[FileImport, FileSections]] = []
        self._characters = 0
        self._let_in: dict[str, bool] = {}
        self._refused_kinds = Counter[str]()
        self._waiting = 0
        self._sent: set[bytes] = set()
        self._items = 0
        self.files: list[FileImport] = []
        self._stopping = False

    def stop(self) -> None:
        """Stop after the current batch; a second call stops at once."""
        if self._stopping:
            raise KeyboardInterrupt
        self._stopping = True

    def run(self, sources: Sequence[FoundFile], progress: Progress) -> None:
        """Send every file, then the links between replaced memories.

        A file that cannot be read to its end is noted, and the others are sent. Any other error on the way says what
        was written until then; to do it all again is to go on from there.
        """
        try:
            before = 0
            for source in sources:
                file = FileImport(source)
                self.files.append(file)
                self._send_file(file, lambda read, before=before: progress(before + read, self._items))  # type: ignore[misc]
                before += source.size
            self._send_queue(last=True)
            progress(before, self._items)
        except RecollectError as error:
            if any(sum(file.counts.values()) for file in self.files):
                message = f"{error} Before that: {self.total().message} Do the same again to go on from there."
                error.args = (message, *error.args[1:])
            raise

    def total(self) -> Imported:
        """Return the summed outcome of all files, without their problems."""
        counts = Counter[str]()
        for file in self.files:
            counts.update(file.counts)
        plain: dict[str, Any] = {name: counts[name] for name in IMPORT_COUNTS}
        return Imported(**plain, problems=(), refused_kinds=dict(self._refused_kinds), waiting=self._waiting)

    def _send_file(self, file: FileImport, progress: Callable[[int], None]) -> None:
        source = file.source
        try:
            for thing, read in self._read_source(source):
                if isinstance(thing, Problem):
                    file.counts["failed"] += 1
                    file.add_problems([thing])
                elif isinstance(thing, FileSections):
                    self._send_if_full(file, full=len(self._sections) == _BATCH_ITEMS)
                    self._sections.append((file, thing))
                elif file.accepts(thing, self._options.get("scope")) and self._queue_item(file, thing):
                    progress(read)
        except InvalidInput as error:
            file.error = error
            file.counts["failed"] += 1
            file.add_problems([Problem("", str(error))])
        if file.links and not self.dry_run:
            self._send_queue()
            links = file.links_here()
            for start in range(0, len(links), _BATCH_ITEMS):
                file.add_problems(self._ask(links=tuple(links[start : start + _BATCH_ITEMS])).problems)

    def _read_source(self, source: FoundFile) -> Iterator[tuple[ImportItem | Problem | FileSections, int]]:
        """Yield the items of a source, each with the number of bytes read so far."""
        if source.format is None:
            raise InvalidInput("file", source.problem)
        if source.own:
            return read_own_transcript(source.path, source.name, source.format, self._outside_of)
        found = read_file(source.path, source.name, source.format, source.member)
        if source.said_by is None:
            return found
        return ((_with_speaker(source.said_by, thing), read) for thing, read in found)

    def _queue_item(self, file: FileImport, item: ImportItem) -> bool:
        """Queue an item, and send the queue when it is full; return whether it was sent."""
        size = sum(len(value) for value in item.fields.values() if isinstance(value, str))
        stated = item.kind is ItemKind.FACT and item.fields.get("memory_id") is not None
        count = len(self._memories) + len(self._facts)
        full = count == _BATCH_ITEMS or (count > 0 and self._characters + size > _BATCH_CHARACTERS)
        sent = self._send_if_full(file, full=full or (stated and bool(self._memories)))
        waiting = self._memories if item.kind is ItemKind.MEMORY else self._facts
        waiting.append(_Waiting(file, self._with_id_here(file, item)))
        self._characters += size
        return sent

    def _send_if_full(self, file: FileImport, *, full: bool) -> bool:
        """Send the queue where it is full or where `file` has other options or ids; return whether it was sent."""
        others = any(last.file is not file for last in self._memories[-1:]) and bool(file.uses_of_id)
        turning = full or others or file.let_in != self._let_in
        if turning:
            self._send_queue()
        self._let_in = dict(file.let_in)
        return turning

    def _send_queue(self, *, last: bool = False) -> None:
        """Send the whole queue, memories first: they are embedded together, and facts may name them."""
        waiting = [*self._memories, *self._facts]
        sections = self._sections
        self._memories, self._facts, self._sections, self._characters = [], [], [], 0
        if not waiting and not sections and not last:
            return
        again = self._repeated_items(waiting)
        whole = [*again, *waiting]
        parts = tuple(section for _, section in sections)
        done = self._ask(items=tuple(entry.item for entry in whole), sections=parts, last=last)
        self._count_outcomes(whole, len(again), done, {section.where: file for file, section in sections})
        self._items += len(waiting)
        if self._stopping:
            raise KeyboardInterrupt

    def _repeated_items(self, waiting: Sequence[_Waiting]) -> list[_Waiting]:
        """Return the items that repeat items sent before; only a dry run has them, as it stores nothing."""
        if not self.dry_run:
            return []
        return [entry for entry in waiting if _digest_of_item(entry.item) in self._sent]

    def _ask(self, **parts: Any) -> Imported:
        return self._send(ImportBatch(**parts, **self._options | self._let_in))

    def _count_outcomes(
        self, items: Sequence[_Waiting], known: int, done: Imported, sections: dict[str, FileImport]
    ) -> None:
        """Add the outcomes of items to the counts of their files; the first `known` items were counted before."""
        files = {entry.item.where: entry.file for entry in items} | sections
        for entry, outcome in list(zip(items, done.outcomes, strict=True))[known:]:
            if outcome:
                entry.file.counts[outcome] += 1
            if self.dry_run and outcome in _WRITTEN:
                self._sent.add(_digest_of_item(entry.item))
        for problem in done.problems:
            files[problem.where].add_problems([problem])
        for file in files.values():
            if file.uses_of_id:
                file.ids.update(done.ids)
        self._refused_kinds.update(done.refused_kinds)
        self._waiting += done.waiting

    def _with_id_here(self, file: FileImport, item: ImportItem) -> ImportItem:
        """Replace the id of a fact's memory by its id in this store; in a dry run it has none."""
        if item.kind is not ItemKind.FACT or item.fields.get("memory_id") is None:
            return item
        here = file.ids.get(_id_or_zero(item.fields["memory_id"]))
        memory_id = None if self.dry_run and here else str(here or _NOBODY)
        return item.model_copy(update={"fields": item.fields | {"memory_id": memory_id}})


def _with_speaker(speaker: SaidBy, thing: ImportItem | Problem | FileSections) -> ImportItem | Problem | FileSections:
    """Return an item with the origin of its file's speaker."""
    if not isinstance(thing, ImportItem):
        return thing
    return thing.model_copy(update={"said": Origin(said_by=speaker, came_from=thing.where)})


def _id_or_zero(value: object) -> int:
    """Return a value as an id of the file, 0 for any other value."""
    return value if type(value) is int else 0


def _digest_of_item(item: ImportItem) -> bytes:
    """Return a digest that is equal for items that a store takes for the same."""
    values = [item.fields.get(name) for name in _COMPARED[item.kind]]
    texts = [fold_part(part) if item.kind is ItemKind.FACT and isinstance(part, str) else str(part) for part in values]
    return hashlib.sha256(json.dumps([item.kind, *texts]).encode()).digest()
