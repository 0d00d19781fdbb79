"""Two replicas of the version before are upgraded, one after the other, while clients write and recall."""

from __future__ import annotations

from pathlib import Path

import pytest

from replica_faults import Load, deployed
from rolling_upgrade import lay_next, lay_previous, upgrade_replicas


@pytest.mark.full
def test_a_rolling_upgrade_loses_nothing(tmp_path: Path) -> None:
    """Every acknowledged write is there once, no request is broken off, and both versions serve side by side."""
    previous, following = lay_previous(tmp_path / "previous"), lay_next(tmp_path / "next")
    with deployed(tmp_path, PYTHONPATH=str(previous)) as deployment:
        done = upgrade_replicas(deployment, Load(deployment), following)
    assert min(done.before, done.mixed, done.after) > 0, done
