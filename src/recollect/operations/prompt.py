"""For a prompt: the memories most worth knowing, as Markdown that is fenced as data and keeps to a budget."""

from __future__ import annotations

from recollect.domain import Caller, ForPrompt, Memory, Order, Prompt, Query
from recollect.operations.recall import recall
from recollect.operations.usage import used
from recollect.operations.view import view_of
from recollect.policy.budget import estimate
from recollect.policy.prompt import fenced
from recollect.ports import App


def format_for_prompt(app: App, request: ForPrompt, caller: Caller | None = None) -> Prompt:
    """Return what to put before a model: what answers `query`, else what is used most; one line for each memory.

    What was remembered cannot end the fence it stands in, so that it stays data.
    """
    caller = caller or app.caller
    memories = _recalled(app, request, caller) if request.query is not None else _used(app, request, caller)
    text, shown = fenced(memories, request.max_tokens, app.embedder.counter() or estimate)
    used(app, shown, app.clock(), caller, accessed=False)
    return Prompt(text, tuple(shown))


def _recalled(app: App, request: ForPrompt, caller: Caller) -> list[Memory]:
    fields = {name: getattr(request, name) for name in request.model_fields_set - {"max_entries", "max_tokens"}}
    return [hit.memory for hit in recall(app, Query(**fields, limit=request.max_entries), caller).hits]


def _used(app: App, request: ForPrompt, caller: Caller) -> list[Memory]:
    view = view_of(app, request, caller)
    ids = app.records.listed(view, Order.USED, request.max_entries, 0)
    found = app.records.load(ids, view)
    return [found[one] for one in ids if one in found]
