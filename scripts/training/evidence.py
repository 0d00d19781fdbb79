"""Gather what recall knows of a question: each set in a store of its own, the signals of each question's candidates.

This is what the fusion learns from. The raw signals are kept, so that its inputs can change without asking again.
"""

from __future__ import annotations

import pickle
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, TypeVar

import numpy as np
import typer
from rich.progress import track

import recollect
from evaluation.others import other_texts, store
from evaluation.parents import parents
from evaluation.sets import DEPTH, Question, Set, caller_of, err, fill, load, rows_of
from recollect import App, Draft, Query, Settings
from recollect.domain.search import QuerySignals, Signals
from recollect.search.signals import gather
from recollect.search.visibility import view_of
from training.parts import part_of

T = TypeVar("T")
FOREIGN: Final = "foreign"
REQUEST: Final = "request"  # asks for work, not for anything remembered
DATA: Final = Path(__file__).with_name("data")
REQUESTS: Final = DATA / "requests.txt"
RECALLS: Final = DATA / "recalls.txt"


@dataclass(frozen=True)
class Example:
    """One question: the signals of its candidates, which of them answer it, and how many answers there are in all.

    `vector` is the question's, float32[d], None where it was not embedded. `parents` says of the ten best memories that
    words, vectors and their rank fusion bring back which answer it. `crowded` is one among memories of other sets.
    """

    set: str
    group: str
    category: str
    query: QuerySignals
    found: tuple[Signals, ...]
    relevant: tuple[bool, ...]
    answers: int
    fold: int = 0
    weight: float = 1.0
    crowded: bool = False
    text: str = ""
    vector: np.ndarray | None = None
    parents: tuple[tuple[bool, ...], tuple[bool, ...], tuple[bool, ...]] = ((), (), ())


@dataclass(frozen=True)
class Limits:
    """How much of a set is used: questions, foreign questions, requests, and memories (whole groups).

    A set without sessions is asked a second time among a `crowd` of other sets' memories in each group. Of a `part`
    only its groups are used.
    """

    questions: int = 250
    foreign: int = 80
    requests: int = 20
    memories: int = 3_000
    crowd: int = 2_000
    part: int | None = None


def examples_of(one: Set, others: Sequence[Set], limits: Limits, folder: Path | None) -> list[Example]:
    """Return the examples of a set: from its pickle in `folder` where it is there, else from a store made for it."""

    def ask() -> list[Example]:
        with tempfile.TemporaryDirectory(prefix="recollect-fit-") as home:
            settings = Settings(home=Path(home), user="eval", team="eval", project="eval", on_secret="redact")
            with recollect.open_app(settings) as app:
                return _asked(app, one, others, limits)

    return kept_in(folder, one.name if limits.part is None else f"{one.name}.part{limits.part}", ask)


def kept_in(folder: Path | None, name: str, ask: Callable[[], list[T]]) -> list[T]:
    """Return what the pickle of this name in `folder` holds, or those of its parts; else ask, and keep that."""
    kept = None if folder is None else folder / f"{name}.pickle"
    there = [kept] if kept and kept.is_file() else sorted(folder.glob(f"{name}.part*.pickle")) if folder else []
    if there:
        return [one for path in there for one in pickle.loads(path.read_bytes())]
    found = ask()
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(found))
    return found


