"""What the files of a project say of its sessions: `[tool.recollect]` in its pyproject.toml, or its recollect.toml.

Only read here: what of it counts, `sessions/project_settings.py` decides. It imports little, as hooks wait for it.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from recollect import process
from recollect.projects import checkout_of

log = logging.getLogger(__name__)

NAMES: Final = (
    "capture",
    "inject",
    "memorability_threshold",
    "token_budget",
    "max_inject_count",
    "checkpoint_every",
    "compression_min_age_days",
    "consolidation_decay_rate",
    "modules_off",
)
"""The settings that a project may change."""
NO_MORE: Final = ("capture", "inject", "token_budget", "max_inject_count", "consolidation_decay_rate")
"""Those of them that it may only turn off, or lower."""
_OWN: Final = "recollect.toml"
_PYPROJECT: Final = "pyproject.toml"
_LARGEST: Final = 1_000_000  # bytes of a file that is read


def table_in(folder: str) -> dict[str, Any]:
    """Return what the nearest file says that says anything, of the project around a folder; empty without one."""
    path = Path(folder)
    if not folder or not path.is_absolute():
        return {}
    for table in _tables(path):
        if found := {name: value for name, value in table.items() if name in NAMES}:
            return found
    return {}


def asked_here(folder: str, told: Mapping[str, str]) -> dict[str, Any]:
    """Return what the environment of ours and the project around a folder ask for together.

    The project changes what the environment says, but turns nothing on that this turns off, and raises no limit of it.
    """
    said = {name: told[key] for name in NAMES if (key := f"{process.PREFIX}{name.upper()}") in told}
    asked: dict[str, Any] = said | table_in(folder)
    for name in NO_MORE:
        if name in said:
            asked[name] = _least(said[name], asked[name])
    if "modules_off" in said:
        more = asked["modules_off"]
        asked["modules_off"] = ",".join([said["modules_off"], *(more if isinstance(more, list) else [str(more)])])
    return asked


def is_off(value: object) -> bool:
    """Say whether a value turns a setting off."""
    return value is False or value == 0 or (isinstance(value, str) and not process.yes(value))


def _least(said: str, asked: object) -> object:
    """Return the lesser of what the environment says and what a file asks for; what is no number changes nothing."""
    if is_off(said) or is_off(asked):
        return said if is_off(said) else asked
    try:
        return asked if float(str(asked)) < float(said) else said
    except ValueError:
        return said


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
