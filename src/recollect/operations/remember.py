"""Remember: a draft passes the gate and becomes a memory, a new version of one, or a confirmation."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from recollect.domain import Caller, Done, Draft, Memory, Outcome
from recollect.errors import SecretFound
from recollect.gate import Cleared, clear
from recollect.operations.embed import chunks_of
from recollect.policy import layers
from recollect.policy.names import words_of
from recollect.policy.reconcile import decide, expired, reinforced
from recollect.policy.terms import worded
from recollect.ports import App, Chunk, Entry


def remember(app: App, draft: Draft, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Store `draft` in the one namespace of its scope; durable in SQL when this returns.

    A known key updates that memory; the same content again refreshes it and raises its confidence. Fields
    that were not given keep what they had. A `request_id` seen before gives its first answer again and changes
    nothing. Raises `SecretFound` when the gate refuses; then nothing is written.
    """
    caller = caller or app.caller
    namespace = caller.namespace(draft.scope)
    try:
        cleared = clear(draft, app.on_secret)
    except SecretFound as error:
        app.records.refuse(namespace, caller.user, error.field, error.kinds)
        raise
    content_hash = hashlib.sha256(cleared.value.content.encode()).hexdigest()
    chunks = chunks_of(app.embedder, cleared.value.content) if app.embedder.ready else None
    notes = ("A secret was found and masked before storing.",) if cleared.value != draft else ()
    with app.records.writing(namespace, caller.user) as transaction:
        if (before := transaction.answered(request_id)) is not None:
            return replace(before, notes=notes)
        same_key = transaction.by_key(cleared.value.key) if cleared.value.key else None
        decision = decide(cleared.value, content_hash, same_key, transaction.by_hash(content_hash))
        entry = _entry(cleared, decision.old, content_hash, chunks, app.clock(), caller.user)
        if decision.old is None:
            outcome = Outcome(Done.STORED, str(transaction.insert(entry)), notes)
        else:
            transaction.update(decision.old, entry, decision.action)
            outcome = Outcome(Done.UPDATED, str(decision.old.id), notes)
        transaction.answer(request_id, outcome)
    return outcome


def _entry(
    cleared: Cleared[Draft],
    old: Memory | None,
    content_hash: str,
    chunks: tuple[Chunk, ...] | None,
    now: datetime,
    author: str,
) -> Entry:
    draft = cleared.value
    given = frozenset(draft.model_fields_set) - {"content", "scope"}
    whole = draft if old is None else draft.model_copy(update=_kept(old, given))
    headings = {name: _heading(name, draft, old) for name in ("title", "abstract", "overview")}
    labels, words = worded(whole, headings["title"])
    return Entry(
        cleared=cleared,
        given=given,
        content_hash=content_hash,
        keywords=labels,
        words=words,
        speaker_words=words_of(whole.speaker or ""),
        chunks=chunks,
        confidence=_confidence(draft, old, content_hash),
        at=now,
        expires_at=_expiry(draft, old, now),
        author=author,
        **headings,
    )


def _kept(old: Memory, given: frozenset[str]) -> dict[str, object]:
    names = ("key", "category", "speaker", "tags", "concepts", "files_read", "files_modified", "subtitle")
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


def _expiry(draft: Draft, old: Memory | None, now: datetime) -> datetime | None:
    if draft.ttl_days is not None:
        return now + timedelta(days=draft.ttl_days)
    return None if old is None or expired(old, now) else old.expires_at
