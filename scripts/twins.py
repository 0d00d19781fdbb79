"""Measure from which cosine two texts may say the same: precision and recall over pairs rated by people."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from recollect import Settings
from recollect.engines.embedding import open_embedder
from recollect.errors import InvalidInput, RecollectError
from sets import err, lines_of

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


def cosines(pairs: list[Pair], settings: Settings) -> Any:
    """Return float32[n]: the cosine of each pair's texts, as the configured model sees them."""
    texts = sorted({text for pair in pairs for text in pair[:2]}, key=len)
    embedder = open_embedder(settings.model, settings.models_dir, settings.caches)
    embedder.warm()
    batches = track(range(0, len(texts), BATCH), "Embedding", console=err)
    vectors = np.concatenate([embedder.embed(texts[start : start + BATCH]) for start in batches])
    place = {text: number for number, text in enumerate(texts)}
    left, right = ([place[text] for text in column] for column in list(zip(*pairs, strict=True))[:2])
    return (vectors[left] * vectors[right]).sum(axis=1)


def figures(found: Any, same: Any, threshold: float) -> dict[str, float | int | None]:
    """Return how precise and complete "the same from this cosine on" is (0–1); precision is None for no pair."""
    above = found >= threshold
    right = int((above & same).sum())
    precision = right / int(above.sum()) if above.any() else None
    recall = right / int(same.sum()) if same.any() else None
    return {"threshold": threshold, "pairs": int(above.sum()), "precision": precision, "recall": recall}


def suggested(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Return the highest threshold that still finds most true pairs, and the lowest that is mostly right."""
    opening = [row["threshold"] for row in rows if (row["recall"] or 0.0) >= FOUND]
    sure = [row["threshold"] for row in rows if (row["precision"] or 0.0) >= SURE]
    return {"opening": max(opening, default=None), "sure": min(sure, default=None)}


def measure(path: Path) -> tuple[list[dict[str, Any]], dict[str, float | None], int]:
    """Return the rows for the cosines 0.5 to 0.98, the suggested thresholds, and how many pairs say the same."""
    pairs = pairs_of(path)
    with tempfile.TemporaryDirectory(prefix="recollect-twins-") as home:
        settings = Settings(cache_dir=Settings().cache_dir or Path(home))
        found = cosines(pairs, settings)
    same = np.array([pair.similarity >= SAME for pair in pairs])
    rows = [figures(found, same, hundredths / 100) for hundredths in range(50, 99)]
    return rows, suggested(rows), int(same.sum())


def main(
    pairs: Annotated[Path, typer.Argument(help="Lines of text, tab, text, tab, similarity (0–5).")],
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the rows here, as JSON.")] = None,
) -> None:
    """Print how well the cosine tells pairs that say the same (similarity of 4 and more), threshold by threshold."""
    try:
        rows, best, same = measure(pairs)
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(error.exit_code) from error
    table = Table(
        "cosine from", "pairs", "precision", "recall", title=f"{same} pairs say the same", title_justify="left"
    )
    for row in rows[::2]:
        shares = ["–" if row[name] is None else f"{100 * row[name]:.1f}" for name in ("precision", "recall")]
        table.add_row(f"{row['threshold']:.2f}", str(row["pairs"]), *shares)
    out = Console(highlight=False)
    out.print(table)
    out.print(f"Highest cosine that finds {100 * FOUND:.0f} % of them: {best['opening']}", soft_wrap=True)
    out.print(f"Lowest cosine that is right {100 * SURE:.0f} % of the time: {best['sure']}", soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps({"rows": rows, "suggested": best}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
