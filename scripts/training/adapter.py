"""Fit an adapter of the embedding model, small changes of its weights, on packed texts; on a GPU where there is one.

It needs numpy, torch, transformers, safetensors and typer, and nothing of Recollect, so that a machine which has only
those and this file can run it as a program of its own.
Questions learn to lie nearer to what answers them than to what looks alike, by the cosine of both texts and by late
interaction over their tokens, as recall compares them: of a stored token only the signs are kept. The weights of the
model stay; each linear layer gets the product of two small matrices added, as in LoRA (Hu et al., 2021).
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
import torch
import typer
from safetensors.numpy import load_file, save_file
from torch import nn
from torch.nn import functional as fn
from transformers import BertConfig, BertModel

TEXTS: Final = "texts.npz"
TAUGHT: Final = "taught.npz"
GROUPS: Final = "groups.json"
BASE: Final = "base.safetensors"
CONFIG: Final = "config.json"
DEVICE: Final = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SHARE: Final = 0.25  # of the product of both matrices
SHARP: Final = 0.05  # the temperature of cosines
SHARP_LATE: Final = 0.04  # that of late interaction
SHARP_SUM: Final = 0.08  # and of the sum of all three
LATE: Final = 0.5  # what late interaction weighs beside the cosine
SUM: Final = 0.5
LIKE_TEACHER: Final = 10.0  # the weight of squared differences of cosines
IN_ITS_ORDER: Final = 0.5
QUESTIONS: Final = 128  # of a step
BLOCK: Final = 8  # questions of a step that are of one group, so that each one's texts are hard for the others
FOUND: Final = 24  # texts that look alike, kept for a question
NEAR: Final = 8  # of them, from which two of four are drawn
SEEN: Final = 60  # that are looked at for these
DOUBTED: Final = 0.95  # of the answer's cosine by the teacher: a text that is nearer may answer as well
AGAIN: Final = (0, 1, 2, 4, 7)  # the rounds that begin with looking for what is alike
WARM: Final = 60  # steps until the rate is whole
WARM_FURTHER: Final = 10  # the same where an adapter is fitted further, which looks for what is alike only once
READ: Final = 512 if DEVICE.type == "cuda" else 32  # texts at a time
PARTS: Final = (0.5, 6 / 7)  # texts of a step are read in three parts, by their lengths
Answered: TypeAlias = list["Hard"]


@dataclass(frozen=True)
class Group:
    """What one search sees: the texts of each memory, and of each question its text and the memories that answer it.

    In a `loose` group more may answer than is marked. Each round sees a `share` of the questions. One `part` of all
    groups may be left out, to judge by.
    """

    name: str
    memories: list[list[int]]
    questions: list[tuple[int, list[int]]]
    loose: bool = False
    share: float = 1.0
    part: int = 0


@dataclass(frozen=True)
class Hard:
    """A question with a text of each memory that answers it, all texts of those, and others that look alike."""

    group: int
    text: int
    right: list[int]
    own: frozenset[int]
    alike: list[int]


class Pack:
    """Texts by number: token ids, what each token weighs in late interaction, and the teacher's vectors."""

    def __init__(self, place: Path) -> None:
        held = np.load(place / TEXTS)
        starts = held["starts"].astype(np.int64)
        self.used = held["used"]
        self.lengths = np.diff(starts)
        self.first = torch.tensor(starts[:-1]).to(DEVICE)
        self.count = torch.tensor(self.lengths).to(DEVICE)
        self.ids = torch.tensor(held["ids"].astype(np.int64)).to(DEVICE)
        self.plain = torch.tensor(held["plain"].astype(np.float32)).to(DEVICE)
        self.rare = torch.tensor(held["rare"].astype(np.float32)).to(DEVICE)
        taught = torch.tensor(np.load(place / TAUGHT)["vectors"].astype(np.float32))
        self.taught = fn.normalize(taught, dim=-1).to(DEVICE)
        self.groups = [Group(**one) for one in json.loads((place / GROUPS).read_text(encoding="utf-8"))]

    def batch(self, texts: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the token ids of some texts, which of them are there, and both weights of each: all [n, t]."""
        chosen = torch.as_tensor(texts, device=DEVICE)
        width = (int(self.lengths[texts].max()) + 7) // 8 * 8
        place = torch.arange(width, device=DEVICE)
        there = place[None] < self.count[chosen][:, None]
        at = (self.first[chosen][:, None] + place[None]).clamp(max=len(self.ids) - 1)
        return self.ids[at] * there, there, self.plain[at] * there, self.rare[at] * there


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


class Encoder:
    """The base with its adapters; texts become a unit vector each, and unit vectors of their tokens."""

    def __init__(self, place: Path, pack: Pack, rank: int) -> None:
        given = json.loads((place / CONFIG).read_text(encoding="utf-8"))
        shape = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "type_vocab_size")
        same = {name: given[name] for name in (*shape, "max_position_embeddings", "layer_norm_eps", "hidden_act")}
        config = BertConfig(
            vocab_size=len(pack.used), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **same
        )
        self.pack = pack
        self.model = BertModel(config, add_pooling_layer=False)
        self.model.load_state_dict(_weights(place / BASE), strict=False)
        for one in self.model.parameters():
            one.requires_grad = False
        self.layers = self._adapt(rank)
        self.model.to(DEVICE)
        if DEVICE.type == "cuda":
            for layer in self.layers.values():
                layer.layer.to(torch.bfloat16)

    def _adapt(self, rank: int) -> dict[str, Adapted]:
        found = {}
        for name, layer in [pair for pair in self.model.named_modules() if isinstance(pair[1], nn.Linear)]:
            owner, _, last = name.rpartition(".")
            found[name] = Adapted(layer, rank)
            setattr(self.model.get_submodule(owner), last, found[name])
        return found

    def learnt(self) -> list[nn.Parameter]:
        """Return the matrices that are fitted."""
        return [matrix for layer in self.layers.values() for matrix in (layer.down, layer.up)]

    def read(self, texts: np.ndarray) -> Reading:
        """Return what the model makes of some texts."""
        ids, there, plain, rare = self.pack.batch(texts)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            hidden = self.model(input_ids=ids, attention_mask=there.long()).last_hidden_state
        hidden, mask = hidden.float(), there.unsqueeze(-1).float()
        vectors = fn.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
        return Reading(vectors, fn.normalize(hidden, dim=-1), plain, rare)


@dataclass(frozen=True)
class Reading:
    """Of n texts: unit vectors [n, d], unit vectors of t tokens [n, t, d], and both weights of these [n, t].

    A stored text weighs all its own tokens alike, a question those that tell something, all together 1.
    """

    vectors: torch.Tensor
    tokens: torch.Tensor
    plain: torch.Tensor
    rare: torch.Tensor

    def late(self, stored: Reading) -> tuple[torch.Tensor, torch.Tensor]:
        """Return late interaction with stored texts by both weights, [n, m]; gradients pass the signs unchanged."""
        signs = torch.sign(stored.tokens.detach()) / math.sqrt(stored.tokens.shape[-1])
        tokens = stored.tokens + (signs - stored.tokens).detach()
        telling = self.plain > 0
        whose = torch.arange(len(self.plain), device=DEVICE)[:, None].expand(telling.shape)[telling]
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            near = torch.einsum("qd,ntd->qnt", self.tokens[telling], tokens)
        best = near.float().masked_fill(stored.plain[None] == 0, -2.0).amax(2)
        empty = torch.zeros(len(self.plain), len(stored.plain), device=DEVICE)
        plain, rare = (empty.index_add(0, whose, best * one[telling][:, None]) for one in (self.plain, self.rare))
        return plain, rare


class Library:
    """All texts of some groups as the encoder reads them now; tokens lie one after another."""

    def __init__(self, encoder: Encoder, texts: np.ndarray) -> None:
        texts = np.unique(texts)
        order = texts[np.argsort(encoder.pack.lengths[texts], kind="stable")]
        total = len(encoder.pack.lengths)
        self.pack, self.number, self.begin = encoder.pack, np.zeros(total, int), np.zeros(total, int)
        vectors, tokens, counts = [], [], []
        with torch.no_grad():
            for start in range(0, len(order), READ):
                one = encoder.read(order[start : start + READ])
                own = one.plain > 0
                vectors.append(one.vectors)
                tokens.append(one.tokens[own].to(torch.float16 if DEVICE.type == "cuda" else torch.float32))
                counts.append(own.sum(1))
        self.vectors = torch.zeros(total, vectors[0].shape[1], device=DEVICE)
        self.vectors[torch.as_tensor(order, device=DEVICE)] = torch.cat(vectors)
        self.tokens = torch.cat(tokens)
        self.number[order] = torch.cat(counts).cpu().numpy()
        self.begin[order] = np.cumsum(self.number[order]) - self.number[order]

    def places(self, texts: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return where the tokens of some texts lie, and to which of these each belongs."""
        number = self.number[texts]
        first = np.repeat(self.begin[texts] - (np.cumsum(number) - number), number)
        owner = np.repeat(np.arange(len(texts)), number)
        return torch.as_tensor(first + np.arange(number.sum()), device=DEVICE), torch.as_tensor(owner, device=DEVICE)

    def compare(self, asked: np.ndarray, texts: np.ndarray) -> torch.Tensor:
        """Return the cosine and late interaction by both weights of each question and text: [q, n, 3]."""
        places, owner = self.places(texts)
        signs = torch.sign(self.tokens[places]) / math.sqrt(self.tokens.shape[1])
        stored = self.vectors[torch.as_tensor(texts, device=DEVICE)]
        found, size = [], max(8, min(128, 40_000_000 // max(1, len(signs))))
        for start in range(0, len(asked), size):
            some = asked[start : start + size]
            at, whose = self.places(some)
            _, _, plain, rare = self.pack.batch(some)
            telling = plain > 0
            near = (self.tokens[at] @ signs.T).float()
            best = torch.full((len(near), len(texts)), -1.0, device=DEVICE)
            best = best.scatter_reduce(1, owner[None].expand(len(near), -1), near, "amax")
            empty = torch.zeros(len(some), len(texts), device=DEVICE)
            late = [empty.index_add(0, whose, best * one[telling][:, None]) for one in (plain, rare)]
            cosine = self.vectors[torch.as_tensor(some, device=DEVICE)] @ stored.T
            found.append(torch.stack([cosine, *late], dim=2))
        return torch.cat(found)


def begin(layers: Mapping[str, Adapted], held: Mapping[str, np.ndarray]) -> None:
    """Give the layers the matrices of an adapter of the same rank."""
    with torch.no_grad():
        for name, layer in layers.items():
            layer.up.copy_(torch.tensor(held[f"{name}.up"]) / SHARE)
            layer.down.copy_(torch.tensor(held[f"{name}.down"]))


def _weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the weights of the base; the vectors of words are kept as whole numbers with a scale each."""
    held = load_file(path)
    scale = held.pop("scale")
    found = {name: torch.tensor(one.astype(np.float32)) for name, one in held.items()}
    found["embeddings.word_embeddings.weight"] *= torch.tensor(scale)[:, None]
    return found


def _every(groups: Sequence[Group]) -> np.ndarray:
    texts = [text for group in groups for memory in group.memories for text in memory]
    return np.array(texts + [text for group in groups for text, _ in group.questions])


def hard(encoder: Encoder, groups: Sequence[Group]) -> Answered:
    """Return of each question what looks most alike by the encoder as it is now."""
    library, found = Library(encoder, _every(groups)), []
    for number, group in enumerate(groups):
        texts = np.array([text for memory in group.memories for text in memory])
        whose = [place for place, memory in enumerate(group.memories) for _ in memory]
        asked = np.array([text for text, _ in group.questions])
        scores = library.compare(asked, texts).sum(2)
        first = scores.argsort(1, descending=True)[:, :SEEN].tolist()
        taught = encoder.pack.taught[asked] @ encoder.pack.taught[texts].T if group.loose else None
        of_memory: dict[int, list[int]] = {}
        for place, memory in enumerate(whose):
            of_memory.setdefault(memory, []).append(place)
        for row, (text, answers) in enumerate(group.questions):
            own = {place for answer in answers for place in of_memory[answer]}
            right = [max(of_memory[answer], key=scores[row].__getitem__) for answer in answers]
            limit = math.inf if taught is None else DOUBTED * max(float(taught[row, place]) for place in own)
            others = [place for place in first[row] if place not in own]
            alike = [place for place in others if taught is None or float(taught[row, place]) <= limit][:FOUND]
            if len(alike) >= 4:
                shown = [[int(texts[place]) for place in some] for some in (right, sorted(own), alike)]
                found.append(Hard(number, text, shown[0], frozenset(shown[1]), shown[2]))
    return found


def steps(found: Answered, dice: random.Random) -> Iterator[Answered]:
    """Yield the questions of each step of a round, in blocks of one group."""
    by_group: dict[int, Answered] = {}
    for one in found:
        by_group.setdefault(one.group, []).append(one)
    blocks: list[Answered] = []
    for some in by_group.values():
        dice.shuffle(some)
        blocks += [some[start : start + BLOCK] for start in range(0, len(some), BLOCK)]
    dice.shuffle(blocks)
    flat = [one for block in blocks for one in block]
    size = min(QUESTIONS, len(flat))
    for start in range(0, len(flat) - size + 1, size):
        yield flat[start : start + size]


def loss_of(encoder: Encoder, some: Answered, dice: random.Random) -> torch.Tensor:
    """Return the loss of one step."""
    places: dict[int, int] = {}
    targets = []
    for one in some:
        near = dice.sample(one.alike[:NEAR], min(2, len(one.alike)))
        far = dice.sample(one.alike[NEAR - 2 :], min(2, len(one.alike[NEAR - 2 :])))
        right = dice.choice(one.right)
        for text in (right, *near, *far):
            places.setdefault(text, len(places))
        targets.append(places[right])
    texts, asked = np.array(list(places)), np.array([one.text for one in some])
    questions = encoder.read(asked)
    order = np.argsort(encoder.pack.lengths[texts], kind="stable")
    parts = [part for part in np.split(order, [int(len(order) * share) for share in PARTS]) if len(part)]
    read = [encoder.read(texts[part]) for part in parts]
    back = torch.as_tensor(np.argsort(np.concatenate(parts), kind="stable"), device=DEVICE)
    vectors = torch.cat([one.vectors for one in read])[back]
    both = [questions.late(one) for one in read]
    late, rare = (torch.cat([one[place] for one in both], 1)[:, back] for place in (0, 1))
    cosine = questions.vectors @ vectors.T
    target = torch.tensor(targets, device=DEVICE)
    also = torch.tensor(
        [
            [text in one.own and at != own for text, at in places.items()]
            for one, own in zip(some, targets, strict=True)
        ],
        device=DEVICE,
    )

    def listed(scores: torch.Tensor, sharp: float) -> torch.Tensor:
        return fn.cross_entropy((scores / sharp).masked_fill(also, -1e4), target)

    chosen = torch.as_tensor(np.concatenate([asked, texts]), device=DEVICE)
    taught = encoder.pack.taught[chosen]
    every, wanted = torch.cat([questions.vectors, vectors]), taught @ taught.T
    ours = torch.log_softmax((cosine / SHARP).masked_fill(also, -1e4), 1)
    theirs = torch.softmax((wanted[: len(asked), len(asked) :] / SHARP).masked_fill(also, -1e4), 1)
    loss = listed(cosine, SHARP) + LATE / 2 * (listed(late, SHARP_LATE) + listed(rare, SHARP_LATE))
    loss = loss + SUM * listed(cosine + late + rare, SHARP_SUM)
    loss = loss + LIKE_TEACHER * ((every @ every.T - wanted) ** 2).mean()
    return loss + IN_ITS_ORDER * fn.kl_div(ours, theirs, reduction="batchmean")


@dataclass(frozen=True)
class Given:
    """How an adapter is fitted."""

    rate: float = 1.2e-3
    rank: int = 32
    rounds: int = 5
    seed: int = 0
    left: int | None = None
    further: Path | None = None  # an adapter that is fitted further
    new: str = ""  # the set that it has not seen
    replay: float = 0.3  # how many questions of all other sets a round sees then


def set_of(group: Group) -> str:
    """Return the name of the set that a group is of."""
    return group.name.partition("/")[0]


def fit(place: Path, given: Given) -> Encoder:
    """Return the encoder fitted to all groups but those of the part that is left out; the rate falls to nothing."""
    torch.manual_seed(given.seed)
    dice, pack = random.Random(given.seed), Pack(place)
    groups = [one for one in pack.groups if one.part != given.left]
    if not groups:
        raise SystemExit(f"Every group is of part {given.left}, which is left out: nothing remains to fit on.")
    if given.new and given.new not in map(set_of, groups):
        raise SystemExit(f"No group is of {given.new}, which is to be new.")
    held = load_file(given.further) if given.further else {}
    ranks = [matrix.shape[1] for name, matrix in held.items() if name.endswith(".up")]
    encoder = Encoder(place, pack, ranks[0] if ranks else given.rank)
    if held:
        begin(encoder.layers, held)
    shares = [one.share * (given.replay if given.new and set_of(one) != given.new else 1.0) for one in groups]
    again, warm = ((0,), WARM_FURTHER) if held else (AGAIN, WARM)
    walk = torch.optim.AdamW(encoder.learnt(), lr=given.rate, weight_decay=0.01)
    done, total, began, found = 0, 0, time.perf_counter(), []
    for turn in range(given.rounds):
        if turn in again:
            found = hard(encoder, groups)
        batches = list(steps([one for one in found if dice.random() < shares[one.group]], dice))
        total = total or len(batches) * given.rounds
        lost = 0.0
        for some in batches:
            rate = given.rate * min(1.0, (done + 1) / warm) * max(1 - done / total, 0.01)
            walk.param_groups[0]["lr"] = rate
            loss = loss_of(encoder, some, dice)
            walk.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(encoder.learnt(), 1.0)
            walk.step()
            done, lost = done + 1, lost + float(loss.detach())
        passed = time.perf_counter() - began
        print(f"Round {turn + 1} of {given.rounds}: loss {lost / max(1, len(batches)):.3f}, {passed:.0f} s", flush=True)
    return encoder


def judge(encoder: Encoder, groups: Sequence[Group]) -> dict[str, list[tuple[float, float]]]:
    """Return of each group how often the right memory is first and among five, in percent: by cosine, by the sum."""
    library, found = Library(encoder, _every(groups)), {}
    for group in groups:
        texts = np.array([text for memory in group.memories for text in memory])
        whose = torch.tensor([place for place, memory in enumerate(group.memories) for _ in memory], device=DEVICE)
        scores = library.compare(np.array([text for text, _ in group.questions]), texts)
        figures = []
        for kind in (scores[:, :, 0], scores.sum(2)):
            best = torch.full((len(kind), len(group.memories)), -9.0, device=DEVICE)
            best = best.scatter_reduce(1, whose[None].expand(len(kind), -1), kind, "amax")
            order = best.argsort(1, descending=True)[:, :5].tolist()
            hits = [[one in answers for one in row] for row, (_, answers) in zip(order, group.questions, strict=True)]
            figures.append((100 * float(np.mean([one[0] for one in hits])), 100 * float(np.mean(list(map(any, hits))))))
        found[group.name] = figures
    return found


def write(layers: Mapping[str, Adapted], target: Path) -> None:
    """Write the adapter."""
    tensors: dict[str, Any] = {}
    for name, layer in layers.items():
        tensors[f"{name}.up"] = (SHARE * layer.up).detach().cpu().numpy().astype(np.float16)
        tensors[f"{name}.down"] = layer.down.detach().cpu().numpy().astype(np.float16)
    target.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, target)


def run(place: Path, target: Path, given: Given) -> None:
    """Fit an adapter, write it, and print how the groups that were left out are answered by it."""
    encoder = fit(place, given)
    write(encoder.layers, target)
    judges = [one for one in encoder.pack.groups if one.part == given.left]
    for name, figures in judge(encoder, judges).items() if judges else ():
        print(name, *(f"{first:.1f} / {five:.1f}" for first, five in figures))


def main(
    place: Annotated[Path, typer.Argument(help="The folder that `pack` wrote.")],
    target: Annotated[Path, typer.Option("--out", help="Where the adapter goes.")],
    rate: Annotated[float, typer.Option(help="The rate of learning.")] = Given.rate,
    rank: Annotated[int, typer.Option(min=1, help="The smaller side of the added matrices.")] = Given.rank,
    rounds: Annotated[int, typer.Option(min=1, help="How often each question is seen.")] = Given.rounds,
    seed: Annotated[int, typer.Option(help="What every chance begins with.")] = Given.seed,
    left: Annotated[int | None, typer.Option("--leave-out", help="The part of parts.toml that only judges.")] = None,
    further: Annotated[Path | None, typer.Option(help="An adapter to begin with, in its rank.")] = None,
    new: Annotated[str, typer.Option(help="The set that it has not seen, of which each round sees all.")] = Given.new,
    replay: Annotated[float, typer.Option(help="With --new: the share of all other sets in a round.")] = Given.replay,
) -> None:
    """Fit an adapter on what `pack` wrote, and print how a part that was left out is answered by it."""
    run(place, target, Given(rate, rank, rounds, seed, left, further, new, replay))


if __name__ == "__main__":
    typer.run(main)
