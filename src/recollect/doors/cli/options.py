"""Makes arguments and options from the fields of a request, and reads what people type for them.

Texts may be typed as several words or come through a pipe, dates may be words too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from types import NoneType
from typing import Annotated, Any, Final, cast, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from recollect.domain import calendar
from recollect.domain.enums import Sensitivity, strictest
from recollect.domain.fields import Request
from recollect.domain.requests import Draft, Filters, Levels, StoreFact, Update
from recollect.domain.transfer import ImportBatch
from recollect.doors.cli import render, terminal
from recollect.doors.schema import default_of
from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect.text.utf8 import fault_of_text

_ISO: Final = re.compile(r"\s*\d{4}-\d\d-\d\d")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_SEVERAL: Final = re.compile(r"[\s\d#,]+")
_MOMENTS: Final = (
    "Must be a day or a time, such as `2026-05-07` or `2026-05-07T13:30`, or words such as `yesterday`, `last week`, "
    "`3 days ago` or `March 2026`"
)
_AHEAD: Final = (
    "Must be a day or a time to come, such as `2027-05-07`, or words such as `tomorrow`, `next week` or `in 3 months`"
)


def typed_text(name: str, typed: Sequence[str] | str | None, *, required: bool) -> str | None:
    """Return the words that were typed as one text, or for `-` alone standard input.

    Where a `required` text has no words it is what was piped in; raises `InvalidInput` where that is nothing.
    """
    words = [typed] if isinstance(typed, str) else typed
    if words and list(words) != ["-"]:
        text = " ".join(words)
        if (wrong := fault_of_text(text)) is not None:
            raise InvalidInput(name, f"Invalid {name}: {wrong}")
        return text
    if words:
        return terminal.typed().rstrip("\r\n")
    if not required:
        return None
    piped = terminal.piped()
    if piped is None:
        raise InvalidInput(name, f"Missing {name}: Type the text, or pipe it in; `--help` tells more")
    return piped.rstrip("\r\n")  # the program before the pipe ended its last line with it


def moment(name: str, typed: str, *, end: bool = False, ahead: bool = False) -> str:
    """Return a date as the request reads it: ISO as it is, words as the moment that they mean by the local clock.

    A day begins where it begins here; with `end` it is meant to its end.
    """
    if not typed.strip() or _ISO.match(typed):
        return typed
    found = _meant(name, typed, end=end, ahead=ahead)
    if found is None:
        raise InvalidInput(name, f"Invalid {name}: {_MOMENTS}")
    return found.isoformat()


def _meant(name: str, typed: str, *, end: bool, ahead: bool) -> datetime | None:
    """Return the moment that words or figures mean, None where they mean none.

    Figures that are another day elsewhere are named as they were understood; raises `InvalidInput` where that is not
    known.
    """
    from recollect.search import typed_dates

    try:
        figures = typed_dates.day_in_figures(typed, typed_dates.date_order(terminal.locale()))
    except typed_dates.Ambiguous as error:
        first, second = (day.isoformat() for day in error.days)
        raise InvalidInput(
            name, f"Invalid {name}: `{typed}` may be {error}: type `{first}` or `{second}`, or set LC_TIME"
        ) from None
    except ValueError:  # no day of the calendar
        return None
    if figures is None:
        return typed_dates.named_moment(typed, datetime.now(calendar.here()), end=end, ahead=ahead)
    if figures.doubtful:
        render.err.print(f"`{typed}` is read as {typed_dates.in_words(figures.day)}.", style="dim", markup=False)
    days = calendar.days(figures.day)
    return days.last if end else days.first


def days_left(typed: str, ttl_days: object) -> float:
    """Return the days from now until the end of the day that was typed, or until the time in it."""
    if ttl_days is not None:
        raise InvalidInput("expires", "Invalid expires: Must not be given together with `--ttl-days`")
    left = (_end(typed) - datetime.now(UTC)) / timedelta(days=1)
    if left <= 0:
        raise InvalidInput("expires", f"Invalid expires: {_AHEAD}")
    return left


def _end(typed: str) -> datetime:
    """Return the end of a day that was typed, or the time in it; raise `InvalidInput` for neither."""
    found = None
    try:
        if not _ISO.match(typed):
            found = _meant("expires", typed, end=True, ahead=True)
        elif _DAY.fullmatch(typed.strip()):
            found = calendar.days(date.fromisoformat(typed.strip())).last
        else:
            found = calendar.instant(datetime.fromisoformat(typed.strip()))
    except (ValueError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
    if found is None:
        raise InvalidInput("expires", f"Invalid expires: {_AHEAD}")
    return found


Given = dict[str, Any]
"""The fields of a request that were typed."""

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON, for machines.")]


MoreIds = Annotated[list[str] | None, typer.Argument(metavar="ID", hidden=True, help="Further ids.")]


def ids_of(given: Given, more: Sequence[str] | None) -> list[str]:
    """Return the ids that were typed, each once: `1,2` names two, and `#1` is 1. A key stands alone."""
    if not more and not _SEVERAL.fullmatch(given["id"]):
        return [given["id"]]
    typed = [one.strip().removeprefix("#") for text in (given["id"], *(more or ())) for one in text.split(",")]
    ids = list(dict.fromkeys(filter(None, typed)))
    wrong = next((one for one in ids if not one.isdecimal()), None)
    if wrong is not None and len(ids) > 1:  # words, which are no memories that are not there
        raise InvalidInput("id", f"Invalid id: `{wrong}` is none; Must be a number, as `recall` and `list` show it")
    return ids or [given["id"]]


def of_store(ctx: typer.Context) -> Settings:
    """Return the settings of a command that looks after the store here; raise `InvalidInput` where it is elsewhere."""
    settings: Settings = ctx.obj
    if settings.url:
        raise InvalidInput(
            "url",
            f"`recollect {ctx.command_path.partition(' ')[2]}` looks after a store and runs where that is, not through "
            "RECOLLECT_URL; with `--in-process` before the command it means the store of this machine.",
        )
    return settings


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


def from_fields(
    request: type[Request], positional: str = "", without: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of a request, and hand it what was typed as `given`.

    Required fields and the `positional` one are arguments. Filters stand in a panel of their own. What has `ttl_days`
    also has `--expires`. The command keeps its own parameters; its `as_json`, if any, is `--json`.
    """
    fields = {name: field for name, field in request.model_fields.items() if name not in without.split()}
    arguments = {name: _argument(name, one) for name, one in fields.items() if one.is_required() or name == positional}
    filters = Filters.model_fields if issubclass(request, Filters) else {}
    options = {
        name: _option(name, one, FILTERS if name in filters else None, stores=issubclass(request, _STORES))
        for name, one in fields.items()
        if name not in arguments
    }
    if expires := "ttl_days" in fields:
        options["expires"] = _parameter(
            "expires", str | None, typer.Option("--expires", help=_EXPIRES, metavar="WHEN"), None
        )
    added = arguments | options

    def widened(command: Callable[..., None]) -> Callable[..., None]:
        own = dict(inspect.signature(command, eval_str=True).parameters)
        own.pop("given")
        last = [own.pop(name).replace(annotation=Json) for name in ("as_json",) if name in own]
        whole = [*added.values(), *own.values(), *last]

        def run(**typed: Any) -> None:
            until = typed.pop("expires") if expires else None
            values = {name: _value(request, name, typed.pop(name)) for name in fields}
            if until:
                values["ttl_days"] = days_left(until, values["ttl_days"])
            if issubclass(request, _STORES):
                values["sensitivity"] = _level(values)
            command(given={name: value for name, value in values.items() if value is not None}, **typed)

        known = cast(Any, run)
        known.__name__, known.__doc__ = command.__name__, command.__doc__
        known.__signature__ = inspect.Signature([one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in whole])
        known.__annotations__ = {one.name: one.annotation for one in whole}
        return run

    return widened


