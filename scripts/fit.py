"""Fit the learned fusion on evaluation sets and write its coefficients, after a cross-validation over conversations.

Everything it learns from comes out of the real store through the same code that recall runs.
"""

from __future__ import annotations

import json
import pickle
import random
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

import recollect
from recollect import App, Query, Settings
from recollect.engines.fusion import Network, features
from recollect.errors import InvalidInput, RecollectError
from recollect.operations.query.features import gather
from recollect.operations.visibility import view_of
from sets import DEPTH, Question, Set, caller_of, err, fill, load, measures
from training import FOLDS, ROUNDS, SEEDS, Example, averaged, calibrated, fit, plain, smaller

TARGET = Path(__file__).resolve().parents[1] / "src" / "recollect" / "engines" / "fusion.json"
WORDS = (
    "bm25 bm25_of_best bm25_near bm25_around bm25_before bm25_after held held_around passage phrase "
    "speaker_named speaker_not_named date_match time_match length in_session questions questions_before number_match "
    "words unknown rarest best_bm25 best_held"
).split()
MEANING = (
    "cosine cosine_outstanding cosine_to_best cosine_near cosine_before cosine_after late late_rare late_near "
    "late_to_best late_rare_to_best late_outstanding usual_cosine best_cosine best_late"
).split()
FOREIGN = 30
ASIDE = "adversarial"  # such questions name the wrong speaker: their answers are not what was asked for
out = Console(width=160)


def examples_of(app: App, one: Set, others: Sequence[Question], folds: dict[str, int]) -> list[Example]:
    """Gather the evidence for every question of a set, and for some whose answer is not in the store."""
    behind = fill(app, one.name, one.folder)
    groups = sorted({question.group for question in one.questions})
    found: list[Example] = []
    for question in track(one.questions, f"{one.name}: asking", console=err):
        found.append(_example(app, one, question, question.group, behind, folds))
    for group in groups:
        strange = [other for other in (*one.questions, *others) if other.group != group or other in others]
        some = random.Random(group).sample(strange, min(FOREIGN, len(strange)))
        found += [
            replace(_example(app, one, replace(other, answers=frozenset()), group, behind, folds), category="foreign")
            for other in some
        ]
    return found


def _example(
    app: App, one: Set, question: Question, group: str, behind: dict[str, list[str]], folds: dict[str, int]
) -> Example:
    query = Query(query=question.text[:20_000], limit=DEPTH, profile="relevance", min_score=0.0)
    candidates = gather(app, query, view_of(app, query, caller_of(one.name, group)))
    relevant = [bool(question.answers & set(behind[str(number)])) for number in candidates.signals]
    return Example(
        set=one.name,
        group=group,
        category=question.category,
        query=candidates.query,
        found=tuple(candidates.signals.values()),
        relevant=tuple(relevant),
        answers=len(question.answers),
        fold=folds.get(group, folds[question.id]),
    )


def folds_of(sets: Sequence[Set]) -> dict[str, int]:
    """Deal conversations to folds, the same one in whatever set it stands; a set of one group is dealt by question."""
    groups = sorted({q.group for one in sets for q in one.questions if len({r.group for r in one.questions}) > 1})
    dealt = {group: number % FOLDS for number, group in enumerate(groups)}
    for one in sets:
        dealt |= {question.id: number % FOLDS for number, question in enumerate(one.questions)}
    return dealt


def weighted(examples: Sequence[Example]) -> list[Example]:
    """Let small sets count for more than their number of questions, and questions put aside for less."""
    count: dict[str, int] = defaultdict(int)
    for one in examples:
        count[one.set] += 1
    aside = {ASIDE: 0.1, "foreign": 0.5}
    return [replace(one, weight=count[one.set] ** -0.5 * aside.get(one.category, 1.0)) for one in examples if one.found]


def trained(examples: Sequence[Example], names: Sequence[str], rounds: int) -> Network:
    """Fit several networks on the examples and on smaller versions of them, and return their mean."""
    dice = random.Random(5)
    more = [*examples, *(less for one in examples if (less := smaller(one, dice)).found)]
    return averaged([fit(more, names, seed, rounds) for seed in range(SEEDS)])


