"""Forget and read by id: an id counts only inside the caller's namespaces."""

from __future__ import annotations

from recollect.domain import Caller, Done, Forget, Get, Memory, Outcome, Sensitivity, View
from recollect.errors import NotFound
from recollect.ports import App

_LARGEST = 2**31 - 1


def forget(app: App, request: Forget, caller: Caller | None = None, *, request_id: str = "") -> Outcome:
    """Delete a memory from SQL, the text index and the vector index; an unknown id is an outcome, not an error.

    A `request_id` seen before gives its first answer again.
    """
    caller = caller or app.caller
    memory_id = number_of(request.id)
    namespaces = caller.namespaces(request.scope)
    namespace = app.records.locate(memory_id, namespaces) if memory_id else None
    with app.records.writing(namespace or namespaces[0], caller.user) as transaction:
        if (before := transaction.answered(request_id)) is not None:
            return before
        if memory_id is None or namespace is None or not transaction.delete(memory_id):
            return Outcome(Done.NOT_FOUND, request.id)
        outcome = Outcome(Done.DELETED, str(memory_id))
        transaction.answer(request_id, outcome)
    app.vectors.deliver(memory_id)
    app.later(app.text.scrub)
    return outcome


def get_memory(app: App, request: Get, caller: Caller | None = None) -> Memory:
    """Return a memory whole and count the access; raise `NotFound` where the caller sees none."""
    caller = caller or app.caller
    memory_id = number_of(request.id)
    allowed = (Sensitivity.PRIVATE,) * request.allow_private + (Sensitivity.SECRET,) * request.allow_secret
    view = View(caller.namespaces(), app.clock(), (Sensitivity.PUBLIC, *allowed))
    memory = app.records.load([memory_id], view).get(memory_id) if memory_id else None
    if memory is None:
        raise NotFound(f"Memory {request.id} not found.")
    app.later(lambda: app.records.touch([memory.id], view.now, accessed=True))
    return memory


def number_of(text: str) -> int | None:
    """Read an id; anything else than a positive number that SQL can hold is nobody's id."""
    plain = text.strip()
    number = int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= 10 else 0
    return number if 0 < number <= _LARGEST else None
