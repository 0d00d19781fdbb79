"""The screens of memories: a search with its reasons, pages of many, and one memory with all that is known of it."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from recollect.domain.enums import Concept, FactType, ObservationType, Order, Scope, Source
from recollect.domain.page import Browsed, Counted, JournalLine
from recollect.domain.requests import FactQuery
from recollect.domain.results import Hit, JournalEntry, Memory, Recalled
from recollect.doors.web.visit import LEVELS, Shown, Visit
from recollect.doors.web.words import differences
from recollect.errors import InvalidInput, ModelUnusable, NotFound, RecollectError
from recollect.search.budget import LONG

FILTERS: Final = (
    *("scope", "fact_type", "type", "category", "entity", "session_id", "author", "source", "file", "since", "until"),
    *("tags", "concepts"),
)
"""What the address may say to filter memories, as the requests call it; `about` is a memory's own field `project`."""
AGES: Final = {"1": "the last day", "7": "the last week", "30": "the last month", "365": "the last year"}
_LISTS: Final = ("tags", "concepts")
_SIMILAR: Final = 6
_PARTS: Final = {
    "match": "how well it matches",
    "recency": "how recent it is",
    "importance": "how important it is",
    "trust": "how far it is trusted",
    "frequency": "how often it was used",
    "period": "it is of the time that was asked for",
    "order": "raised to stand above what it replaces",
}
_SEARCHERS: Final = {"meaning": "meaning", "words": "words", "fuzzy": "spelling"}


def filters_of(visit: Visit) -> dict[str, Any]:
    """Return the filters that the address says, as a request takes them."""
    found: dict[str, Any] = dict(visit.levels)
    for name in FILTERS:
        said = visit.all_said(name)
        if said:
            found[name] = said if name in _LISTS else said[0].strip()
    if visit.said("about"):
        found["project"] = visit.said("about")
    if visit.said("superseded"):
        found["superseded"] = True
    if age := visit.number("age", 0, 36_500):
        found["since"] = (visit.app.clock() - timedelta(days=age)).date().isoformat()
    return found


def form_of(visit: Visit) -> dict[str, Any]:
    """Return what the form of filters needs: what is chosen, and the choices."""
    choices: dict[str, list[str]] = {
        "scope": [str(one) for one in Scope],
        "fact_type": [str(one) for one in FactType],
        "type": [str(one) for one in ObservationType],
        "concepts": [str(one) for one in Concept],
        "source": [str(one) for one in Source],
    }
    names = (*FILTERS, "about", "age", "q", "superseded", "everywhere", *LEVELS)
    chosen = {name: ", ".join(visit.all_said(name)) for name in names}
    return {"filters": {name: value for name, value in chosen.items() if value}, "_choices": choices, "_ages": AGES}


def search(visit: Visit) -> Shown:
    """Show what answers a query, and why; where nothing does, what was nearest."""
    query, form = visit.said("q"), form_of(visit)
    if not query:
        recent: Browsed = visit.run("browse", limit=8, **visit.levels)
        return Shown("search.html", {"query": "", "recalled": None, "nearest": [], "recent": recent.memories, **form})
    given = filters_of(visit) | {"limit": visit.number("limit", 10, 100) or 10}
    if visit.said("everywhere") and not visit.team_server:
        given["everywhere"] = True
    found: Recalled = visit.run("recall", query=query, **given)
    nearest = (found.nearest,) if found.nearest is not None and not found.hits else ()
    data = {
        "query": query,
        "recalled": found,
        "nearest": nearest,
        "recent": [],
        "passages": {str(one.memory.id): one.passage for one in found.hits if one.passage},
        "_reasons": {one.memory.id: reasons(one) for one in (*found.hits, *nearest)},
    }
    return Shown("search.html", data | form)


def reasons(hit: Hit) -> dict[str, Any]:
    """Return why a hit is where it is: what found it, and the parts of its score with their share of it."""
    why = hit.why
    found_by = [_SEARCHERS[one] for one in why.pop("found_by")]
    parts = [(name, _PARTS.get(name, name), value) for name, value in why.items() if value]
    signals = hit.signals
    seen = [
        ("cosine of its best chunk", round(signals.cosine, 2)),
        ("words in common (BM25)", round(signals.bm25, 1)),
        ("share of the query's words", round(signals.coverage, 2)),
    ]
    return {"found_by": found_by, "parts": parts, "signals": [one for one in seen if one[1]]}


