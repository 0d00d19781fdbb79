"""What the engines promise: embedding, fusion of signals, and the optional skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from recollect.domain.enums import Choice, Reason
from recollect.domain.results import Entity
from recollect.domain.search import ModelCard, QuerySignals, Signals
from recollect.ports.chat import Chat

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]  # float32[d], unit length
    Matrix: TypeAlias = NDArray[np.float32]  # float32[n, d], unit rows
    Weights: TypeAlias = NDArray[np.float32] | Sequence[float]  # one per row of a matrix, 1 in sum


Triple: TypeAlias = tuple[str, str, str]
"""A fact: subject, predicate, object."""


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
        """Return what is known of the model: its id, dimensions, limits and thresholds."""

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[TokenEmbeddings]:
        """Return the vector and the token embeddings of each text, in order."""

    def queries_first(self) -> AbstractContextManager[None]:
        """Hold up the embedding of documents, whose batches would slow a query down, until the block ends."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets (start, end) of every token of `text`, uncut, without special tokens."""

    def counter(self) -> Callable[[str], int] | None:
        """Return a function that counts the tokens of a text, or None where that cannot be had without loading."""


class Fusion(Protocol):
    """The learned fusion: from the signals of the candidates to how likely each candidate answers the query (0–1)."""

    def matches(self, found: Mapping[int, Signals], query: QuerySignals) -> dict[int, float]:
        """Return for each candidate how likely it answers the query, 0–1."""


class Rerank(Loadable, Protocol):
    """A second, closer look at the best matches of a query."""

    @property
    def model(self) -> str:
        """Return the model's name as it was configured."""

    @property
    def top(self) -> int:
        """Return how many of the best matches it may be asked about at once."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return how relevant each of `texts` is to `query`, 0–1, in their order.

        Loads the model when nobody has. Raises `ModelUnusable` when there are no scores to be had.
        """


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of something new, which of the old texts (from 0, nearest first) that is about, and why."""

    choice: Choice
    which: int = 0
    reason: Reason = Reason.UNSURE


class Reconcile(Protocol):
    """A judge of what becomes of something new that resembles what is stored."""

    def choose(self, new: str, old: Sequence[str]) -> Judgement:
        """Return the choice, which of `old` (nearest first) it is about, and why.

        Raises `ModelUnusable` when there is no judgement to be had.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What somebody says of a text: its heading, layers, and what it states and names. What is empty was not said."""

    title: str = ""
    abstract: str = ""
    overview: str = ""
    facts: tuple[Triple, ...] = ()
    entities: tuple[Entity, ...] = ()


class Describe(Protocol):
    """A writer who says in fewer words what texts say. What it writes is to be checked against them.

    Each method raises `ModelUnusable` where there is no description to be had.
    """

    def text(self, content: str) -> Description:
        """Return the layers, facts and entities of one text."""

    def together(self, contents: Sequence[str]) -> Description:
        """Return the layers of a summary of texts about the same."""

    def session(self, contents: Sequence[str]) -> tuple[Description, dict[int, Description]]:
        """Return the layers of a summary of notes, and by a note's number (from 0) its title, facts and entities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The skills that this store was opened with, None for each that is off; and whether strangers share it."""

    rerank: Rerank | None = None
    reconcile: Reconcile | None = None
    describe: Describe | None = None
    chat: Chat | None = None
    shared: bool = False
