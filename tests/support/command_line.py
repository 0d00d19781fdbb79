"""The command line as somebody types it: in this very process, or as the real executable in one of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import recollect
from recollect.doors.cli import main, render
from stores import with_model

EXECUTABLE = str(Path(sys.executable).with_name("recollect"))
_open_app = recollect.open_app


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Read what it said as JSON."""
        return json.loads(self.out)


def execute(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    stdin: bytes = b"",
    *,
    limit: int | None = None,
) -> Ended:
    """Run the real executable in a process of its own, which may write no file beyond `limit` bytes.

    Makes sure that nobody ever sees a traceback.
    """
    done = subprocess.run(
        [EXECUTABLE, *arguments],
        input=stdin,
        capture_output=True,
        env=dict(environment),
        check=False,
        cwd=cwd,
        preexec_fn=None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    return _whole(done.returncode, done.stdout, done.stderr)


def call(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path, stdin: bytes = b"") -> Ended:
    """Run what the executable runs, in this process: as if it had just begun, but for the libraries and the model.

    Not for threads: streams, environment and working folder belong to the whole process.
    """
    given, out, err = io.BytesIO(stdin), io.BytesIO(), io.BytesIO()
    encoding, _, errors = environment.get("PYTHONIOENCODING", "utf-8").partition(":")
    streams = {
        "stdin": io.TextIOWrapper(given, encoding, errors or "strict"),
        "stdout": io.TextIOWrapper(out, encoding, errors or "strict"),
        "stderr": io.TextIOWrapper(err, encoding, "backslashreplace"),
    }
    with (
        mock.patch.multiple(sys, argv=["recollect", *arguments], **streams),
        mock.patch.object(sys.modules["__main__"], "__package__", ""),  # else it goes by the name of pytest
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(recollect, "open_app", _open_shared),
        contextlib.chdir(cwd),
    ):
        _renew_consoles()
        try:
            code = main.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        for one in (sys.stdout, sys.stderr):
            one.flush()
    return _whole(code, out.getvalue(), err.getvalue())


def _whole(code: int, out: bytes, err: bytes) -> Ended:
    ended = Ended(code, out.decode(), err.decode())
    assert "Traceback" not in ended.out + ended.err, ended.err
    return ended


def _open_shared(settings: recollect.Settings, **options: Any) -> recollect.App:
    return _open_app(settings, **with_model(settings, options))


def _renew_consoles() -> None:
    """Let the consoles look at the environment anew, as they do once in each process."""
    for one in (render.out, render.err):
        one.__init__(stderr=one.stderr)  # type: ignore[misc]
