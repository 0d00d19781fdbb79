"""Update one memory by its id."""

from __future__ import annotations

from functools import partial

from recollect.app import App
from recollect.domain.enums import Sensitivity, strictest
from recollect.domain.requests import Caller, Draft, Levels, MemoryFields, Update
from recollect.domain.results import Memory, Outcome, WriteStatus
from recollect.errors import Forbidden, NotFound
from recollect.memory.describe import describe_later
from recollect.memory.prepare_write import (
    MASKED,
    Embeddings,
    clear_or_journal,
    entry_for,
    journal_refusals,
    kept_note,
    prepare_draft,
    refuse_taken_key,
    retry_with_embeddings,
    same_text_note,
)
from recollect.memory.reconcile import expired
from recollect.memory.review import outranks
from recollect.search.visibility import allowed_levels, levels_of, parse_id

_NAME = "update_memory"
_CLEARABLE = frozenset(name for name, field in MemoryFields.model_fields.items() if field.default in (None, ""))
"""The fields that a memory can be without: an update takes their values away."""


def update_memory(app: App, request: Update, caller: Caller, *, request_id: str = "") -> Outcome:
    """Change the given fields of a memory; the others stay, and an empty label is removed.

    A new content has a new abstract and overview, and a new title where that was made from the content. Raises
    `SecretFound`, `NotFound`, or `InvalidInput` for a key that another memory has. A `request_id` seen before gives
    its first answer again.
    """
    memory_id, levels = parse_id(request.id), levels_of(request, caller)
    namespace = app.records.namespaces.of_memory(memory_id, caller.namespaces(), levels) if memory_id else None
    if memory_id is None or namespace is None:
        before = app.records.outcomes.previous(caller.namespaces(), caller.user, _NAME, request_id)
        if before is not None:
            return before
        raise NotFound(f"Memory {request.id} not found.")
    cleared = clear_or_journal(app, request, namespace, caller, _strictest_level(request))
    outcome = retry_with_embeddings(
        app, partial(_write_update, app, request, cleared.value, (namespace, memory_id), caller, request_id)
    )
    given = cleared.value.model_dump(include={"content", "abstract", "overview"}, exclude_none=True)
    if "content" in given:
        describe_later(app, outcome, Draft(**given), caller)
    return outcome


def _write_update(
    app: App, request: Update, asked: Update, place: tuple[str, int], caller: Caller, request_id: str, made: Embeddings
) -> Outcome:
    """Write the cleared request over the memory with this namespace and id, in one transaction."""
    namespace, memory_id = place
    with (
        journal_refusals(app, namespace, caller, _strictest_level(request)),
        app.records.writing(caller.writable(namespace), caller.user, allowed_levels(request)) as writing,
    ):
        if (before := writing.outcomes.previous(_NAME, request_id)) is not None:
            return before
        old = writing.lookup.by_id(memory_id)
        if old is None or expired(old, app.clock()) or old.merged_into is not None:
            raise NotFound(f"Memory {request.id} not found.")
        if outranks(old, caller.origin):
            raise Forbidden(f"Memory {old.id} was said by {old.origin}, which this does not replace.")
        draft = _updated_draft(old, asked)
        level = asked.sensitivity or old.sensitivity
        key = draft.key if "key" in draft.model_fields_set else old.key
        seen = level in allowed_levels(request)
        refuse_taken_key(writing, key, old, level, app.clock(), seen=seen)
        one = prepare_draft(app, draft, old, made)
        notes: tuple[str, ...] = (MASKED,) if asked != request or one.draft != draft else ()
        if one.content_hash != old.content_hash:
            notes += same_text_note(writing, one, old, app.clock())
        words = caller.origin if one.content_hash != old.content_hash else None
        entry = entry_for(app, one, old, caller.user, words)
        new_text = "content" in asked.model_fields_set  # else it can only differ by a secret that was masked
        kept = writing.memories.update(old, entry, "update", revive=False, keep=new_text)
        notes += () if kept is None else (kept_note(kept),)
        outcome = Outcome(WriteStatus.UPDATED, str(memory_id), notes)
        writing.outcomes.record(_NAME, request_id, outcome)
    return outcome


def _strictest_level(request: Update) -> Sensitivity:
    """Return the strictest level that an update may be about."""
    return strictest(*allowed_levels(request), *filter(None, [request.sensitivity]))


def _updated_draft(old: Memory, request: Update) -> Draft:
    """Return the draft with the request's fields over the content, scope and confidence of the old memory."""
    given = {name: getattr(request, name) for name in request.model_fields_set - {"id", *Levels.model_fields}}
    kept = {name: value for name, value in given.items() if value is not None or name in _CLEARABLE}
    return Draft(**{"content": old.content, "scope": old.scope, "confidence": old.confidence} | kept)
