"""The default embedding model as onnxruntime serves it: real weights, real processes, no mocks."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import recorded_vectors
from places import DEFAULT_MODEL
from recollect.domain.search import ModelCard
from recollect.engines.embedding import ModelFolder, OnnxEmbedder
from text_vectors import vectors

pytestmark = pytest.mark.slow

WORDS = ["deploy", "the", "release", "friday", "key", "rotation", "memory", "agent", "Müller", "café", "sqlite", "42"]
ODD_TEXTS = [
    "",
    " \n\t ",
    "word",
    "私は東京でメモリサービスを開発しています。",
    "한국어 문장도 있습니다",
    "party 🎉🎉 family 👩‍👩‍👧 done ✅",
    "def f(x):\n    return {k: v**2 for k, v in x.items() if v != 0}  # squares",
    "x" * 300,
    "a [SEP] b [MASK]",
    "The quick brown fox jumps over the lazy dog. " * 112,
    "e\u0301tude \u200b zero width",
]
CHANCE = random.Random(7)
TEXTS = ODD_TEXTS + [" ".join(CHANCE.choices(WORDS, k=CHANCE.randint(1, 90))) for _ in range(60)]
NEWCOMER = """
import os, socket, sys
def refuse(*_): raise AssertionError("the network was asked")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
for name in [one for one in os.environ if one.startswith(("RECOLLECT_", "ORT_", "HF_", "XDG_")) or one == "CI"]:
    del os.environ[name]
import recollect
settings = recollect.Settings(daemon=False)
with recollect.open_app(settings) as app:
    for content in ("Production deploys go out on Tuesday mornings", "The cafeteria serves soup at noon"):
        recollect.remember(app, recollect.Draft(content=content), settings.caller)
    found = recollect.recall(app, recollect.Query(query="when do we ship releases?"), settings.caller)
    print(found.hits[0].memory.content, found.notes)
"""


@pytest.fixture(scope="module")
def alone(embedder: OnnxEmbedder) -> np.ndarray:
    """Return the vector of each text, read by itself."""
    return np.vstack([vectors(embedder, [text]) for text in TEXTS])


def prompted(shipped: ModelFolder, **prompts: str) -> OnnxEmbedder:
    """Open the default model with prompts."""
    return OnnxEmbedder(shipped._replace(card=replace(shipped.card, **prompts)))


# Vectors


def test_vectors_are_those_of_the_maker(embedder: OnnxEmbedder) -> None:
    """On any processor a text has the vector that it had where the model was made, but for what 8 bits round."""
    texts, recorded = recorded_vectors.read()
    assert len(texts) == 24
    assert (vectors(embedder, texts) * recorded).sum(axis=1).min() >= 0.995


def test_rows_are_unit_float32(alone: np.ndarray) -> None:
    """Each text, also an empty one, has a float32 row of length 1."""
    assert (alone.dtype, alone.shape) == (np.float32, (len(TEXTS), 384))
    np.testing.assert_allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_vector_depends_on_its_text_alone(shipped: ModelFolder, alone: np.ndarray, threads: int) -> None:
    """Bit for bit a text has the vector that it has alone: in any batch, any order and any number of threads."""
    opened = OnnxEmbedder(shipped, threads=threads)
    order = random.Random(threads).sample(range(len(TEXTS)), len(TEXTS))
    assert np.array_equal(vectors(opened, [TEXTS[place] for place in order]), alone[order])
    assert np.array_equal(vectors(opened, TEXTS[:5]), alone[:5])


def test_threads_share_a_cold_embedder(shipped: ModelFolder, alone: np.ndarray, embedder: OnnxEmbedder) -> None:
    """Sixteen threads that meet a cold model get the very same vectors, and the spans of their texts."""
    shared = OnnxEmbedder(shipped)
    assert not shared.ready
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda text: (vectors(shared, [text, "other"])[0], len(shared.spans(text))), TEXTS))
    assert shared.ready
    assert np.array_equal(np.vstack([row for row, _ in found]), alone)
    assert [count for _, count in found] == [len(embedder.spans(text)) for text in TEXTS]


def test_without_prompts_a_query_is_read_as_a_document(embedder: OnnxEmbedder, alone: np.ndarray) -> None:
    """The default model has no prompts, so that both kinds give the same vectors."""
    assert np.array_equal(vectors(embedder, TEXTS, "query"), alone)


def test_a_prompt_follows_the_kind(shipped: ModelFolder, embedder: OnnxEmbedder) -> None:
    """Queries and documents get the card's prompt of their kind in front."""
    opened = prompted(shipped, query_prompt="query: ")
    assert np.array_equal(vectors(opened, ["fox"], "query"), vectors(embedder, ["query: fox"]))
    assert np.array_equal(vectors(opened, ["fox"]), vectors(embedder, ["fox"]))


def test_no_texts_give_no_rows(shipped: ModelFolder) -> None:
    """An empty list gives an array of shape (0, d) without loading anything."""
    lazy = OnnxEmbedder(shipped)
    assert vectors(lazy, []).shape == (0, 384)
    assert not lazy.ready


