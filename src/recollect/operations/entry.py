"""From a draft to an entry: the gate, the headings, words, entities and vectors, and how long it is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from recollect.domain import Caller, Draft, Memory, Outcome, Request, Retention, Sensitivity
from recollect.errors import SecretFound
from recollect.gate import Cleared, clear
from recollect.operations.embed import chunks_of
from recollect.policy import layers
from recollect.policy.entities import entities
from recollect.policy.names import words_of
from recollect.policy.reconcile import expired, lapsed, reinforced
from recollect.policy.retention import expiry
from recollect.policy.terms import worded
from recollect.ports import App, Chunk, Entry, Writing

T = TypeVar("T", bound=Request)
Made = dict[str, tuple[Chunk, ...]]
"""Vectors that were made before the lock was taken, by the hash of the text."""

MASKED = "A secret was found and masked before storing."


@dataclass(frozen=True, slots=True)
class Ready:
    """A cleared draft with the hash and the vectors of its content; None while the model cannot read."""

    cleared: Cleared[Draft]
    content_hash: str
    chunks: tuple[Chunk, ...] | None

    @property
    def draft(self) -> Draft:
        """Return the draft."""
        return self.cleared.value


class Unread(Exception):
    """A text that is to be written has no vectors yet; whoever writes it lets go of the lock meanwhile."""

    def __init__(self, content: str, content_hash: str) -> None:
        super().__init__("a text has no vectors yet")
        self.content = content
        self.content_hash = content_hash


def outside(app: App, write: Callable[[Made], Outcome]) -> Outcome:
    """Let `write` open its transaction, again and again until it finds the vectors of all that it writes.

    They are made while nobody waits for the lock. A transaction that `ready` breaks off for them leaves no trace, and
    the next one sees everything as it is then.
    """
    made: Made = {}
    while True:
        try:
            return write(made)
        except Unread as unread:
            made[unread.content_hash] = chunks_of(app.embedder, unread.content)


def answered(app: App, caller: Caller, request_id: str) -> Outcome | None:
    """Return how this very request ended when it was made before, also where what it was about is gone since."""
    if not request_id:
        return None
    with app.records.writing(caller.namespaces()[0], caller.user) as transaction:
        return transaction.answered(request_id)


def passed(app: App, request: T, namespace: str, caller: Caller) -> Cleared[T]:
    """Return the request as the gate clears it; a refusal is journalled in `namespace` and raised."""
    with refusals(app, namespace, caller):
        return clear(request, app.on_secret)


@contextmanager
def refusals(app: App, namespace: str, caller: Caller) -> Iterator[None]:
    """Journal in `namespace` what the gate refuses in the block, once a transaction inside it is over, and raise it."""
    try:
        yield
    except SecretFound as error:
        app.records.refuse(namespace, caller.user, error.field, error.kinds)
        raise


def ready(app: App, cleared: Cleared[Draft], old: Memory | None = None, made: Made | None = None) -> Ready:
    """Return the draft with what its content gives; the vectors of the same content as `old` has are not made.

    With `made` none are made at all: those that are not among them are asked for by raising `Unread`.
    """
    content = cleared.value.content
    content_hash = hashlib.sha256(content.encode()).hexdigest()
    same = old is not None and old.content_hash == content_hash and old.deleted_at is None and old.merged_into is None
    if same or not app.embedder.ready:
        return Ready(cleared, content_hash, None)
    if made is None:
        return Ready(cleared, content_hash, chunks_of(app.embedder, content))
    if content_hash not in made:
        raise Unread(content, content_hash)
    return Ready(cleared, content_hash, made[content_hash])


def says_so_too(transaction: Writing, one: Ready, memory_id: int, now: datetime) -> tuple[str, ...]:
    """Tell which memory that everybody sees has the text that this one is about to get."""
    other = transaction.by_hash(one.content_hash)
    told = other is not None and other.id != memory_id and other.sensitivity is Sensitivity.PUBLIC
    return (f"Memory {other.id} says the same.",) if other is not None and told and not expired(other, now) else ()


def entry_of(one: Ready, old: Memory | None, author: str, now: datetime, rule: Retention) -> Entry:
    """Return everything to be written of a draft, over `old` where it is a new version of that."""
    draft = one.draft
    given = frozenset(draft.model_fields_set) - {"content", "scope"}
    if old is not None and lapsed(old, now):
        given |= {"ttl_days"}  # the term that had passed is nobody's wish any more
    headings = {name: _heading(name, draft, old) for name in ("title", "abstract", "overview")}
    whole = draft.model_copy(update=headings if old is None else headings | _kept(old, given))
    labels, words = worded(whole, headings["title"])
    return Entry(
        cleared=one.cleared,
        given=given,
        content_hash=one.content_hash,
        title=headings["title"],
        abstract=headings["abstract"],
        overview=headings["overview"],
        keywords=labels,
        words=words,
        speaker_words=words_of(whole.speaker or ""),
        entities=entities(draft.content),
        chunks=one.chunks,
        confidence=_confidence(draft, old, one.content_hash),
        at=now,
        expires_at=expiry(draft, old, rule, now),
        author=author,
    )


def _kept(old: Memory, given: frozenset[str]) -> dict[str, object]:
    names = (
        *("key", "category", "speaker", "tags", "concepts"),
        *("files_read", "files_modified", "subtitle", "observed_at"),
    )
    return {name: getattr(old, name) for name in names if name not in given}


def _heading(name: str, draft: Draft, old: Memory | None) -> str:
    """Take what was given, else keep what somebody once gave, else make it from the content."""
    made = getattr(layers, name)
    if value := getattr(draft, name):
        return str(value)
    kept = str(getattr(old, name)) if old is not None else ""
    return kept if old is not None and kept != made(old.content) else str(made(draft.content))


def _confidence(draft: Draft, old: Memory | None, content_hash: str) -> float:
    """A new claim starts at its own confidence; the same claim again gains, unless the caller says how much."""
    if old is None or old.content_hash != content_hash or "confidence" in draft.model_fields_set:
        return draft.confidence
    return reinforced(old.confidence)
