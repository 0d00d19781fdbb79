"""Measure recall over evaluation sets: the real store and the real `recall`, beside its parents alone.

A set is a folder with corpus.jsonl, queries.jsonl and qrels.tsv; each group of a set is a project of its own.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

import recollect
from recollect import App, Caller, Draft, Query, Settings
from recollect.domain import View
from recollect.policy.terms import parse
from recollect.ports import Term

out, err = Console(highlight=False), Console(stderr=True)
DEPTH = 10
FETCH = 50
SYSTEMS = ("recollect", "fts", "dense", "rrf")
METRICS = ("recall@1", "recall@5", "recall@10", "any@1", "any@5", "any@10", "all@5", "all@10", "ndcg@10", "mrr")
Ranking = list[str]


@dataclass(frozen=True)
class Question:
    """One query of a set with the corpus ids that answer it."""

    id: str
    text: str
    group: str
    category: str
    answers: frozenset[str]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def questions(folder: Path) -> list[Question]:
    """Return the queries that have an answer in the corpus."""
    answers: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, document, *_ = line.split("\t")
        answers[query].add(document)
    found = rows_of(folder / "queries.jsonl")
    return [
        Question(
            one["id"],
            one["text"],
            one.get("group") or "all",
            one.get("category") or "all",
            frozenset(answers[one["id"]]),
        )
        for one in found
        if answers[one["id"]]
    ]


def fill(app: App, name: str, folder: Path) -> dict[str, list[str]]:
    """Store the corpus as its users would; return the corpus ids behind each memory's id."""
    behind: dict[str, list[str]] = defaultdict(list)
    corpus = [one for one in rows_of(folder / "corpus.jsonl") if one["text"].strip()]
    for one in track(corpus, f"{name}: storing", console=err):
        caller = Caller(user="eval", team=name, project=one.get("group") or "all")
        moment = datetime.fromisoformat(one["timestamp"]) if one.get("timestamp") else None
        given = {
            "title": (one.get("title") or "")[:300] or None,
            "speaker": one.get("speaker"),
            "session_id": one.get("session"),
            "position": one.get("pos"),
            "observed_at": moment,
        }
        draft = Draft(content=one["text"], **{field: value for field, value in given.items() if value is not None})
        behind[recollect.remember(app, draft, caller).id].append(one["id"])
    app.vectors.sync()
    return behind


def rankings(app: App, one: Question, caller: Caller) -> tuple[dict[str, list[int]], float]:
    """Return each system's best memories, and how many milliseconds the real recall took."""
    start = time.perf_counter()
    recalled = recollect.recall(
        app, Query(query=one.text[:20_000], limit=DEPTH, profile="relevance", min_score=0.0), caller
    )
    taken = (time.perf_counter() - start) * 1e3
    view = View(caller.namespaces(), app.clock())
    words = [Term(word) for word in parse(one.text).words]
    lexical = ordered(app.text.search(words, view, FETCH)) if words else []
    near = ordered(app.vectors.nearest(app.embedder.embed([one.text], "query")[0], view, FETCH))
    fused: dict[int, float] = defaultdict(float)
    for ranking in (lexical, near):
        for place, memory in enumerate(ranking):
            fused[memory] += 1.0 / (60 + place + 1)
    hits = [hit.memory.id for hit in recalled.hits]
    return {"recollect": hits, "fts": lexical, "dense": near, "rrf": ordered(fused)}, taken


def ordered(scores: dict[int, float]) -> list[int]:
    return sorted(scores, key=lambda memory: (-scores[memory], memory))


def measures(ranking: Ranking, answers: frozenset[str]) -> dict[str, float]:
    """Return every metric of one ranking (0–1)."""
    hits = [document in answers for document in ranking[:DEPTH]]
    found: dict[str, float] = {}
    for depth in (1, 5, 10):
        share = sum(hits[:depth]) / len(answers)
        found |= {
            f"recall@{depth}": share,
            f"any@{depth}": float(any(hits[:depth])),
            f"all@{depth}": float(share == 1.0),
        }
    gain = sum(1 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
    best = sum(1 / math.log2(place + 2) for place in range(min(len(answers), DEPTH)))
    first = next((1 / (place + 1) for place, hit in enumerate(hits) if hit), 0.0)
    return {name: (found | {"ndcg@10": gain / best, "mrr": first})[name] for name in METRICS}


def evaluate(app: App, name: str, folder: Path) -> list[dict[str, Any]]:
    """Return one row for each system and category of a set, with 95 % bootstrap intervals under `interval`."""
    behind = fill(app, name, folder)
    scores: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    times: list[float] = []
    for one in track(questions(folder), f"{name}: asking", console=err):
        found, taken = rankings(app, one, Caller(user="eval", team=name, project=one.group))
        times.append(taken)
        for system, memories in found.items():
            documents = [document for memory in memories[:DEPTH] for document in behind[str(memory)]]
            result = measures(documents, one.answers)
            for category in {one.category, "all"}:
                scores[system, category].append(result)
    return [row(name, system, category, some, times) for (system, category), some in sorted(scores.items())]


def row(name: str, system: str, category: str, some: list[dict[str, float]], times: list[float]) -> dict[str, Any]:
    means = {metric: round(100 * statistics.fmean(one[metric] for one in some), 1) for metric in METRICS}
    timing = {"p50_ms": 0.0, "p95_ms": 0.0}
    if system == "recollect":
        timing = {
            "p50_ms": round(statistics.median(times), 2),
            "p95_ms": round(sorted(times)[int(len(times) * 0.95)], 2),
        }
    spread = {metric: interval([one[metric] for one in some]) for metric in METRICS}
    about = {"set": name, "system": system, "category": category, "n": len(some)}
    return about | means | timing | {"interval": spread}


def interval(values: list[float], rounds: int = 500) -> list[float]:
    """Return the 95 % bootstrap interval of the mean, in points."""
    dice = random.Random(1)
    means = sorted(statistics.fmean(dice.choices(values, k=len(values))) for _ in range(rounds))
    return [round(100 * means[int(rounds * share)], 1) for share in (0.025, 0.975)]


def show(rows: list[dict[str, Any]]) -> None:
    table = Table("set", "category", "system", "n", *METRICS, "p50 ms", "p95 ms", title="Recall, in points")
    order = {system: place for place, system in enumerate(SYSTEMS)}
    for one in sorted(
        rows, key=lambda one: (one["set"], one["category"] != "all", one["category"], order[one["system"]])
    ):
        low, high = one["interval"]["recall@10"]
        figures = [f"{one[metric]:.1f}" + (f" [{low}, {high}]" if metric == "recall@10" else "") for metric in METRICS]
        timing = [f"{one['p50_ms']:.1f}", f"{one['p95_ms']:.1f}"] if one["p50_ms"] else ["", ""]
        style = "bold" if one["system"] == "recollect" else None
        table.add_row(one["set"], one["category"], one["system"], str(one["n"]), *figures, *timing, style=style)
    Console(width=220).print(table)


def main(
    folders: Annotated[list[Path], typer.Argument(help="Evaluation sets: folders with corpus, queries and qrels.")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the rows here, as JSON.")] = None,
) -> None:
    """Store each set in a new store, ask its questions, and print what came back beside full text, vectors and RRF."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="recollect-eval-") as home:
        settings = Settings(home=Path(home), user="eval", team="eval", project="eval")
        with recollect.open_app(settings) as app:
            for folder in folders:
                rows += evaluate(app, folder.resolve().name, folder)
    show(rows)
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
