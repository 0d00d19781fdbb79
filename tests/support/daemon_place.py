"""A place with a store of its own and whatever processes of ours work on it, for tests that kill some of them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psutil
from mcp import StdioServerParameters

from command_line import Ended, call, execute
from recollect import Settings
from recollect.client import launch
from recollect.client.connection import DaemonConnection
from recollect.client.daemon import Client as Wire
from recollect.client.runtime import NAME
from recollect.client.transport import at
from stdio_client import SERVER, talking, until

__all__ = ["SERVER", "Place", "alive", "kill", "open_place", "script", "until", "zombies"]


@dataclass
class Place:
    """A data folder, the settings of its clients and their environment."""

    settings: Settings
    environment: dict[str, str]
    links: list[DaemonConnection] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.settings.folder

    @property
    def folder(self) -> Path:
        """Return a folder that is there, to work in."""
        return next(one for one in (self.home, *self.home.parents) if one.is_dir())

    @property
    def runtime_file(self) -> Path:
        return self.home / NAME

    def changed(self, **changes: Any) -> Place:
        """Return the same place under other settings."""
        settings = self.settings.model_copy(update=changes)
        ours = {f"RECOLLECT_{name.upper()}": "" if value is None else str(value) for name, value in changes.items()}
        return Place(settings, self.environment | ours, self.links)

    def well(self) -> bool:
        """Say whether the doctor finds nothing wrong; what was just written may still wait for the vector index."""
        return call(["doctor", "--json"], self.environment, self.folder).code == 0

    def cli(self, *arguments: str, code: int = 0, cwd: Path | None = None) -> str:
        """Run a command in this process, check how it ends, in a traceback never, and return what it says."""
        return _checked(call(arguments, self.environment, cwd or self.folder), arguments, code)

    def execute(self, *arguments: str, code: int = 0, limit: int | None = None) -> str:
        """Do what `cli` does, but with the real executable, which may write no file beyond `limit` bytes."""
        return _checked(execute(arguments, self.environment, self.folder, limit=limit), arguments, code)

    def begin(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command and do not wait for it."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([SERVER, *arguments], env=self.environment, **(pipes | options))

    def json(self, *arguments: str) -> Any:
        return json.loads(self.cli(*arguments, "--json"))

    def link(self) -> DaemonConnection:
        """Return a client's link, closed at the end of the test."""
        link = DaemonConnection(self.settings)
        self.links.append(link)
        return link

    def remember(self, content: str, **fields: Any) -> str:
        return str(self.link().operation("remember", {"content": content} | fields)["id"])

    def recall(self, query: str) -> list[str]:
        found = self.link().operation("recall", {"query": query})
        return [hit["memory"]["content"] for hit in found["hits"]]

    @contextmanager
    def wire(self) -> Iterator[Wire]:
        """Give a bare connection to the daemon, which is started when it is absent."""
        yield launch.ensure(self.settings)

    def ask(self, name: str, fields: dict[str, Any], request_id: str = "") -> Any:
        """Post one operation by hand, under an id of the test's own."""
        path = at(f"/v1/{name}", **self.settings.caller.model_dump(include={"user", "team", "project"}))
        with self.wire() as wire:
            return wire.post(path, fields, request_id or uuid.uuid4().hex)

    def talk(self, mode: Literal["auto", "legacy"] = "auto") -> Any:
        """Start an MCP server over stdio and talk to it."""
        return talking(self.environment, mode)

    def server(self) -> StdioServerParameters:
        return StdioServerParameters(command=SERVER, args=["mcp"], env=self.environment)

    def pid(self) -> int:
        """Return the process of the daemon, which is started when it is absent."""
        with self.wire() as wire:
            return wire.runtime.pid

    def published(self) -> dict[str, Any]:
        return dict(json.loads(self.runtime_file.read_text(encoding="utf-8")))

    def publish(self, **changes: Any) -> None:
        """Write the runtime file as somebody else might have left it."""
        self.runtime_file.write_text(json.dumps(self.published() | changes), encoding="utf-8")

    def kill(self) -> int:
        """Kill the daemon and wait until it is gone; return which process it was."""
        pid = int(self.published()["pid"])
        kill(pid)
        return pid

    def rows(self, query: str) -> list[Any]:
        """Look into the database from outside."""
        with closing(sqlite3.connect(self.settings.database)) as database:
            return database.execute(query).fetchall()

    def logs(self) -> str:
        return "".join(one.read_text(encoding="utf-8") for one in sorted((self.home / "logs").iterdir()))

    def processes(self) -> list[psutil.Process]:
        """Return every living process that names this place on its command line or in its environment."""
        return [one for one in psutil.process_iter() if one.pid != os.getpid() and _names(one, str(self.home))]

    def daemons(self) -> list[psutil.Process]:
        return [one for one in self.processes() if "recollect.doors.daemon" in _command(one)]

    def clear(self) -> None:
        """End whatever still works here."""
        for link in self.links:
            link.close()
        for one in self.processes():
            try:
                one.resume()
                one.kill()
                one.wait(10)
            except psutil.NoSuchProcess:
                continue


def open_place(home: Path, undo: ExitStack, **changes: object) -> Place:
    """Return a place; whatever still runs in it when `undo` closes is ended."""
    names = {"user": "ada", "team": "crew", "project": "engine"}
    settings = Settings(**({"home": home, "daemon": True} | names | changes))
    ours = settings.model_dump(mode="json", exclude_none=True)
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    place = Place(settings, theirs | {f"RECOLLECT_{name.upper()}": str(value) for name, value in ours.items()})
    undo.callback(place.clear)
    return place


def _checked(ended: Ended, arguments: Sequence[str], code: int) -> str:
    assert ended.code == code, f"{arguments} ended with {ended.code}: {ended.out + ended.err}"
    return ended.out + ended.err


def kill(pid: int) -> None:
    """Kill a process as a crash would, and wait until nothing but perhaps a zombie is left of it."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def zombies() -> list[int]:
    """Return the children of this very process that ended and were never collected."""
    return [one.pid for one in psutil.Process().children() if one.status() == psutil.STATUS_ZOMBIE]


def script(code: str) -> list[str]:
    """Return the command that runs a few lines of Python."""
    return [sys.executable, "-c", code]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return ""


def _names(process: psutil.Process, home: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return home in _command(process) or process.environ().get("RECOLLECT_HOME", "") == home
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
