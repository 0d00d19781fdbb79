"""Hermes: its own loader finds the provider as a plugin, and its own manager drives it through sessions and tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from run_operations import token

LIBRARY = Path(sys.prefix) / "hermes"
"""Where `scripts/setup` puts Hermes, apart from all else: it brings modules of such names as `tools` and `utils`."""
PLUGIN = '"""A MemoryProvider over Recollect."""\n\nfrom recollect.frameworks.hermes import register as register\n'
DRIVER = """
import json, sys
from agent.memory_manager import MemoryManager
from plugins.memory import discover_memory_providers, load_memory_provider

told = {"found": [name for name, _, there in discover_memory_providers() if there and name == "recollect"]}
manager = MemoryManager()
manager.add_provider(load_memory_provider("recollect"))
manager.initialize_all("s1", platform="cli", agent_context=sys.argv[1])
told["names"] = sorted(manager.get_all_tool_names())
told["prompt"] = manager.build_system_prompt()
call = lambda name, **args: json.loads(manager.handle_tool_call(name, args))
told["stored"] = call("recollect_remember", content="Deploys go out on Tuesdays.", tags=["deploy"])
told["secret"] = call("recollect_remember", content=sys.argv[2])
told["unknown"] = call("recollect_recall", question="x")
told["recalled"] = call("recollect_recall", query="when do deploys go out?")
told["before"] = manager.prefetch_all("when do deploys go out?")
told["nothing"] = manager.prefetch_all("quarterly revenue of the shipyard")
manager.on_memory_write("add", "user", "The user likes short answers.")
manager.sync_all("We decided that the port of the gateway is 9090, never 8080.", "Noted.", session_id="s1")
told["flushed"] = manager.flush_pending(timeout=60)
manager.on_pre_compress([])
manager.on_session_switch("s2", parent_session_id="s1")
manager.on_session_end([])
told["forgotten"] = call("recollect_forget", id=told["stored"]["id"])
manager.shutdown_all()
print(json.dumps(told))
"""
AFTERWARDS = """
import json, recollect
with recollect.connect() as memory:
    kept = [[str(one.scope), one.content] for one in memory.list_memories(limit=100).memories]
    sessions = {one.session_id: [one.agent, one.ended_at is not None] for one in memory.list_sessions().sessions}
    print(json.dumps({"kept": kept, "sessions": sessions}))
"""


def ran(code: str, environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Run a program with Hermes on its path and return what it prints."""
    asked = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(asked, env=environment, cwd=environment["HERMES_HOME"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.fixture
def place(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Return the environment of a Hermes whose home has our plugin."""
    plugin = tmp_path / "hermes" / "plugins" / "recollect"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(PLUGIN, encoding="utf-8")
    path = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), str(LIBRARY))))
    return environment | {"PYTHONPATH": path, "HERMES_HOME": str(tmp_path / "hermes")}


def test_hermes_drives_the_provider(place: dict[str, str]) -> None:
    """Found as a plugin, it offers tools, puts memories before a turn, keeps what was written and said, and ends."""
    told = ran(DRIVER, place, "primary", f"token: {token()}")
    assert told["found"] == ["recollect"]
    assert told["names"] == ["recollect_forget", "recollect_recall", "recollect_remember"]
    assert "Recollect keeps memories across sessions." in told["prompt"]
    assert told["stored"]["outcome"] == "stored"
    assert told["secret"]["error"].startswith("Secret detection: ")
    assert told["unknown"]["error"].startswith("Missing query")
    assert [hit["content"] for hit in told["recalled"]["memories"]] == ["Deploys go out on Tuesdays."]
    assert "Deploys go out on Tuesdays." in told["before"]
    assert (told["nothing"], told["flushed"], told["forgotten"]["outcome"]) == ("", True, "deleted")
    after = ran(AFTERWARDS, place)
    assert ["personal", "The user likes short answers."] in after["kept"]
    assert any("9090" in content for _, content in after["kept"])
    assert after["sessions"] == {"s1": ["hermes", False], "s2": ["hermes", True]}


@pytest.mark.full
def test_a_subagent_only_reads(place: dict[str, str]) -> None:
    """Where Hermes runs no primary agent, no turn is kept and no session begins; a call of the model still counts."""
    ran(DRIVER, place, "subagent", f"token: {token()}")
    assert ran(AFTERWARDS, place) == {"kept": [], "sessions": {}}
