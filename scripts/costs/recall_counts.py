"""Count what a recall costs, by figures that do not depend on how busy the machine is.

A store is filled as `scripts/bench` fills it, and kept in the folder that is named. Each recall is counted in calls of
Python functions, in all calls, and in statements of SQL, those that its usage counting makes in the background too. CPU
seconds are compared with those of its parts, taken by turns in this process.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from sqlalchemy import event

import recollect
from costs.bench import CATEGORIES, KEPT, SESSION, filled, sentences
from costs.generated import GeneratedEmbedder
from recollect import App, Caller, Draft, Query, Settings
from recollect.domain.search import View
from recollect.search.parse import parse
from recollect.store.text.index import Term

SOURCE = f"{Path(recollect.__file__).parent}/"
WARM = 20
"""Recalls before anything is counted: statements are compiled, files are read."""
ROUNDS = 5
"""How often the CPU time of each query is taken; of these the least counts, as other work adds to all of them."""

out = Console(highlight=False)


class Calls:
    """Counts calls of one thread: of Python functions by their code, of functions of C by that of their callers."""

    def __init__(self) -> None:
        self.python: Counter[CodeType] = Counter()
        self.other: Counter[CodeType] = Counter()

    def __call__(self, frame: FrameType, kind: str, _: Any) -> None:
        """Count one call."""
        if kind == "call":
            self.python[frame.f_code] += 1
        elif kind == "c_call":
            self.other[frame.f_code] += 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count until the block ends."""
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)

    def by_module(self) -> Counter[str]:
        """Return how many calls each module had or made of C: ours by its path, others by the name of their package."""
        found: Counter[str] = Counter()
        for code, count in (self.python + self.other).items():
            path = code.co_filename
            package = path.rpartition("site-packages/")[2].partition("/")[0]
            found[path.removeprefix(SOURCE) if path.startswith(SOURCE) else package] += count
        return found

    def by_function(self) -> Counter[str]:
        """Return how many calls each of our functions had or made of C."""
        return Counter(
            {
                f"{code.co_filename.removeprefix(SOURCE)}:{code.co_qualname}": count
                for code, count in (self.python + self.other).items()
                if code.co_filename.startswith(SOURCE)
            }
        )


def queries_of(texts: Sequence[str], kind: str, count: int) -> list[str]:
    """Return some queries: a part of a sentence, one of its words misspelt, or the word of every seventh memory."""
    sample = Random(3).sample(texts, min(count, len(texts)))
    if kind == "frequent":
        return [text.split()[3] for text in sample]
    whole = [" ".join(text.split()[1:9]) for text in sample]
    return [re.sub(r"(tt|ll|oo|ss)", lambda two: two[0][0], one) for one in whole] if kind == "misspelt" else whole


def count_calls(app: App, caller: Caller, queries: Sequence[str]) -> Calls:
    """Count the calls of a recall of each query, in this thread."""
    calls = Calls()
    for text in queries:
        query = Query(query=text)
        with calls.counting():
            recollect.recall(app, query, caller)
    return calls


def count_statements(app: App, caller: Caller, queries: Sequence[str]) -> Counter[str]:
    """Count the statements of a recall of each query by their first words, what is counted later included."""
    index: Any = app.vectors
    engine, asked = index._database.engine, Counter[str]()
    listener = lambda *told: asked.update([" ".join(told[2].split())[:70]])  # noqa: E731
    app.usage.write()
    event.listen(engine, "before_cursor_execute", listener)
    for text in queries:
        recollect.recall(app, Query(query=text), caller)
    app.usage.write()
    event.remove(engine, "before_cursor_execute", listener)
    return asked


def cpu_times(app: App, caller: Caller, queries: Sequence[str]) -> dict[str, float]:
    """Return the CPU milliseconds of a recall, of its parts, and their ratio: medians over the queries."""
    view = View(namespaces=caller.namespaces(), now=app.clock())
    index: Any = app.vectors
    vectors = {text: app.embedder.read([text], "query")[0].vector for text in queries}
    words = {text: [Term(word) for word in parse(text).words] for text in queries}
    works: dict[str, Callable[[str], Any]] = {
        "recall": lambda text: recollect.recall(app, Query(query=text), caller),
        "embedding": lambda text: app.embedder.read([text], "query"),
        "Chroma query": lambda text: index._index.query(caller.namespaces()[1], vectors[text], 50),
        "text query": lambda text: app.text.search(words[text], view, 50),
    }
    least = {
        name: [min(_cpu_of(work, text) for _ in range(ROUNDS)) for text in queries] for name, work in works.items()
    }
    found = {name: round(statistics.median(taken) * 1e3, 2) for name, taken in least.items()}
    parts = [sum(one) for one in zip(*(taken for name, taken in least.items() if name != "recall"), strict=True)]
    ratios = [whole / bare for whole, bare in zip(least["recall"], parts, strict=True)]
    return found | {"recall / bare sum": round(statistics.median(ratios), 2)}


def _cpu_of(work: Callable[[str], Any], text: str) -> float:
    """Return the CPU seconds that a call takes, in every thread of this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work(text)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(
    folder: Annotated[Path, typer.Argument(help="Where the filled store is, or is made.")],
    memories: Annotated[int, typer.Option(help="How many memories the store holds.")] = 10_000,
    generated: Annotated[bool, typer.Option("--generated", help="Seeded vectors instead of a model.")] = False,
    kind: Annotated[str, typer.Option(help="`sentence`, `misspelt`, or `frequent`.")] = "sentence",
    count: Annotated[int, typer.Option(help="How many queries.")] = 100,
    cpu: Annotated[bool, typer.Option(help="Also take the CPU time, which takes minutes.")] = True,
    functions: Annotated[int, typer.Option(help="List so many of our functions.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here, as JSON.")] = None,
) -> None:
    """Fill a store or take one that is, then count."""
    settings = Settings(home=folder, user="bench", team="bench", project="bench")
    texts, caller = sentences(memories), settings.caller
    drafts = [
        Draft(
            content=text,
            category=CATEGORIES[number % len(CATEGORIES)],
            session_id=f"session-{number // SESSION}",
            position=number % SESSION,
        )
        for number, text in enumerate(texts)
    ]
    queries = queries_of(texts, kind, count)
    with recollect.open_app(settings, embedder=GeneratedEmbedder() if generated else None) as app:
        filled(app, drafts, caller, settings.home / KEPT)
        app.vectors.sync()
        for text in queries[:WARM]:
            recollect.recall(app, Query(query=text), caller)
        calls, asked = count_calls(app, caller, queries), count_statements(app, caller, queries)
        found: dict[str, Any] = {
            "Python calls": round(calls.python.total() / len(queries)),
            "calls of C": round(calls.other.total() / len(queries)),
            "calls": round((calls.python.total() + calls.other.total()) / len(queries)),
            "statements": round(asked.total() / len(queries), 2),
            "CPU milliseconds": cpu_times(app, caller, queries) if cpu else {},
        }
        found["by statement"] = {name: round(number / len(queries), 2) for name, number in asked.most_common()}
        found["by module"] = {name: round(number / len(queries)) for name, number in calls.by_module().most_common(25)}
        listed = calls.by_function().most_common(functions)
        found["by function"] = {name: round(number / len(queries)) for name, number in listed}
    table = Table("counted", "a recall", title=f"{memories} memories, {kind} queries", title_justify="left")
    for name, figure in found.items():
        rows = figure.items() if isinstance(figure, dict) else [("", figure)]
        for part, value in rows:
            table.add_row(f"{name} {part}".strip(), str(value))
    out.print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
