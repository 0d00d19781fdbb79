"""Models that sentence-transformers serves: a tiny one of the multilingual model's build takes every way that there is.

The real ones are fetched from the Hugging Face hub, which tests cannot reach.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from test_model_files import digest

from callers import ADA
from recollect import App, Draft, Query, Settings, recall, remember
from recollect.engines import sentence_models
from recollect.engines.embedding import SentenceTransformersEmbedder, open_embedder
from recollect.errors import ModelMismatch, ModelUnusable
from recollect.memory.embed import stamps_of
from stores import open_app
from text_vectors import vectors
from tiny_model import ID, LIMIT, TEXTS, WIDTH, keep_in_hub, write_card

pytestmark = pytest.mark.slow

MULTILINGUAL = "paraphrase-multilingual-MiniLM-L12-v2"
REVISION = "a1" * 20
UNREACHABLE = {"HF_ENDPOINT": "http://127.0.0.1:9"}
ASK = """
import sys
from recollect.engines.embedding import open_embedder
from recollect.errors import ModelUnusable
for name in sys.argv[1:]:
    try:
        opened = open_embedder(name, None)
        print(opened.read(["数据库"])[0].vector.shape, opened.card.id, opened.card.revision)
    except ModelUnusable as error:
        print(error)
"""


def opened(model: str | Path, models_dir: Path | None = None) -> SentenceTransformersEmbedder:
    """Open a model, which must be served by sentence-transformers."""
    found = open_embedder(str(model), models_dir)
    assert isinstance(found, SentenceTransformersEmbedder)
    return found


def refused(model: str | Path) -> str:
    """Return the sentence with which a model is refused."""
    with pytest.raises(ModelUnusable) as caught:
        opened(model).warm()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def not_to_be_had(model: str) -> str:
    """Return the sentence about a model that is not in the cache while nothing can be fetched."""
    cause = "the Hugging Face hub cannot be reached (or HF_HUB_OFFLINE is set)"
    return f"The model `{model}` is not in the hub's cache and {cause}."


@pytest.fixture(scope="module")
def polyglot(tiny_model: Path) -> SentenceTransformersEmbedder:
    """Return the tiny model, loaded from its folder."""
    found = opened(tiny_model)
    found.warm()
    return found


@pytest.fixture
def copy(tiny_model: Path, tmp_path: Path) -> Path:
    """Return a copy of the tiny model that a test may change."""
    return Path(shutil.copytree(tiny_model, tmp_path / "copy"))


# Vectors and tokens


def test_a_folder_without_a_card_describes_itself(polyglot: SentenceTransformersEmbedder, tiny_model: Path) -> None:
    """A folder that has no card is called by its name, and the hash of its weights is its revision."""
    card = polyglot.card
    assert (card.id, card.revision) == (tiny_model.name, digest(tiny_model / "model.safetensors"))
    assert (card.dimensions, card.max_tokens, card.pooling) == (WIDTH, LIMIT, "mean")
    assert stamps_of(polyglot) == {"model": card.id, "revision": card.revision, "dimensions": str(WIDTH)}


def test_rows_are_unit_float32_in_order(polyglot: SentenceTransformersEmbedder) -> None:
    """A batch gives float32 unit rows in the order of the texts, those that each text has alone but for rounding."""
    texts = [*TEXTS, " ".join(TEXTS)] * 4
    rows = vectors(polyglot, texts)
    assert (rows.dtype, rows.shape) == (np.float32, (44, WIDTH))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(rows, np.vstack([vectors(polyglot, [text]) for text in texts]), atol=1e-5)
    assert vectors(polyglot, []).shape == (0, WIDTH)


def test_vectors_are_the_librarys_own(polyglot: SentenceTransformersEmbedder, tiny_model: Path) -> None:
    """No vector differs from the one that sentence-transformers itself gives."""
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(tiny_model), device="cpu").encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(vectors(polyglot, TEXTS), theirs, atol=1e-5)


def test_threads_share_a_cold_model(polyglot: SentenceTransformersEmbedder, tiny_model: Path) -> None:
    """Sixteen threads that meet a cold model get the right vectors and spans."""
    shared, texts = opened(tiny_model), TEXTS * 3
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda text: (vectors(shared, [text])[0], shared.spans(text)), texts))
    np.testing.assert_allclose([row for row, _ in found], vectors(polyglot, texts), atol=1e-5)
    assert [spans for _, spans in found] == [polyglot.spans(text) for text in texts]


def test_a_reading_has_a_unit_row_for_each_token(polyglot: SentenceTransformersEmbedder) -> None:
    """Rows, spans and packed signs are those of the text's own tokens, without special ones and without padding."""
    for text, reading in zip(TEXTS, polyglot.read(TEXTS), strict=True):
        assert list(reading.spans) == polyglot.spans(text)[: LIMIT - 2]
        assert (reading.tokens.dtype, reading.tokens.shape) == (np.float32, (len(reading.spans), WIDTH))
        np.testing.assert_allclose(np.linalg.norm(reading.tokens, axis=1), 1, atol=1e-5)
        assert reading.signs == np.packbits(reading.tokens > 0, axis=1).tobytes()


