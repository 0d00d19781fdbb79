"""A daemon whose embedding model is not loaded yet, or never will be: words answer, and every answer says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from daemon_place import Place, alive, until
from places import DEFAULT_MODEL
from stores import altered_model

FACT = "Production deploys go out on Tuesday mornings"
MEANING = "when do we ship releases?"


@contextmanager
def slow(place: Place) -> Iterator[Callable[[], None]]:
    """Keep the model from being read, as a slow disk does, by a pipe in its place; give what ends that."""
    assert place.settings.models_dir is not None
    weights = place.settings.models_dir / DEFAULT_MODEL.name / "model.onnx"
    content, pipe = weights.read_bytes(), weights.with_name("pipe")
    weights.rename(kept := weights.with_name("kept"))
    os.mkfifo(weights)

    def end() -> None:
        weights.rename(pipe)
        kept.rename(weights)
        pipe.write_bytes(content)

    yield end
    if not pipe.exists():
        weights.rename(pipe)
    with suppress(OSError):  # nobody reads it any more
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


@pytest.fixture
def cold(make_place: Callable[..., Place], tmp_path: Path) -> Place:
    """Return a place with a copy of the default model."""
    shutil.copytree(DEFAULT_MODEL, tmp_path / "models" / DEFAULT_MODEL.name)
    return make_place(models_dir=tmp_path / "models")


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


@pytest.mark.full
def test_it_stops_while_the_model_loads(cold: Place) -> None:
    """A daemon that is still waiting for its model ends when it is asked to."""
    with slow(cold):
        pid = cold.pid()
        assert cold.json("stop") == {"stopped": True}
        until(lambda: not alive(pid))
    assert not cold.runtime_file.exists()


@pytest.mark.full
def test_a_model_that_cannot_be_loaded(make_place: Callable[..., Place], tmp_path: Path) -> None:
    """With an altered model the daemon remembers, recalls by words and says why; the right one brings meaning."""
    models = altered_model(tmp_path / "models")
    broken = make_place(models_dir=models)
    with broken.talk() as talk:
        memory_id = talk.remember(FACT)
        until(lambda: "is not the one of its model card" in broken.json("status")["model"])
        body = talk.call(action="recall", query="Tuesday").structured_content
        assert [hit["id"] for hit in body["memories"]] == [memory_id]
        assert any("The model file" in note and "is not the one of its model card" in note for note in body["notes"])
    assert "Tuesday" in broken.cli("recall", "Tuesday mornings")
    broken.cli("stop")
    shutil.rmtree(models / DEFAULT_MODEL.name)
    with broken.talk() as talk:
        talk.warm()
        assert [hit["id"] for hit in talk.recall(MEANING)] == [memory_id]
