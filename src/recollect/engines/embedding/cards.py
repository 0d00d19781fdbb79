"""Model cards: finds and reads `card.toml`, what is known of an embedding model before anything is loaded.

A card is looked up by its folder's name, by its id, or in a local model folder. This room never opens weights.
"""

from __future__ import annotations

import tomllib
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from recollect.domain.search import ModelCard
from recollect.errors import ModelUnusable

FILE_NAME: Final = "card.toml"
_CHECKOUT: Final = Path(__file__).resolve().parents[4]
_CARD: Final = TypeAdapter(ModelCard)


def roots(models_dir: Path | None) -> list[Path]:
    """Return the folders that hold one folder per model, first wins: the caller's, the wheel's, the checkout's."""
    packaged = Path(str(files("recollect"))) / "models"
    own = [] if models_dir is None else [models_dir]
    return [root for root in (*own, packaged, _CHECKOUT / "models") if root.is_dir()]


def find_card(model: str, models_dir: Path | None = None) -> ModelCard | None:
    """Return the card of a folder name, an id or a local model folder; None when nobody wrote one.

    Raises `ModelUnusable` when a card is there but cannot be read.
    """
    for path in [path for root in roots(models_dir) for path in sorted(root.glob(f"*/{FILE_NAME}"))]:
        card = read_card(path)
        if model in (card.id, path.parent.name):
            return card
    own = Path(model).expanduser() / FILE_NAME
    return read_card(own) if own.is_file() else None


def read_card(path: Path) -> ModelCard:
    """Read one `card.toml`; raises `ModelUnusable` naming the file and the field that is wrong."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        given |= given.pop("thresholds", {})
        card = _CARD.validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ModelUnusable(f"The model card {path} is wrong at `{field}`: {first['msg']}.") from error
    except (OSError, ValueError, TypeError) as error:
        raise ModelUnusable(f"The model card {path} cannot be read: {error}.") from error
    unknown = given.keys() - {field.name for field in fields(ModelCard)}
    if unknown:
        raise ModelUnusable(f"The model card {path} has unknown fields: {', '.join(sorted(unknown))}.")
    return card
