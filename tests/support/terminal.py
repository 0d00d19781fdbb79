"""A command at a pseudo-terminal, as a person sits before it: waits for a text on the screen, then types."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from command_line import EXECUTABLE


class Terminal:
    """The screen and the keyboard of one running command."""

    def __init__(self, process: subprocess.Popen[bytes], handle: int) -> None:
        self.process = process
        self.shown = ""
        self._seen = 0
        self._handle = handle

    def wait_for(self, text: str) -> str:
        """Return what was shown since the last time, to the end of this text; an end before it is a failure."""
        start = self._seen
        while (at := self.shown.find(text, start)) < 0:
            assert self._read(), f"the command ended before it said {text!r}: {self.shown}"
        self._seen = at + len(text)
        return self.shown[start : self._seen]

    def type(self, line: str) -> None:
        """Type a line and press enter."""
        os.write(self._handle, f"{line}\n".encode())

    def end(self) -> int:
        """Read to the end and return the exit code."""
        while self._read():
            pass
        return self.process.wait()

    def _read(self) -> bool:
        try:
            found = os.read(self._handle, 65_536)
        except OSError:  # so the end of a terminal reads on Linux
            return False
        self.shown += found.decode(errors="replace")
        return bool(found)


@contextmanager
def terminal(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path) -> Iterator[Terminal]:
    """Run the real executable at a terminal of its own, which is closed in the end."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [EXECUTABLE, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=dict(environment) | {"TERM": "xterm", "COLUMNS": "200", "LINES": "60"},
            cwd=cwd,
            start_new_session=True,
        )
        os.close(theirs)
        with process:
            try:
                yield Terminal(process, ours)
            finally:
                process.kill()
    finally:
        os.close(ours)
