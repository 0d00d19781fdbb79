"""Makes arguments and options from the fields of a request: their types, choices, defaults and help texts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from enum import StrEnum
from types import NoneType
from typing import Annotated, Any, Final, cast, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from recollect.domain.enums import Sensitivity, strictest
from recollect.domain.fields import Request
from recollect.domain.requests import Draft, Filters, Levels, StoreFact, Update
from recollect.domain.transfer import ImportBatch
from recollect.doors.cli.typed import days_left, moment, typed_text
from recollect.doors.schema import default_of
from recollect.errors import InvalidInput

_SEVERAL: Final = re.compile(r"[\s\d#,]+")

Fields = dict[str, Any]
"""The fields of a request that were typed."""

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for machines.")]

MoreIds = Annotated[list[str] | None, typer.Argument(metavar="ID", hidden=True, help="Further ids.")]

_TEXTS: Final = ("content", "query")
"""The fields whose words may be typed without quotes, and come from a pipe where none are typed."""

_OPTIONS: Final = {
    "allow_private": "--private",
    "allow_secret": "--secret",
    "as_of": ("--as-of", "--valid-at"),
    "concepts": "--concept",
    "everywhere": ("--everywhere", "--all-projects"),
    "fact_type": ("--fact-type", "--kind"),
    "files_modified": "--file-modified",
    "files_read": "--file-read",
    "limit": ("--limit", "-n"),
    "memory_id": "--memory",
    "project": "--project-field",
    "session_id": "--session",
    "tags": ("--tag", "--tags", "-t"),
    "to_project": ("--to", "--to-project"),
    "valid_from": "--from",
    "valid_to": "--to",
}
"""The fields whose options have other names; `--project` before the command is the caller's."""

_METAVARS: Final[dict[Any, str]] = {str: "TEXT", int: "N", float: "NUMBER", datetime: "WHEN"}
_EXPIRES: Final = "When it expires: a day, or words such as `in 3 months`; the same as `--ttl-days` with a number."
QUOTES: Final = "plain words need no quotes"
_PIPED: Final = f"{QUOTES}; without any, what is piped in is read; `-` waits for standard input"

_MOST_CHOICES: Final = 5
"""Values of larger sets are texts, which the request checks: it also accepts plurals."""

EVERY_LEVEL: Final = {"allow_private": True, "allow_secret": True}
"""What lets an operation look at memories of every level."""
FILTERS: Final = "Filters"
"""The panel of the options that narrow what is found."""
_STORES: Final = (Draft, StoreFact, ImportBatch)
"""The requests whose `--private` and `--secret` say at which level they store."""

_STORED: Final = ("tags", "category", "to_project")
"""The fields whose values the store knows."""


def ids_of(fields: Fields, more: Sequence[str] | None) -> list[str]:
    """Return the ids that were typed, each once: `1,2` names two, and `#1` is 1. A key stands alone."""
    if not more and not _SEVERAL.fullmatch(fields["id"]):
        return [fields["id"]]
    typed = [number.strip().removeprefix("#") for text in (fields["id"], *(more or ())) for number in text.split(",")]
    ids = list(dict.fromkeys(filter(None, typed)))
    wrong = next((number for number in ids if not number.isdecimal()), None)
    if wrong is not None and len(ids) > 1:  # words, which are no memories that are not there
        raise InvalidInput("id", f"Invalid id: `{wrong}` is none; Must be a number, as `recall` and `list` show it")
    return ids or [fields["id"]]


