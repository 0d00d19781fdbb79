"""Put a team's load on real replicas of the server, and time it beside the bare cost of its parts in the same run.

Everything is on this machine: the replicas, PostgreSQL (RECOLLECT_TEST_POSTGRES_URL), one Chroma server, the clients.
Each client sends its next request when it has the answer to the last: nine recalls, then a remember, on average.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import resource
import secrets
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import psutil
import typer
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import recollect
from costs.bench import sentences, timed
from recollect import Caller, Query
from recollect.domain.search import View
from recollect.search.parse import parse
from recollect.settings import variables_of
from recollect.store.text.index import Term
from team_load.picture import draw
from team_load.store import TEAM, Stage, TeamProcess, backends, project, staged, tokens, user

KINDS: Final = ("recall", "remember")
REMEMBERED: Final = 0.1
PERCENTILES: Final = (50, 95, 99)
BARE: Final = 100  # how often each part is timed
FURTHER: Final = 200_000  # texts that are not in the store yet, for remembering
ABSENT: Final = "1999999999"  # the id of no memory
out, err = Console(highlight=False), Console(stderr=True)


@dataclass
class Client(threading.Thread):
    """One client of one replica, with a connection that it keeps; it notes milliseconds by kind, and what failed."""

    number: int
    url: str
    token: str
    asked: Sequence[str]
    told: Sequence[str]
    taken: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    errors: Counter[str] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self._dice = random.Random(self.number)
        self._new = iter(self.told)
        self._connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=120)

    def __hash__(self) -> int:
        return hash(self.number)

    def run(self) -> None:
        """Ask until told to stop."""
        while not self.stop.is_set():
            kind = KINDS[self._dice.random() < REMEMBERED]
            began = time.perf_counter()
            failure = self.ask(kind)
            self.taken[kind].append((time.perf_counter() - began) * 1e3)
            if failure:
                self.errors[f"{kind}: {failure}"] += 1

    def ask(self, kind: str) -> str:
        """Send one request; return what went wrong, or nothing."""
        if kind == "recall":
            return self.post(kind, {"query": " ".join(self._dice.choice(self.asked).split()[1:9])})
        return self.post(kind, {"content": next(self._new)})

    def post(self, name: str, body: dict[str, Any], method: str = "POST") -> str:
        """Send a body to an operation; return the status that is not 200, or the kind of the failure."""
        address = name if name.startswith("/") else f"/v1/{name}?team={TEAM}&project={project(self.number)}"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            self._connection.request(method, address, json.dumps(body), headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return type(error).__name__
        return "" if answer.status == 200 else f"{answer.status} {content[:200]!r}"


@dataclass
class Using:
    """What processes use: their CPU seconds so far, and their memory in MB; what they share counts once."""

    groups: dict[str, list[int]]

    def cpu(self) -> dict[str, float]:
        """Return the CPU seconds of each group so far."""
        return {name: sum(_each(pids, lambda one: sum(one.cpu_times()[:2]))) for name, pids in self.groups.items()}

    def memory(self) -> dict[str, Any]:
        """Return the resident MB of each replica, of Chroma, and of PostgreSQL's connections with what they share."""
        each = {name: _each(pids, psutil.Process.memory_info) for name, pids in self.groups.items()}
        shared = [one.shared for one in each["PostgreSQL"]]
        alone = sum(one.rss - one.shared for one in each["PostgreSQL"])
        return {
            "replicas_mb": [round(one.rss / 1e6) for one in each["replicas"]],
            "chroma_mb": round(sum(one.rss for one in each["Chroma"]) / 1e6),
            "postgresql_mb": round((alone + max(shared, default=0)) / 1e6),
            "postgresql_connections": len(shared),
        }


def _each(pids: Sequence[int], look: Callable[[psutil.Process], Any]) -> list[Any]:
    found = []
    for pid in pids:
        try:
            found.append(look(psutil.Process(pid)))
        except psutil.Error:  # a connection that was closed since
            continue
    return found


@contextmanager
def replicas(stage: Stage, count: int, workers: int, metrics_token: str) -> Iterator[list[TeamProcess]]:
    """Run so many replicas over the store, each with so many workers."""
    ours = variables_of(stage.settings) | {"RECOLLECT_METRICS_TOKEN": metrics_token}
    others = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    with ExitStack() as undo:
        logs, more = (stage.folder / f"replica{number}.log" for number in range(count)), ("--workers", str(workers))
        running = [TeamProcess(others | ours, log, *more) for log in logs]
        for one in running:
            undo.callback(one.kill)
            one.start()
        yield running
        for one in running:
            one.stop()


