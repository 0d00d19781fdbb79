"""A store whose vectors are of an older version of its model: it opens, answers by words, and is embedded anew."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy.exc import IntegrityError

import recollect
from recollect import App, Settings, reindex
from recollect.domain.enums import Choice
from recollect.engines.chunks import chunks_of
from recollect.engines.embedder import Embedder
from recollect.errors import ModelMismatch
from recollect.memory.embed import embed_pending
from run_operations import OTHER, add, always, by_hand, do, ill, judged_by, recalled, rows
from second_model import NAME, second_model
from stdio_client import until
from stores import open_app, with_model
from unprivileged import unprivileged

pytestmark = pytest.mark.slow

FACT = "Production deploys go out on Tuesday mornings"
MEANING = "when do we ship releases?"
WAITING = "Some memories have no embeddings yet."
OLDER = "0123456789ab" + "0" * 52


def older_model(settings: Settings) -> Embedder:
    """Return the default model as if an older version of it: other vectors, and the hash of other weights."""
    older: Any = copy(with_model(settings, {})["embedder"])
    older._card = replace(older.card, sha256=OLDER, document_prompt="an older version read: ")
    found: Embedder = older
    return found


@contextmanager
def opened_as_before(settings: Settings) -> Iterator[App]:
    """Open a store with the older version, and bring its index up to date at the end."""
    with open_app(settings, embedder=older_model(settings)) as app:
        yield app
        app.vectors.sync()


@pytest.fixture
def older(settings: Settings) -> Settings:
    """Return settings of a store that the older version has filled."""
    with opened_as_before(settings) as app:
        add(app, FACT)
        for number in range(9):
            add(app, f"The cafeteria serves soup number {number} at noon. " * (1 if number else 30))
    return settings


def stamps(settings: Settings) -> dict[str, str]:
    """Return what the store says of its vectors."""
    return dict(rows(settings, "SELECT name, value FROM store_metadata"))


def embedded(settings: Settings) -> set[int]:
    """Return the memories that have vectors."""
    return {one for (one,) in rows(settings, "SELECT DISTINCT memory_id FROM vector")}


def check_renewed(app: App, settings: Settings) -> None:
    """Hold the vectors in SQL and in the index to what the app's own model makes of what is stored."""
    assert embed_pending(app.records, app.embedder)
    assert ill(app) == []
    found = rows(settings, "SELECT memory_id, ordinal, embedding FROM vector")
    contents = dict(rows(settings, "SELECT id, content FROM memory WHERE deleted_at IS NULL AND merged_into IS NULL"))
    meant = {one: [chunk.vector for chunk in chunks_of(app.embedder, text)] for one, text in contents.items()}
    assert {(one, place) for one, place, _ in found} == {
        (one, place) for one, vectors in meant.items() for place in range(len(vectors))
    }
    assert all(np.array_equal(np.frombuffer(blob, np.float32), meant[one][place]) for one, place, blob in found)
    names = {one.name.rpartition("-")[0] for one in app.vectors._index.open().list_collections()}
    assert names == {app.vectors._index.generation}


