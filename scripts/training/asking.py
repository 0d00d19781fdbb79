"""Fit what tells from a text alone whether it asks for something remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch

from recollect.engines.embedder import Embedder, TokenEmbeddings
from recollect.engines.fusion import Asking
from training.evidence import REQUEST, Example

FOLDS: Final = 5
PENALTY: Final = 0.05  # on the squares of the weights, which are large beside unit vectors
FAR: Final = ("unanswerable-far", "far")
Examples = Mapping[str, Sequence[Example]]


def read(examples: Mapping[str, Sequence[Example]], embedder: Embedder) -> dict[str, list[Example]]:
    """Return the examples with the vectors of one model, for evidence that the adapters of several parts gathered."""
    texts = sorted({one.text[:2_000] for some in examples.values() for one in some if one.vector is not None})
    by_text = dict(zip(texts, embedder.read(texts, "query"), strict=True))
    return {name: [_with_vector(one, by_text) for one in some] for name, some in examples.items()}


def _with_vector(one: Example, by_text: Mapping[str, TokenEmbeddings]) -> Example:
    return one if one.vector is None else replace(one, vector=by_text[one.text[:2_000]].vector)


def fit(examples: Sequence[Example], model: str, recalled: Sequence[np.ndarray] = ()) -> Asking:
    """Fit on questions that some memory answers beside requests and far questions; both sides count alike.

    `recalled` are vectors of what sounds like a request, and can only be answered from memory.
    """
    known = {one.text: one for one in examples if one.vector is not None and not one.crowded}
    asked = [*(one.vector for one in known.values() if one.answers), *recalled]
    other = [one.vector for one in known.values() if one.category in (REQUEST, *FAR)]
    rows = torch.tensor(np.stack([*asked, *other])).double()
    right = torch.tensor([1.0] * len(asked) + [0.0] * len(other)).double()
    shares = torch.where(right > 0, 0.5 / len(asked), 0.5 / len(other))
    weights = torch.zeros(rows.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    walk = torch.optim.LBFGS([weights, bias], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        walk.zero_grad()
        each = torch.nn.functional.binary_cross_entropy_with_logits(rows @ weights + bias, right, reduction="none")
        total: torch.Tensor = (each * shares).sum() + PENALTY * 1e-3 * (weights**2).sum()
        total.backward()
        return total

    walk.step(loss)
    return Asking(model, weights.detach().numpy().astype(np.float32), float(bias.detach()))


def known_apart(examples: Examples, model: str, recalled: Sequence[np.ndarray] = ()) -> dict[str, list[Example]]:
    """Return the examples with what they ask by models that were fitted without that text."""
    every = [one for some in examples.values() for one in some]
    fold = {text: place % FOLDS for place, text in enumerate(sorted({one.text for one in every}))}
    models = [fit([one for one in every if fold[one.text] != left], model, recalled) for left in range(FOLDS)]
    return {name: [asking(one, models[fold[one.text]]) for one in some] for name, some in examples.items()}


def asking(one: Example, model: Asking) -> Example:
    """Return an example with what its text asks by a model."""
    if one.vector is None:
        return one
    return replace(one, query=replace(one.query, asks=model(one.vector)))


def plain(model: Asking, digits: int = 4) -> dict[str, Any]:
    """Return a model as JSON holds it."""
    return {
        "model": model.model,
        "weights": np.round(model.weights.astype(float), digits).tolist(),
        "bias": round(model.bias, digits),
    }
