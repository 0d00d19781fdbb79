"""Late interaction over tokens kept as sign bits: MaxSim of ColBERT (Khattab and Zaharia 2020) with 1-bit documents.

Engines pack what a model read and wiring hands the comparison to the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.engines.embedder import TokenEmbeddings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.engines.embedder import Matrix, Vector

_LEAST = np.float32(1e-12)
_BLOCK = 4_096  # tokens: what is worked on stays in the processor's caches
_SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * np.float32(2) - np.float32(1)
"""The signs, 1 or -1, that each value of a byte stands for: float32[256, 8]."""


def pack(tokens: Matrix) -> bytes:
    """Keep of each of `tokens`, float32[t, d], the sign of every dimension: t rows of ceil(d / 8) bytes.

    A token is then the unit vector sign(token) / sqrt(d); what is lost is small in many dimensions, since a query's
    tokens keep their float32 (asymmetric 1-bit quantisation).
    """
    return np.packbits(tokens > 0, axis=1).tobytes()


def make_reading(vector: Vector, states: Matrix, spans: Sequence[tuple[int, int]]) -> TokenEmbeddings:
    """Bring the last hidden `states`, float32[t, d], of a text's tokens to unit length and pack their signs."""
    norms = np.linalg.norm(states, axis=1, keepdims=True)
    tokens = states / np.maximum(norms, _LEAST)
    return TokenEmbeddings(vector, tokens, tuple(spans), pack(tokens))


def similarity(query: Matrix, packed: Sequence[bytes]) -> Matrix:
    """Return for each chunk and each query token how near the chunk's nearest token is: float32[chunks, q], -1–1.

    `query` is float32[q, d] in unit rows; each of `packed` is what `pack` made of a chunk with at least one token.
    """
    tables = _tables(query)
    signs = np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(-1, len(tables))
    near = np.empty((len(signs), len(query)), dtype=np.float32)
    if not len(signs):
        return near
    for first in range(0, len(signs), _BLOCK):
        total = near[first : first + _BLOCK]
        _look_up(tables, signs[first : first + _BLOCK], total)
    starts = np.cumsum([0, *map(len, packed[:-1])]) // len(tables)
    best: Matrix = np.maximum.reduceat(near, starts, axis=0)
    return best


def _tables(query: Matrix) -> NDArray[np.float32]:
    """Return the part of each query token's product that each value of each byte adds: float32[bytes, 256, q].

    Looking up whole bytes takes a third of the time of unpacking the bits and multiplying, and no second thread.
    """
    width = (query.shape[1] + 7) // 8
    scaled = np.zeros((width * 8, len(query)), dtype=np.float32)
    scaled[: query.shape[1]] = query.T / np.sqrt(np.float32(query.shape[1]))
    made: NDArray[np.float32] = np.matmul(_SIGNS, scaled.reshape(width, 8, -1))
    return made


def _look_up(tables: NDArray[np.float32], signs: NDArray[np.uint8], total: Matrix) -> None:
    """Write into `total`, float32[t, q], the products of t tokens."""
    places = signs.T.astype(np.intp)
    added = np.empty_like(total)
    total[:] = 0
    for table, values in zip(tables, places, strict=True):
        table.take(values, axis=0, out=added, mode="clip")  # any other mode copies `out` first
        total += added
