"""Owners of a store that are killed in mid-work: what they had acknowledged holds, and all parts of the store agree.

The test runs a few, `scripts/soak` as many as there is time for.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import text

from callers import ADA, EVERY_LEVEL
from recollect import App, Query, Settings, recall
from recollect.domain.search import View
from recollect.store.sql.database import open_file
from recollect.store.text.index import Term
from stores import open_app

LOOK_EVERY = 4
WORKER = Path(__file__).with_name("writing_process.py")
_SHAPE = re.compile(r"(?:The word (q\d+z\d+y) stands here, version v(\d+)x, beside ropes, masts and sails\.\n\n){1,60}")
_OWNED = text(
    "SELECT coalesce(whole.key, memory.key), memory.content, memory.merged_into IS NOT NULL FROM memory"
    " LEFT JOIN memory AS whole ON whole.id = memory.merged_into"
)
"""Every text with the key of the memory that says it or said it before, and whether it is one from before."""


@dataclass
class Ledger:
    """What the killed processes have said: the version each memory must have, and which may be otherwise."""

    living: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    open: dict[str, tuple[str, int]] = field(default_factory=dict)
    acknowledged: int = 0
    kills: int = 0

    def read(self, lines: list[str]) -> None:
        """Take in the lines of one killed process; the last one begun may have no end."""
        self.kills += 1
        for line in lines:
            kind, verb, name, version, *_ = [*line.split(), "", "", "0"]
            if kind == "begin":
                self.open[name] = (verb, int(version))
            elif kind == "done":
                del self.open[name]
                self.acknowledged += 1
                if verb == "forget":
                    del self.living[name]
                    self.gone.add(name)
                else:
                    self.living[name] = int(version)

    def settle(self, held: dict[str, int]) -> None:
        """Hold the store to what was said, and take what it made of the unfinished as the truth from now on."""
        for name, (verb, version) in self.open.items():
            before = {self.living.get(name)}
            possible = before | ({None} if verb == "forget" else {version})
            assert held.get(name) in possible, f"{verb} of {name} ended as {held.get(name)}, not one of {possible}"
            self.living.pop(name, None)
            if name in held:
                self.living[name] = held[name]
            else:
                self.gone.add(name)
        self.open.clear()
        assert held == self.living


def run_and_kill(environment: dict[str, str], seed: int, writes: int, seconds: float) -> list[str]:
    """Let a worker acknowledge so many writes and go on for so long, kill it, and return the whole lines it wrote."""
    process = subprocess.Popen(
        [sys.executable, str(WORKER), str(seed)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline()]
        while sum(line.startswith(b"done") for line in lines) < writes:
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read().decode()
        killer = threading.Timer(seconds, process.send_signal, [signal.SIGKILL])
        killer.start()
        lines += process.stdout.readlines()
        complaint = process.stderr.read().decode()
        killer.join()
    assert lines[0] == b"ready\n", complaint
    assert process.returncode == -signal.SIGKILL, complaint
    return [line.decode().strip() for line in lines[1:] if line.endswith(b"\n")]


def held_by(folder: Path) -> dict[str, int]:
    """Read every memory from SQL by hand; each must be whole, and a text kept from before one of the memory it was."""
    database = open_file(folder / "memory.db")
    with closing(database), database.reading() as connection:
        rows = connection.execute(_OWNED).all()
    found: dict[str, int] = {}
    for key, content, kept in rows:
        whole = _SHAPE.fullmatch(content)
        assert whole is not None, f"{key} is torn"
        assert (whole[1], set(re.findall(r"v(\d+)x", content))) == (key, {whole[2]})
        if not kept:
            found[key] = int(whole[2])
    return found


def nowhere(app: App, name: str) -> bool:
    """Say whether neither words nor typos nor pieces nor the vocabulary know the name."""
    view = View(namespaces=ADA.namespaces(), now=app.clock(), sensitivities=EVERY_LEVEL)
    return not (
        app.text.search([Term(name)], view, 5)
        or app.text.substring(name, view, 5)
        or app.text.frequencies([name], view)
        or any(term.text == name for term in app.text.similar(name[:-1], view, 5))
    )


def look(app: App, folder: Path, ledger: Ledger, chance: random.Random) -> None:
    """Reopen and compare: SQL with what was said, text and vectors with SQL, and some memories through recall."""
    ledger.settle(held_by(folder))
    app.vectors.sync()
    assert [check for check in app.checks() if not check.well] == []
    for name in ledger.gone:
        assert nowhere(app, name), f"{name} was forgotten and is still known"
    for name in chance.sample(sorted(ledger.living), min(12, len(ledger.living))):
        found = recall(app, Query(query=name, min_score=0.0), ADA).hits[0].memory
        assert (found.key, f"v{ledger.living[name]}x" in found.content) == (name, True)


def kill_writers(settings: Settings, environment: dict[str, str], seeds: Iterable[int]) -> Ledger:
    """Kill one worker for each seed, look at the store after every few, and return what they said.

    Every third is killed while it opens the store or soon after.
    """
    ledger = Ledger()
    for count, seed in enumerate(seeds, 1):
        chance = random.Random(seed)
        writes = chance.randint(8, 24) if count % 3 else 0
        ledger.read(run_and_kill(environment, seed, writes, chance.uniform(0.0, 0.6)))
        if count % LOOK_EVERY == 0:
            with open_app(settings) as app:
                look(app, settings.folder, ledger, chance)
    with open_app(settings) as app:
        look(app, settings.folder, ledger, random.Random(0))
    return ledger
