"""Inject: puts what is remembered of a prompt's subject before the prompt, fenced as data; mostly there is nothing.

What an agent was shown since its session began, or last lost its earlier messages, is not shown again, nor what was
kept of this session since then.
"""

from __future__ import annotations

from typing import Final

from recollect.domain.lifecycle import CheckpointSession, Injection, SessionEvent, StartSession, SubmitPrompt
from recollect.domain.results import Memory
from recollect.lifecycle.capabilities import STORE, TEMPORAL
from recollect.lifecycle.context import Context
from recollect.prompt.fence import memory_context
from recollect.search.budget import estimate
from recollect.search.injection import relevant
from recollect.search.recall import count_use

_RESUMED: Final = "resume"


def inject(context: Context[SubmitPrompt]) -> Injection | None:
    """Return the block to put before the prompt and the memories in it; nothing where none is relevant."""
    if context.capabilities.get(STORE) is None or not (context.settings.inject and context.settings.max_inject_count):
        return None
    state, app = context.state, context.app
    known = {*state.injected, *({*state.kept} - {*state.forgotten})}
    found = relevant(app, context.event.prompt, context.caller, known)
    counter = app.embedder.counter() or estimate
    text, ids = memory_context(_balanced(context, found), context.settings.token_budget, counter)
    if not ids:
        return None
    context.update(injected=(*state.injected, *ids))
    count_use(app, [one for one in found if one.id in ids], context.at, context.caller, accessed=False)
    return Injection(text, tuple(map(str, ids)))


def forget_shown(context: Context[SessionEvent]) -> None:
    """Note that the agent has none of the memories in front of it that it was shown or made before."""
    resumed = isinstance(context.event, StartSession) and context.event.source == _RESUMED
    if isinstance(context.event, StartSession | CheckpointSession) and not resumed:
        context.update(injected=(), forgotten=context.state.kept)


def _balanced(context: Context[SubmitPrompt], found: list[Memory]) -> list[Memory]:
    """Return as many memories as there are places, of all temporal scales where that capability is there."""
    places = context.settings.max_inject_count
    temporal = context.capabilities.get(TEMPORAL)
    if temporal is None or len(found) <= places:
        return found[:places]
    first = temporal(found, context.at)[:places]
    taken = {one.id for one in first}
    return first + [one for one in found if one.id not in taken][: places - len(first)]