def served(pid: int, workers: int) -> list[psutil.Process]:
    """Return the processes of a replica that answer, once all of its workers do."""
    replica, end = psutil.Process(pid), time.monotonic() + 120
    while workers > 1:
        found = [one for one in replica.children() if _listens(one)]
        if len(found) == workers:
            return found
        if time.monotonic() > end:
            sys.exit(f"Of {workers} workers {len(found)} answer.")
        time.sleep(0.1)
    return [replica]


def _listens(process: psutil.Process) -> bool:
    return any(one.status == psutil.CONN_LISTEN for one in process.net_connections("tcp"))


def bare(stage: Stage, client: Client, queries: Sequence[str]) -> dict[str, Any]:
    """Time each part alone on an idle machine, and requests that one client sends one by one."""
    caller = Caller(user=user(0), team=TEAM, project=project(0))
    home = caller.namespaces()[1]
    with recollect.open_app(stage.settings, background=False) as app:
        index: Any = app.vectors
        view = View(namespaces=caller.namespaces(), now=app.clock())
        vectors = {one: app.embedder.read([one], "query")[0].vector for one in queries}
        words = {one: [Term(word) for word in parse(one).words] for one in queries}
        works: dict[str, Callable[[str], Any]] = {
            "embed a query": lambda one: app.embedder.read([one], "query"),
            "one Chroma query": lambda one: index._index.query(home, vectors[one], 50),
            "one SQL text query": lambda one: app.text.search(words[one], view, 50),
            "recall in one process": lambda one: recollect.recall(app, Query(query=one), caller),
            "GET /healthz": lambda _: client.post("/healthz", {}, "GET"),
            "forget nothing, with token": lambda _: client.post("forget", {"id": ABSENT}),
            "one recall by HTTP": lambda one: client.post("recall", {"query": one}),
            "one remember by HTTP": lambda _: client.ask("remember"),
        }
        found = {}
        for name, work in works.items():
            timed(work, queries[:10])
            found[name] = spread(timed(work, queries))
    return found


def spread(taken: Sequence[float]) -> dict[str, Any]:
    """Return the percentiles of milliseconds, and every fiftieth of them for a picture."""
    if len(taken) < 2:
        return {"requests": len(taken)}
    cuts = statistics.quantiles(taken, n=1_000, method="inclusive")
    told = {f"p{one}_ms": round(cuts[one * 10 - 1], 2) for one in PERCENTILES}
    return {
        "requests": len(taken),
        **told,
        "most_ms": round(max(taken), 1),
        "curve_ms": [round(x, 2) for x in cuts[::10]],
    }


def stages(running: Sequence[TeamProcess], token: str) -> Counter[tuple[str, str]]:
    """Return the seconds that replicas spent so far, by operation and stage; the stage `` is all of it."""
    spent: Counter[tuple[str, str]] = Counter()
    for one in running:
        asked = urllib.request.Request(f"{one.url}/metrics", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked) as answer:
            text = answer.read().decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in ("recollect_stage_seconds_sum", "recollect_request_seconds_sum"):
                    spent[sample.labels["operation"], sample.labels.get("stage", "")] += sample.value
    return spent


