"""What may be asked. A request checks itself: building one with bad input raises `InvalidInput`."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from recollect.domain.kinds import Concept, FactType, Observation, Profile, Scope, Sensitivity, Source
from recollect.errors import InvalidInput

MAX_CONTENT: Final = 200_000
MAX_QUERY: Final = 20_000
MAX_LIMIT: Final = 100
MAX_NAME: Final = 500
MAX_CALLER: Final = 200


_SURROGATE: Final = "contains a lone surrogate, which is not text"


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
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


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
    "ttl_days": "Must be a number of days above 0 and at most 36500",
    "position": _COUNT,
    "discovery_tokens": _COUNT,
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
    """What somebody wants recalled. Filters that are absent filter nothing."""

    query: Annotated[str, Field(max_length=MAX_QUERY), AfterValidator(_content)]
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] = 10
    scope: Where | None = None
    fact_type: Kind | None = None
    category: Label = None
    profile: Profile = Profile.BALANCED
    min_score: Unit = 0.35
    allow_private: bool = False
    allow_secret: bool = False


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
