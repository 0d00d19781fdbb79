"""Fit an adapter for the default embedding model: small changes of its weights, for questions to notes.

It learns three things at once: that a question lies nearer to what answers it than to what recall found beside that;
that texts lie as near to each other as a larger model says; and that a question finds its texts in the order in which
the larger model finds them. The weights themselves stay as they are; each linear layer gets a product of two small
matrices added, as in LoRA (Hu et al., 2021). Needs torch and transformers, which `recollect[models]` installs.
"""

from __future__ import annotations

import math
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
import torch
import typer
from rich.console import Console
from rich.progress import track
from safetensors.numpy import save_file
from torch import nn
from torch.nn import functional as fn
from transformers import AutoModel, AutoTokenizer

import recollect
from gathering import kept_in
from recollect import Query, Settings
from recollect.engines.embedding import find_card
from recollect.engines.embedding.weights import file_hash, find_weights
from recollect.errors import ModelUnusable
from sets import Set, caller_of, err, fill, load, rows_of

BASE: Final = "all-MiniLM-L6-v2"
TEACHER: Final = "all-mpnet-base-v2"
FOUND: Final = 16  # memories that recall finds for a question
NEAR: Final = 8  # of them, from which two of three wrong answers are drawn
QUESTIONS: Final = 16  # that are compared with each other's texts
HALVES: Final = 2  # of one step, each with so many questions, read at the same time
SHARP: Final = 0.05  # the temperature of cosines
LIKE_TEACHER: Final = 10.0  # the weight of squared differences of cosines
IN_ITS_ORDER: Final = 0.5
SHARE: Final = 0.25  # of the product of both matrices
LONGEST: Final = 256  # tokens
CHARACTERS: Final = 1_200
TOGETHER: Final = 24  # texts of about one length are read at once
WARM: Final = 50  # steps until the rate is whole
Drawn: TypeAlias = list[tuple["Example", tuple[str, ...]]]  # the texts of a question, the right one first
out = Console(width=160)


@dataclass(frozen=True)
class Example:
    """A question, the texts that answer it, and those that recall found beside them, the best first."""

    text: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]


class Adapted(nn.Module):  # type: ignore[misc]
    """A linear layer that stays as it is, and the product of two small matrices that is added to its weights."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Return what the changed layer gives: float[…, o] of float[…, i]."""
        changed: torch.Tensor = self.layer(value) + SHARE * fn.linear(fn.linear(value, self.down), self.up)
        return changed


@dataclass(frozen=True)
class Encoder:
    """A model with its tokenizer; texts become unit vectors, the mean of their tokens."""

    model: Any
    tokenizer: Any

    @classmethod
    def of(cls, name: str) -> Encoder:
        """Load the weights of a card."""
        card, settings = find_card(name), Settings()
        if card is None:
            raise ModelUnusable(f"There is no card of {name}.")
        folder = find_weights(card, settings.models_dir, settings.caches)
        model = AutoModel.from_pretrained(
            folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager"
        )
        for one in model.parameters():
            one.requires_grad = False
        return cls(model, AutoTokenizer.from_pretrained(folder))

    def adapt(self, rank: int) -> dict[str, Adapted]:
        """Give every linear layer of a BERT encoder an adapter; return these by the names of the layers."""
        found = {}
        layers = [(name, one) for name, one in self.model.named_modules() if isinstance(one, nn.Linear)]
        for name, layer in layers:
            if name.startswith("encoder."):
                owner, _, last = name.rpartition(".")
                found[name] = Adapted(layer, rank)
                setattr(self.model.get_submodule(owner), last, found[name])
        return found

    def read(self, texts: Sequence[str]) -> torch.Tensor:
        """Return float32[n, d]."""
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        parts = [by_length[start : start + TOGETHER] for start in range(0, len(texts), TOGETHER)]
        found = torch.cat([self._read([texts[place] for place in part]) for part in parts])
        return found[torch.tensor(by_length).argsort()]

    def _read(self, texts: list[str]) -> torch.Tensor:
        cut = [one[:CHARACTERS] for one in texts]
        given = self.tokenizer(cut, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.model(**given).last_hidden_state.float()
        mask = given["attention_mask"].unsqueeze(-1).float()
        return fn.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)

    def read_all(self, texts: Sequence[str], title: str) -> dict[str, np.ndarray]:
        """Return the vector of each text, float16[d]."""
        by_length = sorted(dict.fromkeys(texts), key=len)
        parts = [by_length[start : start + TOGETHER] for start in range(0, len(by_length), TOGETHER)]
        with ThreadPoolExecutor(HALVES) as pool:
            read = list(track(pool.map(self._vectors, parts), title, total=len(parts), console=err))
        return dict(zip(by_length, np.concatenate(read), strict=True))

    def _vectors(self, texts: list[str]) -> np.ndarray:
        with torch.no_grad():
            found: np.ndarray = self._read(texts).numpy()
        return found.astype(np.float16)