def load(clients: Sequence[Client], seconds: float, name: str) -> float:
    """Let all clients ask for so long; return the seconds that it took until the last answer."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, console=err) as progress:
        bar = progress.add_task(name, total=seconds, rate="")
        began = time.perf_counter()
        for one in clients:
            one.start()
        while (gone := time.perf_counter() - began) < seconds and any(one.is_alive() for one in clients):
            time.sleep(min(0.5, seconds - gone))
            done = sum(len(taken) for one in clients for taken in list(one.taken.values()))
            failed = sum(sum(list(one.errors.values())) for one in clients)
            progress.update(bar, completed=gone, rate=f"{done / max(gone, 0.1):.0f} a second, {failed} errors")
        for one in clients:
            one.stop.set()
        for one in clients:
            one.join()
    return time.perf_counter() - began


def measured(
    stage: Stage, count: int, workers: int, clients: int, seconds: float, texts: tuple[list[str], list[str]]
) -> dict[str, Any]:
    """Measure one load on so many replicas."""
    filled, further = texts
    metrics_token = secrets.token_urlsafe(32)
    with recollect.open_app(stage.settings, wait=False, background=False) as app:
        given = tokens(app, clients)
    with replicas(stage, count, workers, metrics_token) as running:
        serving = [found.pid for one in running for found in served(one.pid, workers)]
        made = [
            Client(number, running[number % count].url, token, filled, further[number::clients])
            for number, token in enumerate(given)
        ]
        sample = [" ".join(one.split()[1:9]) for one in random.Random(5).sample(filled, min(BARE, len(filled)))]
        parts = bare(stage, Client(0, running[0].url, given[0], filled, further[-200:]), sample)
        for one in made:  # each namespace of the index is opened by its first query
            one.post("recall", {"query": sample[0]})
        chroma = [one.pid for one in psutil.Process().children() if "chroma" in " ".join(one.cmdline())]
        groups = {"replicas": serving, "Chroma": chroma, "PostgreSQL": backends(stage.settings)}
        before, spent, own = Using(groups).cpu(), stages(running, metrics_token), time.process_time()
        wall = load(made, seconds, f"{clients} clients, {count} replicas")
        own = time.process_time() - own
        groups["PostgreSQL"] = sorted({*groups["PostgreSQL"], *backends(stage.settings)})
        using, spent = Using(groups), stages(running, metrics_token) - spent
        after = using.cpu()
        cores = {name: round((after[name] - before[name]) / wall, 2) for name in groups} | {
            "clients": round(own / wall, 2)
        }
        counts = {"replicas": count, "workers": workers}
        return figures(made, wall, spent) | counts | {"bare": parts, "cores": cores, "memory": using.memory()}


def figures(clients: Sequence[Client], wall: float, spent: Counter[tuple[str, str]]) -> dict[str, Any]:
    """Return throughput, percentiles, errors, and what an average request spends in each stage on the server."""
    taken = {kind: [ms for one in clients for ms in one.taken[kind]] for kind in KINDS}
    errors: Counter[str] = sum((one.errors for one in clients), Counter())
    by_stage = {
        kind: {
            stage or "whole request": round(seconds * 1e3 / max(len(taken[kind]), 1), 2)
            for (operation, stage), seconds in sorted(spent.items(), key=lambda one: -one[1])
            if operation == kind
        }
        for kind in KINDS
    }
    return {
        "seconds": round(wall, 1),
        "requests_per_second": round(sum(map(len, taken.values())) / wall, 1),
        "latency": {kind: spread(some) for kind, some in taken.items()},
        "errors": dict(errors),
        "stages_ms": by_stage,
    }


def show(one: dict[str, Any]) -> None:
    """Print one run."""
    rate = f"{one['requests_per_second']} requests a second in {one['seconds']} s"
    title = f"{one['replicas']} replica(s) with {one['workers']} worker(s): {rate}"
    table = Table("milliseconds", "requests", "p50", "p95", "p99", "most", title=title, title_justify="left")
    for name, some in (one["latency"] | one["bare"]).items():
        told = [str(some.get(key, "")) for key in ("requests", *(f"p{cut}_ms" for cut in PERCENTILES), "most_ms")]
        table.add_row(name, *told, end_section=name == KINDS[-1])
    out.print(table)
    for kind, parts in one["stages_ms"].items():
        out.print(f"{kind} on the server, ms on average: " + ", ".join(f"{name} {ms}" for name, ms in parts.items()))
    out.print("cores in use: " + ", ".join(f"{name} {share}" for name, share in one["cores"].items()))
    out.print("memory: " + ", ".join(f"{name} {size}" for name, size in one["memory"].items()))
    out.print(f"errors: {one['errors'] or 'none'}", markup=False)


def main(
    memories: Annotated[int, typer.Option(help="How many memories the store holds before.")] = 100_000,
    seconds: Annotated[float, typer.Option(help="How long each load lasts.")] = 300.0,
    clients: Annotated[int, typer.Option(help="How many clients ask at once.")] = 64,
    count: Annotated[
        list[int] | None, typer.Option("--replicas", help="Repeat it for more; default 1, then 2.")
    ] = None,
    workers: Annotated[int, typer.Option(help="How many workers each replica has.")] = 1,
    keep: Annotated[Path | None, typer.Option(help="Folder to keep the filled store in, for the next time.")] = None,
    fill_only: Annotated[bool, typer.Option("--fill-only", help="Fill the store of `--keep` and end.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here, as JSON.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Also draw the latencies, as PNG.")] = None,
) -> None:
    """Fill a store or take a kept one, put the load on it, and print what came of it; 1 is returned after an error."""
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))  # Chroma wants four for each namespace
    texts = sentences(memories + FURTHER)
    with ExitStack() as undo:
        folder = keep or Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="recollect-load-")))
        stage = undo.enter_context(staged(folder.absolute(), texts[:memories], keep=keep is not None))
        if fill_only:
            out.print(f"{memories} memories in {stage.filling_seconds} s")
            return
        runs, filled, further = [], texts[:memories], texts[memories:]
        random.shuffle(further)  # a kept store has been told some of them
        for place, replica_count in enumerate(counts := count or [1, 2]):
            some = further[place :: len(counts)]
            runs.append(measured(stage, replica_count, workers, clients, seconds, (filled, some)))
            show(runs[-1])
    found = {"memories": memories, "clients": clients, "filling_seconds": stage.filling_seconds, "runs": runs}
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=2), encoding="utf-8")
    if picture is not None:
        draw(found, picture)
    if any(one["errors"] for one in runs):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
