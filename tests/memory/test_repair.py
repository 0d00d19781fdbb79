"""Repair: after a withdrawal nothing shows that the source was ever there, whatever had been made of what it said."""

from __future__ import annotations

from pathlib import Path

from poisoned_store import check_repair
from recollect import Settings


def test_a_withdrawal_leaves_the_store_as_if_the_source_had_never_been(settings: Settings, tmp_path: Path) -> None:
    """No verb answers with a byte of the source, no row behind answers holds one, and all else is as without it."""
    assert check_repair(settings, tmp_path, honest_ones=20, bad=6) > 300
