"""Two stores that differ only in what a caller may not see answer that caller alike, over every operation."""

from __future__ import annotations

from pathlib import Path

import pytest

from paired_stores import compare, two_stores
from recollect import Settings

pytestmark = pytest.mark.slow


def test_hidden_things_change_no_answer(settings: Settings, migrated: Path) -> None:
    """Whatever is hidden, each answer is the same to the last digit."""
    with two_stores(settings, migrated) as two:
        assert compare(two, 1, 60) == (60, [])
