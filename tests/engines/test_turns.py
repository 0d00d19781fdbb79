"""Queries go before documents, and documents go on all the same."""

from __future__ import annotations

import threading

import pytest

from recollect import Settings
from recollect.engines import loading
from recollect.engines.embedding import OnnxEmbedder, onnx, open_embedder

LONG = ["The ship left the harbour at dawn. " * 30] * 4


@pytest.fixture
def embedder(unused_settings: Settings) -> OnnxEmbedder:
    """Return the default model, loaded."""
    found = open_embedder(unused_settings.model, None, unused_settings.caches)
    assert isinstance(found, OnnxEmbedder)
    found.warm()
    return found


def test_documents_wait_for_queries(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch of a document begins while a query is under way; when it ends, all of them run."""
    monkeypatch.setattr(loading, "_LONGEST", 60.0)
    done: list[str] = []
    run, waiting = onnx._run, threading.Event()

    def noted(session: object, ids: list[list[int]]) -> object:
        done.append("batch")
        return run(session, ids)

    def give_way() -> None:
        waiting.set()
        loading.EmbeddingModel._give_way(embedder)

    monkeypatch.setattr(onnx, "_run", noted)
    monkeypatch.setattr(embedder, "_give_way", give_way)
    reading = threading.Thread(target=embedder.read, args=(LONG,))
    with embedder.queries_first():
        reading.start()
        waiting.wait()
        embedder.read(["Which ship?"], "query")
        done.append("query")
    reading.join()
    assert done == ["batch", "query", *["batch"] * 4]


def test_documents_go_on_beside_endless_queries(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that never ends holds a document up for a moment, not for ever."""
    monkeypatch.setattr(loading, "_LONGEST", 0.01)
    with embedder.queries_first():
        assert len(embedder.read(LONG)) == 4


def test_batches_are_small(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a query may have to wait for is at most 256 tokens, or one text; short texts are read together."""
    batches: list[list[int]] = []
    run = onnx._run

    def noted(session: object, ids: list[list[int]]) -> object:
        batches.append([len(one) for one in ids])
        return run(session, ids)

    monkeypatch.setattr(onnx, "_run", noted)
    embedder.read([*LONG, *["The ship left."] * 20])
    assert all(len(one) == 1 or len(one) * max(one) <= 256 for one in batches)
    assert len(batches) == 5
