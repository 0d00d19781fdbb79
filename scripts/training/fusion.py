"""Fit the fusion on evaluation sets, each left out once to judge by, and write its coefficients.

Everything it learns from comes out of the real store through the same code that recall runs.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias, TypeVar

import numpy as np
import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from evaluation import plot
from evaluation.sets import DEPTH, err, load, measures
from recollect import Settings
from recollect.engines.embedding import find_model, open_embedder
from recollect.engines.fusion import FUSION, Network, Part
from recollect.errors import InvalidInput
from training import asking, network, reliability, silence
from training.evidence import FOREIGN, Example, Limits, examples_of, recalls
from training.network import FUSED, LEXICAL, ROUNDS, SEEDS, Inputs, Question, averaged, compiled, plain

ROOT: Final = Path(__file__).resolve().parents[2]
DEFAULT: Final = ROOT / "src" / "recollect" / "engines" / FUSION
ASIDE: Final = ("adversarial", FOREIGN)  # adversarial ones name the wrong speaker: their answers are not what was asked
PARENTS: Final = ("words", "vectors", "rrf")
KEPT: Final = 0.975  # of the questions that have an answer, by the floor, on the mean over the sets
FLOORS: Final = (0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15)
Orders: TypeAlias = list[np.ndarray]
Order: TypeAlias = tuple[Part, Part]
Matches: TypeAlias = dict[str, list[tuple[np.ndarray, np.ndarray]]]  # by set and question: the best ones, and whether
T = TypeVar("T")
out = Console(width=200)


@dataclass(frozen=True)
class Compiled:
    """A set as a network sees it: its questions, and these with their copies in other words and in small stores."""

    asked: list[Question]
    copies: list[Question]


@dataclass(frozen=True)
class LeftOut:
    """What networks that were fitted without a set give its questions and their copies, in the mean and by seed."""

    asked: Orders
    copies: Orders
    seeds: list[Orders]


def ordered(one: Order, questions: Sequence[Question]) -> Orders:
    """Return the scores of each question's candidates."""
    both = Network(*one, network.nothing(), 1.0)
    return [both.order(question.known) for question in questions]


def fitted(sets: Mapping[str, Compiled], inputs: Inputs, seeds: int, rounds: int) -> list[Order]:
    """Fit a network for each seed on the sets, each counting alike."""
    return [network.fit([one.copies for one in sets.values()], inputs, seed, rounds) for seed in range(seeds)]


def mean(orders: Sequence[Order]) -> Order:
    """Return the mean of several networks."""
    return averaged([own for own, _ in orders]), averaged([talk for _, talk in orders])


def leave_out(sets: Mapping[str, Compiled], inputs: Inputs, given: Given, title: str) -> dict[str, LeftOut]:
    """Return for each set what networks give it that were fitted without it, and without the others of its fold."""
    found: dict[str, LeftOut] = {}
    for fold in track(folds_of(sets, given.folds), f"{title}: sets left out", console=err):
        networks = fitted(without(sets, fold), inputs, given.seeds, given.rounds)
        together = mean(networks)
        for name in fold:
            asked = sets[name].asked
            by_seed = [ordered(one, asked) for one in networks]
            found[name] = LeftOut(ordered(together, asked), ordered(together, sets[name].copies), by_seed)
    return {name: found[name] for name in sets}


def folds_of(names: Iterable[str], folds: int) -> list[list[str]]:
    """Return the names in so many parts, each by itself where `folds` is 0 or there are no more."""
    every = list(names)
    count = min(folds or len(every), len(every))
    return [every[start::count] for start in range(count)]


def without(sets: Mapping[str, T], names: Collection[str]) -> dict[str, T]:
    """Return the sets but some."""
    return {name: one for name, one in sets.items() if name not in names}


def reached(questions: Sequence[Question], rankings: Sequence[Sequence[bool]], apart: bool) -> np.ndarray:
    """Return the means of nDCG@10, recall@10 and any@5 in points; `apart` asks for questions of no shared word only."""
    found = []
    for one, hits in zip(questions, rankings, strict=True):
        if not ordinary(one.example) or (apart and not shares_nothing(one)):
            continue
        names = [str(number) for number in range(one.example.answers)]
        ranking = [names[sum(hits[:place])] if hit else "-" for place, hit in enumerate(hits[:DEPTH])]
        given = measures(ranking, frozenset(names))
        found.append([given[metric] for metric in ("ndcg@10", "recall@10", "any@5")])
    return 100 * np.mean(found, axis=0) if found else np.full(3, np.nan)


