"""The kinds of fields that requests have: what each accepts, and the error for bad input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from recollect.domain import calendar, moments
from recollect.domain.enums import Concept, FactType, ObservationType, Scope, Sensitivity, Source
from recollect.errors import InvalidInput

MAX_CONTENT: Final = 200_000
MAX_QUERY: Final = 20_000
MAX_LIMIT: Final = 100
MIN_TOKENS: Final = 64  # an answer that shows nothing but how much there is takes about forty
MAX_TOKENS: Final = 1_000_000
MAX_NAME: Final = 500
MAX_CALLER: Final = 200
MAX_LABELS: Final = 20  # of one kind that a read asks for: each is looked for in every memory
MAX_SHOWN: Final = 1_000
MAX_COUNT: Final = 2**31 - 1
MAX_DAYS: Final = 36_500
NO_MEMORY: Final = "none"
"""What stands in the place of a hash where there must be no memory yet."""

_UNFIT: Final = "unfit"
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_LINE_BREAKS: Final = re.compile(
    r"(?<!\s)[^\S\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*+[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*"
)

_MOMENT: Final = "Must be a day or a time, such as `2026-05-07` or `2026-05-07T13:30:00+02:00`"
Stripped = StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME, strict=True)

_ALLOWED_BY_ERROR: Final = {
    "bool_parsing": "Must be `true` or `false`",
    "bool_type": "Must be `true` or `false`",
    "tuple_type": "Must be a list",
    "string_type": "Must be a string",
    "string_too_short": "Must hold some text",
}
_TOO_LONG: Final = {
    "string_too_long": "Must have at most {max_length} characters",
    "too_long": "Must have at most {max_length} entries",
}


def refuse_unstorable(text: str) -> str:
    """Refuse NUL characters, which SQL databases cannot hold; pydantic refuses lone surrogates."""
    if "\x00" in text:
        raise ValueError("contains a NUL character")
    return text


def blank_to_none(value: object) -> object:
    """Return None for a blank text, any other value unchanged."""
    return None if isinstance(value, str) and not value.strip() else value


def _none_to_blank(value: object) -> object:
    return "" if value is None else value


def singular(value: object) -> object:
    """Return the fact type for `preferences`, `entities` and other plurals, in any letter case."""
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    for kind in FactType:
        if word in (f"{kind}s", f"{kind[:-1]}ies"):
            return kind
    return word


def lower(value: object) -> object:
    """Return a name of a closed set in lower case."""
    return value.strip().lower() if isinstance(value, str) else value


def _refuse_bool(value: object) -> object:
    if isinstance(value, bool):
        raise PydanticCustomError(_UNFIT, "Must be a number")
    return value


def _refuse_bare_number(value: object) -> object:
    """Refuse a bare number, such as a year, which would count as seconds since 1970."""
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, date) or (isinstance(text, str) and _DAY.match(text)):
        return text
    raise PydanticCustomError(_UNFIT, "Must be a day or a time")


def _to_utc(value: datetime) -> datetime:
    try:
        return calendar.instant(value)
    except OverflowError:
        raise ValueError("lies outside the calendar") from None


def _end_of_day(value: object) -> object:
    """Return the last instant of a day that is named without a time."""
    try:
        if isinstance(value, str) and _DAY.fullmatch(value.strip()):
            value = date.fromisoformat(value.strip())
        if isinstance(value, date) and not isinstance(value, datetime):
            return calendar.days(value).last
    except (ValueError, OverflowError):
        return value  # no day of the calendar: the parser of times refuses it with a message
    return value


def check_zone(name: str) -> str:
    """Return the name of a time zone; raise `ValueError` for a name that no zone has."""
    calendar.zone_named(name)
    return name


def id_as_text(value: object) -> object:
    """Return an id as text; answers hold it as a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _parse_json_list(value: object) -> object:
    """Return the list in a JSON text, any other value unchanged."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _split_commas(value: object) -> object:
    """Return a text as a list of its parts between commas, any other value unchanged."""
    return [part for part in map(str.strip, value.split(",")) if part] if isinstance(value, str) else value


def _wrap_text(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _join_lines(value: object) -> object:
    """Return a text with a space in place of each line break: names and headings have a single line."""
    return _LINE_BREAKS.sub(" ", value) if isinstance(value, str) else value


def _normalize_path(text: str | None) -> str | None:
    """Return a path in its form for comparison: `/` between folders, no `./` before it, no `/` after it."""
    if text is None:
        return None
    path = str(PurePosixPath(text.replace("\\", "/")))
    if path == ".":
        raise ValueError("must name a file or a folder")
    return path


def fold_part(part: str) -> str:
    """Return a part of a fact as it is compared: letter case and outer or repeated spaces aside."""
    return " ".join(part.casefold().split())


def _without_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


def _refuse_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold some text")
    return refuse_unstorable(text)


def one_of(choices: Iterable[StrEnum]) -> str:
    """Return a sentence with the allowed values: "Must be `a`, `b`, or `c`"."""
    names = [f"`{choice}`" for choice in choices]
    return f"Must be {', '.join(names[:-1])}{',' * (len(names) > 2)} or {names[-1]}"


def unknown_name(what: str, name: str, known: Collection[str]) -> str:
    """Return the message for an unknown name: the nearest known name, and all names that are allowed."""
    near = [f"`{match}`" for match in get_close_matches(name, known)]
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"Unknown {what}: `{name}`.{meant} Allowed: {', '.join(f'`{allowed}`' for allowed in known)}"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a kind of field accepts, as a sentence of an error message."""

    sentence: str


