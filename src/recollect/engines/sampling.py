"""The language model of the MCP client that calls: `sampling/createMessage` of the protocol, without a key or a server.

An operation that has a question is broken off and run again with the answer, so that no thread waits for a client and
a server that keeps nothing between two messages can ask as well.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from typing import Final, TypeVar

from pydantic import BaseModel

from recollect.engines.chat import instructions_of, read, reserve, said_of
from recollect.errors import ModelUnusable
from recollect.ports.chat import CLIENT_ANSWERS, Question, TokenLedger, TokenUse, Wanted

A = TypeVar("A", bound=BaseModel)

NAME: Final = "sampling"
_RESTING: Final = 60.0  # seconds without a question after one that got no answer


class SampledChat:
    """The `Chat` port over the client's own model; what a question may cost is taken out of the budget and stays so."""

    model: Final = NAME

    def __init__(self, ledger: TokenLedger, seconds: float) -> None:
        self._ledger = ledger
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asked: dict[str, float] = {}
        self._rests_until = 0.0

    def reach(self) -> None:
        """Do nothing: the client that calls is there."""

    def used(self) -> TokenUse:
        """Return what was used of the budget."""
        return self._ledger.used()

    def ask(self, task: str, text: object, answer: type[A], *, most: int) -> A:
        """Return the answer that the client has given; raise `Wanted` for one that it has not been asked for yet.

        Raises `ModelUnusable` where the operation comes from no client with a model, or where the answer is none.
        """
        answers = CLIENT_ANSWERS.get()
        if answers is None:
            raise ModelUnusable("Nobody is there to ask: no MCP client with the capability `sampling` has called.")
        instructions, said = instructions_of(task, answer), said_of(text)
        digest = hashlib.sha256(json.dumps([instructions, said]).encode()).hexdigest()
        if digest not in answers:
            self._begin(digest)
            reserve(self._ledger, instructions, said, most)
            raise Wanted(Question(digest, instructions, said, most, self._seconds))
        with self._lock:
            self._asked.pop(digest, None)
        if (value := read(answer, answers[digest])) is None:
            if not answers[digest]:
                self._rests_until = time.monotonic() + _RESTING
            raise ModelUnusable("The model of the MCP client gave no answer of the form it was asked for.")
        return value

    def _begin(self, digest: str) -> None:
        """Note that a question goes out; raise `ModelUnusable` where the same one went out and nobody answered."""
        now = time.monotonic()
        with self._lock:
            self._asked = {one: at for one, at in self._asked.items() if now - at < _RESTING}
            if now < self._rests_until or digest in self._asked:
                raise ModelUnusable("The model of the MCP client did not answer a moment ago.")
            self._asked[digest] = now