def browse(visit: Visit) -> Shown:
    """Show a page of memories, with counts by which to narrow it down."""
    given = filters_of(visit)
    hidden = bool(visit.said("hidden"))
    order = visit.said("order", str(Order.NEWEST))
    found: Browsed = visit.run(
        "browse", **given, hidden=hidden, order=order, after=visit.said("after") or None, limit=_page(visit)
    )
    counted: Counted = visit.run("facets", **given, hidden=hidden)
    data = {"browsed": found, "counted": counted, "order": order, "hidden": hidden, "_orders": [str(o) for o in Order]}
    return Shown("browse.html", data | form_of(visit))


def one(visit: Visit) -> Shown:
    """Show one memory with all that is known of it."""
    memory = found(visit)
    number = str(memory.id)
    history: list[JournalEntry] = visit.run("history", id=number, **visit.levels)
    facts = visit.run("query_facts", **FactQuery(memory_id=number, history=True).model_dump(exclude_unset=True))
    others = _others(visit, memory)
    data = {
        "memory": memory,
        "history": [JournalLine.of(line) for line in reversed(history)],
        "facts": facts.facts,
        "uses": visit.run("uses_of", id=number),
        "versions": others["versions"],
        "replaced": others["replaced"],
        "similar": others["similar"],
        "writable": visit.writes(memory),
        "_differences": [(old, differences(old.content, new.content)) for old, new in _texts(others, memory)],
        "_long": len(memory.content) > LONG,
    }
    return Shown("memory.html", data)


def edit(visit: Visit) -> Shown:
    """Show the form for a memory's text and labels."""
    return edited(visit, found(visit))


def edited(visit: Visit, memory: Memory, error: RecollectError | None = None) -> Shown:
    """Show that form with what was typed into it, and the error that it ended with."""
    data = {"memory": memory, "_typed": dict(visit.form), "error": error, "_choices": form_of(visit)["_choices"]}
    return Shown("edit.html", data, error.status if error else 200)


def move(visit: Visit) -> Shown:
    """Show where a memory can be moved."""
    memory = found(visit)
    return Shown("move.html", {"memory": memory, "_scopes": [str(one) for one in Scope]})


def found(visit: Visit, number: str = "") -> Memory:
    """Return the memory that the address names, also one that is hidden; raise `NotFound`."""
    number = number or visit.parameters["id"]
    try:
        memory: Memory = visit.run("get_memory", id=number, **visit.levels)
    except NotFound:
        page: Browsed = visit.run("browse", ids=[number], hidden=True, superseded=True, **visit.levels)
        if not page.memories:
            raise
        memory = page.memories[0]
    return memory


def is_there(visit: Visit, number: str) -> bool:
    """Say whether a memory is there, be it hidden."""
    try:
        return bool(found(visit, number))
    except NotFound:
        return False


def _page(visit: Visit) -> int:
    wanted = visit.number("limit", 25, 100)
    if not wanted:
        raise InvalidInput("limit", "Invalid limit: Must be a whole number from 1 to 100")
    return wanted


def _others(visit: Visit, memory: Memory) -> dict[str, list[Any]]:
    """Return what a memory was merged from, what it replaced, and what says nearly the same."""
    levels = visit.levels
    versions = [found(visit, str(one)) for one in memory.merged_from[:20]]
    replaced: Browsed = visit.run("browse", replaced_by=str(memory.id), superseded=True, limit=20, **levels)
    try:
        similar = visit.run("find_similar", id=str(memory.id), threshold=0.45, limit=_SIMILAR, **levels)
    except (ModelUnusable, NotFound):  # the model is still loading, or the memory is hidden
        similar = []
    return {"versions": versions, "replaced": list(replaced.memories), "similar": similar}


def _texts(others: dict[str, list[Any]], memory: Memory) -> list[tuple[Memory, Memory]]:
    """Return the earlier texts that are kept with the text that followed each, the newest first."""
    older = sorted((*others["versions"], *others["replaced"]), key=lambda one: (one.updated_at, one.id))
    return list(pairwise([*older, memory]))[::-1] if older else []
