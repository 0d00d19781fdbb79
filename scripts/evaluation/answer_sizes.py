"""What an answer costs an agent: the tokens of `recall` through the tool `memory`, over the questions of a set."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import recollect
from evaluation.sets import Set, caller_of, err, fill
from recollect import Settings
from recollect.doors import toolsets
from recollect.search.budget import estimate


@dataclass
class Sizes:
    """For each question of a set: the tokens and characters of the answer's texts, and how many memories it shows."""

    name: str
    tokens: list[int] = field(default_factory=list)
    characters: list[int] = field(default_factory=list)
    memories: list[int] = field(default_factory=list)


def measured(one: Set, settings: Settings) -> Sizes:
    """Store a set and ask all its questions as an agent does, with nothing but the query."""
    found = Sizes(one.name)
    with recollect.open_app(settings) as app:
        fill(app, one.name, one.folder)
        count = app.embedder.counter() or estimate
        for question in track([*one.questions, *one.unanswered], f"{one.name}: asking", console=err):
            asked = {"action": "recall", "query": question.text[:20_000]}
            answer = toolsets.run(app, "memory", asked, caller_of(one.name, question.group))
            text = "\n".join(answer.texts)
            found.tokens.append(count(text))
            found.characters.append(len(text))
            found.memories.append(len(answer.structured.get("memories", ())))
    return found


def show(sets: list[Sizes]) -> None:
    """Print the mean, the median, the 95th percentile and the most of each size."""
    table = Table("set", "size", "mean", "p50", "p95", "most", title="Answers of `recall` through the tool `memory`")
    for one in sets:
        for name in ("tokens", "characters", "memories"):
            sizes = getattr(one, name)
            p50, p95 = np.percentile(sizes, [50, 95], method="higher")
            figures = (f"{np.mean(sizes):.1f}", str(p50), str(p95), str(max(sizes)))
            table.add_row(one.name, name, *figures, end_section=name == "memories")
    Console(width=120).print(table)
