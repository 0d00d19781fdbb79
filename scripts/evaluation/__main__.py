"""Measure recall over evaluation sets: the real store and the real `recall`, beside its parents alone."""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

import recollect
from evaluation import ablation, aged, answer_sizes, calibration, growth, plot
from evaluation.parents import by_vectors_alone, by_words_alone
from evaluation.sets import DEPTH, METRICS, Question, Set, caller_of, err, fill, fuse, load, measures
from recollect import App, Caller, Query, Settings
from recollect.domain.results import Hit
from recollect.errors import InvalidInput, RecollectError

ROUNDS = 1000
CLUSTERS = 5
SYSTEMS = ("recollect", "fts", "dense", "rrf")
HEADLINE = "all but adversarial"
Answer = TypeVar("Answer")


@dataclass
class Tally:
    """What one system reached for the questions of one category: metrics (0–1), milliseconds, and their groups."""

    reached: list[dict[str, float]] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


def timed(work: Callable[[], Answer]) -> tuple[Answer, float]:
    """Return what `work` answers and how many milliseconds it takes."""
    start = time.perf_counter()
    answer = work()
    return answer, (time.perf_counter() - start) * 1e3


def rankings(app: App, one: Question, caller: Caller) -> tuple[dict[str, tuple[list[int], float]], tuple[Hit, ...]]:
    """Return each system's best memories and its milliseconds, and the hits of the real recall."""
    query = Query(query=one.text[:20_000], limit=DEPTH, profile="relevance", min_score=0.0)
    recalled, taken = timed(lambda: recollect.recall(app, query, caller))
    lexical, by_words = timed(lambda: by_words_alone(app, one.text, caller))
    near, by_meaning = timed(lambda: by_vectors_alone(app, one.text, caller))
    fused, fusing = timed(lambda: fuse(lexical, near))
    found = {
        "recollect": ([hit.memory.id for hit in recalled.hits], taken),
        "fts": (lexical, by_words),
        "dense": (near, by_meaning),
        "rrf": (fused, by_words + by_meaning + fusing),
    }
    return found, recalled.hits


def evaluate(app: App, one: Set, foreign: list[calibration.Asked] | None) -> tuple[list[dict[str, Any]], Any]:
    """Return one row for each system and category of a set, and its calibration sample where that is asked for."""
    behind = fill(app, one.name, one.folder)
    adversarial = any(question.category == "adversarial" for question in one.questions)
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    sample = calibration.Sample(one.name)
    # The first recall of a process loads what later ones share; users meet the later ones.
    recollect.recall(app, Query(query="warm up"), caller_of(one.name, one.questions[0].group))
    for question in track(one.questions, f"{one.name}: asking", console=err):
        caller = caller_of(one.name, question.group)
        found, hits = rankings(app, question, caller)
        categories = {"all", question.category}
        if adversarial and question.category != "adversarial":
            categories.add(HEADLINE)
        for system, (memories, taken) in found.items():
            documents = [document for memory in memories[:DEPTH] for document in behind[str(memory)]]
            reached = measures(documents, question.answers)
            for category in categories:
                tally = tallies[system, category]
                tally.reached.append(reached)
                tally.taken.append(taken)
                tally.groups.append(question.group)
        if foreign is not None and question.category != "adversarial":
            sample.answerable(app, caller, question, hits, behind)
    sample.unanswered(app, one)
    if foreign is not None:
        sample.refusable(app, foreign)
    return [row(one.name, *about, tally) for about, tally in sorted(tallies.items())], sample


def row(name: str, system: str, category: str, tally: Tally) -> dict[str, Any]:
    """Return the means of a tally in points, its latency, and 95 % bootstrap intervals under `interval`."""
    values = np.array([[one[metric] for metric in METRICS] for one in tally.reached])
    low, high, over = interval(values, tally.groups)
    about = {"set": name, "system": system, "category": category, "n": len(values)}
    means = dict(zip(METRICS, (100 * values.mean(axis=0)).round(1).tolist(), strict=True))
    p50, p95 = np.percentile(tally.taken, [50, 95], method="higher").round(2).tolist()
    spread = {metric: [low[place], high[place]] for place, metric in enumerate(METRICS)}
    return about | means | {"p50_ms": p50, "p95_ms": p95, "interval": spread, "interval_over": over}


def interval(values: Any, groups: list[str]) -> tuple[list[float], list[float], str]:
    """Return the ends of the 95 % bootstrap intervals of the means of `values` (float[n, metrics]), in points.

    Questions of one conversation are not independent: where there are enough groups, whole groups are drawn.
    """
    names, drawn = np.unique(groups, return_inverse=True)
    over = "groups" if len(names) >= CLUSTERS else "queries"
    if over == "queries":
        drawn = np.arange(len(values))
    counts = np.bincount(drawn)
    sums = np.stack([np.bincount(drawn, weights=column) for column in values.T], axis=1)
    picked = np.random.default_rng(1).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), size=ROUNDS)
    means = (picked @ sums) / (picked @ counts)[:, None]
    low, high = np.percentile(100 * means, [2.5, 97.5], axis=0).round(1).tolist()
    return low, high, over