def examples_of(one: Set, most: int, folder: Path | None = None) -> list[Example]:
    """Return what is to be learnt of each question: from the pickle in `folder`, else from a store made for it."""
    return kept_in(folder, one.name, partial(_asked, one, most))


def _asked(one: Set, most: int) -> list[Example]:
    texts = {row["id"]: _text(row) for row in rows_of(one.folder / "corpus.jsonl")}
    asked = random.Random(one.name).sample(one.questions, min(most, len(one.questions)))
    groups = frozenset(question.group for question in asked)
    found = []
    with tempfile.TemporaryDirectory(prefix="recollect-encoder-") as home:
        named = {"user": "eval", "team": "eval", "project": "eval"}
        settings = Settings(home=Path(home), model=BASE, on_secret="redact", **named)
        with recollect.open_app(settings) as app:
            behind = fill(app, one.name, one.folder, groups)
            for question in track(asked, f"{one.name}: asking", console=err):
                query = Query(query=question.text[:2_000], limit=FOUND, profile="relevance", min_score=0.0)
                hits = recollect.recall(app, query, caller_of(one.name, question.group)).hits
                ids = [behind[str(hit.memory.id)][0] for hit in hits]
                wrong = tuple(texts[one] for one in ids if one not in question.answers)
                right = tuple(texts[one] for one in sorted(question.answers) if len(texts[one]) <= CHARACTERS)
                if right and len(wrong) >= 4:
                    found.append(Example(question.text, right, wrong))
    return found


def _text(row: Mapping[str, Any]) -> str:
    before = [f"{row['speaker']}: " if row.get("speaker") else "", f"{row['title']}. " if row.get("title") else ""]
    return "".join(before) + str(row["text"])


def steps(examples: list[Example], dice: random.Random) -> Iterator[Drawn]:
    """Yield the questions of each half of a step with some of their texts, in an order of their own each round."""
    while True:
        dice.shuffle(examples)
        for start in range(0, len(examples) - QUESTIONS + 1, QUESTIONS):
            yield [(one, _drawn(one, dice)) for one in examples[start : start + QUESTIONS]]


def _drawn(one: Example, dice: random.Random) -> tuple[str, ...]:
    near = dice.sample(one.wrong[:NEAR], min(2, len(one.wrong)))
    far = dice.sample(one.wrong[4:], min(1, len(one.wrong[4:])))
    return tuple(dict.fromkeys([dice.choice(one.right), *near, *far]))


def loss_of(encoder: Encoder, taught: Mapping[str, np.ndarray], half: Drawn) -> torch.Tensor:
    """Return the loss of half a step."""
    texts: list[str] = []
    places = []
    for _, drawn in half:
        places.append(len(texts))
        texts += drawn
    questions = [one.text for one, _ in half]
    vectors = torch.cat([encoder.read(questions), encoder.read(texts)])
    teacher = torch.tensor(np.stack([taught[one] for one in (*questions, *texts)]).astype(np.float32))
    alike, wanted = vectors @ vectors.T, teacher @ teacher.T
    count = len(questions)
    also_right = torch.tensor(
        [
            [text in one.right and place != own for place, text in enumerate(texts)]
            for (one, _), own in zip(half, places, strict=True)
        ]
    )
    scores = (alike[:count, count:] / SHARP).masked_fill(also_right, -1e4)
    order = (wanted[:count, count:] / SHARP).masked_fill(also_right, -1e4)
    answered = fn.cross_entropy(scores, torch.tensor(places))
    ordered = fn.kl_div(torch.log_softmax(scores, 1), torch.softmax(order, 1), reduction="batchmean")
    loss: torch.Tensor = answered + LIKE_TEACHER * ((alike - wanted) ** 2).mean() + IN_ITS_ORDER * ordered
    return loss


