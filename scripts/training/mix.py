"""Mix adapters of one base: each changes the weights by its share, and the result is an adapter again.

Adapters that were fitted on different texts err differently, so a mix is better on what neither has seen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from safetensors.numpy import load_file, save_file

out = Console(width=160)


def mixed(adapters: list[tuple[Path, float]], rank: int) -> dict[str, np.ndarray]:
    """Return the matrices of the sum of all changes, each layer's cut to its `rank` greatest directions."""
    read = [(load_file(path), share) for path, share in adapters]
    found: dict[str, np.ndarray] = {}
    for name in sorted({key.rpartition(".")[0] for key in read[0][0]}):
        parts = [share * _product(matrices, name) for matrices, share in read]
        left, sizes, right = np.linalg.svd(np.sum(parts, axis=0), full_matrices=False)
        half = np.sqrt(sizes[:rank])
        found[f"{name}.up"] = np.ascontiguousarray(left[:, :rank] * half, dtype=np.float16)
        found[f"{name}.down"] = np.ascontiguousarray(half[:, None] * right[:rank], dtype=np.float16)
    return found


def _product(matrices: dict[str, np.ndarray], name: str) -> np.ndarray:
    up, down = (matrices[f"{name}.{side}"].astype(np.float32) for side in ("up", "down"))
    product: np.ndarray = up @ down
    return product


def main(
    adapters: Annotated[list[str], typer.Argument(help="FILE=SHARE: an adapter, and how much of its change is taken.")],
    target: Annotated[Path, typer.Option("--out", help="Where the mix goes.")],
    rank: Annotated[int, typer.Option(min=1, help="The smaller side of its matrices.")] = 64,
) -> None:
    """Mix adapters, or weaken one: each changes the weights by its share."""
    pairs = [(Path(name), float(share)) for name, _, share in (one.rpartition("=") for one in adapters)]
    save_file(mixed(pairs, rank), target)
    out.print(f"{target} written: {target.stat().st_size / 1e6:.1f} MB.", soft_wrap=True)
