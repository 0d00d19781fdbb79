"""What many memories are together: pages of them with counts, their journal, how they are connected, a map of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from recollect.app import App
from recollect.domain.enums import Order
from recollect.domain.page import (
    Browse,
    Browsed,
    Counted,
    Edge,
    Facets,
    Graph,
    JournalLine,
    JournalPage,
    Node,
    Placed,
    ReadGraph,
    ReadJournal,
    ReadMap,
    VectorMap,
)
from recollect.domain.requests import Caller, FactQuery, Query
from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.search.candidates import reading
from recollect.search.ranking import ranking_of
from recollect.search.visibility import levels_of, parse_id, unfiltered, view_of

_AROUND: Final = 60
"""How many other memories a graph shows beside the one in its middle."""
_BEGINNING: Final = 60
"""How many of the newest memories a graph begins with that has no middle."""
_LABEL: Final = 48  # characters
_HITS: Final = 30
"""How many hits of a search a map shows at most: ranking more takes too long for a page."""
_FACTS: Final = 100
_COUNTED: Final = 10_000
"""How many memories are counted by their fields at most: reading all of more takes too long for a page."""


def browse(app: App, request: Browse, caller: Caller) -> Browsed:
    """Return the page of memories behind `after`, in the order asked for; or these memories, or what one replaces."""
    view = view_of(app, request, caller).model_copy(update={"hidden": request.hidden})
    with app.records.snapshot():
        if request.ids:
            ids, after = [number for one in request.ids if (number := parse_id(one))], None
        elif request.replaced_by is not None:
            ids, after = app.records.replaced_by(parse_id(request.replaced_by) or 0, request.limit), None
        else:
            ids, after = app.records.page_after(view, request.order, request.after, request.limit)
        found = app.records.load(ids, view)
    return Browsed(tuple(found[one] for one in ids if one in found), after)


def facets(app: App, request: Facets, caller: Caller) -> Counted:
    """Count the memories by kind, scope, author, source, tag and month; of very many, the newest."""
    view = view_of(app, request, caller).model_copy(update={"hidden": request.hidden})
    with app.records.snapshot():
        total, counts = app.records.facets(view, _COUNTED)
        return Counted(total, min(total, _COUNTED), counts, app.records.states(view) if request.states else {})


def read_journal(app: App, request: ReadJournal, caller: Caller) -> JournalPage:
    """Return lines of the journal, the newest first, of what the caller may see."""
    namespaces, levels = caller.namespaces(request.scope), levels_of(request, caller)
    found = app.records.journal_before(
        namespaces, levels, request.before, request.limit + 1, actor=request.actor, action=request.action
    )
    more, shown = len(found) > request.limit, found[: request.limit]
    return JournalPage(tuple(map(JournalLine.of, shown)), shown[-1].id if more else None)


def read_graph(app: App, request: ReadGraph, caller: Caller) -> Graph:
    """Return the memories around one memory or entity, or the newest ones, with their entities and facts."""
    view = view_of(app, request, caller)
    middle = parse_id(request.id) if request.id is not None else None
    with app.records.snapshot():
        memories = _around(app, view, middle) if middle else _newest(app, view, _BEGINNING)
        seen = unfiltered(app, request, caller, request.scope)
        query = FactQuery(memory_id=request.id, limit=_FACTS)
        triples = app.records.facts(query, seen.model_copy(update={"superseded": False}))[0]
    graph = _Drawing()
    named = Counter(one.name for memory in memories for one in memory.entities)
    for memory in memories:
        at = graph.node("memory", str(memory.id), memory.title or memory.abstract)
        for entity in memory.entities:
            if named[entity.name] > 1 or memory.id == middle or request.entity:
                graph.join(at, graph.node("entity", entity.name, entity.name))
    for fact in triples:
        subject, end = (graph.node("entity", name, name) for name in (fact.subject, fact.object))
        graph.join(subject, end, fact.predicate)
        if fact.memory_id is not None and ("memory", str(fact.memory_id)) in graph.places:
            graph.join(graph.places["memory", str(fact.memory_id)], subject)
    return graph.cut(request.limit)


def _around(app: App, view: View, middle: int) -> list[Memory]:
    """Return a memory and those that name what it names; nothing for one that the view does not see."""
    wide = view.model_copy(update={"superseded": True})
    found = app.records.load([middle], wide)
    names = [one.name for memory in found.values() for one in memory.entities]
    sharing = {number for _, number in app.records.sharing_entities(names, view, _AROUND)} if names else set()
    others = app.records.load(sharing - {middle}, view)
    return [*found.values(), *(others[one] for one in sorted(others, reverse=True))]


def _newest(app: App, view: View, limit: int) -> list[Memory]:
    ids = app.records.page_after(view, Order.NEWEST, None, limit)[0]
    found = app.records.load(ids, view)
    return [found[one] for one in ids if one in found]


class _Drawing:
    """A graph while it is put together."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, str], int] = {}
        self._nodes: list[Node] = []
        self._edges: dict[tuple[int, int], str] = {}

    def node(self, kind: str, name: str, label: str) -> int:
        """Return the place of a node, which is added where there is none."""
        key = (kind, name.casefold())
        if key not in self.places:
            self.places[key] = len(self._nodes)
            line = " ".join(label.split())
            self._nodes.append(Node(name, kind, line if len(line) <= _LABEL else line[: _LABEL - 1].rstrip() + "…"))
        return self.places[key]

    def join(self, one: int, two: int, label: str = "") -> None:
        """Connect two nodes once."""
        if one != two:
            key = (min(one, two), max(one, two))
            self._edges[key] = label or self._edges.get(key, "")

    def cut(self, most: int) -> Graph:
        """Return the nodes with the most edges, at most so many, and the edges between them."""
        degree = Counter(end for pair in self._edges for end in pair)
        kept = sorted(range(len(self._nodes)), key=lambda one: (one != 0, -degree[one], one))[:most]
        place = {one: at for at, one in enumerate(kept)}
        edges = tuple(
            Edge(place[one], place[two], label)
            for (one, two), label in self._edges.items()
            if one in place and two in place
        )
        return Graph(tuple(self._nodes[one] for one in kept), edges, len(self._nodes) - len(kept))


def read_map(app: App, request: ReadMap, caller: Caller) -> VectorMap:
    """Return the newest memories, or the hits of a search, at the first two principal components of their vectors."""
    memories = _mapped(app, request, caller)
    places, shown = app.vectors.plane([one.id for one in memories])
    placed = tuple(Placed(one, *places[one.id]) for one in memories if one.id in places)
    return VectorMap(placed, shown, len(memories) - len(placed))


def _mapped(app: App, request: ReadMap, caller: Caller) -> Sequence[Memory]:
    if request.query is None:
        with app.records.snapshot():
            return _newest(app, view_of(app, request, caller), request.limit)
    given = {name: getattr(request, name) for name in request.model_fields_set - {"limit"}}
    query = Query(**given | {"limit": min(request.limit, _HITS), "min_score": 0.0})
    with reading(app, query, caller) as view:
        return [hit.memory for hit in ranking_of(app, query, view).hits]