def validated(examples: Sequence[Example], names: Sequence[str], title: str, rounds: int) -> list[np.ndarray]:
    """Return for each example the scores of a network that was fitted without its conversation."""
    scores: list[np.ndarray] = [np.zeros(0)] * len(examples)
    for fold in track(sorted({one.fold for one in examples}), f"{title}: cross-validation", console=err):
        network = trained([one for one in examples if one.fold != fold], names, rounds)
        for number, one in enumerate(examples):
            if one.fold == fold:
                scores[number] = network.scores(features(one.found, one.query, names))
    return scores


def show(examples: Sequence[Example], scores: Sequence[np.ndarray], title: str) -> None:
    """Print what the cross-validated scores bring back, set by set."""
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for one, given in zip(examples, scores, strict=True):
        if one.category in (ASIDE, "foreign"):
            continue
        order = np.argsort(-given, kind="stable")[:DEPTH]
        names = [f"{number}" for number in range(one.answers)]
        ranking = [names[sum(one.relevant[:place])] if one.relevant[place] else "-" for place in order]
        found[one.set].append(measures(ranking, frozenset(names)))
    shown = ("recall@1", "recall@5", "recall@10", "any@5", "any@10", "ndcg@10", "mrr")
    table = Table("set", "n", *shown, title=f"{title}, cross-validated over conversations, without {ASIDE} ones")
    for name, some in found.items():
        table.add_row(
            name, str(len(some)), *(f"{100 * np.mean([one[metric] for one in some]):.1f}" for metric in shown)
        )
    out.print(table)


def finished(examples: Sequence[Example], names: Sequence[str], title: str, rounds: int) -> Network:
    """Return the network fitted on everything, calibrated on what the cross-validation gave."""
    scores = validated(examples, names, title, rounds)
    show(examples, scores, title)
    honest = [(one, given) for one, given in zip(examples, scores, strict=True) if one.category != ASIDE]
    weights = [one.weight for one, given in honest for _ in given]
    answers = [answer for one, _ in honest for answer in one.relevant]
    return calibrated(
        trained(examples, names, rounds), np.concatenate([given for _, given in honest]), answers, weights
    )


def run(folders: list[Path], evidence: Path | None, target: Path, rounds: int) -> None:
    for path in filter(None, (evidence, target)):
        if not path.resolve().parent.is_dir():
            raise InvalidInput("file", f"{path} cannot be written: its folder does not exist.")
    if evidence is not None and evidence.is_file():
        examples = pickle.loads(evidence.read_bytes())
    else:
        examples = collected(load(folders))
        if evidence is not None:
            evidence.write_bytes(pickle.dumps(examples))
    ready = weighted(examples)
    fused = finished(ready, WORDS + MEANING, "words and meaning", rounds)
    words = finished(ready, WORDS, "words alone", rounds)
    target.write_text(json.dumps({"fused": plain(fused), "words": plain(words)}) + "\n", encoding="utf-8")
    out.print(f"{target.name} written: {len(ready)} questions, {sum(len(one.found) for one in ready)} candidates.")


def collected(sets: Sequence[Set]) -> list[Example]:
    """Store each set in a store of its own and gather what recall would know."""
    folds, examples = folds_of(sets), []
    for one in sets:
        alone = len({question.group for question in one.questions}) == 1
        others = [question for other in sets if alone and other is not one for question in other.questions]
        with tempfile.TemporaryDirectory(prefix="recollect-fit-") as home:
            settings = Settings(home=Path(home), user="eval", team="eval", project="eval", on_secret="redact")
            with recollect.open_app(settings) as app:
                examples += examples_of(app, one, others, folds)
    return examples


def main(
    folders: Annotated[list[Path], typer.Argument(help="Evaluation sets: folders with corpus, queries and qrels.")],
    evidence: Annotated[
        Path | None,
        typer.Option(help="Keep the evidence here, and use it when it is there: a pickle, so only one of your own."),
    ] = None,
    target: Annotated[Path, typer.Option(help="Where the coefficients go.")] = TARGET,
    rounds: Annotated[int, typer.Option(min=10, help="How many steps each network is trained.")] = ROUNDS,
) -> None:
    """Gather evidence on every set, cross-validate, fit on everything and write the coefficients."""
    try:
        run(folders, evidence, target, rounds)
    except RecollectError as error:
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(error.exit_code) from error


if __name__ == "__main__":
    typer.run(main)
