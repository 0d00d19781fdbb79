"""A daemon whose embedding model is not loaded yet, or never will be: words answer, and every answer says so."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from daemons import Place, alive, until
from filelock import FileLock

from recollect.engines.embedding import find_card

CARDS = Path(__file__).resolve().parents[2] / "models"
MODEL = "all-MiniLM-L6-v2"
FACT = "Production deploys go out on Tuesday mornings"
MEANING = "when do we ship releases?"


@contextmanager
def slow(place: Place) -> Iterator[Callable[[], None]]:
    """Keep the model from being loaded, as another process does that is preparing it; give what ends that."""
    card = find_card(MODEL)
    assert card is not None
    lock = place.settings.caches / "onnx" / f"{card.sha256}.lock"
    lock.parent.mkdir(parents=True)
    with FileLock(lock, is_singleton=False) as held:
        yield held.release


@pytest.fixture
def cold(make_place: Callable[..., Place], tmp_path: Path) -> Place:
    """Return a place where no model was ever prepared."""
    return make_place(cache_dir=tmp_path / "cache")


def test_words_answer_while_the_model_loads(cold: Place) -> None:
    """Before the model is loaded a client remembers and recalls by words, is told so, and finds by meaning later."""
    with slow(cold) as loaded, cold.talk() as talk:
        memory_id = talk.remember(FACT)
        assert cold.json("status")["model"] == "loading"
        for query in ("Tuesday mornings", "Tuesdya", "deploys"):
            body = talk.call(action="recall", query=query).structured_content
            assert [hit["id"] for hit in body["memories"]] == [memory_id]
            assert any("Vector search skipped" in note and "loading" in note for note in body["notes"])
        result = talk.call(action="recall", query=MEANING)
        assert not result.is_error
        assert result.structured_content["notes"]
        assert "deleted" in talk.reply(action="forget", id=talk.remember("to be forgotten at once"))
        loaded()
        talk.warm()
        assert [hit["id"] for hit in talk.recall(MEANING)] == [memory_id]
    assert cold.json("status")["model"] == "ready"


def test_it_stops_while_the_model_loads(cold: Place) -> None:
    """A daemon that is still waiting for its model ends when it is asked to."""
    with slow(cold):
        pid = cold.pid()
        assert cold.json("stop") == {"stopped": True}
        until(lambda: not alive(pid))
    assert not cold.runtime_file.exists()


def test_a_model_that_cannot_be_loaded(make_place: Callable[..., Place], tmp_path: Path) -> None:
    """With altered weights the daemon remembers, recalls by words and says why; the right ones bring meaning."""
    folder = tmp_path / "models" / MODEL
    shutil.copytree(CARDS / MODEL, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        (folder / name).write_text("{}")
    broken = make_place(cache_dir=tmp_path / "cache", models_dir=tmp_path / "models")
    with broken.talk() as talk:
        memory_id = talk.remember(FACT)
        until(lambda: "not those of the model card" in broken.json("status")["model"])
        body = talk.call(action="recall", query="Tuesday").structured_content
        assert [hit["id"] for hit in body["memories"]] == [memory_id]
        assert any("The weights" in note and "not those of the model card" in note for note in body["notes"])
    assert "Tuesday" in broken.cli("recall", "Tuesday mornings")
    broken.cli("stop")
    shutil.rmtree(folder)
    with broken.talk() as talk:
        talk.warm()
        assert [hit["id"] for hit in talk.recall(MEANING)] == [memory_id]
