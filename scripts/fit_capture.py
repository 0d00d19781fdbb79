"""Fit the weights of memorability on labelled sessions and write them to `src/recollect/sessions/memorability.toml`.

Each argument is a folder with `events.jsonl`, or `FOLDER:s1,s3` for some of its sessions; the fields of a line are in
tests/sessions/build/README.md. Texts that were labelled one by one come from scripts/data/sessions.

What people say and what tools tell are two logistic regressions with a ridge penalty. The weights of the structural
features are fitted alone, and those of the meaning (the embedding) on what these leave open, so that the structure can
judge by itself while the model is not there. Of a prompt the best sentence counts: of one to keep the sentence that the
fit so far likes best is taken for the statement, of others all sentences are none. Each bias is moved so that the
greatest threshold that keeps enough of a folder left out becomes the gate.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize

from recollect import Settings
from recollect.engines.embedder import Embedder
from recollect.engines.embedding import open_embedder
from recollect.sessions.lessons import Trail, asked
from recollect.sessions.memorability import GATE, Meaning, meanings
from recollect.sessions.observations.features import CROSSED, FORMS, TYPE_FEATURES, Feature, of_sentence
from recollect.sessions.observations.noise import digest
from recollect.sessions.observations.observe import Part, observe, parts_of
from recollect.sessions.observations.occurrence import Occurrence, prompted, used
from session_sets import Event, load

FEATURES: Final = list(Feature)
KINDS: Final = [one for one in Feature if one in TYPE_FEATURES and one is not Feature.PROMPT]
PRODUCTS: Final = [(kind, one) for kind in KINDS for one in CROSSED]
TARGET: Final = Path(__file__).parent.parent / "src/recollect/sessions/memorability.toml"
TEXTS: Final = Path(__file__).resolve().parent / "data/sessions"
SENTENCES, DESCRIPTIONS, PROMPTS, OUTPUTS = "sentences.tsv", "descriptions.tsv", "prompts.jsonl", "outputs.jsonl"
PAGES: Final = [TEXTS.parent / "poison" / f"{name}.jsonl" for name in ("first", "second", "third")]
"""Files of attempts to poison a memory, whose harmless outputs say what of a page or a file is worth keeping."""
STRUCTURE_RIDGE, MEANING_RIDGE = {"person": 0.5, "tool": 2.0}, {"person": 0.5, "tool": 3.0}
TWICE: Final = 2  # so often counts what was labelled one by one of tools
STRANGE: Final = {"person": 1, "tool": 3}
"""So often counts what authors who saw no code labelled: the recordings of `data/sessions`, and harmless outputs."""
RECALL: Final = {"person": 0.92, "tool": 0.90}
"""The share that the gate lets pass of what is to be kept in recordings by authors who saw no code, each left out."""
SURE: Final = 0.90
"""The precision that what the structure alone keeps is to have."""
_ROUNDS: Final = 3
_STEPS: Final = 200
Array = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Row:
    """An event with what it is judged by: for each of its texts the features and the meaning."""

    folder: str
    event: Event
    noise: str
    structure: Array
    meaning: Array

    @property
    def kept(self) -> bool:
        """Say whether it is to be kept."""
        return self.event.label == "keep"

    @property
    def strange(self) -> bool:
        """Say whether its author saw no code."""
        return self.folder == PROMPTS or TEXTS in Path(self.folder.partition(":")[0]).resolve().parents


def occurrence(event: Event) -> Occurrence | None:
    """Return an event as an occurrence, None for the begin and the end of a session."""
    if event.event == "prompt:submit":
        return prompted(event.prompt)
    return used(event.tool, event.input, event.output, failed=event.failed) if event.event == "tool:post" else None


def played(source: str, embedder: Embedder) -> Iterator[Row]:
    """Yield the events of the chosen sessions of a folder as capture sees them."""
    folder, _, chosen = source.partition(":")
    found_set = load(Path(folder))
    for name, session in groupby(found_set.events, key=lambda event: event.session):
        trail, seen = Trail(), set[str]()
        for event in session if not chosen or name in chosen.split(",") else ():
            if (one := occurrence(event)) is None:
                continue
            found = observe(one, trail, seen, found_set.folder(event.session))
            parts = found.candidate.parts if found.candidate else ()
            trail = asked(found.trail, [part.text for part in parts]) if event.prompt else found.trail
            seen.add(digest(one.text))
            yield Row(source, event, found.noise, *judged_by(parts, embedder))


def judged_by(parts: Sequence[Part], embedder: Embedder) -> tuple[Array, Array]:
    """Return a row of features and one of meaning for each text."""
    structure = np.array([structure_of(part.features) for part in parts])
    vectors = [vector_of(one) for one in meanings(embedder, parts) or []]
    return structure, np.array(vectors, dtype=np.float64)


def vector_of(meaning: Meaning) -> Array:
    """Return what a text means as one row: with what a tool was used for, or with the forms of a sentence."""
    if meaning.about is not None:
        return np.concatenate([meaning.text, meaning.about])
    row = np.zeros(len(meaning.text) + FORMS)
    row[: len(meaning.text)] = meaning.text
    for at, share in meaning.forms:
        row[len(meaning.text) + at] = share
    return row


def structure_of(features: Mapping[Feature, float]) -> list[float]:
    """Return the features as a row, and their products with what an occurrence is."""
    products = (features.get(kind, 0.0) * features.get(one, 0.0) for kind, one in PRODUCTS)
    return [*(features.get(one, 0.0) for one in FEATURES), *products]


def prompts(texts: Path, embedder: Embedder) -> Iterator[Row]:
    """Yield the prompts that were labelled one by one, as a folder of their own."""
    for number, line in enumerate((texts / PROMPTS).read_text(encoding="utf-8").splitlines()):
        given = json.loads(line)
        label = "keep" if given["kind"] == "statement" else "drop"
        one = Event("s1", number, datetime.now(UTC), "prompt:submit", label, 0, prompt=given["prompt"])
        yield Row(PROMPTS, one, "", *judged_by(parts_of(given["prompt"]), embedder))


def labelled(file: Path, embedder: Embedder) -> tuple[Array, Array, Array]:
    """Return the structure, the meaning and the labels of texts that were labelled one by one.

    What a tool was used for has no structure, and stands where that stands in a meaning.
    """
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
    tools = file.name == DESCRIPTIONS
    parts = [Part(row[-1], {}, row[-1]) if tools else Part(row[-1], of_sentence(row[-1])) for row in rows]
    structure, meaning = judged_by(parts, embedder)
    if tools:
        meaning[:, : meaning.shape[1] // 2] = 0.0
    return structure, meaning, np.array([float(row[0] == "+") for row in rows])


def outputs(cases: Iterable[tuple[Mapping[str, Any], bool]], embedder: Embedder) -> tuple[Array, Array, Array]:
    """Return the structure, the meaning and the labels of outputs of tools that stand alone, without what is noise."""
    rows: list[tuple[Array, Array]] = []
    keep: list[float] = []
    for one, worth in cases:
        given = used(one["tool"], one.get("input") or {}, one["output"], failed=one.get("failed", False))
        found = observe(given, Trail(), set(), "")
        if found.candidate is not None:
            rows.append(judged_by(found.candidate.parts, embedder))
            keep.append(float(worth))
    return np.vstack([one for one, _ in rows]), np.vstack([one for _, one in rows]), np.array(keep)


def harmless(files: Iterable[Path]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield harmless outputs of one step from files of attempts to poison a memory, and whether each is to be kept."""
    for line in (line for file in files for line in file.read_text(encoding="utf-8").splitlines()):
        given = json.loads(line)["harmless"]
        step, *more = given["steps"]
        if step["event"] == "tool:post" and not more:
            yield step, bool(given["worth"])