def from_fields(
    request: type[Request], positional: str = "", without: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of a request, and hand it the fields that were typed as `fields`.

    Required fields and the `positional` one are arguments. Filters stand in a panel of their own. What has `ttl_days`
    also has `--expires`. The command keeps its own parameters; its `as_json`, if any, is `--json`.
    """
    fields = {name: field for name, field in request.model_fields.items() if name not in without.split()}
    arguments = {
        name: _argument_for(name, field) for name, field in fields.items() if field.is_required() or name == positional
    }
    filters = Filters.model_fields if issubclass(request, Filters) else {}
    options = {
        name: _option_for(name, field, FILTERS if name in filters else None, request)
        for name, field in fields.items()
        if name not in arguments
    }
    if expires := "ttl_days" in fields:
        options["expires"] = _keyword_parameter(
            "expires", str | None, typer.Option("--expires", help=_EXPIRES, metavar="WHEN"), None
        )
    added = arguments | options

    def widened(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        own.pop("fields")
        last = [own.pop(name).replace(annotation=Json) for name in ("as_json",) if name in own]
        whole = [*added.values(), *own.values(), *last]

        def run(**typed: Any) -> None:
            until = typed.pop("expires") if expires else None
            values = {name: _value_of(request, name, typed.pop(name)) for name in fields}
            if until:
                values["ttl_days"] = days_left(until, values["ttl_days"])
            if issubclass(request, _STORES):
                values["sensitivity"] = _sensitivity_in(values)
            command(fields={name: value for name, value in values.items() if value is not None}, **typed)

        known = cast(Any, run)
        known.__name__, known.__doc__ = command.__name__, command.__doc__
        known.__signature__ = inspect.Signature([part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in whole])
        known.__annotations__ = {part.name: part.annotation for part in whole}
        return run

    return widened


def _sensitivity_in(values: dict[str, Any]) -> str | None:
    """Return the level at which a write stores; raise `InvalidInput` where its options name two."""
    named = values["sensitivity"]
    if values["allow_private"] and values["allow_secret"]:
        raise InvalidInput("sensitivity", "Invalid sensitivity: Must be `--private` or `--secret`, not both")
    flagged = strictest(*(level for level in Sensitivity if level is Sensitivity.PUBLIC or values[f"allow_{level}"]))
    if flagged is Sensitivity.PUBLIC:
        return None if named is None else str(named)
    if named not in (None, flagged):
        raise InvalidInput("sensitivity", f"`--{flagged}` stores it as {flagged}; leave out `--sensitivity {named}`.")
    return flagged


def _keyword_parameter(name: str, kind: Any, about: Any, default: Any) -> inspect.Parameter:
    annotation = Annotated[kind, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _argument_for(name: str, field: FieldInfo) -> inspect.Parameter:
    """Return the argument for a field: a text takes several words, any other field a word."""
    if name in _TEXTS:
        about = typer.Argument(
            metavar=name.upper(), help=f"{_help_of(field)[:-1]}; {_PIPED if field.is_required() else QUOTES}."
        )
        return _keyword_parameter(name, list[str] | None, about, None)
    about = typer.Argument(metavar=name.upper(), help=_help_of(field))
    if field.is_required():
        return _keyword_parameter(name, str, about, inspect.Parameter.empty)
    return _keyword_parameter(name, str | None, about, None)


def _option_names(name: str, request: type[Request]) -> tuple[str, ...]:
    """Return the names of a field's option; with a team, `--project` is a project of that team and not the caller's."""
    if name == "project" and "team" in request.model_fields:
        return ("--project",)
    called = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    return (called,) if isinstance(called, str) else tuple(called)


def _option_for(name: str, field: FieldInfo, panel: str | None, request: type[Request]) -> inspect.Parameter:
    """Return the option for a field of a request; where it stores, the option of a level marks the memory."""
    kind, stores = _plain_type(field.annotation), issubclass(request, _STORES)
    level = name.removeprefix("allow_")
    mark = f"Mark it as {level}: only you can read it, and only with `--{level}`. Credentials are refused all the same."
    text = mark if stores and name in Levels.model_fields else _help_of(field)
    names = _option_names(name, request)
    shown = _METAVARS.get(_type_of_member(field.annotation))
    complete: Callable[..., list[str]] | None = _lazy_completion(name) if name in _STORED else None
    if issubclass(kind, StrEnum) and len(kind) > _MOST_CHOICES:
        text = f"{text} One of: {', '.join(kind)}." if stores else text
        shown, complete = "NAME", _completion_of(kind)
        kind = str
    about = typer.Option(
        *names, help=text, case_sensitive=False, rich_help_panel=panel, metavar=shown, autocompletion=complete
    )
    if kind is bool:
        return _keyword_parameter(name, bool, about, False)
    if kind is tuple:
        kind = list[str]
    elif kind not in (int, float) and not issubclass(kind, StrEnum):
        kind = str
    return _keyword_parameter(name, kind | None, about, None)


def _lazy_completion(name: str) -> Callable[..., list[str]]:
    """Return the function that completes a field from stored values; it is imported only by a shell's completion."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from recollect.doors.cli import completion

        return completion.OF[name](ctx, incomplete)

    return complete


projects: Final = _lazy_completion("to_project")


def _completion_of(kind: type[StrEnum]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in kind if name.startswith(incomplete)]

    return complete


def _help_of(field: FieldInfo) -> str:
    kind = _plain_type(field.annotation)
    more = "; repeat it for more" if kind is tuple else ""
    words = " Words such as `last week` work too." if kind is datetime else ""
    return in_options(f"{field.description}{more}{default_of(field)}.{words}")


def in_options(text: str) -> str:
    """Name in a text the options in place of the fields that let more be seen."""
    for name in Levels.model_fields:
        text = text.replace(f"`{name}`", f"`{_OPTIONS[name]}`")
    return text


def _type_of_member(annotation: Any) -> Any:
    """Return the type that is typed for a field: for a list the type of its members."""
    kind = _plain_type(annotation)
    return str if kind is tuple or not isinstance(kind, type) else kind


def _plain_type(annotation: Any) -> Any:
    """Return a type without its constraints and without `None`; a list of names becomes `tuple`."""
    while (origin := get_origin(annotation)) not in (None, tuple):
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    return origin or (annotation if isinstance(annotation, type) else str)  # a literal is one text of several


def _value_of(request: type[Request], name: str, typed: Any) -> Any:
    """Return the typed value of a field, or None; a content `-` is read from standard input."""
    field = request.model_fields[name]
    if name in _TEXTS:
        return typed_text(name, typed, required=field.is_required())
    if typed is None or typed is False or typed == []:
        return None
    if name == "tags":
        typed = [tag for text in typed for tag in text.split(",")] if any(typed) else typed
    if _plain_type(field.annotation) is datetime:
        return moment(name, typed, end=name == "until", ahead=name == "valid_to")
    return [text for text in typed if text] if request is Update and isinstance(typed, list) else typed
