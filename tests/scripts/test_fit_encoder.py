"""Fitting the adapter of the embedding model: it learns what is asked, and what is written is what was fitted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from recollect import Settings
from recollect.engines.embedding import find_card, open_embedder
from recollect.engines.embedding.weights import ADAPTER, file_hash
from recollect.engines.late_interaction import pack, similarity
from recollect.errors import InvalidInput

pytestmark = pytest.mark.slow

NOTES = {
    "terrane": [
        "Deploys run on Fridays at noon.",
        "The staging gateway listens on port 8443.",
        "Ada reads every migration.",
    ],
    "lumen": ["Otto is the build server.", "Invoices are numbered by the year.", "Backups are kept for 21 days."],
}
ASKED = {
    "terrane": ["when do we ship", "which port has the gateway", "who looks at schema changes"],
    "lumen": ["where are packages made", "how do bills get their numbers", "how far back can we restore"],
}


@pytest.fixture
def fitting(module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the script as a module, with the base as its own teacher."""
    fitting = module("fit_encoder")
    monkeypatch.setattr(fitting, "TEACHER", fitting.BASE)
    return fitting


@pytest.fixture
def place(fitting: ModuleType, tmp_path: Path) -> Path:
    """Return a folder in which two sets of ten memories are packed; each of three questions has one answer."""
    for name, notes in NOTES.items():
        folder = tmp_path / name
        folder.mkdir()
        texts = [*notes, *(f"{number}. Lunch is at {number}." for number in range(7))]
        rows = [json.dumps({"id": f"m{number}", "text": text}) for number, text in enumerate(texts)]
        asked = [json.dumps({"id": f"q{number}", "text": text}) for number, text in enumerate(ASKED[name])]
        (folder / "corpus.jsonl").write_text("\n".join(rows), encoding="utf-8")
        (folder / "queries.jsonl").write_text("\n".join(asked), encoding="utf-8")
        (folder / "qrels.tsv").write_text("".join(f"q{one}\tm{one}\t1\n" for one in range(3)), encoding="utf-8")
    fitting.pack(fitting.load([tmp_path / name for name in NOTES]), tmp_path / "packed")
    return tmp_path / "packed"


@pytest.mark.full
def test_the_loss_falls_and_the_base_stays(fitting: ModuleType, place: Path) -> None:
    """Some rounds bring what answers nearer; the weights of the base are not touched."""
    training = fitting.training
    texts = training.Pack(place)
    before = training.Encoder(place, texts, 4)
    some = training.hard(before, texts.groups)
    encoder = training.fit(place, training.Given(rate=3e-3, rank=4, rounds=6))
    first, last = (float(training.loss_of(one, some, random.Random(1)).detach()) for one in (before, encoder))
    assert last < first
    assert len(encoder.layers) == 36
    fitted = dict(encoder.model.named_parameters())
    for name, one in before.model.named_parameters():
        assert name.endswith((".up", ".down")) or torch.equal(fitted[name], one), name


def test_a_question_sees_what_looks_alike_and_no_answer_of_its_own(fitting: ModuleType, place: Path) -> None:
    """Of each question the answer is known, and what stands beside it is of the same set and no answer."""
    training = fitting.training
    texts = training.Pack(place)
    assert [(one.name, one.part, len(one.questions)) for one in texts.groups] == [
        ("terrane/all", 0, 3),
        ("lumen/all", 1, 3),
    ]
    found = training.hard(training.Encoder(place, texts, 4), texts.groups)
    assert len(found) == 6
    for one in found:
        group = texts.groups[one.group]
        assert set(one.right) == one.own
        assert not one.own.intersection(one.alike)
        assert {text for memory in group.memories for text in memory}.issuperset(one.alike)
    assert sorted(one.text for step in training.steps(found, random.Random(1)) for one in step) == sorted(
        one.text for one in found
    )


def test_late_interaction_is_that_of_recall(fitting: ModuleType, place: Path) -> None:
    """What is learnt by is what recall compares: a question's tokens with the signs of the stored ones."""
    training = fitting.training
    texts = training.Pack(place)
    encoder = training.Encoder(place, texts, 4)
    group = texts.groups[0]
    asked = np.array([text for text, _ in group.questions])
    stored = np.array([memory[0] for memory in group.memories])
    with torch.no_grad():
        questions, memories = encoder.read(asked), encoder.read(stored)
        plain, rare = questions.late(memories)
    scores = training.Library(encoder, np.concatenate([asked, stored])).compare(asked, stored)
    packed = [pack(memories.tokens[row][memories.plain[row] > 0].numpy()) for row in range(len(stored))]
    for row in range(len(asked)):
        telling = questions.plain[row] > 0
        near = similarity(questions.tokens[row][telling].numpy(), packed)
        for place_of, weights, found in ((1, questions.plain, plain), (2, questions.rare, rare)):
            wanted = near @ weights[row][telling].numpy()
            np.testing.assert_allclose(found[row].numpy(), wanted, atol=0.01)  # bfloat16 on the way
            np.testing.assert_allclose(scores[row, :, place_of].numpy(), wanted, atol=0.01)
    np.testing.assert_allclose(scores[:, :, 0].numpy(), (questions.vectors @ memories.vectors.T).numpy(), atol=0.01)


