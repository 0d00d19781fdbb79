"""Measure what Recollect costs beside the bare sum of its parts, in one run, on one machine: ratios carry over."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import anyio
import psutil
import typer
from mcp import Client, StdioServerParameters
from rich.console import Console
from rich.table import Table

import recollect
from filling import fill
from generated import GeneratedEmbedder
from recollect import Caller, Draft, Query, Settings
from recollect.app import App
from recollect.domain.search import View
from recollect.search.parse import parse
from recollect.store.text.index import Term

out = Console(highlight=False)
HOOKS = 40
"""How often each hook is run."""
COMMAND = str(Path(sys.executable).with_name("recollect"))
SUBJECTS = (
    "the billing service|the mobile client|our search index|the login page|the nightly export|the data lake".split("|")
)
VERBS = "retries|caches|validates|streams|archives|encrypts|paginates|deduplicates|throttles|mirrors".split("|")
OBJECTS = "customer invoices|session tokens|product images|audit events|price lists|webhook calls|tax reports".split(
    "|"
)
REASONS = (
    "after the outage in|because of the limit set in|as agreed in|since the migration of|until the review in".split("|")
)
PORTS = ("records", "text", "vectors", "embedder", "fusion")
SINGLE = 200
KEPT = "bench.json"
CATEGORIES = [f"area-{number}" for number in range(100)]
LONG, WAITING = 20_000, 500  # sentences, and the memories that they make
SESSION = 40
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December".split("|")


def sentences(count: int) -> list[str]:
    """Return distinct sentences with a vocabulary like that of a team's notes."""
    dice = random.Random(7)
    names = ["".join(dice.choice("bcdfghklmnprstvz") + dice.choice("aeiou") for _ in range(3)) for _ in range(3000)]
    pick = dice.choice
    return [
        f"{pick(SUBJECTS).capitalize()} {pick(VERBS)} {pick(OBJECTS)} of {pick(names)}-{number} {pick(REASONS)} "
        f"{pick(MONTHS)} {2020 + number % 6}, says {pick(names).capitalize()}"
        for number in range(count)
    ]


