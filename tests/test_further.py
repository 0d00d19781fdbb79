"""The table of further cases names tests that there are, so that none is left out of both runs by a mistyped name."""

from __future__ import annotations

from pathlib import Path

import pytest

from further import FURTHER

HERE = Path(__file__).parent


@pytest.mark.parametrize("file", FURTHER)
def test_each_further_case_is_a_test(file: str) -> None:
    """Every name stands in its file, as a function with cases where it has brackets."""
    source = (HERE / file).read_text(encoding="utf-8")
    for name in FURTHER[file]:
        function, bracket, _ = name.partition("[")
        assert f"def {function}(" in source, name
        assert not bracket or "parametrize" in source or "params=" in source, name
