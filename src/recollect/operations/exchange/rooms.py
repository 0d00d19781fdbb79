"""One namespace while a file is brought in: which memory each thing is, and what is new, changed or as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from recollect.domain import Caller, Memory
from recollect.operations.embed import chunks_of
from recollect.operations.entry import Ready, entry_of
from recollect.operations.exchange.checking import Checked, Tally
from recollect.policy.reconcile import expired
from recollect.ports import App, Bringing, Brought, Chunk

_UNTOLD: Final = frozenset({"source", "scope", "content", "ttl_days"})


class Room:
    """One namespace in one transaction: what is there, and what waits to be inserted."""

    def __init__(
        self,
        app: App,
        caller: Caller,
        tally: Tally,
        bringing: Bringing,
        namespace: str,
        chunks: dict[str, tuple[Chunk, ...] | None],
        *,
        dry: bool,
    ) -> None:
        self._app = app
        self._caller = caller
        self._tally = tally
        self._bringing = bringing
        self._namespace = namespace
        self._chunks = chunks
        self._dry = dry
        self._there: list[Memory] = []
        self._waiting: list[Checked] = []

    def take(self, some: Sequence[Checked]) -> None:
        """Write each thing in its turn; the new ones together, as far as none of them is there twice."""
        self._look(some)
        taken: set[str] = set()
        for one in some:
            names = {one.content_hash, f"key:{one.draft.key}"} if one.draft.key else {one.content_hash}
            if taken & names:
                self._insert()
                self._look([one])
            old, by_key = self._old(one)
            if old is None:
                self._waiting.append(one)
                taken |= names
            else:
                self._again(one, old, by_key=by_key)
        self._insert()

    def _look(self, some: Iterable[Checked]) -> None:
        """Read what is there of these as it is now; what is known of others stays known."""
        wanted = list(some)
        keys = {one.draft.key for one in wanted if one.draft.key}
        found = self._bringing.standing(self._namespace, keys, {one.content_hash for one in wanted})
        self._there = sorted({old.id: old for old in (*self._there, *found)}.values(), key=lambda old: old.id)

    def _old(self, one: Checked) -> tuple[Memory | None, bool]:
        """Find the memory that this one is: by its key, by its text and time, or else by its text."""
        key = one.draft.key
        if key is not None and (named := next((old for old in self._there if old.key == key), None)):
            return named, True
        same = [old for old in self._there if old.content_hash == one.content_hash]
        if one.ours and (twin := self._twin(one, same)) is not None:
            return twin, True
        if one.hidden:
            return None, False
        seen = [old for old in same if old.deleted_at is None and old.merged_into is None]
        return next((old for old in seen if key is None or old.key is None), None), False

    def _twin(self, one: Checked, same: Sequence[Memory]) -> Memory | None:
        """Find the memory of the same text and time; one and what it took up are two, though they may say the same.

        What was merged may have been restored here since.
        """
        kept = one.kept.value
        twins = [old for old in same if old.created_at == kept.created_at and old.key == one.draft.key]
        alike = [old for old in twins if (old.merged_into is None) == (kept.merged_into is None)]
        if not alike and kept.merged_into is not None:
            given = {here for _, here in self._tally.ids}
            alike = [old for old in twins if old.id not in given]
        return next(iter(alike), None)

    def _again(self, one: Checked, old: Memory, *, by_key: bool) -> None:
        """Bring a memory that is there up to what the file says, unless it was changed or hidden here since."""
        if one.kept.value.id is not None:
            self._tally.ids.append((one.kept.value.id, old.id))
        told = by_key or (one.draft.key is not None and old.key is None)
        passed = expired(old, self._app.clock()) and old.deleted_at is None
        since = one.kept.value.updated_at
        newer_here = since is not None and old.updated_at > since
        hidden = old.deleted_at is not None or old.merged_into is not None
        current = not passed and (newer_here or not _differs(one, old))
        if not told or hidden or current:
            self._tally.unchanged += 1
        else:
            brought = self._brought(one, old)
            entry = replace(brought.entry, given=brought.entry.given - {"source"})
            self._bringing.update(self._namespace, old, Brought(entry, brought.kept), revive=passed)
            self._look([one])
            self._tally.updated += 1

    def _insert(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        ids = self._bringing.insert(self._namespace, [self._brought(one, None) for one in waiting])
        self._tally.new += len(ids)
        pairs = zip(waiting, ids, strict=True)
        self._tally.ids += [(one.kept.value.id, new) for one, new in pairs if one.kept.value.id is not None]

    def _brought(self, one: Checked, old: Memory | None) -> Brought:
        kept, now = one.kept.value, self._app.clock()
        ready = Ready(one.cleared, one.content_hash, self._read(one, old))
        entry = entry_of(ready, old, kept.author or self._caller.user, now, self._app.keeping.retention)
        at = kept.updated_at or kept.created_at or now
        ends = kept.expires_at if one.ours else entry.expires_at
        return Brought(replace(entry, at=at, expires_at=ends), one.kept)

    def _read(self, one: Checked, old: Memory | None) -> tuple[Chunk, ...] | None:
        """Return the vectors; those of a text that was here, and is not now, are made at once."""
        if self._dry or (old is None and one.hidden) or (old is not None and old.content_hash == one.content_hash):
            return None
        if one.content_hash in self._chunks:
            return self._chunks[one.content_hash]
        return chunks_of(self._app.embedder, one.draft.content) if self._app.embedder.ready else None


def _differs(one: Checked, old: Memory) -> bool:
    """Say whether the file says anything else than what is stored."""
    draft = one.draft
    told = (draft.model_fields_set | {"content"} if one.ours else draft.model_fields_set) - _UNTOLD
    # a text that says nothing and one that is absent are the same here
    other = any((getattr(draft, name) or None) != (getattr(old, name) or None) for name in told)
    ends = one.ours and one.kept.value.expires_at != old.expires_at
    return one.content_hash != old.content_hash or other or ends
