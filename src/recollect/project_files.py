"""What the files of a project say of its sessions: `[tool.recollect]` in its pyproject.toml, or its recollect.toml.

Only read here: what of it counts, `sessions/project_settings.py` decides. It imports little, as hooks wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any, Final

from recollect import repository_files
from recollect.projects import FILE, checkout_of
from recollect.setting_texts import SettingTexts, means_yes

log = logging.getLogger(__name__)

NAMES: Final = (
    "capture",
    "inject",
    "ask",
    "memorability_threshold",
    "token_budget",
    "max_inject_count",
    "checkpoint_every",
    "compression_min_age_days",
    "consolidation_decay_rate",
    "default_ttl_days",
    "max_captured",
    "modules_off",
)
"""The settings that a project may change."""
_OTHER_NAMES: Final = {"max_memories": "max_captured"}
"""What a project's file may call a setting besides."""
_SWITCHES: Final = ("capture", "inject")
"""The settings that every file of a project may turn off, also a file that a nearer file overrides."""
ASKING: Final = ("off", "compact", "on")
"""How often an agent is asked to store what it learnt, the least first."""
RAISED: Final = ("memorability_threshold", "checkpoint_every", "compression_min_age_days")
"""The settings that a project may only raise, so that less is kept and nothing is compressed sooner; all others are
only lowered."""
_WITHOUT_LIMIT: Final = ("default_ttl_days", "max_captured")
"""The settings that have no limit where they are 0."""
_MODULES: Final = "modules_off"
FILTERS: Final = frozenset({"memorability"})
"""The modules that a project cannot turn off, as they keep things out."""
_OWN: Final = "recollect.toml"
_PYPROJECT: Final = "pyproject.toml"


def table_in(folder: str) -> dict[str, Any]:
    """Return the settings in the files of the project around a folder, empty without any.

    The nearest file that sets anything counts, but every file can turn capture or injection off.
    """
    path = Path(folder)
    if not folder or not path.is_absolute():
        return {}
    return _combine(_tables_around(path))


def _combine(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of all tables together: the nearest table, and every switch that any table turns off."""
    found = [ours for table in tables if (ours := _known_settings(table))]
    off = {name: False for name in _SWITCHES for ours in found if is_off(ours.get(name, True))}
    return found[0] | off if found else {}


def asked_here(folder: str, settings: SettingTexts) -> dict[str, Any]:
    """Return the settings of a client together with those of the project around a folder, of two the stricter."""
    own, asked = settings.found(NAMES), table_in(folder)
    return own | asked | {name: stricter(name, own[name], asked[name]) for name in own.keys() & asked.keys()}


def stricter(name: str, own: object, asked: object) -> object:
    """Return the stricter of two values of a setting: the user's own, or that of a project.

    Both are texts, or already converted. An invalid value does not count.
    """
    if name == _MODULES:
        return ",".join(sorted(_names_in(own) | (_names_in(asked) - FILTERS)))
    try:
        size = _comparable(name, asked)
    except ValueError:
        return own
    try:
        lower = size <= _comparable(name, own)
    except ValueError:
        return asked
    return asked if lower == (name not in RAISED) else own


def is_off(value: object) -> bool:
    """Say whether a value turns a setting off."""
    return value is False or value == 0 or (isinstance(value, str) and not means_yes(value))


def _comparable(name: str, value: object) -> float:
    """Return a number by which two values of a setting compare; raise `ValueError` for an invalid value."""
    if name in _SWITCHES:
        return 0.0 if is_off(value) else 1.0
    if name == "ask":
        return float(ASKING.index(str(value)))
    number = float(str(value))
    return inf if name in _WITHOUT_LIMIT and number == 0 else number


def _names_in(value: object) -> frozenset[str]:
    """Return the names in a list, or in a text that separates them by commas."""
    names = value if isinstance(value, list) else str(value).split(",")
    return frozenset(str(name).strip().lower() for name in names if str(name).strip())


def without_effect(folder: Path, refusal: Callable[[str, object], str]) -> Iterator[str]:
    """Yield a sentence for each file of the project around a folder that cannot be read or sets a value without effect.

    `refusal` returns why a value of a setting is not used, an empty text where it is.
    """
    tables = {}
    for file in _files_around(folder, _OWN, _PYPROJECT, FILE):
        try:
            tables[file] = _table_of(file)
        except (OSError, ValueError) as error:
            if _may_be_ours(file):
                yield f"{file} cannot be read: {error}"
    asked = _combine(table for file, table in tables.items() if file.name != FILE)
    nearest = None
    for file, found in tables.items():
        ours = {} if file.name == FILE else _known_settings(found)
        if vain := [name for name in found if name not in ours and (file.name, name) != (FILE, "project")]:
            yield f"{file} sets {', '.join(vain)}, which has no effect there"
        nearest = nearest or (file if ours else None)
        lost = [name for name in ours if not _takes_effect(name, ours, asked)]
        if lost:
            other = "another file of the project turns it off" if file == nearest else f"{nearest} overrides it"
            yield f"{file} sets {', '.join(lost)} without effect: {other}"
        for name, value in ours.items():
            if name not in lost and (why := refusal(name, value)):
                yield f"{file} sets {name} to a value that is not used: {why}"


def _known_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name in NAMES}


def _takes_effect(name: str, ours: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Return whether the value that a file sets is the value that holds for the project."""
    return name in asked and (ours[name] == asked[name] or (name in _SWITCHES and is_off(ours[name])))


def _may_be_ours(file: Path) -> bool:
    """Say whether a file that cannot be read may have settings of ours; most files `pyproject.toml` have none."""
    try:
        return file.name != _PYPROJECT or b"tool.recollect" in repository_files.beginning(
            file, repository_files.LARGEST
        )
    except OSError:
        return True


def _tables_around(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield our table of each file between a folder and the root of its checkout, the nearest first."""
    for file in _files_around(folder, _OWN, _PYPROJECT):
        try:
            yield _table_of(file)
        except (OSError, ValueError) as error:
            if _may_be_ours(file):
                log.warning("%s cannot be read: %s", file, error)


def _files_around(folder: Path, *names: str) -> Iterator[Path]:
    """Yield the paths of files of these names between a folder and the root of its checkout, the nearest first."""
    root = checkout_of(folder) or folder
    for one in (folder, *folder.parents):
        yield from (one / name for name in names)
        if one == root:
            return


def _table_of(file: Path) -> dict[str, Any]:
    """Return our table of a file, empty where it has none; raise `ValueError` or `OSError` for an unusable file."""
    if not file.is_file():
        return {}
    found: Any = repository_files.toml(file)
    if file.name == _PYPROJECT:
        tool = found.get("tool")
        found = tool.get("recollect") if isinstance(tool, dict) else None
    return (
        {_OTHER_NAMES.get(str(name), str(name)): one for name, one in found.items()} if isinstance(found, dict) else {}
    )
