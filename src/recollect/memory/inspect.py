"""Reports: the history of a memory, what the caller's namespaces hold, and the health of the store."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.requests import Caller, Get, Inspect, ReadAccess
from recollect.domain.results import Check, JournalEntry, Stats
from recollect.domain.search import View
from recollect.engines.embedder import Loadable
from recollect.errors import ModelUnusable, RecollectError
from recollect.search.elsewhere import note_of_counts
from recollect.search.visibility import levels_of, parse_id

if TYPE_CHECKING:
    from recollect.engines.chat import PydanticAiChat


def history(app: App, request: Get, caller: Caller) -> list[JournalEntry]:
    """Return the journal of one memory, oldest first, also after it was forgotten; empty where the caller sees none."""
    memory_id = parse_id(request.id)
    return app.records.history(memory_id, caller.namespaces(), levels_of(request, caller)) if memory_id else []


def stats(app: App, request: ReadAccess, caller: Caller) -> Stats:
    """Count what the caller's namespaces hold, by scope, kind and state.

    A store of one's own tells what its language model used, too; of a shared one that would tell of others.
    """
    namespaces = app.records.existing_namespaces(caller.namespaces(request.scope))
    view = View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller))
    found = app.records.stats(view)
    if not found.memories:
        found = replace(found, notes=note_of_counts(app, view, caller, request.scope))
    chat = app.capabilities.chat
    return found if chat is None or app.capabilities.shared else replace(found, model_tokens=asdict(chat.used()))


def doctor(app: App, request: Inspect, _caller: Caller) -> list[Check]:
    """Check every part of the store, and whether its models can be loaded."""
    card, rerank = app.embedder.card, app.capabilities.rerank
    seen = f"{card.id}, {card.dimensions} dimensions, {card.max_tokens} tokens"
    model = _loads("model", app.embedder, seen, "Until then recall searches by words only.")
    found = [*app.checks(deep=request.deep), model]
    if rerank is not None:
        advice = "Set RECOLLECT_RERANK to a cross-encoder, or unset it; until then recall works without it."
        found.append(_loads("reranker", rerank, f"{rerank.model}, looks at the best {rerank.top}", advice))
    if (chat := app.capabilities.chat) is not None:
        use = chat.used()
        hour, day = f"{use.hour} of {use.most_hour} tokens this hour", f"{use.day} of {use.most_day} this day"
        found.append(_answers(chat, f"{chat.model}, {hour}, {day}"))
    return found


def _answers(chat: PydanticAiChat, seen: str) -> Check:
    try:
        chat.reach()
    except ModelUnusable as error:
        advice = "Start it, or correct RECOLLECT_CHAT_URL; until then Recollect works without it."
        return Check("language model", False, str(error), advice)
    return Check("language model", True, seen)


def _loads(name: str, model: Loadable, seen: str, advice: str) -> Check:
    try:
        model.warm()
    except RecollectError as error:
        return Check(name, False, str(error), advice)
    return Check(name, True, seen)
