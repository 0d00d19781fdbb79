"""What may be asked. A request checks itself: building one with bad input raises `InvalidInput`."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from recollect.domain.kinds import Concept, FactType, Observation, Profile, Scope, Sensitivity, Source
from recollect.errors import InvalidInput

MAX_CONTENT: Final = 200_000
MAX_QUERY: Final = 20_000
MAX_LIMIT: Final = 100
MIN_TOKENS: Final = 64  # an answer that shows nothing but how much there is takes about forty
MAX_TOKENS: Final = 1_000_000
MAX_NAME: Final = 500
MAX_CALLER: Final = 200


_SURROGATE: Final = "contains a lone surrogate, which is not text"
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


def _storable(text: str) -> str:
    """Refuse what SQL databases cannot hold: NUL characters and lone surrogates."""
    if "\x00" in text:
        raise ValueError("contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(_SURROGATE) from None
    return text


def _blank_to_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


def _singular(value: object) -> object:
    """Accept `preferences`, `entities` and other plurals of a fact type, in any case."""
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    for kind in FactType:
        if word in (f"{kind}s", f"{kind[:-1]}ies"):
            return kind
    return word


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _aware(value: datetime) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the calendar") from None


def _to_its_end(value: object) -> object:
    """Take a day that is named without a time for all of it."""
    if isinstance(value, str) and _DAY.fullmatch(value.strip()):
        value = date.fromisoformat(value.strip())
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time.max, UTC)
    return value


def _one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _path(text: str | None) -> str | None:
    """Write a path as paths are compared: `/` between folders, no `./` before it and no `/` behind it."""
    if text is None:
        return None
    path = str(PurePosixPath(text.replace("\\", "/")))
    if path == ".":
        raise ValueError("must name a file or a folder")
    return path


def _unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


Storable = AfterValidator(_storable)
Stripped = StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME)
Name = Annotated[str, Stripped, Storable]
Short = Annotated[Name, StringConstraints(max_length=MAX_CALLER)]
Label = Annotated[Name | None, BeforeValidator(_blank_to_none)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000), Storable]
Names = Annotated[tuple[Name, ...], Field(max_length=200), AfterValidator(_unique)]
Kind = Annotated[FactType, BeforeValidator(_singular)]
Where = Annotated[Scope, BeforeValidator(_lower)]
Moment = Annotated[datetime, AfterValidator(_aware)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Unit = Annotated[float, BeforeValidator(_no_bool), Field(ge=0.0, le=1.0, allow_inf_nan=False)]


def explain(error: ValidationError) -> InvalidInput:
    """Turn pydantic's first complaint into one sentence that names the field and what is allowed."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "request"
    context: dict[str, Any] = first.get("ctx", {})
    kind = first["type"]
    if kind == "missing":
        return InvalidInput(name, f"Missing {name}: `{name}` is required")
    if kind == "extra_forbidden":
        return InvalidInput(name, f"Unknown parameter: `{name}` is not one of this request's parameters")
    if kind == "string_unicode":
        return InvalidInput(name, f"Invalid {name}: {_SURROGATE[:1].upper()}{_SURROGATE[1:]}")
    allowed = _ALLOWED.get(name)
    if allowed is None or kind in ("value_error", "string_too_long", "too_long"):
        reason = str(context["error"]) if "error" in context else first["msg"]
        return InvalidInput(name, f"Invalid {name}: {reason[:1].upper()}{reason[1:]}")
    return InvalidInput(name, f"Invalid {name}: {allowed}")


def one_of(choices: type[StrEnum]) -> str:
    """Say which values are allowed: "Must be `a`, `b`, or `c`"."""
    names = [f"`{choice}`" for choice in choices]
    return f"Must be {', '.join(names[:-1])}, or {names[-1]}"


