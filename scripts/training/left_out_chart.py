"""Draw the table of sets left out, as docs/evaluation/left-out.md has it from `scripts/train fusion --leave-out`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evaluation import plot

SYSTEMS = ("words", "vectors", "rank fusion", "mix", "network")
COLOURS = ("#999999", "#56B4E9", "#E69F00", "#009E73", "#0072B2")
MEASURES = ("nDCG@10", "recall@10")


def rows_of(page: str) -> dict[str, dict[str, list[float]]]:
    """Return the first table of a Markdown page: by set and system, nDCG@10 and recall@10 in points."""
    lines = page.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("| set |"))
    names = [cell.strip() for cell in lines[first].strip("|").split("|")]
    found = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        cells = dict(zip(names, (cell.strip() for cell in line.strip("|").split("|")), strict=True))
        found[cells["set"]] = {name: [float(one) for one in cells[name].split("/")] for name in SYSTEMS}
    return found


def main(
    page: Annotated[Path, typer.Argument(help="The page with the table.")],
    target: Annotated[Path, typer.Argument(help="The PNG to write.")],
) -> None:
    """Draw the table of sets left out as a chart: a panel for each measure, a group of bars for each set."""
    plot.check()
    from matplotlib.figure import Figure

    rows = rows_of(page.read_text(encoding="utf-8"))
    figure = Figure(figsize=(1.0 + 1.1 * len(rows), 7.0), layout="constrained")
    for at, (panel, measure) in enumerate(zip(figure.subplots(len(MEASURES), 1, sharex=True), MEASURES, strict=True)):
        for number, (system, colour) in enumerate(zip(SYSTEMS, COLOURS, strict=True)):
            places = [place + (number - 2) * 0.16 for place in range(len(rows))]
            panel.bar(places, [one[system][at] for one in rows.values()], 0.15, label=system, color=colour)
        panel.set_ylabel(f"{measure}, points")
        panel.grid(axis="y", color="#dddddd")
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    panel.set_xticks(range(len(rows)), list(rows), fontsize=8)
    figure.legend(*panel.get_legend_handles_labels(), loc="outside upper center", ncols=len(SYSTEMS), frameon=False)
    figure.savefig(target, format="png", dpi=150)
