"""Import: stores one batch of items, each as if it had been remembered, and says what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from recollect.app import App
from recollect.domain.enums import Sensitivity
from recollect.domain.origin import APPROVED, Authority, Origin, SaidBy, before_stamps, least
from recollect.domain.requests import Caller, MemoryFields
from recollect.domain.results import Memory
from recollect.memory.embed import chunks_of
from recollect.memory.prepare_write import PreparedDraft, entry_for
from recollect.memory.reconcile import expired
from recollect.memory.review import NEW_SOURCE, decided_of, outranks
from recollect.store.entries import Chunk, ImportedMemory
from recollect.transfer.import_paths import CheckedMemory, Report
from recollect.transfer.markdown_export import shown_text

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import groupby
from typing import TYPE_CHECKING

from recollect.domain.enums import Scope, owned
from recollect.domain.results import Outcome, WriteStatus
from recollect.domain.transfer import (
    FactRecord,
    FileSections,
    ImportBatch,
    Imported,
    ImportItem,
    ItemKind,
    MemoryLink,
    MemoryRecord,
    Problem,
)
from recollect.errors import RecollectError
from recollect.gate import Cleared
from recollect.memory.embed import chunks_of_each
from recollect.memory.prepare_write import evict_surplus
from recollect.search.visibility import levels_with, parse_id
from recollect.store.entries import FactEntry
from recollect.transfer.import_paths import Checks

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

ChunksByHash = dict[str, tuple[Chunk, ...] | None]

_DRAFT: Final = frozenset(MemoryFields.model_fields)
_COMPARED: Final = _DRAFT - {"source", "scope", "content", "ttl_days"}


@dataclass(slots=True)
class NamespaceImport:
    """One namespace in one transaction: what is there, and what waits to be inserted."""

    app: App
    caller: Caller
    report: Report
    writing: Writing
    chunks: ChunksByHash
    dry: bool
    namespace: str
    in_step: bool = False
    rules: dict[str, bool | None] = field(default_factory=dict)
    stored: dict[int, Memory] = field(default_factory=dict)
    waiting: list[CheckedMemory] = field(default_factory=list)

    def write(self, some: Sequence[CheckedMemory]) -> None:
        """Write each memory in its turn; the new ones together, as far as none of them is there twice."""
        self._load(some)
        taken: set[tuple[Sensitivity, str]] = set()
        for one in some:
            level = one.record.sensitivity
            names = {(level, one.content_hash), *([(level, f"key:{one.record.key}")] if one.record.key else [])}
            if taken & names:
                self._insert()
                self._load([one])
            old, by_key = self._stored_as(one)
            if old is None:
                self.waiting.append(one)
                taken |= names
            else:
                self._update(one, old, by_key=by_key)
        self._insert()

    def _load(self, some: Iterable[CheckedMemory]) -> None:
        """Read what is there of these as it is now; what is known of others stays known."""
        wanted = list(some)
        keys = {key for one in wanted for key in (one.record.key, one.former_key) if key}
        found = self.writing.find(
            keys, {text for one in wanted for text in (one.content_hash, one.former_hash) if text}
        )
        self.stored.update((one.id, one) for one in found)

    def _stored_as(self, one: CheckedMemory) -> tuple[Memory | None, bool]:
        """Find the stored memory of this one: by key, text and time, or text; and whether the file may change it.

        Only what is stored at the level that the file says is looked at.
        """
        record = one.record
        alike = (old for old in self.stored.values() if old.sensitivity is record.sensitivity)
        stored = sorted(alike, key=lambda old: old.id)
        if record.key is not None and (named := next((old for old in stored if old.key == record.key), None)):
            return named, True
        if one.former_key and (moved := next((old for old in stored if old.key == one.former_key), None)):
            return moved, True
        same = [old for old in stored if old.content_hash == one.content_hash]
        if record.id is not None and (known := self._same_time(one, same)) is not None:
            return known, True
        former = (old for old in stored if one.former_hash and old.content_hash == one.former_hash)
        if (written_in := next((old for old in former if old.created_at == record.created_at), None)) is not None:
            return written_in, True
        if record.hidden:
            return None, False
        seen = (old for old in same if old.deleted_at is None and old.merged_into is None)
        return next((old for old in seen if record.key is None or old.key is None), None), False

    def _same_time(self, one: CheckedMemory, same: Sequence[Memory]) -> Memory | None:
        """Find the memory of the same text and time that is merged as the file says, or was restored here since."""
        record = one.record
        matching = [old for old in same if old.created_at == record.created_at and old.key == record.key]
        alike = [old for old in matching if (old.merged_into is None) == (record.merged_into is None)]
        if not alike and record.merged_into is not None:
            given = {here for _, here in self.report.ids}
            alike = [old for old in matching if old.id not in given]
        return next(iter(alike), None)

    def _update(self, one: CheckedMemory, old: Memory, *, by_key: bool) -> None:
        """Bring a memory that is there up to what the file says, unless it was changed or hidden here since.

        The text that it had is kept as a hidden memory.
        """
        record = one.record
        if record.id is not None:
            self.report.ids.append((record.id, old.id))
        may_change = by_key or (record.key is not None and old.key is None)
        hidden = old.deleted_at is not None or old.merged_into is not None
        passed = expired(old, self.app.clock()) and not hidden
        if self.in_step and by_key and old.deleted_at is not None and old.merged_into is None:
            hidden, passed = False, True
        newer_here = record.updated_at is not None and old.updated_at > record.updated_at
        if not may_change or hidden or not (passed or (not newer_here and _differs(one, old))):
            self._leave(one, old)
            return
        if outranks(old, _said(record)):
            self.report.outcomes[one.place] = "unchanged"
            why = f"Memory {old.id} was said by {old.origin}, which an import does not replace."
            why += " Your own export does, with `--own`." if record.id is not None else ""
            self.report.problems += [] if _same_text(one, old) else [Problem(record.origin, why)]
            return
        entry = self._entry(one, old).entry
        self.writing.update(old, entry, "update", revive=passed)
        self._load([one])
        self.report.outcomes[one.place] = "updated"
        self._note_waiting(one, entry.review)

    def _leave(self, one: CheckedMemory, old: Memory) -> None:
        """Leave a memory as it is; one that waits is approved where the importer calls the file it came from theirs."""
        hidden = old.deleted_at is not None or old.merged_into is not None
        same_source = old.stamp.source == _said(one.record).source
        approved = one.record.review == APPROVED and old.unapproved and same_source and not hidden
        if approved and not self.dry:
            self.writing.decide(old, APPROVED)
        self.report.outcomes[one.place] = "updated" if approved else "unchanged"
        self._note_waiting(one, APPROVED if approved or hidden else old.review)

    def _note_waiting(self, one: CheckedMemory, review: str | None) -> None:
        if review not in (None, APPROVED):
            self.report.waiting.add(one.place)

    def _insert(self) -> None:
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        entries = [self._entry(one, None) for one in waiting]
        ids = self.writing.insert_many(entries)
        for one, entry in zip(waiting, entries, strict=True):
            self._note_waiting(one, entry.entry.review)
        self.report.outcomes |= dict.fromkeys((one.place for one in waiting), "new")
        pairs = zip(waiting, ids, strict=True)
        self.report.ids += [(one.record.id, new) for one, new in pairs if one.record.id is not None]

    def _entry(self, one: CheckedMemory, old: Memory | None) -> ImportedMemory:
        record, now = one.record, self.app.clock()
        ready = PreparedDraft(one.cleared, one.content_hash, self._chunks_of(one, old))
        said = _said(record)
        entry = entry_for(self.app, ready, old, self.caller.user, said, self._review(record, said))
        given = entry.given & (_DRAFT if old is None else _DRAFT - {"source"})
        at = record.updated_at or record.created_at or now
        told = record.id is not None or record.expires_at is not None
        ends = record.expires_at if told else entry.expires_at
        return ImportedMemory(replace(entry, given=given, at=at, expires_at=ends), one.cleared)

    def _review(self, record: MemoryRecord, said: Origin) -> str | None:
        """Return why a memory waits for a decision: what comes from outside does until its source is approved."""
        if said.authority is not Authority.OUTSIDE or record.review is not None:
            return record.review
        if said.source not in self.rules:
            self.rules[said.source] = decided_of(self.app, self.namespace, said)
        return APPROVED if self.rules[said.source] else NEW_SOURCE

    def _chunks_of(self, one: CheckedMemory, old: Memory | None) -> tuple[Chunk, ...] | None:
        """Return the vectors; those of a text that was here, and is not now, are made at once."""
        if self.dry or (old is None and one.record.hidden) or (old and old.content_hash == one.content_hash):
            return None
        if one.content_hash in self.chunks:
            return self.chunks[one.content_hash]
        return chunks_of(self.app.embedder, one.record.content) if self.app.embedder.ready else None


def _said(record: MemoryRecord | FactRecord) -> Origin:
    if isinstance(record, FactRecord):  # an own export from before facts had an origin names none
        return Origin(said_by=record.said_by or SaidBy.PERSON, came_from=record.came_from or "")
    said_by = record.said_by or before_stamps(record.source, record.trust)
    return Origin(said_by=said_by, came_from=record.came_from or "")


def _same_text(one: CheckedMemory, old: Memory) -> bool:
    """Say whether the file has the stored text, or has it as an export in Markdown shows it and nobody wrote in it."""
    shown = one.former_hash == old.content_hash and shown_text(old.content) == shown_text(one.record.content)
    return one.content_hash == old.content_hash or shown


def _differs(one: CheckedMemory, old: Memory) -> bool:
    """Say whether the file says anything else than what is stored; an export of ours says all there is to say.

    Where it names the author that is stored here, it is taken at its word.
    """
    record = one.said if one.said.author == old.author else one.record
    given = record.model_fields_set & _COMPARED
    # a text that says nothing and one that is absent are the same here
    other = any((getattr(record, name) or None) != (getattr(old, name) or None) for name in given)
    ends = record.id is not None and record.expires_at != old.expires_at
    return not _same_text(one, old) or other or ends


TRANSACTION_MEMORIES: Final = 125
"""How many memories one transaction writes: few enough that others need not wait long for their turn."""
_LISTED: Final = 20
_NAME: Final = "import_batch"

Placed = tuple[int, ImportItem]
"""An item and its place in the batch."""


def import_batch(app: App, request: ImportBatch, caller: Caller, *, request_id: str = "") -> Imported:
    """Import a batch of memories and facts; what cannot be written is counted and reported with its place."""
    batch = _Batch(app, request, caller, request_id)
    for kind, items in groupby(enumerate(request.items), key=lambda one: one[1].kind):
        write = batch.memories if kind is ItemKind.MEMORY else batch.facts
        write(list(items))
    if not request.dry_run:
        batch.links(request.links)
        batch.journal_refusals()
    batch.compare(request.sections)
    if request.last and not request.dry_run:
        batch.end()
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
            self._write(next(self._runs(items, len(items))), {})
            return
        with ThreadPoolExecutor(1, thread_name_prefix="recollect-import") as ahead:
            ready = self._model_is_ready()
            runs = ahead.map(lambda run: (run, self._embedded(run, ready=ready)), self._runs(items))
            for run, chunks in runs:
                self._write(run, chunks)

    def facts(self, items: Sequence[Placed]) -> None:
        """Write facts that are not there yet, and that those which are hold no more."""
        checked = [(place, *one) for place, item in items if (one := self._checks.fact(place, item)) is not None]
        with self._importing(*(cleared.value.sensitivity for _, _, cleared in checked)) as namespaces:
            for place, namespace, cleared in checked:
                writing, fact = namespaces[namespace], cleared.value
                source = writing.by_id(parse_id(fact.memory_id) or 0) if fact.memory_id is not None else None
                if fact.memory_id is not None and source is None:
                    self.report.fail(place, fact.origin, "The memory that states this fact is not there.")
                elif writing.import_fact(self._fact_entry(cleared, source), cleared):
                    self.report.outcomes[place] = "facts"
            self._as_first_told(namespaces, [place for place, _, _ in checked])

    def links(self, links: Sequence[MemoryLink]) -> None:
        """Let memories give way to those that they gave way to where they come from."""
        if not links:
            return
        with self._importing() as namespaces:
            refused = [one for one in links if not any(writing.link(one) for writing in namespaces.values())]
        why = "It cannot give way to the memory that the file names; it stays out of recall until it is restored."
        self.report.problems += [Problem(one.where, why) for one in refused]

    def compare(self, files: Sequence[FileSections]) -> None:
        """Tell which sections of files were there once and are not any more."""
        if not files:
            return
        namespace = self._caller.namespace(self._request.scope or Scope.PROJECT)
        levels = levels_with(self._request)
        with self._app.records.writing(self._caller.writable(namespace), self._caller.user, levels) as transaction:
            found = transaction.keys_with_prefixes(one.prefix for one in files)
            gone = [sorted(found[one.prefix].keys() - one.keys) for one in files]
            if hides := self._request.in_step and not self._request.dry_run:
                for one, keys in zip(files, gone, strict=True):
                    for key in keys:
                        transaction.hide(found[one.prefix][key])
        for one, keys in zip(files, gone, strict=True):
            self._tell_gone(one, {key: found[one.prefix][key] for key in keys}, hidden=hides)

    def _tell_gone(self, sections: FileSections, gone: Mapping[str, int], *, hidden: bool) -> None:
        become = "is hidden; `undo` brings it back" if hidden else "stays"
        listed = list(gone.items())[:_LISTED]
        why = [f"The section `{key}` is not in the file any more; memory {number} {become}." for key, number in listed]
        if len(gone) > _LISTED:
            became = "are hidden" if hidden else "stay"
            why.append(f"{len(gone) - _LISTED} more sections are not in the file any more; their memories {became}.")
        self.report.problems += [Problem(sections.where, one) for one in why]

    def journal_refusals(self) -> None:
        """Journal what the gate refused: the fields and the kinds, never a value."""
        if self.report.refusals:
            with self._importing() as namespaces:
                for namespace, field, kinds, level in self.report.refusals:
                    namespaces[namespace].refuse(field, kinds, level)

    def end(self) -> None:
        """Keep to the store's size, and let the vector index know."""
        if self._app.retention_rules.max_memories:
            for namespace in self._app.records.existing_namespaces(self._caller.writable_namespaces()):
                levels = levels_with(self._request)
                with self._app.records.writing(namespace, self._caller.user, levels) as transaction:
                    evict_surplus(self._app, transaction, 0)
        self._app.records.request_sync()
        self._app.run_later(self._app.vectors.sync)  # where nothing works in the background, at once

    def _runs(self, items: Sequence[Placed], size: int = TRANSACTION_MEMORIES) -> Iterator[list[CheckedMemory]]:
        for start in range(0, len(items), size):
            part = items[start : start + size]
            yield [one for placed in part if (one := self._checks.memory(*placed)) is not None]

    def _model_is_ready(self) -> bool:
        """Wait for the model; where there is none, what is written is embedded as soon as there is one."""
        try:
            self._app.embedder.warm()
        except RecollectError:
            return False
        return True

    def _embedded(self, run: Sequence[CheckedMemory], *, ready: bool) -> ChunksByHash:
        """Embed what is neither here yet nor kept out of sight; without a model there is None for it."""
        fresh: dict[str, str] = {}
        for namespace in {one.namespace for one in run}:
            mine = [one for one in run if one.namespace == namespace and not one.record.hidden]
            levels = {owned(one.record.sensitivity, self._caller.user) for one in mine}
            known = self._app.records.known_hashes(namespace, {one.content_hash for one in mine}, tuple(levels))
            fresh |= {one.content_hash: one.record.content for one in mine if one.content_hash not in known}
        if not ready:
            return dict.fromkeys(fresh)
        return dict(zip(fresh, chunks_of_each(self._app.embedder, list(fresh.values())), strict=True))

    def _write(self, run: Sequence[CheckedMemory], chunks: ChunksByHash) -> None:
        """Write a run in one transaction and in its order, so that memories can keep their ids."""
        with self._importing(*(one.record.sensitivity for one in run)) as namespaces:
            for namespace, some in groupby(run, key=lambda one: one.namespace):
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
            self._as_first_told(namespaces, [one.place for one in run])

    def _as_first_told(self, namespaces: Mapping[str, Writing], places: Sequence[int]) -> None:
        """Keep what became of these items, in their transaction; where that was kept before, it is told again."""
        key, _, asked = self._request_id.partition("\n")
        if not (key and places):
            return
        writing, part = next(iter(namespaces.values())), f"{key} {places[0]}\n{asked}"
        if before := writing.previous_outcome(_NAME, part):
            self.report.outcomes |= {int(place): outcome for place, outcome in json.loads(before.notes[0]).items()}
            return
        told = {place: self.report.outcomes[place] for place in places if place in self.report.outcomes}
        writing.record_outcome(_NAME, part, Outcome(WriteStatus.STORED, str(places[0] + 1), (json.dumps(told),)))

    def _importing(self, *named: Sensitivity | None) -> AbstractContextManager[Mapping[str, Writing]]:
        """Open one transaction on all namespaces that the caller may write, for the levels let in and those `named`."""
        names, user = self._caller.writable_namespaces(), self._caller.user
        return self._app.records.importing(names, user, levels_with(self._request, *named), dry=self._request.dry_run)

    def _fact_entry(self, cleared: Cleared[FactRecord], source: Memory | None) -> FactEntry:
        fact, now = cleared.value, self._app.clock()
        return FactEntry(
            cleared=cleared,
            memory_id=parse_id(fact.memory_id or ""),
            sensitivity=fact.sensitivity or Sensitivity.PUBLIC,
            valid_from=fact.valid_from or fact.created_at or now,
            at=now,
            author=self._caller.user,
            stamp=least([_said(fact), *([source.stamp] if source else [])]),
        )
