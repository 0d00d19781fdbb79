"""The units of docs/deploy/systemd are units of systemd, and their commands and settings are Recollect's."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from places import DOCS
from recollect.doors.http import server
from recollect.settings import Settings

UNITS = sorted((DOCS / "deploy" / "systemd").glob("*.service"))


class Unit(configparser.ConfigParser):
    """A unit, whose names keep their letter case; a name that stands several times has the values of all."""

    def __init__(self, path: Path) -> None:
        super().__init__(strict=False, interpolation=None, comment_prefixes=("#",), delimiters=("=",))
        self.optionxform = str  # type: ignore[assignment,method-assign]
        self.lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
        self.read(path, encoding="utf-8")

    def all(self, name: str) -> list[str]:
        """Return every value of a name."""
        return [value for key, _, value in (line.partition("=") for line in self.lines) if key == name]


def test_there_are_units() -> None:
    """A replica and Chroma have one each."""
    assert [one.name for one in UNITS] == ["recollect-chroma.service", "recollect.service"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_takes_the_unit(path: Path, tmp_path: Path) -> None:
    """The file parses; where systemd is installed, it finds nothing wrong with it."""
    unit = Unit(path)
    assert unit.sections() == ["Unit", "Service", "Install"]
    program, *_ = unit["Service"]["ExecStart"].split()
    installed = Path(sys.executable).with_name(Path(program).name)
    assert installed.exists()
    if (analyze := shutil.which("systemd-analyze")) is None:
        return
    copy = tmp_path / path.name
    copy.write_text(path.read_text(encoding="utf-8").replace(program, str(installed)), encoding="utf-8")
    done = subprocess.run([analyze, "verify", "--man=no", copy], capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if path.name in line]  # others are about this machine's own units
    assert told == []


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_has_little_power(path: Path) -> None:
    """Each runs as a user of its own, who may write to one folder and gains no rights, and answers on this machine."""
    service = Unit(path)["Service"]
    wanted = {"DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes"}
    assert wanted.items() <= dict(service).items()
    assert "--host 127.0.0.1" in service["ExecStart"]


def test_the_settings_are_recollects() -> None:
    """Every variable that the unit sets is a setting, and its data folder is the one that systemd makes."""
    unit = Unit(UNITS[1])
    named = dict(one.split("=", 1) for one in unit.all("Environment"))
    names = {name.removeprefix("RECOLLECT_").removesuffix("_FILE").lower() for name in named}
    assert names <= set(Settings.model_fields)
    assert named["RECOLLECT_HOME"] == f"/var/lib/{unit['Service']['StateDirectory']}"
    assert int(unit["Service"]["TimeoutStopSec"]) > server._FINISH + server._EVENTS
    assert named["RECOLLECT_CHROMA_URL"].rpartition(":")[2] in Unit(UNITS[0])["Service"]["ExecStart"].split()
