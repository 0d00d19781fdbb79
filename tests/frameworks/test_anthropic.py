"""Anthropic's memory tool: each command answers as the library's own tool on a disk does, and keeps memories."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from anthropic_server import anthropic_server
from recollect import App
from recollect.client.connection import Connection
from recollect.frameworks.anthropic import AsyncMemoryTool, MemoryTool
from run_operations import do, token

_FOLDER = re.compile(r"^\S+(?=\t/\S*$)", re.MULTILINE)
"""The size of a folder in a listing: a disk counts its blocks, we count the bytes in it."""
NOTES = "/memories/notes.md"
TEXT = "one\ntwo\nthree\nfour\nfive\nsix\n"
CALLS = (
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": NOTES, "file_text": "Ada drinks tea.\n"},
    {"command": "str_replace", "path": NOTES, "old_str": "tea", "new_str": "coffee"},
    {"command": "view", "path": "/memories/other.md"},
)


@pytest.fixture(params=["recollect", "disk", "async"])
def tool(request: pytest.FixtureRequest, memory: Connection, tmp_path: Path) -> Callable[..., str]:
    """Return what runs a command: ours, the library's own on a disk, and ours from an event loop."""
    if request.param == "async":
        ours = AsyncMemoryTool(memory)
        return lambda **command: str(anyio.run(partial(answered, ours.call, command)))
    made: BetaAbstractMemoryTool = MemoryTool(memory)
    if request.param == "disk":
        made = BetaLocalFilesystemMemoryTool(str(tmp_path / "reference"))
    return partial(told, made)


def told(tool: BetaAbstractMemoryTool, **command: Any) -> str:
    """Return what the model is told, an error included."""
    try:
        return str(tool.call(command))
    except ToolError as error:
        return f"Error: {error.content}"


async def answered(call: Callable[[Any], Any], command: dict[str, Any]) -> str:
    """Do so for the asynchronous tool."""
    try:
        return str(await call(command))
    except ToolError as error:
        return f"Error: {error.content}"


def create(tool: Callable[..., str], path: str, text: str) -> None:
    """Write a new file."""
    assert tool(command="create", path=path, file_text=text) == f"File created successfully at: {path}"


def test_a_file_is_shown_with_line_numbers(tool: Callable[..., str]) -> None:
    """`view` numbers the lines of a file, all of them or a range."""
    create(tool, NOTES, TEXT)
    whole = tool(command="view", path=NOTES)
    numbers = "\n".join(f"{at:>6}\t{line}" for at, line in enumerate(TEXT.split("\n"), 1))
    assert whole == f"Here's the content of {NOTES} with line numbers:\n{numbers}"
    part = f"Here's the content of {NOTES} with line numbers:\n     2\ttwo\n     3\tthree"
    assert tool(command="view", path=NOTES, view_range=[2, 3]) == part
    assert tool(command="view", path=NOTES, view_range=[6, -1]).endswith("     6\tsix\n     7\t")


def test_a_folder_is_shown_two_levels_deep(tool: Callable[..., str]) -> None:
    """`view` lists files with their sizes and folders, two levels deep, and nothing whose name begins with a dot."""
    create(tool, "/memories/b.md", "x" * 1536)
    create(tool, "/memories/a/b/c/deep.md", "deep")
    create(tool, "/memories/a/z.md", "y" * 2048)
    create(tool, "/memories/a.md", "a")
    create(tool, "/memories/.hidden", "hidden")
    listing = _FOLDER.sub("", tool(command="view", path="/memories"))
    paths = ["/memories", "/memories/a/", "/memories/a/b/", "/memories/a/z.md", "/memories/a.md", "/memories/b.md"]
    header, *lines = listing.split("\n")
    assert header == "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    assert [line.partition("\t")[2] for line in lines] == paths
    sizes = dict(reversed(line.split("\t")) for line in tool(command="view", path="/memories").split("\n")[1:])
    assert [sizes[path] for path in paths[3:]] == ["2K", "1B", "1.5K"]