def test_words_answer_until_meaning_does(older: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """The store opens at once and says in the log and in each answer that vectors wait; then meaning is found."""
    with open_app(older) as app:
        assert "has a newer version: every memory is embedded anew" in caplog.text
        by_words = do(app, "recall", query="Tuesday mornings")
        assert (by_words.hits[0].memory.content, by_words.notes) == (FACT, (WAITING,))
        assert app.vectors.waiting() == 10
        assert embedded(older) == set()
        check_renewed(app, older)
        by_meaning = do(app, "recall", query=MEANING)
        assert (by_meaning.hits[0].memory.content, by_meaning.notes) == (FACT, ())


def test_the_background_embeds(older: Settings) -> None:
    """Nobody has to ask for it: whoever opens the store embeds it in the background."""
    with recollect.open_app(older, **with_model(older, {})) as app:
        until(lambda: not app.records.embeddings.unembedded(1) and not app.vectors.waiting())
        assert do(app, "recall", query=MEANING).hits[0].memory.content == FACT
        check_renewed(app, older)


def test_it_is_done_once(older: Settings) -> None:
    """A store that was embedded anew is opened as any other: nothing waits, and its vectors stay."""
    with open_app(older) as app:
        check_renewed(app, older)
    before = rows(older, "SELECT * FROM vector"), stamps(older)
    with open_app(older) as app:
        assert not app.records.embeddings.unembedded(1)
        assert do(app, "recall", query=MEANING).notes == ()
    assert (rows(older, "SELECT * FROM vector"), stamps(older)) == before


def test_a_version_may_change_again_at_once(older: Settings) -> None:
    """Between two versions, forth and back, no vector of the one is ever taken for one of the other."""
    with open_app(older) as app:
        embed_pending(app.records, app.embedder, stopping=lambda: len(embedded(older)) > 3)
    with opened_as_before(older) as app:
        assert embedded(older) == set()
        check_renewed(app, older)
    with open_app(older) as app:
        check_renewed(app, older)


def test_nothing_is_lost_and_nothing_is_seen_by_others(settings: Settings, clock: Any) -> None:
    """Contents and journal stay; hidden and merged memories get no vector, expired ones and others' no reader."""
    query = {"query": "where is the heron?", "min_score": 0.0}
    with open_app(settings, embedder=older_model(settings), clock=clock) as app:
        add(app, FACT)
        hidden, expired = add(app, "The heron stands on the pier."), add(app, "The heron is at the fair.", ttl_days=1)
        private = add(app, "Ada's heron is ill.", sensitivity="private")
        foreign = add(app, "The heron of the hull is grey.", OTHER)
        whole = add(app, "The heron limit is 5 fish.")
        assert add(judged_by(app, always(Choice.MERGE)), "The heron limit is 6 fish.") == whole
        merged = {one for (one,) in rows(settings, "SELECT id FROM memory WHERE merged_into IS NOT NULL")}
        do(app, "memory_forget", id=str(hidden))
        app.vectors.sync()
    assert len(merged) == 2
    clock.pass_days(2)
    kept = rows(settings, "SELECT * FROM memory ORDER BY id"), rows(settings, "SELECT * FROM journal ORDER BY id")
    with open_app(settings, clock=clock) as app:
        for _ in range(2):
            assert recalled(app, **query).isdisjoint({hidden, expired, private, foreign, *merged})
            assert recalled(app, **query, caller=OTHER) == {foreign}
            check_renewed(app, settings)
        assert embedded(settings).isdisjoint({hidden, *merged})
        assert {private, foreign, whole} <= embedded(settings)
        assert rows(settings, "SELECT * FROM memory ORDER BY id") == kept[0]
        assert rows(settings, "SELECT * FROM journal ORDER BY id") == kept[1]
        do(app, "restore", id=str(hidden))
        check_renewed(app, settings)
        assert hidden in recalled(app, **query) & embedded(settings)


def test_writes_go_on_meanwhile(older: Settings) -> None:
    """What is stored, changed and forgotten while vectors wait is so afterwards."""
    with open_app(older) as app:
        assert add(app, FACT) == 1
        late = add(app, "A straggler brought a tapir")
        do(app, "update_memory", id="2", content="A yak took the place of the soup")
        do(app, "forget", id="3")
        check_renewed(app, older)
        assert recalled(app, "which animals came?", min_score=0.0) >= {2, late}
        assert embedded(older).isdisjoint({3})


def test_what_was_built_beside_is_dropped(older: Settings, tmp_path: Path) -> None:
    """A move to another model that was begun with the older version is forgotten."""

    def stop(done: int, _: int) -> None:
        if done:
            raise KeyboardInterrupt

    with opened_as_before(older) as app, pytest.raises(KeyboardInterrupt):
        reindex(app, stop, model=NAME, models_dir=second_model(tmp_path / "models"))
    assert rows(older, "SELECT * FROM vector_shadow") != []
    with open_app(older) as app:
        assert rows(older, "SELECT * FROM vector_shadow") == []
        assert not [name for name in stamps(older) if name.startswith("shadow.")]
        check_renewed(app, older)


def test_it_is_all_or_nothing(older: Settings) -> None:
    """Where the change cannot be committed the store keeps its vectors, and the next opening makes it."""
    before = rows(older, "SELECT * FROM vector"), stamps(older)
    by_hand(older, "CREATE TRIGGER refuse BEFORE DELETE ON store_metadata BEGIN SELECT RAISE(ABORT, 'not yet'); END")
    with pytest.raises(IntegrityError, match="not yet"):
        open_app(older)
    assert (rows(older, "SELECT * FROM vector"), stamps(older)) == before
    by_hand(older, "DROP TRIGGER refuse")
    with open_app(older) as app:
        check_renewed(app, older)


KILLED = """
import os, signal, sys
import recollect
from recollect.memory.embed import embed_pending
most, done = int(sys.argv[1]), []
def kill():
    done.append(1)
    if len(done) > most:
        os.kill(os.getpid(), signal.SIGKILL)
with recollect.open_app(background=False) as app:
    if most < 0:
        kill()
    embed_pending(app.records, app.embedder, kill)
"""


@pytest.mark.parametrize("most", [-1, 3], ids=["before it embeds", "while it embeds"])
def test_a_kill_loses_nothing(older: Settings, environment: dict[str, str], most: int) -> None:
    """A process that is killed after the change leaves a store that the next one goes on with where it was."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(most)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert stamps(older)["revision"] != OLDER
    kept = embedded(older)
    assert len(kept) == most + 1
    with open_app(older) as app:
        assert embedded(older) == kept
        assert do(app, "recall", query="Tuesday mornings").hits[0].memory.content == FACT
        check_renewed(app, older)


# Where it is not done


def test_another_model_is_refused(older: Settings, tmp_path: Path) -> None:
    """A store of a model of another id is left as it is; the sentence names both with their versions."""
    before = rows(older, "SELECT * FROM vector"), stamps(older)
    models = second_model(tmp_path / "models")
    with pytest.raises(ModelMismatch) as caught:
        open_app(older.model_copy(update={"model": NAME, "models_dir": models}))
    assert str(caught.value) == (
        "This store was built with the embedding model recollect/notes-MiniLM-L6-v2 (384 dimensions, version "
        "0123456789ab), but acme/prompted-MiniLM (384 dimensions, version 047648b848ff) is configured. Set "
        "RECOLLECT_MODEL back, or run `recollect reindex` to embed everything with the configured model."
    )
    assert (rows(older, "SELECT * FROM vector"), stamps(older)) == before


def test_other_dimensions_are_another_model(older: Settings) -> None:
    """Vectors of another length are never mixed, whatever the id."""
    by_hand(older, "UPDATE store_metadata SET value = '768' WHERE name = 'dimensions'")
    with pytest.raises(ModelMismatch, match=r"\(768 dimensions, version 0123456789ab\), but .* \(384 dimensions, "):
        open_app(older)


def test_reindex_keeps_the_old_vectors_until_it_has_the_new(older: Settings) -> None:
    """Where a reindex is wanted it is made as ever: beside what serves, and then all at once."""
    with open_app(older, other_model=True) as app:
        before = embedded(older)
        assert reindex(app, lambda *_: stays(older, before)) == 10
    assert stamps(older)["revision"] != OLDER
    with open_app(older) as app:
        assert not app.records.embeddings.unembedded(1)
        check_renewed(app, older)


def stays(settings: Settings, before: set[int]) -> None:
    """Check that the same memories have vectors."""
    assert embedded(settings) == before


def test_a_store_that_is_only_read_is_refused(older: Settings, public_folder: Path) -> None:
    """Where nothing can be written nothing can be embedded anew, and the sentence says what to do."""
    home = Path(shutil.copytree(older.folder, public_folder / "home"))
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with unprivileged(), pytest.raises(ModelMismatch, match="recollect reindex"):
        open_app(older.model_copy(update={"home": home}))
    home.chmod(0o755)


def test_a_deployment_is_moved_by_reindex(deployed: Settings) -> None:
    """Replicas of two versions may run at once, so that none drops the vectors of the other: `reindex` moves them."""
    with opened_as_before(deployed) as app:
        add(app, FACT)
        said = r"version 0123456789ab\), but .*version 047648b848ff.* `recollect reindex`"
        with pytest.raises(ModelMismatch, match=said):
            open_app(deployed)
        assert do(app, "recall", query=MEANING).notes == ()
        with open_app(deployed, other_model=True) as newer:
            assert reindex(newer) == 1
        assert do(app, "recall", query="Tuesday").hits[0].memory.content == FACT
    with open_app(deployed) as app:
        assert do(app, "recall", query=MEANING).hits[0].memory.content == FACT
        assert ill(app) == []
