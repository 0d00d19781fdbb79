"""Write what registries and agents read about Recollect: `server.json`, the marketplace, plugins and extension.

Version, name, licence, description and repository come from the package; events, commands and advice are those that
`install` writes. The owner of the repository on GitHub is the one who may publish in MCP's registry.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import recollect
from recollect.doors.agents import passage
from recollect.doors.agents.agents import Agent, agents
from recollect.doors.agents.entry import NAME
from recollect.doors.agents.hooks import with_hooks
from recollect.setting_texts import variable
from recollect.settings import Settings

ROOT: Final = Path(__file__).resolve().parent.parent
PROJECT: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY: Final[str] = PROJECT.get("urls", {}).get("Repository", "")
"""The address of the repository, empty until there is one."""
_ON_GITHUB: Final = re.match(r"https://github\.com/([^/]+)/[^/]+$", REPOSITORY)
REGISTERED: Final = f"io.github.{_ON_GITHUB[1] if _ON_GITHUB else NAME}/{PROJECT['name']}"
"""The name in MCP's registry. README repeats it, as the registry looks there for the owner's consent."""
SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

_AGENTS: Final = "src/recollect/doors/agents"
_PLUGIN, _EXTENSION = f"{_AGENTS}/plugin", f"{_AGENTS}/extension"
_CODEX_HOOKS: Final = "hooks/codex.json"
_OWNER: Final = {"name": "The Recollect authors"}
_SENTENCE: Final = (
    "Durable, searchable memory: learns from your sessions and puts what is relevant before your prompts."
)
_SKILL: Final = """---
name: memory
description: Recall what was learnt in earlier sessions, and remember decisions, preferences, facts and fixes. Use it \
at the start of a task, before deciding, and when something will matter again.
---

"""
_ASKED_FOR: Final = ("home", "user", "team", "project", "url", "token")


def server() -> dict[str, Any]:
    """Return what MCP's registry lists: the package, how it is started, and the variables a person may set."""
    fields = Settings.model_fields
    kinds: dict[str, dict[str, Any]] = {"home": {"format": "filepath"}, "token": {"isSecret": True}}
    variables = [
        {"name": variable(name), "description": fields[name].description} | kinds.get(name, {}) for name in _ASKED_FOR
    ]
    package = {
        "registryType": "pypi",
        "identifier": PROJECT["name"],
        "version": recollect.__version__,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "mcp"}],
        "environmentVariables": variables,
    }
    return {
        "$schema": SCHEMA,
        "name": REGISTERED,
        "title": NAME.capitalize(),
        "description": PROJECT["description"],
        "version": recollect.__version__,
        **({"repository": {"url": REPOSITORY, "source": "github"}} if _ON_GITHUB else {}),
        "packages": [package],
    }


def readme() -> str:
    """Return README with the line in which the registry looks for the server's name, by which the owner agrees."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"<!-- mcp-name: \S+ -->", f"<!-- mcp-name: {REGISTERED} -->", text)


def marketplace() -> dict[str, Any]:
    """Return the catalog that Claude Code and Codex read from a checkout or a repository."""
    plugin = {"name": NAME, "source": f"./{_PLUGIN}", "description": _SENTENCE, "category": "productivity"}
    return {"name": NAME, "description": PROJECT["description"], "owner": _OWNER, "plugins": [plugin]}


def manifest() -> dict[str, Any]:
    """Return what Claude Code reads of the plugin."""
    return {
        "name": NAME,
        "version": recollect.__version__,
        "description": _SENTENCE,
        "author": _OWNER,
        "license": PROJECT["license"],
        "keywords": PROJECT["keywords"],
    }


def codex_manifest() -> dict[str, Any]:
    """Return what Codex reads of the same plugin, with hooks of its own."""
    parts = {"skills": "./skills/", "mcpServers": _servers(agents()["codex"]), "hooks": f"./{_CODEX_HOOKS}"}
    interface = {"displayName": NAME.capitalize(), "shortDescription": PROJECT["description"]}
    return manifest() | parts | {"interface": interface | {"category": "Productivity"}}


def extension() -> dict[str, Any]:
    """Return what Gemini CLI reads of the extension; its hooks stand in a file of a fixed name."""
    return {
        "name": NAME,
        "version": recollect.__version__,
        "description": _SENTENCE,
        "mcpServers": _servers(agents()["gemini-cli"]),
        "contextFileName": "GEMINI.md",
    }


def hooks(name: str) -> str:
    """Return the hooks of an agent as `install` writes them, by the program's bare name."""
    form = agents()[name].hooks
    events = form.events if form else ()
    commands = {event: f"{NAME} hook {event} --agent {name}" for event in events}
    return with_hooks("", form, commands) if form else ""


def skill() -> str:
    """Return the advice of the instruction files as a skill."""
    return f"{_SKILL}{passage.TEXT.replace('## Memory', '# Memory')}\n"


def _servers(agent: Agent) -> dict[str, Any]:
    return {NAME: {**{key: one for key, one in agent.entry.items() if key != "type"}, "command": NAME, "args": ["mcp"]}}


def _json(made: dict[str, Any]) -> str:
    return json.dumps(made, ensure_ascii=False, indent=2) + "\n"


FILES: Final[dict[str, Callable[[], str]]] = {
    "server.json": lambda: _json(server()),
    "README.md": readme,
    ".claude-plugin/marketplace.json": lambda: _json(marketplace()),
    f"{_PLUGIN}/.claude-plugin/plugin.json": lambda: _json(manifest()),
    f"{_PLUGIN}/.codex-plugin/plugin.json": lambda: _json(codex_manifest()),
    f"{_PLUGIN}/.mcp.json": lambda: _json({"mcpServers": _servers(agents()["claude-code"])}),
    f"{_PLUGIN}/hooks/hooks.json": lambda: hooks("claude-code"),
    f"{_PLUGIN}/{_CODEX_HOOKS}": lambda: hooks("codex"),
    f"{_PLUGIN}/skills/memory/SKILL.md": skill,
    f"{_EXTENSION}/gemini-extension.json": lambda: _json(extension()),
    f"{_EXTENSION}/hooks/hooks.json": lambda: hooks("gemini-cli"),
    f"{_EXTENSION}/GEMINI.md": lambda: f"{passage.TEXT.replace('## Memory', '# Memory')}\n",
}

if __name__ == "__main__":
    for file, write in FILES.items():
        (ROOT / file).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / file).write_text(write(), encoding="utf-8")
        print(file)
