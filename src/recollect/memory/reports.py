"""Reports: the history of a memory, what the caller's namespaces hold, and the health of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.accounts import CountProjects, ProjectCount, ProjectCounts
from recollect.domain.enums import Scope
from recollect.domain.requests import Caller, Get, Inspect, ReadAccess
from recollect.domain.results import KEPT_AS, Check, JournalEntry, Stats
from recollect.domain.search import View
from recollect.engines.embedder import Loadable
from recollect.errors import ModelUnusable, RecollectError
from recollect.search.other_projects import note_of_counts, other_projects, project_of
from recollect.search.visibility import levels_of, parse_id, unfiltered
from recollect.text.layers import one_line

if TYPE_CHECKING:
    from recollect.engines.chat import PydanticAiChat


def history(app: App, request: Get, caller: Caller) -> list[JournalEntry]:
    """Return the journal of one memory, oldest first, also after it was forgotten; empty where the caller sees none.

    Where the text before a change is kept, `content` in the changes is the beginning of both texts.
    """
    memory_id = parse_id(request.id)
    if memory_id is None:
        return []
    lines = app.records.journal.history(memory_id, caller.namespaces(), levels_of(request, caller))
    kept = [line.changes[KEPT_AS] for line in lines if KEPT_AS in line.changes]
    if not kept:
        return lines
    view = unfiltered(app, request, caller).model_copy(update={"merged": True})
    texts = app.records.contents([*kept, memory_id], view)
    after = iter([*kept[1:], memory_id])
    return [_with_texts(line, texts, next(after)) if KEPT_AS in line.changes else line for line in lines]


def _with_texts(line: JournalEntry, texts: Mapping[int, str], after: int) -> JournalEntry:
    """Return a line with the beginnings of the text before its change and of the one after it, where both are there."""
    before = line.changes[KEPT_AS]
    if before not in texts:  # it was brought back, or forgotten
        return replace(line, changes={name: value for name, value in line.changes.items() if name != KEPT_AS})
    if after not in texts:
        return line
    both = [one_line(texts[before]), one_line(texts[after])]
    return replace(line, changes=line.changes | {"content": both})


def stats(app: App, request: ReadAccess, caller: Caller) -> Stats:
    """Count the memories that the caller may see, by scope, kind and state.

    A store of one's own tells what its language model used, too; of a shared one that would tell of others.
    """
    namespaces = app.records.namespaces.existing(caller.namespaces(request.scope))
    view = View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller))
    found = app.records.lists.stats(view)
    if not found.memories:
        found = replace(found, notes=note_of_counts(app, view, caller, request.scope))
    chat = app.capabilities.chat
    return found if chat is None or app.capabilities.shared else replace(found, model_tokens=asdict(chat.used()))


def count_projects(app: App, request: CountProjects, caller: Caller) -> ProjectCounts:
    """Count the memories of each project that the caller may read; the current one is listed even if it is empty."""
    own = caller.namespace(Scope.PROJECT)
    here = (own,) if Scope.PROJECT in caller.reads else ()
    namespaces = app.records.namespaces.existing((*here, *other_projects(app, caller)))
    counted = app.records.namespaces.counts(
        View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller))
    )
    counted.update(dict.fromkeys(here, 0))
    return ProjectCounts(
        tuple(ProjectCount(project_of(one), count, one == own) for one, count in counted.most_common())
    )


def doctor(app: App, request: Inspect, _caller: Caller) -> list[Check]:
    """Check every part of the store, and whether its models can be loaded."""
    return list(checks(app, request))


def checks(app: App, request: Inspect) -> Iterator[Check]:
    """Return what `doctor` returns, each part as soon as it was looked at."""
    card, rerank = app.embedder.card, app.capabilities.rerank
    seen = f"{card.id}, {card.dimensions} dimensions, {card.max_tokens} tokens"
    yield from app.checks(deep=request.deep)
    yield _check_loading("model", app.embedder, seen, "Until then recall searches by words only.")
    if rerank is not None:
        advice = "Set RECOLLECT_RERANK to a cross-encoder, or unset it; until then recall works without it."
        yield _check_loading("reranker", rerank, f"{rerank.model}, looks at the best {rerank.top}", advice)
    if (chat := app.capabilities.chat) is not None:
        use = chat.used()
        hour, day = f"{use.hour} of {use.most_hour} tokens this hour", f"{use.day} of {use.most_day} this day"
        yield _check_chat_model(chat, f"{chat.model}, {hour}, {day}")


def _check_chat_model(chat: PydanticAiChat, seen: str) -> Check:
    """Return the check whether the language model answers; `seen` is its finding where it does."""
    try:
        chat.reach()
    except ModelUnusable as error:
        advice = "Start it, or correct RECOLLECT_CHAT_URL; until then Recollect works without it."
        return Check("language model", False, str(error), advice)
    return Check("language model", True, seen)


def _check_loading(name: str, model: Loadable, seen: str, advice: str) -> Check:
    """Return the check whether a model can be loaded; `seen` is its finding where it can."""
    try:
        model.warm()
    except RecollectError as error:
        return Check(name, False, str(error), advice)
    return Check(name, True, seen)
