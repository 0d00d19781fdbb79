"""scripts/load as its users run it, with few memories and for seconds: what it counts, and what it leaves."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import sqlalchemy

from postgres import ADDRESS, Postgres
from script_process import run_module

FEW = ("--memories", "60", "--seconds", "2", "--clients", "3", "--replicas", "1")


def test_figures_of_a_load(module: Callable[[str], ModuleType]) -> None:
    """Percentiles are those of all clients' milliseconds, errors add up, and stages are averages of a request."""
    load = module("team_load.__main__")
    clients = [load.Client(number, "http://127.0.0.1:1", "", (), ()) for number in range(2)]
    clients[0].taken["recall"] = [float(ms) for ms in range(51)]
    clients[1].taken["recall"] = [float(ms) for ms in range(51, 101)]
    for one in clients:
        one.errors["recall: 500"] += 2
    found = load.figures(clients, 10.0, {("recall", ""): 5.05, ("recall", "embed"): 1.01, ("get", ""): 7.0})
    told = {name: value for name, value in found["latency"]["recall"].items() if name != "curve_ms"}
    assert told == {"requests": 101, "p50_ms": 50.0, "p95_ms": 95.0, "p99_ms": 99.0, "most_ms": 100.0}
    assert found["latency"]["remember"] == {"requests": 0}
    assert found["errors"] == {"recall: 500": 4}
    assert found["requests_per_second"] == 10.1
    assert found["stages_ms"] == {"recall": {"whole request": 50.0, "embed": 10.0}, "remember": {}}


def test_a_client_counts_a_server_that_is_away(module: Callable[[str], ModuleType]) -> None:
    """A request that nobody answers is an error with the name of its kind, never the end of the client."""
    load = module("team_load.__main__")
    with socket.socket() as bound:  # nobody listens there
        bound.bind(("127.0.0.1", 0))
        client = load.Client(0, f"http://127.0.0.1:{bound.getsockname()[1]}", "", ("one two three",), ())
        assert client.ask("recall") == "ConnectionRefusedError"


@pytest.mark.full
def test_load_times_real_replicas_and_drops_its_database(tmp_path: Path) -> None:
    """A load of two seconds answers without an error, times each part, and leaves no database behind."""
    postgres = Postgres(ADDRESS)
    postgres.create()  # skips where there is no PostgreSQL
    postgres.close()
    environment = os.environ | {"RECOLLECT_TEST_POSTGRES_URL": ADDRESS}
    before = _databases()
    files = ("--json", "load.json", "--picture", "load.png")
    done = run_module("team_load", *FEW, *files, environment=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "load.json").read_text(encoding="utf-8"))
    assert _databases() <= before
    assert found["memories"] == 60
    (run,) = found["runs"]
    assert run["errors"] == {}
    assert run["latency"]["recall"]["requests"] > 0
    assert run["stages_ms"]["recall"]["whole request"] > run["stages_ms"]["recall"]["embed"] > 0
    assert all(one["p50_ms"] > 0 for one in run["bare"].values())
    assert len(run["memory"]["replicas_mb"]) == 1
    assert run["memory"]["postgresql_connections"] > 0
    assert (tmp_path / "load.png").read_bytes().startswith(b"\x89PNG")


def _databases() -> set[str]:
    engine = sqlalchemy.create_engine(ADDRESS, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        names = connection.execute(sqlalchemy.text("SELECT datname FROM pg_database")).scalars()
        return {name for name in names if name.startswith("recollect_load_")}
