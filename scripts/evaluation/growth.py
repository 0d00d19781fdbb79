"""Growth: what the answers of a set are worth among thousands of other memories, none of which answers."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import recollect
from evaluation import plot
from evaluation.others import other_texts, store
from evaluation.parents import by_vectors_alone, by_words_alone
from evaluation.sets import DEPTH, Question, Set, caller_of, draft_of, err, fuse, rows_of
from recollect import App, Caller, Draft, Query, Settings

SIZES: Final = (240, 2_000, 10_000, 100_000)
TOGETHER: Final = "growth"
PARENTS: Final = ("words", "vectors", "rrf")


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
        texts, stored = other_texts(folders), sum(len(rows_of(one.folder / "corpus.jsonl")) for one in sets)
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


def run(sets: list[Set], folders: list[Path], largest: int, json_file: Path | None, plot_file: Path | None) -> None:
    """Measure the sets at each size up to `largest`, print the figures, and write and draw them where that is asked."""
    if plot_file is not None:
        plot.check()
    sizes = [size for size in SIZES if size <= largest]
    with tempfile.TemporaryDirectory(prefix="recollect-growth-") as home:
        settings = Settings(home=Path(home), user="eval", team="eval", project="eval", on_secret="redact")
        grown = measured(sets, folders, sizes, settings)
    show(grown)
    rows = [one.row() for one in grown]
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if plot_file is not None:
        draw(rows, plot_file)


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw for each set how often an answer is among the first five at each size, beside the parents."""
    from matplotlib.figure import Figure

    names = sorted({row["set"] for row in rows})
    figure = Figure(figsize=(4.5 * len(names), 3.6), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        some = sorted((row for row in rows if row["set"] == name), key=lambda row: row["size"])
        for system, colour in zip(("recollect", *PARENTS), plot.COLOURS, strict=True):
            values = [row[f"{system} five"] for row in some]
            panel.plot([row["size"] for row in some], values, marker="o", label=system, color=colour)
        panel.set(xscale="log", xlabel="memories", title=name, ylim=(0, 100))
    panels[0].set_ylabel("an answer among the first five, %")
    panels[-1].legend()
    figure.savefig(path, dpi=110)
