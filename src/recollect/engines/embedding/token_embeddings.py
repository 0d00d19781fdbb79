"""Makes a reading of what a model gave for one text, whichever library ran it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from recollect.engines.late_interaction import pack
from recollect.ports import TokenEmbeddings

if TYPE_CHECKING:
    from recollect.ports import Matrix, Vector

_LEAST: Final = np.float32(1e-12)


def make_reading(vector: Vector, states: Matrix, spans: Sequence[tuple[int, int]]) -> TokenEmbeddings:
    """Bring the last hidden `states`, float32[t, d], of a text's tokens to unit length and pack their signs."""
    norms = np.linalg.norm(states, axis=1, keepdims=True)
    tokens = states / np.maximum(norms, _LEAST)
    return TokenEmbeddings(vector, tokens, tuple(spans), pack(tokens))
