"""Growth: what the answers of a set are worth among thousands of other memories, none of which answers."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import recollect
from gathering import by_vectors_alone, by_words_alone
from recollect import App, Caller, Draft, Query, Settings
from recollect.domain.transfer import ImportBatch, ImportItem, ItemKind
from recollect.transfer.import_batch import import_batch
from sets import DEPTH, Question, Set, caller_of, draft_of, err, fuse, rows_of

SIZES: Final = (240, 2_000, 10_000, 100_000)
TOGETHER: Final = "growth"
PARENTS: Final = ("words", "vectors", "rrf")
_BATCH: Final = 500
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_LONGEST: Final = 1_200  # characters of another memory
_SHORTEST: Final = 15


@dataclass
class Grown:
    """What the questions of one set bring back among so many memories: shares (0–1) by system and figure."""

    name: str
    size: int
    first: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    five: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    silent: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))

    def row(self) -> dict[str, Any]:
        """Return the figures in percent, as a machine reads them."""
        shares = {f"{system} first": found for system, found in self.first.items()}
        shares |= {f"{system} five": found for system, found in self.five.items()}
        shares |= {f"silent {kind}": found for kind, found in self.silent.items()}
        return {"set": self.name, "size": self.size} | {
            name: round(100 * float(np.mean(found)), 1) for name, found in shares.items()
        }


def others(folders: Sequence[Path], seed: int = 1) -> Iterator[str]:
    """Yield texts without end: those of other sets, then pairs of their sentences that never stood together."""
    dice = random.Random(seed)
    texts = list(
        dict.fromkeys(one["text"][:_LONGEST] for folder in folders for one in rows_of(folder / "corpus.jsonl"))
    )
    dice.shuffle(texts)
    yield from texts
    sentences = [one for text in texts for one in _SENTENCE.split(text) if len(one) >= _SHORTEST]
    seen = set(texts)
    while True:
        text = " ".join(dice.sample(sentences, dice.choice((1, 2, 2, 3))))[:_LONGEST]
        if text not in seen:
            seen.add(text)
            yield text


def store(app: App, drafts: Sequence[Draft], caller: Caller, title: str) -> dict[str, str]:
    """Import drafts as users do; return the id of each by its place."""
    ids: dict[str, str] = {}
    for start in track(range(0, len(drafts), _BATCH), title, console=err):
        items = [
            ImportItem(kind=ItemKind.MEMORY, where=str(place), fields=draft.model_dump(mode="json", exclude_unset=True))
            for place, draft in enumerate(drafts[start : start + _BATCH], start)
        ]
        import_batch(app, ImportBatch(items=tuple(items)), caller)
    app.vectors.sync()
    return ids


def measured(sets: Sequence[Set], folders: Sequence[Path], sizes: Sequence[int], settings: Settings) -> list[Grown]:
    """Ask the questions of all sets at each size; every memory, of whatever group, lies in one project."""
    together, found = caller_of(TOGETHER, TOGETHER), []
    behind: dict[str, dict[str, list[str]]] = {one.name: defaultdict(list) for one in sets}
    with recollect.open_app(settings) as app:
        for one in sets:
            caller = caller_of(one.name, TOGETHER)
            _fill(app, one, caller, behind[one.name])
            found.append(asked(app, one, caller, behind[one.name], len(rows_of(one.folder / "corpus.jsonl"))))
        for one in sets:
            _fill(app, one, together, behind[one.name])
        texts, stored = others(folders), sum(len(rows_of(one.folder / "corpus.jsonl")) for one in sets)
        for size in sizes:
            more = [Draft(content=text) for text in islice(texts, max(size - stored, 0))]
            store(app, more, together, f"{size} memories")
            stored += len(more)
            found += [asked(app, one, together, behind[one.name], stored) for one in sets]
    return found


def _fill(app: App, one: Set, caller: Caller, behind: dict[str, list[str]]) -> None:
    for row in track(rows_of(one.folder / "corpus.jsonl"), f"{one.name}: storing", console=err):
        outcome = recollect.remember(app, draft_of(row), caller)
        behind[outcome.id].append(row["id"])
    app.vectors.sync()


def asked(app: App, one: Set, caller: Caller, behind: dict[str, list[str]], size: int) -> Grown:
    """Ask as users do, and by each parent alone."""
    grown = Grown(one.name, size)
    for question in track([*one.questions, *one.unanswered], f"{one.name} of {size}: asking", console=err):
        hits = recollect.recall(app, Query(query=question.text[:20_000]), caller).hits
        kind = "answered" if question.answers else question.category
        grown.silent[kind].append(not hits)
        if question.answers:
            _count(grown, app, question, caller, [hit.memory.id for hit in hits], behind)
    return grown


def _count(
    grown: Grown, app: App, question: Question, caller: Caller, hits: list[int], behind: dict[str, list[str]]
) -> None:
    words, near = by_words_alone(app, question.text, caller), by_vectors_alone(app, question.text, caller)
    for system, memories in (("recollect", hits), ("words", words), ("vectors", near), ("rrf", fuse(words, near))):
        right = [not question.answers.isdisjoint(behind.get(str(one), ())) for one in memories[:DEPTH]]
        grown.first[system].append(any(right[:1]))
        grown.five[system].append(any(right[:5]))


def show(grown: Sequence[Grown]) -> None:
    """Print each set at each size."""
    table = Table("set", "memories", "right first", "among five", *PARENTS, "silent, in percent", title="Growth")
    for one in sorted(grown, key=lambda one: (one.name, one.size)):
        row = one.row()
        parents = [f"{row[f'{name} first']:.1f} / {row[f'{name} five']:.1f}" for name in PARENTS]
        silent = ", ".join(f"{kind} {100 * np.mean(found):.1f}" for kind, found in sorted(one.silent.items()))
        table.add_row(
            one.name, str(one.size), str(row["recollect first"]), str(row["recollect five"]), *parents, silent
        )
    Console(width=200).print(table)


def write(grown: Sequence[Grown], file: Path) -> None:
    """Write the rows as JSON."""
    file.write_text(json.dumps([one.row() for one in grown], indent=1), encoding="utf-8")
