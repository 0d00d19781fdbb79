"""Calibration: how often a hit of some `match` is relevant, and which floor refuses what a store cannot answer."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import recollect
from evaluation.sets import DEPTH, Question, Set, caller_of, err
from recollect import App, Caller, Query
from recollect.domain.results import Hit
from recollect.domain.search import ModelCard
from recollect.engines.embedder import Embedder

BINS = 10
FOREIGN = 40
KEPT = 0.97
FLOORS = (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
EVERY, MEAN = "all", "mean"
ANSWERED = "answered"
Asked = tuple[str, str]  # group, text of a question


class Floorless:
    """An embedding model whose card has no floor, so that even a refused query shows its best match."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def card(self) -> ModelCard:
        return dataclasses.replace(self._embedder.card, floor=0.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)


@dataclass
class Sample:
    """The matches that one set's questions brought back, and those of questions that its store cannot answer."""

    name: str
    matches: list[float] = field(default_factory=list)
    relevant: list[bool] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    foreign_matches: list[float] = field(default_factory=list)
    foreign_best: list[float] = field(default_factory=list)
    silent: dict[str, list[bool]] = field(default_factory=dict)

    def unanswered(self, app: App, one: Set) -> None:
        """Ask, as users do, what the set says its store cannot answer, and what it can."""
        for question in track([*one.questions, *one.unanswered], f"{self.name}: asking as users do", console=err):
            hits = recollect.recall(app, Query(query=question.text[:20_000]), caller_of(one.name, question.group)).hits
            kind = ANSWERED if question.answers else question.category
            self.silent.setdefault(kind, []).append(not hits)

    def answerable(
        self, app: App, caller: Caller, one: Question, hits: Sequence[Hit], behind: dict[str, list[str]]
    ) -> None:
        """Take in the hits of a question that has an answer; where the floor refused it, ask again without one."""
        hits = hits or unrefused(app, caller, one.text)
        self.matches += [hit.match for hit in hits]
        self.relevant += [not one.answers.isdisjoint(behind[str(hit.memory.id)]) for hit in hits]
        self.best.append(max((hit.match for hit in hits), default=0.0))

    def refusable(self, app: App, foreign: Sequence[Asked]) -> None:
        """Ask questions whose answer is not in the store."""
        for group, text in track(foreign, f"{self.name}: asking what it cannot know", console=err):
            hits = unrefused(app, caller_of(self.name, group), text)
            self.foreign_matches += [hit.match for hit in hits]
            self.foreign_best.append(max((hit.match for hit in hits), default=0.0))


def unrefused(app: App, caller: Caller, text: str) -> tuple[Hit, ...]:
    """Return what recall finds where no floor says that nothing is relevant."""
    query = Query(query=text[:20_000], limit=DEPTH, profile="relevance", min_score=0.0)
    return recollect.recall(dataclasses.replace(app, embedder=Floorless(app.embedder)), query, caller).hits


def foreign(one: Set, sets: Sequence[Set]) -> list[Asked]:
    """Return questions for each group of a set that other groups answer; for a set of one group, other sets."""
    groups = sorted({question.group for question in one.questions})
    own = {group: {question.text for question in one.questions if question.group == group} for group in groups}
    if len(groups) > 1:
        pools = {group: [{question.text for question in one.questions if question.group != group}] for group in groups}
    else:
        others = [{question.text for question in other.questions} for other in sets if other.name != one.name]
        pools = dict.fromkeys(groups, others)
    dice = random.Random(1)
    chosen: list[Asked] = []
    for group in groups:
        found: dict[str, None] = {}
        for pool in pools[group]:
            left = sorted(pool - own[group] - found.keys())
            found |= dict.fromkeys(dice.sample(left, min(FOREIGN, len(left))))
        chosen += [(group, text) for text in found]
    return chosen


def report(samples: Sequence[Sample], floor: float) -> dict[str, Any]:
    """Return the reliability of `match`, its expected calibration error, and what each floor keeps and refuses."""
    weights = [np.full(len(one.matches), 1 / max(len(one.matches), 1)) for one in samples]
    reliability = [
        *(row for one in samples for row in bins(one.name, one.matches, one.relevant, one.foreign_matches)),
        *bins(
            EVERY,
            [match for one in samples for match in one.matches],
            [relevant for one in samples for relevant in one.relevant],
            [match for one in samples for match in one.foreign_matches],
            np.concatenate(weights),
        ),
    ]
    floors = sorted({*FLOORS, floor})
    return {
        "reliability": reliability,
        "error": {name: error(reliability, name) for name in dict.fromkeys(row["set"] for row in reliability)},
        "floors": [row for value in floors for row in floor_rows(samples, value)],
        "suggested": suggested(samples),
        "card": floor,
    }