def ordinary(one: Example) -> bool:
    """Say whether a question has an answer, and is not put aside."""
    return one.answers > 0 and one.category not in ASIDE


def shares_nothing(one: Question) -> bool:
    """Say whether no answer that was found holds any word of the question, in whatever form or spelling."""
    return bool(one.relevant.any()) and float(one.known["held"][one.relevant].max()) == 0.0


def ranked(questions: Sequence[Question], orders: Orders) -> list[list[bool]]:
    """Return of each question's candidates, best first, whether they answer it."""
    return [
        one.relevant[np.argsort(-order, kind="stable")].tolist() for one, order in zip(questions, orders, strict=True)
    ]


def convex(questions: Sequence[Question], share: float) -> Orders:
    """Return the scores of a plain mix: so much (0–1) of the cosine, where there is one, and bm25 for the rest."""
    return [share * one.known.get("cosine", np.float32(0)) + (1 - share) * one.known["bm25"] for one in questions]


def best_mix(sets: Mapping[str, Compiled]) -> float:
    """Return the share of the cosine that is best on the mean over the sets."""
    shares = [step / 20 for step in range(21)]
    means = [
        np.mean([reached(one.asked, ranked(one.asked, convex(one.asked, share)), False)[0] for one in sets.values()])
        for share in shares
    ]
    return shares[int(np.argmax(means))]


def show(sets: Mapping[str, Compiled], found: Mapping[str, LeftOut], title: str, mixes: Mapping[str, float]) -> None:
    """Print what each set's questions bring back beside the parents, and those alone that share no word."""
    columns = ("set", "n", *PARENTS, "mix", "network", "± seeds", "any@5", "no word shared", "vectors", "network")
    table = Table(*columns, title=f"{title}: nDCG@10 / recall@10")
    for name, one in sets.items():
        rows = [reached(one.asked, [q.example.parents[place] for q in one.asked], False) for place in range(3)]
        rows.append(reached(one.asked, ranked(one.asked, convex(one.asked, mixes[name])), False))
        whole = reached(one.asked, ranked(one.asked, found[name].asked), False)
        seeds = np.array([reached(one.asked, ranked(one.asked, some), False) for some in found[name].seeds])
        spread = (seeds.max(0) - seeds.min(0)) / 2
        apart = [question for question in one.asked if ordinary(question.example) and shares_nothing(question)]
        near = reached(one.asked, [q.example.parents[1] for q in one.asked], True)
        own = reached(one.asked, ranked(one.asked, found[name].asked), True)
        figures = [*map(pair, rows), f"[bold]{pair(whole)}[/bold]", pair(spread), f"{whole[2]:.1f}"]
        count = str(sum(ordinary(question.example) for question in one.asked))
        table.add_row(name, count, *figures, str(len(apart)), pair(near), pair(own))
    out.print(table)


def pair(figures: np.ndarray) -> str:
    """Return nDCG@10 and recall@10 as they are printed."""
    return "–" if np.isnan(figures[0]) else f"{figures[0]:.1f} / {figures[1]:.1f}"


def refusing(
    sets: Mapping[str, Compiled], found: Mapping[str, LeftOut], inputs: Inputs, seeds: int, folds: int
) -> tuple[Part, float, Matches]:
    """Return the part for the query, its stretch, and each question's best matches by parts fitted without its set."""
    copies = {
        name: [silence.judged(q, order) for q, order in zip(one.copies, found[name].copies, strict=True)]
        for name, one in sets.items()
    }
    best: Matches = {}
    for fold in folds_of(sets, folds):
        part, stretch = silence.fit(list(without(copies, fold).values()), inputs, 1)
        for name in fold:
            asked = [silence.judged(q, order) for q, order in zip(sets[name].asked, found[name].asked, strict=True)]
            best[name] = [(sigmoid(stretch * two.orders + part(two.known)[0]), two.relevant) for two in asked]
    part, stretch = silence.fit(list(copies.values()), inputs, seeds)
    return part, stretch, best


def sigmoid(odds: np.ndarray) -> np.ndarray:
    """Return the probability of each log-odds."""
    return 1 / (1 + np.exp(-odds.astype(float)))