def test_a_long_text_is_cut_at_the_limit(embedder: OnnxEmbedder) -> None:
    """Only the first 254 tokens of a long text count, beside the two special ones."""
    text = "alpha " * 600
    assert np.array_equal(vectors(embedder, [text]), vectors(embedder, ["alpha " * 254]))
    assert not np.array_equal(vectors(embedder, [text]), vectors(embedder, ["alpha " * 253]))


def test_the_model_brings_paraphrases_nearer(embedder: OnnxEmbedder) -> None:
    """A question is nearer to its answer in other words than to a note about something else."""
    asked, right, wrong = vectors(
        embedder, ["when do we ship?", "Production deploys go out on Tuesday mornings", "The cafeteria serves soup"]
    )
    assert asked @ right > asked @ wrong + 0.2


# Tokens


def test_a_reading_has_a_unit_row_for_each_token(embedder: OnnxEmbedder) -> None:
    """Rows, spans and packed signs are those of the text's own tokens, without special ones."""
    texts = [text for text in TEXTS if len(embedder.spans(text)) <= 254]
    for text, reading in zip(texts, embedder.read(texts), strict=True):
        assert list(reading.spans) == embedder.spans(text)
        assert (reading.tokens.dtype, reading.tokens.shape) == (np.float32, (len(reading.spans), 384))
        np.testing.assert_allclose(np.linalg.norm(reading.tokens, axis=1), 1, atol=1e-5)
        assert reading.signs == np.packbits(reading.tokens > 0, axis=1).tobytes()
        assert reading.signs == embedder.read([text])[0].signs
    assert len(texts) > 50


def test_a_long_reading_is_cut_at_the_limit(embedder: OnnxEmbedder) -> None:
    """Only the first 254 tokens of a long text are read, and their spans say so."""
    (reading,) = embedder.read(["alpha " * 600])
    assert reading.tokens.shape == (254, 384)
    assert reading.spans[-1] == (253 * 6, 253 * 6 + 5)


def test_a_prompt_is_read_but_not_returned(shipped: ModelFolder, embedder: OnnxEmbedder) -> None:
    """The prompt shapes the rows, and has neither rows nor spans of its own."""
    opened = prompted(shipped, query_prompt="search query: ")
    (reading,), (whole,) = opened.read(["fox den"], "query"), embedder.read(["search query: fox den"])
    assert reading.spans == ((0, 3), (4, 7))
    assert np.array_equal(reading.tokens, whole.tokens[-2:])
    assert opened.read(["fox den"])[0].spans == reading.spans


def test_a_lone_surrogate_is_no_error(embedder: OnnxEmbedder) -> None:
    """A text that is not valid Unicode is embedded, and its spans keep their places."""
    assert vectors(embedder, ["a \ud800 b"]).shape == (1, 384)
    assert embedder.spans("a \ud800 b") == [(0, 1), (2, 3), (4, 5)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("Café naïve déjà", ["Café", "naïve", "dé", "jà"]),
        ("e\u0301tude x", ["e\u0301t", "ude", "x"]),
        ("日本語 テ", ["日", "本", "語", "テ"]),
        ("hi 👩‍👩‍👧 ok", ["hi", "👩‍👩‍👧", "ok"]),
        ("𠮷 then 🎉, end", ["𠮷", "then", "🎉", ",", "end"]),
    ],
)
def test_spans_are_character_offsets(embedder: OnnxEmbedder, text: str, tokens: list[str]) -> None:
    """Spans are offsets in characters, whatever the script, and leave out special tokens."""
    assert [text[start:end] for start, end in embedder.spans(text)] == tokens


def test_spans_are_never_cut(embedder: OnnxEmbedder) -> None:
    """A text far beyond the model's limit has a span for each of its tokens."""
    spans = embedder.spans("alpha " * 3000)
    assert len(spans) == 3000
    assert spans[-1] == (17994, 17999)


# Processes


def test_a_warm_start_loads_no_heavy_library(card: ModelCard, python: Callable) -> None:
    """Importing the room loads nothing heavy; a warm start then loads onnxruntime and tokenizers alone."""
    code = (
        "import sys; from recollect.engines.embedding import open_embedder\n"
        "heavy = ('torch', 'sentence_transformers', 'transformers', 'huggingface_hub')\n"
        "print([name for name in (*heavy, 'onnxruntime', 'tokenizers') if name in sys.modules])\n"
        "opened = open_embedder(sys.argv[1], None); opened.card; opened.warm(); opened.read(['hello', 'you'])\n"
        "print(opened.ready, [name for name in heavy if name in sys.modules])"
    )
    done = python(code, card.id)
    assert done.stdout.splitlines() == ["[]", "True []"], done.stderr
    assert done.stderr == ""


def test_a_newcomer_needs_no_network_and_gets_no_other_files(python: Callable, tmp_path: Path) -> None:
    """In an empty home meaning is found without a connection, and only the store is written: no report either."""
    before = sorted(DEFAULT_MODEL.iterdir())
    done = python(NEWCOMER, HOME=str(tmp_path))
    assert done.stdout == "Production deploys go out on Tuesday mornings ()\n", done.stderr
    assert [one.name for one in tmp_path.iterdir()] == [".recollect"]
    assert sorted(DEFAULT_MODEL.iterdir()) == before
