"""Run the fenced blocks of the pages on deployment, in order, as somebody would who types them.

PostgreSQL and Chroma are real servers on this machine, the replicas real processes, and Caddy stands in front where it
is installed. Containers there are none: `docker compose`, and `kubectl` with `exec` and `scale`, work on these
processes; else `kubectl` only looks whether the files are there that it is given. What an address, a database or a
token is called on the page is replaced.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

ROOT: Final = Path(__file__).parents[1]
PROGRAMS: Final = Path(sys.executable).parent
PATIENCE: Final = 120.0  # seconds for a process to answer
REPLICAS: Final = ("recollect-1", "recollect-2")
SAID: Final = "Tuesday mornings"
out = Console()
DEPLOY, UPKEEP = "docs/deploy.md", "docs/deploy/upkeep.md"
KNOWN: Final = frozenset(
    "cd mkdir umask printf export recollect docker helm kubectl pip chroma".split()
    + "psql pg_dump pg_restore dropdb createdb".split()
)
"""The programs that the pages call. An assignment before one, or alone, is known too."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: how it begins, whose machine it is typed on, or why it is not run."""

    page: str
    first: str
    who: tuple[str, ...] = ()
    why: str = ""


BLOCKS: Final = (
    Block(DEPLOY, "agents, command line", why="a drawing"),
    Block(DEPLOY, "cd docs/deploy", ("machine",)),
    Block(DEPLOY, "export RECOLLECT_URL=https://memory.example.com RECOLLECT_TOKEN=…", ("ann",)),
    Block(DEPLOY, "export RECOLLECT_URL=https://memory.example.com", ("ada", "bob")),
    Block(DEPLOY, "docker build --file docs/deploy/Dockerfile", why="an image, which needs Docker"),
    Block(DEPLOY, "memory.example.com {", why="a file of a proxy"),
    Block(DEPLOY, 'pip install "recollect[server]"', ("bare",)),
    Block(DEPLOY, "export RECOLLECT_DATABASE_URL=postgresql:", ("bare",)),
    Block(DEPLOY, "RECOLLECT_LIMITS=", why="a setting of the server, and what an admin may type"),
    Block(DEPLOY, "RECOLLECT_PUBLIC_ADDRESS=https://memory.example.com", why="settings of an identity provider"),
    Block(DEPLOY, "export RECOLLECT_URL=https://memory.example", ("bob",)),
    Block(DEPLOY, "umask 077\nprintf 'postgresql:", ("cluster",)),
    Block(DEPLOY, "mkdir -m 700 docs/deploy/secrets", ("cluster",)),
    Block(UPKEEP, "docker compose exec -T postgres pg_dump", ("machine",)),
    Block(UPKEEP, "docker compose stop recollect-1 recollect-2", ("machine",)),
    Block(UPKEEP, "kubectl --namespace recollect exec statefulset/postgres -- pg_dump", ("cluster",)),
    Block(UPKEEP, "kubectl --namespace recollect scale", ("cluster",)),
    Block(UPKEEP, "export RECOLLECT_DATABASE_URL=postgresql:", ("bare",)),
    Block(UPKEEP, "export RECOLLECT_DATABASE_URL=postgresql:", ("bare",)),
    Block(UPKEEP, "docker compose exec -T postgres pg_dump", ("machine",)),
)
AFTER: Final = Block("(after all of it)", "recollect recall when do we ship", ("bob",))


