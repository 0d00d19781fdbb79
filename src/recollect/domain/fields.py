"""The kinds of fields that requests have: what each accepts, and what is said of bad input.

A request checks itself: building one with bad input raises `InvalidInput`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic_core import PydanticCustomError

from recollect.domain.kinds import Concept, FactType, Observation, Order, Profile, Scope, Sensitivity, Source
from recollect.errors import InvalidInput

MAX_CONTENT: Final = 200_000
MAX_QUERY: Final = 20_000
MAX_LIMIT: Final = 100
MIN_TOKENS: Final = 64  # an answer that shows nothing but how much there is takes about forty
MAX_TOKENS: Final = 1_000_000
MAX_NAME: Final = 500
MAX_CALLER: Final = 200


_UNFIT: Final = "unfit"
_SURROGATE: Final = "contains a lone surrogate, which is not text"
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_BREAK: Final = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


def storable(text: str) -> str:
    """Refuse what SQL databases cannot hold: NUL characters and lone surrogates."""
    if "\x00" in text:
        raise ValueError("contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(_SURROGATE) from None
    return text


def blank_to_none(value: object) -> object:
    """Take an empty text for nothing at all."""
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


def lower(value: object) -> object:
    """Take a name of a closed set in any letter case."""
    return value.strip().lower() if isinstance(value, str) else value


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError(_UNFIT, "Must be a number")
    return value


def _dated(value: object) -> object:
    """Refuse a bare number, such as a year, which would count as seconds since 1970."""
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, date) or (isinstance(text, str) and _DAY.match(text)):
        return text
    raise PydanticCustomError(_UNFIT, "Must be a day or a time")


def _aware(value: datetime) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the calendar") from None


def _to_its_end(value: object) -> object:
    """Take a day that is named without a time for all of it."""
    if isinstance(value, str) and _DAY.fullmatch(value.strip()):
        try:
            value = date.fromisoformat(value.strip())
        except ValueError:
            return value  # no day of the calendar: whoever reads it as a time says what is allowed
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time.max, UTC)
    return value


def _spelled(value: object) -> object:
    """Read a list that came as its JSON text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _one_or_many(value: object) -> object:
    """Take one text for a list of what stands between its commas."""
    return [part for part in map(str.strip, value.split(",")) if part] if isinstance(value, str) else value


