"""Steps that verbs which write share: the gate, the headings, words, entities and vectors of a draft, and eviction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from recollect.app import App
from recollect.domain.enums import IMPORTANCE_DAYS, ObservationType, OnSecret, Retention, Sensitivity
from recollect.domain.fields import Request
from recollect.domain.lifecycle import CAPTURED, OBSERVED
from recollect.domain.origin import MOST_TRUST, Origin, SaidBy, least_trusted
from recollect.domain.requests import Caller, Draft, MemoryFields
from recollect.domain.results import Memory, Outcome
from recollect.engines.chunks import Chunk, chunks_now
from recollect.errors import InvalidInput, SecretFound
from recollect.gate import Cleared, clear, masked
from recollect.memory.condense import day_of, labels_of, quotable_text, quotes_any
from recollect.memory.embed import embed_missed
from recollect.memory.reconcile import expired, lapsed, reinforced_confidence
from recollect.store.entries import Entry
from recollect.text import layers
from recollect.text.text_parts import TextParts, text_parts

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_SUMMARY = ObservationType.COMPRESSED_SUMMARY

T = TypeVar("T", bound=Request)
W = TypeVar("W")
Embeddings = dict[str, tuple[Chunk, ...] | None]
"""The chunks of texts, embedded outside any transaction, by the hash of the text; None for one that has to wait."""

_FOLLOWING = ("abstract", "overview")
MASKED = "A secret was found and masked before storing."
_SHORTEST_TERM = timedelta(days=1)  # whatever is worth storing is kept so long


@dataclass(frozen=True, slots=True)
class PreparedDraft:
    """A cleared draft with the hash of its content and the embedded chunks, None while the model is not ready.

    `parts` is what follows from its text, where that was read before the transaction.
    """

    cleared: Cleared[Draft]
    content_hash: str
    chunks: tuple[Chunk, ...] | None
    parts: TextParts | None = None

    @property
    def draft(self) -> Draft:
        """Return the draft."""
        return self.cleared.value


class EmbeddingNeeded(Exception):
    """Raised inside a transaction for a text that is not embedded yet: the write lock is not held for so long."""

    def __init__(self, content: str, content_hash: str) -> None:
        super().__init__("a text has no vectors yet")
        self.content = content
        self.content_hash = content_hash


def retry_with_embeddings(app: App, write: Callable[[Embeddings], Outcome]) -> Outcome:
    """Run `write` as `with_embeddings` does; embed what it wrote while the model became ready."""
    cold = not app.embedder.ready
    outcome = with_embeddings(app, write)
    if cold:
        embed_missed(app, outcome.id)
    return outcome


def with_embeddings(app: App, write: Callable[[Embeddings], W]) -> W:
    """Run `write`; where it lacks an embedding, embed that text outside of its transaction and run it again."""
    embeddings: Embeddings = {}
    while True:
        try:
            return write(embeddings)
        except EmbeddingNeeded as needed:
            embeddings[needed.content_hash] = chunks_now(app.embedder, needed.content)


def clear_or_journal(
    app: App, request: T, namespace: str, caller: Caller, level: Sensitivity | None = None
) -> Cleared[T]:
    """Return the request as the gate clears it; a refusal is journalled in `namespace` at its level and raised."""
    with journal_refusals(app, namespace, caller, level):
        return clear(request, app.on_secret)


@contextmanager
def journal_refusals(app: App, namespace: str, caller: Caller, level: Sensitivity | None = None) -> Iterator[None]:
    """Journal in `namespace` what the gate refuses inside the block, after any transaction in it, and raise it.

    Raises `Forbidden` before the block where the caller may not write there.
    """
    place = caller.writable(namespace)
    try:
        yield
    except SecretFound as error:
        app.records.refuse(place, caller.user, error.field, error.kinds, level or Sensitivity.PUBLIC)
        raise


def prepare_draft(
    app: App,
    draft: Draft,
    old: Memory | None = None,
    embeddings: Embeddings | None = None,
    *,
    on_secret: OnSecret | None = None,
    indexed: bool = True,
) -> PreparedDraft:
    """Return the cleared draft with hash, chunks and, unless it is written over `old`, what is derived from its text.

    The gate does with a secret what `on_secret` says, by default what the store's setting says: it raises `SecretFound`
    or masks. With `embeddings` it raises `EmbeddingNeeded` for a text that is not among them. What is not `indexed`,
    since it stays hidden, needs no vectors.
    """
    cleared = clear(draft, on_secret or app.on_secret)
    content, parts = cleared.value.content, text_parts(cleared.value) if old is None else None
    content_hash = hashlib.sha256(content.encode()).hexdigest()
    if not indexed:
        return PreparedDraft(cleared, content_hash, (), parts)
    same = old is not None and old.content_hash == content_hash and old.deleted_at is None and old.merged_into is None
    if same or not app.embedder.ready:
        return PreparedDraft(cleared, content_hash, None, parts)
    if embeddings is None:
        return PreparedDraft(cleared, content_hash, chunks_now(app.embedder, content), parts)
    if content_hash not in embeddings:
        raise EmbeddingNeeded(content, content_hash)
    return PreparedDraft(cleared, content_hash, embeddings[content_hash], parts)


def draft_of(memory: Memory, *, key: str | None = None, ttl_days: float | None = None) -> Draft:
    """Return a draft that stores a memory as it is."""
    names = set(MemoryFields.model_fields) - {"key", "ttl_days", "confidence"}
    fields = {name: getattr(memory, name) for name in names if getattr(memory, name) not in (None, "")}
    kept = {"key": memory.key or key, "confidence": memory.confidence, "ttl_days": ttl_days}
    return Draft(**fields, **{name: value for name, value in kept.items() if value is not None})


def prepare_revival(app: App, one: PreparedDraft, old: Memory) -> PreparedDraft:
    """Return a draft for a hidden memory that is to be visible again: what it keeps of `old` is masked by the gate."""
    was = draft_of(old)
    masked = clear(was, OnSecret.REDACT).value
    names = {name for name in MemoryFields.model_fields if getattr(masked, name) != getattr(was, name)}
    headings = ("title", "abstract", "overview")
    made = {name for name in headings if getattr(old, name) == getattr(layers, name)(old.content)}
    kept = {name: getattr(masked, name) for name in (names - made) | {"sensitivity"}}
    given = one.draft.model_fields_set
    draft = one.draft.model_copy(update={name: value for name, value in kept.items() if name not in given})
    return replace(one, cleared=clear(draft, app.on_secret))


def refuse_taken_key(
    writing: Writing, key: str | None, old: Memory, level: Sensitivity, now: datetime, *, seen: bool = True
) -> None:
    """Raise `InvalidInput` for a key that another memory of the level has, which is named if it lives and is `seen`.

    Whoever names a level learns that the key is taken there, and no more where the level is not let in.
    """
    other = writing.lookup.by_key(key, level) if key else None
    if other is not None and other.id != old.id:
        whose = f"memory {other.id}" if seen and not expired(other, now) else "another memory"
        raise InvalidInput("key", f"Invalid key: `{key}` is the key of {whose}")


def kept_note(kept: int) -> str:
    """Return the note on the hidden memory that keeps an earlier text."""
    return f"The earlier text is kept as memory {kept}, which is hidden."


def same_text_note(writing: Writing, one: PreparedDraft, old: Memory, now: datetime) -> tuple[str, ...]:
    """Name the memory of the same level that has the same content already."""
    other = writing.lookup.by_hash(one.content_hash, old.sensitivity)
    if other is None or other.id == old.id or expired(other, now):
        return ()
    return (f"Memory {other.id} has the same content.",)


def new_entry(app: App, one: PreparedDraft, author: str, origin: Origin, review: str | None = None) -> Entry:
    """Return all that is written of a draft as a new memory; `origin` says whose words they are."""
    draft, now = one.draft, app.clock()
    return Entry(
        cleared=one.cleared,
        given=frozenset(draft.model_fields_set & MemoryFields.model_fields.keys()) - {"content", "scope"},
        content_hash=one.content_hash,
        parts=one.parts or text_parts(draft),
        chunks=one.chunks,
        confidence=draft.confidence,
        at=now,
        expires_at=expiry_of(draft, None, app.retention_rules.retention, now, app.lifecycle.default_ttl_days),
        author=author,
        trust=min(draft.trust, MOST_TRUST[origin.said_by]),
        said_by=origin.said_by,
        came_from=masked(origin.came_from) if origin.came_from else None,
        review=review,
    )


def entry_for(
    app: App, one: PreparedDraft, old: Memory, author: str, said: Origin | None = None, review: str | None = None
) -> Entry:
    """Return all that is written of a draft over the memory that it is a new version of.

    `said` is the origin of the draft's words, None where it only says again what `old` says.
    """
    draft, now, same = one.draft, app.clock(), old.content_hash == one.content_hash
    stale = {name for name in (*_FOLLOWING, "source") if _is_stale(name, draft, old)}
    stale |= {"ttl_days"} if lapsed(old, now) else set()  # an expired term is not kept
    headings = {name: _heading_after_write(name, draft, old) for name in ("title", "abstract", "overview")}
    parts = text_parts(draft.model_copy(update=_unwritten_fields(old, draft.model_fields_set | stale) | headings))
    origin = origin_after_write(old, said, same=same)
    confidence = reinforced_confidence(old.confidence) if same else old.confidence
    trust = draft.trust if "trust" in draft.model_fields_set else old.trust
    new = new_entry(app, replace(one, parts=parts), author, origin)
    new = new.with_entities((*parts.entities, *(old.entities if same else ())))
    return replace(
        new,
        given=new.given | stale,
        confidence=draft.confidence if "confidence" in draft.model_fields_set else confidence,
        expires_at=expiry_of(draft, old, app.retention_rules.retention, now, app.lifecycle.default_ttl_days),
        trust=min(trust, MOST_TRUST[origin.said_by]),
        review=review or (old.review if said != Origin() else None),
    )


def origin_after_write(old: Memory, said: Origin | None, *, same: bool) -> Origin:
    """Return the origin of a memory after a write; only a person's own write raises the authority of a memory.

    Where the `same` words are written again, it stays; other words have the lower authority of both.
    """
    if said is not None and said.said_by is SaidBy.PERSON:
        return said
    return old.stamp if said is None or same else least_trusted((said, old.stamp))


def evict_memory(writing: Writing, memory_id: int) -> None:
    """Remove a memory by rule; the summary that quotes it takes over its facts, and notes where they came from."""
    old = writing.lookup.by_id(memory_id)
    whole = writing.lookup.by_id(old.superseded_by) if old is not None and old.superseded_by else None
    if old is not None and old.deleted_at is None and whole is not None and whole.type is _SUMMARY:
        lines = [line for line in whole.content.split("\n") if quotes_any(line, [quotable_text(old)])]
        facts = [one.id for one in writing.facts.of_memories([old.id])]
        dated = {"created_at": old.created_at.isoformat(), "day": day_of(old)}
        came = {"session_id": old.session_id, "author": old.author, **old.stamp.model_dump(mode="json")}
        writing.summary_members.note(
            whole.id, came | dated | {"lines": lines, "facts": facts, "labels": labels_of(old)}
        )
    writing.memories.delete(memory_id, "evict")


def _unwritten_fields(old: Memory, given: set[str]) -> dict[str, object]:
    """Return the fields of a memory that a write leaves as they are: all but those `given` and the content."""
    return {name: getattr(old, name) for name in MemoryFields.model_fields.keys() - given - {"content"}}


def _heading_after_write(name: str, draft: Draft, old: Memory) -> str:
    """Return the heading given in the draft, else that given for `old`; else, or if it is empty, one made by rule.

    A title that was given stays; an abstract and an overview say what the content says, so they follow a new one.
    """
    made = getattr(layers, name)
    if getattr(old, name) == made(old.content) or name in draft.model_fields_set or _is_stale(name, draft, old):
        return str(getattr(draft, name) or made(draft.content))
    return str(getattr(old, name))


def _is_stale(name: str, draft: Draft, old: Memory) -> bool:
    """Say whether a heading was given for another content than that of the draft, or a source is that of another text.

    What somebody writes over a captured memory is theirs: it fades and goes no more by itself.
    """
    if name in draft.model_fields_set or draft.content == old.content:
        return False
    if name == "source":
        return old.source in CAPTURED
    if name not in _FOLLOWING:
        return False
    return bool(getattr(old, name) != getattr(layers, name)(old.content))


def expiry_of(
    draft: Draft, old: Memory | None, rule: Retention, now: datetime, captured_days: float = 0.0
) -> datetime | None:
    """Return when a memory stored as `draft` expires, None for never.

    A memory that is written again keeps its term, unless a new one is given or it had passed; under the rule of
    importance another importance is another term. What is captured has a term of `captured_days` (0: none) each time,
    which ends where somebody writes over it by a call.
    """
    if draft.ttl_days is not None:
        return now + timedelta(days=draft.ttl_days)
    given = draft.model_fields_set
    taken_over = old is not None and old.source in OBSERVED and draft.source not in OBSERVED and old.ttl_days is None
    kept = old is not None and not taken_over and not lapsed(old, now) and "ttl_days" not in given
    if kept and old is not None and (old.ttl_days is not None or "importance" not in given):
        return old.expires_at
    if rule is Retention.KEEP:
        endless = kept and old is not None and old.expires_at is None
        if captured_days and draft.source in OBSERVED and not endless:
            return now + timedelta(days=captured_days)
        return old.expires_at if kept and old is not None else None
    importance = draft.importance if old is None or "importance" in given else old.importance
    return now + max(timedelta(days=importance * IMPORTANCE_DAYS), _SHORTEST_TERM)
