"""Fit the network of the fusion: inputs with their signs, and questions in other words and in small stores."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import torch

from recollect.domain.search import Signals
from recollect.engines.fusion import Network, Part, columns, standardised
from recollect.engines.signal_columns import SignalColumns
from training.evidence import Example

SEEDS: Final = 4
ROUNDS: Final = 320
RATE: Final = 0.04
PENALTY: Final = 3e-3  # on the squares of all weights
LISTED: Final = 0.9  # how much the order among a question's candidates counts beside each one's own probability
BALANCE: Final = (
    20.0  # brings the mean loss over candidates, few of which are relevant, to the size of that over questions
)
BATCHES: Final = 4
FURTHER_ROUNDS: Final = 160
FURTHER_RATE: Final = 0.01
HELD: Final = 0.3  # on the squares of how far weights move from those that a fit begins with
SHOWN: Final = 48  # candidates of a question that one round sees, beside its answers
SMALL: Final = (1, 2, 3, 5, 8, 13, 21)
LEAST: Final = 0.02  # a feature whose deviation is less within a set has no spread there
SPREAD: Final = 2  # sets in which a feature must have some
HIDDEN: Final = {"own": 12, "talk": 6}

WORDS: Final = {
    "own": "bm25 bm25_of_best held held_to_best passage phrase".split(),
    "talk": "speaker_named bm25_before bm25_after around turn_held".split(),
    "query": "best sum bm25 held passage rarest unknown top_held".split(),
}
MEANING: Final = {
    "own": "cosine cosine_outstanding cosine_to_best late late_rare late_to_best late_rare_to_best".split(),
    "talk": "cosine_before cosine_after late_near".split(),
    "query": "cosine late late_rare outstanding top_cosine top_late_rare asks".split(),
}
FREE: Final = {
    "own": [],
    "talk": "speaker_not_named questions questions_before turn_length".split(),
    "query": [],
}
"""Features that must not lower a score, and those that may: of the words, of the meaning, of neither."""


BLIND: Final = frozenset("bm25_of_best held_to_best cosine_to_best late late_to_best late_rare_to_best".split())
"""What every other network of an ensemble does not see: how far a candidate is behind the best, and what says little
beside the rest. Networks that look at different things err differently."""


@dataclass(frozen=True)
class Inputs:
    """Which features a network sees: of each part, those that must not lower a score, then the others."""

    rising: dict[str, list[str]]
    free: dict[str, list[str]]

    def names(self, part: str) -> list[str]:
        """Return all features of a part."""
        return [*self.rising[part], *self.free[part]]


FUSED: Final = Inputs({part: WORDS[part] + MEANING[part] for part in WORDS}, FREE)
LEXICAL: Final = Inputs(WORDS, FREE)


@dataclass(frozen=True)
class Question:
    """The features of one question's candidates by name, which of them answer it, and what it weighs.

    `example` has no candidates left.
    """

    example: Example
    known: dict[str, np.ndarray]
    relevant: np.ndarray
    shown: np.ndarray
    weight: float


def compiled(examples: Sequence[Example], semantic: bool, copies: bool, seed: int = 5) -> list[Question]:
    """Return the questions of one set as a network sees them, all of them together weighing 1.

    With `copies` each is there a second time in words that none of its answers shares, or none of its candidates, and
    a third time in a small store.
    """
    dice = random.Random(seed)
    some = [one for one in examples if one.found and (one.query.semantic or not semantic)]
    if not semantic:
        some = [replace(one, query=replace(one.query, semantic=False)) for one in some]
    made: list[Question] = []
    for one in some:
        made.append(_question(one, 1.0, dice))
        if copies:
            if semantic:
                made.append(_question(otherwise(one, dice), 0.7, dice))
            made.append(_question(smaller(one, dice), 0.5, dice))
    total = sum(one.weight for one in made)
    return [replace(one, weight=one.weight / total) for one in made]


def _question(one: Example, weight: float, dice: random.Random) -> Question:
    known = columns(SignalColumns.of(one.found), one.query)
    relevant = np.array(one.relevant, dtype=bool)
    best = known["bm25"] + known.get("cosine", np.float32(0))
    order = np.argsort(-best, kind="stable")
    near, far = order[: SHOWN * 2 // 3].tolist(), order[SHOWN * 2 // 3 :].tolist()
    some = {*near, *dice.sample(far, min(SHOWN // 3, len(far))), *np.flatnonzero(relevant).tolist()}
    bare = replace(one, found=(), relevant=())
    return Question(bare, known, relevant, np.array(sorted(some)), weight)


def otherwise(one: Example, dice: random.Random) -> Example:
    """Return the question in other words: none of its answers shares any of them, or none of its candidates."""
    every = dice.random() < 0.5
    drop = wordless(dice.uniform(0.85, 1.0), 1.0)
    found = tuple(drop(two) if every or right else two for two, right in zip(one.found, one.relevant, strict=True))
    return replace(one, found=found, query=replace(one.query, rarest=0.0, unknown=1.0) if every else one.query)


def smaller(one: Example, dice: random.Random) -> Example:
    """Return the question as a small store would see it, in half of the cases asked in words that nobody stored.

    A small store holds few memories that are near by chance, so most of those that do not answer are taken from the
    farthest candidates; and words count as common where there are few memories.
    """
    near = sorted(range(len(one.found)), key=lambda number: one.found[number].cosine)
    some = near if dice.random() < 0.3 else near[: max(len(near) * 2 // 5, 1)]
    kept = set(dice.sample(some, min(dice.choice(SMALL), len(some))))
    answers = [number for number, answer in enumerate(one.relevant) if answer]
    kept -= set(answers)
    if answers and (not kept or dice.random() < 0.5):
        kept.add(dice.choice(answers))
    strange, rarity = dice.random() < 0.5, dice.random() ** 2
    change = wordless(dice.uniform(0.4, 1.0), dice.uniform(0.7, 1.0)) if strange else _rarer(rarity)
    return replace(
        one,
        query=replace(one.query, rarest=0.0, unknown=1.0) if strange else one.query,
        found=tuple(change(one.found[number]) for number in sorted(kept)),
        relevant=tuple(one.relevant[number] for number in sorted(kept)),
    )


def _rarer(rarity: float) -> Callable[[Signals], Signals]:
    """Return what makes every word count only so much (0–1)."""

    def change(one: Signals) -> Signals:
        before = replace(one.before, bm25=one.before.bm25 * rarity)
        after = replace(one.after, bm25=one.after.bm25 * rarity)
        return replace(one, bm25=one.bm25 * rarity, before=before, after=after)

    return change


def wordless(late: float, cosine: float) -> Callable[[Signals], Signals]:
    """Return what takes all shared words away, and leaves such shares (0–1) of the nearness in meaning."""

    def change(one: Signals) -> Signals:
        return replace(
            _rarer(0.0)(one),
            coverage=0.0,
            fuzzy=0.0,
            passage=0.0,
            phrase=0.0,
            around=0.0,
            rarest=0.0,
            identifier=0.0,
            cosine=one.cosine * cosine,
            late=None if one.late is None else one.late * late,
            rare=None if one.rare is None else one.rare * late,
        )

    return change


@dataclass(frozen=True)
class Scale:
    """Mean and deviation of a part's features over the sets, each set counting alike; a dead feature has no spread."""

    names: list[str]
    mean: np.ndarray
    scale: np.ndarray
    live: np.ndarray

    def without(self, names: frozenset[str]) -> Scale:
        """Return the scale with some features dead."""
        return replace(self, live=self.live & [name not in names for name in self.names])