def fit(
    encoder: Encoder, examples: list[Example], taught: Mapping[str, np.ndarray], count: int, given: Given
) -> dict[str, Adapted]:
    """Return the adapters after so many steps; the rate falls to nothing."""
    torch.manual_seed(given.seed)
    layers = encoder.adapt(given.rank)
    learnt = [matrix for layer in layers.values() for matrix in (layer.down, layer.up)]
    optimizer = torch.optim.AdamW(learnt, lr=given.rate, weight_decay=0.01)
    halves, total, began = steps(examples, random.Random(given.seed)), 0.0, time.perf_counter()
    gradients_of = partial(_gradients, encoder, taught, learnt)
    with ThreadPoolExecutor(HALVES) as pool:
        for step in track(range(count), "Fitting", console=err):
            optimizer.param_groups[0]["lr"] = given.rate * min(1.0, (step + 1) / WARM) * (1 - step / count)
            found = list(pool.map(gradients_of, [next(halves) for _ in range(HALVES)]))
            for place, matrix in enumerate(learnt):
                matrix.grad = torch.stack([gradients[place] for _, gradients in found]).mean(0)
            nn.utils.clip_grad_norm_(learnt, 1.0)
            optimizer.step()
            total += sum(loss for loss, _ in found) / HALVES
            if (step + 1) % WARM == 0:
                pace = (step + 1) * QUESTIONS * HALVES / (time.perf_counter() - began)
                out.print(f"step {step + 1} of {count}: loss {total / WARM:.3f}, {pace:.1f} questions a second")
                total = 0.0
            if (step + 1) % max(count // 4, 1) == 0:
                given.judge(encoder)
    return layers


def _gradients(
    encoder: Encoder, taught: Mapping[str, np.ndarray], learnt: Sequence[nn.Parameter], half: Drawn
) -> tuple[float, tuple[torch.Tensor, ...]]:
    loss = loss_of(encoder, taught, half)
    return float(loss.detach()), torch.autograd.grad(loss, learnt)


@dataclass(frozen=True)
class Given:
    """How the adapter is fitted, and the sets that judge it."""

    rate: float = 6e-4
    rank: int = 32
    seed: int = 0
    judging: tuple[Set, ...] = ()

    def judge(self, encoder: Encoder) -> None:
        """Print of each set how often cosines alone bring what answers first, and among the best five."""
        for one in self.judging:
            texts = {row["id"]: _text(row) for row in rows_of(one.folder / "corpus.jsonl")}
            groups = {row["id"]: row.get("group") or "all" for row in rows_of(one.folder / "corpus.jsonl")}
            vectors = encoder.read_all([*texts.values(), *(asked.text for asked in one.questions)], one.name)
            figures = defaultdict[str, list[tuple[bool, bool]]](list)
            for asked in one.questions:
                ids = [name for name in texts if groups[name] == asked.group]
                alike = np.stack([vectors[texts[name]] for name in ids]) @ vectors[asked.text]
                best = [ids[place] in asked.answers for place in np.argsort(-alike)[:5]]
                for kind in ("all", asked.category):
                    figures[kind].append((best[0], any(best)))
            shown = [f"{kind} {100 * np.mean(rows, axis=0).round(3)}" for kind, rows in figures.items()]
            out.print(f"{one.name}: {', '.join(shown)}")


def write(layers: Mapping[str, Adapted], target: Path) -> str:
    """Write the adapter, and return its SHA-256 for the card."""
    tensors = {}
    for name, layer in layers.items():
        tensors[f"{name}.up"] = (SHARE * layer.up).detach().numpy().astype(np.float16)
        tensors[f"{name}.down"] = layer.down.detach().numpy().astype(np.float16)
    target.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, target)
    return file_hash(target)


def main(
    folders: Annotated[list[Path], typer.Argument(help="Evaluation sets: folders with corpus, queries and qrels.")],
    target: Annotated[Path, typer.Option("--out", help="Where the adapter goes.")],
    most: Annotated[int, typer.Option("--questions", min=16, help="The most questions of a set.")] = 700,
    rounds: Annotated[float, typer.Option(help="How often each question is seen.")] = 3,
    rate: Annotated[float, typer.Option(help="The rate of learning.")] = 6e-4,
    rank: Annotated[int, typer.Option(min=1, help="The smaller side of the added matrices.")] = 32,
    seed: Annotated[int, typer.Option(help="What the order of the questions begins with.")] = 0,
    judging: Annotated[list[Path] | None, typer.Option("--judge", help="A set to judge by, never to fit on.")] = None,
    evidence: Annotated[
        Path | None, typer.Option(help="Keep what was asked here, and use what is there. Pickles: only your own.")
    ] = None,
) -> None:
    """Gather the questions of sets, let the larger model read all their texts, and fit and write the adapter."""
    sets, judges = load(folders), load(judging or [])
    torch.set_num_threads(1)  # each half of a step has a thread
    examples = [example for one in sets for example in examples_of(one, most, evidence)]
    texts = [text for one in examples for text in (one.text, *one.right, *one.wrong)]
    taught = Encoder.of(TEACHER).read_all(texts, f"{TEACHER}: reading")
    count = int(rounds * len(examples) / (QUESTIONS * HALVES))
    out.print(f"{len(examples)} questions, {len(taught)} texts, {count} steps")
    encoder, given = Encoder.of(BASE), Given(rate, rank, seed, tuple(judges))
    given.judge(encoder)
    layers = fit(encoder, examples, taught, count, given)
    out.print("sha256 of the adapter:", write(layers, target))


if __name__ == "__main__":
    typer.run(main)
