"""Draw what a recall costs beside its bare parts, from the files that `scripts/bench --json` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from evaluation import plot

PARTS = {"embed query": "#56B4E9", "one Chroma query": "#E69F00", "one FTS query": "#999999"}
RECALLS = {"recall": "#0072B2", "recall in one category": "#009E73", "recall of a common word": "#CC79A7"}
ROOM = 1.15
"""Height of the picture in those of its highest recall; what a part takes beyond that is written on its bar."""


def main(
    target: Annotated[Path, typer.Argument(help="The PNG to write.")],
    runs: Annotated[list[Path], typer.Argument(help="What bench wrote, one file for each size of store.")],
) -> None:
    """Write a PNG: for each run the bare parts, one on the other, beside each kind of recall; whiskers end at p95.

    A sum of parts that is far higher than any recall is cut off, and its number stands there.
    """
    plot.check()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.0 + 2.2 * len(runs), 4.5), layout="constrained")
    panel = figure.subplots()
    read = [json.loads(run.read_text(encoding="utf-8")) for run in runs]
    top = ROOM * max(found[name]["p95_ms"] for found in read for name in RECALLS)
    for place, found in enumerate(read):
        below = 0.0
        for name, colour in PARTS.items():
            height = found[name]["p50_ms"]
            panel.bar(place - 0.3, height, 0.18, bottom=below, color=colour, label=None if place else name)
            below += height
        if below > top:
            panel.annotate(f"{below:,.0f}", (place - 0.3, top), ha="center", va="bottom", fontsize=8)
        for number, (name, colour) in enumerate(RECALLS.items()):
            middle, most = found[name]["p50_ms"], found[name]["p95_ms"]
            label = None if place else name
            panel.bar(place - 0.1 + 0.2 * number, middle, 0.18, color=colour, label=label)
            whisker = ([0.0], [most - middle])
            panel.errorbar(place - 0.1 + 0.2 * number, middle, whisker, fmt="none", ecolor="#333333", capsize=2)
    panel.set_xticks(range(len(read)), [f"{found['memories']:,}\n{found['vectors']}" for found in read])
    panel.set_ylim(0, top)
    panel.set_ylabel("milliseconds of CPU")
    panel.grid(axis="y", color="#dddddd")
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(target, format="png", dpi=150)


if __name__ == "__main__":
    typer.run(main)