def _one(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _one_line(text: str) -> str:
    """Put a space where a line ends: names and headings have one line."""
    return _BREAK.sub(" ", text)


def _path(text: str | None) -> str | None:
    """Write a path as paths are compared: `/` between folders, no `./` before it and no `/` behind it."""
    if text is None:
        return None
    path = str(PurePosixPath(text.replace("\\", "/")))
    if path == ".":
        raise ValueError("must name a file or a folder")
    return path


def folded(part: str) -> str:
    """Return a part of a fact as it is compared: letter case and outer or repeated spaces aside."""
    return " ".join(part.casefold().split())


def _unique(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _content(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold some text")
    return storable(text)


Storable = AfterValidator(storable)
OneLine = AfterValidator(_one_line)
Stripped = StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME)
Name = Annotated[str, Stripped, Storable, OneLine]
Short = Annotated[Name, StringConstraints(max_length=MAX_CALLER)]
Label = Annotated[Name | None, BeforeValidator(blank_to_none)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000), Storable, OneLine]
Names = Annotated[tuple[Name, ...], Field(max_length=200), AfterValidator(_unique)]
Kind = Annotated[FactType, BeforeValidator(_singular)]
Where = Annotated[Scope, BeforeValidator(lower)]
Limit = Annotated[int, BeforeValidator(_no_bool), Field(ge=1, le=MAX_LIMIT)]
Moment = Annotated[datetime, BeforeValidator(_dated), AfterValidator(_aware)]
Count = Annotated[int, BeforeValidator(_no_bool), Field(ge=0, le=2**31 - 1)]
Text = Annotated[str, Field(max_length=MAX_CONTENT), AfterValidator(_content)]
Question = Annotated[str, Field(max_length=MAX_QUERY), AfterValidator(_content)]
Paragraph = Annotated[str, StringConstraints(max_length=20_000), Storable]
Type = Annotated[Observation | None, BeforeValidator(blank_to_none), BeforeValidator(lower)]
Level = Annotated[Sensitivity, BeforeValidator(lower)]
SomeLevel = Annotated[Sensitivity | None, BeforeValidator(blank_to_none), BeforeValidator(lower)]
Concepts = Annotated[
    tuple[Annotated[Concept, BeforeValidator(lower)], ...],
    BeforeValidator(_one_or_many),
    BeforeValidator(_spelled),
    AfterValidator(_unique),
]
Tags = Annotated[Names, BeforeValidator(_one_or_many), BeforeValidator(_spelled)]
Files = Annotated[Names, BeforeValidator(_one), BeforeValidator(_spelled)]
File = Annotated[Label, AfterValidator(_path)]
Since = Annotated[Moment | None, BeforeValidator(blank_to_none)]
Until = Annotated[Moment | None, BeforeValidator(_to_its_end), BeforeValidator(blank_to_none)]
Days = Annotated[float, BeforeValidator(_no_bool), Field(gt=0, le=36_500, allow_inf_nan=False)]
Tenth = Annotated[float, BeforeValidator(_no_bool), Field(ge=0.0, le=10.0, allow_inf_nan=False)]
Budget = Annotated[int, BeforeValidator(_no_bool), Field(ge=MIN_TOKENS, le=MAX_TOKENS)]
Unit = Annotated[float, BeforeValidator(_no_bool), Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Cosine = Annotated[float, BeforeValidator(_no_bool), Field(ge=-1.0, le=1.0, allow_inf_nan=False)]


def explain(error: ValidationError, allowed_here: Mapping[str, str] | None = None) -> InvalidInput:
    """Turn pydantic's first complaint into one sentence that names the field and what is allowed.

    `allowed_here` says it of the fields that take something else in this request than elsewhere.
    """
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
    if kind in _TOO_MUCH:
        return InvalidInput(name, f"Invalid {name}: {_TOO_MUCH[kind].format(**context)}")
    allowed = {**_ALLOWED, **(allowed_here or {})}.get(name, _ALLOWED_OF.get(kind))
    if allowed is None or kind == "value_error":
        reason = str(context["error"]) if "error" in context else first["msg"]
        return InvalidInput(name, f"Invalid {name}: {reason[:1].upper()}{reason[1:]}")
    return InvalidInput(name, f"Invalid {name}: {allowed}")


def one_of(choices: Iterable[StrEnum]) -> str:
    """Say which values are allowed: "Must be `a`, `b`, or `c`"."""
    names = [f"`{choice}`" for choice in choices]
    return f"Must be {', '.join(names[:-1])}, or {names[-1]}"


_UNIT = "Must be 0.0–1.0"
_NAMES = f"Must be a list of names of 1–{MAX_NAME} characters each"
_COUNT = "Must be a whole number from 0 to 2147483647"
_MOMENT = "Must be a day or a time, such as `2026-05-07` or `2026-05-07T13:30:00+02:00`"
_ALLOWED: Final = {
    "confidence": _UNIT,
    "importance": _UNIT,
    "trust": _UNIT,
    "min_confidence": _UNIT,
    "min_score": _UNIT,
    "threshold": "Must be -1.0–1.0",
    "scope": one_of(Scope),
    "fact_type": one_of(FactType),
    "type": one_of(Observation),
    "concept": one_of(Concept),
    "concepts": one_of(Concept),
    "sensitivity": one_of(Sensitivity),
    "source": one_of(Source),
    "profile": one_of(Profile),
    "order": one_of(Order),
    "team": f"Must be 1–{MAX_CALLER} characters without `/`",
    "limit": f"Must be a whole number from 1 to {MAX_LIMIT}",
    "max_entries": f"Must be a whole number from 1 to {MAX_LIMIT}",
    "at_least": f"Must be a whole number from 2 to {MAX_LIMIT}",
    "max_tokens": f"Must be a whole number from {MIN_TOKENS} to {MAX_TOKENS}",
    "older_than_days": "Must be a number of days above 0 and at most 36500",
    "ttl_days": "Must be a number of days above 0 and at most 36500",
    "position": _COUNT,
    "discovery_tokens": _COUNT,
    "offset": _COUNT,
    "tags": _NAMES,
    "files_read": _NAMES,
    "files_modified": _NAMES,
    "observed_at": _MOMENT,
    "as_of": _MOMENT,
    "valid_from": _MOMENT,
    "valid_to": _MOMENT,
    "since": _MOMENT,
    "until": _MOMENT,
}


_ALLOWED_OF: Final = {
    "bool_parsing": "Must be `true` or `false`",
    "bool_type": "Must be `true` or `false`",
    "tuple_type": "Must be a list",
    "string_type": "Must be a string",
    "string_too_short": "Must hold some text",
}
_TOO_MUCH: Final = {
    "string_too_long": "Must have at most {max_length} characters",
    "too_long": "Must have at most {max_length} entries",
}


class Request(BaseModel):
    """A checked, frozen request; building one with bad input raises `InvalidInput`.

    `allowed` says of fields that take something else here than in other requests what that is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    allowed: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise explain(error, type(self).allowed) from None
