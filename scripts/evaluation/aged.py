"""Recall at every age: each memory stored at its own date, and the same questions asked at once and much later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import recollect
from evaluation.sets import Clock, Question, Set, caller_of, draft_of, err, fill, rows_of
from recollect import Query, Settings

DAYS: Final = (0, 60, 700)
FRESH: Final = -1
EVERY: Final = "all"
LIMIT: Final = 100  # so many that no hit is left out for its place
ANSWERED: Final = "answered"


@dataclass
class Aged:
    """What one set's questions bring back at each age: shares (0–1), by days and kind of question.

    At `FRESH` the memories have no date but that of their storing, all the same.
    """

    name: str
    silent: dict[tuple[int, str], list[bool]] = field(default_factory=lambda: defaultdict(list))
    recall: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    first: dict[tuple[int, str], list[bool]] = field(default_factory=lambda: defaultdict(list))
    same: dict[int, list[bool]] = field(default_factory=lambda: defaultdict(list))


def measured(one: Set, settings: Settings) -> Aged:
    """Store a set at its own dates, and ask all its questions at each age, as users do."""
    clock, found = Clock(), Aged(one.name)
    _fresh(one, settings, found)
    with recollect.open_app(settings, clock=clock) as app:
        behind = fill(app, one.name, one.folder, clock=clock)
        last = clock.now
        fresh: dict[str, frozenset[int]] = {}
        for days in DAYS:
            clock.now = last + timedelta(days=days)
            for question in track([*one.questions, *one.unanswered], f"{one.name}: after {days} days", console=err):
                query = Query(query=question.text[:20_000], limit=LIMIT)
                hits = [hit.memory.id for hit in recollect.recall(app, query, caller_of(one.name, question.group)).hits]
                fresh.setdefault(question.id, frozenset(hits))
                found.same[days].append(fresh[question.id] == frozenset(hits))
                found.silent[days, ANSWERED if question.answers else question.category].append(not hits)
                if question.answers:
                    found.recall[days].append(_recall(question, hits, behind))
                    _count_first(found, days, question, hits, behind)
    return found


def _fresh(one: Set, settings: Settings, found: Aged) -> None:
    """Ask once where all memories are of today, each a little later than the one before."""
    own = settings.model_copy(update={"home": settings.home / "fresh"})
    with recollect.open_app(own) as app:
        behind = defaultdict[str, list[str]](list)
        for row in rows_of(one.folder / "corpus.jsonl"):
            undated = {name: value for name, value in row.items() if name != "timestamp"}
            stored = recollect.remember(app, draft_of(undated), caller_of(one.name, row.get("group") or "all"))
            behind[stored.id].append(row["id"])
        app.vectors.sync()
        for question in one.questions:
            hits = recollect.recall(app, Query(query=question.text[:20_000]), caller_of(one.name, question.group)).hits
            _count_first(found, FRESH, question, [hit.memory.id for hit in hits], behind)


def _count_first(found: Aged, days: int, question: Question, hits: Sequence[int], behind: dict[str, list[str]]) -> None:
    right = bool(hits) and not question.answers.isdisjoint(behind[str(hits[0])])
    for kind in (EVERY, question.category):
        found.first[days, kind].append(right)


def _recall(question: Question, hits: Sequence[int], behind: dict[str, list[str]]) -> float:
    documents = {document for memory in hits[:10] for document in behind[str(memory)]}
    return len(question.answers & documents) / len(question.answers)


def show(sets: Sequence[Aged]) -> None:
    """Print what each age brings back."""
    table = Table("set", "days", "same memories", "recall@10", "silent", title="By age, default profile, in percent")
    for one in sets:
        for days in DAYS:
            kinds = sorted({kind for at, kind in one.silent if at == days})
            silent = ", ".join(f"{kind} {100 * np.mean(one.silent[days, kind]):.1f}" for kind in kinds)
            same, recall = 100 * np.mean(one.same[days]), 100 * np.mean(one.recall[days])
            table.add_row(one.name, str(days), f"{same:.1f}", f"{recall:.1f}", silent, end_section=days == DAYS[-1])
    Console(width=160).print(table)
    kinds = list(dict.fromkeys(kind for one in sets for _, kind in one.first))
    table = Table("set", "days", *kinds, title="Right first, in percent; fresh: all memories of today")
    for one in sets:
        for days in (FRESH, *DAYS):
            shares = [f"{100 * np.mean(one.first[days, kind]):.1f}" if one.first[days, kind] else "" for kind in kinds]
            table.add_row(one.name, "fresh" if days == FRESH else str(days), *shares, end_section=days == DAYS[-1])
    Console(width=200).print(table)
