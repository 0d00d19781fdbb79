"""The great requests: who asks, what to remember, what to recall."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import StringConstraints, ValidationInfo, field_validator

from recollect.domain.fields import (
    Budget,
    Concepts,
    Count,
    Days,
    File,
    Files,
    Kind,
    Label,
    Level,
    Limit,
    Line,
    Moment,
    Paragraph,
    Question,
    Request,
    Short,
    Since,
    SomeLevel,
    Tags,
    Text,
    Type,
    Unit,
    Until,
    Where,
)
from recollect.domain.kinds import FactType, Profile, Scope, Sensitivity, Source


class Caller(Request):
    """Who speaks: the door decides it, and every namespace follows from it."""

    user: Short
    team: Annotated[Short, StringConstraints(pattern=r"^[^/]+$")] = "local"
    project: Short

    def namespace(self, scope: Scope) -> str:
        """Return the one namespace of `scope`: `user:U`, `project:T/P` or `team:T`."""
        match scope:
            case Scope.PERSONAL:
                return f"user:{self.user}"
            case Scope.TEAM:
                return f"team:{self.team}"
            case _:
                return f"project:{self.team}/{self.project}"

    def namespaces(self, scope: Scope | None = None) -> tuple[str, ...]:
        """Return the namespaces a read sees: all three, or the one of `scope`."""
        return tuple(self.namespace(one) for one in ([scope] if scope else Scope))


class Draft(Request):
    """What somebody wants remembered. Absent headings and layers are filled from the content."""

    content: Text
    key: Label = None
    scope: Where = Scope.PROJECT
    fact_type: Kind = FactType.GENERAL
    type: Type = None
    concepts: Concepts = ()
    category: Label = None
    tags: Tags = ()
    importance: Unit = 0.5
    confidence: Unit = 0.5
    trust: Unit = 0.5
    sensitivity: Level = Sensitivity.PUBLIC
    title: Line | None = None
    subtitle: Line | None = None
    abstract: Line | None = None
    overview: Paragraph | None = None
    files_read: Files = ()
    files_modified: Files = ()
    session_id: Label = None
    project: Label = None
    discovery_tokens: Count | None = None
    observed_at: Moment | None = None
    ttl_days: Days | None = None
    speaker: Label = None
    position: Count | None = None
    source: Source = Source.TOOL


class Seen(Request):
    """What a read may see beside public memories, and in which of the caller's namespaces it looks."""

    scope: Where | None = None
    allow_private: bool = False
    allow_secret: bool = False


class Filters(Seen):
    """What is asked of memories. What is absent filters nothing; a memory must meet all that are given.

    It carries every one of `tags` (letter case aside) and `concepts`, and names `entity`; `file` is a path that it
    read or modified, a folder above that, or the end of it; `since` and `until` (both inclusive) bound when the thing
    happened. `superseded` also shows what a later memory has put right.
    """

    fact_type: Kind | None = None
    category: Label = None
    type: Type = None
    tags: Tags = ()
    concepts: Concepts = ()
    entity: Label = None
    project: Label = None
    session_id: Label = None
    file: File = None
    since: Since = None
    until: Until = None
    sensitivity: SomeLevel = None
    superseded: bool = False

    @field_validator("until")
    @classmethod
    def _not_before_since(cls, until: datetime | None, info: ValidationInfo) -> datetime | None:
        since = info.data.get("since")
        if since is not None and until is not None and until < since:
            raise ValueError("must not be before `since`")
        return until

    @field_validator("sensitivity")
    @classmethod
    def _let_in(cls, level: Sensitivity | None, info: ValidationInfo) -> Sensitivity | None:
        if level not in (None, Sensitivity.PUBLIC) and not info.data.get(f"allow_{level}"):
            raise ValueError(f"`{level}` memories are let in only with `allow_{level}`")
        return level


class Query(Filters):
    """What somebody wants recalled, the best first.

    With `max_tokens` every match has a line in the answer's index, and `limit` bounds the details.
    """

    query: Question
    limit: Limit = 10
    max_tokens: Budget | None = None
    profile: Profile = Profile.BALANCED
    min_score: Unit = 0.35