_UNIT = "Must be 0.0–1.0"
_COUNT = "Must be a whole number from 0 to 2147483647"
_MOMENT = "Must be a day or a time, such as `2026-05-07` or `2026-05-07T13:30:00+02:00`"
_ALLOWED: Final = {
    "confidence": _UNIT,
    "importance": _UNIT,
    "trust": _UNIT,
    "min_score": _UNIT,
    "scope": one_of(Scope),
    "fact_type": one_of(FactType),
    "type": one_of(Observation),
    "concepts": one_of(Concept),
    "sensitivity": one_of(Sensitivity),
    "source": one_of(Source),
    "profile": one_of(Profile),
    "team": f"Must be 1–{MAX_CALLER} characters without `/`",
    "limit": f"Must be a whole number from 1 to {MAX_LIMIT}",
    "max_tokens": f"Must be a whole number from {MIN_TOKENS} to {MAX_TOKENS}",
    "ttl_days": "Must be a number of days above 0 and at most 36500",
    "position": _COUNT,
    "discovery_tokens": _COUNT,
    "tags": f"Must be a list of names of 1–{MAX_NAME} characters each",
    "observed_at": _MOMENT,
    "since": _MOMENT,
    "until": _MOMENT,
}


class Request(BaseModel):
    """A checked, frozen request; building one with bad input raises `InvalidInput`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise explain(error) from None


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


def _content(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold some text")
    return _storable(text)


class Draft(Request):
    """What somebody wants remembered. Absent headings and layers are filled from the content."""

    content: Annotated[str, Field(max_length=MAX_CONTENT), AfterValidator(_content)]
    key: Label = None
    scope: Where = Scope.PROJECT
    fact_type: Kind = FactType.GENERAL
    type: Annotated[Observation | None, BeforeValidator(_blank_to_none)] = None
    concepts: Annotated[tuple[Concept, ...], AfterValidator(_unique)] = ()
    category: Label = None
    tags: Names = ()
    importance: Unit = 0.5
    confidence: Unit = 0.5
    trust: Unit = 0.5
    sensitivity: Annotated[Sensitivity, BeforeValidator(_lower)] = Sensitivity.PUBLIC
    title: Line | None = None
    subtitle: Line | None = None
    abstract: Line | None = None
    overview: Annotated[str, StringConstraints(max_length=20_000), Storable] | None = None
    files_read: Names = ()
    files_modified: Names = ()
    session_id: Label = None
    project: Label = None
    discovery_tokens: Count | None = None
    observed_at: Moment | None = None
    ttl_days: Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)] | None = None
    speaker: Label = None
    position: Count | None = None
    source: Source = Source.TOOL


class Query(Request):
    """What somebody wants recalled. Filters that are absent filter nothing; a memory must meet all that are given.

    It carries every one of `tags` (letter case aside) and `concepts`; `file` is a path that it read or modified, a
    folder above that, or the end of it; `since` and `until` (both inclusive) bound when the thing happened.
    With `max_tokens` every match has a line in the answer's index, and `limit` bounds the details.
    """

    query: Annotated[str, Field(max_length=MAX_QUERY), AfterValidator(_content)]
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 10
    max_tokens: Annotated[int, Field(ge=MIN_TOKENS, le=MAX_TOKENS)] | None = None
    scope: Where | None = None
    fact_type: Kind | None = None
    category: Label = None
    type: Annotated[Observation | None, BeforeValidator(_blank_to_none), BeforeValidator(_lower)] = None
    tags: Annotated[Names, BeforeValidator(_one_or_many)] = ()
    concepts: Annotated[tuple[Concept, ...], BeforeValidator(_one_or_many), AfterValidator(_unique)] = ()
    project: Label = None
    session_id: Label = None
    file: Annotated[Label, AfterValidator(_path)] = None
    since: Annotated[Moment | None, BeforeValidator(_blank_to_none)] = None
    until: Annotated[Moment | None, BeforeValidator(_to_its_end), BeforeValidator(_blank_to_none)] = None
    profile: Profile = Profile.BALANCED
    min_score: Unit = 0.35
    allow_private: bool = False
    allow_secret: bool = False
    sensitivity: Annotated[Sensitivity | None, BeforeValidator(_blank_to_none), BeforeValidator(_lower)] = None

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


class Forget(Request):
    """Which memory to forget; without a scope, wherever among the caller's namespaces it lies."""

    id: Name
    scope: Where | None = None


class Get(Request):
    """Which memory to read whole."""

    id: Name
    allow_private: bool = False
    allow_secret: bool = False


class Inspect(Request):
    """A look at the whole store."""
