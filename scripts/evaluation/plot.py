"""Draw recall@10 and nDCG@10 of every set and system as bars; the one room that needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.errors import InvalidInput

COLOURS = ("#0072B2", "#E69F00", "#56B4E9", "#999999")
PANELS = {"recall@10": "recall@10", "ndcg@10": "nDCG@10"}


def check() -> None:
    """Raise `InvalidInput` where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            "--plot",
            "--plot needs matplotlib, which is not installed: run `scripts/setup --test`, or `pip install matplotlib`.",
        ) from error


def draw(rows: Sequence[dict[str, Any]], systems: Sequence[str], headline: str, path: Path) -> None:
    """Write a PNG with a panel for each metric; whiskers are the 95 % intervals."""
    # A figure that no pyplot made needs no display: it is drawn by Agg.
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["set"] for row in rows))
    headlines = {row["set"] for row in rows if row["category"] == headline}
    chosen = {
        (row["set"], row["system"]): row
        for row in rows
        if row["category"] == (headline if row["set"] in headlines else "all")
    }
    figure = Figure(figsize=(max(6.0, 1.0 + 1.5 * len(names)), 7.0), layout="constrained")
    for panel, (metric, label) in zip(figure.subplots(len(PANELS), 1, sharex=True), PANELS.items(), strict=True):
        for number, system in enumerate(systems):
            found = [chosen[name, system] for name in names]
            heights = [row[metric] for row in found]
            below = [max(row[metric] - row["interval"][metric][0], 0.0) for row in found]
            above = [max(row["interval"][metric][1] - row[metric], 0.0) for row in found]
            places = [place + (number - (len(systems) - 1) / 2) * 0.2 for place in range(len(names))]
            panel.bar(places, heights, 0.19, label=system, color=COLOURS[number])
            panel.errorbar(places, heights, (below, above), fmt="none", ecolor="#333333", elinewidth=1, capsize=2)
        panel.set_ylabel(f"{label}, points")
        panel.set_ylim(0, 105)
        panel.set_axisbelow(True)
        panel.grid(axis="y", color="#dddddd")
        panel.spines[["top", "right"]].set_visible(False)
    labels = [f"{name}\n({headline})" if name in headlines else name for name in names]
    panel.set_xticks(range(len(names)), labels, fontsize=8)
    figure.legend(*panel.get_legend_handles_labels(), loc="outside upper center", ncols=len(systems), frameon=False)
    figure.savefig(path, format="png", dpi=150)
