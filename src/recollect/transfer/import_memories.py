"""Which memory of a namespace each memory out of a file is, and what is new, changed or as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from recollect.app import App
from recollect.domain.enums import Sensitivity
from recollect.domain.origin import APPROVED, Authority, Origin, SaidBy, speaker_before_stamps
from recollect.domain.requests import Caller, MemoryFields
from recollect.domain.results import Memory
from recollect.domain.transfer import FactRecord, MemoryRecord, Problem
from recollect.engines.chunks import Chunk, chunks_of
from recollect.memory.prepare_write import PreparedDraft, entry_for, new_entry
from recollect.memory.reconcile import expired
from recollect.memory.review import NEW_SOURCE, decision_on_source, outranks
from recollect.store.entries import ImportedMemory
from recollect.transfer.import_checks import CheckedMemory, Report
from recollect.transfer.markdown_export import shown_text

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
        """Write memories in order; new memories together, as long as none of them repeats another."""
        self._load_stored(some)
        taken: set[tuple[Sensitivity, str]] = set()
        for memory in some:
            level = memory.record.sensitivity
            names = {
                (level, memory.content_hash),
                *([(level, f"key:{memory.record.key}")] if memory.record.key else []),
            }
            if taken & names:
                self._insert_waiting()
                self._load_stored([memory])
            old, by_key = self._stored_memory(memory)
            if old is None:
                self.waiting.append(memory)
                taken |= names
            else:
                self._update_stored(memory, old, by_key=by_key)
        self._insert_waiting()

    def _load_stored(self, some: Iterable[CheckedMemory]) -> None:
        """Load the stored memories with the keys or texts of these; those loaded before stay."""
        wanted = list(some)
        keys = {key for memory in wanted for key in (memory.record.key, memory.former_key) if key}
        found = self.writing.lookup.by_keys_or_hashes(
            keys, {text for memory in wanted for text in (memory.content_hash, memory.former_hash) if text}
        )
        self.stored.update((memory.id, memory) for memory in found)

    def _stored_memory(self, memory: CheckedMemory) -> tuple[Memory | None, bool]:
        """Return the stored memory of an item, by key, text and time, or text, and whether the file may change it.

        Only memories at the level that the file names are compared.
        """
        record = memory.record
        alike = (old for old in self.stored.values() if old.sensitivity is record.sensitivity)
        stored = sorted(alike, key=lambda old: old.id)
        if record.key is not None and (named := next((old for old in stored if old.key == record.key), None)):
            return named, True
        if memory.former_key and (moved := next((old for old in stored if old.key == memory.former_key), None)):
            return moved, True
        same = [old for old in stored if old.content_hash == memory.content_hash]
        if record.id is not None and (known := self._with_same_time(memory, same)) is not None:
            return known, True
        former = (old for old in stored if memory.former_hash and old.content_hash == memory.former_hash)
        if (written_in := next((old for old in former if old.created_at == record.created_at), None)) is not None:
            return written_in, True
        if record.hidden:
            return None, False
        seen = (old for old in same if old.deleted_at is None and old.merged_into is None)
        return next((old for old in seen if record.key is None or old.key is None), None), False

    def _with_same_time(self, memory: CheckedMemory, same: Sequence[Memory]) -> Memory | None:
        """Return the memory of the same text and time that is merged as the file says, or was restored here since."""
        record = memory.record
        matching = [old for old in same if old.created_at == record.created_at and old.key == record.key]
        alike = [old for old in matching if (old.merged_into is None) == (record.merged_into is None)]
        if not alike and record.merged_into is not None:
            taken = {here for _, here in self.report.ids}
            alike = [old for old in matching if old.id not in taken]
        return next(iter(alike), None)

    def _update_stored(self, memory: CheckedMemory, old: Memory, *, by_key: bool) -> None:
        """Update a stored memory from the file, unless it was changed or hidden here since.

        Its former text is kept as a hidden memory.
        """
        record = memory.record
        if record.id is not None:
            self.report.ids.append((record.id, old.id))
        may_change = by_key or (record.key is not None and old.key is None)
        hidden = old.deleted_at is not None or old.merged_into is not None
        passed = expired(old, self.app.clock()) and not hidden
        if self.in_step and by_key and old.deleted_at is not None and old.merged_into is None:
            hidden, passed = False, True
        newer_here = record.updated_at is not None and old.updated_at > record.updated_at
        if not may_change or hidden or not (passed or (not newer_here and _differs_from_stored(memory, old))):
            self._leave_unchanged(memory, old)
            return
        if outranks(old, origin_of(record)):
            self.report.outcomes[memory.place] = "unchanged"
            why = f"Memory {old.id} was said by {old.origin}, which an import does not replace."
            why += " Your own export does, with `--own`." if record.id is not None else ""
            self.report.problems += [] if _is_same_text(memory, old) else [Problem(record.origin, why)]
            return
        entry = self._import_entry(memory, old).entry
        self.writing.memories.update(old, entry, "update", revive=passed)
        self._load_stored([memory])
        self.report.outcomes[memory.place] = "updated"
        self._note_waiting(memory, entry.review)

    def _leave_unchanged(self, memory: CheckedMemory, old: Memory) -> None:
        """Leave a memory as it is; a waiting memory is approved where the importer calls the file their own."""
        hidden = old.deleted_at is not None or old.merged_into is not None
        same_source = old.stamp.source == origin_of(memory.record).source
        approved = memory.record.review == APPROVED and old.unapproved and same_source and not hidden
        if approved and not self.dry:
            self.writing.reviews.decide(old, APPROVED)
        self.report.outcomes[memory.place] = "updated" if approved else "unchanged"
        self._note_waiting(memory, APPROVED if approved or hidden else old.review)

    def _note_waiting(self, memory: CheckedMemory, review: str | None) -> None:
        if review not in (None, APPROVED):
            self.report.waiting.add(memory.place)

    def _insert_waiting(self) -> None:
        """Insert the memories that wait for it, and note their ids."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        entries = [self._import_entry(memory, None) for memory in waiting]
        ids = self.writing.imports.insert(entries)
        for memory, entry in zip(waiting, entries, strict=True):
            self._note_waiting(memory, entry.entry.review)
        self.report.outcomes |= dict.fromkeys((memory.place for memory in waiting), "new")
        pairs = zip(waiting, ids, strict=True)
        self.report.ids += [(memory.record.id, new) for memory, new in pairs if memory.record.id is not None]

    def _import_entry(self, memory: CheckedMemory, old: Memory | None) -> ImportedMemory:
        """Return a memory of the file as the store takes it; `old` is the stored memory that it updates."""
        record, now = memory.record, self.app.clock()
        ready = PreparedDraft(memory.cleared, memory.content_hash, self._chunks_of(memory, old))
        origin = origin_of(record)
        app, user, review = self.app, self.caller.user, self._review_reason(record, origin)
        entry = entry_for(app, ready, old, user, origin, review) if old else new_entry(app, ready, user, origin, review)
        stated = entry.given & (_DRAFT if old is None else _DRAFT - {"source"})
        at = record.updated_at or record.created_at or now
        has_end = record.id is not None or record.expires_at is not None
        ends = record.expires_at if has_end else entry.expires_at
        return ImportedMemory(replace(entry, given=stated, at=at, expires_at=ends), memory.cleared)

    def _review_reason(self, record: MemoryRecord, origin: Origin) -> str | None:
        """Return why a memory waits for a decision; None where its source is approved or it comes from no outside."""
        if origin.authority is not Authority.OUTSIDE or record.review is not None:
            return record.review
        if origin.source not in self.rules:
            self.rules[origin.source] = decision_on_source(self.app, self.namespace, origin)
        return APPROVED if self.rules[origin.source] else NEW_SOURCE

    def _chunks_of(self, memory: CheckedMemory, old: Memory | None) -> tuple[Chunk, ...] | None:
        """Return the vectors of a memory; those of a text that was stored before, and now is not, are made at once."""
        if self.dry or (old is None and memory.record.hidden) or (old and old.content_hash == memory.content_hash):
            return None
        if memory.content_hash in self.chunks:
            return self.chunks[memory.content_hash]
        return chunks_of(self.app.embedder, memory.record.content) if self.app.embedder.ready else None


