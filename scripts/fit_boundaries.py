"""Fit what tells that a prompt opens another topic, on labelled sessions, and print it for `boundaries.py`.

Each argument is a folder with `events.jsonl`. A logistic regression weighs the evidence of each prompt whose words are
not those of the topic before it; while it is fitted, topics change where the labels say so. Then each folder is played
with weights that were fitted on the others, and its boundaries are scored as scripts/eval-sessions scores them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np

from fit_capture import fitted
from recollect import Settings
from recollect.engines.embedder import Embedder
from recollect.engines.embedding import open_embedder
from recollect.sessions.boundaries import Window, evidence, observed, told_by
from recollect.sessions.memorability import meanings, memorability
from recollect.sessions.observations.observe import parts_of
from recollect.sessions.observations.statements import said
from session_players import Played
from session_scores import boundaries
from session_sets import Event, Place, SessionSet, load

RIDGE: Final = 0.3
_NEVER: Final = (0.0, 0.0, 0.0, 0.0, -1.0)


@dataclass(frozen=True)
class Text:
    """What an event says, and how far a prompt states something (0–1)."""

    event: Event
    text: str
    states: float = 0.0

    @property
    def prompt(self) -> bool:
        """Say whether a person said it."""
        return self.event.event == "prompt:submit"


def texts(given: SessionSet, embedder: Embedder) -> list[Text]:
    """Return the prompts and the outputs of tools as boundaries see them."""
    found = []
    for event in given.events:
        if event.event == "prompt:submit":
            parts = parts_of(event.prompt)
            known = meanings(embedder, parts)
            scores = [memorability(one.features, known[at] if known else None).score for at, one in enumerate(parts)]
            found.append(Text(event, said(event.prompt), max(scores, default=0.0)))
        elif event.event == "tool:post":
            found.append(Text(event, told_by(event.tool, event.input, event.output)))
    return found


def played(given: Sequence[Text], weights: Sequence[float]) -> set[Place]:
    """Return where topics begin by these weights."""
    found = set[Place]()
    for _, session in groupby(given, key=lambda one: one.event.session):
        window = Window()
        for one in session:
            window, boundary = observed(window, one.text, one.event.at, one.prompt, one.states, weights)
            if boundary:
                found.add(one.event.place)
    return found


def rows(given: Sequence[Text]) -> Iterator[tuple[tuple[float, ...], float]]:
    """Yield the evidence of each prompt and whether it opens a topic, where topics change as the labels say."""
    for _, session in groupby(given, key=lambda one: one.event.session):
        window = Window()
        for one in session:
            if one.prompt and (seen := evidence(window, one.text, one.event.at, one.states)):
                yield seen, float(one.event.boundary)
            window, _ = observed(Window() if one.event.boundary else window, one.text, one.event.at, True, 0.0, _NEVER)


def fit(folders: Sequence[Sequence[Text]]) -> list[float]:
    """Return the weights and, last, the bias."""
    seen, opens = zip(*(row for each in folders for row in rows(each)), strict=True)
    return [round(float(one), 2) for one in fitted(np.array(seen), np.array(opens), RIDGE)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args()
    settings = Settings()
    embedder = open_embedder(settings.model, settings.models_dir, settings.caches)
    embedder.warm()
    sets = [load(one) for one in given.folders]
    said = [texts(one, embedder) for one in sets]
    found = []
    for place, one in enumerate(sets):
        weights = fit([each for other, each in enumerate(said) if other != place])
        figures = boundaries(one, Played(boundaries=played(said[place], weights)), _same)[0]
        found.append(figures["boundary F1"] or 0.0)
        print(one.name, *(f"{name} {value or 0:.3f}" for name, value in figures.items()))
    print(f"left out: mean F1 {np.mean(found):.3f}, worst {min(found):.3f}")
    print(f"WEIGHTS = {tuple(fit(said))}")


def _same(lesson: str, text: str) -> bool:
    return lesson == text


if __name__ == "__main__":
    main()
