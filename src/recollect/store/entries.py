"""What is ready to be written to the store, and what the store says of memories that wait or age."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from recollect.domain.enums import FactType, ObservationType, Sensitivity
from recollect.domain.origin import Origin, SaidBy
from recollect.domain.requests import Draft, StoreFact
from recollect.domain.transfer import MemoryRecord
from recollect.gate import Cleared
from recollect.text.text_parts import TextParts

if TYPE_CHECKING:
    from recollect.domain.results import Entity
    from recollect.engines.chunks import Chunk


@dataclass(frozen=True, slots=True)
class ChunkDigests:
    """Makes the digests of a memory's vectors: each says of which text, by which model, and what the vector is.

    `model` holds the store's stamps of its model, `content_hash` is the SHA-256 of the memory's content, and `many` is
    how many vectors it has. Whoever knows the rule can make a digest for a wrong vector: it tells damage, not deceit.
    """

    content_hash: str
    model: Mapping[str, str]
    many: int

    def of(self, ordinal: int, start: int, stop: int, embedding: bytes) -> bytes:
        """Return the digest of one vector and its place, 16 bytes."""
        place = json.dumps([self.content_hash, sorted(self.model.items()), self.many, ordinal, start, stop])
        made = hashlib.blake2b(place.encode(), digest_size=16)
        made.update(embedding)
        return made.digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A cleared draft with everything derived from it, ready to be written.

    `given` names the draft's fields that somebody set: an update leaves the others as they are.
    `chunks` is None while the embedding model has not seen the content. `review` says why it waits for a decision.
    """

    cleared: Cleared[Draft]
    given: frozenset[str]
    content_hash: str
    parts: TextParts
    chunks: tuple[Chunk, ...] | None
    confidence: float
    at: datetime
    expires_at: datetime | None
    author: str
    trust: float | None = None
    said_by: SaidBy = SaidBy.PERSON
    came_from: str | None = None
    review: str | None = None

    def with_entities(self, named: Iterable[Entity]) -> Entry:
        """Return the entry with these entities, each once, in place of those of its text."""
        return replace(self, parts=replace(self.parts, entities=tuple(dict.fromkeys(named))))


@dataclass(frozen=True, slots=True)
class UnembeddedMemory:
    """A stored memory that the embedding model has not seen; the hash shows whether it changed meanwhile."""

    id: int
    content: str
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEntry:
    """A cleared fact, ready to be written; `memory_id` is a memory of the same namespace, `stamp` who said the fact."""

    cleared: Cleared[StoreFact]
    memory_id: int | None
    sensitivity: Sensitivity
    valid_from: datetime
    at: datetime
    author: str
    stamp: Origin


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a memory is consolidated: until when its days are counted, and how many of its accesses."""

    at: datetime
    accesses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgingMemory:
    """What consolidation knows of a memory; `accesses` counts every use, `mark` is None before the first time.

    One that is `replaced` gave way to another, which is in sight.
    """

    id: int
    fact_type: FactType
    type: ObservationType | None
    sensitivity: Sensitivity
    importance: float
    updated_at: datetime
    last_accessed_at: datetime | None
    accesses: int
    replaced: bool
    mark: Mark | None


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """A memory out of a file: what `remember` would write, and all that the file says."""

    entry: Entry
    record: Cleared[MemoryRecord]
