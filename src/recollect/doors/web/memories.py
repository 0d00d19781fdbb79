"""The screens of memories: a search with its reasons, pages of many, and one memory with all that is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from recollect.domain.enums import Certainty, Concept, FactType, ObservationType, Order, Scope, Source
from recollect.domain.fields import MAX_LIMIT
from recollect.domain.page import Browsed, Counted, JournalLine
from recollect.domain.requests import FactQuery
from recollect.domain.results import Hit, JournalEntry, Memory, Recalled, found_message
from recollect.doors.web.visit import LEVELS, Shown, Visit
from recollect.doors.web.words import differences
from recollect.doors.web.zones import local
from recollect.errors import ModelUnusable, NotFound, RecollectError

FILTERS: Final = (
    *("scope", "fact_type", "type", "category", "entity", "session_id", "author", "source", "file", "since", "until"),
    *("tags", "concepts"),
)
"""What the address may say to filter memories, as the requests call it; `about` is a memory's own field `project`."""
_CHOICES: Final[dict[str, tuple[str, Any]]] = {
    "scope": ("Scope", Scope),
    "fact_type": ("Kind", FactType),
    "type": ("Observation", ObservationType),
    "concepts": ("Concept", Concept),
    "source": ("Came in by", Source),
    "age": ("Age", {"1": "the last day", "7": "the last week", "30": "the last month", "365": "the last year"}),
}
"""Filters of which one of a few values is chosen: what the form calls each, and the values."""
_LISTS: Final = ("tags", "concepts", "files_read", "files_modified", "when")
_BY_LINE: Final = ("when",)  # those whose values may hold commas
EDITED: Final = (
    *("content", "title", "abstract", "category", "key", "speaker", "fact_type", "type", "sensitivity"),
    *("importance", "confidence", "trust", "tags", "files_read", "files_modified", "when"),
)
"""The fields that the form of a memory changes."""
_SIMILAR: Final = 6
_PARTS: Final = {
    "match": "how well it matches",
    "recency": "how recent it is",
    "importance": "how important it is",
    "trust": "how far it is trusted",
    "frequency": "how often it was used",
    "period": "it is of the time that was asked for",
}
_SEARCHERS: Final = {"meaning": "meaning", "words": "words", "fuzzy": "spelling"}


def filters_of(visit: Visit) -> dict[str, Any]:
    """Return the filters that the address says, as a request takes them."""
    found: dict[str, Any] = dict(visit.levels)
    for name in FILTERS:
        values = visit.values(name)
        if values:
            found[name] = values if name in _LISTS else values[0].strip()
    if visit.value("about"):
        found["project"] = visit.value("about")
    if visit.value("superseded"):
        found["superseded"] = True
    if age := visit.number("age", 0, 36_500):
        day = local(visit.app.clock() - timedelta(days=age), visit.zone)
        found["since"] = day.replace(hour=0, minute=0, second=0, microsecond=0).isoformat()
    return found


def form_of(visit: Visit) -> dict[str, Any]:
    """Return the data of the filter form: the chosen values and the choices."""
    names = (*FILTERS, "about", "age", "q", "superseded", "everywhere", *LEVELS)
    chosen = {name: ", ".join(visit.values(name)) for name in names}
    return {"filters": {name: value for name, value in chosen.items() if value}, "_choices": _CHOICES}


def search(visit: Visit) -> Shown:
    """Show the answers to a query with their reasons, and folded below them the nearest of the weak hits."""
    query = visit.value("q")
    options = filters_of(visit) | {"limit": visit.number("limit", 10, 100, least=1)}
    if visit.value("everywhere") and not visit.team_server:
        options["everywhere"] = True
    typing = bool(visit.value("typing"))  # hits of a half typed question are no use of them
    found: Recalled = visit.run("recall_uncounted" if typing else "recall", query=query, **options)
    likely = tuple(hit for hit in found.hits if hit.certainty is not Certainty.WEAK)
    nearest = (found.nearest,) if found.nearest is not None and not found.hits else ()
    data = {
        "query": query,
        "recalled": found,
        "nearest": nearest,
        "_likely": likely,
        "_closest": tuple(hit for hit in found.hits if hit not in likely) or nearest,
        "_message": found_message(len(likely)),
        "passages": {str(hit.memory.id): hit.passage for hit in found.hits if hit.passage},
        "_reasons": {hit.memory.id: reasons(hit) for hit in (*found.hits, *nearest)},
        "_by": visit.authors([hit.memory for hit in (*found.hits, *nearest)]),
    }
    return Shown("search.html", data | form_of(visit))


def reasons(hit: Hit) -> dict[str, Any]:
    """Return the reasons for a hit's rank: what found it, and each part of its score with its share."""
    why = hit.why
    found_by = [_SEARCHERS[searcher] for searcher in why.pop("found_by")]
    parts = [(name, _PARTS.get(name, name), value) for name, value in why.items() if value]
    signals = hit.signals
    seen = [
        ("cosine of its best chunk", round(signals.cosine, 2)),
        ("words in common (BM25)", round(signals.bm25, 1)),
        ("share of the query's words", round(signals.coverage, 2)),
    ]
    return {"found_by": found_by, "parts": parts, "signals": [signal for signal in seen if signal[1]]}


