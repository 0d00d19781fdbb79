"""Fitting the adapter of the embedding model: it learns what is asked, and what is written is what was fitted."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from evaluation.sets import draft_of, load, rows_of
from recollect.engines.embedding.tokens import Tokens
from recollect.engines.late_interaction import pack, similarity
from recollect.errors import InvalidInput
from training import adapter, mix, model, parts
from training.base import TOKENIZER, base_folder
from training.evidence import DATA
from training.pack import pack as write_pack

KEPT_APART = {"vantage", "orchard", "meridian", "emberfall", "wardline"}
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
def place(tmp_path: Path) -> Path:
    """Return a folder in which two sets of ten memories are packed, with the base as its own teacher.

    Each of three questions has one answer.
    """
    for name, notes in NOTES.items():
        folder = tmp_path / name
        folder.mkdir()
        texts = [*notes, *(f"{number}. Lunch is at {number}." for number in range(7))]
        rows = [json.dumps({"id": f"m{number}", "text": text}) for number, text in enumerate(texts)]
        asked = [json.dumps({"id": f"q{number}", "text": text}) for number, text in enumerate(ASKED[name])]
        (folder / "corpus.jsonl").write_text("\n".join(rows), encoding="utf-8")
        (folder / "queries.jsonl").write_text("\n".join(asked), encoding="utf-8")
        (folder / "qrels.tsv").write_text("".join(f"q{one}\tm{one}\t1\n" for one in range(3)), encoding="utf-8")
    base = base_folder(None)
    write_pack(load([tmp_path / name for name in NOTES]), tmp_path / "packed", base, base)
    return tmp_path / "packed"


def test_the_loss_falls_and_the_base_stays(place: Path) -> None:
    """Some rounds bring what answers nearer; the weights of the base are not touched."""
    texts = adapter.Pack(place)
    before = adapter.Encoder(place, texts, 4)
    some = adapter.hard(before, texts.groups)
    encoder = adapter.fit(place, adapter.Given(rate=3e-3, rank=4, rounds=6))
    first, last = (float(adapter.loss_of(one, some, random.Random(1)).detach()) for one in (before, encoder))
    assert last < first
    assert len(encoder.layers) == 36
    fitted = dict(encoder.model.named_parameters())
    for name, one in before.model.named_parameters():
        assert name.endswith((".up", ".down")) or torch.equal(fitted[name], one), name


def test_a_question_sees_what_looks_alike_and_no_answer_of_its_own(place: Path) -> None:
    """Of each question the answer is known, and what stands beside it is of the same set and no answer."""
    texts = adapter.Pack(place)
    assert [(one.name, one.part, len(one.questions)) for one in texts.groups] == [
        ("terrane/all", 0, 3),
        ("lumen/all", 1, 3),
    ]
    found = adapter.hard(adapter.Encoder(place, texts, 4), texts.groups)
    assert len(found) == 6
    for one in found:
        group = texts.groups[one.group]
        assert set(one.right) == one.own
        assert not one.own.intersection(one.alike)
        assert {text for memory in group.memories for text in memory}.issuperset(one.alike)
    assert sorted(one.text for step in adapter.steps(found, random.Random(1)) for one in step) == sorted(
        one.text for one in found
    )


def test_late_interaction_is_that_of_recall(place: Path) -> None:
    """What is learnt by is what recall compares: a question's tokens with the signs of the stored ones."""
    texts = adapter.Pack(place)
    encoder = adapter.Encoder(place, texts, 4)
    group = texts.groups[0]
    asked = np.array([text for text, _ in group.questions])
    stored = np.array([memory[0] for memory in group.memories])
    with torch.no_grad():
        questions, memories = encoder.read(asked), encoder.read(stored)
        plain, rare = questions.late(memories)
    scores = adapter.Library(encoder, np.concatenate([asked, stored])).compare(asked, stored)
    packed = [pack(memories.tokens[row][memories.plain[row] > 0].numpy()) for row in range(len(stored))]
    for row in range(len(asked)):
        telling = questions.plain[row] > 0
        near = similarity(questions.tokens[row][telling].numpy(), packed)
        for place_of, weights, found in ((1, questions.plain, plain), (2, questions.rare, rare)):
            wanted = near @ weights[row][telling].numpy()
            np.testing.assert_allclose(found[row].numpy(), wanted, atol=0.01)  # bfloat16 on the way
            np.testing.assert_allclose(scores[row, :, place_of].numpy(), wanted, atol=0.01)
    np.testing.assert_allclose(scores[:, :, 0].numpy(), (questions.vectors @ memories.vectors.T).numpy(), atol=0.01)


def test_what_is_written_gives_the_same_vectors(place: Path, tmp_path: Path) -> None:
    """The base with the adapter added to its weights gives the vectors that the fitted encoder gives."""
    torch.manual_seed(3)
    texts = adapter.Pack(place)
    encoder = adapter.Encoder(place, texts, 4)
    stored = np.array([memory[0] for memory in texts.groups[0].memories[:3]])
    before = encoder.read(stored).vectors.detach().numpy()
    for layer in encoder.layers.values():
        torch.nn.init.normal_(layer.up, std=0.3)
    wanted = encoder.read(stored).vectors.detach().numpy()
    adapter.write(encoder.layers, tmp_path / "ours.safetensors")
    merged = model.adapted(base_folder(None), tmp_path / "ours.safetensors")
    tokens = Tokens.read(base_folder(None) / TOKENIZER).tokenized(NOTES["terrane"], 256)
    for text, other, vector in zip(tokens, before, wanted, strict=True):
        ids = torch.tensor([text.ids])
        [one], _ = merged(ids, torch.ones_like(ids))
        assert float(one.detach().numpy() @ vector) > 0.999
        assert float(one.detach().numpy() @ other) < 0.98


def test_a_mix_changes_the_weights_by_the_shares(tmp_path: Path) -> None:
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
    found = mix.mixed([(tmp_path / "0.safetensors", 0.5), (tmp_path / "1.safetensors", 0.7)], 4)
    shares = zip(adapters, (0.5, 0.7), strict=True)
    wanted = sum(share * (one["layer.up"].astype(float) @ one["layer.down"].astype(float)) for one, share in shares)
    np.testing.assert_allclose(found["layer.up"].astype(float) @ found["layer.down"].astype(float), wanted, atol=0.01)
    assert found["layer.up"].shape == (6, 4)
    assert found["layer.down"].dtype == np.float16


def test_every_project_that_trains_has_a_part() -> None:
    """All projects of notes that train are in a part; those kept apart are unknown, and so refused."""
    folders = sorted(folder.name for folder in (DATA / "notes").iterdir() if folder.is_dir())
    assert len(folders) == 42
    assert all(parts.part_of(name, name) in range(4) for name in folders)
    for name in KEPT_APART:
        with pytest.raises(InvalidInput, match=name):
            parts.part_of(name, "all")


def test_every_note_of_a_project_can_be_stored() -> None:
    """A note with a field that no memory may have would be left out, and its questions would have no answer."""
    apart = [folder for folder in (DATA.parents[1] / "evaluation/data/notes").iterdir() if folder.is_dir()]
    assert {folder.name for folder in apart} == KEPT_APART
    for folder in [*apart, *(DATA / "notes").glob("*/")]:
        for row in rows_of(folder / "corpus.jsonl"):
            draft_of(row)
