"""The embedder that asks a server: the same vectors as the local model, and one clear answer to each failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from embedding_server import EmbeddingServer, serving
from recollect.engines.embedder import Embedder
from recollect.engines.embedding_service import ServedEmbedder
from recollect.errors import ModelMismatch, ModelUnusable

KEY = "-".join(["made", "up"])
TEXTS = ["We deploy on Fridays.", "The database is PostgreSQL.", "", "Naïve \ud800 text"]


@pytest.fixture
def server(embedder: Embedder) -> Iterator[EmbeddingServer]:
    """Return a server over the real model."""
    with serving(embedder) as found:
        yield found


def _asking(server: EmbeddingServer, key: str = "") -> ServedEmbedder:
    return ServedEmbedder(server.embedder.card, server.url, key)


def _failed(asking: ServedEmbedder, kind: type[Exception] = ModelUnusable) -> str:
    with pytest.raises(kind) as raised:
        asking.read(["short"])
    return str(raised.value)


def test_vectors_are_the_models(server: EmbeddingServer, embedder: Embedder) -> None:
    """A server over the model gives the model's vectors in the order of the texts, more texts than a batch holds."""
    texts = TEXTS * 10
    asking = _asking(server)
    for one, other in zip(asking.read(texts), embedder.read(texts), strict=True):
        assert np.allclose(one.vector, other.vector, atol=1e-5)
        assert one.tokens.shape == (0, embedder.card.dimensions)
    assert asking.ready
    assert max(map(len, server.asked)) <= 32
    asking.close()


def test_a_long_text_loses_nothing(server: EmbeddingServer) -> None:
    """A text that the server refuses for its length is embedded in pieces, the last of them too."""
    server.longest = 60
    text = "word " * 40 + "the end matters"
    with_end, without = (_asking(server).read([one])[0].vector for one in (text, text[:-15]))
    assert any("the end matters" in one[0] for one in server.asked)
    assert np.isclose(np.linalg.norm(with_end), 1.0, atol=1e-5)
    assert not np.allclose(with_end, without, atol=1e-3)


@pytest.mark.parametrize(
    ("status", "message", "said"),
    [
        (400, "bad model", "status 400"),
        (200, "x" * 17_000_000, "more than vectors take"),
        (401, "", "RECOLLECT_EMBEDDING_KEY"),
        (404, "", "no model"),
        (503, "", "503"),
    ],
)
def test_a_failure_has_one_sentence(server: EmbeddingServer, status: int, message: str, said: str) -> None:
    """Each refusal says what it is, without the key, makes the embedder not ready, and is over when the server is."""
    asking = _asking(server, KEY)
    asking.warm()
    server.status, server.message = status, message
    error = _failed(asking)
    assert said in error
    assert KEY not in error
    assert not asking.ready
    assert asking.failure == error
    server.status, server.message = 200, ""
    asking.warm()
    assert asking.ready
    assert not asking.failure
    asking.close()


def test_a_wrong_key_is_refused(embedder: Embedder) -> None:
    """The key travels in the header of each request, and a wrong one is named by its setting."""
    with serving(embedder, key=KEY) as server:
        assert "RECOLLECT_EMBEDDING_KEY" in _failed(_asking(server, "other"))
        right = _asking(server, KEY)
        assert len(right.read(["short"])) == 1
        right.close()


def test_a_moment_of_failure_is_not_noticed(server: EmbeddingServer) -> None:
    """A server that fails twice and then answers has answered."""
    asking = _asking(server)
    server.status, server.failures = 503, 2
    assert len(asking.read(["short"])) == 1
    asking.close()


def test_another_model_is_refused(server: EmbeddingServer) -> None:
    """A server that begins to answer with another model is not believed."""
    asking = _asking(server)
    asking.warm()
    server.reported = "other"
    assert "Another model" in _failed(asking, ModelMismatch)
    assert not asking.ready


def test_a_query_waits_for_its_bound(server: EmbeddingServer) -> None:
    """A query waits a bounded time for a server that hangs, even behind a thread that waits longer to connect."""
    asking = _asking(server)
    server.hold.clear()
    slow = threading.Thread(target=asking.warm)
    slow.start()
    begun = time.monotonic()
    with pytest.raises(ModelUnusable):
        asking.read(["short"], "query")
    waited = time.monotonic() - begun
    server.hold.set()
    slow.join()
    assert waited < 10.0
    assert asking.ready
    asking.close()
