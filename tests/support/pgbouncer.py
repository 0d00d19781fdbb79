"""A real PgBouncer in transaction mode before the PostgreSQL of the tests, whose sessions many connections share."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg
import pytest
from sqlalchemy import make_url

_PATHS: Final = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_SESSIONS: Final = 4  # of the server for one database: fewer than the connections that a test opens
_IDLE: Final = 2  # seconds after which an unused session ends
_PATIENCE: Final = 30.0  # seconds


class PgBouncer:
    """One pooler that lends a session of the server for one transaction, to connections of any database."""

    def __init__(self, server: str) -> None:
        found = shutil.which("pgbouncer", path=_PATHS)
        if found is None:
            pytest.skip("no PgBouncer is installed: `scripts/programs` installs it")
        self._server = make_url(server)
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-pgbouncer-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(self._settings(), encoding="utf-8")
        command = [found, "-q"]
        if os.getuid() == 0:  # which PgBouncer refuses to run as
            user = pwd.getpwnam("nobody")
            for path in (self._folder, settings):
                os.chown(path, user.pw_uid, user.pw_gid)
            command += ["-u", user.pw_name]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([*command, settings], **quiet)
        self._wait()

    def address(self, url: str) -> str:
        """Return the address of a database of the server, through the pooler."""
        return make_url(url).set(host="127.0.0.1", port=self._port).render_as_string(hide_password=False)

    def close(self) -> None:
        """End it and remove its folder."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _settings(self) -> str:
        user = self._server.username or "postgres"
        password = f" password='{self._server.password}'" if self._server.password else ""
        there = f"host={self._server.host or '127.0.0.1'} port={self._server.port or 5432} user={user}{password}"
        values = {
            "listen_addr": "127.0.0.1",
            "listen_port": self._port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": _SESSIONS,
            "server_idle_timeout": _IDLE,
            "logfile": self._folder / "log",
        }
        return "\n".join(
            ["[databases]", f"* = {there}", "[pgbouncer]", *(f"{name} = {value}" for name, value in values.items())]
        )

    def _wait(self) -> None:
        through = self.address(self._server.render_as_string(hide_password=False))
        end = time.monotonic() + _PATIENCE
        while True:
            assert self._process.poll() is None, "PgBouncer ended at once"
            try:
                psycopg.connect(through, connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < end, "PgBouncer does not answer"
                time.sleep(0.05)
