"""scripts/first-hour: how what was measured stands on the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

START, END = "<!-- figures of scripts/first-hour -->\n", "<!-- end of figures -->"


def test_a_step_that_took_no_time_is_measured_all_the_same(
    module: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row whose value is 0 stands in the table; only a row without any value is told as a count."""
    script = module("costs.first_hour")
    page = tmp_path / "page.md"
    page.write_text(f"{START}{END}\n", encoding="utf-8")
    monkeypatch.setattr(script, "PAGE", page)
    nothing = {"seconds": None, "mb": None, "tokens": None}
    rows = [
        nothing | {"step": "write a note", "seconds": 0.0},
        nothing | {"step": "say nothing", "tokens": 0},
        nothing | {"step": "20 notes"},
    ]
    script.write_page(rows, 0.0)
    text = page.read_text(encoding="utf-8")
    assert "| write a note | 0.00 |" in text
    assert "| say nothing | 0 |" in text
    assert ". 20 notes.\n" in text
    assert script.cells(rows[1]) == ["say nothing", "", "", "0"]
