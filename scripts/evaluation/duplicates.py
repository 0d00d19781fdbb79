"""Measure what is taken for a duplicate, and what is named as near, over pairs rated by people and over a corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from evaluation.sets import err, lines_of, rows_of
from recollect import Settings
from recollect.engines.embedding import open_embedder
from recollect.errors import InvalidInput, RecollectError
from recollect.memory.likeness import say_the_same

SAME = 4.0
BATCH = 64
FOUND = 0.9
SURE = 0.9


class Pair(NamedTuple):
    """Two texts and how alike people found them (0–5)."""

    one: str
    other: str
    similarity: float


def pairs_of(path: Path) -> list[Pair]:
    """Read text, text, similarity (0–5) per line; raises `InvalidInput` naming the line."""
    pairs = []
    for number, line in lines_of(path):
        try:
            one, other, similarity = line.split("\t")
            pairs.append(Pair(one, other, float(similarity)))
        except ValueError as error:
            raise InvalidInput("pairs", f"{path}, line {number}: text, tab, text, tab, number is needed.") from error
    return pairs


def vectors_of(texts: list[str]) -> Any:
    """Return float32[n, d]: the texts as the configured model sees them."""
    settings = Settings()
    embedder = open_embedder(settings.model, settings.models_dir)
    embedder.warm()
    batches = track(range(0, len(texts), BATCH), "Embedding", console=err)
    return np.stack([one.vector for start in batches for one in embedder.read(texts[start : start + BATCH])])


def cosines(pairs: list[Pair]) -> Any:
    """Return float32[n]: the cosine of each pair's texts."""
    one, other = (vectors_of([pair[side] for pair in pairs]) for side in (0, 1))
    return (one * other).sum(axis=1)


def nearest_before(texts: list[str]) -> Any:
    """Return float32[n]: for each text the cosine of the nearest one that was stored before it, 0 for the first."""
    vectors = vectors_of(texts)
    return np.array([(vectors[:at] @ vectors[at]).max(initial=0.0) for at in range(len(texts))])


def figures(found: Any, say_the_same: Any, threshold: float) -> dict[str, float | int | None]:
    """Return how precise and complete "the same from this cosine on" is (0–1); precision is None for no pair."""
    above = found >= threshold
    right = int((above & say_the_same).sum())
    precision = right / int(above.sum()) if above.any() else None
    recall = right / int(say_the_same.sum()) if say_the_same.any() else None
    return {"threshold": threshold, "pairs": int(above.sum()), "precision": precision, "recall": recall}


def suggested(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the highest threshold that still finds most true pairs, and the lowest that is mostly right."""
    opening = [row["threshold"] for row in rows if (row["recall"] or 0.0) >= FOUND]
    sure = [row["threshold"] for row in rows if (row["precision"] or 0.0) >= SURE]
    return {"opening": max(opening, default=None), "sure": min(sure, default=None)}


def by_words(pairs: list[Pair]) -> dict[str, int]:
    """Return how many pairs the rule of the store takes for the same, and how many of those people do not."""
    taken = [pair.similarity >= SAME for pair in pairs if say_the_same(pair.one, pair.other)]
    return {"found": sum(taken), "wrong": len(taken) - sum(taken)}


def measure(pairs: list[Pair], corpus: list[str]) -> dict[str, Any]:
    """Return the rows for the cosines 0.5 to 0.98, the suggested thresholds and what the words alone find."""
    found = cosines(pairs)
    alike = np.array([pair.similarity >= SAME for pair in pairs])
    rows = [figures(found, alike, hundredths / 100) for hundredths in range(50, 99)]
    if corpus:
        near = nearest_before(corpus)
        for row in rows:
            row["named"] = float((near >= row["threshold"]).mean())
    return {"rows": rows, "suggested": suggested(rows), "words": by_words(pairs), "same": int(alike.sum())}


def main(
    pairs: Annotated[Path, typer.Argument(help="Lines of text, tab, text, tab, similarity (0–5).")],
    corpus: Annotated[Path | None, typer.Option(help="A set's corpus.jsonl: texts as they would be stored.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here, as JSON.")] = None,
) -> None:
    """Print which pairs of the same meaning (similarity of 4 and more) the words find, and the cosine, by threshold.

    With a corpus, also for which share of its texts the answer would name one that was stored before.
    """
    try:
        measured = measure(pairs_of(pairs), [] if corpus is None else [row["text"] for row in rows_of(corpus)])
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(error.exit_code) from error
    words, best = measured["words"], measured["suggested"]
    names = ["precision", "recall", *(["named"] if corpus else [])]
    title = f"{measured['same']} pairs say the same"
    table = Table("cosine from", "pairs", *names, title=title, title_justify="left")
    for row in measured["rows"][::2]:
        shares = ["–" if row[name] is None else f"{100 * row[name]:.1f}" for name in names]
        table.add_row(f"{row['threshold']:.2f}", str(row["pairs"]), *shares)
    out = Console(highlight=False)
    out.print(table)
    out.print(f"By their words the store takes {words['found']} of them for the same, and {words['wrong']} others.")
    out.print(f"Highest cosine that finds {100 * FOUND:.0f} % of them: {best['opening']}", soft_wrap=True)
    out.print(f"Lowest cosine that is right {100 * SURE:.0f} % of the time: {best['sure']}", soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(measured, indent=1), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
