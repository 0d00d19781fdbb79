"""Find the daemon of a store, or start it: the first client starts it, all others wait for it.

As a program it does so for a client that imports nothing, and writes one JSON object a line: `who`, what a request says
of its caller; `report`, what it waits for; `ready`, or an `error` with its `message`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from recollect import process as surroundings
from recollect import setting_texts
from recollect.client import runtime
from recollect.client.daemon import Client, DaemonGone, DaemonSilent, TokenRejected, published
from recollect.client.light import STARTING
from recollect.client.transport import SILENCE
from recollect.errors import DaemonUnreachable, RecollectError, StoreUnusable, relayed
from recollect.settings import Settings, hidden
from recollect.store import store_lock
from recollect.store.files import secure_folder
from recollect.store.ownership import unwritable
from recollect.store_owner import DAEMON, owns

_START_TIMEOUT = 60.0  # seconds: a first start prepares the model, on a busy machine
_OWNER_TIMEOUT = 5.0  # seconds to wait for another process that owns the store
_PAUSE = 0.05
_MAX_CRASHES = 3
_FAILED = "recollect-failed: "


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """Why the owner of a store cannot be reached: an error after `timeout` seconds of the same."""

    error: RecollectError
    timeout: float


class _Crashed(DaemonUnreachable):
    """A starting daemon ended without reporting why."""


def running(settings: Settings) -> Client | None:
    """Return a client of the store's daemon, None where no daemon runs.

    Raises `DaemonUnreachable` where the daemon runs and does not answer.
    """
    end = time.monotonic() + _OWNER_TIMEOUT
    while isinstance(seen := _find_daemon(settings.folder), _Obstacle):
        if not isinstance(seen.error, DaemonUnreachable):
            return None
        if time.monotonic() > end:
            raise seen.error
        time.sleep(_PAUSE)
    return seen


def ensure(settings: Settings, report: Callable[[str], None] = lambda _: None) -> Client:
    """Return a client of the daemon, started when absent or older; raise `DaemonUnreachable`, or why it failed."""
    end = time.monotonic() + _START_TIMEOUT
    unchanged_since, obstacle, crashes = time.monotonic(), "", 0
    while time.monotonic() < end:
        seen = _find_daemon(settings.folder)
        if isinstance(seen, _Obstacle):
            if str(seen.error) != obstacle:
                unchanged_since, obstacle = time.monotonic(), str(seen.error)
            if time.monotonic() - unchanged_since > seen.timeout:
                raise seen.error
        elif seen is not None and not _is_older(seen):
            return seen
        else:
            report("Starting the memory daemon.")
            try:
                if (client := _start_once(settings, end)) is not None:
                    return client
            except _Crashed:
                crashes += 1
                if crashes == _MAX_CRASHES:
                    raise
        time.sleep(_PAUSE)
    if obstacle:
        raise DaemonUnreachable(obstacle)
    raise DaemonUnreachable(f"The memory daemon did not start within {_START_TIMEOUT:.0f} s; see {log_file(settings)}.")


def stop(settings: Settings) -> bool:
    """Stop the daemon and wait for its end; return whether one was running."""
    client = running(settings)
    if client is not None:
        _shut_down(settings, client)
    return client is not None


def log_file(settings: Settings) -> Path:
    """Return the path of the daemon's log."""
    return settings.folder / "logs" / "daemon.log"


def report_failure(error: Exception) -> str:
    """Return the line with which a daemon that cannot start reports why."""
    return f"{_FAILED}{type(error).__name__}: {error}"


def _find_daemon(folder: Path) -> Client | _Obstacle | None:
    """Return a client of the running daemon, the reason why none can be started, or None where nothing runs."""
    client, lost = None, None
    try:
        client = _connect_to_daemon(folder)
    except DaemonGone as gone:
        lost = gone
    if client is not None or not store_lock.held(folder):
        return client
    who = store_lock.owner_of(folder)
    if store_lock.role_of(folder) not in ("", DAEMON):
        return _Obstacle(store_lock.owned(folder), _OWNER_TIMEOUT)
    if isinstance(lost, TokenRejected):
        path = folder / runtime.NAME
        error = DaemonUnreachable(f"The memory daemon, {who}, rejects the token in {path}; end that process.")
        return _Obstacle(error, _OWNER_TIMEOUT)
    message = f"The memory daemon, {who}, holds the store in {folder} but does not answer; see its log, or end it."
    # One that takes connections and is silent has long started.
    return _Obstacle(DaemonUnreachable(message), SILENCE if isinstance(lost, DaemonSilent) else _START_TIMEOUT)


def _connect_to_daemon(folder: Path) -> Client | None:
    """Return a client of the daemon in the runtime file; None where there is no such file, or its process ended."""
    found = published(folder)
    if found is None:
        return None
    # Another program may use the port of a daemon that has ended; a socket in the data folder is ours.
    if not found.socket and not owns(folder, found.pid):
        return None
    client = Client(found)
    client.ping()
    return client


