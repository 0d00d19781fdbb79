"""Prints what the arms reach, as tables for a terminal or for a page, and draws it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from evaluation import plot
from evaluation.worth.arms import Arm
from evaluation.worth.scores import Outcome, Share, by_kind, difference, figures

SHARES: Final = {
    "right": "tasks right",
    "right_needing": "of those that need a memory",
    "right_nothing": "of those that need none",
    "repeated": "known failures repeated",
    "asked": "questions asked",
    "reached": "what was needed came before the agent",
}
AMOUNTS: Final = {
    "tokens": "tokens of memory read for a task, mean",
    "start_tokens": "of these before the work began",
    "tool_tokens": "tokens that describe the tool, beside these",
    "requests": "requests to the memory for a task, mean",
}
COMPARED: Final = ((Arm.RECOLLECT, Arm.NONE), (Arm.RECOLLECT, Arm.MARKDOWN), (Arm.RECOLLECT, Arm.RECALL))
COLOURS: Final = {Arm.NONE: "#999999", Arm.MARKDOWN: "#56B4E9", Arm.RECALL: "#E69F00", Arm.RECOLLECT: "#0072B2"}
_PANELS: Final = {
    "right_needing": "right, memory needed",
    "right_nothing": "right, none needed",
    "repeated": "known failure repeated",
}
_WIDTH: Final = 0.2

Rows = list[list[str]]


def tables(outcomes: Sequence[Outcome]) -> list[tuple[list[str], Rows]]:
    """Return the tables of a report, each with its heads: the figures of the arms, the kinds of tasks, the gains."""
    found = figures(outcomes)
    arms = [row["arm"] for row in found]
    main: Rows = [["answers of"] + [f"{row['right'].count} tasks, {row['players']} player(s)" for row in found]]
    main += [[title] + [percent(row[name]) for row in found] for name, title in SHARES.items()]
    main += [[title] + [f"{row[name]:,}" for row in found] for name, title in AMOUNTS.items()]
    kinds: Rows = []
    for kind, shares in by_kind(outcomes).items():
        count = max(share.count for share in shares.values())
        kinds.append([f"{kind} ({count})", *(percent(shares.get(arm), interval=False) for arm in arms)])
    gains: Rows = []
    for arm, other in COMPARED:
        cells = []
        for needing in (True, False):
            gain = difference(outcomes, arm, other, needing=needing)
            text = f"{gain.value:+.0f} [{gain.low:+.0f}, {gain.high:+.0f}]" if gain else "–"
            cells.append(text.replace("-", "−"))
        if set(cells) != {"–"}:
            gains.append([f"{arm} − {other}", *cells])
    return [
        (["", *arms], main),
        (["right answers, by kind of task", *arms], kinds),
        (["more right answers, in points", "memory needed", "none needed"], gains),
    ]


def show(outcomes: Sequence[Outcome], out: Console) -> None:
    """Print the tables for a terminal."""
    for heads, rows in tables(outcomes):
        table = Table(*heads)
        for row in rows:
            table.add_row(*row)
        out.print(table)


def as_markdown(outcomes: Sequence[Outcome]) -> str:
    """Return the tables for a page."""
    return "\n\n".join(
        "\n".join((_line(heads), _line("---" for _ in heads), *map(_line, rows))) for heads, rows in tables(outcomes)
    )


def as_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return all figures, and the judgement of each answer."""
    judged = [
        {"arm": each.arm, "player": each.player, "task": each.name, "kind": each.task.kind}
        | {"right": each.judgement.right, "repeats": each.judgement.repeats, "asks": each.judgement.asks}
        | {"reached": each.kept.reached, "tokens": each.kept.tokens}
        for each in outcomes
    ]
    shares = [
        {name: vars(value) if isinstance(value, Share) else value for name, value in row.items()}
        for row in figures(outcomes)
    ]
    return {"arms": shares, "answers": judged}


def draw(outcomes: Sequence[Outcome], target: Path) -> None:
    """Write a PNG: for each arm shares of tasks with their intervals, and the tokens of memory that were read."""
    plot.check()
    from matplotlib.figure import Figure

    rows = figures(outcomes)
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 1))
    for number, row in enumerate(rows):
        shift = (number - (len(rows) - 1) / 2) * _WIDTH
        shares = {place + shift: row[name] for place, name in enumerate(_PANELS) if row[name].count}
        heights = [100 * share.value for share in shares.values()]
        below = [max(0.0, 100 * (share.value - share.low)) for share in shares.values()]
        above = [max(0.0, 100 * (share.high - share.value)) for share in shares.values()]
        left.bar([*shares], heights, _WIDTH * 0.95, label=row["arm"], color=COLOURS[row["arm"]])
        left.errorbar([*shares], heights, (below, above), fmt="none", ecolor="#333333", elinewidth=1, capsize=2)
        right.bar(number, row["tokens"], 0.7, color=COLOURS[row["arm"]])
        right.bar(number, row["tool_tokens"], 0.7, row["tokens"], color=COLOURS[row["arm"]], alpha=0.35)
    left.set_xticks(range(len(_PANELS)), list(_PANELS.values()))
    left.set_ylabel("tasks, per cent (95 % intervals)")
    left.set_ylim(0, 105)
    right.set_xticks(range(len(rows)), [row["arm"] for row in rows], rotation=30, ha="right")
    right.set_ylabel("tokens read for a task\n(pale: the tool's description)")
    for panel in (left, right):
        panel.set_axisbelow(True)
        panel.grid(axis="y", color="#dddddd")
        panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(rows), frameon=False)
    figure.savefig(target, format="png", dpi=150)


def percent(share: Share | None, *, interval: bool = True) -> str:
    """Return a share in per cent, with its interval."""
    if share is None or share.value is None:
        return "–"
    value = f"{100 * share.value:.0f}"
    return f"{value} [{100 * share.low:.0f}, {100 * share.high:.0f}]" if interval else value


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
