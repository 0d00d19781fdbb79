"""Fit the governor's model of orders to a model, and write its weights.

It learns from the templates in `data/orders` and from the files given: attempts and ordinary texts, a text a line (or
JSON lines with `text`). What is drawn from templates is the same in every run. What ships was fitted on the files
`written_*` there and those in `tests/prompt/injections` (of the JSON ones the dev halves), and as ordinary text on
`agent_notes`, `agent_sessions`, `cookbook_*`, `stackfaq`, `chats_assistant`, `chats_channel`, `tldr`, `qmsum` and
`xquad`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from recollect.prompt import orders
from recollect.prompt.neutral import without_invisible
from recollect.prompt.orders import SCALE, SLOTS, WEIGHTS, feature_places, feature_weight
from recollect.text.sentences import sentences

HERE: Final = Path(__file__).with_name("data") / "orders"
TARGET: Final = Path(__file__).resolve().parents[2] / "src" / "recollect" / "prompt" / WEIGHTS
DRAWN: Final = {"attempts": (40, 30), "harmless": (40, 10)}  # sentences of an English template, of another one
EPOCHS, BATCH, RATE, DECAY = 12, 64, 0.25, 2e-5
GIVEN: Final = 5.0  # times the weight of a drawn sentence, of one that was given


def drawn(name: str) -> list[str]:
    """Return sentences of the templates of a file, each once."""
    random_choice = random.Random(7)
    names: dict[str, str] = {}
    found: list[str] = []
    many = DRAWN[name][0]
    for line in (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            many = DRAWN[name][1]
        elif definition := re.match(r"([A-Z]+) = (.*)", line):
            names[definition[1]] = definition[2]
        elif line and not line.startswith("#"):
            found += [_one(line, names, random_choice) for _ in range(many)]
    return list(dict.fromkeys(found))


def _one(template: str, names: dict[str, str], chance: random.Random) -> str:
    text = template
    while match := re.search(r"\{([^{}]*)\}|\$([A-Z]+)\b", text):
        choices = match[1] if match[2] is None else names[match[2]]
        text = text[: match.start()] + chance.choice(choices.split("|")) + text[match.end() :]
    return text.replace("¦", "|")


def given(files: Sequence[Path], half: str = "") -> list[list[str]]:
    """Return the texts of files by their sentences, each text once; of `half` where they say which half they are of."""
    found: dict[tuple[str, ...], None] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            text = json.loads(line) if line.startswith("{") and '"text"' in line else {"text": line}
            if not half or text.get("half", half) == half:
                found[tuple(_sentences(text["text"]))] = None
    return [list(one) for one in found if one]


def _sentences(text: str) -> Iterator[str]:
    escaped = re.sub(r"\\u([0-9a-f]{4})", lambda one: chr(int(one[1], 16)), text).replace("\\n", "\n")
    for line in without_invisible(escaped).split("\n"):
        yield from (one for one in sentences(line, semicolons=True) if len(one.strip()) > 3)


def fit(groups: Sequence[tuple[Sequence[str], float, float]]) -> tuple[np.ndarray, float]:
    """Return float64[SLOTS] weights and a bias, of a logistic regression by Adagrad.

    Each group has its sentences, their label (1 for orders) and how much each counts.
    """
    rows = [
        np.array(feature_places(orders.comparable_text(text)), dtype=np.int64)
        for texts, _, _ in groups
        for text in texts
    ]
    labels = np.concatenate([np.full(len(texts), label) for texts, label, _ in groups])
    weights = np.concatenate([np.full(len(texts), weight) for texts, _, weight in groups])
    chance = np.random.default_rng(7)
    w, b, squares, square = np.zeros(SLOTS), -1.0, np.full(SLOTS, 1e-3), 1e-3
    kept = [number for number, row in enumerate(rows) if len(row)]
    for _ in range(EPOCHS):
        chance.shuffle(kept)
        for start in range(0, len(kept), BATCH):
            batch = kept[start : start + BATCH]
            places = np.concatenate([rows[one] for one in batch])
            owner = np.repeat(np.arange(len(batch)), [len(rows[one]) for one in batch])
            shares = np.array([feature_weight(rows[one]) for one in batch])
            odds = np.bincount(owner, weights=w[places], minlength=len(batch)) * shares + b
            wrong = (1.0 / (1.0 + np.exp(-odds)) - labels[batch]) * weights[batch]
            slope = np.bincount(places, weights=(wrong * shares)[owner], minlength=SLOTS) / len(batch) + DECAY * w
            squares += slope**2
            w -= RATE * slope / np.sqrt(squares)
            square += wrong.mean() ** 2
            b -= RATE * wrong.mean() / np.sqrt(square)
    return w, b


def main(
    attempts: Annotated[list[Path], typer.Option(help="Files of attempts.")] = [],  # noqa: B006
    harmless: Annotated[list[Path], typer.Option(help="Files of ordinary notes.")] = [],  # noqa: B006
    prose: Annotated[list[Path], typer.Option(help="Files of ordinary text of any kind.")] = [],  # noqa: B006
    half: Annotated[str, typer.Option(help="Of the given texts only those of this half.")] = "dev",
    most: Annotated[int, typer.Option(help="Sentences of each file of prose.")] = 2_000,
) -> None:
    """Fit what recognises instructions to a model in memories, and write its weights.

    An attempt often stands among ordinary sentences: a first fit takes all of its sentences for orders, a second one
    only the one that sounds most like an order.
    """
    groups = [
        (drawn("attempts"), 1.0, 1.0),
        (drawn("harmless"), 0.0, 1.0),
        ([one for text in given(harmless, half) for one in text], 0.0, GIVEN),
        *(([one for text in given([file]) for one in text][:most], 0.0, 1.0) for file in prose),
    ]
    tried = given(attempts, half)
    w, b = fit([*groups, ([one for text in tried for one in text], 1.0, 1.0)])
    worst = [max(text, key=lambda one: _score(w, b, one)) for text in tried]
    w, b = fit([*groups, (worst, 1.0, GIVEN)])
    packed = np.clip(np.round(w * SCALE), -127, 127).astype(np.int8).tobytes()
    TARGET.write_bytes(packed + round(float(b) * SCALE).to_bytes(2, "big", signed=True))
    found = sum(_score(w, b, one) > orders.LIKELY for one in worst)
    typer.echo(
        f"{SLOTS:,} weights in {TARGET.name}; they find {found} of the {len(worst)} attempts they were fitted on"
    )


def _score(w: np.ndarray, b: float, text: str) -> float:
    places = feature_places(orders.comparable_text(text))
    return float(w[places].sum() * feature_weight(places) + b) if places else -9.0
