"""Training of the learned fusion: what one question's candidates look like, folds over conversations, networks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from recollect.domain.search import QuerySignals, Signals
from recollect.engines.fusion import Network, features

FOLDS = 5
HIDDEN = 16
SEEDS = 5
ROUNDS = 300
RATE = 0.02
DECAY = 0.01
LISTED = 0.7  # how much the order among a question's candidates counts beside each candidate's own probability
BALANCE = 20.0  # brings the mean loss over candidates, few of which are relevant, to the size of that over questions
SMALLER = 0.6  # how much a question to a small store counts beside the real one
SMALL = (1, 2, 3, 5, 8, 13, 21)


@dataclass(frozen=True)
class Example:
    """One question: the signals of its candidates, which of them answer it, and how many answers there are in all."""

    set: str
    group: str
    category: str
    query: QuerySignals
    found: tuple[Signals, ...]
    relevant: tuple[bool, ...]
    answers: int
    fold: int
    weight: float = 1.0


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
    otherwise, rarity = dice.random() < 0.5, dice.random() ** 2
    change = _otherwise(dice.uniform(0.4, 1.0), dice.uniform(0.7, 1.0)) if otherwise else _rarer(rarity)
    return replace(
        one,
        query=replace(one.query, rarest=0.0, unknown=1.0) if otherwise else one.query,
        found=tuple(change(one.found[number]) for number in sorted(kept)),
        relevant=tuple(one.relevant[number] for number in sorted(kept)),
        weight=one.weight * SMALLER,
    )


def _rarer(rarity: float) -> Callable[[Signals], Signals]:
    """Return what makes every word count only so much (0–1)."""

    def change(one: Signals) -> Signals:
        before = replace(one.before, bm25=one.before.bm25 * rarity)
        after = replace(one.after, bm25=one.after.bm25 * rarity)
        return replace(one, bm25=one.bm25 * rarity, before=before, after=after)

    return change


def _otherwise(late: float, cosine: float) -> Callable[[Signals], Signals]:
    """Return what takes all shared words away, and with them such shares (0–1) of the nearness in meaning."""

    def change(one: Signals) -> Signals:
        return replace(
            _rarer(0.0)(one),
            coverage=0.0,
            fuzzy=0.0,
            passage=0.0,
            phrase=0.0,
            around=0.0,
            cosine=one.cosine * cosine,
            late=None if one.late is None else one.late * late,
            rare=None if one.rare is None else one.rare * late,
        )

    return change


def fit(examples: Sequence[Example], names: Sequence[str], seed: int, rounds: int = ROUNDS) -> Network:
    """Fit one network on the order of each question's candidates and on the probability of each."""
    torch.manual_seed(seed)
    rows = torch.tensor(np.concatenate([features(one.found, one.query, names) for one in examples]))
    answers = torch.tensor(np.concatenate([one.relevant for one in examples]).astype(np.float32))
    sizes = [len(one.found) for one in examples]
    question = torch.repeat_interleave(torch.arange(len(examples)), torch.tensor(sizes))
    weights = torch.tensor([one.weight for one in examples], dtype=torch.float32)
    mean, scale = rows.mean(0), rows.std(0) + 1e-2
    standard = (rows - mean) / scale
    net = _Net(rows.shape[1])
    walk = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    pace = torch.optim.lr_scheduler.OneCycleLR(walk, max_lr=RATE, total_steps=rounds)
    for _ in range(rounds):
        loss = _loss(net(standard), answers, question, weights)
        walk.zero_grad()
        loss.backward()
        walk.step()
        pace.step()
    return _network(net, names, mean, scale)


class _Net(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, 1)
        self.hidden = torch.nn.Linear(width, HIDDEN)
        self.out = torch.nn.Linear(HIDDEN, 1, bias=False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return (self.linear(rows) + self.out(torch.tanh(self.hidden(rows))))[:, 0]


def _loss(scores: torch.Tensor, answers: torch.Tensor, question: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    count = len(weights)
    best = torch.full((count,), -1e9).scatter_reduce(0, question, scores.detach(), "amax")
    mass = torch.zeros(count).index_add_(0, question, torch.exp(scores - best[question]))
    among = torch.log(mass + 1e-9) + best
    held = torch.zeros(count).index_add_(0, question, answers)
    lost = torch.zeros(count).index_add_(0, question, answers * (among[question] - scores))
    listed = (lost / held.clamp(min=1) * weights).sum() / (weights * (held > 0)).sum()
    each = torch.nn.functional.binary_cross_entropy_with_logits(scores, answers, reduction="none")
    alone = (each * weights[question]).sum() / weights[question].sum() * BALANCE
    return LISTED * listed + (1 - LISTED) * alone


def _network(net: _Net, names: Sequence[str], mean: torch.Tensor, scale: torch.Tensor) -> Network:
    plain = {name: value.detach().numpy() for name, value in net.named_parameters()}
    return Network(
        names=tuple(names),
        mean=mean.numpy(),
        scale=scale.numpy(),
        linear=plain["linear.weight"][0],
        bias=float(plain["linear.bias"][0]),
        hidden=plain["hidden.weight"].T,
        hidden_bias=plain["hidden.bias"],
        out=plain["out.weight"][0],
    )


def averaged(networks: Sequence[Network]) -> Network:
    """Return the one network whose scores are the mean of those of `networks`, which were fitted on the same rows."""
    share = 1.0 / len(networks)
    return replace(
        networks[0],
        linear=np.mean([one.linear for one in networks], axis=0),
        bias=float(np.mean([one.bias for one in networks])),
        hidden=np.concatenate([one.hidden for one in networks], axis=1),
        hidden_bias=np.concatenate([one.hidden_bias for one in networks]),
        out=np.concatenate([one.out for one in networks]) * share,
    )


def calibrated(network: Network, scores: Sequence[float], answers: Sequence[bool], weights: Sequence[float]) -> Network:
    """Stretch and shift the network's scores so that on these, which it was not fitted on, they are log-odds."""
    given, wanted = torch.tensor(scores, dtype=torch.float64), torch.tensor(answers, dtype=torch.float64)
    counted = torch.tensor(weights, dtype=torch.float64)
    stretch, shift = torch.ones(1, dtype=torch.float64, requires_grad=True), torch.zeros(1, dtype=torch.float64)
    shift.requires_grad_()
    walk = torch.optim.LBFGS([stretch, shift], max_iter=100)

    def step() -> torch.Tensor:
        walk.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(given * stretch + shift, wanted, weight=counted)
        loss.backward()
        return loss

    walk.step(step)
    by, plus = float(stretch.detach()), float(shift.detach())
    return replace(network, linear=network.linear * by, out=network.out * by, bias=network.bias * by + plus)


def plain(network: Network, digits: int = 5) -> dict[str, Any]:
    """Return a network as JSON holds it."""
    arrays = {name: getattr(network, name) for name in ("mean", "scale", "linear", "hidden", "hidden_bias", "out")}
    rounded = {name: np.round(value.astype(float), digits).tolist() for name, value in arrays.items()}
    return {"names": list(network.names), "bias": round(network.bias, digits), **rounded}
