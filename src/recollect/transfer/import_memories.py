"""Which memory of a namespace each memory out of a file is, and what is new, changed or as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from recollect.app import App
from recollect.domain.enums import Sensitivity
from recollect.domain.requests import Caller, MemoryFields
from recollect.domain.results import Memory
from recollect.operations.embed import chunks_of
from recollect.operations.prepare_write import PreparedDraft, entry_for
from recollect.policy.reconcile import expired
from recollect.store.entries import Chunk, ImportedMemory
from recollect.transfer.import_checks import CheckedMemory, Report

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
        keys = {one.record.key for one in wanted if one.record.key}
        found = self.writing.find(keys, {one.content_hash for one in wanted})
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
        same = [old for old in stored if old.content_hash == one.content_hash]
        if record.id is not None and (known := self._same_time(one, same)) is not None:
            return known, True
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
        newer_here = record.updated_at is not None and old.updated_at > record.updated_at
        if not may_change or hidden or not (passed or (not newer_here and _differs(one, old))):
            self.report.outcomes[one.place] = "unchanged"
            return
        if one.content_hash != old.content_hash:
            self.writing.archive(old)
        self.writing.update(old, self._entry(one, old).entry, "update", revive=passed)
        self._load([one])
        self.report.outcomes[one.place] = "updated"

    def _insert(self) -> None:
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return
        ids = self.writing.insert_many([self._entry(one, None) for one in waiting])
        self.report.outcomes |= dict.fromkeys((one.place for one in waiting), "new")
        pairs = zip(waiting, ids, strict=True)
        self.report.ids += [(one.record.id, new) for one, new in pairs if one.record.id is not None]

    def _entry(self, one: CheckedMemory, old: Memory | None) -> ImportedMemory:
        record, now = one.record, self.app.clock()
        ready = PreparedDraft(one.cleared, one.content_hash, self._chunks_of(one, old))
        entry = entry_for(self.app, ready, old, self.caller.user)
        given = entry.given & (_DRAFT if old is None else _DRAFT - {"source"})
        at = record.updated_at or record.created_at or now
        told = record.id is not None or record.expires_at is not None
        ends = record.expires_at if told else entry.expires_at
        return ImportedMemory(replace(entry, given=given, at=at, expires_at=ends), one.cleared)

    def _chunks_of(self, one: CheckedMemory, old: Memory | None) -> tuple[Chunk, ...] | None:
        """Return the vectors; those of a text that was here, and is not now, are made at once."""
        if self.dry or (old is None and one.record.hidden) or (old and old.content_hash == one.content_hash):
            return None
        if one.content_hash in self.chunks:
            return self.chunks[one.content_hash]
        return chunks_of(self.app.embedder, one.record.content) if self.app.embedder.ready else None


def _differs(one: CheckedMemory, old: Memory) -> bool:
    """Say whether the file says anything else than what is stored; an export of ours says all there is to say.

    Where it names the author that is stored here, it is taken at its word.
    """
    record = one.said if one.said.author == old.author else one.record
    given = record.model_fields_set & _COMPARED
    # a text that says nothing and one that is absent are the same here
    other = any((getattr(record, name) or None) != (getattr(old, name) or None) for name in given)
    ends = record.id is not None and record.expires_at != old.expires_at
    return one.content_hash != old.content_hash or other or ends
