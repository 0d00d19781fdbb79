"""Fit what tells that a newer memory is a version of an older one, on questions whose true answer is known.

A question of the category `current` has the newest note as its answer: it is a version of the older one that answers as
well. For every other question the older of two notes must not give way where it alone is the answer.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

import recollect
from evaluation.sets import Clock, Question, Set, caller_of, err, fill, load
from recollect import App, Draft, Query, Settings
from recollect.domain.search import RankingRow
from recollect.errors import RecollectError
from recollect.search import versions
from recollect.search.hits import ranking_of
from recollect.search.steps import Order, moved_up
from recollect.search.visibility import view_of

BEST: Final = 4  # memories of a question that are compared
PENALTY: Final = 1.0
CURRENT: Final = "current"
BOTH_RIGHT: Final = 0.3  # weight of a pair of which both answer: their order hardly counts
SURE: Final = 0.36  # from this probability on the newer comes first
APART: Final = (timedelta(), timedelta(hours=5), timedelta(days=2), timedelta(days=60))
out = Console(width=120)
Model = tuple[np.ndarray, float]


@dataclass(frozen=True)
class Pair:
    """Two memories that answer a question, what is known of them, and whether the newer is a version of the older."""

    older: int
    newer: int
    traits: versions.Traits
    version: bool | None
    weight: float = 1.0


@dataclass(frozen=True)
class Asked:
    """A question with its best memories by match, which of them answer it, and their pairs."""

    set: str
    category: str
    order: tuple[int, ...]
    right: frozenset[int]
    pairs: tuple[Pair, ...]
    past: bool


def asked_of(app: App, one: Set, question: Question, behind: Mapping[str, Sequence[str]]) -> Asked:
    """Ask one question and compare its best memories."""
    query = Query(query=question.text, limit=BEST, profile="relevance", min_score=0.0)
    found = ranking_of(app, query, view_of(app, query, caller_of(one.name, question.group)))
    matches = dict(zip(found.ranked.ids, found.ranked.matches, strict=True))
    order = tuple(sorted(matches, key=lambda number: -matches[number])[:BEST])
    rows = {number: row for number, row in found.candidates.rows.items() if number in order}
    right = frozenset(int(memory) for memory, ids in behind.items() if question.answers.intersection(ids))
    about = versions.Asked(question.text, found.candidates.found.terms.weights)
    pairs = [_pair(about, rows, matches, two, right, question.category) for two in combinations(rows, 2)]
    kept = tuple(pair for pair in pairs if pair is not None)
    return Asked(one.name, question.category, order, right, kept, versions.asks_past(question.text))


def _pair(
    about: versions.Asked,
    rows: Mapping[int, RankingRow],
    matches: Mapping[int, float],
    two: tuple[int, int],
    right: frozenset[int],
    category: str,
) -> Pair | None:
    old, new = sorted(two, key=lambda number: (rows[number].dated_at, number))
    if not versions.may_be_versions(rows[new], rows[old], matches[new], matches[old]):
        return None
    if versions.other_subject(about.text, rows[old].content, rows[new].content):
        return None
    traits = versions.traits(about, rows[new], rows[old], matches[new], matches[old])
    if new in right and old in right:
        return Pair(old, new, traits, version=False, weight=BOTH_RIGHT)
    if old in right:
        return Pair(old, new, traits, version=False)
    return Pair(old, new, traits, version=True if new in right and category == CURRENT else None)


def fit(questions: Sequence[Asked]) -> Model:
    """Return weights and bias of a logistic regression on the pairs, for traits as they are."""
    pairs = [pair for one in questions for pair in one.pairs if pair.version is not None]
    rows = np.array([pair.traits for pair in pairs])
    wanted = np.array([float(pair.version or 0) for pair in pairs])
    shares = np.array([pair.weight for pair in pairs])
    mean, scale = rows.mean(0), rows.std(0) + 1e-9
    inputs = np.c_[(rows - mean) / scale, np.ones(len(rows))]
    penalty = PENALTY * np.r_[np.ones(rows.shape[1]), 1e-6]
    walk = np.zeros(inputs.shape[1])
    for _ in range(100):  # of Newton's method: some ten are enough
        chance = 1 / (1 + np.exp(-inputs @ walk))
        slope = inputs.T @ (shares * (chance - wanted)) + penalty * walk
        bend = (inputs.T * (shares * chance * (1 - chance))) @ inputs + np.diag(penalty)
        walk -= np.linalg.solve(bend, slope)
    weights = walk[:-1] / scale
    return weights, float(walk[-1] - weights @ mean) - float(np.log(SURE / (1 - SURE)))


def first(one: Asked, model: Model | None) -> bool:
    """Say whether the memory that comes first answers the question, with this model of versions or without any."""
    found = [pair for pair in one.pairs if model and versions.is_version(pair.traits, *model)]
    ahead = [(pair.older, pair.newer) if one.past else (pair.newer, pair.older) for pair in found]
    order = moved_up(Order(np.array(one.order, dtype=np.intp), np.empty(0)), ahead).places
    return len(order) > 0 and int(order[0]) in one.right


def show(questions: Sequence[Asked]) -> None:
    """Print how often the first memory answers, by category, by models that were fitted without the question's set."""
    shipped = np.array(versions.WEIGHTS), versions.BIAS
    apart = {left: fit([one for one in questions if one.set != left]) for left in {one.set for one in questions}}
    table = Table("questions", "n", "by match alone", "as shipped", "fitted without the set", title="Right first")
    for name in ["all", *sorted({one.category for one in questions})]:
        some = [one for one in questions if name in ("all", one.category)]
        counts = [sum(first(one, model) for one in some) for model in (None, shipped)]
        table.add_row(name, str(len(some)), *map(str, counts), str(sum(first(one, apart[one.set]) for one in some)))
    out.print(table)