def origin_of(record: MemoryRecord | FactRecord) -> Origin:
    """Return the origin that a record states."""
    if isinstance(record, FactRecord):  # an own export from before facts had an origin names none
        return Origin(said_by=record.said_by or SaidBy.PERSON, came_from=record.came_from or "")
    said_by = record.said_by or speaker_before_stamps(record.source, record.trust)
    return Origin(said_by=said_by, came_from=record.came_from or "")


def _is_same_text(memory: CheckedMemory, old: Memory) -> bool:
    """Return whether the file has the stored text, or has it as an export in Markdown shows it, unedited."""
    shown = memory.former_hash == old.content_hash and shown_text(old.content) == shown_text(memory.record.content)
    return memory.content_hash == old.content_hash or shown


def _differs_from_stored(memory: CheckedMemory, old: Memory) -> bool:
    """Return whether the file says anything else than the stored memory; an export of Recollect says everything.

    The author in the file counts where it names the stored author.
    """
    record = memory.original if memory.original.author == old.author else memory.record
    compared = record.model_fields_set & _COMPARED
    # a text that says nothing and one that is absent are the same here
    other = any((getattr(record, name) or None) != (getattr(old, name) or None) for name in compared)
    ends = record.id is not None and record.expires_at != old.expires_at
    return not _is_same_text(memory, old) or other or ends
