"""Find the daemon of a store, or start it: whoever comes first starts it, everybody else waits for it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from recollect.doors.daemon import runtime
from recollect.doors.daemon.client import Client, Gone, Refused
from recollect.errors import DaemonUnreachable, RecollectError, StoreUnusable, relayed
from recollect.settings import Settings
from recollect.store import owner

_PATIENCE = 60.0  # seconds to come up: a first start prepares the model, on a busy machine
_COURTESY = 5.0  # seconds for another process that owns the store to be done
_PAUSE = 0.05
_DEATHS = 3
_FAILED = "recollect-failed: "


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """Why a held store cannot be talked to: an error when it is still so after `patience` seconds."""

    error: RecollectError
    patience: float


class _Died(DaemonUnreachable):
    """A starting daemon was killed, so that it could not say why."""


def running(settings: Settings) -> Client | None:
    """Return a client of the store's daemon when there is one; one that is coming up or going is waited for.

    A stale runtime file counts as none, and so does an owner that is no daemon. Raises `DaemonUnreachable` when a
    daemon holds the store but does not answer.
    """
    end = time.monotonic() + _COURTESY
    while isinstance(seen := _look(settings.folder), _Obstacle):
        if not isinstance(seen.error, DaemonUnreachable):
            return None
        if time.monotonic() > end:
            raise seen.error
        time.sleep(_PAUSE)
    return seen


def ensure(settings: Settings, said: Callable[[str], None] = lambda _: None) -> Client:
    """Return a client of the store's daemon, starting it when it is absent or older than this client.

    `said` hears what is being waited for. Raises `DaemonUnreachable` with the reason when it does not come up,
    or the error that kept it from opening the store.
    """
    end = time.monotonic() + _PATIENCE
    since, before, deaths = time.monotonic(), "", 0
    while time.monotonic() < end:
        seen = _look(settings.folder)
        if isinstance(seen, _Obstacle):
            if str(seen.error) != before:
                since, before = time.monotonic(), str(seen.error)
            if time.monotonic() - since > seen.patience:
                raise seen.error
        elif seen is not None and not _outdated(seen):
            return seen
        else:
            said("Starting the memory daemon.")
            try:
                if (client := _started(settings, end)) is not None:
                    return client
            except _Died:
                deaths += 1
                if deaths == _DEATHS:
                    raise
        time.sleep(_PAUSE)
    if before:
        raise DaemonUnreachable(before)
    raise DaemonUnreachable(f"The memory daemon did not come up in {_PATIENCE:.0f} seconds; see {log_file(settings)}.")


def stop(settings: Settings) -> bool:
    """Ask the daemon to finish and wait until it has; say whether there was one."""
    client = running(settings)
    if client is None:
        return False
    _finish(settings, client)
    return True


def log_file(settings: Settings) -> Path:
    """Return where the daemon writes its log."""
    return settings.folder / "logs" / "daemon.log"


def report_failure(error: Exception) -> str:
    """Return the line by which a daemon that cannot start tells its parent why."""
    return f"{_FAILED}{type(error).__name__}: {error}"


def owner_role(folder: Path) -> str:
    """Return what the owner of the store calls itself, or an empty string when nobody owns it."""
    return owner.role_of(folder) if owner.held(folder) else ""


def _look(folder: Path) -> Client | _Obstacle | None:
    """Return the daemon that answers, or what stands in the way of talking to it or of starting one."""
    refused = False
    try:
        client = _answering(folder)
    except Refused:
        client, refused = None, True
    if client is not None or not owner.held(folder):
        return client
    who = owner.owner_of(folder)
    if owner.role_of(folder) not in ("", runtime.ROLE):
        return _Obstacle(owner.owned(folder), _COURTESY)
    if refused:
        path = folder / runtime.NAME
        error = DaemonUnreachable(f"The memory daemon, {who}, does not know the token in {path}; end that process.")
        return _Obstacle(error, _COURTESY)
    message = f"The memory daemon, {who}, holds the store in {folder} but does not answer; see its log, or end it."
    return _Obstacle(DaemonUnreachable(message), _PATIENCE)


def _answering(folder: Path) -> Client | None:
    found = runtime.read(folder)
    if found is None:
        return None
    # A port that its daemon has left may be anybody's by now; a socket in the data folder may not.
    if not found.socket and (owner.pid_of(folder) != found.pid or not owner.held(folder)):
        return None
    client = Client(found)
    try:
        client.hello()
    except Refused:
        client.close()
        raise
    except Gone:
        client.close()
        return None
    return client


def _finish(settings: Settings, client: Client) -> None:
    try:
        client.post("/stop", {})
    except Gone:
        pass  # somebody else was quicker; wait for the end all the same
    finally:
        client.close()
    pid, end = client.runtime.pid, time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        if not owner.held(settings.folder) or owner.pid_of(settings.folder) not in (pid, None):
            return
        time.sleep(_PAUSE)
    raise DaemonUnreachable(f"The memory daemon (process {pid}) does not stop; see {log_file(settings)}, or end it.")


def _outdated(client: Client) -> bool:
    """Say whether the daemon must make way for this version; a newer daemon that speaks our protocol is welcome."""
    theirs, ours = _number(client.runtime.version), _number(version("recollect"))
    if theirs > ours and client.runtime.protocol != runtime.PROTOCOL:
        client.close()
        raise DaemonUnreachable(
            f"The memory daemon is of a newer version ({client.runtime.version}) than this client "
            f"({version('recollect')}): upgrade this one, or run `recollect stop` with the newer."
        )
    return theirs < ours


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _started(settings: Settings, end: float) -> Client | None:
    """Start the daemon unless another process is just doing so; None when it is worth looking again."""
    folder = settings.folder
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(folder / "starting.lock", timeout=0, is_singleton=False):
            seen = _look(folder)
            if isinstance(seen, _Obstacle):
                return None
            if seen is not None:
                if not _outdated(seen):
                    return seen
                _finish(settings, seen)
            return _start(settings, end)
    except Timeout:
        return None
    except RecollectError:
        raise
    except OSError as error:
        raise StoreUnusable(f"The data folder {folder} cannot be written: {error.strerror or error}.") from None


def _start(settings: Settings, end: float) -> Client | None:
    """Start the daemon as a process of its own and wait until it answers; None when another one won the race."""
    errors = settings.folder / "logs" / "daemon.start"
    errors.parent.mkdir(exist_ok=True, mode=0o700)
    with errors.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "recollect.doors.daemon.main", _arguments(settings)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            cwd=settings.folder,
            **_detached(),
        )
    # Whoever started it collects it when it ends, lest a client that lives on keeps a zombie.
    threading.Thread(target=process.wait, name="recollect-daemon-end", daemon=True).start()
    while time.monotonic() < end:
        seen = _look(settings.folder)
        if seen is not None and not isinstance(seen, _Obstacle):
            return seen
        if process.poll() is not None:
            _check_failure(errors, process.returncode, settings)
            return None
        time.sleep(_PAUSE)
    process.kill()
    return None


def _check_failure(errors: Path, code: int, settings: Settings) -> None:
    """Raise what kept the daemon from starting.

    Nothing did where another process owns the store, or where it came up and had nothing to do before anybody asked:
    the caller looks again.
    """
    if code == 0:
        return
    text = errors.read_text(encoding="utf-8", errors="replace")
    for line in text.splitlines():
        if line.startswith(_FAILED):
            kind, _, message = line.removeprefix(_FAILED).partition(": ")
            if kind == "StoreOwned":
                return
            raise relayed(kind, message)
    if code == StoreUnusable.exit_code:  # on a full disk it could not even write why
        raise StoreUnusable(f"The data folder {settings.folder} cannot be used: it may be full.")
    raise _Died(f"The memory daemon ended while it was starting (exit status {code}); see {errors}.")


def _arguments(settings: Settings) -> str:
    """Return the settings for a process that works in another folder."""
    paths = {"home": settings.folder, "cache_dir": settings.caches}
    if settings.models_dir is not None:
        paths["models_dir"] = settings.models_dir.expanduser().absolute()
    return settings.model_copy(update=paths).model_dump_json(exclude_none=True)


def _detached() -> dict[str, Any]:
    """Return how a process is started so that it outlives the one that started it."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}
