"""Fit the part of the fusion that tells whether anything answers a query, on scores of networks fitted without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch

from recollect.engines.fusion import LIMIT, Part, best_features
from training.network import Inputs, Net, Question, Scale, averaged

ROUNDS: Final = 400
RATE: Final = 0.03
PENALTY: Final = 2e-3
HIDDEN: Final = 6
SHOWN: Final = 10  # the best candidates of a query, whose log-odds are calibrated
REFUSING: Final = 4.0  # how much it counts that the best match tells whether the query has an answer


@dataclass(frozen=True)
class Judged:
    """The best scores of one question's candidates, which of them answer it, and the features of its best evidence."""

    orders: np.ndarray
    relevant: np.ndarray
    known: dict[str, np.ndarray]
    answered: bool
    weight: float


def judged(question: Question, order: np.ndarray) -> Judged:
    """Return what the part sees of a question whose candidates have the scores `order`."""
    best = np.argsort(-order, kind="stable")[:SHOWN]
    known = best_features(question.known, order, question.example.query)
    return Judged(order[best], question.relevant[best], known, bool(question.relevant.any()), question.weight)


def fit(sets: Sequence[Sequence[Judged]], inputs: Inputs, seeds: int) -> tuple[Part, float]:
    """Return the part and the stretch of the scores, which make log-odds of them."""
    names = inputs.names("query")
    every = [replace(one, weight=one.weight / sum(two.weight for two in some)) for some in sets for one in some]
    rows = np.stack([np.concatenate([one.known[name] for name in names]) for one in every])
    weights = np.array([one.weight for one in every])
    weights /= weights.sum()
    mean = weights @ rows
    deviation = np.sqrt(weights @ (rows - mean) ** 2)
    scale = Scale(names, mean, deviation + 1e-2, deviation > 0)
    parts, stretches = zip(*(_fitted(every, rows, scale, seed) for seed in range(seeds)), strict=True)
    return averaged(parts), float(np.mean(stretches))


def _fitted(every: Sequence[Judged], rows: np.ndarray, scale: Scale, seed: int) -> tuple[Part, float]:
    torch.manual_seed(seed)
    net = Net(len(scale.names), scale, HIDDEN)
    stretch, least = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.zeros(1))
    standard = torch.tensor(np.clip((rows - scale.mean) / scale.scale, -LIMIT, LIMIT), dtype=torch.float32)
    counts = torch.tensor([len(one.orders) for one in every])
    query = torch.repeat_interleave(torch.arange(len(every)), counts)
    orders = torch.tensor(np.concatenate([one.orders for one in every]), dtype=torch.float32)
    best = torch.tensor([one.orders[0] for one in every], dtype=torch.float32)
    relevant = torch.tensor(np.concatenate([one.relevant for one in every])).float()
    answered = torch.tensor([one.answered for one in every]).float()
    weights = torch.tensor([one.weight for one in every], dtype=torch.float32)
    walk = torch.optim.Adam([*net.parameters(), stretch, least], lr=RATE)
    pace = torch.optim.lr_scheduler.OneCycleLR(walk, max_lr=RATE, total_steps=ROUNDS)
    cross = torch.nn.functional.binary_cross_entropy_with_logits
    for _ in range(ROUNDS):
        shift = net(standard)
        by = torch.nn.functional.softplus(stretch + 0.5)
        each = cross(orders * by + shift[query], relevant, reduction="none")
        whole = cross(best * by + shift - least, answered, reduction="none")
        loss = (each * weights[query]).sum() / weights[query].sum() + REFUSING * (whole * weights).sum() / weights.sum()
        loss = loss + PENALTY * net.penalty()
        walk.zero_grad()
        loss.backward()
        walk.step()
        pace.step()
    return net.part(scale), float(torch.nn.functional.softplus(stretch + 0.5).detach())
