"""Plugins of Claude Code and Codex, extension of Gemini CLI: by their references, with commands that work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import recollect
from places import ROOT
from recollect.doors import hook_contracts
from recollect.doors.agents import passage
from recollect.doors.agents.agents import agents
from recollect.doors.agents.hooks import found_hooks

CLAUDE = agents()["claude-code"]
PLUGIN = CLAUDE.plugin_folder or Path()
PATHS = {"type": "string", "pattern": r"^\./(?!.*\.\.)"}
MANIFEST = {  # code.claude.com/docs/en/plugins/manifest-reference
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
        "description": {"type": "string"},
        "author": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {name: {"type": "string"} for name in ("name", "email", "url")},
        },
        "homepage": {"type": "string", "format": "uri"},
        "repository": {"type": "string", "format": "uri"},
        "license": {"type": "string"},
        "keywords": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        **dict.fromkeys(("commands", "agents", "skills", "hooks", "mcpServers"), PATHS),
    },
}
HOOKS = {  # code.claude.com/docs/en/hooks
    "type": "object",
    "additionalProperties": False,
    "required": ["hooks"],
    "properties": {
        "description": {"type": "string"},
        "hooks": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["hooks"],
                    "properties": {
                        "matcher": {"type": "string"},
                        "hooks": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "additionalProperties": False,
                                "required": ["type", "command"],
                                "properties": {
                                    "type": {"const": "command"},
                                    "command": {"type": "string", "minLength": 1},
                                    "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 600},
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
EVENTS = {  # those of the reference that a hook may stand for
    *("SessionStart", "Setup", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse"),
    *("PostToolUseFailure", "Notification", "SubagentStart", "SubagentStop", "Stop", "PreCompact", "SessionEnd"),
}


def read(*parts: str) -> Any:
    """Read a file of the plugin as JSON."""
    return json.loads(PLUGIN.joinpath(*parts).read_text(encoding="utf-8"))


def test_the_manifest_is_by_the_reference() -> None:
    """It is where the reference wants it, has only known fields, and every file that it names is there."""
    manifest = read(".claude-plugin", "plugin.json")
    jsonschema.validate(manifest, MANIFEST)
    assert manifest["name"] == "recollect"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert manifest["license"] == project["license"]
    named = [manifest[one] for one in ("commands", "agents", "skills", "hooks", "mcpServers") if one in manifest]
    assert all((PLUGIN / one).exists() for one in named)
    assert [one.name for one in (PLUGIN / ".claude-plugin").iterdir()] == ["plugin.json"]  # all else stands outside


def test_its_hooks_are_by_the_reference() -> None:
    """The file has the form of the reference, and only events that it knows and that are understood."""
    found = read("hooks", "hooks.json")
    jsonschema.validate(found, HOOKS)
    assert set(found["hooks"]) <= EVENTS & set(hook_contracts.CONTRACTS["claude-code"].rules)


def test_codex_finds_its_own_hooks_in_the_same_folder() -> None:
    """Its manifest names a file of hooks with its events, so that those of Claude Code do not count for it."""
    manifest = read(".codex-plugin", "plugin.json")
    assert all((PLUGIN / manifest[one]).exists() for one in ("skills", "hooks"))
    text = (PLUGIN / manifest["hooks"]).read_text(encoding="utf-8")
    jsonschema.validate(json.loads(text), HOOKS)
    assert all(command.endswith("--agent codex") for commands in found_hooks(text).values() for command in commands)
    assert set(manifest["mcpServers"]) == {"recollect"}


def test_the_extension_is_by_the_reference() -> None:
    """It is as Gemini CLI wants it: every server but for `trust`, and hooks in the file of its fixed name."""
    folder = agents()["gemini-cli"].plugin_folder or Path()
    manifest = json.loads((folder / "gemini-extension.json").read_text(encoding="utf-8"))
    assert (manifest["name"], manifest["version"]) == ("recollect", recollect.__version__)
    assert [one for one in manifest["mcpServers"].values() if "trust" in one] == []
    assert (folder / manifest["contextFileName"]).is_file()
    found = found_hooks((folder / "hooks" / "hooks.json").read_text(encoding="utf-8"))
    assert set(found) <= set(hook_contracts.CONTRACTS["gemini-cli"].rules)


def test_its_skill_says_what_the_passage_says() -> None:
    """The skill has a name and a description by which it is found, and the advice of the instruction files."""
    [skill] = (PLUGIN / "skills").iterdir()
    found = re.fullmatch(r"---\n(.*?)---\n\n(.*)", (skill / "SKILL.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    about = yaml.safe_load(found[1])
    assert set(about) == {"name", "description"}
    assert about["name"] == skill.name
    assert len(about["description"]) <= 1_024
    assert found[2].strip() == passage.TEXT.replace("## Memory", "# Memory")


@pytest.mark.parametrize("event", CLAUDE.hooks.events if CLAUDE.hooks else ())
def test_its_commands_run(event: str, tmp_path: Path) -> None:
    """Each command, run as the agent runs it, ends with 0 and says nothing where there is no daemon to ask."""
    [command] = found_hooks((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))[event]
    search = f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    assert shutil.which("recollect", path=search)
    environment = {"PATH": search, "HOME": str(tmp_path), "RECOLLECT_DAEMON": "0"}
    environment |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    said = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": event, "prompt": "Go"}
    done = subprocess.run(
        ["sh", "-c", command], input=json.dumps(said).encode(), capture_output=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_print_says_where_it_lies(typing: Callable[..., Any]) -> None:
    """`recollect install claude-code --print` names the folder and how it is loaded; other agents have none."""
    assert typing("install", "claude-code", "--print", "--json").json["plugin"] == str(PLUGIN)
    assert f"`claude --plugin-dir {PLUGIN}`" in typing("install", "claude-code", "--print").out
    extension = agents()["gemini-cli"].plugin_folder
    assert f"`gemini extensions install {extension}`" in typing("install", "gemini-cli", "--print").out
    assert "plugin" not in typing("install", "cursor", "--print", "--json").json
