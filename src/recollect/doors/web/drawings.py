"""Two drawings, made here as SVG: what hangs together, and memories near each other where they say alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from recollect.domain.page import MOST_PLACES, Edge, Graph, VectorMap
from recollect.doors.web.memories import filters_of, form_of
from recollect.doors.web.visit import Shown, Visit
from recollect.doors.web.words import shown

WIDTH: Final = 1000
HEIGHT: Final = 640
_MARGIN: Final = 40
_STEPS: Final = 60
_NAMED: Final = 60  # nodes that have room for their names


def graph(visit: Visit) -> Shown:
    """Show a graph, and the same as a list."""
    given = filters_of(visit) | {name: visit.said(name) for name in ("id",) if visit.said(name)}
    found: Graph = visit.run("read_graph", **given)
    points = layout(len(found.nodes), found.edges)
    degree = [0] * len(found.nodes)
    for edge in found.edges:
        degree[edge.one] += 1
        degree[edge.two] += 1
    nodes = [
        {"node": one, "x": x, "y": y, "degree": held, "to": _link(visit, one), "named": place < _NAMED}
        for place, (one, (x, y), held) in enumerate(zip(found.nodes, points, degree, strict=True))
    ]
    lines = [(nodes[one.one], nodes[one.two], one.label) for one in found.edges]
    data = {"graph": found, "_nodes": nodes, "_lines": lines, "_width": WIDTH, "_height": HEIGHT}
    return Shown("graph.html", data | form_of(visit))


def vector_map(visit: Visit) -> Shown:
    """Show a map of the vectors, and the memories in it as a list."""
    query = visit.said("q")
    given = filters_of(visit) | {"query": query or None, "limit": visit.number("limit", 500, MOST_PLACES) or 1}
    found: VectorMap = visit.run("read_map", **given)
    dots = [
        {
            "memory": one.memory,
            "to": visit.link(f"memory/{one.memory.id}"),
            "label": shown(one.memory.title or one.memory.abstract or one.memory.content[:80]),
            "x": round(_MARGIN + one.x * (WIDTH - 2 * _MARGIN), 1),
            "y": round(_MARGIN + one.y * (HEIGHT - 2 * _MARGIN), 1),
        }
        for one in found.places
    ]
    kinds = sorted({str(one.memory.fact_type) for one in found.places})
    data = {"map": found, "_dots": dots, "_kinds": kinds, "_width": WIDTH, "_height": HEIGHT, "_q": query}
    return Shown("map.html", data | form_of(visit))


def layout(many: int, edges: Sequence[Edge]) -> list[tuple[float, float]]:
    """Return where to draw so many nodes: what is connected near each other, all else apart.

    It is the method of Fruchterman and Reingold, from a spiral, so that the same graph is drawn the same way.
    """
    if not many:
        return []
    turn = np.arange(many) * 2.399963  # the golden angle
    radius = np.sqrt((np.arange(many) + 0.5) / many)
    at = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    pairs = np.array([(one.one, one.two) for one in edges], dtype=int).reshape(-1, 2)
    spread = 1.6 / math.sqrt(many)
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
    x = _MARGIN + scaled[:, 0] * (WIDTH - 2 * _MARGIN - 120)
    y = _MARGIN + scaled[:, 1] * (HEIGHT - 2 * _MARGIN)
    return [(round(float(one), 1), round(float(two), 1)) for one, two in zip(x, y, strict=True)]


def _link(visit: Visit, node: Any) -> str:
    return visit.link(f"memory/{node.name}") if node.kind == "memory" else visit.link("graph", entity=node.name)
