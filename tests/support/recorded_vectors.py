"""Vectors of the default model, as the machine that made it computed them.

After a change of the model, `python tests/support/recorded_vectors.py` writes them anew for the same texts.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recollect.engines.embedder import Matrix

FILE = Path(__file__).parents[1] / "engines" / "recorded_vectors.jsonl"
KIND = "<f2"  # float16


def read() -> tuple[list[str], Matrix]:
    """Return the texts and a unit row of each: float32[n, d]."""
    lines = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
    rows = [np.frombuffer(base64.b64decode(one["vector"]), dtype=KIND) for one in lines]
    return [one["text"] for one in lines], np.vstack(rows).astype(np.float32)


def write(texts: list[str]) -> None:
    """Write the vectors that this machine computes."""
    from recollect.engines.embedding import open_embedder

    with FILE.open("w", encoding="utf-8") as file:
        for text, one in zip(texts, open_embedder("notes-MiniLM-L6-v2", None).read(texts), strict=True):
            vector = base64.b64encode(one.vector.astype(KIND).tobytes()).decode()
            file.write(json.dumps({"text": text, "vector": vector}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write(read()[0])
