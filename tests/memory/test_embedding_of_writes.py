"""Embedding: long content is cut into chunks that say about one thing each, read a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from callers import ADA
from nearness import by_memory
from recollect import App, Draft, reindex, remember
from recollect.engines.chunks import chunks_of
from recollect.engines.embedder import Embedder, TokenEmbeddings
from text_vectors import vectors

pytestmark = pytest.mark.slow

SENTENCES = [f"Sentence {one} says that ship {one * 7} left harbour {one % 13} at dawn." for one in range(320)]


class Watched:
    """The real embedder, which notes how many texts it was given at a time and how many tokens each has."""

    def __init__(self, real: Embedder, max_tokens: int | None = None) -> None:
        self._real = real
        self.card: Any = real.card if max_tokens is None else type("Card", (), {"max_tokens": max_tokens})
        self.batches: list[int] = []
        self.lengths: list[int] = []

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return what the real one says."""
        return self._real.spans(text)

    def read(self, texts: Sequence[str], kind: Any = "document") -> list[TokenEmbeddings]:
        """Return what the real one says, for a document."""
        assert kind == "document"
        self.batches.append(len(texts))
        self.lengths += [len(self._real.spans(text)) for text in texts]
        return self._real.read(texts, kind)


def test_a_short_text_is_one_chunk(app: App) -> None:
    """A text of a sentence or two is one chunk, with the vector and the packed tokens of the whole."""
    content = "The mascot is a quokka. It was chosen in spring."
    (chunk,) = chunks_of(app.embedder, content)
    (reading,) = app.embedder.read([content])
    assert (chunk.start, chunk.end) == (0, len(content))
    np.testing.assert_allclose(chunk.vector, vectors(app.embedder, [content])[0], atol=1e-6)
    assert chunk.tokens == reading.signs
    assert len(chunk.tokens) == 48 * len(app.embedder.spans(content))


def test_no_chunk_has_more_than_128_tokens(app: App) -> None:
    """Long content becomes chunks of at most 128 tokens that leave nothing out and share about 16 with the next."""
    content, watched = " ".join(SENTENCES[:60]), Watched(app.embedder)
    chunks = chunks_of(watched, content)
    lengths = [len(chunk.tokens) // 48 for chunk in chunks]
    assert sorted(watched.lengths) == sorted(lengths)
    assert max(lengths) <= 128
    assert min(lengths[:-1]) > 64
    assert (chunks[0].start, chunks[-1].end) == (0, len(content))
    shared = [app.embedder.spans(content[two.start : one.end]) for one, two in pairwise(chunks)]
    assert all(10 <= len(tokens) <= 16 for tokens in shared)


def test_a_model_with_a_lower_limit_keeps_it(app: App) -> None:
    """Where the model reads less than 128 tokens, the chunks are as long as it reads."""
    watched = Watched(app.embedder, max_tokens=40)
    chunks_of(watched, " ".join(SENTENCES[:20]))
    assert 28 < max(watched.lengths) <= 38


def test_the_longest_content_is_read_in_batches(app: App) -> None:
    """However long the content is, the tokens of only a few chunks lie in memory as floats at once."""
    watched = Watched(app.embedder)
    chunks = chunks_of(watched, " ".join(SENTENCES))
    assert watched.batches == [16, 16, len(chunks) - 32]
    assert all(one.start < two.start < one.end < two.end for one, two in pairwise(chunks))
    np.testing.assert_allclose([np.linalg.norm(chunk.vector) for chunk in chunks], 1, atol=1e-5)


@pytest.mark.parametrize("content", ["x", "🎉", "a\n\n\nb"])
def test_odd_content_is_read(app: App, content: str) -> None:
    """The shortest contents have one chunk with a vector."""
    (chunk,) = chunks_of(app.embedder, content)
    assert chunk.vector.shape == (384,)
    assert len(chunk.tokens) == 48 * len(app.embedder.spans(content))


def test_reindexing_stores_the_tokens_again(app: App) -> None:
    """After a reindex every memory has its tokens, and is as near as before."""
    one = int(remember(app, Draft(content=" ".join(SENTENCES[:30])), ADA).id)
    asked = app.embedder.read(["Which ship left harbour 5?"], "query")[0]
    weights = [1 / len(asked.tokens)] * len(asked.tokens)
    before = by_memory(app.vectors.late_interaction(asked.vector, asked.tokens, weights, [one]))[one]
    assert reindex(app) == 1
    after = by_memory(app.vectors.late_interaction(asked.vector, asked.tokens, weights, [one]))[one]
    assert (after.cosine, after.late) == pytest.approx((before.cosine, before.late), abs=1e-5)
    assert after.late is not None
