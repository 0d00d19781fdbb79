"""Withdrawals, and the undoing of them, that are killed in mid-work: the store is as before or as after.

The test kills a few, `scripts/soak` as many as there is time for.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from clock import Clock
from poisoned_store import BAD, Told, honest
from recollect import Settings
from run_operations import do, ill, rows
from stores import open_app

_WORKING = textwrap.dedent(
    """
    import json
    import os
    import sys
    from datetime import datetime
    import chromadb
    import onnxruntime
    from recollect import Caller, Settings, open_app
    from recollect.doors.handlers import perform
    for line in iter(sys.stdin.readline, ""):
        if child := os.fork():
            os.waitpid(child, 0)
            print("over", flush=True)
            continue
        name, fields, now = json.loads(line)
        at = datetime.fromisoformat(now)
        with open_app(Settings(daemon=False), background=False, clock=lambda: at) as app:
            print(os.getpid(), flush=True)
            sys.stdin.readline()
            perform(app, name, fields, Caller(user="ada", team="crew", project="engine"))
        os._exit(0)
    """
)
"""Does each piece of work that it is told of in a process of its own, which begins with everything imported."""
_WITHDRAW = {"source": BAD, "apply": True}


@dataclass
class Killed:
    """How many processes were killed, and in how many stores the work was done all the same."""

    kills: int = 0
    done: int = 0


def kill_withdrawals(
    settings: Settings, environment: dict[str, str], seeds: Iterable[int], memories: int = 20
) -> Killed:
    """Kill one process for each seed while it withdraws a source or undoes that, and look at the store each time."""
    clock, killed = Clock(), Killed()
    with open_app(settings, clock=clock) as app:
        Told(app, clock, honest=memories, bad=memories // 3, poisoned=True).fill()
        with_source, begun = honest(app), time.perf_counter()
        done = do(app, "withdraw", source=BAD, apply=True)
        seconds = time.perf_counter() - begun
        without = honest(app)
        do(app, "undo_withdrawal", id=done.id)
        assert honest(app) == with_source
    command = [sys.executable, "-c", _WORKING]
    withdrawn = False
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        for seed in seeds:
            ((last,),) = rows(settings, "SELECT max(id) FROM withdrawal")
            work = ("undo_withdrawal", {"id": str(last)}) if withdrawn else ("withdraw", _WITHDRAW)
            _kill(process, (*work, clock().isoformat()), random.Random(seed).uniform(0.0, 1.5 * seconds))
            with open_app(settings, clock=clock) as app:
                seen = honest(app)
                assert seen in (with_source, without), f"neither before nor after {work[0]}, seed {seed}"
                assert ill(app) == []
            killed.kills += 1
            killed.done += withdrawn is (seen == with_source)
            withdrawn = seen == without
        process.kill()
    return killed


def _kill(process: subprocess.Popen[str], work: Sequence[object], wait: float) -> None:
    """Kill a process that does this work, `wait` seconds after it began with it."""
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdin.write(json.dumps(work) + "\n")
    process.stdin.flush()
    child = int(process.stdout.readline())
    process.stdin.write("\n")
    process.stdin.flush()
    time.sleep(wait)
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    assert process.stdout.readline() == "over\n"