def test_a_long_text_is_cut_at_the_limit(polyglot: SentenceTransformersEmbedder) -> None:
    """Only so many tokens of a long text count, and its spans are never cut."""
    (reading,) = polyglot.read(["データ " * 300])
    assert len(reading.spans) == LIMIT - 2
    assert np.allclose(reading.vector, vectors(polyglot, ["データ " * 200])[0], atol=1e-5)
    assert len(polyglot.spans("データ " * 300)) >= 300


def test_spans_lie_in_the_text(polyglot: SentenceTransformersEmbedder) -> None:
    """Unigram tokens have character offsets too, in order and over the whole text, however long it is."""
    for text in TEXTS:
        spans = polyglot.spans(text * 20)
        assert all(0 <= start <= end <= len(text) * 20 for start, end in spans)
        assert [start for start, _ in spans] == sorted(start for start, _ in spans)
        assert {place for start, end in spans for place in range(start, end)} >= {
            place for place, one in enumerate(text * 20) if one.isalnum()
        }


def test_tokens_cut_otherwise_are_left_out(tiny_model: Path) -> None:
    """Where the library's tokens are not those of the definition, a reading has its vector and no tokens."""
    shortened = opened(tiny_model)
    shortened.warm()
    shortened._model().model.max_seq_length = 5
    (reading,) = shortened.read(["one two three four five six"])
    assert (reading.tokens.shape, reading.spans, reading.signs) == ((0, WIDTH), (), b"")
    assert float(np.linalg.norm(reading.vector)) == pytest.approx(1, abs=1e-5)


# Cards


def test_a_card_beside_the_weights_has_the_last_word(polyglot: SentenceTransformersEmbedder, copy: Path) -> None:
    """A folder with a card is known by its id and revision, and gets the prompts and the limit of the card."""
    write_card(copy, query_prompt="query: ", document_prompt="passage: ", max_tokens=16)
    carded = opened("copy", copy.parent)
    assert stamps_of(carded) == {"model": ID, "revision": "tiny", "dimensions": str(WIDTH)}
    assert not carded.ready
    for kind, prompt in (("query", "query: "), ("document", "passage: ")):
        (reading,) = carded.read(["数据库"], kind)
        assert np.allclose(reading.vector, vectors(polyglot, [f"{prompt}数据库"])[0], atol=1e-5)
        assert list(reading.spans) == [(place, place + 1) for place in range(3)]
    assert len(carded.read([" ".join(TEXTS)])[0].spans) < 15
    assert opened(copy).card == carded.card


def test_a_store_in_another_model_refuses_the_first(
    settings: Settings, copy: Path, open_store: Callable[..., App]
) -> None:
    """A store made with such a model recalls with it, and no other model may open it."""
    write_card(copy)
    with open_app(settings.model_copy(update={"model": "copy", "models_dir": copy.parent})) as app:
        remember(app, Draft(content="我们的主数据库部署在东京机房。", key="tokyo"), ADA)
        assert [hit.memory.key for hit in recall(app, Query(query="东京", min_score=0.0), ADA).hits] == ["tokyo"]
    with pytest.raises(ModelMismatch, match=f"{ID}.*recollect reindex"):
        open_store()


# The hub