def _asked(app: App, one: Set, others: Sequence[Set], limits: Limits) -> list[Example]:
    chosen = _groups(one, limits)
    behind = fill(app, one.name, one.folder, chosen)
    own = [question for question in (*one.questions, *one.unanswered) if question.group in chosen]
    dice = random.Random(one.name)
    asked = dice.sample(own, min(limits.questions, len(own)))
    every = [*asked, *_foreign(one, others, chosen, limits.foreign, dice), *_requests(chosen, limits.requests, dice)]
    examples = [_example(app, one.name, question, behind) for question in track(every, one.name, console=err)]
    if limits.crowd and not any(row.get("session") for row in rows_of(one.folder / "corpus.jsonl")):
        for group in sorted(chosen):
            texts = others_than(one.name, others, dice.random())
            crowd = [Draft(content=text) for text in islice(texts, limits.crowd // len(chosen))]
            store(app, crowd, caller_of(one.name, group), f"{one.name}: {len(crowd)} others")
        crowded = [_example(app, one.name, question, behind) for question in track(every, one.name, console=err)]
        examples += [replace(one, crowded=True) for one in crowded]
    return examples


def others_than(name: str, sets: Sequence[Set], seed: float) -> Iterator[str]:
    """Yield texts of the sets but one, as long as there are some, then pairs of their sentences."""
    return other_texts([one.folder for one in sets if one.name != name], seed)


def _requests(groups: frozenset[str], most: int, dice: random.Random) -> list[Question]:
    """Return requests that no store answers, each asked of some group."""
    texts, names = requests(), sorted(groups)
    chosen = dice.sample(texts, min(most, len(texts)))
    return [Question(text, text, names[place % len(names)], REQUEST, frozenset()) for place, text in enumerate(chosen)]


def requests() -> list[str]:
    """Return what people ask of an agent that has nothing to do with its memory."""
    return REQUESTS.read_text(encoding="utf-8").splitlines()


def recalls() -> list[str]:
    """Return what sounds like a request, and can only be answered from memory."""
    return RECALLS.read_text(encoding="utf-8").splitlines()


def _groups(one: Set, limits: Limits) -> frozenset[str]:
    """Return groups of the set, or of a part of it, that hold about as many memories as are wanted; at least one."""
    sizes = one.sizes()
    groups = sorted({question.group for question in one.questions})
    if limits.part is not None:
        groups = [group for group in groups if part_of(one.name, group) == limits.part]
    random.Random(one.name).shuffle(groups)
    chosen: list[str] = []
    for group in groups:
        if not chosen or sum(sizes[found] for found in (*chosen, group)) <= limits.memories:
            chosen.append(group)
    return frozenset(chosen)


def _foreign(one: Set, others: Sequence[Set], groups: frozenset[str], most: int, dice: random.Random) -> list[Question]:
    """Return questions that other groups and other sets answer, each asked of some group of this set."""
    strange = [question for other in others if other.name != one.name for question in other.questions]
    found: list[Question] = []
    for place, group in enumerate(sorted(groups)):
        share = most // len(groups) + (place < most % len(groups))
        inside = [question for question in one.questions if question.group != group]
        near = dice.sample(inside, min(share // 2, len(inside)))
        far = dice.sample(strange, min(share - len(near), len(strange)))
        found += [replace(question, group=group, category=FOREIGN, answers=frozenset()) for question in (*near, *far)]
    return found


def _example(app: App, name: str, question: Question, behind: dict[str, list[str]]) -> Example:
    query = Query(query=question.text[:20_000], limit=DEPTH, profile="relevance", min_score=0.0)
    caller = caller_of(name, question.group)
    candidates = gather(app, query, view_of(app, query, caller))

    def right(memory: int) -> bool:
        return bool(question.answers.intersection(behind.get(str(memory), ())))

    words, near, fused = ([right(memory) for memory in found[:DEPTH]] for found in parents(app, question.text, caller))
    return Example(
        set=name,
        group=question.group,
        category=question.category,
        query=candidates.query,
        found=tuple(map(candidates.signals_of, candidates.ids)),
        relevant=tuple(right(memory) for memory in candidates.ids),
        answers=len({memory for memory, ids in behind.items() if question.answers.intersection(ids)}),
        text=question.text,
        vector=None if candidates.vector is None else np.array(candidates.vector),
        parents=(tuple(words), tuple(near), tuple(fused)),
    )


def main(
    folders: Annotated[list[Path], typer.Argument(help="The sets to ask; other sets' texts are stored beside them.")],
    evidence: Annotated[Path, typer.Option(help="The folder that keeps what was found. Pickles: only your own.")],
    part: Annotated[int, typer.Option(help="The part of parts.toml. RECOLLECT_MODELS_DIR names its model's folder.")],
    questions: Annotated[int, typer.Option(min=1, help="The most questions of a set.")] = Limits.questions,
    crowd: Annotated[int, typer.Option(min=0, help="Memories of other sets that are stored beside.")] = Limits.crowd,
) -> None:
    """Ask the groups of one part, with a model that was not fitted on it, and keep what it finds for `fusion`."""
    sets, limits = load(folders), Limits(questions=questions, crowd=crowd, part=part)
    for one in sets:
        if any(part_of(one.name, question.group) == part for question in one.questions):
            examples_of(one, sets, limits, evidence)
