"""Fit the weights of memorability on labelled sessions and write them to `src/recollect/sessions/memorability.toml`.

Each argument is a folder with `events.jsonl`, or `FOLDER:s1,s3` for some of its sessions. A line is an event of a
session in time order: `session`, `seq`, `at`, `event` (`prompt:submit` or `tool:post`; others are skipped), `prompt`
or `tool`, `input` and `output`, and `label` (`keep`, `drop`, or `maybe`, which is left out). The weights in use were
fitted on `tests/sessions` (the page there says on which of them) and on the sessions of an invented project that is no
part of this repository.

The model is a logistic regression with a ridge penalty. A feature that speaks for a memory cannot be given a negative
weight, nor one that speaks against it a positive one; what an occurrence is may have either. The bias is moved so that
the threshold chosen by ten-fold cross-validation, in the middle of those that are as good, becomes the gate.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from recollect.sessions.observations.features import AGAINST, TYPE_FEATURES, Feature
from recollect.sessions.observations.noise import digest
from recollect.sessions.observations.observe import observe
from recollect.sessions.observations.occurrence import Occurrence, Trail, prompted, used

GATE = 0.30
SET = {Feature.ANSWER: -0.5}
"""Weights set by hand, as no labelled session has such events: an answer is kept where it has several signs."""
FEATURES = list(Feature)
TARGET = Path(__file__).parent.parent / "src/recollect/sessions/memorability.toml"
Array = np.ndarray[Any, np.dtype[np.float64]]


def events(source: str) -> Iterator[dict[str, Any]]:
    """Yield the events of the chosen sessions of a folder."""
    folder, _, chosen = source.partition(":")
    with (Path(folder) / "events.jsonl").open(encoding="utf-8") as lines:
        for event in map(json.loads, lines):
            if not chosen or event["session"] in chosen.split(","):
                yield event


def occurrence(event: dict[str, Any]) -> Occurrence | None:
    """Return an event as an occurrence, None for the begin and the end of a session."""
    if event["event"] == "prompt:submit":
        return prompted(event["prompt"])
    if event["event"] == "tool:post":
        return used(event["tool"], event.get("input") or {}, event.get("output") or "")
    return None


def played(source: str) -> Iterator[tuple[dict[str, Any], str, dict[Feature, float]]]:
    """Yield each event with why it is noise (empty for a candidate) and its features."""
    for _, session in groupby(events(source), key=lambda event: event["session"]):
        trail, seen = Trail(), set[str]()
        for event in session:
            if (one := occurrence(event)) is not None:
                found = observe(one, trail, seen)
                trail = found.trail
                seen.add(digest(one.text))
                yield event, found.noise, dict(found.candidate.features) if found.candidate else {}


def fitted(rows: Array, keep: Array, ridge: float) -> Array:
    """Return the weights and, last, the bias, by an accelerated projected gradient."""
    design = np.hstack([rows, np.ones((len(rows), 1))])
    free = [one in TYPE_FEATURES for one in FEATURES]
    low = np.array(
        [-9 if is_free or one in AGAINST else 0 for one, is_free in zip(FEATURES, free, strict=True)] + [-9.0]
    )
    high = np.array([0 if one in AGAINST else 9 for one in FEATURES] + [9.0])
    penalty = np.array([ridge] * len(FEATURES) + [ridge / 10])
    step = 1 / (np.linalg.norm(design, 2) ** 2 / 4 + ridge)
    now, ahead, pace = np.zeros(len(low)), np.zeros(len(low)), 1.0
    for _ in range(5_000):
        slope = design.T @ (1 / (1 + np.exp(-design @ ahead)) - keep) + penalty * ahead
        after = np.clip(ahead - step * slope, low, high)
        next_pace = (1 + (1 + 4 * pace * pace) ** 0.5) / 2
        now, ahead, pace = after, after + (pace - 1) / next_pace * (after - now), next_pace
    return now


def chances(weights: Array, rows: Array) -> Array:
    """Return how likely each row is to be kept, 0–1."""
    return np.asarray(1 / (1 + np.exp(-(rows @ weights[:-1] + weights[-1]))))


def cross_validated(rows: Array, keep: Array, ridge: float, folds: int = 10) -> Array:
    """Return the chance of each row by weights fitted without its fold."""
    fold = np.random.RandomState(7).permutation(len(rows)) % folds
    found = np.zeros(len(rows))
    for one in range(folds):
        found[fold == one] = chances(fitted(rows[fold != one], keep[fold != one], ridge), rows[fold == one])
    return found


def quality(kept: Array, keep: Array, all_keeps: int) -> tuple[float, float]:
    """Return precision and recall."""
    right = float((kept & (keep == 1)).sum())
    return right / max(float(kept.sum()), 1.0), right / all_keeps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="FOLDER or FOLDER:SESSION,SESSION")
    parser.add_argument("--ridge", type=float, default=1.0)
    parser.add_argument("--check", action="store_true", help="print the figures and write nothing")
    given = parser.parse_args()
    everything = [row for folder in given.folders for row in played(folder)]
    rows = [row for row in everything if not row[1] and row[0]["label"] != "maybe"]
    keeps = sum(row[0]["label"] == "keep" for row in everything)
    for event, reason, _ in everything:
        if reason and event["label"] == "keep":
            print(f"taken for noise: {event['session']} {event['seq']} ({reason}): {event['what']}")
    matrix = np.array([[row[2].get(one, 0.0) for one in FEATURES] for row in rows])
    keep = np.array([float(row[0]["label"] == "keep") for row in rows])
    held_out = cross_validated(matrix, keep, given.ridge)
    found = {}
    for each in np.arange(0.3, 0.7, 0.02):
        precision, recall = quality(held_out >= each, keep, keeps)
        print(f"threshold {each:.2f}: precision {precision:.2f}, recall {recall:.2f}")
        found[float(each)] = 1.5 * precision * recall / max(0.5 * precision + recall, 1e-9)  # precision counts for more
    threshold = float(np.median([each for each, both in found.items() if both >= max(found.values()) - 0.02]))
    weights = fitted(matrix, keep, given.ridge)
    bias = weights[-1] - np.log(threshold / (1 - threshold)) + np.log(GATE / (1 - GATE))
    lines = [
        "# Fitted by scripts/fit-capture; log-odds that each feature adds where it is 1.",
        f"bias = {bias:.3f}",
        "",
    ]
    lines += [
        "[weights]",
        *(f'"{one}" = {SET.get(one, weight) + 0.0:.3f}' for one, weight in zip(FEATURES, weights, strict=False)),
    ]
    print(f"chosen threshold {threshold:.2f}, moved to {GATE}; {len(rows)} candidates of {len(everything)} events")
    if not given.check:
        TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
