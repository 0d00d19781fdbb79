"""Read and update one memory by its id."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from recollect.domain import Caller, Done, Draft, Get, Memory, Outcome, Sensitivity, Update
from recollect.errors import InvalidInput, NotFound
from recollect.gate import clear
from recollect.operations.entry import MASKED, Made, answered, entry_of, outside, passed, ready, refusals, says_so_too
from recollect.operations.usage import used
from recollect.operations.view import everything, number_of
from recollect.policy.reconcile import expired
from recollect.ports import App

_CLEARED_BY_NOTHING = ("key", "category", "type", "session_id", "project", "speaker", "subtitle", "ttl_days")


def get_memory(app: App, request: Get, caller: Caller | None = None) -> Memory:
    """Return a memory whole and count the access; raise `NotFound` where the caller sees none.

    One that a later memory puts right is shown too, and says by which.
    """
    caller = caller or app.caller
    memory_id = number_of(request.id)
    view = everything(app, request, caller)
    memory = app.records.load([memory_id], view).get(memory_id) if memory_id else None
    if memory is None:
        raise NotFound(f"Memory {request.id} not found.")
    used(app, [memory.id], view.now, caller, accessed=True)
    return memory


def update_memory(app: App, request: Update, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Write the given fields over a memory; what is not given stays, and an empty label is taken away.

    Headings that were made from the content follow a new content. Raises `SecretFound`, `NotFound`, or `InvalidInput`
    for a key that another memory has. A `request_id` seen before gives its first answer again.
    """
    caller = caller or app.caller
    memory_id = number_of(request.id)
    namespace = app.records.locate(memory_id, caller.namespaces()) if memory_id else None
    if memory_id is None or namespace is None:
        if (before := answered(app, caller, request_id)) is not None:
            return before
        raise NotFound(f"Memory {request.id} not found.")
    cleared = passed(app, request, namespace, caller)
    return outside(app, partial(_update, app, request, cleared.value, (namespace, memory_id), caller, request_id))


def _update(
    app: App, request: Update, asked: Update, place: tuple[str, int], caller: Caller, request_id: str, made: Made
) -> Outcome:
    """Write what the gate let through of a request over the memory at this place, in one transaction."""
    namespace, memory_id = place
    with refusals(app, namespace, caller), app.records.writing(namespace, caller.user) as transaction:
        if (before := transaction.answered(request_id)) is not None:
            return before
        old = transaction.by_id(memory_id)
        if old is None or expired(old, app.clock()) or old.merged_into is not None:
            raise NotFound(f"Memory {request.id} not found.")
        draft = _over(old, asked)
        if draft.key and (other := transaction.by_key(draft.key)) is not None and other.id != old.id:
            raise InvalidInput("key", f"Invalid key: `{draft.key}` is the key of {_named(other, app.clock())}")
        one = ready(app, clear(draft, app.on_secret), old, made)
        notes: tuple[str, ...] = (MASKED,) if asked != request or one.draft != draft else ()
        if one.content_hash != old.content_hash:
            notes += says_so_too(transaction, one, old.id, app.clock())
        entry = entry_of(one, old, caller.user, app.clock(), app.keeping.retention)
        transaction.update(old, entry, "update", revive=False)
        outcome = Outcome(Done.UPDATED, str(memory_id), notes)
        transaction.answer(request_id, outcome)
    return outcome


def _named(other: Memory, now: datetime) -> str:
    """Name a memory by its id where everybody sees it; of any other no more is told than that there is one."""
    hidden = expired(other, now) or other.sensitivity is not Sensitivity.PUBLIC
    return "another memory" if hidden else f"memory {other.id}"


def _over(old: Memory, request: Update) -> Draft:
    given = {name: getattr(request, name) for name in request.model_fields_set - {"id"}}
    kept = {name: value for name, value in given.items() if value is not None or name in _CLEARED_BY_NOTHING}
    return Draft(**{"content": old.content, "scope": old.scope, "confidence": old.confidence} | kept)