def right_of_pairs(file: Path, apart: timedelta) -> dict[str, tuple[int, int]]:
    """Return by kind how many questions about two notes so far apart get the right one first, and how many there are.

    All pairs lie in one project, so that each is among the notes of all others.
    """
    pairs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    clock, caller = Clock(), caller_of("pairs", "all")
    start = clock.now
    counts: dict[str, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory(prefix="recollect-versions-") as home:
        settings = Settings(home=Path(home), user="eval", team="eval", project="eval", on_secret="redact")
        with recollect.open_app(settings, clock=clock) as app:
            right = {}
            for place, pair in enumerate(track(pairs, f"{apart} apart", console=err)):
                for which in ("first", "second"):
                    clock.now = start + timedelta(seconds=place) + (apart if which == "second" else timedelta())
                    stored = recollect.remember(app, Draft(content=pair[which]), caller)
                    if which == pair["answer"]:
                        right[pair["id"]] = stored.id
            app.vectors.sync()
            clock.now += timedelta(hours=1)
            for pair in pairs:
                hits = recollect.recall(app, Query(query=pair["question"], limit=3), caller).hits
                found, of = counts.get(pair["kind"], (0, 0))
                good = bool(hits) and str(hits[0].memory.id) == right[pair["id"]]
                counts[pair["kind"]] = (found + good, of + 1)
    return counts


def main(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Evaluation sets: folders with corpus, queries and qrels.")
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Instead ask about pairs of notes that were written at different times.")
    ] = None,
    judging: Annotated[bool, typer.Option("--judge", help="Only judge what ships; fit nothing.")] = False,
) -> None:
    """Ask the questions of sets of dated notes, fit the model of versions, and print it beside what each set gave."""
    try:
        if pairs is not None:
            for apart in APART:
                out.print(apart, right_of_pairs(pairs, apart))
            return
        questions: list[Asked] = []
        for one in load(folders or []):
            with tempfile.TemporaryDirectory(prefix="recollect-versions-") as home:
                settings = Settings(home=Path(home), user="eval", team="eval", project="eval", on_secret="redact")
                with recollect.open_app(settings) as app:
                    behind = fill(app, one.name, one.folder)
                    questions += [asked_of(app, one, question, behind) for question in one.questions]
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(error.exit_code) from error
    if judging:
        shipped = np.array(versions.WEIGHTS), versions.BIAS
        for name in ["all", *sorted({one.category for one in questions})]:
            some = [one for one in questions if name in ("all", one.category)]
            out.print(name, len(some), sum(first(one, shipped) for one in some))
        return
    show(questions)
    weights, bias = fit(questions)
    out.print(
        "WEIGHTS", {name: round(float(one), 3) for name, one in zip(versions.Traits._fields, weights, strict=True)}
    )
    out.print("BIAS", round(bias, 3))


if __name__ == "__main__":
    typer.run(main)
