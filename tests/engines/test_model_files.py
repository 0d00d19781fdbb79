"""Model cards and the files beside them: what is shipped, what is refused, and which library serves a model."""

from __future__ import annotations

import hashlib
import shutil
import string
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from places import DEFAULT_MODEL, MODELS, ROOT
from recollect.domain.search import ModelCard
from recollect.engines.embedding import (
    ModelFolder,
    OnnxEmbedder,
    SentenceTransformersEmbedder,
    find_model,
    open_embedder,
    open_service,
)
from recollect.engines.embedding.cards import read_card
from recollect.errors import ModelUnusable
from second_model import second_model
from tiny_model import write_card

pytestmark = pytest.mark.slow

NAME = DEFAULT_MODEL.name
FILES = {"model.onnx": "sha256", "tokenizer.json": "tokenizer_sha256"}
"""The files of a model that onnxruntime serves, and which field of the card has the hash of each."""


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hex digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def copied(shipped: ModelFolder, tmp_path: Path) -> ModelFolder:
    """Return a copy of the default model that a test may damage."""
    return shipped._replace(path=Path(shutil.copytree(shipped.path, tmp_path / "models" / NAME)))


# Cards


@pytest.mark.parametrize("name", sorted(path.parent.name for path in MODELS.glob("*/card.toml")))
def test_a_card_is_found_by_folder_name_and_by_id(name: str) -> None:
    """Each card is found by its folder's name, which ends its id, and by its id; it pins the model to one version."""
    found = find_model(name)
    assert found is not None
    assert found == find_model(found.card.id)
    assert (found.path, found.card.name) == (MODELS / name, name)
    pins = [found.card.sha256, found.card.tokenizer_sha256] if found.card.sha256 else [found.card.revision]
    assert {len(pin) for pin in pins} == {64 if found.card.sha256 else 40}
    assert set("".join(pins)) <= set(string.hexdigits.lower())


def test_the_default_card_is_whole(card: ModelCard) -> None:
    """The default model's card has its limits, its licence and its thresholds."""
    assert (card.id, card.dimensions, card.max_tokens, card.pooling) == (f"recollect/{NAME}", 384, 256, "mean")
    assert (card.licence, card.query_prompt, card.document_prompt) == ("Apache-2.0", "", "")
    assert 0 < card.floor < card.subject < card.near < card.similar < 1


def test_own_models_folder_comes_first(tmp_path: Path) -> None:
    """A card in the given models folder wins over the packaged one."""
    write_card(tmp_path / NAME, revision="mine")
    found = find_model(NAME, tmp_path)
    assert found is not None
    assert (found.path, found.card.revision) == (tmp_path / NAME, "mine")


def test_a_card_is_found_by_the_path_of_its_folder(tmp_path: Path) -> None:
    """A folder that is named by its path may hold a card too."""
    write_card(tmp_path / "ours")
    found = find_model(str(tmp_path / "ours"))
    assert found is not None
    assert found.path == tmp_path / "ours"


def test_an_unknown_model_has_no_card() -> None:
    """A model that nobody described has no card, and that is no error."""
    assert find_model("acme/nothing") is None


@pytest.mark.parametrize("line", ["floor = 'high'", "querry_prompt = 'q: '", "id = [", "thresholds = 3"])
def test_a_wrong_card_is_refused(tmp_path: Path, line: str) -> None:
    """A card with a wrong value, an unknown field or broken TOML is refused by name."""
    write_card(tmp_path)
    path = tmp_path / "card.toml"
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    with pytest.raises(ModelUnusable, match=r"card\.toml"):
        read_card(path)


def test_an_embedding_server_needs_a_card() -> None:
    """Without a card nobody would know how many dimensions and tokens a served model has."""
    with pytest.raises(ModelUnusable, match=r"`acme/nothing` has no card.*models/README\.md"):
        open_service("acme/nothing", None, "http://127.0.0.1:9")


# Files


