"""People who leave a deployment, what is kept of them and why: deletions of users, exports, holds and retention."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import Field
from pydantic.dataclasses import dataclass

from recollect.domain import fields
from recollect.domain.answer import LAZY, Answer
from recollect.domain.enums import FactType
from recollect.domain.fields import MAX_DAYS, Request
from recollect.domain.requests import Team
from recollect.errors import InvalidInput

_WHO: Final = "Name of the user"
_HOLD: Final = "Name of the hold"
CHOICES: Final = ("hand_to", "to_team", "keep", "erase")
"""The fields of a deletion that say what becomes of the memories; a request sets a single field of them."""

HoldName = Annotated[fields.CallerName, Field(description=_HOLD)]


class Choice(StrEnum):
    """What becomes of the memories of a user who is deleted."""

    HAND_TO = "hand_to"
    TO_TEAM = "to_team"
    KEEP = "keep"
    ERASE = "erase"


class DeleteUser(Request):
    """A user who is to be deleted, and what becomes of their memories: a single choice of the four is made.

    Personal memories go to a colleague or a team, or are deleted with `keep`, which leaves what they wrote for teams
    and projects. `erase` deletes that too. Private and secret memories, and what sessions noted, are always deleted.
    """

    user: fields.CallerName = Field(description=_WHO)
    hand_to: fields.CallerName | None = Field(default=None, description="User who gets their personal memories")
    to_team: Team | None = Field(default=None, description="Team that gets their personal memories")
    keep: bool = Field(default=False, description="Keep what they wrote for teams and projects; delete all else")
    erase: bool = Field(default=False, description="Delete all that they wrote, also for teams and projects")
    dry_run: bool = Field(default=False, description="Only count what would happen; change nothing")

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if sum(bool(getattr(self, name)) for name in CHOICES) != 1:
            named = ", ".join(f"`{name}`" for name in CHOICES)
            raise InvalidInput("erase", f"Invalid choice: Must be a single option of {named}")
        if self.hand_to == self.user:
            raise InvalidInput("hand_to", f"Invalid hand_to: Must be another user than `{self.user}`")

    @property
    def choice(self) -> Choice:
        """Return the choice that was made."""
        return next(Choice(name) for name in CHOICES if getattr(self, name))

    @property
    def target(self) -> str:
        """Return the user or team that gets the personal memories, an empty text without."""
        return self.hand_to or self.to_team or ""


class ListReceipts(Request):
    """Whose receipts are shown: those of a user who was deleted, or all."""

    user: fields.CallerName | None = Field(default=None, description="Only of this user")


class ExportUser(Request):
    """Whose data is exported, and from where the page before ended."""

    user: fields.CallerName | None = Field(default=None, description="Whose data; default: yours")
    after: Annotated[str, Field(pattern=r"^(account|session|memory|fact|journal):\d{1,10}$")] = Field(
        default="account:0", description="Where the page before ended, as its answer says"
    )


class SetHold(Request):
    """A new legal hold on all that a user wrote, or on a team with its projects, or on a single project.

    Nothing that it covers is deleted for good until it is released.
    """

    hold: HoldName
    user: fields.CallerName | None = Field(default=None, description="All that this user wrote")
    team: Team | None = Field(default=None, description="All memories of this team and its projects")
    project: fields.CallerName | None = Field(default=None, description="Of the team, only this project")
    reason: fields.Line = Field(default="", description="Why, for whoever may see the hold")

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if self.project is not None and self.team is None:
            raise InvalidInput("team", "Missing team: A hold on a project names its team too")
        if (self.user is None) == (self.team is None):
            raise InvalidInput("team", "Invalid team: Name a team, or a `user` in its place, and not both")


class ListHolds(Request):
    """The holds that the caller may see; with `released` also those that ended."""

    released: bool = Field(default=False, description="Also those that were released")


class ReleaseHold(Request):
    """A hold that is to end."""

    hold: HoldName


class RetentionScope(Request):
    """What a rule of retention is about: a team with its projects or a single project, all kinds or a single kind."""

    team: Team = Field(description="Team with its projects")
    project: fields.CallerName | None = Field(default=None, description="Only this project; its rules win")
    fact_type: fields.Kind | None = Field(default=None, description="Only this kind of knowledge, such as event")


class SetRetention(RetentionScope):
    """The days after which memories are removed for good, in place of the former number."""

    days: Annotated[float, Field(ge=0, le=MAX_DAYS, allow_inf_nan=False)] = Field(
        description="Days after the last change; 0 keeps them for good, such as in a single project"
    )
    dry_run: bool = Field(default=False, description="Only count what would be removed now; change nothing")


class ListRetention(Request):
    """Whose rules of retention are listed: those of a team, or of all that the caller belongs to."""

    team: Team | None = Field(default=None, description="Only of this team")


class DropRetention(RetentionScope):
    """A rule of retention that is to end."""


@dataclass(frozen=True, config=LAZY)
class Place(Answer):
    """One place where something of a person may be: what was found and removed there, and what is left.

    `left` is what a look after the erasure found; None where nothing could look.
    """

    place: str
    removed: int
    left: int | None
    note: str = ""


@dataclass(frozen=True, config=LAZY)
class Copy(Answer):
    """A file that may hold what was erased: a backup, or a database that was put aside.

    `holds` is None where the file cannot be read; `until` is when it goes, None where that is not known.
    """

    file: str
    made_at: datetime
    holds: bool | None
    until: datetime | None = None


@dataclass(frozen=True, config=LAZY)
class Receipt(Answer):
    """What the deletion of a user removed, place by place; it is `complete` if a look afterwards found nothing.

    `memories` counts by what became of them: `erased`, `handed_over`, `kept`.
    """

    user: str
    choice: Choice
    target: str
    by: str
    begun_at: datetime
    ended_at: datetime
    complete: bool
    memories: dict[str, int]
    places: tuple[Place, ...]
    copies: tuple[Copy, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, config=LAZY)
class SignedReceipt(Answer):
    """A receipt with its SHA-256 in hex, and the line of the journal that holds this.

    It is `proven` if the receipt has that hash, and the line is in the chain as it was written.
    """

    message: str
    receipt: Receipt | None
    sha256: str
    line: int
    line_hash: str
    proven: bool


@dataclass(frozen=True, config=LAZY)
class Receipts(Answer):
    """Receipts, the newest first; of a deletion that has not ended there is none yet."""

    receipts: tuple[SignedReceipt, ...]


@dataclass(frozen=True, config=LAZY)
class Departure(Answer):
    """What a deletion does or did: counts, and the receipt once it was done."""

    message: str
    user: str
    choice: Choice
    target: str
    dry_run: bool
    counts: dict[str, int]
    signed: SignedReceipt | None = None


@dataclass(frozen=True, config=LAZY)
class Hold(Answer):
    """A legal hold, and when it was released."""

    name: str
    reason: str
    set_by: str
    set_at: datetime
    user: str | None = None
    team: str | None = None
    project: str | None = None
    released_by: str | None = None
    released_at: datetime | None = None

    def called_by(self, user: str) -> str:
        """Return how a sentence for a user calls it: a hold on a person is named to that person alone."""
        return f"the legal hold `{self.name}`" if self.user in (None, user) else "a legal hold"


@dataclass(frozen=True, config=LAZY)
class Holds(Answer):
    """Holds, the oldest first."""

    holds: tuple[Hold, ...]


@dataclass(frozen=True, config=LAZY)
class RetentionRule(Answer):
    """The days after which memories are removed; without a project or a kind it is about all of them."""

    team: str
    project: str | None
    fact_type: FactType | None
    days: float
    set_by: str
    set_at: datetime


@dataclass(frozen=True, config=LAZY)
class RetentionRules(Answer):
    """Rules of retention by team, project and kind."""

    rules: tuple[RetentionRule, ...]


@dataclass(frozen=True, config=LAZY)
class RetentionSet(Answer):
    """What a rule does: how many memories it removes, or removed, at once."""

    message: str
    memories: int
    dry_run: bool
