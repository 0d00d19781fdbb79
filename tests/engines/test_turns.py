"""Queries go before documents, and documents go on all the same."""

from __future__ import annotations

import threading

import pytest

from recollect.engines import loading
from recollect.engines.embedding import ModelFolder, OnnxEmbedder, onnx

LONG = ["The ship left the harbour at dawn. " * 30] * 4


@pytest.fixture
def embedder(shipped: ModelFolder) -> OnnxEmbedder:
    """Return the default model, loaded, for one test alone."""
    opened = OnnxEmbedder(shipped)
    opened.warm()
    return opened


def test_documents_wait_for_queries(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """No document is read while a query is under way; when it ends, all of them are."""
    monkeypatch.setattr(loading, "_MAX_WAIT_SECONDS", 60.0)
    done: list[str] = []
    read, waiting = onnx._embed, threading.Event()

    def noted(session: object, text: object) -> object:
        found = read(session, text)
        in_pool = threading.current_thread().name.startswith("recollect-document")
        done.append("document" if in_pool else "query")
        return found

    def give_way() -> None:
        waiting.set()
        loading.EmbeddingModel._give_way(embedder)

    monkeypatch.setattr(onnx, "_embed", noted)
    monkeypatch.setattr(embedder, "_give_way", give_way)
    reading = threading.Thread(target=embedder.read, args=(LONG,))
    with embedder.queries_first():
        reading.start()
        waiting.wait()
        embedder.read(["Which ship?"], "query")
    reading.join()
    assert done == ["query", *["document"] * 4]


def test_documents_go_on_beside_endless_queries(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that never ends holds a document up for a moment, not for ever."""
    monkeypatch.setattr(loading, "_MAX_WAIT_SECONDS", 0.01)
    with embedder.queries_first():
        assert len(embedder.read(LONG)) == 4
