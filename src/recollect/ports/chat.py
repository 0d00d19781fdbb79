"""What a language model promises: a typed answer to a task about a text, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel

A = TypeVar("A", bound=BaseModel)


class Chat(Protocol):
    """A language model. The text is data to it; what it answers is checked, and is never a command to anybody."""

    @property
    def model(self) -> str:
        """Return the model's name as it was configured."""

    def ask(self, task: str, text: object, answer: type[A], *, most: int) -> A:
        """Return the answer to `task` about `text`, of at most `most` tokens.

        A `text` that is a list or a mapping is said as JSON. Secrets are masked in each text before that.

        Raises `ModelUnusable` where there is none to be had: the server is away, slow or over its budget, or what it
        says does not have the form of `answer`.
        """

    def reach(self) -> None:
        """Raise `ModelUnusable` where its server takes no connection; nothing is asked."""

    def used(self) -> TokenUse:
        """Return what was used of the budget."""


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


@dataclass(frozen=True, slots=True)
class Question:
    """A question for the model of an MCP client: its digest, what is said, the most tokens and seconds of an answer."""

    digest: str
    instructions: str
    text: str
    most: int
    seconds: float


class Wanted(BaseException):
    """An operation was broken off, before it wrote anything, as it wants the answer of its client's own model.

    Run again with that answer in `CLIENT_ANSWERS`, it goes on. It is no `Exception`, so that nothing takes it for one.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(question.digest)
        self.question = question


CLIENT_ANSWERS: ContextVar[Mapping[str, str] | None] = ContextVar("client_answers", default=None)
"""What the client's own model has said, by the digest of each question; None where no client offers a model."""
