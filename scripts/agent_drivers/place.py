"""Where a case runs: a fresh HOME with a repository in it, programs with a time limit, and the evidence they leave.

Programs get nothing of this machine's environment. The `recollect` on their search path keeps what each hook got, said
and took, and then is the real one.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent_drivers.model import Conversation, ModelServer

PROGRAM: Final = Path(sys.executable).parent / "recollect"
LIMIT: Final = 120.0  # seconds for one process
PATIENCE: Final = 30.0  # seconds until what hooks brought is worked off
_SYSTEM: Final = "/usr/local/bin:/usr/bin:/bin"
_RECORDER: Final = """#!/bin/bash
# Keeps what each hook gets, says and takes.
if [[ $1 == install || $1 == uninstall ]]; then
    code='import sys; from recollect.doors.entry import main; sys.argv[0] = "{recorder}"; main()'
    exec {python} -P -c "$code" "$@"
fi
[[ $1 == hook ]] || exec {program} "$@"
record={records}/$EPOCHREALTIME-$$
cat >"$record.in"
begun=$EPOCHREALTIME
{program} "$@" <"$record.in" >"$record.out" 2>"$record.err"
code=$?
printf '%s\\n' "$2" "$code" "$begun" "$EPOCHREALTIME" "$PWD" >"$record.done"
cat "$record.out"
exit $code
"""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def told(self) -> str:
        """Return the last line that it wrote."""
        lines = [line for line in (self.out + "\n" + self.err).splitlines() if line.strip()]
        return lines[-1].strip()[:200] if lines else "nothing"


@dataclass(frozen=True)
class Hook:
    """One hook that an agent ran: its event, what it got and answered, its exit code, and its milliseconds.

    One that the agent stopped before its end has no exit code.
    """

    event: str
    payload: dict[str, Any]
    answer: str
    errors: str
    code: int | None
    ms: float
    folder: str

    @property
    def injected(self) -> str:
        """Return the text that it put before a prompt, empty where it put none."""
        said = json.loads(self.answer) if self.answer.strip() else {}
        return str(said.get("context", said.get("hookSpecificOutput", {}).get("additionalContext", "")))

    @property
    def asks(self) -> bool:
        """Say whether it asked what was learnt."""
        return "<memory-ask>" in self.answer


class Place:
    """The HOME, the repository, the conversation and the evidence of one case."""

    def __init__(self, work: Path, agent: str, case: str, server: ModelServer, end: float = math.inf) -> None:
        self.work, self.name, self._end = work, f"{agent}-{case}", end
        self.evidence = work / "evidence" / agent / case
        self.home = work / "homes" / self.name
        for folder in (self.evidence, self.home):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.project = self.repository("shop")
        self.url = server.open(self.name, self.evidence / "requests")
        self.model: Conversation = server.conversations[self.name]
        self.variables: dict[str, str] = {}
        self._locked = False
        self._records = self.evidence / "hooks"
        self._records.mkdir()
        self._write_recorder()

    def _write_recorder(self) -> None:
        self.recorder = self.home / "bin/recollect"
        self.recorder.parent.mkdir()
        named = {"recorder": self.recorder, "python": sys.executable, "program": PROGRAM, "records": self._records}
        self.recorder.write_text(_RECORDER.format(**named), encoding="utf-8")
        self.recorder.chmod(0o755)

    def repository(self, name: str) -> Path:
        """Make a repository with one file, and return its folder."""
        folder = self.home / "work" / name
        folder.mkdir(parents=True)
        (folder / "README.md").write_text(f"# {name}\n", encoding="utf-8")
        git = ["git", "-C", str(folder), "-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "Begin"]):
            subprocess.run([*git, *words], check=True, env={"PATH": _SYSTEM, "HOME": str(self.home)})
        return folder

    def environment(self) -> dict[str, str]:
        """Return all that a program knows of its surroundings."""
        nodes = self.work / "npm/node_modules"
        path = f"{self.recorder.parent}:{nodes / '.bin'}:{nodes / 'node/bin'}:{_SYSTEM}"
        known = {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm", "SHELL": "/bin/bash"}
        return known | {"USER": "ann", "TMPDIR": "/tmp"} | self.variables

    def start(self, command: Sequence[str], said: str = "", folder: Path | None = None) -> subprocess.Popen[str]:
        """Start a program in the repository, with `said` on its standard input."""
        if self._locked and os.geteuid() == 0:  # nothing is read-only to root
            command = ["setpriv", "--bounding-set=-dac_override", "--", *command]
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            file.write(said)
            file.seek(0)
            pipe = subprocess.PIPE
            return subprocess.Popen(
                command,
                stdin=file,
                stdout=pipe,
                stderr=pipe,
                text=True,
                errors="replace",
                env=self.environment(),
                cwd=folder or self.project,
                start_new_session=True,
            )

    def end(self, process: subprocess.Popen[str], limit: float = LIMIT) -> Ended:
        """Wait for a program, which is killed with all it started after `limit` seconds; keep what it wrote."""
        begun = time.monotonic()
        given, limit = limit, min(limit, max(1.0, self._end - begun))
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            over = ", as the time of the run was over" if limit < given else ""
            err += f"\nstopped after {limit:.0f} s{over}"
        ended = Ended(process.returncode, out, err, time.monotonic() - begun)
        number = sum(1 for one in self.evidence.iterdir() if one.suffix == ".txt") + 1
        words = [str(one) for one in process.args] if isinstance(process.args, list) else [str(process.args)]
        text = f"$ {shlex.join(words)}\n[{ended.code}, {ended.seconds:.1f} s]\n{out}\n--- errors\n{err}"
        (self.evidence / f"{number:02}.txt").write_text(text, encoding="utf-8")
        return ended

    def run(self, command: Sequence[str], said: str = "", folder: Path | None = None, limit: float = LIMIT) -> Ended:
        """Run a program to its end."""
        return self.end(self.start(command, said, folder), limit)

    def recollect(self, *words: str, said: str = "", folder: Path | None = None) -> Ended:
        """Run a command of Recollect as the person would."""
        return self.run([str(self.recorder), *words], said, folder)

    def memories(self, text: str = "", folder: Path | None = None) -> list[str]:
        """Return how each memory with a text begins that is stored in a folder's project."""
        return [begin for one in self.rows(folder) if text in (begin := str(one["preview"]))]

    def rows(self, folder: Path | None = None) -> list[dict[str, Any]]:
        """Return each memory of a folder's project as it is listed for machines."""
        done = self.recollect("list", "--all", "--json", folder=folder)
        return list(json.loads(done.out)["memories"]) if done.out.strip() else []

    def await_memory(self, text: str) -> bool:
        """Say whether a memory with a text is stored before long: what hooks bring is worked off in order."""
        return self.await_text(text, "list", "--all", "--json")

    def await_text(self, text: str, *words: str) -> bool:
        """Say whether a command's answer holds a text before long."""
        return before_long(lambda: text in self.recollect(*words).out)

    def await_absence(self, text: str) -> bool:
        """Say whether no memory with a text is listed before long, because another memory replaced it."""
        return before_long(lambda: not self.memories(text))

    def hooks(self) -> list[Hook]:
        """Return the hooks that ran, in their order."""
        return [_hook(file) for file in sorted(self._records.glob("*.in"))]

    def lock(self) -> None:
        """Let nothing write into the data folder until the case ends."""
        self._set_mode(0o222, add=False)
        self._locked = True

    def _set_mode(self, bits: int, *, add: bool) -> None:
        for path in (one for top in [self.home / ".recollect"] for one in (top, *top.rglob("*"))):
            mode = path.stat().st_mode if path.exists() and not path.is_symlink() else 0
            if mode and not stat.S_ISSOCK(mode):
                path.chmod(mode | bits if add else mode & ~bits)

    def daemon(self) -> int:
        """Return the process id of the daemon, 0 where none runs."""
        try:
            found = json.loads((self.home / ".recollect/owner.json").read_text(encoding="utf-8"))
            os.kill(found["pid"], 0)
            return int(found["pid"])
        except (OSError, ValueError, KeyError):
            return 0

    def files(self, *without: str) -> dict[str, bytes]:
        """Return the files of HOME and of the repository but for some folders and what belongs to Recollect."""
        left = (".recollect", ".cache", "bin", *without)
        names = (one for one in self.home.rglob("*") if one.is_file() and ".git" not in one.parts)
        named = {one.relative_to(self.home).as_posix(): one for one in names}
        return {name: one.read_bytes() for name, one in named.items() if not name.startswith(left)}

    def close(self) -> None:
        """Stop the daemon of this HOME."""
        if pid := self.daemon():
            for number in (signal.SIGCONT, signal.SIGTERM):
                os.kill(pid, number)
        end = time.monotonic() + 10
        while self.daemon() and time.monotonic() < end:
            time.sleep(0.1)
        if pid := self.daemon():
            os.kill(pid, signal.SIGKILL)
        for name in ("daemon.log", "daemon.start"):
            if (log := self.home / ".recollect/logs" / name).exists():
                shutil.copy(log, self.evidence)
        self._set_mode(0o200, add=True)


def before_long(holds: Callable[[], bool]) -> bool:
    """Say whether something holds within `PATIENCE`."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def _hook(file: Path) -> Hook:
    """Read the record of one hook."""
    parts = {end: file.with_suffix(f".{end}") for end in ("in", "out", "err", "done")}
    read = {
        end: one.read_text(encoding="utf-8", errors="replace") if one.exists() else "" for end, one in parts.items()
    }
    payload = json.loads(read["in"]) if read["in"].strip() else {}
    event, code, begun, ended, folder = (read["done"].split("\n") + [""] * 5)[:5]
    name = event or str(payload.get("hook_event_name", ""))
    took = (float(ended) - float(begun)) * 1000 if ended else 0.0
    return Hook(name, payload, read["out"], read["err"], int(code) if code else None, took, folder)
