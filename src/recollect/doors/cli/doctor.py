"""The command `doctor`: checks every part, and says what to do about each problem."""

from __future__ import annotations

import platform
import sqlite3
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from recollect import project_files
from recollect.client import launch
from recollect.domain.lifecycle import LifecycleSettings
from recollect.domain.results import Check
from recollect.doors.agents import registrations
from recollect.doors.cli import answers, exit_codes
from recollect.doors.cli.opening import opened
from recollect.doors.cli.options import Json
from recollect.doors.cli.server_checks import inbox_checks, server_checks
from recollect.doors.serializers import public_json
from recollect.errors import DaemonUnreachable, RecollectError, StoreOwned
from recollect.settings import Settings, unknown_variables
from recollect.store.ownership import problem

_LIBRARIES = ("chromadb", "onnxruntime", "mcp", "sqlalchemy", "detect-secrets")

_UNUSABLE = (
    "Fix this, then run `recollect doctor`. Damaged indexes are built again by `recollect reindex`; a damaged database "
    "is brought back from a backup by `recollect backup restore FILE --force`."
)

cli = typer.Typer()


@cli.command()
def doctor(
    ctx: typer.Context,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Read every journal line, row and vector, and embed again what no digest proves."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check everything, and say what to do about each problem."""
    checks = _run_checks(ctx.obj, deep=deep)
    exit_codes.show(
        public_json(list[Check], checks)["checks"], as_json, print_answer=lambda: answers.print_checks(checks)
    )
    if not all(check.well for check in checks):
        raise typer.Exit(1)


def _run_checks(settings: Settings, *, deep: bool) -> list[Check]:
    """Return the report, a check for each part; also when the store cannot be opened."""
    checks = [
        _versions_check(),
        _settings_check(settings),
        *_project_checks(settings.lifecycle),
        *registrations.checks(registrations.project_folder()),
    ]
    if settings.url:
        server = list(server_checks(settings))
        return [*checks, *server, *(inbox_checks(settings) if all(check.well for check in server) else [])]
    checks.append(_daemon_check(settings))
    try:
        with opened(settings, model=False) as run:
            store = Check("store", True, settings.store_name)
            return [*checks, store, *run("doctor", deep=deep), run("inbox", limit=1).check]
    except StoreOwned as error:
        advice = "Wait until that process ends, or end it; one process at a time can open the store."
        return [*checks, Check("store", False, str(error), advice)]
    except RecollectError as error:
        advice = "Then run `recollect doctor` again." if problem(settings.folder) else _UNUSABLE
        return [*checks, Check("store", False, str(error), advice)]


def _versions_check() -> Check:
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    own = f"recollect {version('recollect')}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return Check("versions", True, f"{own}, {libraries}")


def _settings_check(settings: Settings) -> Check:
    """Return the check of the settings: a problem where a variable has an unknown name."""
    caller = settings.caller
    seen = f"user {caller.user}, team {caller.team}, project {caller.project}; secrets: {settings.on_secret}"
    if unknown := unknown_variables():
        advice = "Check the spelling: docs/settings.md lists them all."
        return Check("settings", False, f"unknown: {', '.join(unknown)}", advice)
    return Check("settings", True, seen)


def _project_checks(here: LifecycleSettings) -> list[Check]:
    """Return a check where the project's files set a value without effect, such as a switch in the wrong file."""
    try:
        folder = Path.cwd()
    except OSError:  # the working folder is gone, or may not be looked at
        return []
    if vain := "; ".join(project_files.without_effect(folder, partial(_reason_refused, here))):
        names = ", ".join(project_files.NAMES)
        advice = f"In recollect.toml, or [tool.recollect] of pyproject.toml, a project can set: {names}."
        return [Check("project settings", False, vain, advice)]
    return []


def _reason_refused(here: LifecycleSettings, name: str, value: object) -> str:
    """Return why a project's value of a setting is not used over the settings `here`, an empty text if it is."""
    text = ",".join(map(str, value)) if isinstance(value, list) else value
    try:
        project = LifecycleSettings.model_validate({name: text})
    except ValidationError as error:
        return error.errors()[0]["msg"]
    if filters := ", ".join(project.off & project_files.FILTERS):
        return f"a project cannot turn {filters} off"
    asked, own = getattr(project, name), getattr(here, name)
    if name == "modules_off" or project_files.stricter(name, own, asked) == asked:
        return ""
    if isinstance(own, bool):
        return "a project can only turn it off"
    return f"a project can only {'raise' if name in project_files.RAISED else 'lower'} it, from {own}"


def _daemon_check(settings: Settings) -> Check:
    """Return the check of a running daemon's version; the check of the store covers a daemon that is silent."""
    with suppress(DaemonUnreachable):
        if (client := launch.running(settings)) is not None:
            theirs, ours = client.runtime.version, version("recollect")
            seen = f"recollect {theirs}, process {client.runtime.pid}, since {client.runtime.since}"
            return Check("daemon", theirs == ours, seen, "Run `recollect stop`: the next command starts this version.")
    return Check("daemon", True, "none is running")
