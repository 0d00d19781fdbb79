"""Fit what tells that a memory helps with a prompt, on labelled sessions, and print it for `search/injection.py`.

Each argument is a folder with `events.jsonl` and `prompts.jsonl`; the fields of a line are in
tests/sessions/build/README.md. The later prompts of a folder are asked over two stores: one in which its sessions were
played, and one that holds the lessons of its events to keep, in a sentence each. So the fit learns what helps with a
prompt, and not only what is captured today.

The fit is a logistic regression with a ridge penalty. The figures are of folders left out of the fit, and the bounds
from which a memory has a place are those that reach the goals best over all of these.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import recollect
from recollect import App, Draft, Query, Settings
from recollect.domain.enums import OF_SESSION, FactType, ObservationType
from recollect.engines.embedding import open_embedder
from recollect.errors import RecollectError
from recollect.search import rank
from recollect.search.candidates import reading
from recollect.search.injection import BESIDE, Judge, Traits, considered, outdated, question_of, traits
from session_players import Injected, err, play
from session_scores import Same, SaysTheSame, judged_of
from session_sets import SessionSet, load

CAPTURED, TOLD = "captured", "told"
"""Stores: what was kept of played sessions, and their lessons in a sentence each."""
RIDGE: Final = 3.0
LEASTS: Final = [round(float(one), 2) for one in np.arange(0.10, 0.42, 0.02)]
BESIDES: Final = [0.4, 0.5, 0.6, 0.7, 0.8]
GOALS: Final = {"hits": 0.80, "precision": 0.60, "silence": 0.90}
PLACES: Final = 5
"""Memories before a prompt, at most."""
out = Console(width=120)
Bounds = tuple[float, float]
"""The least worth, and the least share of the best one's."""
Worths = dict[tuple[str, str, str], dict[int, float]]
"""What the candidates of each example are worth (0–1)."""