def test_the_shipped_files_are_those_of_the_card(card: ModelCard) -> None:
    """The default model's files have the hashes of its card."""
    assert {field: digest(DEFAULT_MODEL / name) for name, field in FILES.items()} == {
        field: getattr(card, field) for field in FILES.values()
    }


def test_every_file_of_a_model_is_in_the_wheel() -> None:
    """Whoever installs Recollect has what this checkout has of every model: cards, fitted files, the default model."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    known = {path.relative_to(ROOT).as_posix() for path in MODELS.glob("*/*")}
    assert {f"models/{NAME}/{name}" for name in (*FILES, "LICENSE", "NOTICE.md", "card.toml")} <= known
    assert included == {path: f"recollect/{path}" for path in known}


@pytest.mark.parametrize("name", FILES)
def test_an_altered_file_is_refused(copied: ModelFolder, name: str) -> None:
    """One changed byte stops the model; one sentence names the file, both hashes and what to do."""
    path = copied.path / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ModelUnusable) as caught:
        open_embedder(NAME, copied.path.parent).warm()
    expected = f"expected sha256 {getattr(copied.card, FILES[name])}, found {digest(path)}. Install Recollect again."
    assert str(caught.value) == f"The model file {path} is not the one of its model card: {expected}"


@pytest.mark.parametrize("name", FILES)
def test_an_absent_file_is_refused(copied: ModelFolder, name: str) -> None:
    """A file that is missing is named, and no other library is asked for the model."""
    (copied.path / name).unlink()
    with pytest.raises(ModelUnusable) as caught:
        open_embedder(NAME, copied.path.parent).warm()
    assert str(caught.value) == f"The model file {copied.path / name} cannot be read: No such file or directory."


@pytest.mark.parametrize("field", FILES.values())
def test_a_card_without_a_hash_is_no_way_around_it(shipped: ModelFolder, field: str) -> None:
    """A model.onnx is read only where its card says what it and its tokenizer must be."""
    unpinned = shipped._replace(card=replace(shipped.card, **{field: ""}))
    with pytest.raises(ModelUnusable, match="must state the sha256 of"):
        OnnxEmbedder(unpinned).warm()


@pytest.mark.parametrize("content", [b"", b"not a graph at all", None], ids=["empty", "garbage", "half"])
def test_a_broken_graph_is_refused(copied: ModelFolder, content: bytes | None) -> None:
    """A file that onnxruntime cannot read is one sentence, also where the card has its hash."""
    path = copied.path / "model.onnx"
    path.write_bytes(path.read_bytes()[:10_000_000] if content is None else content)
    with pytest.raises(ModelUnusable, match=r"model\.onnx cannot be loaded: "):
        OnnxEmbedder(copied._replace(card=replace(copied.card, sha256=digest(path)))).warm()


@pytest.mark.parametrize("content", ["", "{}", "[1]", "no json at all"])
def test_a_broken_tokenizer_is_refused(copied: ModelFolder, content: str) -> None:
    """A tokenizer.json that defines none is one sentence, and nothing counts tokens by it."""
    path = copied.path / "tokenizer.json"
    path.write_text(content, encoding="utf-8")
    opened = OnnxEmbedder(copied._replace(card=replace(copied.card, tokenizer_sha256=digest(path))))
    with pytest.raises(ModelUnusable, match=r"tokenizer\.json (cannot be read|is not a tokenizer definition)"):
        opened.warm()
    assert opened.counter() is None


# Which library serves


def test_a_graph_beside_a_card_is_served_by_onnxruntime(tmp_path: Path) -> None:
    """A model of one's own with a graph needs no other library, and its files may be links."""
    opened = open_embedder("prompted", second_model(tmp_path))
    assert isinstance(opened, OnnxEmbedder)
    assert opened.read(["fox"])[0].vector.shape == (384,)


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "all-mpnet-base-v2", "acme/anything", "acme/anything@main"])
def test_any_other_model_is_served_by_sentence_transformers(model: str) -> None:
    """A card without a graph, and a model without a card, need sentence-transformers."""
    assert isinstance(open_embedder(model, None), SentenceTransformersEmbedder)