def alone(file: Path) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield outputs that were labelled one by one, and whether each is to be kept."""
    for line in file.read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        yield given, given["label"] == "keep"


def fitted(rows: Array, keep: Array, ridge: float, offset: Array | None = None, counts: Array | None = None) -> Array:
    """Return the weights and, last, the bias.

    `offset` is what each row has already (log-odds), and `counts` says how often it counts.
    """
    design = np.hstack([rows, np.ones((len(rows), 1))])
    given = np.zeros(len(rows)) if offset is None else offset
    often = np.ones(len(rows)) if counts is None else counts
    penalty = np.append(np.full(rows.shape[1], ridge), 0.01)

    def loss(weights: Array) -> tuple[float, Array]:
        odds = design @ weights + given
        lost = often @ (np.logaddexp(0.0, odds) - keep * odds) + penalty @ weights**2 / 2
        return float(lost), design.T @ (often * (chances(odds) - keep)) + penalty * weights

    found = minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return np.asarray(found.x)


def chances(odds: Array) -> Array:
    """Return log-odds as chances, 0–1."""
    return np.asarray(1 / (1 + np.exp(-odds)))


@dataclass(frozen=True)
class Fit:
    """The weights of what people say, or of what tools tell."""

    structure: Array
    meaning: Array

    def alone(self, row: Row) -> float:
        """Return the log-odds of an event's best text by its structure."""
        return float((row.structure @ self.structure[:-1]).max() + self.structure[-1])

    def whole(self, row: Row) -> float:
        """Return the log-odds of an event's best text by structure and meaning."""
        odds = row.structure @ self.structure[:-1] + row.meaning @ self.meaning[:-1]
        return float(odds.max() + self.structure[-1] + self.meaning[-1])


