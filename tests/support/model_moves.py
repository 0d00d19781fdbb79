"""Processes that are killed while they move a store to another model: it ends as if nobody had disturbed it.

The test runs a few, `scripts/soak` as many as there is time for.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from callers import ADA
from recollect import Draft, Query, Settings, recall, remember
from second_model import ID, NAME, second_model
from stores import open_app

MOVER = Path(__file__).with_name("model_mover.py")
MOST = 6  # kills of one move
ANIMALS = ("horse", "salmon", "eagle", "python", "beaver", "lobster", "camel", "walrus", "heron", "gecko")


@dataclass(frozen=True)
class Stage:
    """A store on which processes are killed."""

    settings: Settings
    environment: dict[str, str]
    models: Path
    memories: int

    def copy(self, name: str) -> Stage:
        """Return the same store once more, in a folder of its own."""
        home = self.settings.folder.with_name(name)
        shutil.copytree(self.settings.folder, home)
        settings = self.settings.model_copy(update={"home": home})
        return Stage(settings, self.environment | {"RECOLLECT_HOME": str(home)}, self.models, self.memories)

    def rows(self, query: str) -> list[Any]:
        """Look into the database from outside."""
        with closing(sqlite3.connect(self.settings.folder / "memory.db")) as database:
            return database.execute(query).fetchall()

    def model(self) -> str:
        """Return the model that the store is stamped with."""
        return str(self.rows("SELECT value FROM store_metadata WHERE name = 'model'")[0][0])

    def opened(self) -> Any:
        """Open the store with the model that it has now."""
        changes = {"model": NAME, "models_dir": self.models} if self.model() == ID else {}
        return open_app(self.settings.model_copy(update=changes))

    def state(self) -> tuple[list[Any], list[Any]]:
        """Return the vectors of SQL, byte by byte, and those of Chroma."""
        with self.opened() as app:
            app.vectors.sync()
            assert [check for check in app.checks() if not check.well] == []
            found = app.vectors._index._get_collection("project:crew/engine").get(include=["embeddings"])
        chroma = [(one, vector.tolist()) for one, vector in zip(found["ids"], found["embeddings"], strict=True)]
        return self.rows("SELECT * FROM vector ORDER BY memory_id, ordinal"), sorted(chroma)

    def begin(self) -> subprocess.Popen[str]:
        """Start a process that moves the store."""
        command = [sys.executable, str(MOVER), str(self.models)]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=self.environment, **pipes)

    def ask(self) -> None:
        """Ask between two kills: whatever its model is, the store answers."""
        with self.opened() as app:
            assert app.embedder.ready
            recalled = recall(app, Query(query="Which page speaks of the walrus?", min_score=0.0), ADA)
            assert "walrus" in recalled.hits[0].memory.content
            assert recalled.notes == ()


def make_stage(settings: Settings, environment: dict[str, str], models: Path, memories: int) -> Stage:
    """Put so many memories into a store of the first model, and lay the second one into the folder `models`."""
    with open_app(settings) as app:
        for number in range(memories):
            line = f"Page {number} of the log speaks of the {ANIMALS[number % 10]} seen at {number * 7} fathoms. "
            remember(app, Draft(content=line * (9 if number % 12 == 5 else 1), key=f"k{number}"), ADA)
        app.vectors.sync()
    paths = os.pathsep.join([str(MOVER.parent), os.environ.get("PYTHONPATH", "")])
    return Stage(settings, environment | {"PYTHONPATH": paths}, second_model(models), memories)


def run_and_kill(stage: Stage, read: int, seconds: float) -> tuple[list[str], bool]:
    """Kill a mover so long after it has read so many memories; return what it said, and if the kill came in time."""
    with stage.begin() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = [process.stdout.readline()]
        while said[-1].startswith("ready") or (said[-1].startswith("at ") and int(said[-1].split()[1]) < read):
            said.append(process.stdout.readline())
        killer = threading.Timer(seconds, process.send_signal, [signal.SIGKILL])
        killer.start()
        said += process.stdout.readlines()
        complaint = process.stderr.read()
        process.wait()
        killer.cancel()
        killer.join()
    assert said[0] == "ready\n", complaint
    assert process.returncode in (0, -signal.SIGKILL), complaint
    return [line.strip() for line in said if line.endswith("\n")], process.returncode != 0


def undisturbed(stage: Stage) -> tuple[list[Any], list[Any]]:
    """Return how a store is that was moved by a process that nobody killed."""
    calm = stage.copy("calm")
    with calm.begin() as process:
        _, complaint = process.communicate()
    assert process.returncode == 0, complaint
    assert calm.model() == ID
    return calm.state()


def kill_movers(stage: Stage, seeds: Iterable[int], enough: float = math.inf) -> int:
    """Move a copy of the store for each seed until enough movers were killed; return how many were.

    Each moved copy must have the vectors and the index of one that was moved in peace.
    """
    vectors, index = undisturbed(stage)
    assert len(vectors) > stage.memories
    assert len(index) == len(vectors)
    kills, answered = 0, list[str]()
    for seed in seeds:
        disturbed, chance, mine = stage.copy(f"disturbed{seed}"), random.Random(seed), 0
        while disturbed.model() != ID:
            (kept,) = disturbed.rows("SELECT count(DISTINCT memory_id) FROM vector_shadow")[0]
            read = min(kept + chance.randint(0, stage.memories // 2), stage.memories)
            seconds = chance.uniform(0.0, 1.2 if read == stage.memories else 0.2)  # index and switch come last
            said, killed = run_and_kill(disturbed, read if mine < MOST else stage.memories + 1, seconds)
            answered += [line for line in said if line.startswith("at ")]
            mine += killed
            disturbed.ask()
        kills += mine
        assert disturbed.rows("SELECT * FROM vector_shadow") == []
        found, chroma = disturbed.state()
        assert found == vectors
        assert [one for one, _ in chroma] == [one for one, _ in index]
        np.testing.assert_allclose([row for _, row in chroma], [row for _, row in index], atol=1e-6)
        shutil.rmtree(disturbed.settings.folder)
        if kills >= enough:
            break
    assert {line.split()[3][-1] for line in answered} == {"7"}
    return kills