def blocks(page: str) -> list[str]:
    """Return the fenced blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [found[1] for found in re.finditer(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]


def unknown() -> Iterator[str]:
    """Yield what the pages hold that this walk does not know: another block, or another program in one that it runs."""
    for page in (DEPLOY, UPKEEP):
        there, here = blocks(page), [one for one in BLOCKS if one.page == page]
        if len(there) != len(here):
            yield f"{page} has {len(there)} blocks, of which {len(here)} are known"
        for text, block in zip(there, here, strict=False):
            if not text.strip().startswith(block.first):
                yield f"{page}: a block begins with {text.strip().splitlines()[0]!r}"
            lines = [] if block.why else text.splitlines()
            programs = [next((word for word in line.split() if "=" not in word), "") for line in lines]
            programs = ["" if re.match(r"\w+=\$\(", line) else one for one, line in zip(programs, lines, strict=True)]
            yield from (f"{page}: {one!r} is not known" for one in programs if one and one not in KNOWN)


class Walk:
    """The servers of one walk, the folder of each who types, and what became of each block."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        sys.path.insert(0, str(ROOT / "tests" / "support"))
        from chroma_process import ChromaProcess
        from postgres_cluster import Cluster

        self.folder, self._stack, self.rows = folder, stack, list[tuple[str, ...]]()
        self.ports = [_free_port() for _ in range(5)]
        postgres, chroma = Cluster(), ChromaProcess(folder / "index")
        for server, end in ((postgres, postgres.close), (chroma, chroma.kill)):
            stack.callback(end)
            server.start()
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("CREATE ROLE recollect LOGIN CREATEDB")  # Compose makes it a superuser
            connection.execute("CREATE DATABASE recollect OWNER recollect")
            connection.execute("CREATE ROLE bare LOGIN")
            connection.execute("CREATE DATABASE bare OWNER bare")
        self.postgres, self.chroma = postgres.port, chroma.url
        self.url = f"http://127.0.0.1:{self.ports[0]}"
        stack.callback(self._end)
        _lay_programs(folder / "bin")
        for name in ("machine", "cluster"):
            shutil.copytree(ROOT / "docs", folder / name / "docs")

    def _end(self) -> None:
        for file in self.folder.glob("*.pid"):
            _stop(file)

    def proxy(self) -> str:
        """Start Caddy with the shipped file, where it is installed; return what is said of it."""
        if (caddy := shutil.which("caddy")) is None:
            return "Caddy is not installed: the clients ask a replica themselves"
        text = (ROOT / "docs/deploy/Caddyfile").read_text(encoding="utf-8")
        text = text.replace("{\n", "{\n\tauto_https disable_redirects\n\tskip_install_trust\n", 1)
        (self.folder / "Caddyfile").write_text(text.replace(":2015", f":{self.ports[3]}"), encoding="utf-8")
        self.url = f"https://localhost:{self.ports[2]}"
        theirs = {"SITE": self.url, "REPLICAS": " ".join(f"127.0.0.1:{one}" for one in self.ports[:2])}
        data = {"XDG_DATA_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}
        command = [caddy, "run", "--adapter", "caddyfile", "--config", str(self.folder / "Caddyfile")]
        with (self.folder / "caddy.log").open("wb") as log:
            process = subprocess.Popen(command, env=os.environ | theirs | data, stdout=log, stderr=log)
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        version = subprocess.run([caddy, "version"], capture_output=True, text=True, check=True).stdout.split()[0]
        return f"Caddy {version} with the shipped file at {self.url}"

    def run(self, block: Block, text: str) -> None:
        """Run a block for each who types it, and write down how it ended."""
        for who in block.who:
            home = self.folder / who
            home.mkdir(exist_ok=True)
            if block.first.endswith("memory.example"):  # the page takes it for granted
                token = home / ".config/recollect/token"
                token.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.folder / f"{who}.token", token)
            script = "set -eu\n" + "\n".join(self._replaced(line, who) for line in text.splitlines())
            folder = home / "docs/deploy" if block.page == UPKEEP and who != "bare" else home
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=folder,
                env=self._environment(who),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            (self.folder / f"{len(self.rows):02}-{who}.log").write_text(done.stdout, encoding="utf-8")
            left = "; ".join(dict.fromkeys(re.findall(r"^not run: (.*)$", done.stdout, re.MULTILINE)))
            told = "well" if done.returncode == 0 else f"ended with {done.returncode}: {done.stdout[-300:]}"
            if done.returncode == 0 and "recall" in text and who == "bob" and SAID not in done.stdout:
                told = "Bob does not find what Ada remembered"
            self.rows.append((block.page, block.first, who, told, left))

    def _replaced(self, line: str, who: str) -> str:
        """Return a line with this machine's addresses, folders and tokens in place of the page's."""
        line = line.replace("https://memory.example.com", self.url).replace("https://memory.example", self.url)
        line = line.replace("=…", f'="$(cat {self.folder}/{who}.token)"')
        line = line.replace("recollect@127.0.0.1:5432/recollect", f"bare@127.0.0.1:{self.postgres}/bare")
        if line.startswith(("dropdb", "createdb")):
            line = line.replace("recollect", "bare")
        line = line.replace("/srv/chroma", str(self.folder / "bare-index"))
        line = line.replace("127.0.0.1:8000", f"127.0.0.1:{self.ports[4]}").replace(
            "--port 8000", f"--port {self.ports[4]}"
        )
        line = re.sub(r"^recollect install \S+", r"\g<0> --yes", line)  # what a person says at the terminal
        if who == "ada" and line.startswith("recollect recall"):
            return ""  # that is Bob's line
        return "" if who == "bob" and line.startswith("recollect remember") else line

    def _environment(self, who: str) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("RECOLLECT_", "PG"))}
        home = str(self.folder / who)
        ours = {"HOME": home, "PATH": f"{self.folder / 'bin'}{os.pathsep}{kept['PATH']}", "WALK": str(self.folder)}
        ours |= {"WALK_AS": who, "WALK_PORTS": " ".join(map(str, self.ports)), "WALK_CHROMA": self.chroma}
        ours |= {"PGHOST": "127.0.0.1", "PGPORT": str(self.postgres)}
        root = self.folder / "caddy/pki/authorities/local/root.crt"
        return kept | ours | ({"SSL_CERT_FILE": str(root)} if root.exists() else {})


