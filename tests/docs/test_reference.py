"""The reference pages are what the program says of itself: `scripts/reference.py` writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType

import pytest

from places import DOCS
from recollect import Settings
from recollect.doors import toolsets
from recollect.doors.cli.command_table import GROUPS
from recollect.setting_texts import variable

Module = Callable[[str], ModuleType]
PAGES = ("commands.md", "settings.md", "tools.md")


@pytest.mark.parametrize("page", PAGES)
def test_a_reference_page_is_what_the_script_writes(module: Module, page: str) -> None:
    """Each page equals what `scripts/reference.py` writes now."""
    assert (DOCS / page).read_text(encoding="utf-8") == module("reference").PAGES[page](), "run scripts/reference.py"


def test_nothing_is_left_out() -> None:
    """Every command, setting and tool has its place on its page."""
    commands, settings, tools = ((DOCS / page).read_text(encoding="utf-8") for page in PAGES)
    names = [name for group in GROUPS.values() for name in group.split()]
    assert [name for name in names if f"### recollect {name}\n" not in commands] == []
    assert sorted(re.findall(r"^\| `(RECOLLECT_\w+)`", settings, re.MULTILINE)) == sorted(
        map(variable, Settings.model_fields)
    )
    assert {*re.findall(r"^### `(\w+)`$", tools, re.MULTILINE)} == set(toolsets.NAMES)
