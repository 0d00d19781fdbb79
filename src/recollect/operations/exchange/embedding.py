"""Embeds what many memories say in few calls of the model: short texts lie together, whatever memory they are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from recollect.operations.embed import spans_of
from recollect.ports import Chunk, Embedder

_ROOM: Final = 4_000  # characters: a handful of long stretches or thirty short ones; the processor likes no more

_Piece = tuple[int, int, tuple[int, int]]


def chunks_of_all(embedder: Embedder, contents: Sequence[str]) -> list[tuple[Chunk, ...]]:
    """Return for each of `contents` what `chunks_of` gives for it, up to the last bits of the vectors."""
    pieces: list[_Piece] = [
        (number, ordinal, span)
        for number, content in enumerate(contents)
        for ordinal, span in enumerate(spans_of(embedder, content))
    ]
    pieces.sort(key=lambda piece: piece[2][1] - piece[2][0])  # a batch costs what its longest costs
    found: dict[tuple[int, int], Chunk] = {}
    for some in _rooms(pieces):
        readings = embedder.read([contents[number][slice(*span)] for number, _, span in some])
        for (number, ordinal, span), one in zip(some, readings, strict=True):
            found[number, ordinal] = Chunk(*span, one.vector, one.signs)
    whole: list[list[Chunk]] = [[] for _ in contents]
    for number, ordinal in sorted(found):
        whole[number].append(found[number, ordinal])
    return [tuple(chunks) for chunks in whole]


def _rooms(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    some: list[_Piece] = []
    size = 0
    for piece in pieces:
        length = piece[2][1] - piece[2][0]
        if some and size + length > _ROOM:
            yield some
            some, size = [], 0
        some.append(piece)
        size += length
    if some:
        yield some
