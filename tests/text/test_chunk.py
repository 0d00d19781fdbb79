"""Chunks: whatever the text, every token is in a chunk that the model sees whole."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.text.chunk import chunk

texts = st.text(st.sampled_from("ab .!?。\n\té"), max_size=300)


def tokens_of(text: str) -> list[tuple[int, int]]:
    """Cut a text as a tokenizer would: words and single marks, no white space."""
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def within(tokens: list[tuple[int, int]], span: tuple[int, int]) -> int:
    """Count the tokens that lie whole in a span."""
    return sum(span[0] <= start and end <= span[1] for start, end in tokens)


@hypothesis_settings(deadline=None, database=None)
@given(texts, st.integers(1, 12), st.integers(0, 12))
def test_every_token_is_covered(text: str, size: int, overlap: int) -> None:
    """Each token lies whole in some chunk, no chunk holds more than `size`, offsets lie in the text and advance."""
    tokens = tokens_of(text)
    spans = chunk(text, tokens, size, overlap)
    assert all(any(first <= start and end <= last for first, last in spans) for start, end in tokens)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(within(tokens, span) <= size for span in spans)
    assert [start for start, _ in spans] == sorted({start for start, _ in spans})
    if overlap <= size // 2:
        assert [end for _, end in spans] == sorted({end for _, end in spans})


@hypothesis_settings(deadline=None, database=None)
@given(texts, st.integers(4, 12), st.integers(0, 2))
def test_neighbours_share_the_overlap(text: str, size: int, overlap: int) -> None:
    """Two chunks in a row share exactly `overlap` tokens when there is room for it."""
    tokens = tokens_of(text)
    spans = chunk(text, tokens, size, overlap)
    for (_, end), (start, _) in pairwise(spans):
        assert within(tokens, (start, end)) == overlap if start < end else overlap == 0


@hypothesis_settings(deadline=None, database=None)
@given(texts)
def test_short_text_is_one_chunk(text: str) -> None:
    """Text that the model sees whole is left whole, white space included; empty text too."""
    tokens = tokens_of(text)
    assert chunk(text, tokens, max(len(tokens), 1), 3) == [(0, len(text))]


@pytest.mark.parametrize("line", ["\n", "\n\n", "\n    ", ". ", "! ", "。"])
def test_chunks_end_where_a_thought_ends(line: str) -> None:
    """A break in the second half ends the chunk, an indented next line included."""
    text = f"one two three four five six{line}seven eight nine ten"
    spans = chunk(text, tokens_of(text), 8, 0)
    assert text[spans[0][0] : spans[0][1]].rstrip(".!。") == "one two three four five six"
    assert text[spans[1][0] : spans[1][1]].startswith("seven")


def test_a_break_in_the_first_half_is_too_early() -> None:
    """A chunk is not cut short by a break in its first half."""
    text = "one. two three four five six seven eight nine"
    assert text[slice(*chunk(text, tokens_of(text), 8, 0)[0])] == "one. two three four five six seven"
