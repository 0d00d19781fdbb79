"""Draw the latencies of a load by percentile, beside what one request alone takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from evaluation import plot

COLOURS: Final = {"recall": "#0072B2", "remember": "#E69F00"}
STYLES: Final = ("-", "--", ":", "-.")


def draw(found: dict[str, Any], target: Path) -> None:
    """Write a PNG: for each kind of request and number of replicas a curve, and the median of one client alone."""
    plot.check()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    panel = figure.subplots()
    for one, style in zip(found["runs"], STYLES, strict=False):
        for kind, colour in COLOURS.items():
            curve = one["latency"][kind].get("curve_ms", [])
            label = f"{kind}, {one['replicas']} replica(s), {one['requests_per_second']} requests/s in all"
            panel.plot(range(len(curve)), curve, style, color=colour, label=label)
    for kind, colour in COLOURS.items():
        alone = found["runs"][0]["bare"][f"one {kind} by HTTP"].get("p50_ms")
        if alone is not None:
            panel.axhline(alone, color=colour, linewidth=0.8, alpha=0.6)
            panel.annotate(f"one {kind} alone", (1, alone), fontsize=7, va="bottom", color=colour)
    panel.set_yscale("log")
    panel.set_ylabel("milliseconds")
    panel.set_xlabel(f"percentile ({found['memories']:,} memories, {found['clients']} clients)")
    panel.set_xticks([0, 25, 50, 75, 95, 99])
    panel.grid(color="#dddddd")
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    figure.savefig(target, format="png", dpi=150)