def scale_of(sets: Sequence[Sequence[Question]], names: Sequence[str], talk: bool) -> Scale:
    """Measure the features of a part over the sets; those of a conversation only where there is one."""
    means, squares, spread = [], [], np.zeros(len(names))
    for some in sets:
        rows = np.concatenate([_rows(one, names, talk) for one in some])
        if len(rows) < 2:
            continue
        means.append(rows.mean(0))
        squares.append((rows**2).mean(0))
        spread += rows.std(0) > LEAST
    if not means:
        return Scale([*names], np.zeros(len(names)), np.ones(len(names)), np.zeros(len(names), dtype=bool))
    mean = np.mean(means, axis=0)
    deviation = np.sqrt(np.maximum(np.mean(squares, axis=0) - mean**2, 0.0))
    return Scale([*names], mean, deviation + 1e-2, spread >= min(SPREAD, len(sets)))


def _rows(one: Question, names: Sequence[str], talk: bool) -> np.ndarray:
    shown = one.shown[one.known["in_talk"][one.shown] > 0] if talk else one.shown
    return np.stack([one.known[name][shown] for name in names], axis=1)


class Net(torch.nn.Module):
    """One part in training: weights of rising features, and those behind any unit, are kept positive."""

    def __init__(self, rising: int, scale: Scale, hidden: int) -> None:
        super().__init__()
        width = len(scale.names)
        self.register_buffer("live", torch.tensor(scale.live, dtype=torch.float32))
        self.register_buffer("rising", (torch.arange(width) < rising).float())
        self.linear = torch.nn.Parameter(torch.randn(width) * 0.3 - 3.0 * self.rising)
        self.hidden = torch.nn.Parameter(torch.randn(width, hidden) * 0.5 - 2.5 * self.rising[:, None])
        self.hidden_bias = torch.nn.Parameter(torch.randn(hidden))
        self.out = torch.nn.Parameter(torch.randn(hidden) * 0.3 - 1.0)
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def weights(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the weights as they count: linear, hidden, out."""
        soft = torch.nn.functional.softplus
        rising = self.rising
        linear = (rising * soft(self.linear) + (1 - rising) * self.linear) * self.live
        hidden = (rising[:, None] * soft(self.hidden) + (1 - rising)[:, None] * self.hidden) * self.live[:, None]
        return linear, hidden, soft(self.out)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        linear, hidden, out = self.weights()
        return rows @ linear + torch.tanh(rows @ hidden + self.hidden_bias) @ out + self.bias

    def begin_with(self, part: Part) -> None:
        """Set the weights to those of a part that was fitted before."""
        with torch.no_grad():
            rising = self.rising > 0
            self.linear.copy_(torch.where(rising, _hardened(part.linear), torch.as_tensor(part.linear)))
            self.hidden.copy_(torch.where(rising[:, None], _hardened(part.hidden), torch.as_tensor(part.hidden)))
            self.out.copy_(_hardened(part.out))
            self.hidden_bias.copy_(torch.as_tensor(part.hidden_bias))
            self.bias.fill_(part.bias)

    def penalty(self) -> torch.Tensor:
        """Return the sum of the squares of all weights."""
        linear, hidden, out = self.weights()
        return (linear**2).sum() + (hidden**2).sum() / 4 + (out**2).sum()

    def part(self, scale: Scale) -> Part:
        """Return the part that the fusion reads."""
        linear, hidden, out = (one.detach().numpy() for one in self.weights())
        return Part(
            tuple(scale.names),
            scale.mean.astype(np.float32),
            scale.scale.astype(np.float32),
            linear,
            float(self.bias.detach()),
            hidden,
            self.hidden_bias.detach().numpy(),
            out,
        )


def _hardened(values: np.ndarray) -> torch.Tensor:
    """Return what becomes these values (≥ 0) where `softplus` keeps it positive."""
    return torch.log(torch.expm1(torch.as_tensor(values.astype(float)).clamp(min=1e-6))).float()


def fit(sets: Sequence[Sequence[Question]], inputs: Inputs, seed: int, rounds: int = ROUNDS) -> tuple[Part, Part]:
    """Fit the parts that order a query's memories, on the order of each question's and on the probability of each."""
    torch.manual_seed(seed)
    scales = {part: scale_of(sets, inputs.names(part), part == "talk") for part in HIDDEN}
    if seed % 2:
        scales = {part: scale.without(BLIND) for part, scale in scales.items()}
    nets = {part: Net(len(inputs.rising[part]), scales[part], HIDDEN[part]) for part in HIDDEN}
    questions = [one for some in sets for one in some]
    random.Random(seed).shuffle(questions)
    batches = [_Batch(questions[start::BATCHES], scales) for start in range(BATCHES)]
    _walk(nets, batches, rounds, RATE, lambda: PENALTY * sum(net.penalty() for net in nets.values()))
    own, talk = (nets[part].part(scales[part]) for part in HIDDEN)
    return own, talk


def further(began: tuple[Part, Part], sets: Sequence[Sequence[Question]], inputs: Inputs) -> Part:
    """Fit the part for conversations further on some sets, near what it was, and return it; the other part stays."""
    nets, scales = {}, {}
    for name, part in zip(HIDDEN, began, strict=True):
        scales[name] = Scale([*part.names], part.mean, part.scale, np.ones(len(part.names), dtype=bool))
        nets[name] = Net(len(inputs.rising[name]), scales[name], part.hidden.shape[1])
        nets[name].begin_with(part)
    nets["own"].requires_grad_(False)
    before = [one.detach().clone() for one in nets["talk"].weights()]

    def moved() -> torch.Tensor:
        pairs = zip(nets["talk"].weights(), before, strict=True)
        return HELD * torch.stack([((now - then) ** 2).sum() for now, then in pairs]).sum()

    questions = [one for some in sets for one in some]
    random.Random(0).shuffle(questions)
    batches = [_Batch(questions[start::BATCHES], scales) for start in range(BATCHES)]
    _walk(nets, batches, FURTHER_ROUNDS, FURTHER_RATE, moved)
    return nets["talk"].part(scales["talk"])


def _walk(
    nets: dict[str, Net], batches: Sequence[_Batch], rounds: int, rate: float, price: Callable[[], torch.Tensor]
) -> None:
    """Fit both nets so many steps on batches in turn, with a price for what their weights are."""
    learnt = [each for net in nets.values() for each in net.parameters() if each.requires_grad]
    walk = torch.optim.Adam(learnt, lr=rate)
    pace = torch.optim.lr_scheduler.OneCycleLR(walk, max_lr=rate, total_steps=rounds)
    for number in range(rounds):
        batch = batches[number % BATCHES]
        scores = nets["own"](batch.own) + batch.in_talk * nets["talk"](batch.talk)
        loss = batch.loss(scores) + price()
        walk.zero_grad()
        loss.backward()
        walk.step()
        pace.step()


class _Batch:
    """Questions in tensors."""

    def __init__(self, questions: Sequence[Question], scales: dict[str, Scale]) -> None:
        def rows(part: str) -> torch.Tensor:
            scale = scales[part]
            some = [standardised(one.known, scale.names, scale.mean, scale.scale)[one.shown] for one in questions]
            return torch.tensor(np.concatenate(some), dtype=torch.float32)

        self.own, self.talk = rows("own"), rows("talk")
        self.in_talk = torch.tensor(np.concatenate([one.known["in_talk"][one.shown] for one in questions]))
        self.answers = torch.tensor(np.concatenate([one.relevant[one.shown] for one in questions])).float()
        self.question = torch.repeat_interleave(
            torch.arange(len(questions)), torch.tensor([len(one.shown) for one in questions])
        )
        weights = torch.tensor([one.weight for one in questions], dtype=torch.float32)
        self.weights = weights / weights.mean()

    def loss(self, scores: torch.Tensor) -> torch.Tensor:
        count, weights, question, answers = len(self.weights), self.weights, self.question, self.answers
        best = torch.full((count,), -1e9).scatter_reduce(0, question, scores.detach(), "amax")
        mass = torch.zeros(count).index_add_(0, question, torch.exp(scores - best[question]))
        among = torch.log(mass + 1e-9) + best
        held = torch.zeros(count).index_add_(0, question, answers)
        lost = torch.zeros(count).index_add_(0, question, answers * (among[question] - scores))
        listed = (lost / held.clamp(min=1) * weights).sum() / (weights * (held > 0)).sum().clamp(min=1e-9)
        each = torch.nn.functional.binary_cross_entropy_with_logits(scores, answers, reduction="none")
        alone = (each * weights[question]).sum() / weights[question].sum() * BALANCE
        return LISTED * listed + (1 - LISTED) * alone


def averaged(parts: Sequence[Part]) -> Part:
    """Return the one part whose sums are the mean of those of `parts`, which were fitted on the same rows."""
    share = np.float32(1.0 / len(parts))
    return replace(
        parts[0],
        linear=np.mean([one.linear for one in parts], axis=0),
        bias=float(np.mean([one.bias for one in parts])),
        hidden=np.concatenate([one.hidden for one in parts], axis=1),
        hidden_bias=np.concatenate([one.hidden_bias for one in parts]),
        out=np.concatenate([one.out for one in parts]) * share,
    )


def nothing() -> Part:
    """Return a part that is 0."""
    none = np.zeros(0, dtype=np.float32)
    return Part(("words",), none + 0, none, none, 0.0, none, none, none)


def plain(network: Network, digits: int = 5) -> dict[str, Any]:
    """Return a network as JSON holds it."""
    parts = {name: _plain(getattr(network, name), digits) for name in ("own", "talk", "query")}
    return {**parts, "stretch": round(network.stretch, digits)}


def _plain(part: Part, digits: int) -> dict[str, Any]:
    arrays = {name: getattr(part, name) for name in ("mean", "scale", "linear", "hidden", "hidden_bias", "out")}
    rounded = {name: np.round(value.astype(float), digits).tolist() for name, value in arrays.items()}
    return {"names": list(part.names), "bias": round(part.bias, digits), **rounded}
