"""How far a match can be trusted, and what a floor costs: the sums behind two charts, and the charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from recollect import Settings
from recollect.engines.embedding import find_model
from training.network import Question

EVERY: Final = "all"
BINS: Final = 10
ADVERSARIAL: Final = "adversarial"
Asked: TypeAlias = tuple[Sequence[Question], Sequence[tuple[np.ndarray, np.ndarray]]]  # questions, matches, relevant


class Tenth(NamedTuple):
    """The hits of one tenth of `match`: their weight, their mean match, the share that is relevant."""

    weight: float
    match: float
    relevant: float


def tenths(sets: Sequence[Asked]) -> list[Tenth]:
    """Return the tenths of `match` over all questions that are not put aside, each set weighing the same."""
    found = []
    for questions, best in sets:
        kept = [two for one, two in zip(questions, best, strict=True) if one.example.category != ADVERSARIAL]
        matches = np.concatenate([matches for matches, _ in kept])
        relevant = np.concatenate([relevant for _, relevant in kept]).astype(float)
        found.append((matches, relevant, np.full(len(matches), 1 / len(matches) / len(sets))))
    matches, relevant, weights = (np.concatenate(columns) for columns in zip(*found, strict=True))
    place = np.minimum((matches * BINS).astype(int), BINS - 1)
    rows = []
    for number in range(BINS):
        here = place == number
        weight = float(weights[here].sum())
        means = [float((weights * some)[here].sum()) / weight if weight else 0.0 for some in (matches, relevant)]
        rows.append(Tenth(weight, *means))
    return rows


def error(rows: Sequence[Tenth]) -> float:
    """Return the expected calibration error."""
    return sum(row.weight * abs(row.match - row.relevant) for row in rows)


def draw(sets: Mapping[str, Asked], folder: Path) -> None:
    """Write reliability.png and silence.png: the second has the silence of each kind against the answered shown."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 5.5), layout="constrained")
    panel = figure.subplots()
    panel.plot((0, 1), (0, 1), color="#999999", linewidth=1)
    for name, one in sets.items():
        rows = [row for row in tenths([one]) if row.weight > 0]
        panel.plot([row.match for row in rows], [row.relevant for row in rows], linewidth=0.8, marker=".", label=name)
    rows = [row for row in tenths(list(sets.values())) if row.weight > 0]
    panel.plot(
        [row.match for row in rows], [row.relevant for row in rows], "k-o", label=f"all, error {error(rows):.3f}"
    )
    panel.set_xlabel("match (each set judged by a network fitted without it)")
    panel.set_ylabel("share of hits that answer")
    panel.legend(fontsize=7, frameon=False)
    figure.savefig(folder / "reliability.png", format="png", dpi=150)
    shipped = find_model(Settings.model_fields["model"].default)
    _silence(sets, folder / "silence.png", shipped.card.floor if shipped else 0.0)


def _silence(sets: Mapping[str, Asked], path: Path, shipped: float) -> None:
    from matplotlib.figure import Figure

    floors = np.concatenate([np.geomspace(0.002, 0.6, 120), [shipped]])
    floors.sort()
    kinds: dict[str, dict[str, list[float]]] = {}
    for name, (questions, best) in sets.items():
        for question, (matches, _) in zip(questions, best, strict=True):
            one = question.example
            kind = one.category if not one.answers else "answered"
            if kind != ADVERSARIAL:
                kinds.setdefault(kind, {}).setdefault(name, []).append(float(matches[0]))

    def mean(kind: str, floor: float) -> float:
        return float(np.mean([np.mean(np.array(some) < floor) for some in kinds[kind].values()]))

    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    panel = figure.subplots()
    shown = [100 * (1 - mean("answered", floor)) for floor in floors]
    for kind in sorted(set(kinds) - {"answered"}):
        silent = [100 * mean(kind, floor) for floor in floors]
        line = panel.plot(shown, silent, label=f"{kind} ({len(kinds[kind])} sets)")[0]
        panel.plot([100 * (1 - mean("answered", shipped))], [100 * mean(kind, shipped)], "o", color=line.get_color())
    panel.set_xlim(70, 100)
    panel.set_xlabel("answerable questions that bring something back, percent")
    panel.set_ylabel("silent on questions without an answer, percent")
    panel.set_title(f"circles: the shipped floor, {shipped:g}", fontsize=9)
    panel.legend(frameon=False)
    figure.savefig(path, format="png", dpi=150)
