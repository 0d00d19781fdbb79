"""What an embedding model promises, in this process or on a server, and what it makes of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from recollect.domain.search import ModelCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # float32[d], unit length
    Matrix: TypeAlias = NDArray[np.float32]  # float32[n, d], unit rows
    Weights: TypeAlias = NDArray[np.float32] | Sequence[float]  # one per row of a matrix, 1 in sum


@dataclass(frozen=True, slots=True)
class TokenEmbeddings:
    """A text as the embedding model reads it: its vector, and a row per token with the characters it stands for.

    Special tokens and the prompt are left out. `signs` holds the rows' signs packed, as `Chunk` keeps them.
    """

    vector: Vector  # float32[d], unit length
    tokens: Matrix  # float32[t, d], unit rows
    spans: tuple[tuple[int, int], ...]  # t character offsets (start, end) into the text
    signs: bytes = b""  # t rows of ceil(d / 8) bytes


class Loadable(Protocol):
    """A model that takes time to load: at the first need, or in the background."""

    @property
    def ready(self) -> bool:
        """Say whether the model is loaded, so that using it does not wait."""

    @property
    def failure(self) -> str:
        """Return why the last attempt in the background failed, or an empty string."""

    def warm(self) -> None:
        """Load the model and wait for it; raises `ModelUnusable` when that cannot be done."""

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for an attempt in the background to end; return whether none is under way."""

    def begin(self, then: Callable[[], None] = ..., wanted: Callable[[], bool] = ...) -> Callable[[], None]:
        """Announce an attempt in the background, for which `wait` waits, and return the work; `then` is its end.

        The work loads nothing where `wanted` says no when its turn comes.
        """


class Embedder(Loadable, Protocol):
    """The embedding model; a text is cut at the card's `max_tokens`."""

    @property
    def card(self) -> ModelCard:
        """Return the model's card: its id, dimensions, limits and thresholds."""

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[TokenEmbeddings]:
        """Return the vector and the token embeddings of each text, in order."""

    def queries_first(self) -> AbstractContextManager[None]:
        """Hold up the embedding of documents, whose batches would slow a query down, until the block ends."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets (start, end) of every token of `text`, uncut, without special tokens."""

    def counter(self) -> Callable[[str], int] | None:
        """Return a function that counts the tokens of a text, or None where that cannot be had without loading."""
