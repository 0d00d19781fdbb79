"""opencode: its entry in either file, and its program of hooks, which a real Node runs against the real command."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright._impl._driver import compute_driver_executable

from file_transfer import contents
from recollect.doors.agents.hooks import found_hooks
from stand_in_daemon import http, standing_in

Typed = Callable[..., Any]
FOLDER = ".config/opencode"
PLUGIN = f"{FOLDER}/plugins/recollect.js"
SESSION = """
const { default: plugin } = await import(process.argv[1])
const prompts = []
const client = { session: { prompt: async (one) => { prompts.push(one); throw new Error("busy") } } }
const hooks = await plugin.server({ client, directory: process.argv[2] })
const id = { sessionID: "ses_1" }
await hooks.event({ event: { type: "session.created", properties: { info: { id: "ses_1" } } } })
await hooks.event({ event: { type: "session.created", properties: { info: { id: "ses_2", parentID: "ses_1" } } } })
const parts = [{ id: "prt_1", type: "text", text: "When do we ship?" }]
const message = { id: "msg_1", agent: "plan", model: { providerID: "p", modelID: "m" } }
await hooks["chat.message"](id, { message, parts })
await hooks["chat.message"]({ sessionID: "ses_2" }, { message: { id: "msg_2" }, parts: [{ ...parts[0] }] })
const output = { title: "", output: "FAILED", metadata: { exit: 1 } }
await hooks["tool.execute.after"]({ ...id, tool: "bash", args: { command: "make" } }, output)
await hooks["experimental.text.complete"](id, { text: "We ship on Fridays." })
await hooks["experimental.session.compacting"](id, { context: [] })
await hooks.event({ event: { type: "session.idle", properties: id } })
const ask = prompts[0].body.parts.map((one) => ({ ...one, id: "prt_9" }))
await hooks["chat.message"](id, { message: { id: "msg_3" }, parts: ask })
await hooks["experimental.text.complete"](id, { text: "I stored it." })
await hooks.event({ event: { type: "session.idle", properties: id } })
await hooks["experimental.text.complete"](id, { text: "Bye." })
await hooks.dispose()
console.log(JSON.stringify({ parts, output: output.output, prompts }))
"""


def test_the_entry_goes_where_opencode_reads(typing: Typed, home: Path) -> None:
    """Program and arguments are one list, variables have its own name, and the file is the one that is there."""
    (home / FOLDER).mkdir(parents=True)
    file = home / FOLDER / "opencode.jsonc"
    file.write_text('{\n  // mine\n  "theme": "dark"\n}\n')
    assert typing("install", "opencode", "--yes", RECOLLECT_TEAM="crew").code == 0
    text = file.read_text()
    entry = json.loads(text.replace("// mine", ""))["mcp"]["recollect"]
    program = entry["command"][0]
    assert Path(program).name == "recollect"
    assert entry == {"type": "local", "command": [program, "mcp"], "environment": {"RECOLLECT_TEAM": "crew"}}
    assert "// mine" in text
    assert not (home / FOLDER / "opencode.json").exists()
    assert typing("uninstall", "opencode", "--yes").code == 0
    assert contents(home) == {f"{FOLDER}/opencode.jsonc": b'{\n  // mine\n  "theme": "dark"\n}\n'}


def test_an_entry_of_before_keeps_its_options(typing: Typed, home: Path) -> None:
    """Another program is replaced by this one; what stood behind `mcp`, and what else it has, stays."""
    (home / FOLDER).mkdir(parents=True)
    old = {"type": "local", "command": ["uvx", "recollect", "mcp", "--toolset", "store"], "environment": {"A": "1"}}
    (home / FOLDER / "opencode.json").write_text(json.dumps({"mcp": {"recollect": old}}))
    assert typing("install", "opencode", "--yes").code == 0
    entry = json.loads((home / FOLDER / "opencode.json").read_text())["mcp"]["recollect"]
    assert (entry["command"][1:], entry["environment"]) == (["mcp", "--toolset", "store"], {"A": "1"})
    assert entry["command"][0].endswith("/recollect")


def test_a_program_of_somebody_else_is_left_alone(typing: Typed, home: Path) -> None:
    """A file of that name that is not ours is named, and nothing is written."""
    (home / PLUGIN).parent.mkdir(parents=True)
    (home / PLUGIN).write_text("export default {}\n")
    before = contents(home)
    ended = typing("install", "opencode", "--yes")
    assert (ended.code, str(home / PLUGIN) in ended.err) == (2, True)
    assert contents(home) == before


def test_an_older_program_is_brought_up_to_date(typing: Typed, home: Path) -> None:
    """A second installation writes the program of this version, with `doctor` content before and after."""
    typing("install", "opencode", "--yes")
    now = (home / PLUGIN).read_text()
    (home / PLUGIN).write_text(now.replace("LIMIT = 3000", "LIMIT = 9"))
    assert set(found_hooks((home / PLUGIN).read_text())) == set(found_hooks(now)) != set()
    typing("install", "opencode", "--yes")
    assert (home / PLUGIN).read_text() == now
    typing("uninstall", "opencode", "--yes")
    assert contents(home) == {}


@pytest.mark.slow
def test_a_session_is_reported_and_gets_its_memories(typing: Typed, home: Path) -> None:
    """Each event of a session reaches the daemon once, a subagent's none, and memories stand behind the prompt.

    What is asked at the end of a turn goes on in the same session, as the same agent, and is no prompt of a person's.
    """
    data = home / "data"
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    typing("--home", str(data), "install", "opencode", "--yes")
    node, _ = compute_driver_executable()
    with standing_in(data, answered) as taken:
        done = subprocess.run(
            [node, "--input-type=module", "-e", SESSION, str(home / PLUGIN), str(home)],
            capture_output=True,
            env=environment,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    names = ["session:start", "prompt:submit", "tool:post", "session:checkpoint", *["turn:end"] * 3, "session:end"]
    assert [one["path"].rpartition("/")[2] for one in taken] == names
    assert {one["fields"]["session_id"] for one in taken} == {"ses_1"}
    assert {one["client"]["folder"] for one in taken} == {str(home)}
    assert (taken[2]["fields"]["tool"], taken[2]["fields"]["failed"]) == ("Bash", True)
    turns = [(one["fields"]["output"], one["fields"]["continued"]) for one in taken[4:7]]
    assert turns == [("We ship on Fridays.", False), ("I stored it.", True), ("Bye.", True)]
    said = json.loads(done.stdout)
    [asked, added] = said["parts"]
    assert (added["synthetic"], added["messageID"], added["id"] > asked["id"]) == (True, "msg_1", True)
    assert added["text"] == "memories for session:start\n\nmemories for prompt:submit"
    assert said["output"] == "FAILED\n\nmemories for tool:post"
    [gone_on] = said["prompts"]
    assert (gone_on["path"], gone_on["query"]) == ({"id": "ses_1"}, {"directory": str(home)})
    assert (gone_on["body"]["agent"], gone_on["body"]["model"]) == ("plan", {"providerID": "p", "modelID": "m"})
    assert gone_on["body"]["parts"] == [{"type": "text", "text": "memories for turn:end", "synthetic": True}]


def answered(said: dict[str, Any]) -> bytes:
    """Answer an event as the daemon does, which asks nobody who goes on already."""
    text = "" if said["fields"].get("continued") else f"memories for {said['path'][10:]}"
    return http({"taken": True, "text": text})
