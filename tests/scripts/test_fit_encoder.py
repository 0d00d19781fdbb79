"""Fitting the adapter of the embedding model: what is written is what was fitted."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from recollect import Settings
from recollect.engines.embedding import find_card, open_embedder
from recollect.engines.embedding.weights import ADAPTER

pytestmark = pytest.mark.slow

TEXTS = ["Deploys run on Fridays at noon.", "The staging gateway listens on port 8443.", "Ada reviews every migration."]
ASKED = ["when do we ship", "which port has the gateway", "who looks at schema changes"]


@pytest.fixture
def fitting(module: Callable[[str], ModuleType]) -> ModuleType:
    """Return the script as a module."""
    return module("fit_encoder")


@pytest.fixture
def examples(fitting: ModuleType) -> list[Any]:
    """Return as many examples as a step takes."""
    every = [
        fitting.Example(f"{asked} {number}", (text,), tuple(f"{number}: {other} {place}" for place in range(5)))
        for number in range(6)
        for asked, text in zip(ASKED, TEXTS, strict=True)
        for other in ["The build server is called Otto."]
    ]
    return every[: fitting.QUESTIONS]


@pytest.mark.full
def test_the_loss_falls_and_the_base_stays(fitting: ModuleType, examples: list[Any]) -> None:
    """A few steps bring what answers nearer; the weights of the base are not touched."""
    every = [text for one in examples for text in (one.text, *one.right, *one.wrong)]
    teacher = fitting.Encoder.of(fitting.BASE).read_all(every, "reading")  # here the base itself
    encoder = fitting.Encoder.of(fitting.BASE)
    before = {name: one.clone() for name, one in encoder.model.state_dict().items()}
    half = next(fitting.steps(list(examples), random.Random(1)))
    first = float(fitting.loss_of(encoder, teacher, half).detach())
    layers = fitting.fit(encoder, examples, teacher, 6, fitting.Given(rate=3e-3, rank=4))
    last = float(fitting.loss_of(encoder, teacher, half).detach())
    assert last < first
    assert len(layers) == 36
    after = encoder.model.state_dict()
    for name, one in before.items():
        where = next((new for new in (name, name.replace(".weight", ".layer.weight")) if new in after), None)
        where = where or name.replace(".bias", ".layer.bias")
        assert torch.equal(after[where], one), name


def test_texts_of_every_length_are_read_in_their_order(fitting: ModuleType) -> None:
    """Texts are read by their lengths, some at a time; each gets the vector that it has alone."""
    encoder = fitting.Encoder.of(fitting.BASE)
    texts = [f"{number}. " + "The gateway answers. " * (number * 7 % 11) for number in range(fitting.TOGETHER + 3)]
    found = encoder.read_all(texts, "reading")
    for text in texts[:: fitting.TOGETHER // 3]:
        alone = encoder.read_all([text], "reading")[text]
        assert float(found[text].astype(np.float32) @ alone.astype(np.float32)) > 0.999


def test_what_was_asked_is_read_from_the_evidence(fitting: ModuleType, examples: list[Any], tmp_path: Path) -> None:
    """A set whose pickle lies in the folder is not asked again."""
    (tmp_path / "acme.pickle").write_bytes(pickle.dumps(examples))
    assert fitting.examples_of(fitting.Set("acme", tmp_path / "none", []), 5, tmp_path) == examples


def test_what_is_written_gives_the_same_vectors(fitting: ModuleType, tmp_path: Path) -> None:
    """The adapter beside a card gives, through onnxruntime, the vectors that the fitted encoder gives."""
    torch.manual_seed(3)
    encoder = fitting.Encoder.of(fitting.BASE)
    for layer in encoder.adapt(4).values():
        torch.nn.init.normal_(layer.up, std=0.3)
    wanted = encoder.read_all(TEXTS, "reading")
    layers = {name: one for name, one in encoder.model.named_modules() if isinstance(one, fitting.Adapted)}
    folder = tmp_path / "models" / "ours"
    found = fitting.write(layers, folder / ADAPTER)
    base = find_card(fitting.BASE)
    assert base is not None
    card = replace(base, id="acme/ours", base=base.id, adapter=found)
    shown = ("id", "base", "adapter", "revision", "package", "runtime", "pooling", "licence", "sha256")
    lines = [f'{field} = "{getattr(card, field)}"' for field in shown]
    lines += [f"dimensions = {card.dimensions}", f"max_tokens = {card.max_tokens}"]
    (folder / "card.toml").write_text("\n".join(lines), encoding="utf-8")
    ours = open_embedder("ours", tmp_path / "models", Settings().caches).read(TEXTS)
    plain = open_embedder(fitting.BASE, None, Settings().caches).read(TEXTS)
    for text, one, other in zip(TEXTS, ours, plain, strict=True):
        assert float(one.vector @ wanted[text].astype(np.float32)) > 0.999
        assert float(other.vector @ wanted[text].astype(np.float32)) < 0.99
