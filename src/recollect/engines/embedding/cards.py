"""Model cards: finds and reads `card.toml`, which says what is known of an embedding model before it is loaded.

A card lies in the folder of its model. That folder holds the model's files too, or the card's id says which model of
the Hugging Face hub it describes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from recollect.domain.search import ModelCard
from recollect.errors import ModelUnusable

CARD_FILE: Final = "card.toml"
_CHECKOUT: Final = Path(__file__).resolve().parents[4]
_CARD: Final = TypeAdapter(ModelCard)


class ModelFolder(NamedTuple):
    """The folder of a model and the card in it."""

    path: Path
    card: ModelCard

    def file(self, name: str) -> Path | None:
        """Return the file of this name beside the card, or None."""
        path = self.path / name
        return path if path.is_file() else None


def find_model(model: str, models_dir: Path | None = None) -> ModelFolder | None:
    """Return the folder of the model with this folder name, id or path; None where no card describes the model.

    Raises `ModelUnusable` when there is a card that cannot be read.
    """
    for path in _card_files(models_dir):
        card = read_card(path)
        if model in (card.id, path.parent.name):
            return ModelFolder(path.parent, card)
    own = Path(model).expanduser() / CARD_FILE
    return ModelFolder(own.parent, read_card(own)) if own.is_file() else None


def known_models(models_dir: Path | None = None) -> list[str]:
    """Return the folder names of all models that have a card, in order."""
    return sorted({path.parent.name for path in _card_files(models_dir)})


def model_roots(models_dir: Path | None) -> list[Path]:
    """Return the folders that hold a folder for each model; the first that has a model wins.

    They are the caller's own folder, that of the installed package and that of a checkout.
    """
    packaged = Path(str(files("recollect"))) / "models"
    own = [] if models_dir is None else [models_dir]
    return [root for root in (*own, packaged, _CHECKOUT / "models") if root.is_dir()]


def read_card(path: Path) -> ModelCard:
    """Read one `card.toml`; raises `ModelUnusable` naming the file and the field that is wrong."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        values |= values.pop("thresholds", {})
        card = _CARD.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ModelUnusable(f"The model card {path} is wrong at `{field}`: {first['msg']}.") from error
    except (OSError, ValueError, TypeError) as error:
        raise ModelUnusable(f"The model card {path} cannot be read: {error}.") from error
    unknown = values.keys() - {field.name for field in fields(ModelCard)}
    if unknown:
        raise ModelUnusable(f"The model card {path} has unknown fields: {', '.join(sorted(unknown))}.")
    return card


def _card_files(models_dir: Path | None) -> Iterator[Path]:
    for root in model_roots(models_dir):
        yield from sorted(root.glob(f"*/{CARD_FILE}"))
