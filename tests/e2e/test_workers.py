"""A replica with several workers over a real PostgreSQL and a real Chroma server, started as people start it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from command_line import EXECUTABLE
from recollect import Settings
from stdio_client import until
from stores import open_app
from team_process import PATIENCE, TeamProcess, free_port, serving_team

COUNT = 2
CLIENTS = 16
RECALLED = 5  # times by each client


class Replica:
    """A replica with workers, and a token of its first admin."""

    def __init__(self, process: TeamProcess) -> None:
        self.process = process
        self.headers = {"Authorization": f"Bearer {process.init()}"}
        process.start()
        until(lambda: self.begun() == COUNT)

    def workers(self) -> list[int]:
        """Return the processes that share the port."""
        children = psutil.Process(self.process.pid).children()
        return [one.pid for one in children if "spawn_main" in " ".join(one.cmdline())]

    def begun(self) -> int:
        """Return how often a worker has begun to serve."""
        return self.process.log().count(" serves (process ")

    def samples(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and values of a metric."""
        text = httpx.get(f"{self.process.url}/metrics", headers=self.headers, timeout=PATIENCE).text
        families = text_string_to_metric_families(text)
        return [(one.labels, one.value) for family in families for one in family.samples if one.name == name]

    def client(self) -> httpx.Client:
        """Return a client with connections of its own."""
        return httpx.Client(base_url=self.process.url, headers=self.headers, timeout=PATIENCE)

    def ask(self, client: httpx.Client, name: str, **fields: Any) -> dict[str, Any]:
        """Return the answer of an operation that goes well."""
        answer = client.post(f"/v1/{name}", json=fields)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def servers(settings: Settings) -> dict[str, str]:
    """Return the variables that name the servers of a store, and limit nobody."""
    named = {"RECOLLECT_DATABASE_URL": settings.database_url, "RECOLLECT_CHROMA_URL": settings.chroma_url}
    return named | {"RECOLLECT_REQUESTS_PER_MINUTE": "0"}


@pytest.fixture
def replica(deployed: Settings, tmp_path: Path) -> Iterator[Replica]:
    """Return a replica with workers that serve."""
    options = ("--workers", str(COUNT))
    with serving_team(tmp_path / "home", tmp_path / "log", *options, **servers(deployed)) as process:
        yield Replica(process)


def at_once(work: Callable[[httpx.Client], object], replica: Replica) -> None:
    """Let many clients, each with a connection of its own, do something at once."""

    def run(_: int) -> None:
        with replica.client() as client:
            work(client)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(run, range(CLIENTS)))


def test_workers_share_the_port_and_count_together(replica: Replica, deployed: Settings) -> None:
    """All answer; uses, the index and the numbers of a scrape are right over all; a revoked token is refused."""
    with replica.client() as client:
        text = "The lighthouse keeper feeds the gulls at dawn."
        found = replica.ask(client, "remember", content=text, scope="personal")["id"]

        def recall(one: httpx.Client) -> None:
            for _ in range(RECALLED):
                assert replica.ask(one, "recall", query="lighthouse keeper gulls", scope="personal")["hits"]

        at_once(recall, replica)
        by_worker: dict[str, float] = {}
        for labels, value in replica.samples("recollect_requests_total"):
            if labels["operation"] == "recall":
                assert labels["status"] == "200"
                by_worker[labels["worker"]] = value
        assert sum(by_worker.values()) == CLIENTS * RECALLED
        assert len(by_worker) == COUNT, "a worker answered nobody"
        until(lambda: recalls(deployed, found) == CLIENTS * RECALLED)
        token = replica.ask(client, "admin/add_token")
        weak = {"Authorization": f"Bearer {token['token']}"}
        at_once(lambda one: [one.post("/v1/stats", json={}, headers=weak).raise_for_status() for _ in "12"], replica)
        replica.ask(client, "admin/revoke_token", prefix=token["prefix"])
        refused: list[int] = []
        at_once(lambda one: refused.append(one.post("/v1/stats", json={}, headers=weak).status_code), replica)
        assert set(refused) == {401}
    assert replica.process.stop() == 0
    with open_app(deployed) as app:
        app.vectors.sync()
        assert app.vectors.waiting() == 0
        assert not [one for one in app.checks(deep=True) if not one.well]