def _level(values: dict[str, Any]) -> str | None:
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


def _parameter(name: str, kind: Any, about: Any, default: Any) -> inspect.Parameter:
    annotation = Annotated[kind, about]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _argument(name: str, field: FieldInfo) -> inspect.Parameter:
    if name in _TEXTS:
        about = typer.Argument(
            metavar=name.upper(), help=f"{_help(field)[:-1]}; {_PIPED if field.is_required() else QUOTES}."
        )
        return _parameter(name, list[str] | None, about, None)
    about = typer.Argument(metavar=name.upper(), help=_help(field))
    if field.is_required():
        return _parameter(name, str, about, inspect.Parameter.empty)
    return _parameter(name, str | None, about, None)


def _option(name: str, field: FieldInfo, panel: str | None, *, stores: bool) -> inspect.Parameter:
    kind = _plain_type(field.annotation)
    level = name.removeprefix("allow_")
    said = f"Mark it as {level}: only you can read it, and only with `--{level}`. Credentials are refused all the same."
    text = said if stores and name in Levels.model_fields else _help(field)
    called = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    names = (called,) if isinstance(called, str) else called
    shown = _METAVARS.get(_member(field.annotation))
    complete: Callable[..., list[str]] | None = _lazily(name) if name in _STORED else None
    if issubclass(kind, StrEnum) and len(kind) > _MOST_CHOICES:
        text = f"{text} One of: {', '.join(kind)}." if stores else text
        shown, complete = "NAME", _completion(kind)
        kind = str
    about = typer.Option(
        *names, help=text, case_sensitive=False, rich_help_panel=panel, metavar=shown, autocompletion=complete
    )
    if kind is bool:
        return _parameter(name, bool, about, False)
    if kind is tuple:
        kind = list[str]
    elif kind not in (int, float) and not issubclass(kind, StrEnum):
        kind = str
    return _parameter(name, kind | None, about, None)


