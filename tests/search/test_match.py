"""Match: how sure a hit is, in a word."""

from __future__ import annotations

from recollect.search.match import LIKELY, STRONG, certainty


def test_certainty_in_words() -> None:
    """A match is told in three words, the surer the better it is."""
    steps = [0.0, LIKELY - 0.001, LIKELY, STRONG - 0.001, STRONG, 1.0]
    assert [str(certainty(step)) for step in steps] == ["weak", "weak", "likely", "likely", "strong", "strong"]
