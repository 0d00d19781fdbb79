"""What a language model promises: a typed answer to a task about a text, within a budget of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel

A = TypeVar("A", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Reserved:
    """Tokens that were taken out of the budget before asking, and the hour and day (UTC) that they count for."""

    tokens: int
    hour: str
    day: str


@dataclass(frozen=True, slots=True)
class TokenUse:
    """The tokens of the present hour and day (UTC), their limits, and the questions and tokens there ever were."""

    hour: int
    day: int
    most_hour: int
    most_day: int
    questions: int
    tokens: int


class TokenLedger(Protocol):
    """The budget of all processes that share a store; it outlives them."""

    def reserve(self, tokens: int) -> Reserved | None:
        """Take tokens out of the budget of this hour and day; None where either has fewer left."""

    def settle(self, reserved: Reserved, used: int) -> None:
        """Put what was used in the place of what was reserved."""

    def used(self) -> TokenUse:
        """Return what was used so far, what is reserved included."""
