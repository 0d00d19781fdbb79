"""Replicas of one deployment under load, of which parts are killed: what was acknowledged holds, and once only.

The test kills a few, `scripts/soak` as many as there is time for.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from chroma_process import ChromaProcess
from postgres_cluster import Cluster
from recollect import Settings
from stores import open_app
from team_process import PATIENCE, TeamProcess, serving_team

ANSWERED = 60.0  # seconds within which a request is answered, whatever is away
_SLOW = httpx2.Timeout(ANSWERED)


@dataclass
class Deployment:
    """Its parts, and a token of its first admin."""

    replicas: list[TeamProcess]
    postgres: Cluster
    chroma: ChromaProcess
    token: str


@contextmanager
def deployed(folder: Path, count: int = 2, **variables: str) -> Iterator[Deployment]:
    """Run replicas, with further variables, over one PostgreSQL and one Chroma until the block ends."""
    with ExitStack() as undo:
        postgres, chroma = Cluster(), ChromaProcess(folder / "chroma")
        undo.callback(postgres.close)
        undo.callback(chroma.kill)
        (folder / "chroma").mkdir()
        postgres.start()
        servers = {"RECOLLECT_DATABASE_URL": postgres.url, "RECOLLECT_CHROMA_URL": chroma.url}
        free = {"RECOLLECT_REQUESTS_PER_MINUTE": "0"}
        replicas = [
            undo.enter_context(serving_team(folder / f"home{at}", folder / f"log{at}", **servers, **free, **variables))
            for at in range(count)
        ]
        with ThreadPoolExecutor() as pool:
            started = pool.submit(chroma.start)
            token = replicas[0].init()
            started.result()
            list(pool.map(lambda one: one.start(), replicas))
        yield Deployment(replicas, postgres, chroma, token)


@dataclass
class Load:
    """Threads that write by way of every replica, and what was acknowledged."""

    deployment: Deployment
    living: dict[int, str] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    acknowledged: list[tuple[float, float, int]] = field(default_factory=list)  # begun, answered, replica
    refused: dict[str, int] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def running(self, threads: int) -> Iterator[None]:
        """Write until the block ends; every write that was begun is asked for until it is acknowledged."""
        with ThreadPoolExecutor(threads) as pool:
            clients = [pool.submit(self._client, number) for number in range(threads)]
            try:
                yield
            finally:
                self._over.set()
            for one in clients:
                one.result()

    def wait(self, writes: int, replica: int | None = None) -> float:
        """Wait until so many writes that begin now are acknowledged, and return the seconds to the first of them."""
        began = time.monotonic()
        while time.monotonic() < began + PATIENCE:
            with self._lock:
                at = [end for start, end, by in self.acknowledged if start >= began and replica in (None, by)]
            if len(at) >= writes:
                return min(at) - began
            time.sleep(0.02)
        raise AssertionError(f"no answers for {PATIENCE} seconds: {self.refused}")

    def refusing(self) -> None:
        """Wait until some requests that begin now were refused, as what they need is away."""
        before, end = sum(self.refused.copy().values()), time.monotonic() + PATIENCE
        while sum(self.refused.copy().values()) < before + 4:
            assert time.monotonic() < end, "nothing is refused"
            time.sleep(0.02)

    def recall(self) -> None:
        """Ask every replica for what was acknowledged."""
        text = next(iter(self.living.copy().values()))
        bearer = {"Authorization": f"Bearer {self.deployment.token}"}
        for one in filter(TeamProcess.ready, self.deployment.replicas):
            asked = {"query": text, "scope": "personal"}
            answer = httpx2.post(f"{one.url}/v1/recall", json=asked, headers=bearer, timeout=_SLOW)
            assert answer.status_code == 200, answer.text
            assert answer.json()["hits"]

    def _client(self, number: int) -> None:
        name = uuid.uuid4().hex[:8]
        mine: list[int] = []
        at = 0
        with httpx2.Client(headers={"Authorization": f"Bearer {self.deployment.token}"}, timeout=_SLOW) as client:
            while not self._over.is_set():
                text = f"The word q{number}z{at}y{name} stands here, version v{at}x, beside ropes, masts and sails."
                turn = at % 5
                at += 1
                if turn == 3 and mine:
                    changed = mine[at % len(mine)]
                    self._write(client, "update_memory", {"id": str(changed), "content": text})
                    self.living[changed] = text
                elif turn == 4 and mine:
                    dropped = mine.pop(0)
                    self._write(client, "forget", {"id": str(dropped)})
                    del self.living[dropped]
                    self.gone.add(dropped)
                else:
                    made = int(self._write(client, "remember", {"content": text, "scope": "personal"})["id"])
                    mine.append(made)
                    self.living[made] = text

    def _write(self, client: httpx2.Client, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Ask the replicas in turn under one key until one of them acknowledges."""
        key = uuid.uuid4().hex
        end = time.monotonic() + PATIENCE
        at = int(key, 16)
        while time.monotonic() < end:
            at += 1
            which = at % len(self.deployment.replicas)
            began = time.monotonic()
            done = self._ask(client, which, name, fields, key)
            with self._lock:
                self.slowest = max(self.slowest, time.monotonic() - began)
                if done is not None:
                    self.acknowledged.append((began, time.monotonic(), which))
                    return done
            time.sleep(0.02)
        raise AssertionError(f"{name} was not acknowledged in {PATIENCE} seconds: {self.refused}")

    def _ask(
        self, client: httpx2.Client, which: int, name: str, fields: dict[str, Any], key: str
    ) -> dict[str, Any] | None:
        address = f"{self.deployment.replicas[which].url}/v1/{name}"
        try:
            answer = client.post(address, json=fields, headers={"Idempotency-Key": key})
        except httpx2.TransportError as error:
            self._refuse(type(error).__name__)
            if isinstance(error, httpx2.ReadTimeout):
                self.odd.append(f"{name} hung for {ANSWERED} seconds")
            return None
        if answer.status_code == 200:
            return dict(answer.json())
        self._refuse(f"{answer.status_code} {answer.text}"[:300])
        if answer.status_code != 503 or not answer.json().get("message"):
            self.odd.append(f"{name}: {answer.status_code} {answer.text[:300]}")
        assert answer.status_code >= 500, f"{name} {fields}: {answer.status_code} {answer.text}"
        return None

    def _refuse(self, why: str) -> None:
        with self._lock:
            self.refused[why] = self.refused.get(why, 0) + 1


