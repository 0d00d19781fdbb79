"""Typed, optional skills: what a store does better with than without, and does without wherever one is absent.

A skill says itself whether it is ready, and why not; whoever uses one goes on without it and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recollect.domain import Choice


class Rerank(Protocol):
    """A second, closer look at the best matches of a query."""

    @property
    def model(self) -> str:
        """Return the model's name as it was configured."""

    @property
    def top(self) -> int:
        """Return how many of the best matches it may be asked about at once."""

    @property
    def ready(self) -> bool:
        """Say whether the model is loaded, so that `scores` answers at once."""

    @property
    def failure(self) -> str:
        """Return why the model could not be loaded in the background, or an empty string."""

    def wait(self, seconds: float) -> bool:
        """Wait at most so long for the loading under way, if any, to end; say whether it has."""

    def warm(self) -> None:
        """Load the model and wait for it; raises `ModelUnusable` when that cannot be done."""

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return how relevant each of `texts` is to `query`, 0–1, in their order.

        Loads the model when nobody has. Raises `ModelUnusable` when there are no scores to be had.
        """


class Reconcile(Protocol):
    """A judge of what becomes of something new that resembles what is stored."""

    def choose(self, new: str, old: Sequence[str]) -> tuple[Choice, int]:
        """Return the choice, and which of `old` (nearest first) it is about.

        Raises `ModelUnusable` when there is no judgement to be had.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The skills that this store was opened with; None for each that is off."""

    rerank: Rerank | None = None
    reconcile: Reconcile | None = None
