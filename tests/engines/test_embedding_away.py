"""A store whose model is served: it answers as with the model here, and goes on by words while the server is away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import recollect
from callers import ADA
from embedding_server import EmbeddingServer, serving
from recollect import Settings
from recollect.engines.embedder import Embedder
from recollect.settings import variables_of
from run_operations import do
from stores import open_app

SAID = ("The harbour is deployed on Fridays.", "The mast is made of oak.", "Tea is served at four in the galley.")
ASKED = ("when do we ship", "wood of the ship", "afternoon drink")
PATIENCE = 120.0  # seconds, on a machine that is busy with other things too


@pytest.fixture
def server(embedder: Embedder) -> Iterator[EmbeddingServer]:
    """Return a server over the real model."""
    with serving(embedder) as found:
        yield found


def test_it_answers_as_with_the_model_here(server: EmbeddingServer, settings: Settings) -> None:
    """The same memories are found by their meaning, best first, and a store may move from one way to the other."""
    with open_app(settings) as app:
        for one in SAID:
            do(app, "remember", content=one)
    served = settings.model_copy(update={"embedding_url": server.url})
    with recollect.open_app(served, background=False) as app:
        found = [do(app, "recall", query=one, min_score=0.0).hits[0].memory.content for one in ASKED]
        assert do(app, "remember", content="The anchor weighs two tons.").status == "stored"
        assert do(app, "recall", query="how heavy is the iron", min_score=0.0).notes == ()
    assert found == list(SAID)


def test_words_answer_while_it_is_away(
    server: EmbeddingServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the server fails, writes are taken and words answer, which says so; afterwards all is embedded."""
    monkeypatch.setattr("recollect.wiring._ASK_AGAIN", 0.1)
    served = settings.model_copy(update={"embedding_url": server.url})
    with recollect.open_app(served) as app:
        do(app, "remember", content=SAID[0])
        server.status = 500
        away = do(app, "recall", query="harbour deployed")
        assert [hit.memory.content for hit in away.hits] == [SAID[0]]
        assert any("embedding server" in note for note in away.notes), away.notes
        kept = do(app, "remember", content=SAID[1])
        assert do(app, "update_memory", id=kept.id, content=SAID[2]).status == "updated"
        assert app.records.embeddings.unembedded(1)
        server.status = 200
        end = time.monotonic() + PATIENCE
        while app.records.embeddings.unembedded(1):
            assert time.monotonic() < end, app.embedder.failure
            time.sleep(0.05)
        back = do(app, "recall", query=ASKED[2], caller=ADA, min_score=0.0)
        assert back.hits[0].memory.content == SAID[2]


def test_its_key_stands_nowhere(settings: Settings) -> None:
    """The key of the server is in no repr and in no variables that are written for others."""
    key = "-".join(["made", "up", "key"])
    told = Settings(home=settings.home, embedding_url="http://127.0.0.1:9", embedding_key=key)
    assert key not in repr(told)
    assert key not in str(variables_of(told))