def test_the_empty_folder_is_shown(tool: Callable[..., str]) -> None:
    """Before anything is written `/memories` can be viewed; no other folder can."""
    header = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    assert tool(command="view", path="/memories").startswith(f"{header}\n")
    missing = "Error: The path /memories/a does not exist. Please provide a valid path."
    assert tool(command="view", path="/memories/a") == missing


def test_a_file_is_not_written_over(tool: Callable[..., str]) -> None:
    """`create` refuses a path at which there is a file, and leaves that as it is."""
    create(tool, NOTES, TEXT)
    assert tool(command="create", path=NOTES, file_text="new") == f"Error: File {NOTES} already exists"
    assert "one" in tool(command="view", path=NOTES)


def test_a_text_is_replaced(tool: Callable[..., str]) -> None:
    """`str_replace` changes one place and shows the lines around it."""
    create(tool, NOTES, TEXT)
    said = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
    lines = "     2\ttwo\n     3\tthree\n     4\tVIER\n     5\tfive\n     6\tsix"
    assert tool(command="str_replace", path=NOTES, old_str="four", new_str="VIER") == said + lines
    assert tool(command="str_replace", path=NOTES, old_str="one\n", new_str="").startswith(f"{said}     1\ttwo")


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("seven", f"Error: No replacement was performed, old_str `seven` did not appear verbatim in {NOTES}."),
        (
            "f",
            "Error: No replacement was performed. Multiple occurrences of old_str `f` in lines: 4, 5. "
            "Please ensure it is unique",
        ),
    ],
)
def test_a_text_must_be_there_once(tool: Callable[..., str], old: str, said: str) -> None:
    """`str_replace` says that a text is absent, or in which lines it stands."""
    create(tool, NOTES, TEXT)
    assert tool(command="str_replace", path=NOTES, old_str=old, new_str="x") == said
    assert tool(command="view", path=NOTES).endswith("     6\tsix\n     7\t")


@pytest.mark.parametrize(("line", "at"), [(0, 1), (3, 4), (6, 7)])
def test_lines_are_inserted(tool: Callable[..., str], line: int, at: int) -> None:
    """`insert` puts a text behind a line, and at 0 before all others."""
    create(tool, NOTES, TEXT)
    assert (
        tool(command="insert", path=NOTES, insert_line=line, insert_text="new\n")
        == f"The file {NOTES} has been edited."
    )
    assert f"{at:>6}\tnew\n" in tool(command="view", path=NOTES)


@pytest.mark.parametrize("line", [-1, 7])
def test_a_line_must_be_there(tool: Callable[..., str], line: int) -> None:
    """`insert` says which lines there are."""
    create(tool, NOTES, TEXT)
    said = f"Error: Invalid `insert_line` parameter: {line}. It should be within the range [0, 6]."
    assert tool(command="insert", path=NOTES, insert_line=line, insert_text="new") == said


@pytest.mark.parametrize("command", ["str_replace", "insert"])
def test_only_a_file_is_edited(tool: Callable[..., str], command: str) -> None:
    """An edit of a folder, or of what is not there, is told apart."""
    create(tool, "/memories/a/b.md", TEXT)
    fields = {"old_str": "one", "new_str": "two", "insert_line": 0, "insert_text": "x"}
    assert tool(command=command, path="/memories/a", **fields) == "Error: The path /memories/a is not a file."
    missing = "Error: The path /memories/c does not exist. Please provide a valid path."
    assert tool(command=command, path="/memories/c", **fields) == missing


