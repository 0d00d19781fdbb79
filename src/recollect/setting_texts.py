"""The settings as texts: options before a command, variables of the environment, and files that hold a value.

Each is declared and checked in `recollect.settings`, which reads them here too. It imports next to nothing, so that a
hook, which cannot wait for the checks, reads by the same rules.
"""

from __future__ import annotations

import os

from recollect import process
from recollect.store_folder import DATABASE, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

PREFIX = "RECOLLECT_"
IN_FILE = "_FILE"
DATA_FOLDER = "~/.recollect"
"""The data folder where nobody has named another."""
_OFF = frozenset({"0", "false", "f", "no", "n", "off"})


class SettingTexts:
    """The settings of a client by their names: an option comes before a variable, and nothing is checked yet."""

    def __init__(self, options: Mapping[str, Any], variables: Mapping[str, str]) -> None:
        self.options = options
        self.variables = variables

    def found(self, names: Iterable[str]) -> dict[str, Any]:
        """Return those of the settings that are set."""
        values = {name: self._value_of(name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    def text(self, name: str, default: str = "") -> str:
        """Return the text of a setting, or its default."""
        value = self._value_of(name)
        return default if value is None else str(value)

    @property
    def server(self) -> str:
        """Return the address of the team's server, empty where a store of this machine is asked."""
        return self.text("url")

    @property
    def shares_daemon(self) -> bool:
        """Say whether clients share a daemon."""
        return means_yes(self.text("daemon", "1"))

    @property
    def home(self) -> str:
        """Return the data folder."""
        return _absolute_path(self.text("home", DATA_FOLDER))

    @property
    def store_folder(self) -> str:
        """Return the folder of the store's files."""
        return folder_of(_absolute_path(self.text("memory_db") or f"{self.home}/{DATABASE}"))

    def _value_of(self, name: str) -> Any:
        """Return the option, else the variable, else None; a data folder given by option has its own database."""
        if name in self.options or (name == "memory_db" and "home" in self.options):
            return self.options.get(name)
        return self.variables.get(variable(name))


def variable(name: str) -> str:
    """Return the environment's name of a setting."""
    return f"{PREFIX}{name.upper()}"


def variables() -> dict[str, str]:
    """Return the variables of ours that are set; an empty variable counts as absent.

    `NAME_FILE` names a file that holds the value of `NAME`, as secrets come into containers; it stays as it is when
    `NAME` is set too, or the file holds nothing that can be read.
    """
    found = process.beginning_with(PREFIX)
    for name in [name for name in found if name.endswith(IN_FILE)]:
        wanted = name.removesuffix(IN_FILE)
        if wanted not in found and (text := process.first_line(found[name])):
            found[wanted] = text
            del found[name]
    return found


def environment_with(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that is started here, with these settings, each in one place."""
    ours = {variable(name): value for name, value in settings.items() if value}
    return process.inherited(without={name + IN_FILE for name in ours}) | ours


def means_yes(text: str) -> bool:
    """Say whether the text of a switch turns it on."""
    return bool(text) and text.strip().lower() not in _OFF


def _absolute_path(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - pathlib takes long to import
