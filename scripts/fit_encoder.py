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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

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
from recollect import Query, Settings
from recollect.engines.embedding import find_card
from recollect.engines.embedding.weights import file_hash, find_weights
from recollect.errors import ModelUnusable
from sets import Set, caller_of, err, fill, load, rows_of

BASE: Final = "all-MiniLM-L6-v2"
TEACHER: Final = "all-mpnet-base-v2"
FOUND: Final = 16  # memories that recall finds for a question
NEAR: Final = 8  # of them, from which two of three wrong answers are drawn
QUESTIONS: Final = 16  # in one step
SHARP: Final = 0.05  # the temperature of cosines
LIKE_TEACHER: Final = 10.0  # the weight of squared differences of cosines
IN_ITS_ORDER: Final = 0.5
SHARE: Final = 0.25  # of the product of both matrices
LONGEST: Final = 128  # tokens
CHARACTERS: Final = 800
WARM: Final = 50  # steps until the rate is whole
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
        model = AutoModel.from_pretrained(folder, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
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
        cut = [one[:CHARACTERS] for one in texts]
        given = self.tokenizer(cut, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.model(**given).last_hidden_state.float()
        mask = given["attention_mask"].unsqueeze(-1).float()
        return fn.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)

    def read_all(self, texts: Sequence[str], title: str) -> dict[str, np.ndarray]:
        """Return the vector of each text, float16[d]."""
        by_length = sorted(dict.fromkeys(texts), key=len)
        found: dict[str, np.ndarray] = {}
        with torch.no_grad():
            for start in track(range(0, len(by_length), 32), title, console=err):
                batch = by_length[start : start + 32]
                found |= dict(zip(batch, self.read(batch).numpy().astype(np.float16), strict=True))
        return found


def examples_of(one: Set, most: int) -> list[Example]:
    """Ask the questions of a set in a store of its own; return what is to be learnt of each."""
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
                if len(wrong) >= 4:
                    right = tuple(texts[one] for one in sorted(question.answers))
                    found.append(Example(question.text, right, wrong))
    return found


def _text(row: Mapping[str, Any]) -> str:
    before = [f"{row['speaker']}: " if row.get("speaker") else "", f"{row['title']}. " if row.get("title") else ""]
    return "".join(before) + str(row["text"])


def steps(examples: list[Example], dice: random.Random) -> Iterator[list[Example]]:
    """Yield the questions of each step, without end, in an order of their own each round."""
    while True:
        dice.shuffle(examples)
        for start in range(0, len(examples) - QUESTIONS + 1, QUESTIONS):
            yield examples[start : start + QUESTIONS]


def loss_of(
    encoder: Encoder, taught: Mapping[str, np.ndarray], batch: Sequence[Example], dice: random.Random
) -> torch.Tensor:
    """Return the loss of one step."""
    texts: list[str] = []
    places = []
    for one in batch:
        places.append(len(texts))
        near = dice.sample(one.wrong[:NEAR], min(2, len(one.wrong)))
        far = dice.sample(one.wrong[4:], min(1, len(one.wrong[4:])))
        texts += dict.fromkeys([dice.choice(one.right), *near, *far])
    questions = [one.text for one in batch]
    vectors = encoder.read([*questions, *texts])
    teacher = torch.tensor(np.stack([taught[one] for one in (*questions, *texts)]).astype(np.float32))
    alike, wanted = vectors @ vectors.T, teacher @ teacher.T
    count = len(questions)
    also_right = torch.tensor(
        [
            [text in one.right and place != own for place, text in enumerate(texts)]
            for one, own in zip(batch, places, strict=True)
        ]
    )
    scores = (alike[:count, count:] / SHARP).masked_fill(also_right, -1e4)
    order = (wanted[:count, count:] / SHARP).masked_fill(also_right, -1e4)
    answered = fn.cross_entropy(scores, torch.tensor(places))
    ordered = fn.kl_div(torch.log_softmax(scores, 1), torch.softmax(order, 1), reduction="batchmean")
    loss: torch.Tensor = answered + LIKE_TEACHER * ((alike - wanted) ** 2).mean() + IN_ITS_ORDER * ordered
    return loss


def fit(
    encoder: Encoder,
    examples: list[Example],
    taught: Mapping[str, np.ndarray],
    count: int,
    rate: float,
    rank: int,
    seed: int,
) -> dict[str, Adapted]:
    """Return the adapters after so many steps; the rate falls to nothing."""
    torch.manual_seed(seed)
    dice = random.Random(seed)
    layers = encoder.adapt(rank)
    learnt = [matrix for layer in layers.values() for matrix in (layer.down, layer.up)]
    optimizer = torch.optim.AdamW(learnt, lr=rate, weight_decay=0.01)
    given, total, began = steps(examples, dice), 0.0, time.perf_counter()
    for step in track(range(count), "Fitting", console=err):
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / WARM) * (1 - step / count)
        loss = loss_of(encoder, taught, next(given), dice)
        loss.backward()
        nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        total += float(loss.detach())
        if (step + 1) % WARM == 0:
            pace = (step + 1) * QUESTIONS / (time.perf_counter() - began)
            out.print(f"step {step + 1} of {count}: loss {total / WARM:.3f}, {pace:.1f} questions a second")
            total = 0.0
    return layers


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
    most: Annotated[int, typer.Option("--questions", min=16, help="The most questions of a set.")] = 500,
    rounds: Annotated[float, typer.Option(help="How often each question is seen.")] = 1.5,
    rate: Annotated[float, typer.Option(help="The rate of learning.")] = 6e-4,
    rank: Annotated[int, typer.Option(min=1, help="The smaller side of the added matrices.")] = 32,
    threads: Annotated[int, typer.Option(min=1, help="How many cores are used.")] = 2,
    seed: Annotated[int, typer.Option(help="What the order of the questions begins with.")] = 0,
) -> None:
    """Gather the questions of sets, let the larger model read all their texts, and fit and write the adapter."""
    torch.set_num_threads(threads)
    examples = [example for one in load(folders) for example in examples_of(one, most)]
    texts = [text for one in examples for text in (one.text, *one.right, *one.wrong)]
    taught = Encoder.of(TEACHER).read_all(texts, f"{TEACHER}: reading")
    count = int(rounds * len(examples) / QUESTIONS)
    out.print(f"{len(examples)} questions, {len(taught)} texts, {count} steps")
    layers = fit(Encoder.of(BASE), examples, taught, count, rate, rank, seed)
    out.print("sha256 of the adapter:", write(layers, target))


if __name__ == "__main__":
    typer.run(main)
