"""The settings of a project for its sessions: `[tool.recollect]` in its pyproject.toml, or its recollect.toml.

A project's files come from whoever wrote the repository. So they may change these settings alone, turn on nothing that
is off, and spend and fade no more than without them. A value that is not allowed changes nothing.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from recollect.domain.lifecycle import LifecycleSettings
from recollect.projects import checkout_of

log = logging.getLogger(__name__)

_OWN: Final = "recollect.toml"
_PYPROJECT: Final = "pyproject.toml"
_NOT_ITS_OWN: Final = frozenset({"consolidate"})  # would let a repository hide what people stored
_NO_MORE: Final = ("capture", "inject", "token_budget", "max_inject_count", "consolidation_decay_rate")
_ALLOWED: Final = LifecycleSettings.model_fields.keys() - _NOT_ITS_OWN
_LARGEST: Final = 1_000_000  # bytes of a file that is read


def settings_in(folder: str, defaults: LifecycleSettings) -> LifecycleSettings:
    """Return the settings of the project around a folder over the `defaults`; the nearest file that has any counts."""
    path = Path(folder)
    if not folder or not path.is_absolute():
        return defaults
    for table in _tables(path):
        known = {name: value for name, value in table.items() if name in _ALLOWED}
        if known:
            return _changed(defaults, known, path)
    return defaults


def _changed(defaults: LifecycleSettings, known: dict[str, Any], folder: Path) -> LifecycleSettings:
    """Return the defaults with those values that are allowed."""
    settings = defaults
    for name, value in known.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else value
        try:
            settings = LifecycleSettings.model_validate(settings.model_dump() | {name: text})
        except ValidationError as error:
            log.warning("the setting %s of the project %s is not used: %s", name, folder, error.errors()[0]["msg"])
    least = {name: min(getattr(settings, name), getattr(defaults, name)) for name in _NO_MORE}
    return settings.model_copy(update=least | {"modules_off": ",".join(sorted(settings.off | defaults.off))})


def _tables(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield our table of each file between a folder and the root of its checkout, the nearest first."""
    root = checkout_of(folder) or folder
    for one in (folder, *folder.parents):
        yield _read(one / _OWN)
        tool = _read(one / _PYPROJECT).get("tool", {})
        table = tool.get("recollect", {}) if isinstance(tool, dict) else {}
        yield table if isinstance(table, dict) else {}
        if one == root:
            return


def _read(file: Path) -> dict[str, Any]:
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return {}
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        log.warning("%s cannot be read: %s", file, error)
        return {}