@dataclass(frozen=True)
class Example:
    """A prompt with its candidates: their ids, traits and matches, and what stands in whose place.

    It `wants` something or not; `wanted` and `forbidden` are ids in the store, and `silent` are those that it wants and
    that may not stand before a prompt because of their origin. `directs` says that the prompt is not searched for.
    """

    set: str
    store: str
    prompt: str
    wants: bool
    semantic: bool
    directs: bool
    ids: list[int]
    traits: list[Traits]
    matches: list[float]
    newer: dict[str, int]
    wanted: list[int] = field(default_factory=list)
    forbidden: list[int] = field(default_factory=list)
    silent: list[int] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what names it."""
        return self.set, self.store, self.prompt


def asked(app: App, one: SessionSet, store: str, settings: Settings, prompt: str, wants: bool) -> Example:
    """Return a prompt with its candidates in a store."""
    query = Query(query=question_of(prompt) or prompt)
    with reading(app, query, settings.caller) as view:
        found = considered(app, query, view)
        facts = [each for each in found.candidates if each.row.type not in OF_SESSION]
        newer = {**found.newer, **outdated(app, [each.id for each in facts], found, view)}
    return Example(
        set=one.name,
        store=store,
        prompt=prompt,
        wants=wants,
        semantic=found.query.semantic,
        directs=not question_of(prompt),
        ids=[each.id for each in facts],
        traits=traits(facts, found.query),
        matches=[each.match for each in facts],
        newer={str(old): new for old, new in newer.items()},
    )


def captured(one: SessionSet, settings: Settings, same: Same) -> Iterator[Example]:
    """Yield the later prompts of a folder over what was kept of its sessions."""
    played = play(replace(one, asks=()), "store", settings)
    every = Injected("", tuple(played.memories))
    with recollect.open_app(settings, background=False) as app:
        for ask in one.asks:
            played.asked[ask.id] = every
            judged = judged_of(ask, one, played, same)
            found = asked(app, one, CAPTURED, settings, ask.prompt, bool(ask.wants))
            with reading(app, Query(query=ask.prompt), settings.caller) as view:
                kept = app.records.load(judged.lenient, view)
            silent = [number for number, memory in kept.items() if not memory.speaks_unasked]
            yield replace(found, wanted=[*judged.lenient], forbidden=[*judged.must_not], silent=silent)


def told(one: SessionSet, settings: Settings) -> Iterator[Example]:
    """Yield the same prompts over the lessons themselves."""
    with recollect.open_app(settings, background=False) as app:
        ids: dict[Any, int] = {}
        for event in one.events:
            if event.label == "keep":
                kind = ObservationType(event.kind) if event.kind else None
                fact = FactType.DECISION if kind is ObservationType.DECISION else FactType.GENERAL
                known = {"type": kind, "fact_type": fact, "session_id": event.session, "observed_at": event.at}
                ids[event.place] = int(recollect.remember(app, Draft(content=event.what, **known), settings.caller).id)
        app.vectors.sync()
        for ask in one.asks:
            found = asked(app, one, TOLD, settings, ask.prompt, bool(ask.wants))
            wanted, wrong = ([ids[at] for at in some if at in ids] for some in (ask.wants, ask.must_not))
            yield replace(found, wanted=wanted, forbidden=wrong)


def gathered(folders: Sequence[Path]) -> list[Example]:
    """Return the examples of all folders."""
    given, found = Settings(), list[Example]()
    sets = [load(folder) for folder in folders]
    embedder = open_embedder(given.model, given.models_dir)
    embedder.warm()
    same = SaysTheSame(embedder)
    ours = {"user": "eval", "team": "eval", "models_dir": given.models_dir}
    with tempfile.TemporaryDirectory(prefix="recollect-injection-") as home:
        for number, one in enumerate(sets):
            stores = [Settings(home=Path(home) / f"{number}{name}/home", project=one.name, **ours) for name in "ab"]
            found += [*captured(one, stores[0], same), *told(one, stores[1])]
    return found


def kept(file: Path) -> list[Example]:
    """Read examples that were gathered before."""
    rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return [Example(**row | {"traits": [Traits(*one) for one in row["traits"]]}) for row in rows]


def fit(examples: Sequence[Example]) -> Judge:
    """Fit the weights on the candidates of prompts that the model reads."""
    some = [one for one in examples if one.ids and one.semantic]
    rows = np.array([each for one in some for each in one.traits])
    helps = np.array([float(number in one.wanted) for one in some for number in one.ids])
    mean, scale = rows.mean(0), rows.std(0) + 1e-9
    inputs = np.c_[(rows - mean) / scale, np.ones(len(rows))]
    penalty = RIDGE * np.r_[np.ones(rows.shape[1]), 1e-6]
    walk = np.zeros(inputs.shape[1])
    for _ in range(50):  # of Newton's method: some ten are enough
        chance = 1 / (1 + np.exp(-inputs @ walk))
        slope = inputs.T @ (chance - helps) + penalty * walk
        bend = (inputs.T * (chance * (1 - chance))) @ inputs + np.diag(penalty)
        walk -= np.linalg.solve(bend, slope)
    weights = walk[:-1] / scale
    bias = float(walk[-1] - weights @ mean)
    return Judge(Traits(*(round(float(one), 3) for one in weights)), round(bias, 3))


def first(one: Example, worths: Mapping[int, float], bounds: Bounds) -> list[int]:
    """Return what has a place before a prompt by its worth alone, the best match first."""
    least, beside = bounds if one.semantic else (rank.LIKELY, BESIDE)
    bound = max(least, beside * max(worths.values(), default=0.0))
    matches = dict(zip(one.ids, one.matches, strict=True))
    best = [] if one.directs else [number for number, worth in worths.items() if worth >= bound]
    return sorted(best, key=lambda number: -matches[number])


def placed(one: Example, worths: Mapping[int, float], bounds: Bounds) -> list[int]:
    """Return what has a place before a prompt, as `injection` gives it."""
    best = (one.newer.get(str(number), number) for number in first(one, worths, bounds))
    return list(dict.fromkeys(best))[:PLACES]


@dataclass
class Counts:
    """What was put before prompts: how many want something and get it, what is right of it, and how many are silent."""

    wanting: int = 0
    hit: int = 0
    shown: int = 0
    right: int = 0
    quiet: int = 0
    silent: int = 0
    forbidden: int = 0
    lost: dict[str, int] = field(default_factory=dict)

    def add(self, one: Example, worths: Mapping[int, float], bounds: Bounds) -> None:
        """Count one prompt."""
        found = placed(one, worths, bounds)
        self.forbidden += len({*found} & {*one.forbidden})
        if not one.wants:
            self.quiet += 1
            self.silent += not found
            return
        right = len({*found} & {*one.wanted})
        self.wanting, self.hit, self.right = self.wanting + 1, self.hit + bool(right), self.right + right
        self.shown += len(found)
        if not right:
            why = _lost(one, first(one, worths, bounds))
            self.lost[why] = self.lost.get(why, 0) + 1

    @property
    def shares(self) -> dict[str, float]:
        """Return the shares (0–1) that goals are set for."""
        right = self.right / self.shown if self.shown else 0.0
        return {
            "hits": self.hit / max(self.wanting, 1),
            "precision": right,
            "silence": self.silent / max(self.quiet, 1),
        }


def _lost(one: Example, best: Sequence[int]) -> str:
    """Return why a prompt got nothing of what it wants, where `best` would have had a place."""
    if not one.wanted:
        return "not kept"
    if {*one.wanted} <= {*one.silent}:
        return "origin"
    if not {*one.wanted} & {*one.ids}:
        return "no candidate"
    if not {*one.wanted} & {*best}:
        return "judge"
    return "in another's place" if any(str(number) in one.newer for number in {*best} & {*one.wanted}) else "places"


def counted(examples: Sequence[Example], worths: Worths, bounds: Bounds) -> Counts:
    """Count examples by what their candidates are worth."""
    found = Counts()
    for one in examples:
        found.add(one, worths[one.key], bounds)
    return found


def best_bounds(examples: Sequence[Example], worths: Worths) -> Bounds:
    """Return the bounds that come nearest to the goals, and beyond these are the best."""

    def value(bounds: Bounds) -> float:
        shares = counted(examples, worths, bounds).shares
        return sum(min(shares[name] - goal, 0.0) + 0.15 * shares[name] for name, goal in GOALS.items())

    return max(product(LEASTS, BESIDES), key=value)


def left_out(examples: Sequence[Example]) -> Worths:
    """Return what each candidate is worth by a fit without the folder of its prompt."""
    found: Worths = {}
    for folder in {one.set for one in examples}:
        judge = fit([one for one in examples if one.set != folder])
        for one in examples:
            if one.set == folder:
                worths = [judge(each) for each in one.traits] if one.semantic else one.matches
                found[one.key] = dict(zip(one.ids, worths, strict=True))
    return found


def show(examples: Sequence[Example], worths: Worths, bounds: Bounds, store: str) -> None:
    """Print the figures of each folder over one kind of store, and their mean and worst."""
    table = Table("folder", *GOALS, "must not", "lost", title=f"{store}, each folder left out of the fit")
    shares: list[dict[str, float]] = []
    for folder in dict.fromkeys(one.set for one in examples if one.store == store):
        some = [one for one in examples if (one.set, one.store) == (folder, store)]
        found = counted(some, worths, bounds)
        shares.append(found.shares)
        lost = ", ".join(f"{why} {count}" for why, count in sorted(found.lost.items()))
        table.add_row(folder, *(f"{100 * one:.1f}" for one in found.shares.values()), str(found.forbidden), lost)
    for name, of in (("mean", np.mean), ("worst", np.min)):
        table.add_row(name, *(f"{100 * of([one[goal] for one in shares]):.1f}" for goal in GOALS))
    out.print(table)


def main(
    folders: Annotated[list[Path] | None, typer.Argument(help="Folders with labelled events and prompts.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep what was gathered here; without folders, begin with it.")
    ] = None,
) -> None:
    """Gather candidates of later prompts, fit the judge, and print it beside the figures of folders left out."""
    try:
        examples = gathered(folders) if folders else kept(keep) if keep else []
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(error.exit_code) from error
    if keep and folders:
        lines = [json.dumps(asdict(one), ensure_ascii=False) for one in examples]
        keep.write_text("\n".join(lines) + "\n", encoding="utf-8")
    worths = left_out(examples)
    bounds = best_bounds(examples, worths)
    for store in (CAPTURED, TOLD):
        show(examples, worths, bounds, store)
    out.print(f"JUDGE = {fit(examples)}")
    out.print("LEAST = {}, BESIDE = {}".format(*bounds))


if __name__ == "__main__":
    typer.run(main)
