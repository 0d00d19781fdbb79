"""The agents: how each is installed, led to the scripted model, and asked a prompt without a terminal."""

# ruff: noqa: ARG002 - not every agent needs all that its command may depend on

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from agent_drivers.place import Ended, Place, before_long
from agent_drivers.protocols import Step

_KEY: Final = "no-key"
_NPM: Final = ("npm", "install", "--no-audit", "--no-fund")
_FAILS: Final = "ls /there/is/no/such/folder"
_COMPACTED: Final = "produced a summary of its thinking process"  # what Codex puts before the summary
DEFERRED: Final = "mcp__recollect: Recollect keeps memories"  # what Codex tells of tools that its model has to look for
_FRAMEWORKS: Final = ("langchain-mcp-adapters", "langchain-openai", "langchain", "pydantic-ai-slim", "openai-agents")


@dataclass(frozen=True)
class Session:
    """What came of one prompt: how the agent ended, what its tools answered, and what its model was sent."""

    ended: Ended
    results: tuple[str, ...]
    """The answers of the tools."""
    sent: tuple[str, ...]
    """Each request to the model that holds the prompt and offers tools, as JSON without the escapes of HTML.

    One for a title offers none.
    """
    offered: bool
    """Whether the model was offered the tool `memory`, at once, after it looked for it, or named as one to look for."""


class Agent:
    """An agent that asks a model what to do."""

    name: ClassVar[str]
    title: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()
    events: ClassVar[tuple[str, ...]] = ()
    """The hooks that run in a session in which one command works and one fails."""
    turn_end: ClassVar[str] = ""
    """The hook that asks at the end of a turn what was learnt."""
    moment: ClassVar[str] = ""
    """The hook that shows a memory at the moment of a command."""
    failing: ClassVar[str] = _FAILS
    """A command that fails, as the agent's hook tells."""
    installs: ClassVar[bool] = False
    """Whether `recollect install` knows it."""
    lacks: ClassVar[dict[str, str]] = {}
    """Why a case is not tried, by the name of the case."""

    def prepare(self, place: Place) -> None:
        """Write the configuration that leads the agent to the model of this place."""

    def command(self, place: Place, prompt: str, *, resumed: bool = False) -> tuple[list[str], str]:
        """Return the command that asks a prompt, in the latest session if `resumed`, and its standard input."""
        raise AssertionError(prompt)

    def start(
        self,
        place: Place,
        prompt: str,
        steps: Sequence[Step] = (),
        folder: Path | None = None,
        *,
        resumed: bool = False,
    ) -> subprocess.Popen[str]:
        """Ask a prompt in a new session, or in the latest one; the model then takes these steps."""
        place.model.steps[prompt] = tuple(steps)
        command, said = self.command(place, prompt, resumed=resumed)
        return place.start(command, said, folder)

    def finish(self, place: Place, process: subprocess.Popen[str], prompt: str) -> Session:
        """Wait for a session's end."""
        return self.session(place, place.end(process), prompt)

    def session(self, place: Place, ended: Ended, prompt: str) -> Session:
        """Return what came of a prompt."""
        requests = [one for one in place.model.after(prompt) if one.tools]
        results = [text for _, text in requests[-1].results] if requests else []
        offered = any(one.offered("memory") or (one.search and DEFERRED in one.body) for one in requests)
        return Session(ended, tuple(results), tuple(html.unescape(one.body) for one in requests), offered)

    def ask(self, place: Place, prompt: str, steps: Sequence[Step] = (), folder: Path | None = None) -> Session:
        """Run a session with one prompt to its end."""
        return self.finish(place, self.start(place, prompt, steps, folder), prompt)

    def resume(self, place: Place, prompt: str, steps: Sequence[Step] = ()) -> Session:
        """Go on with the latest session by one prompt, to its end."""
        return self.finish(place, self.start(place, prompt, steps, resumed=True), prompt)

    def stay(self, place: Place, prompt: str, steps: Sequence[Step] = ()) -> Session:
        """Run a session with one prompt until the agent does no more by itself, with a window if that takes one."""
        return self.ask(place, prompt, steps)

    def compact(self, place: Place, first: str, second: str) -> Session:
        """Run a session that is compacted after these prompts."""
        raise AssertionError(first + second)

    def version(self, work: Path) -> str:
        """Return the version that is installed."""
        file = work / "npm/node_modules" / self.packages[0] / "package.json"
        return str(json.loads(file.read_text(encoding="utf-8"))["version"])


