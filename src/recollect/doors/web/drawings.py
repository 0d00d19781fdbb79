"""Two drawings, made here as SVG: what is connected, and memories close to those that are similar."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from recollect.domain.page import MOST_PLACES, Edge, Graph, VectorMap
from recollect.doors.web.memories import filters_of, form_of
from recollect.doors.web.visit import Shown, Visit
from recollect.doors.web.words import many

_WIDTH: Final = 1000
_HEIGHT: Final = 640
_MARGIN: Final = 40
_STEPS: Final = 60
_NAMED: Final = 60  # nodes that have room for their names
_NAMED_ON_PHONES: Final = 8
_KINDS: Final = ("memories", "names")


def graph(visit: Visit) -> Shown:
    """Show a graph, and the same as a list."""
    middle = {"id": visit.said("id")} if visit.said("id") else {}
    found: Graph = visit.run("read_graph", **filters_of(visit), **middle)
    degree = Counter(end for edge in found.edges for end in (edge.one, edge.two))
    ranks = sorted(
        (place for place, node in enumerate(found.nodes) if node.kind == "entity"), key=lambda place: -degree[place]
    )
    dots = [
        {
            "label": node.label,
            "to": visit.link(f"memory/{node.name}") if node.kind == "memory" else visit.link("graph", entity=node.name),
            "kind": _KINDS[node.kind == "entity"],
            "note": f"{node.kind}, {many(degree[place], 'connection')}",
            "text": node.label[:24] if place in ranks[:_NAMED] else "",
            "minor": place in ranks[_NAMED_ON_PHONES:],
            "r": min(5 + degree[place] * 0.6, 12),
            "x": x,
            "y": y,
        }
        for place, (node, (x, y)) in enumerate(zip(found.nodes, layout(len(found.nodes), found.edges), strict=True))
    ]
    lines = [(dots[one.one], dots[one.two], one.label) for one in found.edges]
    return _drawing(visit, "graph.html", {"graph": found}, dots, lines, _KINDS)


def vector_map(visit: Visit) -> Shown:
    """Show a map of the vectors, and the memories in it as a list."""
    most = visit.number("limit", MOST_PLACES, MOST_PLACES, least=1)
    found: VectorMap = visit.run("read_map", **filters_of(visit), query=visit.said("q") or None, limit=most)
    dots = [
        {
            "label": memory.title or memory.abstract or memory.content[:80],
            "to": visit.link(f"memory/{memory.id}"),
            "kind": str(memory.fact_type),
            "note": str(memory.fact_type),
            "text": "",
            "r": 6,
            "x": round(_MARGIN + one.x * (_WIDTH - 2 * _MARGIN), 1),
            "y": round(_MARGIN + one.y * (_HEIGHT - 2 * _MARGIN), 1),
        }
        for one in found.places
        for memory in [one.memory]
    ]
    return _drawing(visit, "map.html", {"map": found}, dots, [], sorted({str(dot["kind"]) for dot in dots}))


def _drawing(
    visit: Visit, template: str, data: dict[str, Any], dots: list[Any], lines: list[Any], kinds: Sequence[str]
) -> Shown:
    drawn = {"_dots": dots, "_lines": lines, "_kinds": kinds, "_width": _WIDTH, "_height": _HEIGHT}
    return Shown(template, data | drawn | form_of(visit))


def layout(count: int, edges: Sequence[Edge]) -> list[tuple[float, float]]:
    """Return where to draw so many nodes: what is connected near each other, all else apart.

    It is the method of Fruchterman and Reingold, from a spiral, so that the same graph is drawn the same way.
    """
    if not count:
        return []
    turn = np.arange(count) * 2.399963  # the golden angle
    radius = np.sqrt((np.arange(count) + 0.5) / count)
    at = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    pairs = np.array([(one.one, one.two) for one in edges], dtype=int).reshape(-1, 2)
    spread = 1.6 / math.sqrt(count)
    for step in range(_STEPS):
        apart = at[:, None, :] - at[None, :, :]
        distance = np.sqrt((apart**2).sum(axis=2)) + 1e-6
        force = (apart / distance[..., None] * (spread**2 / distance)[..., None]).sum(axis=1)
        if len(pairs):
            along = at[pairs[:, 0]] - at[pairs[:, 1]]
            pull = along * (np.sqrt((along**2).sum(axis=1)) / spread)[:, None]
            np.add.at(force, pairs[:, 0], -pull)
            np.add.at(force, pairs[:, 1], pull)
        force -= 0.6 * at  # what is connected with nothing stays in sight
        length = np.sqrt((force**2).sum(axis=1)) + 1e-9
        heat = 0.12 * (1 - step / _STEPS) + 0.004
        at = at + force / length[:, None] * np.minimum(length, heat)[:, None]
    low, high = at.min(axis=0), at.max(axis=0)
    scaled = (at - low) / np.where(high > low, high - low, 1.0)
    x = _MARGIN + scaled[:, 0] * (_WIDTH - 2 * _MARGIN)
    y = _MARGIN + scaled[:, 1] * (_HEIGHT - 2 * _MARGIN)
    return [(round(float(one), 1), round(float(two), 1)) for one, two in zip(x, y, strict=True)]