def browse(visit: Visit) -> Shown:
    """Show a page of memories, with counts by which to narrow it down."""
    options = filters_of(visit)
    hidden = bool(visit.value("hidden"))
    order = visit.value("order", str(Order.NEWEST))
    found: Browsed = visit.run(
        "browse",
        **options,
        hidden=hidden,
        order=order,
        after=visit.value("after") or None,
        limit=visit.number("limit", 25, 100, least=1),
    )
    counted: Counted = visit.run("facets", **options, hidden=hidden)
    data = {"browsed": found, "counted": counted, "order": order, "hidden": hidden}
    return Shown("browse.html", data | {"_by": visit.authors(found.memories)} | form_of(visit))


def one(visit: Visit) -> Shown:
    """Show a memory with everything that is known about it."""
    memory, levels = found(visit), visit.levels
    number = str(memory.id)
    history: list[JournalEntry] = visit.run("history", id=number, **levels)
    facts = visit.run("query_facts", **FactQuery(memory_id=number, history=True).model_dump(exclude_unset=True))
    versions = [found(visit, str(memory_id)) for memory_id in memory.merged_from[:20]]
    replaced: Browsed = visit.run("browse", replaced_by=number, superseded=True, limit=20, **levels)
    try:
        similar = visit.run("find_similar", id=number, threshold=0.45, limit=_SIMILAR, **levels)
    except (ModelUnusable, NotFound):  # the model is still loading, or the memory is hidden
        similar = []
    older = sorted((*versions, *replaced.memories), key=lambda one: (one.updated_at, one.id))
    texts = pairwise([*older, memory])
    data = {
        "memory": memory,
        "history": [JournalLine.of(line) for line in reversed(history)],
        "facts": facts.facts,
        "uses": visit.run("uses_of", id=number),
        "versions": versions,
        "replaced": replaced.memories,
        "similar": similar,
        "writable": visit.writes(memory),
        "_by": visit.authors([memory]),
        "_differences": [(old, differences(old.content, new.content)) for old, new in texts][::-1],
    }
    return Shown("memory.html", data)


def edit(visit: Visit) -> Shown:
    """Show the form for a memory's text and labels."""
    return edited(visit, found(visit))


def edited(visit: Visit, memory: Memory, error: RecollectError | None = None) -> Shown:
    """Show the form with the typed values, and the error that writing them ended with."""
    fields = shown_fields(memory) | typed(visit)
    entered: dict[str, Any] = {
        name: ("\n" if name.startswith("files") else ", ").join(value) if isinstance(value, list) else value
        for name, value in fields.items()
    }
    entered["keep"] = not visit.form or "keep" in visit.form
    data = {"memory": memory, "_typed": entered, "error": error, "_choices": _CHOICES}
    return Shown("edit.html", data, error.status if error else 200)


def typed(visit: Visit) -> dict[str, Any]:
    """Return the fields in the form as the memory would show them."""
    texts = {name: str(visit.form[name]) for name in EDITED if name in visit.form}
    return {
        name: [line.strip() for line in _split_list(name, text) if line.strip()]
        if name in _LISTS
        else text
        if name == "content"
        else text.strip()
        for name, text in texts.items()
    }


def _split_list(name: str, text: str) -> list[str]:
    return text.split("\n") if name in _BY_LINE else text.replace("\n", ",").split(",")


def shown_fields(memory: Memory) -> dict[str, Any]:
    """Return the fields of a memory as its form shows them: texts, and lists of texts."""
    values = {name: getattr(memory, name) for name in EDITED}
    return {
        name: list(map(str, value)) if name in _LISTS else "" if value is None else str(value)
        for name, value in values.items()
    }


def move(visit: Visit) -> Shown:
    """Show where a memory can be moved."""
    return Shown("move.html", {"memory": found(visit)})


def loaded(visit: Visit, ids: Iterable[int | str]) -> list[Memory]:
    """Return those of these memories that the user may see, replaced memories too."""
    wanted = [str(memory_id) for memory_id in dict.fromkeys(ids)]
    pages: Iterator[Browsed] = (
        visit.run("browse", ids=wanted[start : start + MAX_LIMIT], superseded=True, **visit.levels)
        for start in range(0, len(wanted), MAX_LIMIT)
    )
    return [memory for page in pages for memory in page.memories]


def found(visit: Visit, number: str = "") -> Memory:
    """Return the memory that the address names, a hidden memory too; raise `NotFound`."""
    number = number or visit.parameters["id"]
    try:
        memory: Memory = visit.run("get_memory", id=number, **visit.levels)
    except NotFound:
        page: Browsed = visit.run("browse", ids=[number], hidden=True, superseded=True, **visit.levels)
        if not page.memories:
            raise
        memory = page.memories[0]
    return memory
