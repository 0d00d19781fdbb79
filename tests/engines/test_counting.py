"""Counting tokens: as the model does, before its weights are loaded, and never at the price of loading them."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.domain.search import ModelCard
from recollect.engines.embedding import ModelFolder, OnnxEmbedder, SentenceTransformersEmbedder
from recollect.engines.sentence_models import ModelSource

TEXTS = [
    "",
    "word",
    '{"id":"1","content":"a\\nb"}',
    "私は東京で開発しています。",
    "한국어",
    "a [SEP] b",
    "the fox " * 300,
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_count_is_the_number_of_tokens(embedder: OnnxEmbedder, text: str) -> None:
    """A text has as many tokens as it has spans, as long as the model knows its words."""
    count = embedder.counter()
    assert count is not None
    assert count(text) == len(embedder.spans(text))


@pytest.mark.parametrize(("text", "tokens"), [("x" * 300, 300), ("ก" * 50, 50), ("so 🎉 it is", 4), ("🎉" * 7, 7)])
def test_an_unknown_word_counts_by_its_characters(embedder: OnnxEmbedder, text: str, tokens: int) -> None:
    """What the model has one token for, because it does not know it, counts one for each of its characters."""
    count = embedder.counter()
    assert count is not None
    assert count(text) == tokens >= len(embedder.spans(text))


def test_counting_loads_no_weights(embedder: OnnxEmbedder, shipped: ModelFolder) -> None:
    """Tokens are counted by the tokenizer alone, as the loaded model counts them."""
    cold = OnnxEmbedder(shipped)
    count, warm = cold.counter(), embedder.counter()
    assert count is not None
    assert warm is not None
    assert not cold.ready
    assert [count(text) for text in TEXTS] == [warm(text) for text in TEXTS]


def test_without_a_tokenizer_nothing_is_counted(card: ModelCard, tmp_path: Path) -> None:
    """Where no file of the model is there is no counter, and asking for one fetches and loads nothing."""
    assert OnnxEmbedder(ModelFolder(tmp_path, card)).counter() is None
    assert SentenceTransformersEmbedder(ModelSource("acme/absent")).counter() is None