def bins(
    name: str, matches: Sequence[float], relevant: Sequence[bool], foreign: Sequence[float], weights: Any = None
) -> list[dict[str, Any]]:
    """Return for each tenth of `match` how many hits have it, their mean match, and the share that is relevant."""
    values, right = np.array(matches, dtype=float), np.array(relevant, dtype=float)
    weights = np.ones(len(values)) if weights is None else weights
    place = np.minimum((values * BINS).astype(int), BINS - 1)
    elsewhere = np.minimum((np.array(foreign, dtype=float) * BINS).astype(int), BINS - 1)
    rows = []
    for number in range(BINS):
        here = place == number
        weight = float(weights[here].sum())
        rows.append(
            {
                "set": name,
                "from": number / BINS,
                "to": (number + 1) / BINS,
                "n": int(here.sum()),
                "weight": weight / max(float(weights.sum()), 1e-12),
                "match": float((weights * values)[here].sum()) / weight if weight else None,
                "relevant": float((weights * right)[here].sum()) / weight if weight else None,
                "foreign": int((elsewhere == number).sum()),
            }
        )
    return rows


def error(rows: Sequence[dict[str, Any]], name: str) -> float:
    """Return the expected calibration error: how far the mean match of a bin is from the share that is relevant."""
    return float(
        sum(row["weight"] * abs(row["match"] - row["relevant"]) for row in rows if row["set"] == name and row["n"])
    )


def share(values: Sequence[float], floor: float) -> float | None:
    """Return the share of best matches that a floor lets pass; None where there are none."""
    return float(np.mean(np.array(values) >= floor)) if values else None


def floor_rows(samples: Sequence[Sample], floor: float) -> list[dict[str, Any]]:
    """Return what a floor keeps of the answerable and refuses of the foreign queries, by set and on the mean."""
    rows: list[dict[str, Any]] = []
    for one in samples:
        passed = share(one.foreign_best, floor)
        counts = {"n": len(one.best), "foreign": len(one.foreign_best)}
        refused = None if passed is None else 1 - passed
        rows.append({"set": one.name, "floor": floor, "kept": share(one.best, floor), "refused": refused} | counts)
    means = {
        name: float(np.mean(values)) if (values := [row[name] for row in rows if row[name] is not None]) else None
        for name in ("kept", "refused")
    }
    counts = {name: sum(row[name] for row in rows) for name in ("n", "foreign")}
    return [*rows, {"set": MEAN, "floor": floor} | means | counts]


def suggested(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the highest floors (in thousandths) that keep enough answerable queries: in every set, on the mean."""
    best = {"every set": 0.0, "mean": 0.0}
    for thousandths in range(1001):
        floor = thousandths / 1000
        kept = [found for one in samples if (found := share(one.best, floor)) is not None]
        if kept and min(kept) >= KEPT:
            best["every set"] = floor
        if kept and sum(kept) / len(kept) >= KEPT:
            best["mean"] = floor
    return best


def show_silent(sample: Sample) -> None:
    """Print how often recall said nothing, by category of the questions that have no answer."""
    table = Table("set", "questions", "n", "silent, in percent")
    for kind, found in sorted(sample.silent.items()):
        table.add_row(sample.name, kind, str(len(found)), f"{100 * np.mean(found):.1f}")
    Console(width=120).print(table)


def show(report: dict[str, Any]) -> None:
    """Print both tables, sets side by side."""
    console = Console(width=230)
    names = list(report["error"])
    title = "Reliability of `match`: mean match → share relevant, in percent, of n hits; without adversarial questions"
    table = Table("match", *names, "hits of foreign queries", title=title, title_justify="left")
    cells = {(row["set"], row["from"]): row for row in report["reliability"]}
    for number in range(BINS):
        rows = [cells[name, number / BINS] for name in names]
        about = [
            f"{100 * row['match']:.0f} → {100 * row['relevant']:.0f} of {row['n']}" if row["n"] else "" for row in rows
        ]
        table.add_row(f"{rows[0]['from']:.1f}–{rows[0]['to']:.1f}", *about, str(rows[-1]["foreign"]))
    table.add_section()
    table.add_row("calibration error", *(f"{100 * report['error'][name]:.1f}" for name in names), "")
    console.print(table, "`all` weighs each set equally.\n")
    names = list(dict.fromkeys(row["set"] for row in report["floors"]))
    counts = {row["set"]: f"{row['set']}\n{row['n']} / {row['foreign']}" for row in report["floors"]}
    title = "Floor: answerable queries kept / foreign queries refused, in percent (* the card's)"
    table = Table("floor", *(counts[name] for name in names), title=title, title_justify="left")
    found = {(row["set"], row["floor"]): row for row in report["floors"]}
    for floor in dict.fromkeys(row["floor"] for row in report["floors"]):
        rows = [found[name, floor] for name in names]
        mark = " *" if floor == report["card"] else ""
        table.add_row(f"{floor:.2f}{mark}", *(f"{points(row['kept'])} / {points(row['refused'])}" for row in rows))
    keep = f"Highest floor that keeps {100 * KEPT:.0f} % of the answerable queries"
    both = report["suggested"]
    console.print(table, f"{keep}: {both['every set']:.3f} in every set, {both['mean']:.3f} on the mean.")


def cell(row: dict[str, Any]) -> str:
    return f"{100 * row['match']:.0f} → {100 * row['relevant']:.0f} of {row['n']}" if row["n"] else ""


def points(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
