"""The main job, shown through a real MCP client over stdio: remember, recall, refuse, forget, reopen."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from rich.console import Console
from rich.panel import Panel

console = Console(highlight=False)
SERVER = str(Path(sys.executable).with_name("recollect"))


class Unexpected(Exception):
    """The demo did not go as it must."""


def server(home: Path) -> StdioServerParameters:
    environment = {"RECOLLECT_HOME": str(home), "RECOLLECT_USER": "ada", "RECOLLECT_PROJECT": "demo"}
    return StdioServerParameters(command=SERVER, args=["mcp"], env=environment)


async def ask(client: Client, why: str, expect: str, **arguments: Any) -> Any:
    """Call the tool, show question and answer, and stop the demo when the answer is not what it must be."""
    body = (await client.call_tool("memory", arguments)).structured_content
    while any(word in note for note in body.get("notes", []) for word in ("still loading", "no embeddings yet")):
        console.print(f"[dim]{body['notes'][0]} Asking again.[/dim]")
        await anyio.sleep(1)
        body = (await client.call_tool("memory", arguments)).structured_content
    found = body.get("memories", [])
    shown = [f"{one['id']}: {one['content']}  [dim]similarity {one['similarity']}[/dim]" for one in found[:3]]
    shown = [*(shown or [body["message"]]), *(f"[dim]{note}[/dim]" for note in body.get("notes", []))]
    call = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    console.print(Panel("\n".join(shown), title=f"[bold]{why}[/bold]", subtitle=f"memory({call})", title_align="left"))
    first = found[0]["content"] if found else body["message"]
    if expect not in first:
        raise Unexpected(f"expected {expect!r}, got {first!r}")
    return body


async def first_process(home: Path) -> str:
    async with Client(server(home)) as client:
        console.print(f"[dim]tools: {[tool.name for tool in (await client.list_tools()).tools]}[/dim]")
        stored = "Memory stored successfully with ID"
        for text in (
            "We use TypeScript strict mode with noImplicitAny",
            "Production deploys go out on Tuesday mornings, never before a weekend",
            "Integration tests run against a disposable PostgreSQL in Kubernetes",
        ):
            await ask(client, "remember", stored, action="remember", content=text, fact_type="decision")
        body = await ask(client, "remember", stored, action="remember", content="The mascot is a quokka named Zerline")
        await ask(client, "recall by meaning", "Tuesday", action="recall", query="when do we ship releases?")
        await ask(client, "recall by exact identifier", "noImplicitAny", action="recall", query="noImplicitAny")
        await ask(client, "recall by a misspelt word", "Kubernetes", action="recall", query="kuberntes")
        await ask(client, "recall what is not there", "Nothing relevant", action="recall", query="banana bread recipe")
        key = {"action": "remember", "key": "package_manager"}
        await ask(client, "remember by key", stored, **key, content="npm installs the packages")
        await ask(client, "the same key updates", "updated", **key, content="pnpm installs the packages")
        token = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
        result = await client.call_tool("memory", {"action": "remember", "content": f"the deploy token is {token}"})
        text = result.content[0].text
        console.print(Panel(text, title="[bold]a secret is refused[/bold]", title_align="left", border_style="red"))
        if not result.is_error or token in str(result):
            raise Unexpected("the secret got through")
        await ask(client, "forget", "deleted", action="forget", id=body["id"])
        return str(body["id"])


async def second_process(home: Path) -> None:
    async with Client(server(home)) as client:
        await ask(client, "a new process, the same store", "pnpm", action="recall", query="package manager")
        await ask(client, "and what was forgotten stays so", "Nothing", action="recall", query="quokka named Zerline")


def no_trace(home: Path, memory_id: str) -> None:
    """Look for the forgotten memory in SQL, in the text index, in Chroma, and in the bytes of the files."""
    import chromadb

    with closing(sqlite3.connect(home / "memory.db")) as database:
        rows = database.execute("SELECT count(*) FROM memory WHERE id = ?", [memory_id]).fetchone()[0]
        words = database.execute("SELECT count(*) FROM memory_text WHERE memory_text MATCH 'zerline'").fetchone()[0]
        names = {one[0] for one in database.execute("SELECT text FROM word")}
    chroma = chromadb.PersistentClient(str(home / "chroma"), settings=chromadb.Settings(_env_file=None))
    ids = [name for one in chroma.list_collections() for name in one.get(include=[])["ids"]]
    vectors = [name for name in ids if name.startswith(f"{memory_id}.")]
    bytes_ = sum(
        b"erline" in file.read_bytes() for file in home.rglob("*") if file.is_file() and "cache" not in file.parts
    )
    found = f"rows {rows}, text index {words}, vocabulary {'zerline' in names}, vectors {len(vectors)}, files {bytes_}"
    console.print(Panel(found, title="[bold]traces of the forgotten memory[/bold]", title_align="left"))
    if rows or words or vectors or bytes_ or "zerline" in names or not ids:
        raise Unexpected("something of the forgotten memory is left")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder:
        home = Path(folder)
        console.print(f"[dim]store: {home}[/dim]")
        forgotten = anyio.run(first_process, home)
        no_trace(home, forgotten)
        anyio.run(second_process, home)
    console.print("[green]Everything came back, and what was forgotten did not.[/green]")


if __name__ == "__main__":
    try:
        main()
    except BaseExceptionGroup as failed:
        while isinstance(failed, BaseExceptionGroup):
            failed = failed.exceptions[0]
        sys.exit(f"demo: {failed}")
