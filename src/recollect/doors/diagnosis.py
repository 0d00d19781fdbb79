"""The doctor: what can be said about an installation, even when its store cannot be opened."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Callable
from importlib.metadata import version

from recollect.errors import RecollectError, StoreOwned
from recollect.ports import Check
from recollect.settings import Settings, unknown_variables

_LIBRARIES = ("chromadb", "onnxruntime", "mcp", "sqlmodel", "detect-secrets")


def diagnose(settings: Settings, store_checks: Callable[[], list[Check]]) -> list[Check]:
    """Return the report, one line a part; what is not well carries advice."""
    checks = [_versions(), _settings(settings)]
    try:
        return [*checks, Check("store", True, str(settings.folder)), *store_checks()]
    except StoreOwned as error:
        advice = "Wait until that process is done, or end it; it shares the store with nobody."
        return [*checks, Check("store", False, str(error), advice)]
    except RecollectError as error:
        return [*checks, Check("store", False, str(error), "Mend that, then ask the doctor again.")]


def _versions() -> Check:
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    own = f"recollect {version('recollect')}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return Check("versions", True, f"{own}, {libraries}")


def _settings(settings: Settings) -> Check:
    caller = settings.caller
    seen = f"user {caller.user}, team {caller.team}, project {caller.project}; secrets: {settings.on_secret}"
    if unknown := unknown_variables():
        return Check("settings", False, f"unknown: {', '.join(unknown)}", "Check the spelling: README lists them all.")
    return Check("settings", True, seen)