@dataclass
class Round:
    """What a long round of kills saw."""

    kills: int = 0
    back: dict[str, list[float]] = field(default_factory=dict)  # seconds from the kill to answers of every replica


def kill_parts(load: Load, chance: random.Random, most: int, left: Callable[[], bool]) -> Round:
    """Kill one part after another under load, each time until every replica acknowledges again."""
    deployment, seen = load.deployment, Round()
    parts = {"postgres": deployment.postgres, "chroma": deployment.chroma}
    parts |= {f"replica {at}": one for at, one in enumerate(deployment.replicas)}
    with load.running(6):
        load.wait(20)
        while seen.kills < most and (left() or not seen.kills):
            name = chance.choice(list(parts))
            began = time.monotonic()
            parts[name].kill()
            if name == "postgres":
                load.refusing()
            else:
                load.wait(chance.randrange(1, 20))
                load.recall()
            parts[name].start()
            for at in range(len(deployment.replicas)):
                load.wait(1, at)
            seen.back.setdefault(name, []).append(time.monotonic() - began)
            seen.kills += 1
    return seen


def check(load: Load, settings: Settings) -> None:
    """Hold the replicas, the database and the indexes to what was acknowledged: all of it is there, once."""
    check_answers(load)
    deployment = load.deployment
    servers = {"database_url": deployment.postgres.url, "chroma_url": deployment.chroma.url}
    with open_app(settings.model_copy(update=servers)) as app:
        app.vectors.sync()
        assert app.vectors.waiting() == 0
        wrong = [one for one in app.checks(deep=True) if not one.well]
        assert not wrong, wrong


def check_answers(load: Load) -> None:
    """Hold the database and the replicas' answers to what was acknowledged: all of it is there, once."""
    deployment = load.deployment
    with psycopg.connect(deployment.postgres.url) as connection:
        found = connection.execute("SELECT id, content, merged_into FROM memory").fetchall()
    rows = {number: text for number, text, whole in found if whole is None}
    kept = [(text, whole) for _, text, whole in found if whole is not None]  # what an update has replaced
    assert {whole for _, whole in kept} <= rows.keys(), "an original has lost its memory"
    texts = [text for _, text, _ in found]
    assert len(texts) == len(set(texts)), "a write was done twice"
    lost = {number: text for number, text in load.living.items() if rows.get(number) != text}
    assert not lost, (lost, {number: rows.get(number) for number in lost})
    assert rows.keys() == load.living.keys(), {number: rows[number] for number in rows.keys() - load.living.keys()}
    with httpx2.Client(headers={"Authorization": f"Bearer {deployment.token}"}, timeout=PATIENCE) as client:
        for replica in deployment.replicas:
            if not replica.ready():
                continue
            for found, text in load.living.items():
                body = client.post(f"{replica.url}/v1/get_memory", json={"id": str(found)}).json()
                assert body["content"] == text
            for dropped in load.gone:
                assert client.post(f"{replica.url}/v1/get_memory", json={"id": str(dropped)}).status_code == 404
    assert not load.odd, load.odd
