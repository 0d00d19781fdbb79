"""What is answered about what should not be trusted as it is: secrets that a rescan found."""

from __future__ import annotations

from pydantic import computed_field
from pydantic.dataclasses import dataclass

from recollect.domain.answer import LAZY, Answer, Id


@dataclass(frozen=True, config=LAZY)
class StoredSecret(Answer):
    """A stored secret: in which memory, fact or session, in which field, and of which kinds; never its value.

    Of a session the `id` is the number of the observation, 0 for what is kept of all of them.
    """

    what: str
    id: Id
    field: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, config=LAZY)
class Rescanned(Answer):
    """How much was looked at, which secrets are stored, and how much was changed for that."""

    scanned: int
    exposed: tuple[StoredSecret, ...]
    changed: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """Say what was found."""
        looked_at = f"{self.scanned} memories, facts and observations scanned"
        return f"{looked_at}, {len(self.exposed)} secrets found, {self.changed} changed."