# What stands on the PATH of a block


def stand_in(program: str, words: list[str]) -> int:
    """Do what a program of the page would do, where it is not the program itself that does."""
    if program == "docker":
        return _compose(words[1:])
    if program == "kubectl" and {"exec", "scale"} & set(words) and "--init" not in words:
        return _cluster(words)
    if program == "kubectl":
        files = [re.sub(r"^--from-file=\w+=", "", one) for one in words if one.startswith(("--from-file=", "docs/"))]
        absent = [one for one in files if not Path(one).exists()]
        out.print(f"There is no {', '.join(absent)}" if absent else "not run: kubectl, which needs a cluster")
        return bool(absent)
    if program == "helm":
        return _render_chart(words)
    if program == "pip":
        out.print("not run: pip, as scripts/setup has installed the checkout")
        return 0
    if program == "chroma":
        _start([str(PROGRAMS / "chroma"), *words], {}, "chroma", f"http://127.0.0.1:{words[-1]}/api/v2/heartbeat")
        return 0
    return _recollect(words, {})


def _compose(words: list[str]) -> int:
    """Do to the processes here what Compose would do to containers."""
    verb, rest = words[0], [one for one in words[1:] if not one.startswith("--") and one != "-T"]
    if verb == "build":
        out.print("not run: the image's build, which needs Docker")
    elif verb in ("up", "start", "stop"):
        for name in rest or REPLICAS:
            _stop(_walk() / f"{name}.pid")
            if verb != "stop":
                _start_replica(name)
    elif rest[0] == "postgres":
        return _postgres(words[words.index(rest[1]) :])
    else:
        given = words[words.index(rest[0]) + 1 :]
        return _recollect(given[1:] if verb == "exec" else given, _replica(rest[0]))
    return 0


def _cluster(words: list[str]) -> int:
    """Do to the processes here what a cluster would do to pods."""
    if "scale" in words:
        return _compose(["stop" if words[-1].endswith("=0") else "start"])
    inside = words[words.index("--") + 1 :]
    if "statefulset/postgres" in words:
        return _postgres(inside)
    return _recollect(inside[1:], _replica(REPLICAS[0]))


def _render_chart(words: list[str]) -> int:
    """Let Helm render the chart with the options of the page, where it is installed; a cluster there is none."""
    helm = PROGRAMS / "helm"
    if not helm.exists():
        out.print("not run: helm, which is not installed")
        return 0
    options = [word for word in words if word not in ("upgrade", "--install")]
    return subprocess.run([helm, "template", *options], stdout=subprocess.DEVNULL).returncode


def _postgres(words: list[str]) -> int:
    """Run a program of PostgreSQL."""
    binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return subprocess.run([shutil.which(words[0]) or str(binaries[-1] / words[0]), *words[1:]]).returncode


