"""Withdrawals, and the undoing of them, that are killed in mid-work: the store is as before or as after.

The test kills a few, `scripts/soak` as many as there is time for.
"""

from __future__ import annotations

import random
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
    import sys
    from datetime import datetime
    from recollect import Caller, Settings, open_app
    from recollect.doors.handlers import perform
    name, fields, now = sys.argv[1], json.loads(sys.argv[2]), datetime.fromisoformat(sys.argv[3])
    with open_app(Settings(daemon=False), background=False, clock=lambda: now) as app:
        print("open", flush=True)
        sys.stdin.readline()
        perform(app, name, fields, Caller(user="ada", team="crew", project="engine"))
        print("done", flush=True)
    """
)


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
    withdrawn = False
    for seed in seeds:
        ((last,),) = rows(settings, "SELECT max(id) FROM withdrawal")
        work = ("undo_withdrawal", f'{{"id": "{last}"}}') if withdrawn else ("withdraw", _WITHDRAW)
        _kill(environment, (*work, clock().isoformat()), random.Random(seed).uniform(0.0, 1.5 * seconds))
        with open_app(settings, clock=clock) as app:
            seen = honest(app)
            assert seen in (with_source, without), f"neither before nor after {work[0]}, seed {seed}"
            assert ill(app) == []
        killed.kills += 1
        killed.done += withdrawn is (seen == with_source)
        withdrawn = seen == without
    return killed


_WITHDRAW = f'{{"source": "{BAD}", "apply": true}}'


def _kill(environment: dict[str, str], work: Sequence[str], wait: float) -> None:
    """Kill a process `wait` seconds after it began to work."""
    command = [sys.executable, "-c", _WORKING, *work]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "open\n"
        process.stdin.write("\n")
        process.stdin.flush()
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait)
        process.kill()
