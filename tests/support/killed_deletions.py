"""Deletions of a user that are killed in mid-work, and asked for again: nothing is signed before all is done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from contextlib import suppress

_WORKING = textwrap.dedent(
    """
    import os
    import sys
    import chromadb
    import onnxruntime
    from recollect import Settings, open_app
    from recollect.auth.administration import administer, operator_principal
    for line in iter(sys.stdin.readline, ""):
        if child := os.fork():
            os.waitpid(child, 0)
            print("over", flush=True)
            continue
        with open_app(Settings(daemon=False), wait=False, background=False) as app:
            print(os.getpid(), flush=True)
            sys.stdin.readline()
            administer(app, "delete_user", {"user": "ada", "erase": True}, operator_principal("ops"))
        os._exit(0)
    """
)
"""Deletes Ada in a process of its own, which begins with everything imported, each time that it is told to."""


def kill_deletions(environment: dict[str, str], seeds: Iterable[int], seconds: float) -> Iterable[int]:
    """Kill a process for each seed while it deletes Ada, at most so many seconds after it began; yield the seed."""
    command = [sys.executable, "-c", _WORKING]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        for seed in seeds:
            process.stdin.write("go\n")
            process.stdin.flush()
            child = int(process.stdout.readline())
            process.stdin.write("\n")
            process.stdin.flush()
            time.sleep(random.Random(seed).uniform(0.0, seconds))
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            assert process.stdout.readline() == "over\n"
            yield seed
        process.kill()
