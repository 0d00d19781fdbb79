"""What the store promises of sessions: their state and their observations, each user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from recollect.domain.lifecycle import Decision, Observation, Session
from recollect.domain.requests import Caller


class Sessions(Protocol):
    """The sessions of coding agents. A session is seen by its user alone, in its project."""

    def begin(self, caller: Caller, session_id: str, agent: str, at: datetime, *, new: bool = True) -> Session:
        """Return the session of this name; one that had ended goes on. Where there is none it is made, if `new`."""

    def find(self, caller: Caller, beginning: str | None) -> Session | None:
        """Return the latest session whose name is or begins so, None where there is none; without one the latest."""

    def save(
        self,
        session: Session,
        observations: Sequence[Observation] = (),
        state_after: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        """Write the state and times of a session and add observations, numbered on, in one transaction.

        `state_after` makes the state to be written of the one that is stored by now; it must be quick. What names a
        memory of the session's project that is gone by now is kept without words.
        """

    def mask(self, session: Session, masked: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Write what `masked` makes of the state; an event that is under way takes up none of the words before it."""

    def listed(self, caller: Caller, limit: int, offset: int) -> tuple[list[Session], int]:
        """Return a page of the sessions, the latest first, and how many there are."""

    def observations(self, session: Session) -> list[Observation]:
        """Return the observations of a session in order."""

    def decide(self, session: Session, number: int, decision: Decision, reason: str, memory_id: int | None) -> None:
        """Write another decision over that of an observation; one that is kept keeps no draft."""

    def rewrite(self, session: Session, number: int, rewritten: Callable[[Observation], Observation]) -> None:
        """Write over the texts of an observation what `rewritten` makes of those that it has by now."""

    def remove_before(self, at: datetime) -> int:
        """Remove the sessions that were last heard of before `at`, whoever's they are; return how many.

        Those that somebody else removes or goes on with at this moment are left to them.
        """