def test_what_is_written_gives_the_same_vectors(fitting: ModuleType, place: Path, tmp_path: Path) -> None:
    """The adapter beside a card gives, through onnxruntime, the vectors that the fitted encoder gives."""
    training = fitting.training
    torch.manual_seed(3)
    texts = training.Pack(place)
    encoder = training.Encoder(place, texts, 4)
    for layer in encoder.layers.values():
        torch.nn.init.normal_(layer.up, std=0.3)
    stored = np.array([memory[0] for memory in texts.groups[0].memories[:3]])
    wanted = encoder.read(stored).vectors.detach().numpy()
    folder = tmp_path / "models" / "ours"
    training.write(encoder.layers, folder / ADAPTER)
    base = find_card(fitting.BASE)
    assert base is not None
    card = replace(base, id="acme/ours", base=base.id, adapter=file_hash(folder / ADAPTER))
    shown = ("id", "base", "adapter", "revision", "package", "runtime", "pooling", "licence", "sha256")
    lines = [f'{field} = "{getattr(card, field)}"' for field in shown]
    lines += [f"dimensions = {card.dimensions}", f"max_tokens = {card.max_tokens}"]
    (folder / "card.toml").write_text("\n".join(lines), encoding="utf-8")
    ours = open_embedder("ours", tmp_path / "models", Settings().caches).read(NOTES["terrane"])
    plain = open_embedder(fitting.BASE, None, Settings().caches).read(NOTES["terrane"])
    for one, other, vector in zip(ours, plain, wanted, strict=True):
        assert float(one.vector @ vector) > 0.999
        assert float(other.vector @ vector) < 0.99


def test_a_mix_changes_the_weights_by_the_shares(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """The product of a mix's matrices is the sum of those of its adapters, each by its share."""
    dice = np.random.default_rng(3)
    adapters = [
        {
            f"layer.{side}": dice.normal(size=size).astype(np.float16)
            for side, size in (("up", (6, 2)), ("down", (2, 5)))
        }
        for _ in range(2)
    ]
    for number, one in enumerate(adapters):
        save_file(one, tmp_path / f"{number}.safetensors")
    mix = module("mix_adapters").mixed([(tmp_path / "0.safetensors", 0.5), (tmp_path / "1.safetensors", 0.7)], 4)
    shares = zip(adapters, (0.5, 0.7), strict=True)
    wanted = sum(share * (one["layer.up"].astype(float) @ one["layer.down"].astype(float)) for one, share in shares)
    np.testing.assert_allclose(mix["layer.up"].astype(float) @ mix["layer.down"].astype(float), wanted, atol=0.01)
    assert mix["layer.up"].shape == (6, 4)
    assert mix["layer.down"].dtype == np.float16


def test_every_project_that_trains_has_a_part(module: Callable[[str], ModuleType]) -> None:
    """All projects of notes are in a part but those kept apart; an unknown name is refused."""
    parts = module("parts")
    kept_apart = {"vantage", "orchard", "meridian", "emberfall", "wardline"}
    notes = Path(parts.FILE).with_name("notes")
    for folder in sorted(notes.iterdir()):
        if not folder.is_dir():
            continue
        if folder.name in kept_apart:
            with pytest.raises(InvalidInput, match=folder.name):
                parts.part_of(folder.name, "all")
        else:
            assert parts.part_of(folder.name, folder.name) in range(4)


def test_every_note_of_a_project_can_be_stored(module: Callable[[str], ModuleType]) -> None:
    """A note with a field that no memory may have would be left out, and its questions would have no answer."""
    sets, notes = module("sets"), Path(module("parts").FILE).with_name("notes")
    folders = [folder for folder in sorted(notes.iterdir()) if folder.is_dir()]
    for row in (row for folder in folders for row in sets.rows_of(folder / "corpus.jsonl")):
        sets.draft_of(row)
    assert len(folders) == 47
