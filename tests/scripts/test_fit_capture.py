"""scripts/fit_capture.py as its users run it, on the recorded session, and what it fits by hand."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from places import ROOT
from recollect.sessions.observations.features import AGAINST, TYPE_FEATURES, Feature

SCRIPT = ROOT / "scripts" / "fit_capture.py"
BUILD = ROOT / "tests" / "sessions" / "build"
TABLE = ROOT / "src" / "recollect" / "sessions" / "memorability.toml"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> object:
    """Return the script as a module."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return pytest.importorskip("fit_capture")


def test_a_check_prints_figures_and_writes_nothing() -> None:
    """Precision and recall of held-out folds are printed, with what was taken for noise, and the table stays."""
    before = TABLE.read_bytes()
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), f"{BUILD}:s1", "--check"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )
    assert "threshold 0.50: precision" in ran.stdout
    assert "taken for noise: s1 36 (it is what memory itself returned)" in ran.stdout
    assert "moved to 0.3" in ran.stdout
    assert TABLE.read_bytes() == before


def test_what_speaks_for_a_memory_is_never_held_against_it(script: object) -> None:
    """Random labels give no feature a weight of the wrong sign, and labels that follow one give it the most."""
    chance = np.random.RandomState(3)
    features = script.FEATURES  # type: ignore[attr-defined]
    rows = chance.rand(200, len(features))
    weights = script.fitted(rows, (chance.rand(200) > 0.5).astype(float), 1.0)  # type: ignore[attr-defined]
    for one, weight in zip(features, weights, strict=False):
        assert one in TYPE_FEATURES or (weight <= 0 if one in AGAINST else weight >= 0)
    told = features.index(Feature.RULE)
    weights = script.fitted(rows, (rows[:, told] > 0.5).astype(float), 1.0)  # type: ignore[attr-defined]
    assert int(np.argmax(weights[:-1])) == told