def timed(
    work: Callable[[Any], Any], over: Iterable[Any], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return how many milliseconds `work` takes for each of `over`, by the `clock`."""
    taken = []
    for one in over:
        start = clock()
        work(one)
        taken.append((clock() - start) * 1e3)
    return taken


class Timed:
    """A port that notes under `spent` how many milliseconds of this thread's CPU each of its methods takes."""

    def __init__(self, port: object, name: str, spent: dict[str, float]) -> None:
        self._port, self._name, self._spent = port, name, spent

    def __getattr__(self, name: str) -> Any:
        """Return the port's own attribute; calling a method of it is timed."""
        own = getattr(self._port, name)
        return own if not callable(own) else lambda *given, **named: self._timed(name, own, given, named)

    def _timed(self, name: str, method: Callable[..., Any], given: Any, named: Any) -> Any:
        start = time.thread_time()
        try:
            return method(*given, **named)
        finally:
            self._spent[f"{self._name}.{name}"] += (time.thread_time() - start) * 1e3


def stages(app: App, caller: Caller, queries: list[str]) -> dict[str, float]:
    """Return the CPU milliseconds of each stage of a recall: the ports' methods, and the Python between them."""
    spent: dict[str, float] = defaultdict(float)
    ports = {name: Timed(getattr(app, name), name, spent) for name in PORTS}
    watched, start = replace(app, **ports), time.thread_time()
    for text in queries:
        recollect.recall(watched, Query(query=text), caller)
    spent["between"] = (time.thread_time() - start) * 1e3 - sum(spent.values())
    return {name: round(ms / len(queries), 2) for name, ms in sorted(spent.items(), key=lambda one: -one[1])}


def spread(taken: list[float]) -> dict[str, float]:
    ordered = sorted(taken)
    p95 = ordered[int(len(ordered) * 0.95)]
    return {"p50_ms": round(statistics.median(ordered), 2), "p95_ms": round(p95, 2), "n": len(ordered)}


def inside(settings: Settings, count: int, found: dict[str, Any], *, generated: bool = False) -> None:
    """Measure remember and recall in this process, beside embedding, one Chroma query and one FTS query.

    Only the last memories are remembered one by one: what that costs with so many there is what matters.
    """
    texts = sentences(count)
    drafts = [
        Draft(
            content=text,
            category=CATEGORIES[number % len(CATEGORIES)],
            session_id=f"session-{number // SESSION}",
            position=number % SESSION,
        )
        for number, text in enumerate(texts)
    ]
    caller, sample = settings.caller, random.Random(3).sample(texts, min(200, count))
    embedder = GeneratedEmbedder() if generated else None
    with recollect.open_app(settings, embedder=embedder) as app:
        found["import"] = filled(app, drafts[:-SINGLE], caller, settings.home / KEPT)
        again = f", told at {time.time_ns()}"  # a kept store was told the same before
        new = [draft.model_copy(update={"content": draft.content + again}) for draft in drafts[-SINGLE:]]
        found["remember"] = spread(timed(lambda draft: recollect.remember(app, draft, caller), new))
        app.vectors.sync()
        queries = [" ".join(text.split()[1:9]) for text in sample]
        found |= warm(app, caller, queries)
        found |= filtered(app, caller, queries[:50])
        files = [file for file in settings.folder.rglob("*") if file.is_file()]
        found["store"] = {
            "disk_mb": round(sum(file.stat().st_size for file in files) / 1e6, 1),
            "process_mb": round(psutil.Process().memory_info().rss / 1e6, 1),
        }


def filled(app: App, drafts: list[Draft], caller: Caller, file: Path) -> dict[str, Any]:
    """Fill a store, or take one that is; return what filling it took, which stands in `file` from then on."""
    if not file.exists():
        file.write_text(json.dumps(fill(app, drafts, caller)), encoding="utf-8")
    known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if known["memories"] != len(drafts):
        sys.exit(f"{file.parent} was filled with {known['memories']} memories and not with {len(drafts)}.")
    return known


def warm(app: App, caller: Caller, queries: list[str]) -> dict[str, Any]:
    """Measure the CPU time of recall and its parts by turns; wall time would tell what else the machine does."""
    view = View(namespaces=caller.namespaces(), now=app.clock())
    index: Any = app.vectors
    home = caller.namespaces()[1]
    vectors = {text: app.embedder.read([text], "query")[0].vector for text in queries}
    words = {text: [Term(word) for word in parse(text).words] for text in queries}
    works: dict[str, Callable[[str], Any]] = {
        "recall": lambda text: recollect.recall(app, Query(query=text), caller),
        "embed query": lambda text: app.embedder.read([text], "query"),
        "one Chroma query": lambda text: index._index.query(home, vectors[text], 50),
        "one FTS query": lambda text: app.text.search(words[text], view, 50),
    }
    for work in works.values():
        timed(work, queries[:20])
    taken = [{name: timed(work, [text], time.process_time)[0] for name, work in works.items()} for text in queries]
    found: dict[str, Any] = {name: spread([one[name] for one in taken]) for name in works}
    found["bare sum"] = spread([sum(ms for name, ms in one.items() if name != "recall") for one in taken])
    found["recall / bare sum"] = {"ratio": round(found["recall"]["p50_ms"] / found["bare sum"]["p50_ms"], 2)}
    found["stages of recall"] = stages(app, caller, queries)
    return found


def filtered(app: App, caller: Caller, queries: list[str]) -> dict[str, Any]:
    """Measure the CPU time of recalls of one category of a hundred, and of one word.

    It is `the`, a word of every seventh memory, or a name that one memory alone holds.
    """
    ask = lambda **fields: lambda text: recollect.recall(app, Query(**({"query": text} | fields)), caller)  # noqa: E731
    works = {
        "recall in one category": ask(category=CATEGORIES[7]),
        "recall of a common word": ask(query="the"),
        "recall of a frequent word": lambda text: recollect.recall(app, Query(query=text.split()[3]), caller),
        "recall of a rare word": lambda text: recollect.recall(app, Query(query=text.split()[6]), caller),
    }
    for work in works.values():
        timed(work, queries[:5])
    return {name: spread(timed(work, queries, time.process_time)) for name, work in works.items()}


def first_recall(settings: Settings, found: dict[str, Any], embedder: GeneratedEmbedder | None) -> None:
    """Measure the wall time from opening the filled store to the answer of the first recall."""
    start = time.perf_counter()
    with recollect.open_app(settings, embedder=embedder) as app:
        opened = time.perf_counter()
        recollect.recall(app, Query(query="session tokens of the mobile client"), settings.caller)
        ended = time.perf_counter()
    found["first recall after opening"] = {
        "opening_ms": round((opened - start) * 1e3),
        "recall_ms": round((ended - opened) * 1e3),
    }


def beside_backlog(settings: Settings, found: dict[str, Any]) -> None:
    """Measure the wall time of recalls while long memories wait for their embedding, beside the same when none does."""
    long, caller = [" ".join(sentences(LONG)[part::WAITING]) for part in range(WAITING)], settings.caller
    queries = [" ".join(text.split()[1:9]) for text in sentences(100)]
    with recollect.open_app(settings, wait=False, background=False) as app:
        for text in long:
            recollect.remember(app, Draft(content=text), caller)
    ask = lambda text: recollect.recall(app, Query(query=text), caller)  # noqa: E731
    with recollect.open_app(settings) as app:
        timed(ask, queries[:10])
        busy = [ms for text in queries if app.records.embeddings.unembedded(1) for ms in timed(ask, [text])]
        left = len(app.records.embeddings.unembedded(WAITING))
    with recollect.open_app(settings, background=False) as app:
        timed(ask, queries[:10])
        idle = timed(ask, queries)
    found["recall beside a backlog"] = spread(busy) | {"waiting": left}
    found["recall beside none"] = spread(idle)
    ratio = found["recall beside a backlog"]["p95_ms"] / found["recall beside none"]["p95_ms"]
    found["beside a backlog / beside none"] = {"ratio": round(ratio, 2)}


def starts(settings: Settings, found: dict[str, Any]) -> None:
    """Measure process starts: the MCP handshake beside importing the SDK, the CLI beside an empty Python."""
    environment = {
        f"RECOLLECT_{name.upper()}": str(value) for name, value in settings.model_dump(exclude_none=True).items()
    }
    run = lambda *command: subprocess.run(command, env=environment, check=True, capture_output=True)  # noqa: E731
    python = sys.executable
    found["python -c pass"] = spread(timed(lambda _: run(python, "-c", "pass"), range(10)))
    found["python -c 'import mcp'"] = spread(timed(lambda _: run(python, "-c", "import mcp"), range(10)))
    run(COMMAND, "recall", "warm the daemon")
    found["recollect recall (daemon warm)"] = spread(
        timed(lambda _: run(COMMAND, "recall", "session tokens"), range(10))
    )
    hooks(environment, found)
    anyio.run(clients, environment, found)
    first, sdk = found["spawn to initialize answered"]["p50_ms"], found["python -c 'import mcp'"]["p50_ms"]
    found["initialize / import mcp"] = {"ratio": round(first / sdk, 2)}


def hooks(environment: dict[str, str], found: dict[str, Any]) -> None:
    """Measure the hooks of a coding agent as whole processes beside an empty Python, all in turns.

    Each prompt is another one, in a session of its own: what was asked or shown already would cost less.
    """
    asked = [" ".join(text.split()[:9]) + ", and why?" for text in sentences(HOOKS + 1)]
    used = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_response": "2 passed"}
    bare = "python -c pass, in turns"
    taken: dict[str, list[float]] = defaultdict(list)
    for number, prompt in enumerate(asked):
        said: dict[str, dict[str, Any]] = {"prompt:submit": {"prompt": prompt}, "tool:post": used}
        commands: dict[str, tuple[list[str], bytes]] = {bare: ([sys.executable, "-c", "pass"], b"")}
        for event, payload in said.items():
            whole = {"session_id": f"bench-{number}", "cwd": "/", "hook_event_name": ""} | payload
            commands[f"recollect hook {event}"] = ([COMMAND, "hook", event], json.dumps(whole).encode())
        for name, (command, content) in commands.items():
            run = lambda _, c=command, i=content: subprocess.run(c, input=i, env=environment, capture_output=True)  # noqa: E731
            taken[name] += timed(run, [None])
    taken = {name: one[1:] for name, one in taken.items()}  # the first round warms up
    found.update({name: spread(one) for name, one in taken.items()})
    pairs = zip(taken["recollect hook prompt:submit"], taken[bare], strict=True)
    found["hook prompt:submit / pass"] = {"ratio": round(statistics.median(one / two for one, two in pairs), 2)}


async def clients(environment: dict[str, str], found: dict[str, Any]) -> None:
    server = StdioServerParameters(command=COMMAND, args=["mcp"], env=environment)
    taken = []
    for _ in range(10):
        start = time.perf_counter()
        async with Client(server):
            taken.append((time.perf_counter() - start) * 1e3)
    found["spawn to initialize answered"] = spread(taken)
    call = {"action": "forget", "id": "1999999999"}
    async with Client(server) as client:
        await client.call_tool("memory", call)
        taken = []
        for _ in range(200):
            start = time.perf_counter()
            await client.call_tool("memory", call)
            taken.append((time.perf_counter() - start) * 1e3)
    found["one tool call through stdio and daemon"] = spread(taken)
    await crowd(server, found)


async def crowd(server: StdioServerParameters, found: dict[str, Any]) -> None:
    """Measure the memory of ten idle clients and the daemon they share."""
    async with anyio.create_task_group() as tasks:
        arrived, leave = anyio.Semaphore(0), anyio.Event()

        async def idle() -> None:
            async with Client(server) as client:
                await client.call_tool("memory", {"action": "forget", "id": "1999999999"})
                arrived.release()
                await leave.wait()

        for _ in range(10):
            tasks.start_soon(idle)
        for _ in range(10):
            await arrived.acquire()
        ours = [child for child in psutil.Process().children() if "recollect" in " ".join(child.cmdline())]
        sizes = [child.memory_info().rss / 1e6 for child in ours]
        found["ten idle clients"] = {"each_mb": round(statistics.mean(sizes), 1), "all_mb": round(sum(sizes), 1)}
        leave.set()


def daemon_memory(settings: Settings, found: dict[str, Any]) -> None:
    status = subprocess.run(
        [COMMAND, "--home", str(settings.home), "status", "--json"], capture_output=True, check=True
    )
    found["daemon"] = {"mb": round(json.loads(status.stdout)["memory_bytes"] / 1e6, 1)}
    subprocess.run([COMMAND, "--home", str(settings.home), "stop"], capture_output=True, check=True)


def main(
    memories: Annotated[int, typer.Option(help="How many memories the store holds.")] = 10_000,
    generated: Annotated[
        bool, typer.Option("--generated", help="Seeded vectors instead of a model: only what the store costs.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="With --generated: keep the filled store in this folder, for the next time.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here, as JSON.")] = None,
) -> None:
    """Fill a new store, then measure; nothing of it is kept unless a folder is named."""
    found: dict[str, Any] = {"memories": memories, "vectors": "generated" if generated else "real"}
    if generated:
        with nullcontext(keep) if keep else tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
            settings = Settings(home=Path(folder), user="bench", team="bench", project="bench")
            inside(settings, memories, found, generated=True)
            first_recall(settings, found, GeneratedEmbedder())
        show(found, json_file)
        return
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        settings = Settings(home=Path(folder), user="bench", team="bench", project="bench")
        inside(settings, memories, found)
        call = {"id": "1999999999"}
        with recollect.open_app(settings) as app:
            request = recollect.Forget(**call)
            again = lambda _: recollect.forget(app, request, settings.caller)  # noqa: E731
            timed(again, range(20))
            found["the same operation in-process"] = spread(timed(again, range(200)))
        first_recall(settings, found, None)
        beside_backlog(settings.model_copy(update={"home": Path(folder) / "backlog"}), found)
        starts(settings, found)
        daemon_memory(settings, found)
    more = found["one tool call through stdio and daemon"]["p50_ms"] - found["the same operation in-process"]["p50_ms"]
    found["stdio and daemon add"] = {"p50_ms": round(more, 2)}
    show(found, json_file)


def show(found: dict[str, Any], json_file: Path | None) -> None:
    title = f"{found['memories']} memories, {found['vectors']} vectors"
    table = Table("measured", "figures", title=title, title_justify="left")
    for name, figures in found.items():
        if isinstance(figures, dict):
            table.add_row(name, ", ".join(f"{key} {value}" for key, value in figures.items()))
    out.print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
