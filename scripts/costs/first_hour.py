"""What the first hour costs a new user: seconds, megabytes and tokens of each step, from the wheel to an agent."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer

from costs import wheel
from recollect import Settings

out = Console(highlight=False)
NOTES, SECTIONS, TIMES = 20, 5, 5
SAID = "Production deploys go out on Tuesday mornings"
ASKED = "when do we ship releases?"
OURS = ("RECOLLECT_", "XDG_", "PYTHON", "VIRTUAL_ENV")  # variables that a new user does not have
PAGE = Path(__file__).parents[2] / "docs/evaluation/first-hour.md"
MEASURED = {"seconds": "seconds", "mb": "MB on disk, or in memory where resident", "tokens": "tokens"}
PLACES = {"seconds": 2, "mb": 0, "tokens": 0}
FIGURES = re.compile(r"(?<=<!-- figures of scripts/first-hour -->\n).*(?=<!-- end of figures -->)", re.DOTALL)


class Newcomer:
    """Somebody with an empty home, who has the wheel in `place`/venv; `rows` is what each step has cost."""

    def __init__(self, place: Path, *, download: bool) -> None:
        self.place, self.download, self.rows = place, download, list[dict[str, Any]]()
        self.work = place / "home/shop"
        self.work.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        ours = {"HOME": str(place / "home"), "PATH": f"{place / 'venv/bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"}
        self.environment = kept | ours | {"COLUMNS": "120"}

    def note(self, step: str, seconds: float | None = None, mb: float | None = None, tokens: int | None = None) -> None:
        """Write down what a step has cost."""
        self.rows.append({"step": step, "seconds": seconds, "mb": mb, "tokens": tokens})

    def timed(self, step: str, work: Callable[[], Any], times: int = 1) -> Any:
        """Do something, write down the median of its wall seconds, and return what it gave."""
        taken = []
        with out.status(step):
            for _ in range(times):
                start = time.perf_counter()
                given = work()
                taken.append(time.perf_counter() - start)
        self.note(step, statistics.median(taken))
        return given

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the new environment in the working folder; end with what it said when it failed."""
        program = [str(self.place / "venv/bin" / command[0]), *command[1:]]
        done = subprocess.run(
            program, env=self.environment, cwd=self.work, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            sys.exit(f"first-hour: {' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def answer(self, *command: str) -> Any:
        """Return what a command of Recollect answers as JSON."""
        return json.loads(self.run("recollect", *command, "--json").stdout)


def size(folder: Path) -> float:
    """Return the megabytes of the files in a folder, through links."""
    files = (Path(root, name) for root, _, names in os.walk(folder, followlinks=True) for name in names)
    return sum(file.stat().st_size for file in files) / 1e6


def install(new: Newcomer) -> None:
    """Install the wheel, from the package index or by links to what is installed here."""
    built = wheel.build(new.place, with_pip=new.download)
    if new.download:
        got = new.place / "downloads"
        pip = [*wheel.PIP, "download", "--no-cache-dir", "--dest", got, built]
        new.timed("pip: download", lambda: subprocess.run(pip, check=True, env=new.environment))
        new.rows[-1]["mb"] = size(got)
        new.timed("pip: install", lambda: wheel.install(new.place, built, "--no-index", f"--find-links={got}"))
    else:
        new.timed("pip: install, requirements linked", lambda: wheel.install_linked(new.place, built))
    found = wheel.packages(new.place)
    new.rows[-1]["mb"] = size(found)
    new.note(f"packages installed: {len(list(found.glob('*.dist-info')))}")


def begin(new: Newcomer) -> Tokenizer:
    """Make the store, register with Claude Code; return the tokenizer of the default model."""
    new.timed("recollect init", lambda: new.run("recollect", "init"))
    new.timed("recollect install claude-code --yes", lambda: new.run("recollect", "install", "claude-code", "--yes"))
    new.timed("python -c 'import typer'", lambda: new.run("python", "-c", "import typer"), TIMES)
    new.timed("recollect --version", lambda: new.run("recollect", "--version"), TIMES)
    models = wheel.packages(new.place) / "recollect/models"
    counter = Tokenizer.from_file(str(models / Settings().model / "tokenizer.json"))
    counter.no_truncation()
    return counter


def talk(new: Newcomer) -> None:
    """Remember and recall on the command line, with nothing running, and then with a warm daemon."""
    recall = lambda: new.answer("recall", ASKED)["memories"]  # noqa: E731
    new.run("recollect", "stop")
    new.timed("remember, first of a new store", lambda: new.answer("remember", SAID, "--fact-type", "decision"))
    new.timed("recall, right after it", recall)
    new.run("recollect", "stop")
    new.timed("recall, no daemon running", recall)
    while new.answer("status")["model"] != "ready":
        time.sleep(0.1)
    if SAID not in str(new.timed("recall, warm", recall, TIMES)):
        sys.exit("first-hour: recall did not find what was remembered")


def bring(new: Newcomer) -> None:
    """Import a folder of notes, and an instruction file deep in it."""
    for number in range(NOTES):
        parts = [
            f"## Part {part}\n\nService {number} keeps log {part} for {part + 7} days.\n" for part in range(SECTIONS)
        ]
        file = new.work / f"notes/area-{number % 4}/note-{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ntags: [ops]\n---\n# Note {number}\n\n" + "\n".join(parts), encoding="utf-8")
    (new.work / "notes/area-1/CLAUDE.md").write_text("## Style\n\nUse tabs in Makefiles.\n", encoding="utf-8")
    new.timed("import a folder, --dry-run", lambda: new.answer("import", "notes", "--dry-run"))
    new.timed("import a folder", lambda: new.answer("import", "notes"))
    new.note(f"memories in the store: {new.answer('stats')['memories']}")


class Agent:
    """A client of the MCP server that is registered with Claude Code; its handshake is done."""

    def __init__(self, new: Newcomer) -> None:
        entry = json.loads((new.place / "home/.claude.json").read_text(encoding="utf-8"))["mcpServers"]["recollect"]
        command, given = [entry["command"], *entry["args"]], new.environment | entry.get("env", {})
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen(command, env=given, cwd=new.work, **pipes)
        about = {"name": "first-hour", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        """Write one message."""
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self.server.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a request."""
        self.send({"id": 1, "method": method, "params": params})
        return json.loads(self.server.stdout.readline())["result"]

    def recall(self) -> str:
        """Return the text that a model reads after a recall."""
        said = self.ask("tools/call", name="memory", arguments={"action": "recall", "query": ASKED})
        return "\n".join(one["text"] for one in said["content"])

    def leave(self) -> None:
        """Close the pipe and wait until the server has gone."""
        with self.server:
            self.server.stdin.close()


def connect(new: Newcomer, counter: Tokenizer) -> None:
    """Start what Claude Code would start, shake hands, list the tools, recall; measure both processes."""
    new.timed("python -c 'import mcp'", lambda: new.run("python", "-c", "import mcp"), TIMES)
    agents = []
    new.timed("mcp: the first start, to initialize", lambda: agents.append(Agent(new)))
    new.timed("mcp: a later start, to initialize", lambda: agents.append(Agent(new)), TIMES)
    agent = agents[0]
    tools = new.timed("mcp: tools/list", lambda: agent.ask("tools/list"))["tools"]
    shown = json.dumps(tools, separators=(",", ":"))
    new.rows[-1]["tokens"] = len(counter.encode(shown, add_special_tokens=False).ids)
    new.timed("mcp: the first recall", agent.recall)
    said = new.timed("mcp: recall, warm", agent.recall, TIMES)
    if SAID not in said:
        sys.exit("first-hour: recall over MCP did not find what was remembered")
    new.rows[-1]["tokens"] = len(counter.encode(said, add_special_tokens=False).ids)
    new.note("resident: an idle `recollect mcp`", mb=psutil.Process(agents[-1].server.pid).memory_info().rss / 1e6)
    new.note("resident: the daemon", mb=new.answer("status")["memory_bytes"] / 1e6)
    for one in agents:
        one.leave()


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table("step", title="The first hour")
    for name in ("seconds", "MB", "tokens"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*cells(row))
    out.print(table)


def cells(row: dict[str, Any]) -> list[str]:
    """Return step, seconds, megabytes and tokens as people read them."""
    seconds = "" if row["seconds"] is None else f"{row['seconds']:.2f}"
    mb = "" if row["mb"] is None else f"{row['mb']:.0f}"
    return [row["step"], seconds, mb, "" if row["tokens"] is None else str(row["tokens"])]


def write_page(rows: list[dict[str, Any]], load: float) -> None:
    """Put the figures into the page, with the day, the machine and how busy it was."""
    cores, whole = os.cpu_count() or 1, sum(row["seconds"] or 0.0 for row in rows)
    busy = f"a load of {load:.1f} when it began" + (": others used the machine too" if load > cores / 2 else "")
    parts = []
    for name, title in MEASURED.items():
        head = ["step", title]
        found = [[row["step"], f"{row[name]:,.{PLACES[name]}f}"] for row in rows if row[name] is not None]
        parts.append("\n".join(f"| {' | '.join(one)} |" for one in (head, ["---"] * len(head), *found)))
    counted = "; ".join(row["step"] for row in rows if all(row[name] is None for name in MEASURED))
    pip = sum(row["seconds"] or 0.0 for row in rows if "pip:" in row["step"])
    machine = f"{platform.system()}, Python {platform.python_version()}, {cores} cores"
    day = f"{datetime.now(UTC):%-d %B %Y}"
    told = (
        f"All steps together take {whole:.0f} seconds, {pip:.0f} of them for `pip`. The figures are from {day}:\n"
        f"{machine}, {busy}. {counted[:1].upper()}{counted[1:]}."
    )
    text = FIGURES.sub(lambda _: f"\n{told}\n\n" + "\n\n".join(parts) + "\n\n", PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")


def main(
    download: Annotated[bool, typer.Option("--download", help="Really download, instead of linking packages.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the figures here, as JSON.")] = None,
    page: Annotated[bool, typer.Option("--page", help="Put the figures into docs/evaluation/first-hour.md.")] = False,
) -> None:
    """Do what a new user does, in an empty environment with an empty home; nothing of it is kept."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="recollect-first-hour-") as folder:
        new = Newcomer(Path(folder), download=download)
        install(new)
        counter = begin(new)
        try:
            talk(new)
            bring(new)
            connect(new, counter)
        finally:
            new.run("recollect", "stop")
    show(new.rows)
    if page:
        write_page(new.rows, load)
    if json_file is not None:
        json_file.write_text(json.dumps(new.rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
