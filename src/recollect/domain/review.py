"""What should not be trusted as it is: secrets that a rescan found, what waits for a decision, what is withdrawn."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field, computed_field
from pydantic.dataclasses import dataclass

from recollect.domain import fields
from recollect.domain.answer import LAZY, Answer, Id
from recollect.domain.enums import Scope
from recollect.domain.requests import Levels, ReadAccess
from recollect.domain.results import Check
from recollect.errors import InvalidInput

UNDOABLE_DAYS: Final = 30
"""For so long a withdrawal can be undone; then what it took away is removed for good."""


class Decision(StrEnum):
    """What a person decides of a memory that waits: about it alone, or about everything from its source."""

    APPROVE = "approve"
    REJECT = "reject"
    ALWAYS = "always"
    NEVER = "never"


class Inbox(ReadAccess):
    """Which memories wait for a decision, the longest waiting first."""

    limit: fields.Limit = 20
    offset: fields.Offset = 0


class Decide(Levels):
    """What is decided of a memory that waits, or of all that waits and came from `sources`.

    With a `content` it is approved in these words, which are a person's.
    """

    id: fields.SomeId = Field(default=None, description="Memory that waits")
    sources: fields.Files = Field(
        default=(), description="Instead of one memory: all that waits from these addresses, hosts, files or folders"
    )
    decision: Annotated[Decision, BeforeValidator(fields.lower)] = Field(
        description="This one, or everything from its source: approve, reject, always or never"
    )
    content: fields.Text | None = Field(default=None, description="Approved in these words instead")

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if (self.id is None) != bool(self.sources):
            raise InvalidInput("id", "Missing id: Name either the memory, or the sources of all that is decided")
        if self.sources and self.content is not None:
            raise InvalidInput("content", "Invalid content: Must not be given together with `sources`")


class SourceRules(ReadAccess):
    """Which rules for sources are listed, the newest first."""

    limit: fields.Limit = 100
    offset: fields.Offset = 0


class DropSourceRule(ReadAccess):
    """The source whose rule is removed, named as the list of rules names it."""

    source: fields.Name = Field(description="Source as the list of rules names it, such as web:example.com")


class Withdraw(Levels):
    """What is withdrawn: what meets all that is given. Without `apply` it is only said what that would be."""

    source: fields.Label = Field(default=None, description="Address, host, path or command that it came from")
    session_id: fields.Label = Field(default=None, description="Session it came from")
    author: fields.Label = Field(default=None, description="User whose process or token wrote it")
    since: fields.Since = Field(default=None, description="Day or ISO time. Only what was stored then or later")
    until: fields.Until = Field(default=None, description="Only what was stored then or earlier")
    apply: bool = Field(default=False, description="Withdraw it; without this the answer only says what that would be")

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if not any((self.source, self.session_id, self.author, self.since, self.until)):
            raise InvalidInput("source", "Missing source: Name a source, a session, an author or a time")


class UndoWithdrawal(Levels):
    """Which withdrawal to undo."""

    id: fields.Id


@dataclass(frozen=True, config=LAZY)
class Waiting(Answer):
    """A memory that waits for a decision: since when, why, who said it, where, and which memory it may contradict.

    One that is `quarantined` holds a secret: it is shown with that masked, and is approved or rejected by itself.
    """

    id: Id
    since: datetime
    why: str
    origin: str
    content: str
    contradicts: Id | None = None
    told: str = ""
    quarantined: bool = False
    scope: Scope = Scope.PROJECT


@dataclass(frozen=True, config=LAZY)
class WaitingPage(Answer):
    """One page of what waits for a decision, how much there is, since when, and how much waits for too many days."""

    internal: ClassVar[frozenset[str]] = frozenset({"days"})

    waiting: tuple[Waiting, ...]
    total: int
    since: datetime | None = None
    overdue: int = 0
    days: float = 0.0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """Say how many memories wait, and since when."""
        if not self.total:
            return "Nothing waits for a decision."
        since = f" since {self.since:%Y-%m-%d}" if self.since else ""
        noun, verb = ("memory", "waits") if self.total == 1 else ("memories", "wait")
        overdue = f", {self.overdue} of them for more than {self.days:g} days" if self.overdue else ""
        return f"{self.total} {noun} {verb} for a decision{since}{overdue}: `recollect inbox` shows them."

    @property
    def check(self) -> Check:
        """Return the doctor's line on it: something that waits for too long is not well."""
        return Check("inbox", not self.overdue, self.message, "Run `recollect inbox`: it asks about each.")


@dataclass(frozen=True, config=LAZY)
class SourceRule(Answer):
    """A rule for everything from a source, `always` or `never`: in which scope it holds, who made it and when."""

    source: str
    decision: Decision
    scope: Scope
    author: str
    at: datetime


@dataclass(frozen=True, config=LAZY)
class SourceRulePage(Answer):
    """One page of the rules for sources, and how many there are."""

    rules: tuple[SourceRule, ...]
    total: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """Say how many sources have a rule."""
        return f"{self.total or 'No'} {'sources have' if self.total > 1 else 'source has'} a rule."


@dataclass(frozen=True, config=LAZY)
class SourceRuleDropped(Answer):
    """The rules for a source that were removed, one for each scope that had one."""

    source: str
    rules: tuple[SourceRule, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """Say what holds from now on."""
        if not self.rules:
            return f"{self.source} has no rule: `recollect inbox --rules` lists those that have."
        return f"{self.source} has no rule any more: what comes from there waits in the inbox. What was decided stays."


@dataclass(frozen=True, config=LAZY)
class Withdrawn(Answer):
    """What was withdrawn, or would be: memories, what was made of them, and what they had replaced.

    Where nothing came from the source, `nearest` are those that there are, the most alike first.
    """

    internal: ClassVar[frozenset[str]] = frozenset({"undone"})

    id: str
    applied: bool
    hidden: tuple[Id, ...]
    rebuilt: tuple[Id, ...]
    current_again: tuple[Id, ...]
    sources: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    undone: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """Say what became of how much, or would become of it."""
        if self.undone:
            back = f"{len(self.hidden)} memories are back, {len(self.rebuilt)} say again what they said."
            return f"Withdrawal {self.id} undone: {back}"
        if self.nearest:
            return f"Nothing that is stored came from there. Sources with the nearest names: {', '.join(self.nearest)}."
        verb, be = ("", "are") if self.applied else ("would be ", "would be")
        counts = f"{len(self.rebuilt)} {be} rebuilt without them, {len(self.current_again)} {be} current again."
        named = f" Withdrawal {self.id}; `recollect withdraw --undo {self.id}` undoes it." if self.applied else ""
        return f"{len(self.hidden)} memories {verb or 'are '}withdrawn, {counts}{named}"


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