Whole = Annotated[int, BeforeValidator(_refuse_bool)]
Finite = Annotated[float, BeforeValidator(_refuse_bool), Field(allow_inf_nan=False)]
Storable = AfterValidator(refuse_unstorable)
OneLine = BeforeValidator(_join_lines)
Name = Annotated[str, Stripped, Storable, OneLine]
ZoneName = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_CALLER), AfterValidator(check_zone)]
CallerName = Annotated[Name, StringConstraints(max_length=MAX_CALLER)]
Label = Annotated[Name | None, BeforeValidator(blank_to_none)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000), Storable, OneLine]
Place = Annotated[Line | None, BeforeValidator(blank_to_none)]
Names = Annotated[
    tuple[Name, ...],
    Field(max_length=200),
    AfterValidator(_without_repeats),
    Allowed(f"Must be a list of names of 1–{MAX_NAME} characters each"),
]
Kind = Annotated[FactType, BeforeValidator(singular)]
WriteScope = Annotated[Scope, BeforeValidator(lower), Field(description="Who shares it")]
ReadScope = Annotated[
    Scope | None, BeforeValidator(lower), Field(description="Only in this scope; default: everywhere you may see")
]
Id = Annotated[Name, BeforeValidator(id_as_text), Field(description="Memory ID. Its key works too")]
SomeId = Annotated[Label, BeforeValidator(id_as_text)]
Limit = Annotated[
    Whole,
    Field(ge=1, le=MAX_LIMIT, description=f"How many at most, 1–{MAX_LIMIT}"),
    Allowed(f"Must be a whole number from 1 to {MAX_LIMIT}"),
]
Moment = Annotated[datetime, BeforeValidator(_refuse_bare_number), AfterValidator(_to_utc), Allowed(_MOMENT)]
Count = Annotated[Whole, Field(ge=0, le=MAX_COUNT), Allowed(f"Must be a whole number from 0 to {MAX_COUNT}")]
Offset = Annotated[Count, Field(description="How many to skip, which an earlier page has shown")]
Text = Annotated[str, Field(max_length=MAX_CONTENT), AfterValidator(_refuse_blank)]
Question = Annotated[str, Field(max_length=MAX_QUERY), AfterValidator(_refuse_blank)]
Paragraph = Annotated[str, StringConstraints(max_length=20_000), Storable]
Heading = Annotated[Line, BeforeValidator(_none_to_blank)]
Overview = Annotated[Paragraph, BeforeValidator(_none_to_blank)]
Type = Annotated[ObservationType | None, BeforeValidator(blank_to_none), BeforeValidator(lower)]
Origin = Annotated[Source | None, BeforeValidator(blank_to_none), BeforeValidator(lower)]
Level = Annotated[Sensitivity, BeforeValidator(lower)]
SomeLevel = Annotated[Sensitivity | None, BeforeValidator(blank_to_none), BeforeValidator(lower)]
Concepts = Annotated[
    tuple[Annotated[Concept, BeforeValidator(lower)], ...],
    Field(max_length=MAX_LABELS),
    BeforeValidator(_split_commas),
    BeforeValidator(_parse_json_list),
    AfterValidator(_without_repeats),
]
Tags = Annotated[Names, BeforeValidator(_split_commas), BeforeValidator(_parse_json_list)]
AskedTags = Annotated[Tags, Field(max_length=MAX_LABELS)]
Files = Annotated[Names, BeforeValidator(_wrap_text), BeforeValidator(_parse_json_list)]
When = Annotated[
    tuple[Annotated[str, StringConstraints(strip_whitespace=True, strict=True), Storable], ...],
    Field(max_length=200),
    AfterValidator(moments.tidy_moments),
    BeforeValidator(_wrap_text),
    BeforeValidator(_parse_json_list),
    Allowed("Must be a list of moments, such as `run git push --force`, `edit db/migrations` or `fail ECONNREFUSED`"),
]
File = Annotated[Label, AfterValidator(_normalize_path)]
Expected = Annotated[
    Label,
    BeforeValidator(lower),
    StringConstraints(pattern=rf"^(?:{NO_MEMORY}|[0-9a-f]{{64}})$"),
    Allowed(f"Must be a SHA-256 of 64 hexadecimal digits, or `{NO_MEMORY}`"),
]
Since = Annotated[Moment | None, BeforeValidator(blank_to_none)]
Until = Annotated[Moment | None, BeforeValidator(_end_of_day), BeforeValidator(blank_to_none)]
Days = Annotated[Finite, Field(gt=0, le=MAX_DAYS), Allowed(f"Must be a number of days above 0 and at most {MAX_DAYS}")]
OutOfTen = Annotated[Finite, Field(ge=0.0, le=10.0), Allowed("Must be 0–10")]
Budget = Annotated[
    Whole,
    Field(ge=MIN_TOKENS, le=MAX_TOKENS),
    Allowed(f"Must be a whole number from {MIN_TOKENS} to {MAX_TOKENS}"),
]
Unit = Annotated[Finite, Field(ge=0.0, le=1.0), Allowed("Must be 0.0–1.0")]
Cosine = Annotated[Finite, Field(ge=-1.0, le=1.0), Allowed("Must be -1.0–1.0")]


