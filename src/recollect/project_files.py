"""What the files of a project say of its sessions: `[tool.recollect]` in its pyproject.toml, or its recollect.toml.

Only read here: what of it counts, `sessions/project_settings.py` decides. It imports little, as hooks wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from recollect import process, repository_files
from recollect.projects import FILE, checkout_of

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
"""Those of them that every file of a project may turn off, also one that a nearer file overrides."""
ASKING: Final = ("off", "compact", "on")
"""How often an agent is asked to store what it learnt, the least first: a project may only lower this."""
NO_MORE: Final = (*_SWITCHES, "token_budget", "max_inject_count", "consolidation_decay_rate")
"""Those of them that it may only turn off, or lower."""
NO_LESS: Final = ("memorability_threshold", "checkpoint_every", "compression_min_age_days")
"""Those that it may only raise: what is not worth a memory stays out, and nothing is compressed sooner."""
NO_LONGER: Final = ("default_ttl_days", "max_captured")
"""Those by which it may have fewer drafts kept, or for a shorter time; 0 is without a limit."""
FILTERS: Final = frozenset({"memorability"})
"""The modules that a project cannot turn off, as they keep things out."""
_OWN: Final = "recollect.toml"
_PYPROJECT: Final = "pyproject.toml"


def table_in(folder: str) -> dict[str, Any]:
    """Return what the files of the project around a folder ask for, empty without any.

    The nearest file that sets anything counts, but any of them turns capture or injection off.
    """
    path = Path(folder)
    if not folder or not path.is_absolute():
        return {}
    return _together(_tables(path))


def _together(tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what tables ask for together, the nearest first."""
    found = [ours for table in tables if (ours := _known(table))]
    off = {name: False for name in _SWITCHES for ours in found if is_off(ours.get(name, True))}
    return found[0] | off if found else {}


def asked_here(folder: str, told: Mapping[str, str]) -> dict[str, Any]:
    """Return what the environment of ours and the project around a folder ask for together.

    The project changes what the environment says, but turns nothing on that this turns off, and raises no limit of it.
    """
    said = {name: told[key] for name in NAMES if (key := f"{process.PREFIX}{name.upper()}") in told}
    asked: dict[str, Any] = said | table_in(folder)
    for name in NO_MORE:
        if name in said:
            asked[name] = _least(said[name], asked[name])
    for name in NO_LESS:
        if name in said:
            asked[name] = said[name] if _least(said[name], asked[name]) == asked[name] else asked[name]
    if "ask" in said:  # a word that is none says nothing, and the server names it
        asked["ask"] = min((said["ask"], str(asked["ask"])), key=lambda word: (*ASKING, word).index(word))
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


def without_effect(folder: Path, refusal: Callable[[str, object], str]) -> Iterator[str]:
    """Yield a sentence for each file of the project around a folder that cannot be read, or has settings in vain.

    `refusal` says why a value of a setting is not used, and nothing if it is.
    """
    tables = {}
    for file in _files(folder, _OWN, _PYPROJECT, FILE):
        try:
            tables[file] = _table(file)
        except (OSError, ValueError) as error:
            if _may_be_ours(file):
                yield f"{file} cannot be read: {error}"
    asked = _together(table for file, table in tables.items() if file.name != FILE)
    nearest = None
    for file, found in tables.items():
        ours = {} if file.name == FILE else _known(found)
        if vain := [name for name in found if name not in ours and (file.name, name) != (FILE, "project")]:
            yield f"{file} sets {', '.join(vain)}, which has no effect there"
        nearest = nearest or (file if ours else None)
        lost = [name for name in ours if not _counts(name, ours, asked)]
        if lost:
            other = "another file of the project turns it off" if file == nearest else f"{nearest} overrides it"
            yield f"{file} sets {', '.join(lost)} without effect: {other}"
        for name, value in ours.items():
            if name not in lost and (why := refusal(name, value)):
                yield f"{file} sets {name} to a value that is not used: {why}"


def _known(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name in NAMES}


def _counts(name: str, ours: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Say whether what a file sets is what all files together ask for."""
    return name in asked and (ours[name] == asked[name] or (name in _SWITCHES and is_off(ours[name])))


def _may_be_ours(file: Path) -> bool:
    """Say whether a file that cannot be read may have settings of ours; most files `pyproject.toml` have none."""
    try:
        return file.name != _PYPROJECT or b"tool.recollect" in repository_files.beginning(
            file, repository_files.LARGEST
        )
    except OSError:
        return True


def _tables(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield our table of each file between a folder and the root of its checkout, the nearest first."""
    for file in _files(folder, _OWN, _PYPROJECT):
        try:
            yield _table(file)
        except (OSError, ValueError) as error:
            if _may_be_ours(file):
                log.warning("%s cannot be read: %s", file, error)


def _files(folder: Path, *names: str) -> Iterator[Path]:
    """Yield the paths of files of these names between a folder and the root of its checkout, the nearest first."""
    root = checkout_of(folder) or folder
    for one in (folder, *folder.parents):
        yield from (one / name for name in names)
        if one == root:
            return


def _table(file: Path) -> dict[str, Any]:
    """Return our table of a file, empty where there is none; raise `ValueError` or `OSError` for an unusable file."""
    if not file.is_file():
        return {}
    found: Any = repository_files.toml(file)
    if file.name == _PYPROJECT:
        tool = found.get("tool")
        found = tool.get("recollect") if isinstance(tool, dict) else None
    return (
        {_OTHER_NAMES.get(str(name), str(name)): one for name, one in found.items()} if isinstance(found, dict) else {}
    )
