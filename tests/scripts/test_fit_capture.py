"""scripts/fit_capture.py as its users run it, on the recorded session, and what it fits by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from places import ROOT

SCRIPT = ROOT / "scripts" / "fit_capture.py"
BUILD = ROOT / "tests" / "sessions" / "build"
TABLE = ROOT / "src" / "recollect" / "sessions" / "memorability.toml"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> object:
    """Return the script as a module."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return pytest.importorskip("fit_capture")


def test_a_check_prints_figures_and_writes_nothing(tmp_path: Path) -> None:
    """Precision and recall of left-out folders are printed, with what was taken for noise, and the table stays."""
    before = TABLE.read_bytes()
    (tmp_path / "sentences.tsv").write_text("+\ten\tWe squash on merge.\n-\ten\trun the tests\n", encoding="utf-8")
    (tmp_path / "descriptions.tsv").write_text("+\tCompare both\n-\tShow the status\n", encoding="utf-8")
    (tmp_path / "prompts.jsonl").write_text('{"kind": "task", "prompt": "go on"}\n', encoding="utf-8")
    told = {"tool": "Bash", "input": {"command": "make docs"}, "output": "the index of the docs has a broken anchor"}
    (tmp_path / "outputs.jsonl").write_text(json.dumps(told | {"label": "keep"}) + "\n", encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), f"{BUILD}:s1", f"{BUILD}:s2", "--check", "--texts", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert "person: threshold 0.50: precision" in ran.stdout
    assert "taken for noise: s1 36 (it is what memory itself returned)" in ran.stdout
    assert "moved to 0.3" in ran.stdout
    assert "of 1 texts kept apart" in ran.stdout
    assert TABLE.read_bytes() == before


def test_the_structure_is_fitted_first_and_the_meaning_on_what_it_leaves(script: object) -> None:
    """Labels that follow one column give it the most weight, and what an offset explains already gets none."""
    chance = np.random.RandomState(3)
    rows = chance.rand(200, 5)
    keep = (rows[:, 2] > 0.5).astype(float)
    weights = script.fitted(rows, keep, 1.0)  # type: ignore[attr-defined]
    assert int(np.argmax(weights[:-1])) == 2
    rest = script.fitted(rows, keep, 1.0, offset=8.0 * (keep - 0.5))  # type: ignore[attr-defined]
    assert abs(rest[2]) < weights[2] / 4
