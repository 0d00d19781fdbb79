"""Evaluation sets: reads their folders, stores their corpora as users would, and scores what a search brought back.

A set is a folder with corpus.jsonl, queries.jsonl and qrels.tsv; each group of a set is a project of its own.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

import recollect
from recollect import App, Caller, Draft
from recollect.errors import InvalidInput

err = Console(stderr=True)
DEPTH = 10
METRICS = ("recall@1", "recall@5", "recall@10", "any@1", "any@5", "any@10", "all@5", "all@10", "ndcg@10", "mrr")


@dataclass(frozen=True)
class Question:
    """One query of a set with the corpus ids that answer it."""

    id: str
    text: str
    group: str
    category: str
    answers: frozenset[str]


@dataclass(frozen=True)
class Set:
    """The folder of a set, by whose name it goes, and its questions."""

    name: str
    folder: Path
    questions: list[Question]


def caller_of(name: str, group: str) -> Caller:
    """Return who asks about one group of the set `name`."""
    return Caller(user="eval", team=name, project=group)


def lines_of(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a file that hold something, with their numbers; raises `InvalidInput` naming the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidInput("folder", f"{path} cannot be read: {reason}.") from error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise InvalidInput("folder", f"{path} is empty.")
    return lines


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON-lines file, each with an id and a text; raises `InvalidInput` naming the line."""
    rows: list[dict[str, Any]] = []
    for number, line in lines_of(path):
        try:
            one = json.loads(line)
        except ValueError as error:
            raise InvalidInput("folder", f"{path}, line {number}: this is not JSON.") from error
        if not isinstance(one, dict) or not all(isinstance(one.get(field), str) for field in ("id", "text")):
            raise InvalidInput("folder", f"{path}, line {number}: an object with a string `id` and `text` is needed.")
        rows.append(one)
    return rows


def questions(folder: Path) -> list[Question]:
    """Return the queries that have an answer in the corpus; raises `InvalidInput` naming the file that is wrong."""
    asked = rows_of(folder / "queries.jsonl")
    answers = _answers(
        folder / "qrels.tsv", {one["id"] for one in asked}, {one["id"] for one in rows_of(folder / "corpus.jsonl")}
    )
    return [
        Question(one["id"], one["text"], one.get("group") or "all", one.get("category") or "all", frozenset(found))
        for one in asked
        if (found := answers.get(one["id"]))
    ]


def _answers(path: Path, queries: set[str], corpus: set[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for number, line in lines_of(path):
        query, document, grade, *_ = [*line.split("\t"), "", ""]
        if not document:
            raise InvalidInput("folder", f"{path}, line {number}: query id, tab, corpus id is needed.")
        if query not in queries:
            raise InvalidInput("folder", f"{path}, line {number}: queries.jsonl has no query {query!r}.")
        if document not in corpus:
            raise InvalidInput("folder", f"{path}, line {number}: corpus.jsonl has no memory {document!r}.")
        if grade.strip() != "0":
            found[query].add(document)
    if not found:
        raise InvalidInput("folder", f"{path} names no answer.")
    return found


def load(folders: list[Path]) -> list[Set]:
    """Read every set before anything is stored, so that whatever is wrong with one is said at once."""
    found = [Set(folder.resolve().name, folder, questions(folder)) for folder in folders]
    for one in found:
        if sum(one.name == other.name for other in found) > 1:
            raise InvalidInput("folders", f"Two folders are named {one.name}; each set needs a name of its own.")
    return found


def fill(app: App, name: str, folder: Path) -> dict[str, list[str]]:
    """Store the corpus as its users would; return the corpus ids behind each memory's id."""
    behind: dict[str, list[str]] = defaultdict(list)
    corpus = [one for one in rows_of(folder / "corpus.jsonl") if one["text"].strip()]
    for one in track(corpus, f"{name}: storing", console=err):
        given = {
            "title": (one.get("title") or "")[:300] or None,
            "speaker": one.get("speaker"),
            "session_id": one.get("session"),
            "position": one.get("pos"),
            "observed_at": one.get("timestamp") or None,
        }
        try:
            draft = Draft(content=one["text"], **{field: value for field, value in given.items() if value is not None})
            stored = recollect.remember(app, draft, caller_of(name, one.get("group") or "all"))
        except InvalidInput as error:
            raise InvalidInput("folder", f"{folder / 'corpus.jsonl'}, memory {one['id']!r}: {error}.") from error
        behind[stored.id].append(one["id"])
    app.vectors.sync()
    return behind


def measures(ranking: list[str], answers: frozenset[str]) -> dict[str, float]:
    """Return every metric of one ranking of corpus ids (0–1)."""
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
