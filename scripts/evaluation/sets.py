"""Evaluation sets: reads their folders, stores their corpora as users would, and scores what a search brought back.

A set is a folder with corpus.jsonl, queries.jsonl and qrels.tsv; each group of a set is a project of its own.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

import recollect
from recollect import App, Caller, Draft
from recollect.errors import InvalidInput, RecollectError

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
    """The folder of a set, by whose name it goes, its questions, and those that its corpus does not answer."""

    name: str
    folder: Path
    questions: list[Question]
    unanswered: list[Question] = field(default_factory=list)

    def sizes(self) -> Counter[str]:
        """Return how many memories each group has."""
        return Counter(one.get("group") or "all" for one in rows_of(self.folder / "corpus.jsonl"))


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
    """Return the queries, with their answers in the corpus; raises `InvalidInput` naming the file that is wrong."""
    asked = rows_of(folder / "queries.jsonl")
    answers = _answers(
        folder / "qrels.tsv", {one["id"] for one in asked}, {one["id"] for one in rows_of(folder / "corpus.jsonl")}
    )
    return [
        Question(
            one["id"],
            one["text"],
            one.get("group") or "all",
            one.get("category") or "all",
            frozenset(answers.get(one["id"], ())),
        )
        for one in asked
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
    found = [_set(folder) for folder in folders]
    for one in found:
        if sum(one.name == other.name for other in found) > 1:
            raise InvalidInput("folders", f"Two folders are named {one.name}; each set needs a name of its own.")
    return found


def _set(folder: Path) -> Set:
    asked = questions(folder)
    answered = [one for one in asked if one.answers]
    return Set(folder.resolve().name, folder, answered, [one for one in asked if not one.answers])


class Clock:
    """A clock that stands still where it was set."""

    def __init__(self) -> None:
        self.now = datetime(2025, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time it was set to."""
        return self.now


def fill(
    app: App, name: str, folder: Path, groups: frozenset[str] | None = None, clock: Clock | None = None
) -> dict[str, list[str]]:
    """Store the corpus, or some groups of it, as its users would; return the corpus ids behind each memory's id.

    A memory that is refused is skipped with a note. With a `clock`, each is stored at its own date.
    """
    behind: dict[str, list[str]] = defaultdict(list)
    corpus = [one for one in rows_of(folder / "corpus.jsonl") if one["text"].strip()]
    some = [one for one in corpus if groups is None or (one.get("group") or "all") in groups]
    for one in track(some, f"{name}: storing", console=err):
        if clock is not None and one.get("timestamp"):
            clock.now = datetime.fromisoformat(one["timestamp"]).replace(tzinfo=UTC)
        try:
            stored = recollect.remember(app, draft_of(one), caller_of(name, one.get("group") or "all"))
        except RecollectError as error:
            err.print(f"Skipped: {folder / 'corpus.jsonl'}, memory {one['id']!r}: {error}", soft_wrap=True)
            continue
        behind[stored.id].append(one["id"])
    app.vectors.sync()
    return behind


def draft_of(one: dict[str, Any]) -> Draft:
    given = {
        "title": (one.get("title") or "")[:300] or None,
        "speaker": one.get("speaker"),
        "session_id": one.get("session"),
        "position": one.get("pos"),
        "observed_at": one.get("timestamp") or None,
        "fact_type": one.get("fact_type"),
    }
    return Draft(content=one["text"], **{field: value for field, value in given.items() if value is not None})


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


def fuse(*rankings: list[int]) -> list[int]:
    """Return the reciprocal rank fusion (k = 60) of rankings."""
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for place, memory in enumerate(ranking):
            scores[memory] += 1.0 / (60 + place + 1)
    return ordered(scores)


def ordered(scores: Mapping[int, float]) -> list[int]:
    """Return memories by their scores, best first."""
    return sorted(scores, key=lambda memory: (-scores[memory], memory))