def test_files_and_folders_are_deleted(tool: Callable[..., str]) -> None:
    """`delete` takes a file or a folder with all in it, and never the root."""
    create(tool, NOTES, TEXT)
    create(tool, "/memories/a/b.md", TEXT)
    assert tool(command="delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert tool(command="delete", path=NOTES) == f"Successfully deleted {NOTES}"
    assert tool(command="delete", path=NOTES) == f"Error: The path {NOTES} does not exist"
    assert tool(command="delete", path="/memories") == "Error: Cannot delete the /memories directory itself"
    assert "does not exist" in tool(command="view", path="/memories/a/b.md")


def test_files_and_folders_are_renamed(tool: Callable[..., str]) -> None:
    """`rename` moves a file or a folder to a path that is free, also into a new folder, and never the root."""
    create(tool, NOTES, TEXT)
    create(tool, "/memories/a/b.md", "two")
    to = "/memories/new/notes.md"
    assert tool(command="rename", old_path=NOTES, new_path=to) == f"Successfully renamed {NOTES} to {to}"
    assert tool(command="rename", old_path="/memories/a", new_path="/memories/c") == (
        "Successfully renamed /memories/a to /memories/c"
    )
    assert "two" in tool(command="view", path="/memories/c/b.md")
    taken = f"Error: The destination {to} already exists"
    assert tool(command="rename", old_path="/memories/c/b.md", new_path=to) == taken
    missing = f"Error: The path {NOTES} does not exist"
    assert tool(command="rename", old_path=NOTES, new_path="/memories/d") == missing
    assert tool(command="rename", old_path="/memories", new_path="/memories/d") == (
        "Error: Cannot rename the /memories directory itself"
    )


@pytest.mark.parametrize("command", ["view", "create", "delete"])
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/etc/passwd", "Error: Path must start with /memories, got: /etc/passwd"),
        ("/memories/../secrets", "Error: Path /memories/../secrets would escape /memories directory"),
    ],
)
def test_nothing_outside_is_reached(tool: Callable[..., str], command: str, path: str, said: str) -> None:
    """A path that leaves `/memories` is refused whatever the command."""
    assert tool(command=command, path=path, file_text="x") == said


def test_a_refusal_of_ours_is_told(memory: Connection) -> None:
    """What only we refuse reaches the model as an error of its call: secrets, files of none and of over 100 KB."""
    tool = MemoryTool(memory)
    assert told(tool, command="create", path=NOTES, file_text=token()).startswith("Error: Secret detection: ")
    assert "must hold some text" in told(tool, command="create", path=NOTES, file_text=" \n")
    assert "at most 102400 bytes (100 KB)" in told(tool, command="create", path=NOTES, file_text="x" * 102_401)
    create(partial(told, tool), "/memories/a/b", "x")
    assert "exists already" in told(tool, command="create", path="/memories/a", file_text="x")


def test_all_memory_is_cleared(memory: Connection, app: App) -> None:
    """`clear_all_memory` deletes the files of the tool and no other memory, on both tools."""
    tool = MemoryTool(memory)
    do(app, "remember", content="The keel is iron.")
    for clear in (tool.clear_all_memory, partial(anyio.run, AsyncMemoryTool(memory).clear_all_memory)):
        create(partial(told, tool), NOTES, TEXT)
        assert clear() == "All memory cleared"
        assert clear() == "All memory cleared"
    assert [one.key for one in do(app, "list_memories").memories] == [None]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_tool_runner_runs_it(memory: Connection, app: App, kind: str) -> None:
    """The library's tool runner offers the tool, runs each call of the model and gives it the result."""
    asked: dict[str, Any] = {"model": "claude", "max_tokens": 500, "messages": [{"role": "user", "content": "Hello"}]}
    with anthropic_server(*CALLS) as server:
        if kind == "sync":
            with Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
                final = client.beta.messages.tool_runner(tools=[MemoryTool(memory)], **asked).until_done()
        else:

            async def run() -> Any:
                async with AsyncAnthropic(base_url=server.url, api_key="none", max_retries=0) as client:
                    return await client.beta.messages.tool_runner(tools=[AsyncMemoryTool(memory)], **asked).until_done()

            final = anyio.run(run)
    assert final.content[0].text == "Done."
    assert server.asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert [error for _, error in server.results] == [False, False, False, True]
    (hit,) = do(app, "recall", query="what does Ada drink?").hits
    assert (hit.memory.key, hit.memory.content) == (NOTES, "Ada drinks coffee.\n")
