"""What the store promises of sessions: their state and their observations, each user's own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from recollect.domain.lifecycle import Decision, Observation, Session
from recollect.domain.requests import Caller


class Sessions(Protocol):
    """The sessions of coding agents. A session is seen by its user alone, in its project."""

    def begin(self, caller: Caller, session_id: str, agent: str, at: datetime) -> Session:
        """Return the session of this name, made where there is none; one that had ended goes on."""

    def find(self, caller: Caller, beginning: str | None) -> Session | None:
        """Return the latest session whose name is or begins so, None where there is none; without one the latest."""

    def save(self, session: Session, observations: Sequence[Observation] = ()) -> None:
        """Write the state and times of a session and add observations, numbered on, in one transaction."""

    def listed(self, caller: Caller, limit: int, offset: int) -> tuple[list[Session], int]:
        """Return a page of the sessions, the latest first, and how many there are."""

    def observations(self, session: Session) -> list[Observation]:
        """Return the observations of a session in order."""

    def decide(self, session: Session, number: int, decision: Decision, reason: str, memory_id: int | None) -> None:
        """Write another decision over that of an observation; one that is kept keeps no draft."""

    def rewrite(self, session: Session, observation: Observation) -> None:
        """Write other texts over those of the observation of this number."""

    def remove_before(self, at: datetime) -> int:
        """Remove the sessions that were last heard of before `at`, whoever's they are; return how many."""