def explain(error: ValidationError, fields: Mapping[str, FieldInfo]) -> InvalidInput:
    """Turn pydantic's first complaint about these fields into a sentence that names one and says what is allowed."""
    errors = error.errors(include_url=False)  # a misspelt name explains what is missing
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    name = str(first["loc"][0]) if first["loc"] else "request"
    context: dict[str, Any] = first.get("ctx", {})
    kind = first["type"]
    if kind == "missing":
        return InvalidInput(name, f"Missing {name}: `{name}` is required")
    if kind == "extra_forbidden":
        return InvalidInput(name, unknown_name("parameter", name, fields))
    if kind == "string_unicode":
        return InvalidInput(name, f"Invalid {name}: Contains a lone surrogate, which is not text")
    if kind in _TOO_LONG:
        return InvalidInput(name, f"Invalid {name}: {_TOO_LONG[kind].format(**context)}")
    field = fields.get(name)
    allowed = _first_allowed((field.annotation, *field.metadata)) if field is not None else None
    allowed = allowed or _ALLOWED_BY_ERROR.get(kind)
    if allowed is None or kind == "value_error":
        reason = str(context["error"]) if "error" in context else first["msg"]
        return InvalidInput(name, f"Invalid {name}: {reason[:1].upper()}{reason[1:]}")
    return InvalidInput(name, f"Invalid {name}: {allowed}")


def _allowed_values(kind: Any) -> str | None:
    """Return the accepted values of a field as text, from its annotation or the names of a closed set; else None."""
    if isinstance(kind, Allowed):
        return kind.sentence
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return one_of(kind)
    return one_of(get_args(kind)) if get_origin(kind) is Literal else _first_allowed(get_args(kind))


def _first_allowed(kinds: Iterable[Any]) -> str | None:
    return next(filter(None, map(_allowed_values, kinds)), None)


class Request(BaseModel):
    """A checked, frozen request; building one with bad input raises `InvalidInput`.

    A field's description starts with a short sentence for language models; people also read the rest. A field that a
    subclass declares again keeps its description.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise explain(error, type(self).model_fields) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        parents = [base.model_fields for base in cls.__mro__[1:] if issubclass(base, BaseModel)]
        for name, field in cls.model_fields.items():
            if field.description is None:
                field.description = next((parent[name].description for parent in parents if name in parent), None)


R = TypeVar("R", bound=Request)


def with_optional_fields(declared: type[BaseModel], *, without: Collection[str] = ()) -> Callable[[type[R]], type[R]]:
    """Add the fields of `declared` to a request, each optional, but those `without` and those the request declares."""
    hints = get_type_hints(declared, include_extras=True)

    def widened(request: type[R]) -> type[R]:
        added: dict[str, Any] = {
            name: (hints[name] | None, Field(default=None, description=field.description))
            for name, field in declared.model_fields.items()
            if name not in without and name not in request.model_fields
        }
        return create_model(
            request.__name__, __base__=request, __module__=request.__module__, __doc__=request.__doc__, **added
        )

    return widened