def recalls(settings: Settings, found: str) -> int:
    """Return how often a memory was a hit, as the database counts it."""
    with psycopg.connect(settings.database_url) as connection:
        row = connection.execute("SELECT recalled_count FROM usage WHERE memory_id = %s", [int(found)]).fetchone()
    return int(row[0]) if row else 0


def test_a_worker_that_dies_is_started_again(replica: Replica) -> None:
    """The others answer meanwhile, what was acknowledged stays, and a signal then ends all of them with 0."""
    before = replica.workers()
    os.kill(before[0], signal.SIGKILL)
    until(lambda: not psutil.pid_exists(before[0]))  # with it go the connections that it had
    written: list[str] = []

    def write(client: httpx.Client) -> None:
        content = f"Crate {time.monotonic_ns()} holds ropes."
        written.append(replica.ask(client, "remember", content=content, scope="personal")["id"])

    at_once(write, replica)
    until(lambda: replica.begun() == COUNT + 1)
    after = replica.workers()
    assert before[1] in after
    assert before[0] not in after
    with replica.client() as client:
        assert all(replica.ask(client, "get_memory", id=found)["id"] == found for found in written)
    lines = [json.loads(line) for line in replica.process.log().splitlines() if line.startswith("{")]
    assert [line for line in lines if "started again" in line["message"] and line["level"] == "ERROR"]
    assert replica.process.stop() == 0
    assert not [pid for pid in after if psutil.pid_exists(pid)]


def test_workers_end_with_the_process_that_looks_after_them(replica: Replica) -> None:
    """Where that one is killed, no worker stays behind on the port."""
    workers = replica.workers()
    replica.process.kill()
    until(lambda: not any(map(psutil.pid_exists, workers)))
    assert not replica.process.ready()


def refused(home: Path, *options: str, **variables: str) -> tuple[int, str]:
    """Run a server that cannot begin; return its exit code and what it says."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    command: Sequence[str] = [EXECUTABLE, "serve", "--workers", str(COUNT), *options]
    environment = known | {"RECOLLECT_HOME": str(home)} | variables
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
    return ended.returncode, ended.stderr


def test_workers_need_a_store_on_servers(deployed: Settings, tmp_path: Path) -> None:
    """What is absent is named: a store in a folder is owned by a single process. So is a host."""
    here = ("--host", "127.0.0.1", "--port", str(free_port()))
    code, message = refused(tmp_path, *here)
    assert (code, "RECOLLECT_DATABASE_URL and RECOLLECT_CHROMA_URL" in message) == (2, True), message
    code, message = refused(tmp_path, *here, RECOLLECT_DATABASE_URL=deployed.database_url)
    assert (code, "RECOLLECT_CHROMA_URL" in message, "RECOLLECT_DATABASE_URL" in message) == (2, True, False), message
    code, message = refused(tmp_path)
    assert (code, "--host" in message) == (2, True), message


def test_what_keeps_the_first_worker_from_serving_ends_the_command(deployed: Settings, tmp_path: Path) -> None:
    """The message and the exit code are those of a server without workers; so it is where the port is taken."""
    here = ("--host", "127.0.0.1", "--port")
    away = servers(deployed) | {"RECOLLECT_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{free_port()}/none"}
    code, message = refused(tmp_path, *here, str(free_port()), **away)
    assert (code, "The database cannot be used" in message, "Traceback" in message) == (6, True, False), message
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, message = refused(tmp_path, *here, str(port), **servers(deployed))
    assert (code, f"Cannot listen on 127.0.0.1, port {port}" in message) == (2, True), message
