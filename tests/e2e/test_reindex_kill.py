"""kill -9 while a store moves to another model: it is whole at any time, and ends as if nobody had disturbed it."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from model_moves import kill_movers, make_stage
from recollect import Settings


@pytest.mark.full
def test_kills_change_nothing(settings: Settings, environment: dict[str, str], tmp_path: Path) -> None:
    """However often it is killed, the moved store has the vectors and the index of one that was moved in peace."""
    stage = make_stage(settings, environment, tmp_path / "models", memories=40)
    assert kill_movers(stage, count(20261121), enough=2) >= 2
