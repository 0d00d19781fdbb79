"""Cut long content into stretches that the embedding model sees whole."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.text import sentences


def chunk(text: str, tokens: Sequence[tuple[int, int]], size: int, overlap: int) -> list[tuple[int, int]]:
    """Return character spans of `text` with at most `size` tokens each, about `overlap` of them shared.

    `tokens` are the character offsets of the text's tokens, in order. A span ends at the last paragraph, line
    or sentence break of its second half, where there is one. Text of at most `size` tokens is one span.
    """
    if len(tokens) <= size:
        return [(0, len(text))]
    breaks = {start for start, _ in sentences.sentence_spans(text, semicolons=True)}
    spans: list[tuple[int, int]] = []
    first = 0
    while first < len(tokens):
        last = min(first + size, len(tokens))
        if last < len(tokens):
            last = _end_token(tokens, breaks, first, last)
        spans.append((tokens[first][0], tokens[last - 1][1]))
        if last >= len(tokens):
            break
        first = max(last - overlap, first + 1)
    return spans


def _end_token(tokens: Sequence[tuple[int, int]], breaks: set[int], first: int, last: int) -> int:
    """Return the token at which a span should end: after the last break in its second half, else at `last`."""
    for number in range(last, (first + last) // 2, -1):
        if tokens[number][0] in breaks:
            return number
    return last