def show_silence(sets: Mapping[str, Compiled], best: Matches, title: str) -> None:
    """Print how often each floor is silent, by set and category, and which floor keeps enough on the mean."""
    odds = {name: np.array([matches[0] for matches, _ in found]) for name, found in best.items()}
    kept = {
        name: np.sort([odd for odd, q in zip(odds[name], one.asked, strict=True) if ordinary(q.example)])
        for name, one in sets.items()
    }
    steps = [step / 1000 for step in range(1, 500)]
    shown = [np.mean([(found >= step).mean() for found in kept.values() if len(found)]) for step in steps]
    floor = max((step for step, share in zip(steps, shown, strict=True) if share >= KEPT), default=steps[0])
    floors = sorted({*FLOORS, floor})
    table = Table("set", "questions", "n", *(f"{one:g}" for one in floors), title=f"{title}: silent, in percent")
    for name, one in sets.items():
        kinds: dict[str, list[float]] = {}
        for odd, question in zip(odds[name], one.asked, strict=True):
            kind = "answered" if ordinary(question.example) else question.example.category
            kinds.setdefault(kind, []).append(odd)
        for kind, some in sorted(kinds.items()):
            shares = [f"{100 * np.mean(np.array(some) < step):.0f}" for step in floors]
            table.add_row(name, kind, str(len(some)), *shares, end_section=kind == max(kinds))
    out.print(table, f"Highest floor that shows {100 * KEPT:.1f} % of the answered, on the mean: {floor:.3f}")


def show_reliability(sets: Mapping[str, Compiled], best: Matches, title: str) -> None:
    """Print of each tenth of `match` which share of the hits is relevant, and how far that is from `match`."""
    table = Table("set", *(f"{step / 10:.1f}" for step in range(10)), "error", title=f"{title}: relevant, in percent")
    for name in [*sets, reliability.EVERY]:
        some = [name] if name in sets else list(sets)
        rows = reliability.tenths([(sets[one].asked, best[one]) for one in some])
        shares = [f"{100 * row.relevant:.0f}" if row.weight else "" for row in rows]
        table.add_row(name, *shares, f"{100 * reliability.error(rows):.1f}")
    out.print(table)


def finished(sets: Mapping[str, Compiled], inputs: Inputs, given: Given, title: str) -> Network | None:
    """Judge each set left out, and return the network that is fitted on all; None where only the judging is wanted."""
    found = leave_out(sets, inputs, given, title)
    mixes = {name: best_mix({other: sets[other] for other in sets if other != name}) for name in sets}
    show(sets, found, f"{title}, each set left out", mixes)
    whole = {name: one for name, one in sets.items() if name not in given.ordering}
    part, stretch, best = refusing(whole, found, inputs, given.seeds, given.folds)
    show_silence(whole, best, f"{title}, each set left out")
    show_reliability(whole, best, f"{title}, each set left out")
    if given.plots is not None and inputs is FUSED:
        reliability.draw({name: (one.asked, best[name]) for name, one in whole.items()}, given.plots)
    if given.leave_out:
        return None
    return Network(*mean(fitted(sets, inputs, given.seeds, given.rounds)), part, stretch)


def judge(fused: Network, sets: Mapping[str, Compiled], mix: float) -> None:
    """Print what the finished network brings back of sets that it was not fitted on."""
    if not sets:
        return
    orders = {name: ordered((fused.own, fused.talk), one.asked) for name, one in sets.items()}
    found = {name: LeftOut(some, [], [some]) for name, some in orders.items()}
    show(sets, found, "only for judging", dict.fromkeys(sets, mix))
    best = {name: [top(fused, question) for question in one.asked] for name, one in sets.items()}
    show_silence(sets, best, "only for judging")
    show_reliability(sets, best, "only for judging")


def top(fused: Network, question: Question) -> tuple[np.ndarray, np.ndarray]:
    """Return the best matches of a question, and whether they answer it."""
    scores = fused.scores_of(question.known, question.example.query)
    best = np.argsort(-scores, kind="stable")[:DEPTH]
    return sigmoid(scores[best]), question.relevant[best]


@dataclass(frozen=True)
class Given:
    """What was asked for: how many networks are averaged, how long each is trained, and whether only to judge.

    `ordering` names sets that say how to order, but not when to be silent. Sets are left out in so many `folds`, each
    by itself where that is 0. The part for words alone may be kept as it is.
    """

    seeds: int
    rounds: int
    leave_out: bool
    limits: Limits
    plots: Path | None = None
    ordering: frozenset[str] = frozenset()
    folds: int = 0
    keep_words: bool = False


def target_of(model: str) -> Path:
    """Return where the coefficients of a model lie: those of the default model are everybody's who has none."""
    return DEFAULT if model == Settings.model_fields["model"].default else ROOT / "models" / model / FUSION