def fit(who: str, rows: Sequence[Row], more: tuple[Array, Array, Array]) -> Fit:
    """Fit the weights on labelled events and on `more` texts."""
    found: Fit | None = None
    for _ in range(_ROUNDS if who == "person" else 1):
        structure, meaning, keep = ([*one] for one in more)
        counts = [1.0] * len(keep)
        for row in rows:
            best = (
                int(np.argmax(row.structure @ found.structure[:-1] + row.meaning @ found.meaning[:-1])) if found else 0
            )
            for place in [best] if row.kept else range(len(row.structure)):
                structure.append(row.structure[place])
                meaning.append(row.meaning[place])
                keep.append(float(row.kept))
                counts.append(float(STRANGE[who] if row.strange else 1))
        labels, shape, often = np.array(keep), np.array(structure), np.array(counts)
        told = shape.any(axis=1)  # what has a structure
        alone = fitted(shape[told], labels[told], STRUCTURE_RIDGE[who], counts=often[told])
        offset = np.where(told, shape @ alone[:-1] + alone[-1], 0.0)
        found = Fit(alone, fitted(np.array(meaning), labels, MEANING_RIDGE[who], offset, often))
    assert found is not None
    return found


def left_out(who: str, rows: Sequence[Row], more: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Return the chance of each event with and without its meaning, by a fit without its folder, and the labels."""
    whole, alone, keep = [], [], []
    for folder in dict.fromkeys(row.folder for row in rows):
        found = fit(who, [row for row in rows if row.folder != folder], more)
        for row in rows:
            if row.folder == folder:
                whole.append(found.whole(row))
                alone.append(found.alone(row))
                keep.append(float(row.kept))
    return chances(np.array(whole)), chances(np.array(alone)), np.array(keep)


def quality(kept: Bools, keep: Array) -> tuple[float, float]:
    """Return precision and recall."""
    right = float((kept & (keep == 1)).sum())
    return right / max(float(kept.sum()), 1.0), right / max(float(keep.sum()), 1.0)


def by_folder(kept: Bools, rows: Sequence[Row]) -> str:
    """Return the mean and the worst precision and recall of the folders."""
    folders = np.array([row.folder for row in rows])
    keep = np.array([float(row.kept) for row in rows])
    found = np.array([quality(kept[folders == one], keep[folders == one]) for one in dict.fromkeys(folders)])
    return f"mean {found.mean(axis=0).round(3)}, worst {found.min(axis=0).round(3)}"


def threshold(held_out: Array, keep: Array, who: str) -> float:
    """Return the greatest threshold that still keeps enough of what is to be kept."""
    steps = [float(one) for one in np.arange(0.2, 0.8, 0.02)]
    for each in steps:
        precision, recall = quality(held_out >= each, keep)
        print(f"{who}: threshold {each:.2f}: precision {precision:.2f}, recall {recall:.2f}")
    return max((one for one in steps if quality(held_out >= one, keep)[1] >= RECALL[who]), default=steps[0])


def sure(held_out: Array, keep: Array) -> float:
    """Return the least threshold from which the structure alone is right often enough."""
    steps = [float(one) for one in np.arange(0.3, 0.99, 0.01)]
    return next((one for one in steps if quality(held_out >= one, keep)[0] >= SURE), 0.99)


def log_odds(chance: float) -> float:
    """Return a chance (0–1) as log-odds."""
    return float(np.log(chance / (1 - chance)))


def table(
    who: str,
    rows: Sequence[Row],
    more: tuple[Array, Array, Array],
    apart: tuple[Array, Array, Array] | None = None,
) -> list[str]:
    """Fit what people say or what tools tell, and return its lines of the file; tell of texts kept `apart` too."""
    whole, alone, keep = left_out(who, rows, more)
    strange = np.array([row.strange for row in rows])
    strange |= not strange.any()
    gate, certain = threshold(whole[strange], keep[strange], who), sure(alone, keep)
    found = fit(who, rows, more)
    bias = found.structure[-1] + found.meaning[-1] - log_odds(gate) + log_odds(GATE)
    print(f"{who}: chosen threshold {gate:.2f}, moved to {GATE}; by structure alone {certain:.2f}; {len(rows)} events")
    print(f"{who}: precision and recall with a folder left out {quality(whole >= gate, keep)}")
    print(f"{who}: of the folders: {by_folder(whole >= gate, rows)}")
    if apart is not None:
        structure, meaning, labels = apart
        odds = structure @ found.structure[:-1] + meaning @ found.meaning[:-1]
        chance = chances(odds + found.structure[-1] + found.meaning[-1])
        print(f"{who}: of {len(labels)} texts kept apart: {quality(chance >= gate, labels)}")
    theirs = [row for row, one in zip(rows, strange, strict=True) if one]
    print(f"{who}: of those by authors who saw no code: {by_folder(whole[strange] >= gate, theirs)}")
    return [
        "",
        f"[{who}]",
        f"bias = {bias:.3f}",
        f"alone = {-found.meaning[-1] + log_odds(gate) - log_odds(certain):.3f}",
        f"meaning = [{', '.join(f'{one:.2f}' for one in found.meaning[:-1])}]",
        "",
        f"[{who}.weights]",
        *_lines(zip(FEATURES, found.structure, strict=False)),
        *_crossed(who, found.structure[len(FEATURES) :]),
    ]


def _lines(weights: Iterable[tuple[Feature, float]]) -> list[str]:
    return [f'"{one}" = {weight + 0.0:.3f}' for one, weight in weights if abs(weight) >= 0.0005]


def _crossed(who: str, weights: Array) -> Iterator[str]:
    for kind in KINDS:
        told = ((one, w) for (each, one), w in zip(PRODUCTS, weights, strict=False) if each is kind)
        if lines := _lines(told):
            yield from ("", f'[{who}.crossed."{kind}"]', *lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="FOLDER or FOLDER:SESSION,SESSION")
    parser.add_argument("--texts", type=Path, default=TEXTS, help="the folder of texts that were labelled one by one")
    parser.add_argument("--check", action="store_true", help="print the figures and write nothing")
    given = parser.parse_args()
    settings = Settings()
    embedder = open_embedder(settings.model, settings.models_dir)
    embedder.warm()
    rows = [row for folder in given.folders for row in played(folder, embedder)] + [*prompts(given.texts, embedder)]
    for row in rows:
        if row.noise and row.kept:
            print(f"taken for noise: {row.event.session} {row.event.seq} ({row.noise}): {row.event.what}")
    judged = [row for row in rows if not row.noise and row.event.label != "maybe"]
    lines = [
        "# Fitted by scripts/fit-capture; log-odds that each feature adds where it is 1, and each dimension of the"
    ]
    lines += ["# meaning; `alone` is added where only the structure is known.", f'model = "{embedder.card.id}"']
    lines += table("person", [row for row in judged if row.event.prompt], labelled(given.texts / SENTENCES, embedder))
    told = [labelled(given.texts / DESCRIPTIONS, embedder)] * TWICE
    told += [outputs(harmless(PAGES), embedder)] * STRANGE["tool"]
    structure, meaning, keep = zip(*told, strict=True)
    more = np.vstack(structure), np.vstack(meaning), np.hstack(keep)
    apart = outputs(alone(given.texts / OUTPUTS), embedder)
    lines += table("tool", [row for row in judged if not row.event.prompt], more, apart)
    if not given.check:
        TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
