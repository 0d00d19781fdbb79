"""A PostgreSQL of a test's own, from the installed programs, which the test may kill."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import pytest

_BINARIES: Final = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
_PATIENCE: Final = 120.0  # seconds


class Cluster:
    """One server over one folder; `start` after `kill` serves the same folder at the same address."""

    def __init__(self, binaries: Path | None = None) -> None:
        self._binaries = binaries or _installed()
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-postgres-"))
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:  # which PostgreSQL refuses to run as
            user = _unprivileged()
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        options = ["--auth", "trust", "--username", "postgres", "--encoding", "UTF8", "--no-sync"]
        subprocess.run(
            [self._binaries / "initdb", *options, "--pgdata", self._folder / "data"],
            check=True,
            capture_output=True,
            cwd=self._folder,
            **self._as,
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = ["-p", str(self.port), "-k", str(self._folder), "-c", "listen_addresses=127.0.0.1"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self._folder}
        command = [self._binaries / "postgres", "-D", self._folder / "data", *options]
        self._process = subprocess.Popen(command, **quiet, **self._as)
        end = time.monotonic() + _PATIENCE
        while not self._answers():
            assert time.monotonic() < end, "PostgreSQL does not answer"
            if self._process.poll() is not None:  # what the one before has left is not released yet
                self._process = subprocess.Popen(command, **quiet, **self._as)
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let none of its processes run until the block ends."""
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        stopped = [main, *main.children(recursive=True)]
        for one in stopped:
            one.suspend()
        try:
            yield
        finally:
            for one in stopped:
                one.resume()

    def close(self) -> None:
        """End it and remove its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def with_pgvector() -> Cluster:
    """Start the server of the package `pgserver`; the extension may be made in each of its databases.

    It is built without ICU, of whose collation the schema uses nothing but the classes of characters: they are those of
    `C.UTF-8`.
    """
    package = importlib.util.find_spec("pgserver")  # an import of it would look after servers of its own
    assert package is not None, "the extra `test` is not installed"
    cluster = Cluster(Path(str(package.origin)).parent / "pginstall" / "bin")
    cluster.start()
    with psycopg.connect(cluster.url, dbname="template1") as connection:
        connection.execute("CREATE COLLATION \"und-x-icu\" (provider = libc, locale = 'C.UTF-8')")
    return cluster


def _installed() -> Path:
    found = shutil.which("postgres") or next((str(one / "postgres") for one in _BINARIES), None)
    if found is None:
        pytest.skip("PostgreSQL's programs are not installed")
    return Path(found).parent


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("there is no user as whom PostgreSQL may run")