def show(rows: list[dict[str, Any]]) -> None:
    """Print the rows, the whole of each set first; the one category of a set that has no other goes unsaid."""
    grouped = {one["set"]: None for one in rows if one["interval_over"] == "groups"}
    over = f"groups where there are {CLUSTERS} ({', '.join(grouped)}), else queries" if grouped else "queries"
    title = f"Recall, in points; intervals: 95 %, bootstrap over {over}"
    table = Table("set", "category", "system", "n", *METRICS, "p50 ms", "p95 ms", title=title)
    categories, systems = ("all", HEADLINE), {system: place for place, system in enumerate(SYSTEMS)}
    sets = list({one["set"]: None for one in rows})
    whole = {one["set"]: one["n"] for one in rows if one["category"] == "all"}
    for one in sorted(
        (one for one in rows if one["category"] in categories or one["n"] < whole[one["set"]]),
        key=lambda one: (
            sets.index(one["set"]),
            categories.index(one["category"]) if one["category"] in categories else len(categories),
            one["category"],
            systems[one["system"]],
        ),
    ):
        figures = [f"{one[metric]:.1f}" for metric in METRICS]
        for metric in ("recall@10", "ndcg@10"):
            figures[METRICS.index(metric)] += " [{:.1f}, {:.1f}]".format(*one["interval"][metric])
        about = [one["set"], one["category"], one["system"], str(one["n"])]
        timing = [f"{one['p50_ms']:.1f}", f"{one['p95_ms']:.1f}"]
        last = one["system"] == SYSTEMS[-1]
        table.add_row(
            *about, *figures, *timing, style="bold" if one["system"] == "recollect" else None, end_section=last
        )
    Console(width=230).print(table)


def settings_of(home: Path, one: Set) -> Settings:
    """Return settings of a store of the set's own: word statistics are those of a whole store."""
    # A corpus is an import: what looks like a secret in it is masked, not refused.
    return Settings(user="eval", team="eval", project="eval", home=home / one.name, on_secret="redact")


def run(
    folders: list[Path],
    json_file: Path | None,
    plot_file: Path | None,
    calibration_file: Path | None,
    instead: ModuleType | None,
    ablation_page: Path | None,
) -> None:
    for path in filter(None, (json_file, plot_file, calibration_file, ablation_page)):
        if not path.resolve().parent.is_dir():
            raise InvalidInput("file", f"{path} cannot be written: its folder does not exist.")
    if plot_file is not None:
        plot.check()
    sets = load(folders)
    rows: list[dict[str, Any]] = []
    samples = []
    with tempfile.TemporaryDirectory(prefix="recollect-eval-") as home:
        if ablation_page is not None:
            worths = [ablation.measured(one, settings_of(Path(home), one)) for one in sets]
            pairs = settings_of(Path(home), sets[0]).model_copy(update={"home": Path(home) / "pairs"})
            ablation.show([*worths, ablation.of_pairs(pairs)], ablation_page)
            return
        if instead is not None:
            instead.show([instead.measured(one, settings_of(Path(home), one)) for one in sets])
            return
        for one in sets:
            foreign = calibration.foreign(one, sets) if calibration_file else None
            with recollect.open_app(settings_of(Path(home), one)) as app:
                found, sample = evaluate(app, one, foreign)
                floor = app.embedder.card.floor
            rows += found
            samples.append(sample)
            show(found)
            calibration.show_silent(sample)
            if json_file is not None:
                json_file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if calibration_file is not None:
        report = calibration.report(samples, floor)
        calibration.show(report)
        calibration_file.write_text(json.dumps(report, indent=1), encoding="utf-8")
    if plot_file is not None:
        plot.draw(rows, SYSTEMS, HEADLINE, plot_file)


def main(
    folders: Annotated[list[Path], typer.Argument(help="Evaluation sets: folders with corpus, queries and qrels.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the rows here, as JSON.")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Also draw a bar chart here, as PNG.")] = None,
    calibration_file: Annotated[
        Path | None,
        typer.Option(
            "--calibration",
            help="Also ask what a store cannot answer, print how far `match` and the floor can be trusted, and write "
            "that here, as JSON.",
        ),
    ] = None,
    ablation_page: Annotated[
        Path | None,
        typer.Option(
            "--ablation",
            help="Instead put the same candidates in order without each step, and write the table of this page.",
        ),
    ] = None,
    at_age: Annotated[
        bool,
        typer.Option(
            "--aged", help="Instead store each memory at its own date, and ask at once, 60 and 700 days later."
        ),
    ] = False,
    growing: Annotated[
        list[Path] | None,
        typer.Option(
            "--growth", help="Instead ask all sets in one project that grows with the texts of this set; repeat it."
        ),
    ] = None,
    largest: Annotated[int, typer.Option(help="With --growth: the most memories.")] = growth.SIZES[-1],
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Instead ask through the tool `memory`, and count the answers' tokens.")
    ] = False,
) -> None:
    """Store each set in a new store, ask its questions, and print what came back beside full text, vectors and RRF."""
    try:
        if growing:
            growth.run(load(folders), growing, largest, json_file, plot_file)
            return
        instead = aged if at_age else answer_sizes if sizes else None
        run(folders, json_file, plot_file, calibration_file, instead, ablation_page)
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(error.exit_code) from error


if __name__ == "__main__":
    typer.run(main)