def _shut_down(settings: Settings, client: Client) -> None:
    """Stop the daemon and wait for its end; raise `DaemonUnreachable` where it keeps running."""
    with suppress(DaemonGone):  # it is ending already; wait for that
        client.post("/stop", {})
    pid, end = client.runtime.pid, time.monotonic() + _START_TIMEOUT
    while time.monotonic() < end:
        if not store_lock.held(settings.folder) or store_lock.pid_of(settings.folder) not in (pid, None):
            return
        time.sleep(_PAUSE)
    raise DaemonUnreachable(f"The memory daemon (process {pid}) does not stop; see {log_file(settings)}, or end it.")


def _is_older(client: Client) -> bool:
    """Return whether the daemon is older than this client; raise for a newer daemon of another protocol."""
    theirs = (_version_tuple(client.runtime.version), client.runtime.protocol)
    ours = (_version_tuple(version("recollect")), runtime.PROTOCOL)
    if theirs > ours and client.runtime.protocol != runtime.PROTOCOL:
        raise DaemonUnreachable(
            f"The memory daemon is of a newer version ({client.runtime.version}) than this client "
            f"({version('recollect')}): upgrade this one, or run `recollect stop` with the newer."
        )
    return theirs < ours


def _version_tuple(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _start_once(settings: Settings, end: float) -> Client | None:
    """Start the daemon unless another process is doing so; return None when the caller should look again."""
    folder = settings.folder
    secure_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(folder / STARTING, timeout=0, is_singleton=False, mode=0o600):
            seen = _find_daemon(folder)
            if isinstance(seen, _Obstacle):
                return None
            if seen is not None:
                if not _is_older(seen):
                    return seen
                _shut_down(settings, seen)
            return _start_daemon(settings, end)
    except Timeout:
        return None
    except RecollectError:
        raise
    except OSError as error:
        raise unwritable(folder, error) from None


def _start_daemon(settings: Settings, end: float) -> Client | None:
    """Start the daemon as a process and wait until it answers; None where another process was faster."""
    errors = settings.folder / "logs" / "daemon.start"
    told = settings.model_dump_json(exclude_none=True, exclude=set(hidden()))  # others see a process's arguments
    errors.parent.mkdir(exist_ok=True, mode=0o700)
    with errors.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "recollect.doors.daemon", told],
            env=setting_texts.environment_with({name: getattr(settings, name) for name in hidden()}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            cwd=settings.folder,
            **surroundings.detached(),
        )
    # Wait for its end, so that a client that outlives it keeps no zombie.
    threading.Thread(target=process.wait, name="recollect-daemon-end", daemon=True).start()
    while time.monotonic() < end:
        seen = _find_daemon(settings.folder)
        if seen is not None and not isinstance(seen, _Obstacle):
            return seen
        if process.poll() is not None:
            _check_failure(errors, process.returncode, settings)
            return None
        time.sleep(_PAUSE)
    process.kill()
    return None


def _check_failure(errors: Path, code: int, settings: Settings) -> None:
    """Raise the error that kept the daemon from starting; there is none where another process owns the store."""
    if code == 0:
        return
    text = errors.read_text(encoding="utf-8", errors="replace")
    for line in text.splitlines():
        if line.startswith(_FAILED):
            kind, _, message = line.removeprefix(_FAILED).partition(": ")
            if kind == "StoreOwned":
                return
            raise relayed(kind, message)
    if code == StoreUnusable.exit_code:  # on a full disk it cannot write why
        raise StoreUnusable(f"The data folder {settings.folder} cannot be used: it may be full.")
    raise _Crashed(f"The memory daemon ended while it was starting (exit status {code}); see {errors}.")


def about_caller(settings: Settings) -> dict[str, str]:
    """Return the parameters by which a request names its caller and the settings that apply to the caller."""
    caller = settings.caller
    return {
        "user": caller.user,
        "team": caller.team,
        "project": caller.project,
        "zone": caller.zone,
        "on_secret": str(settings.on_secret),
        "model": settings.model,
    }


def main() -> None:
    """Start the daemon for the settings in the first argument, unless it runs already."""
    try:
        settings = Settings(**json.loads(sys.argv[1]))
        told = settings.model_dump(mode="json", exclude=set(hidden()))  # they are given to a process as arguments
        _print_json_line(settings=told, who=about_caller(settings), home=str(settings.folder))
        ensure(settings, lambda what: _print_json_line(report=what))
        _print_json_line(ready=True)
    except RecollectError as error:
        _print_json_line(error=type(error).__name__, message=str(error))
    except BrokenPipeError:  # the client has left: nobody waits for what is prepared, nor for what is still to be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_json_line(**what: Any) -> None:
    """Write these fields as a JSON line to standard output, for the process that started this module."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