class ClaudeCode(Agent):
    """Anthropic's, with `-p`."""

    name, title, packages, installs = "claude-code", "Claude Code", ("@anthropic-ai/claude-code",), True
    events = (
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "SessionEnd",
    )
    turn_end, moment = "Stop", "PreToolUse"
    _COMMAND: Final = ("claude", "-p", "--verbose", "--output-format", "stream-json")

    def prepare(self, place: Place) -> None:
        place.variables |= {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": _KEY, "DISABLE_AUTOUPDATER": "1"}
        place.variables |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def command(self, place: Place, prompt: str, *, resumed: bool = False) -> tuple[list[str], str]:
        again = ["--continue"] if resumed else []
        return [*self._COMMAND, *again, "--allowedTools", "Bash,Write"], prompt

    def compact(self, place: Place, first: str, second: str) -> Session:
        sessions = [self.ask(place, first)]
        for said in (second, "/compact"):
            process = place.start([*self._COMMAND, "--continue"], said)
            sessions.append(self.finish(place, process, first))
        return next((one for one in sessions if one.ended.code), sessions[-1])


class Codex(Agent):
    """OpenAI's, with `exec`; its hooks are trusted by an option, as a person does it in a dialog.

    It offers the tool that edits files only to models that it knows. Its hooks do not tell how a command ended, so the
    output has to say that it failed.
    """

    name, title, packages, installs = "codex", "Codex", ("@openai/codex",), True
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    turn_end, moment, failing = "Stop", "PreToolUse", f"{_FAILS} || (echo FAILED; exit 1)"
    _COMMAND: Final = ("codex", "exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "--json")

    def prepare(self, place: Place) -> None:
        place.variables["MODEL_KEY"] = _KEY
        file = place.home / ".codex/config.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(
            'model = "gpt-5.5"\nmodel_provider = "local"\napproval_policy = "never" # no dialog\n'
            'sandbox_mode = "workspace-write"\n\n[model_providers.local]\nname = "local"\n'
            f'base_url = "{place.url}/v1"\nwire_api = "responses"\nenv_key = "MODEL_KEY"\n\n'
            f'[projects."{place.project}"]\ntrust_level = "trusted"\n',
            encoding="utf-8",
        )

    def command(self, place: Place, prompt: str, *, resumed: bool = False) -> tuple[list[str], str]:
        return [*self._COMMAND, *(["resume", "--last"] if resumed else []), prompt], ""

    def compact(self, place: Place, first: str, second: str) -> Session:
        self.ask(place, first)
        place.model.steps |= {second: (Step("shell", {"command": "echo it works"}),), _COMPACTED: ()}
        again = ["-c", "model_auto_compact_token_limit=2000", "resume", "--last", second]
        return self.finish(place, place.start([*self._COMMAND, *again]), second)


class GeminiCli(Agent):
    """Google's, with `-p`."""

    name, title, packages, installs = "gemini-cli", "Gemini CLI", ("@google/gemini-cli",), True
    events = ("SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd")
    turn_end, moment = "AfterAgent", "AfterTool"
    lacks: ClassVar = {"compaction": "without a terminal it has no command to compress; `auto` comes at every turn"}

    def prepare(self, place: Place) -> None:
        place.variables |= {"GEMINI_API_KEY": _KEY, "GOOGLE_GEMINI_BASE_URL": place.url}
        place.variables["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "tools": {"allowed": ["run_shell_command", "write_file"]},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        file = place.home / ".gemini/settings.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    def command(self, place: Place, prompt: str, *, resumed: bool = False) -> tuple[list[str], str]:
        again = ["--resume", "latest"] if resumed else []
        return ["gemini", "--output-format", "json", *again, "-p", prompt], ""


class OpenCode(Agent):
    """opencode, with `run`.

    What it is asked at the end of a turn outlives `run`, so a server has the session there, as a window has.

    In each HOME it installs a package for plugins at its first start, which takes half a minute on a busy machine: here
    that package is installed once, and each HOME has a link to it.
    """

    name, title, packages, installs = "opencode", "opencode", ("opencode-ai",), True
    events = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd")
    turn_end, moment = "Stop", "PostToolUse"
    lacks: ClassVar = {
        "ask-tool": "it calls the tools of MCP servers without asking",
        "compaction": "`run` has no command to compress",
    }

    _PLUGINS: Final = "@opencode-ai/plugin"

    def install_plugins(self, work: Path, update: bool) -> None:
        """Install the package for plugins, of the same version, as opencode itself would."""
        folder, wanted = work / "opencode", f"{self._PLUGINS}@{self.version(work)}"
        if update or not (folder / "node_modules").is_dir():
            folder.mkdir(exist_ok=True)
            _do([*_NPM, "--save-exact", "--prefix", str(folder), wanted], {"PATH": _path(work)})

    def prepare(self, place: Place) -> None:
        place.variables |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        model = {"scripted": {"name": "scripted", "tool_call": True, "limit": {"context": 200_000, "output": 4_000}}}
        options = {"baseURL": f"{place.url}/v1", "apiKey": _KEY}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "local", "options": options, "models": model}
        settings = {"model": "local/scripted", "small_model": "local/scripted", "autoupdate": False}
        settings["permission"] = {"external_directory": "allow"}  # `run` refuses what a person would be asked
        file = place.home / ".config/opencode/opencode.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings | {"provider": {"local": provider}}, indent=2), encoding="utf-8")
        for name in ("package.json", "package-lock.json"):
            shutil.copy(place.work / "opencode" / name, file.parent)
        if not (link := file.parent / "node_modules").exists():
            link.symlink_to(place.work / "opencode/node_modules")

    def command(self, place: Place, prompt: str, *, resumed: bool = False) -> tuple[list[str], str]:
        return ["opencode", "run", "--print-logs", *(["--continue"] if resumed else []), prompt], ""

    def stay(self, place: Place, prompt: str, steps: Sequence[Step] = ()) -> Session:
        place.model.steps[prompt] = tuple(steps)
        before = len(place.hooks())
        server = place.start(["opencode", "serve", "--port", "0"])
        lines = iter(server.stdout or ())
        address = next((line.split()[-1] for line in lines if "listening on" in line), "")
        process = place.start(["opencode", "run", "--attach", address, "--print-logs", prompt])
        ended = place.end(process)

        def over() -> bool:
            turns = [one for one in place.hooks()[before:] if one.event == self.turn_end and one.code is not None]
            return bool(turns) and not turns[-1].asks

        before_long(over)
        server.terminate()
        place.end(server)
        return self.session(place, ended, prompt)


class _WithoutInstall(Agent):
    """An agent for which Recollect has no installation: its configuration is written here, as README says."""

    _HOOKS: Final = "Recollect has no hooks for it"
    lacks: ClassVar = {
        "install": "`recollect install` does not know it; the entry is written by hand",
        "ask-tool": "`recollect install` does not know it",
        **dict.fromkeys(("hooks", "index", "injection", "moment", "failure", "capture", "ask", "drafts"), _HOOKS),
        "compaction": _HOOKS,
        "uninstall": "`recollect install` does not know it",
    }


class Inspector(_WithoutInstall):
    """The MCP Inspector's command line, which has no model: it makes the calls of the script itself."""

    name, title, packages = "inspector", "MCP Inspector", ("@modelcontextprotocol/inspector",)
    lacks: ClassVar = _WithoutInstall.lacks | {"project": "it hands a server none of its own variables"}

    def command(self, place: Place, prompt: str, *, resumed: bool = False) -> tuple[list[str], str]:
        (step,) = place.model.steps[prompt] or (Step(),)
        asked = ["--method", "tools/list"]
        if step.kind:
            pairs = [word for name, value in step.arguments.items() for word in ("--tool-arg", f"{name}={value}")]
            asked = ["--method", "tools/call", "--tool-name", step.kind, *pairs]
        return ["mcp-inspector", "--cli", str(place.recorder), "mcp", *asked], ""

    def finish(self, place: Place, process: subprocess.Popen[str], prompt: str) -> Session:
        ended = place.end(process)
        if '"isError": true' in ended.out:  # it ends as badly as the call
            ended = replace(ended, code=0)
        return Session(ended, (ended.out or ended.err,), (), '"memory"' in ended.out)


class Framework(_WithoutInstall):
    """A library's MCP client with its own loop around a model, in a program of ten lines."""

    def prepare(self, place: Place) -> None:
        place.variables |= {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": f"{place.url}/v1"}
        place.variables["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

    def command(self, place: Place, prompt: str, *, resumed: bool = False) -> tuple[list[str], str]:
        program = Path(__file__).with_name("frameworks.py")
        python = place.work / "python/bin/python"
        return [str(python), "-P", str(program), self.name, str(place.recorder), prompt], ""

    def version(self, work: Path) -> str:
        distribution = {"pydantic-ai": "pydantic-ai-slim"}.get(self.name, self.name)
        code = f"from importlib.metadata import version; print(version({distribution!r}))"
        done = subprocess.run([work / "python/bin/python", "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.strip()


class LangChain(Framework):
    """langchain-mcp-adapters with LangChain's agent."""

    name = title = "langchain-mcp-adapters"


class PydanticAI(Framework):
    """pydantic-ai's agent."""

    name = title = "pydantic-ai"


class OpenAIAgents(Framework):
    """The OpenAI Agents SDK."""

    name = title = "openai-agents"


AGENTS: Final[tuple[Agent, ...]] = (
    ClaudeCode(),
    Codex(),
    GeminiCli(),
    OpenCode(),
    Inspector(),
    LangChain(),
    PydanticAI(),
    OpenAIAgents(),
)


def install_agents(work: Path, chosen: Sequence[Agent], update: bool) -> None:
    """Install the packages of agents into the work folder, where they are not there yet or shall be `update`d."""
    npm, python = work / "npm", work / "python"
    node = {"PATH": _path(work)}
    packages = [name for agent in chosen for name in agent.packages]
    lacking = [name for name in packages if update or not (npm / "node_modules" / name).is_dir()]
    command = [*_NPM, "--prefix", str(npm)]
    if lacking:  # the newest Node first, as npm takes versions that fit the one it runs on
        npm.mkdir(parents=True, exist_ok=True)
        _do([*command, "node@latest"], node)
        _do([*command, *(f"{name}@latest" for name in lacking)], node)
    for agent in chosen:
        if isinstance(agent, OpenCode):
            agent.install_plugins(work, update)
    if any(isinstance(agent, Framework) for agent in chosen) and (update or not (python / "bin/pip").exists()):
        _do(["python3", "-m", "venv", str(python)], {})
        extras = [name.replace("slim", "slim[mcp,openai]") for name in _FRAMEWORKS]
        _do([str(python / "bin/pip"), "install", "-qq", "--upgrade", *extras], {})


def _path(work: Path) -> str:
    """Return the search path with the Node of the work folder."""
    return f"{work / 'npm/node_modules/node/bin'}:{os.environ['PATH']}"


def _do(command: Sequence[str], variables: dict[str, str]) -> None:
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command)}` failed: {done.stderr[-500:]}")
