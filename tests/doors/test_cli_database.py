"""`RECOLLECT_MEMORY_DB`: every command works on the database that it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Ended
from recollect import Settings
from recollect.errors import InvalidInput

pytestmark = pytest.mark.slow


def test_commands_follow_it(typed: Callable[..., Ended], settings: Settings, tmp_path: Path) -> None:
    """The variable names it for each command; a data folder given before the command comes first."""
    database = tmp_path / "data" / "notes.db"
    there = {"RECOLLECT_MEMORY_DB": str(database)}
    typed("remember", "The mast is oak.", **there)
    assert typed("stats", "--json", **there).json["memories"] == 1
    assert typed("stats", "--json").json["memories"] == 0
    assert typed("--home", str(settings.home), "stats", "--json", **there).json["memories"] == 0
    assert str(database) in typed("doctor", **there).out
    assert typed("backup", "create", str(tmp_path / "saved.zip"), **there).code == 0
    folder = typed("status", RECOLLECT_MEMORY_DB=str(tmp_path))
    assert (folder.code, "is a folder" in folder.err) == (InvalidInput.exit_code, True)