def _recollect(words: list[str], more: dict[str, str]) -> int:
    """Run Recollect, and keep the token that it prints: for whoever types, or for the user who is added."""
    command = [str(PROGRAMS / "recollect"), *words]
    done = subprocess.run(command, env=os.environ | more, stdout=subprocess.PIPE, text=True)
    out.print(done.stdout, end="", markup=False, highlight=False, soft_wrap=True)
    if found := re.search(r"^rec_\S+$", done.stdout, re.MULTILINE):
        whose = words[2] if words[:2] == ["user", "add"] else "ann" if "--init" in words else os.environ["WALK_AS"]
        (_walk() / f"{whose}.token").write_text(found[0], encoding="utf-8")
    return done.returncode


def _walk() -> Path:
    return Path(os.environ["WALK"])


def _replica(name: str) -> dict[str, str]:
    """Return the environment of a replica, with the address that the page's block has written."""
    written = (_walk() / "machine/docs/deploy/secrets/database_url").read_text(encoding="utf-8")
    kept = _walk() / "database_url"
    kept.write_text(written.replace("@postgres:5432", f"@127.0.0.1:{os.environ['PGPORT']}"), encoding="utf-8")
    ours = {"DATABASE_URL_FILE": str(kept), "CHROMA_URL": os.environ["WALK_CHROMA"], "DAEMON": "0"}
    return {f"RECOLLECT_{key}": text for key, text in (ours | {"HOME": str(_walk() / name)}).items()}


def _start_replica(name: str) -> None:
    port = os.environ["WALK_PORTS"].split()[REPLICAS.index(name)]
    command = [str(PROGRAMS / "recollect"), "serve", "--host", "127.0.0.1", "--port", port, "--behind-proxy"]
    _start(command, _replica(name), name, f"http://127.0.0.1:{port}/readyz")


def _start(command: list[str], more: dict[str, str], name: str, address: str) -> None:
    """Start a process that outlives this one, and wait until it answers."""
    with (_walk() / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(command, env=os.environ | more, stdout=log, stderr=log, start_new_session=True)
    (_walk() / f"{name}.pid").write_text(str(process.pid), encoding="utf-8")
    end = time.monotonic() + PATIENCE
    while not _answers(address):
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"{name} does not answer: {(_walk() / f'{name}.log').read_text()[-1_000:]}")
        time.sleep(0.1)


def _stop(file: Path) -> None:
    """End the process of a file, and wait for it."""
    if not file.exists():
        return
    pid = int(file.read_text(encoding="utf-8"))
    subprocess.run(["kill", str(pid)], capture_output=True)
    while Path(f"/proc/{pid}/status").exists() and "zombie" not in Path(f"/proc/{pid}/status").read_text():
        time.sleep(0.05)
    file.unlink()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _lay_programs(folder: Path) -> None:
    folder.mkdir()
    for name in ("docker", "helm", "kubectl", "pip", "chroma", "recollect"):
        call = shlex.join([sys.executable, str(Path(__file__).resolve()), "--stand-in", name])
        (folder / name).write_text(f'#!/bin/sh\nexec {call} -- "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def main(keep: bool = typer.Option(False, help="Keep the folder with the log of each block.")) -> None:
    """Run the blocks of docs/deploy.md and docs/deploy/upkeep.md; ends with 1 where one fails or is not known."""
    if found := list(unknown()):
        sys.exit("walk: " + "; ".join(found))
    folder = Path(tempfile.mkdtemp(prefix="recollect-walk-"))
    with ExitStack() as stack:
        walk = Walk(folder, stack)
        out.print(walk.proxy())
        for block, text in zip(BLOCKS, [*blocks(DEPLOY), *blocks(UPKEEP)], strict=True):
            if block.why:
                walk.rows.append((block.page, block.first, "", f"not run: {block.why}", ""))
            else:
                walk.run(block, text)
        walk.run(AFTER, f"export RECOLLECT_URL=https://memory.example RECOLLECT_TOKEN=…\n{AFTER.first}\n")
    table = Table("page", "block", "typed by", "ended", "left out")
    for row in walk.rows:
        table.add_row(*map(escape, row))
    out.print(table)
    if keep:
        out.print(folder)
    else:
        shutil.rmtree(folder)
    bad = [row for row in walk.rows if row[3] != "well" and not row[3].startswith("not run")]
    raise typer.Exit(bool(bad))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stand-in"]:
        sys.exit(stand_in(sys.argv[2], sys.argv[4:]))
    typer.run(main)