def run(folders: list[Path], judging: list[Path], evidence: Path | None, target: Path, given: Given) -> None:
    for path in filter(None, (evidence, target)):
        if not path.resolve().parent.is_dir():
            raise InvalidInput("file", f"{path} cannot be written: its folder does not exist.")
    if given.plots is not None:
        plot.check()
    if evidence is not None:
        evidence.mkdir(exist_ok=True)
    torch.set_num_threads(1)  # more of them wait for one another
    sets, others = load(folders), load(judging) if judging else []
    if unknown := given.ordering - {one.name for one in sets}:
        raise InvalidInput("order-only", f"No set is named {min(unknown)}; name one of the folders.")
    every = {one.name: examples_of(one, sets, given.limits, evidence) for one in [*sets, *others]}
    settings = Settings()
    model = find_model(settings.model, settings.models_dir)
    if model is None:
        raise InvalidInput("model", f"{settings.model} has no card.")
    embedder = open_embedder(settings.model, settings.models_dir)
    every = asking.read(every, embedder)
    recalled = [one.vector for one in embedder.read(recalls(), "query")]
    own = {one.name: every[one.name] for one in sets}
    asking_by = asking.fit([one for some in own.values() for one in some], model.card.id, recalled)
    examples = asking.known_apart(own, model.card.id, recalled)
    examples |= {one.name: [asking.asking(two, asking_by) for two in every[one.name]] for one in others}
    words = {} if given.keep_words else {one.name: compiled_set(examples[one.name], False, copies=True) for one in sets}
    both = {one.name: compiled_set(examples[one.name], True, copies=True) for one in sets if read(examples[one.name])}
    fused = finished(both, FUSED, given, "words and meaning")
    written = {} if fused is None else {"fused": plain(fused), "asking": asking.plain(asking_by)}
    if given.keep_words and target_of(settings.model) == DEFAULT:
        written["words"] = json.loads(DEFAULT.read_text(encoding="utf-8"))["words"]
    elif target_of(settings.model) == DEFAULT:  # words are the same for every model
        lexical = finished(words, LEXICAL, replace(given, seeds=(given.seeds + 1) // 2), "words alone")
        written |= {} if lexical is None else {"words": plain(lexical)}
    if fused is None:
        return
    target.write_text(json.dumps(written) + "\n", encoding="utf-8")
    judge(fused, {one.name: compiled_set(examples[one.name], True, copies=False) for one in others}, best_mix(both))
    out.print(f"{target.name} written: {sum(len(one.asked) for one in both.values())} questions.")


def read(examples: Sequence[Example]) -> bool:
    """Say whether the model reads the language of most of a set's questions."""
    return sum(one.query.semantic for one in examples) > len(examples) / 2


def compiled_set(examples: Sequence[Example], semantic: bool, *, copies: bool) -> Compiled:
    """Return a set as a network sees it."""
    return Compiled(compiled(examples, semantic, False), compiled(examples, semantic, True) if copies else [])


def main(
    folders: Annotated[list[Path], typer.Argument(help="Evaluation sets: folders with corpus, queries and qrels.")],
    judging: Annotated[list[Path] | None, typer.Option("--judge", help="A set to judge by, never to fit on.")] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            help="A folder with the evidence of sets, as `evidence` writes it; that of others is added. Pickles: only "
            "your own."
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(help="Where the coefficients go. Default: the package; beside its card for another model."),
    ] = None,
    rounds: Annotated[int, typer.Option(min=10, help="How many steps each network is trained.")] = ROUNDS,
    ordering: Annotated[
        list[str] | None,
        typer.Option("--order-only", help="One of FOLDERS, by name, that is not to say when nothing is relevant."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many networks are averaged.")] = SEEDS,
    questions: Annotated[int, typer.Option(min=1, help="The most questions of a set that are asked.")] = 250,
    crowd: Annotated[
        int, typer.Option(min=0, help="Among how many memories of other sets the questions are asked again.")
    ] = Limits.crowd,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Draw reliability and silence into this folder.")
    ] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Only judge each set left out; write nothing.")
    ] = False,
    folds: Annotated[
        int,
        typer.Option(min=0, help="Leave the sets out in so many groups. Default: each by itself, which takes longer."),
    ] = 0,
    keep_words: Annotated[bool, typer.Option("--keep-words", help="Do not fit the part for words alone anew.")] = False,
) -> None:
    """Fit the fusion: gather evidence on every set, judge each left out, fit on all, write fusion.json.

    RECOLLECT_MODEL names the embedding model whose similarities are fitted.
    """
    limits = replace(Limits(), questions=questions, crowd=crowd)
    given = Given(seeds, rounds, leave_out, limits, plots, frozenset(ordering or ()), folds, keep_words)
    run(folders, judging or [], evidence, target or target_of(Settings().model), given)