_STORED: Final = ("tags", "category", "to_project")
"""The fields whose values the store knows."""


def _lazily(name: str) -> Callable[..., list[str]]:
    """Return what completes a field by what is stored; only a shell that completes imports it."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from recollect.doors.cli import completion

        return completion.OF[name](ctx, incomplete)

    return complete


projects: Final = _lazily("to_project")


def _completion(kind: type[StrEnum]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [one for one in kind if one.startswith(incomplete)]

    return complete


def _help(field: FieldInfo) -> str:
    kind = _plain_type(field.annotation)
    more = "; repeat it for more" if kind is tuple else ""
    words = " Words such as `last week` work too." if kind is datetime else ""
    return in_options(f"{field.description}{more}{default_of(field)}.{words}")


def in_options(text: str) -> str:
    """Name in a text the options in place of the fields that let more be seen."""
    for name in Levels.model_fields:
        text = text.replace(f"`{name}`", f"`{_OPTIONS[name]}`")
    return text


def _member(annotation: Any) -> Any:
    """Return the type of a field as it is typed: of a list that of its members."""
    kind = _plain_type(annotation)
    return str if kind is tuple or not isinstance(kind, type) else kind


def _plain_type(annotation: Any) -> Any:
    """Return a type without its constraints, its alternative `None` and its members: `tuple` for a list of names."""
    while (origin := get_origin(annotation)) not in (None, tuple):
        annotation = next(one for one in get_args(annotation) if one is not NoneType)
    return origin or (annotation if isinstance(annotation, type) else str)  # a literal is one text of several


def _value(request: type[Request], name: str, typed: Any) -> Any:
    """Return what was typed for a field, or None; a content `-` is read from standard input."""
    field = request.model_fields[name]
    if name in _TEXTS:
        return typed_text(name, typed, required=field.is_required())
    if typed is None or typed is False or typed == []:
        return None
    if name == "tags":
        typed = [tag for one in typed for tag in one.split(",")] if any(typed) else typed
    if _plain_type(field.annotation) is datetime:
        return moment(name, typed, end=name == "until", ahead=name == "valid_to")
    return [one for one in typed if one] if request is Update and isinstance(typed, list) else typed
