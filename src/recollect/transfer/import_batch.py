"""Import: stores one batch of items, each as if it had been remembered, and says what became of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import groupby
from typing import TYPE_CHECKING, Final

from recollect.app import App
from recollect.domain.enums import Scope, Sensitivity, owned
from recollect.domain.origin import least_trusted
from recollect.domain.requests import Caller
from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.domain.transfer import (
    FactRecord,
    FileSections,
    ImportBatch,
    Imported,
    ImportItem,
    ItemKind,
    MemoryLink,
    Problem,
)
from recollect.engines.chunks import chunks_of_each
from recollect.errors import RecollectError
from recollect.gate import Cleared
from recollect.memory.prepare_write import evict_memory
from recollect.search.visibility import levels_of_write, parse_id
from recollect.store.entries import FactEntry
from recollect.transfer.import_checks import CheckedMemory, Checks, Report
from recollect.transfer.import_memories import ChunksByHash, NamespaceImport, origin_of

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

TRANSACTION_MEMORIES: Final = 125
"""How many memories one transaction writes: few enough that others need not wait long for their turn."""
_LISTED: Final = 20
_NAME: Final = "import_batch"

Placed = tuple[int, ImportItem]
"""An item and its place in the batch."""


def import_batch(app: App, request: ImportBatch, caller: Caller, *, request_id: str = "") -> Imported:
    """Import a batch of memories and facts; what cannot be written is counted and reported with its place."""
    batch = _Batch(app, request, caller, request_id)
    for kind, items in groupby(enumerate(request.items), key=lambda placed: placed[1].kind):
        write = batch.memories if kind is ItemKind.MEMORY else batch.facts
        write(list(items))
    if not request.dry_run:
        batch.links(request.links)
        batch.journal_refusals()
    batch.report_missing_sections(request.sections)
    if request.last and not request.dry_run:
        batch.finish()
    return batch.report.answer(len(request.items))


class _Batch:
    """One batch for one caller."""

    def __init__(self, app: App, request: ImportBatch, caller: Caller, request_id: str) -> None:
        self._app = app
        self._request = request
        self._caller = caller
        self._request_id = request_id
        self.report = Report()
        self._checks = Checks(request, caller, request.on_secret or app.on_secret, self.report)

    def memories(self, items: Sequence[Placed]) -> None:
        """Write memories, one run in a transaction, while the model reads the next; a dry run is one transaction."""
        if self._request.dry_run:
            self._write_run(next(self._checked_runs(items, len(items))), {})
            return
        with ThreadPoolExecutor(1, thread_name_prefix="recollect-import") as ahead:
            ready = self._wait_for_model()
            runs = ahead.map(lambda run: (run, self._chunks_of_run(run, ready=ready)), self._checked_runs(items))
            for run, chunks in runs:
                self._write_run(run, chunks)

    def facts(self, items: Sequence[Placed]) -> None:
        """Write facts that are not stored yet, and the ends of stored facts that hold no more."""
        checked = [(place, *passed) for place, item in items if (passed := self._checks.fact(place, item)) is not None]
        with self._open_namespaces(*(cleared.value.sensitivity for _, _, cleared in checked)) as namespaces:
            for place, namespace, cleared in checked:
                writing, fact = namespaces[namespace], cleared.value
                source = writing.lookup.by_id(parse_id(fact.memory_id) or 0) if fact.memory_id is not None else None
                if fact.memory_id is not None and source is None:
                    self.report.fail(place, fact.origin, "The memory that states this fact is not there.")
                elif writing.facts.insert_imported(self._fact_entry(cleared, source), cleared):
                    self.report.outcomes[place] = "facts"
            self._outcomes_once(namespaces, [place for place, _, _ in checked])

    def links(self, links: Sequence[MemoryLink]) -> None:
        """Restore the links by which memories replace each other, as in the store they come from."""
        if not links:
            return
        with self._open_namespaces() as namespaces:
            refused = [link for link in links if not any(writing.imports.link(link) for writing in namespaces.values())]
        why = "It cannot give way to the memory that the file names; it stays out of recall until it is restored."
        self.report.problems += [Problem(link.where, why) for link in refused]

    def report_missing_sections(self, files: Sequence[FileSections]) -> None:
        """Report the stored sections of files that the files no longer have."""
        if not files:
            return
        namespace = self._caller.namespace(self._request.scope or Scope.PROJECT)
        levels = levels_of_write(self._request)
        with self._app.records.writing(self._caller.writable(namespace), self._caller.user, levels) as transaction:
            found = transaction.lookup.keys_with_prefixes(sections.prefix for sections in files)
            gone = [sorted(found[sections.prefix].keys() - sections.keys) for sections in files]
            if hides := self._request.in_step and not self._request.dry_run:
                for sections, keys in zip(files, gone, strict=True):
                    for key in keys:
                        transaction.memories.hide(found[sections.prefix][key])
        for sections, keys in zip(files, gone, strict=True):
            self._report_missing(sections, {key: found[sections.prefix][key] for key in keys}, hidden=hides)

    def _report_missing(self, sections: FileSections, gone: Mapping[str, int], *, hidden: bool) -> None:
        """Report the sections that a file no longer has; `hidden` says whether their memories were hidden."""
        become = "is hidden; `undo` brings it back" if hidden else "stays"
        listed = list(gone.items())[:_LISTED]
        why = [f"The section `{key}` is not in the file any more; memory {number} {become}." for key, number in listed]
        if len(gone) > _LISTED:
            became = "are hidden" if hidden else "stay"
            why.append(f"{len(gone) - _LISTED} more sections are not in the file any more; their memories {became}.")
        self.report.problems += [Problem(sections.where, reason) for reason in why]

    def journal_refusals(self) -> None:
        """Journal what the gate refused: the fields and the kinds, never a value."""
        if self.report.refusals:
            with self._open_namespaces() as namespaces:
                for namespace, field, kinds, level in self.report.refusals:
                    namespaces[namespace].journal.refuse(field, kinds, level)

    def finish(self) -> None:
        """Remove the memories above the store's limit, and update the vector index."""
        if most := self._app.retention_rules.max_memories:
            for namespace in self._app.records.namespaces.existing(self._caller.writable_namespaces()):
                levels = levels_of_write(self._request)
                with self._app.records.writing(namespace, self._caller.user, levels) as transaction:
                    for memory_id in transaction.retention.surplus(most, 0):
                        evict_memory(transaction, memory_id)
        self._app.records.request_sync()
        self._app.run_later(self._app.vectors.sync)  # where nothing works in the background, at once

    def _checked_runs(self, items: Sequence[Placed], size: int = TRANSACTION_MEMORIES) -> Iterator[list[CheckedMemory]]:
        """Yield the items that pass the checks, in groups of at most `size`."""
        for start in range(0, len(items), size):
            part = items[start : start + size]
            yield [checked for placed in part if (checked := self._checks.memory(*placed)) is not None]

    def _wait_for_model(self) -> bool:
        """Wait for the model and return whether it is ready; else the texts are embedded as soon as it is."""
        try:
            self._app.embedder.warm()
        except RecollectError:
            return False
        return True

    def _chunks_of_run(self, run: Sequence[CheckedMemory], *, ready: bool) -> ChunksByHash:
        """Return the chunks by hash of the texts that are not stored yet and not hidden; None without a model."""
        fresh: dict[str, str] = {}
        for namespace in {memory.namespace for memory in run}:
            mine = [memory for memory in run if memory.namespace == namespace and not memory.record.hidden]
            levels = {owned(memory.record.sensitivity, self._caller.user) for memory in mine}
            known = self._app.records.known_hashes(namespace, {memory.content_hash for memory in mine}, tuple(levels))
            fresh |= {memory.content_hash: memory.record.content for memory in mine if memory.content_hash not in known}
        if not ready:
            return dict.fromkeys(fresh)
        return dict(zip(fresh, chunks_of_each(self._app.embedder, list(fresh.values())), strict=True))

    def _write_run(self, run: Sequence[CheckedMemory], chunks: ChunksByHash) -> None:
        """Write a run in a single transaction and in its order, so that memories can keep their ids."""
        with self._open_namespaces(*(memory.record.sensitivity for memory in run)) as namespaces:
            for namespace, some in groupby(run, key=lambda memory: memory.namespace):
                importing = NamespaceImport(
                    self._app,
                    self._caller,
                    self.report,
                    namespaces[namespace],
                    chunks,
                    self._request.dry_run,
                    namespace,
                    self._request.in_step,
                )
                importing.write(list(some))
            self._outcomes_once(namespaces, [memory.place for memory in run])

    def _outcomes_once(self, namespaces: Mapping[str, Writing], places: Sequence[int]) -> None:
        """Record the outcomes of these items in their transaction; a repeated request gets the recorded outcomes."""
        key, _, asked = self._request_id.partition("\n")
        if not (key and places):
            return
        writing, part = next(iter(namespaces.values())), f"{key} {places[0]}\n{asked}"
        if before := writing.outcomes.previous(_NAME, part):
            self.report.outcomes |= {int(place): outcome for place, outcome in json.loads(before.notes[0]).items()}
            return
        outcomes = {place: self.report.outcomes[place] for place in places if place in self.report.outcomes}
        writing.outcomes.record(_NAME, part, Outcome(WriteStatus.STORED, str(places[0] + 1), (json.dumps(outcomes),)))

    def _open_namespaces(self, *named: Sensitivity | None) -> AbstractContextManager[Mapping[str, Writing]]:
        """Open a transaction on all namespaces that the caller may write, for the levels let in and those `named`."""
        names, user = self._caller.writable_namespaces(), self._caller.user
        return self._app.records.importing(
            names, user, levels_of_write(self._request, *named), dry=self._request.dry_run
        )

    def _fact_entry(self, cleared: Cleared[FactRecord], source: Memory | None) -> FactEntry:
        """Return a fact as the store takes it, with the memory that it comes from."""
        fact, now = cleared.value, self._app.clock()
        return FactEntry(
            cleared=cleared,
            memory_id=parse_id(fact.memory_id or ""),
            sensitivity=fact.sensitivity or Sensitivity.PUBLIC,
            valid_from=fact.valid_from or fact.created_at or now,
            at=now,
            author=self._caller.user,
            stamp=least_trusted([origin_of(fact), *([source.stamp] if source else [])]),
        )
