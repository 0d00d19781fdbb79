"""Reading memories without ranking: lists, likeness, history, figures and a prompt's share.

Reports: the history of a memory, what the caller's namespaces hold, and the health of the store.

Reads: one memory by its id, and one page of memories in an order, by file, by concept and in time.

Memories as Markdown for a prompt, fenced as data and within a budget of tokens.

Find the memories most similar to a text or to a memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from recollect.app import App
from recollect.domain.accounts import CountProjects, ProjectCount, ProjectCounts
from recollect.domain.enums import POLICIES, Order, Scope, Standing
from recollect.domain.requests import (
    ByConcept,
    ByFile,
    Caller,
    FindSimilar,
    ForPrompt,
    Get,
    Inspect,
    Listing,
    Query,
    ReadAccess,
    Timeline,
)
from recollect.domain.results import (
    KEPT_AS,
    Check,
    JournalEntry,
    Listed,
    Memory,
    Prompt,
    Similar,
    Stats,
)
from recollect.domain.search import View
from recollect.engines.embedder import Loadable
from recollect.errors import InvalidInput, ModelUnusable, NotFound, RecollectError
from recollect.prompt.fence import fenced, governed_memory
from recollect.search import rank
from recollect.search.budget import estimate
from recollect.search.candidates import reading, wait_for_model
from recollect.search.ranking import ranking_of
from recollect.search.recall import (
    count_use,
    note_of_counts,
    other_projects,
    project_of,
    project_with,
    widened,
    with_project,
)
from recollect.search.visibility import levels_of, parse_id, unfiltered, view_of
from recollect.text.layers import one_line

if TYPE_CHECKING:
    from recollect.engines.chat import PydanticAiChat


def list_memories(app: App, request: Listing, caller: Caller) -> Listed:
    """Return a page of the memories that pass the filters, and how many there are."""
    view = view_of(app, request, caller)
    if request.everywhere:
        view = widened(app, view, caller, request.scope)
    with app.records.snapshot():
        ids, after = app.records.list_page(view, request.order, request.limit, request.after, request.offset)
        found = app.records.load(ids, view)
        memories = [found[one] for one in ids if one in found]
        total = app.records.count(view)
        notes = () if total or request.everywhere else note_of_counts(app, view, caller, request.scope)
    shown = tuple(with_project(one, caller) if request.everywhere else one for one in memories)
    return Listed(shown, total, notes, after)


def search_by_file(app: App, request: ByFile, caller: Caller) -> Listed:
    """Return the memories that read or modified a file: the path itself, the end of one, or a folder above it."""
    return list_memories(app, request, caller)


def search_by_concept(app: App, request: ByConcept, caller: Caller) -> Listed:
    """Return the memories about a concept."""
    concepts = tuple(dict.fromkeys((request.concept, *request.concepts)))
    return list_memories(app, request.model_copy(update={"concepts": concepts}), caller)


def get_timeline(app: App, request: Timeline, caller: Caller) -> Listed:
    """Return memories in the order of their creation; without an `order`, the latest page of them."""
    if "order" in request.model_fields_set:
        return list_memories(app, request, caller)
    latest = list_memories(app, request.model_copy(update={"order": Order.NEWEST}), caller)
    return replace(latest, memories=latest.memories[::-1])


def get_memory(app: App, request: Get, caller: Caller) -> Memory:
    """Return a whole memory, and count the access.

    One that was replaced or merged into another is shown too, and of what a memory was merged. Raises `NotFound` for an
    unknown id.
    """
    memory_id = parse_id(request.id)
    view = unfiltered(app, request, caller).model_copy(update={"merged": True})
    memory = app.records.load([memory_id], view).get(memory_id) if memory_id else None
    if memory is None:
        project = project_with(app, memory_id, view, caller) if memory_id else ""
        raise NotFound(f"Memory {request.id} not found{f'; it is in your project {project}' if project else ''}.")
    count_use(app, [memory], view.now, caller, accessed=True)
    return memory.model_copy(update={"merged_from": app.records.merged_from(memory.id, view)})


def find_similar(app: App, request: FindSimilar, caller: Caller) -> list[Similar]:
    """Return the memories whose best chunk is similar enough to a text or a memory, nearest first.

    Without a `threshold` it is the model card's `similar`. Raises `InvalidInput` unless one of `content` and `id` is
    given, `NotFound` for an id the caller does not see, `ModelUnusable` while the model is not loaded.
    """
    if request.content is None and request.id is None:
        raise InvalidInput("content", "Missing content: `find_similar` requires either `content` or `id`")
    if request.content is not None and request.id is not None:
        raise InvalidInput("id", "Invalid id: Must not be given together with `content`")
    view = view_of(app, request, caller)
    memory_id = parse_id(request.id) if request.id is not None else None
    text = request.content if request.content is not None else _content(app, request, caller, memory_id)
    if not wait_for_model(app):
        why = app.embedder.failure or "it is still loading."
        raise ModelUnusable(f"Similarity search needs the embedding model: {why}")
    threshold = app.embedder.card.similar if request.threshold is None else request.threshold
    vector = app.embedder.read([text])[0].vector
    near = app.vectors.nearest(vector, view, request.limit + 1)
    close = {one: cosine for one, cosine in near.items() if cosine >= threshold and one != memory_id}
    found = app.records.load(close, view)
    return [Similar(found[one], cosine) for one, cosine in close.items() if one in found][: request.limit]


def _content(app: App, request: FindSimilar, caller: Caller, memory_id: int | None) -> str:
    contents = app.records.contents([memory_id], unfiltered(app, request, caller)) if memory_id else {}
    if memory_id not in contents:
        raise NotFound(f"Memory {request.id} not found.")
    return contents[memory_id]


def history(app: App, request: Get, caller: Caller) -> list[JournalEntry]:
    """Return the journal of one memory, oldest first, also after it was forgotten; empty where the caller sees none.

    Where the text before a change is kept, `content` in the changes is the beginning of both texts.
    """
    memory_id = parse_id(request.id)
    if memory_id is None:
        return []
    lines = app.records.history(memory_id, caller.namespaces(), levels_of(request, caller))
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
    namespaces = app.records.existing_namespaces(caller.namespaces(request.scope))
    view = View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller))
    found = app.records.stats(view)
    if not found.memories:
        found = replace(found, notes=note_of_counts(app, view, caller, request.scope))
    chat = app.capabilities.chat
    return found if chat is None or app.capabilities.shared else replace(found, model_tokens=asdict(chat.used()))


def count_projects(app: App, request: CountProjects, caller: Caller) -> ProjectCounts:
    """Count the memories of each project that the caller may read; the current one is listed even if it is empty."""
    own = caller.namespace(Scope.PROJECT)
    here = (own,) if Scope.PROJECT in caller.reads else ()
    namespaces = app.records.existing_namespaces((*here, *other_projects(app, caller)))
    counted = app.records.counts(View(namespaces=namespaces, now=app.clock(), sensitivities=levels_of(request, caller)))
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
    yield _loads("model", app.embedder, seen, "Until then recall searches by words only.")
    if rerank is not None:
        advice = "Set RECOLLECT_RERANK to a cross-encoder, or unset it; until then recall works without it."
        yield _loads("reranker", rerank, f"{rerank.model}, looks at the best {rerank.top}", advice)
    if (chat := app.capabilities.chat) is not None:
        use = chat.used()
        hour, day = f"{use.hour} of {use.most_hour} tokens this hour", f"{use.day} of {use.most_day} this day"
        yield _answers(chat, f"{chat.model}, {hour}, {day}")


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


_LEADING = (Order.USED, Order.UPDATED, Order.IMPORTANT)
_CANDIDATES = 2  # times as many of each order as there are places
_SESSION: Final = timedelta(hours=12)
_IMPORTANCE, _LASTING, _RECENCY, _USE = 0.35, 0.25, 0.25, 0.15
_ROTATING: Final = 4  # one place of so many
_POOL: Final = 4  # so many days until the same is shown in it again


def format_for_prompt(app: App, request: ForPrompt, caller: Caller) -> Prompt:
    """Return the memories that answer `query`, or without one the most valuable, as fenced Markdown, a line for each.

    What in them gives orders to a model is redacted: whoever reads this has not asked for each of them.
    Only what answers a query counts as recalled: what is shown unasked would be shown for ever.
    """
    if request.query is None:
        memories = _most_valuable(app, request, caller)
    else:
        fields = {name: getattr(request, name) for name in request.model_fields_set - {"max_entries", "max_tokens"}}
        query = Query(**fields, limit=request.max_entries)
        with reading(app, query, caller) as view:
            memories = [hit.memory for hit in ranking_of(app, query, view).hits]
    text, shown = fenced(
        [governed_memory(one) for one in memories], request.max_tokens, app.embedder.counter() or estimate
    )
    if request.query is not None:
        count_use(app, [one for one in memories if one.id in shown], app.clock(), caller, accessed=False)
    return Prompt(text, tuple(shown))


def _most_valuable(app: App, request: ForPrompt, caller: Caller) -> list[Memory]:
    """Return the best of those used most, changed last and most important."""
    view = view_of(app, request, caller).model_copy(update={"condensed": False})
    with app.records.snapshot():
        pages = [app.records.list_ids(view, order, _CANDIDATES * request.max_entries, 0) for order in _LEADING]
        pages.append(app.records.pinned(view, request.max_entries))
        found = app.records.load({one for page in pages for one in page}, view)
    speaking = (one for one in found.values() if one.speaks_unasked)
    return most_valuable(speaking, request.max_entries, view.now)


def most_valuable(memories: Iterable[Memory], places: int, now: datetime) -> list[Memory]:
    """Return so many memories, the most valuable first; in a quarter of the places the next best take turns by day.

    What is pinned comes before all else, and what is buried never. Of memories that are worth the same, to the
    hundredth, the most used comes first.
    """
    ranked = sorted(
        (one for one in memories if one.standing is not Standing.BURIED),
        key=lambda one: (one.standing is None, -round(_value(one, now), 2), -rank.frequency(one), -one.id),
    )
    turns = places // _ROTATING
    first, pool = ranked[: places - turns], ranked[places - turns :][: turns * _POOL]
    start = now.toordinal() * turns % len(pool) if len(pool) > turns else 0
    return first + (pool[start:] + pool[:start])[:turns]


def _value(memory: Memory, now: datetime) -> float:
    """Return what a memory is worth (0–1) to whoever begins to work: by importance, kind, freshness and earlier use.

    What was stored within the last half day was used in no earlier session.
    """
    used = rank.frequency(memory) if memory.created_at <= now - _SESSION else 0.0
    lasting = POLICIES[memory.fact_type].lasting
    return _IMPORTANCE * memory.importance + _LASTING * lasting + _RECENCY * rank.recency(memory, now) + _USE * used