@pytest.mark.full_cases("offline")
@pytest.mark.parametrize("environment", [UNREACHABLE, {"HF_HUB_OFFLINE": "1"}], ids=["unreachable", "offline"])
def test_the_hubs_cache_serves_without_the_hub(
    tiny_model: Path, tmp_path: Path, python: Callable, environment: dict[str, str]
) -> None:
    """What was fetched once serves: a model at its card's revision, and one without a card, known by its commit.

    A model that is neither in the cache nor to be had is one sentence.
    """
    hub, card = tmp_path / "hub", opened(MULTILINGUAL).card
    keep_in_hub(hub, card.id, card.revision, tiny_model)
    keep_in_hub(hub, ID, REVISION, tiny_model)
    (hub / "hub" / "models--acme--tiny-polyglot" / "refs").mkdir()
    (hub / "hub" / "models--acme--tiny-polyglot" / "refs" / "main").write_text(REVISION, encoding="utf-8")
    done = python(ASK, MULTILINGUAL, f"{ID}@{REVISION}", ID, f"acme/nothing@{REVISION}", **environment)
    theirs, ours = f"({WIDTH},) {card.id} {card.revision}", f"({WIDTH},) {ID} {REVISION}"
    assert done.stdout.splitlines() == [theirs, ours, ours, not_to_be_had("acme/nothing")], done.stderr
    assert done.stderr == ""


def test_the_hub_is_asked_once(python: Callable) -> None:
    """A hub that hangs up is not asked for the model again and again, which would take a minute."""
    asked: list[str] = []

    class HangsUp(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.close_connection = True

        def do_HEAD(self) -> None:
            self.do_GET()

    with ThreadingHTTPServer(("127.0.0.1", 0), HangsUp) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        done = python(ASK, MULTILINGUAL, HF_ENDPOINT=f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
        thread.join()
    assert done.stdout == not_to_be_had(f"sentence-transformers/{MULTILINGUAL}") + "\n"
    assert done.stderr == ""
    assert len([path for path in asked if MULTILINGUAL in path]) == 1


def test_a_name_that_is_no_id_is_one_sentence() -> None:
    """A name that can be no id of the hub is said to be none, and the hub is not asked."""
    name = "not a model!/at all"
    assert refused(name) == f"`{name}` is neither a model folder nor a model id of the hub."


# What can be wrong


def test_a_missing_folder_is_said_plainly(tmp_path: Path) -> None:
    """A path that leads nowhere, or to a folder without a model, gives the plain error."""
    with pytest.raises(ModelUnusable, match="There is no model folder"):
        open_embedder(str(tmp_path / "nowhere"), None)
    assert refused(tmp_path).startswith(f"The folder {tmp_path} holds no model")


def test_a_name_that_can_be_no_model_asks_for_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sentence-transformers, too, a slip in a model's name is named, and which models there are."""
    monkeypatch.setattr(sentence_models, "find_spec", lambda _: None)
    with pytest.raises(ModelUnusable, match="neither a model folder nor") as caught:
        open_embedder("nonsense", None)
    assert "`notes-MiniLM-L6-v2`" in str(caught.value)
    needs = "needs sentence-transformers, which is not installed: pip install 'recollect[models]'"
    assert refused("acme/nothing") == f"The model `acme/nothing` {needs}"
    assert refused(MULTILINGUAL) == f"The model `sentence-transformers/{MULTILINGUAL}` {needs}"


def test_pickled_weights_are_refused(copy: Path) -> None:
    """Weights that can carry code are not even opened."""
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    assert refused(copy).startswith(f"sentence-transformers cannot load the model `{copy}`: ")


@pytest.mark.parametrize("kept", [0, 100, -100])
def test_truncated_weights_are_refused(copy: Path, kept: int) -> None:
    """A download that was cut off is no traceback."""
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    assert str(copy) in refused(copy)


@pytest.mark.parametrize("name", ["config.json", "modules.json", "tokenizer.json", "1_Pooling/config.json"])
def test_a_damaged_file_is_refused(copy: Path, name: str) -> None:
    """Whichever file is damaged, loading fails with the plain error, and the folder is named."""
    (copy / name).write_text("{", encoding="utf-8")
    assert str(copy) in refused(copy)
