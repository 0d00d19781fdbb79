"""What each coding agent's hooks say, as one table: its events, the fields of ours they fill, and how it is answered.

By the agents' published references: Claude Code (code.claude.com/docs/en/hooks), Codex (its JSON schemas, and
developers.openai.com/codex/hooks), Cursor (cursor.com/docs/hooks), Gemini CLI (geminicli.com/docs/hooks/reference),
opencode (opencode.ai/v1/docs/plugins).
Imports nothing, as each hook waits for it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it, which takes longer to import than all else that a hook needs
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Keys = tuple[str, ...]

START, PROMPT, BEFORE, TOOL, TURN, CHECKPOINT, END = (
    "session:start",
    "prompt:submit",
    "tool:pre",
    "tool:post",
    "turn:end",
    "session:checkpoint",
    "session:end",
)
OURS = (START, PROMPT, BEFORE, TOOL, TURN, CHECKPOINT, END)
"""Our events, which all others become."""
DEFAULT = "claude-code"
"""Whose contract holds where nothing tells: others have taken over its form."""

SESSION = ("session_id", "conversation_id", "thread_id")
"""The keys under which a payload says its session."""
FOLDER = ("cwd", "workspace_roots", "working_directory")
"""The keys under which a payload says its folder."""

_USED = {"tool": ("tool_name",), "input": ("tool_input",)}
_ASSISTANT = {"tool": "Assistant"}

_LOOKING = frozenset("Read Glob Grep LS WebFetch WebSearch Task Assistant".split())
"""Tools that run no command and write no file, as our table names them."""


class Rule:
    """How one event of an agent becomes one of ours.

    `fields` names, for each field of ours, the keys of the agent's payload, the first that is there counting; `fixed`
    holds fields that are the same each time, and `within` the fields that stand together in one of ours. A payload that
    holds one of the pairs of `unless` is no such event.
    """

    __slots__ = ("event", "fields", "fixed", "unless", "within")

    def __init__(
        self,
        event: str,
        fields: Mapping[str, Keys] | None = None,
        fixed: Mapping[str, Any] | None = None,
        within: Mapping[str, Keys] | None = None,
        unless: Mapping[str, str] | None = None,
    ) -> None:
        self.event = event
        self.fields = fields or {}
        self.fixed = fixed or {}
        self.within = within or {}
        self.unless = unless or {}


class Contract:
    """An agent's events; what tells its payloads from those of others; its names of tools; where it takes context.

    `injects` are its events whose answers may add context. `plain` is the key of the answer that takes it, empty where
    that is Claude Code's form. `goes_on` is the key of the answer that lets the agent go on with a text at the end of
    a turn, empty where that is Claude Code's form.
    """

    __slots__ = ("goes_on", "injects", "mark", "plain", "rules", "tools")

    def __init__(
        self,
        rules: Mapping[str, Rule],
        *,
        injects: Keys = (),
        plain: str = "",
        goes_on: str = "",
        mark: str = "",
        tools: Mapping[str, str] | None = None,
    ) -> None:
        self.rules = rules
        self.injects = injects
        self.plain = plain
        self.goes_on = goes_on
        self.mark = mark
        self.tools = tools or {}

    def event_for(self, ours: str) -> str:
        """Return the agent's first event that becomes one of ours, an empty text where it has none."""
        return next((name for name, rule in self.rules.items() if rule.event == ours), "")


_STARTED = Rule(START, {"source": ("source",)})
_ENDED = Rule(END, {"reason": ("reason",)})
_PROMPTED = Rule(PROMPT, {"prompt": ("prompt",), "transcript": ("transcript_path",)})
_PLANNED = Rule(BEFORE, _USED)
_ANSWERED = Rule(TOOL, _USED | {"output": ("tool_response",)})
_STOPPED = Rule(TURN, {"output": ("last_assistant_message",), "continued": ("stop_hook_active",)})
_COMPACTING = Rule(CHECKPOINT, {"transcript": ("transcript_path",)})

CONTRACTS: dict[str, Contract] = {
    "claude-code": Contract(
        {
            "SessionStart": _STARTED,
            "UserPromptSubmit": _PROMPTED,
            "PreToolUse": _PLANNED,
            "PostToolUse": _ANSWERED,
            "PostToolUseFailure": Rule(TOOL, _USED | {"output": ("error",)}, {"failed": True}),
            "Stop": _STOPPED,
            "PreCompact": _COMPACTING,
            "SessionEnd": _ENDED,
        },
        injects=("UserPromptSubmit", "SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
        tools={"Agent": "Task"},
    ),
    "codex": Contract(
        {
            "SessionStart": _STARTED,
            "UserPromptSubmit": _PROMPTED,
            "PreToolUse": _PLANNED,
            "PostToolUse": _ANSWERED,
            "Stop": _STOPPED,
            "PreCompact": _COMPACTING,
            "SessionEnd": _ENDED,
        },
        injects=("UserPromptSubmit", "SessionStart", "PreToolUse", "PostToolUse"),
        mark="turn_id",
    ),
    "cursor": Contract(  # the answers to `beforeSubmitPrompt` and `preToolUse` have no field for context
        {
            "sessionStart": _STARTED,
            "beforeSubmitPrompt": _PROMPTED,
            "postToolUse": Rule(TOOL, _USED | {"output": ("tool_output",)}),
            "postToolUseFailure": Rule(TOOL, _USED | {"output": ("error_message",)}, {"failed": True}),
            "afterAgentResponse": Rule(TOOL, {"output": ("text",)}, _ASSISTANT),
            "stop": Rule(TURN, {"continued": ("loop_count",)}),
            "preCompact": _COMPACTING,
            "sessionEnd": _ENDED,
            "afterShellExecution": Rule(TOOL, {"output": ("output",)}, {"tool": "Bash"}, {"command": ("command",)}),
            "afterFileEdit": Rule(TOOL, {}, {"tool": "Edit"}, {"file_path": ("file_path",), "edits": ("edits",)}),
            "afterMCPExecution": Rule(TOOL, _USED | {"output": ("result_json",)}),
        },
        injects=("sessionStart", "postToolUse"),
        plain="additional_context",
        goes_on="followup_message",
        mark="cursor_version",
        tools={"Shell": "Bash", "MCP:memory": "recollect"},
    ),
    "gemini-cli": Contract(  # the answer to `BeforeTool` has no field for context
        {
            "SessionStart": _STARTED,
            "BeforeAgent": _PROMPTED,
            "AfterTool": _ANSWERED,
            "AfterAgent": Rule(TURN, {"output": ("prompt_response",), "continued": ("stop_hook_active",)}),
            "PreCompress": Rule(CHECKPOINT, _COMPACTING.fields, unless={"trigger": "auto"}),  # before every model turn
            "SessionEnd": _ENDED,
        },
        injects=("BeforeAgent", "SessionStart", "AfterTool"),
        mark="timestamp",
        tools={
            "run_shell_command": "Bash",
            "read_file": "Read",
            "read_many_files": "Read",
            "write_file": "Write",
            "replace": "Edit",
            "glob": "Glob",
            "list_directory": "LS",
            "search_file_content": "Grep",
            "grep_search": "Grep",
            "web_fetch": "WebFetch",
            "google_web_search": "WebSearch",
        },
    ),
    "opencode": Contract(  # the program that `install` writes for it makes these payloads
        {
            "SessionStart": _STARTED,
            "UserPromptSubmit": _PROMPTED,
            "PostToolUse": _ANSWERED,
            "Stop": _STOPPED,
            "PreCompact": Rule(CHECKPOINT),
            "SessionEnd": _ENDED,
        },
        injects=("UserPromptSubmit", "SessionStart", "PostToolUse"),
        plain="context",
        goes_on="context",
        mark="opencode",
        tools={
            "bash": "Bash",
            "read": "Read",
            "write": "Write",
            "edit": "Edit",
            "glob": "Glob",
            "grep": "Grep",
            "list": "LS",
            "task": "Task",
            "webfetch": "WebFetch",
            "websearch": "WebSearch",
        },
    ),
}


class Heard:
    """A payload that was understood: who sent it, its own name for the event, our event, and its fields."""

    __slots__ = ("agent", "event", "fields", "name")

    def __init__(self, agent: str, name: str, event: str, fields: dict[str, Any]) -> None:
        self.agent = agent
        self.name = name
        self.event = event
        self.fields = fields


def understood(event: str, agent: str, payload: Mapping[str, Any]) -> Heard | None:
    """Return the payload in our terms, None for an event that does not matter.

    The event named in the payload precedes `event`, which has our name or the agent's.
    """
    said = payload.get("hook_event_name")
    name = said if isinstance(said, str) and said else event
    who = agent or _sender_of(name, payload)
    contract = CONTRACTS.get(who)
    if contract is None or _is_relayed(who, payload):
        return None
    name = contract.event_for(name) if name in OURS else name
    rule = contract.rules.get(name)
    if rule is None or any(payload.get(key) == value for key, value in rule.unless.items()):
        return None
    fields = {field: _first_value(payload, keys) for field, keys in rule.fields.items()} | dict(rule.fixed)
    if rule.within:
        fields["input"] = {field: _first_value(payload, keys) for field, keys in rule.within.items()}
    if isinstance(fields.get("tool"), str):
        fields["tool"] = contract.tools.get(fields["tool"], fields["tool"])
    return Heard(who, name, rule.event, fields | {"session_id": _first_value(payload, SESSION)})


def injection(heard: Heard, text: str) -> dict[str, Any] | None:
    """Return the answer that adds a text to the agent's context, None where its contract has no place for that."""
    contract = CONTRACTS[heard.agent]
    if text and heard.event == TURN:
        return {contract.goes_on: text} if contract.goes_on else {"decision": "block", "reason": text}
    if not text or heard.name not in contract.injects:
        return None
    if contract.plain:
        return {contract.plain: text}
    return {"hookSpecificOutput": {"hookEventName": heard.name, "additionalContext": text}}


def takes_context(heard: Heard) -> bool:
    """Say whether the answer to an event has a place for context, or lets the agent go on with a text."""
    return heard.event == TURN or heard.name in CONTRACTS[heard.agent].injects


def acts(tool: str) -> bool:
    """Return whether a tool may run a command or write a file, judged by its name."""
    return tool not in _LOOKING


def takes_late(heard: Heard) -> bool:
    """Return whether an agent takes context after this tool, as it takes none before a tool."""
    may = heard.event == TOOL and takes_context(heard) and acts(str(heard.fields.get("tool")))
    return may and not CONTRACTS[heard.agent].event_for(BEFORE)


def folder_of(payload: Mapping[str, Any]) -> str:
    """Return the folder that a payload names, an empty text without one."""
    found = _first_value(payload, FOLDER)
    if isinstance(found, list):
        found = found[0] if found else ""
    return found if isinstance(found, str) else ""


def _first_value(payload: Mapping[str, Any], keys: Keys) -> Any:
    return next((payload[key] for key in keys if payload.get(key) is not None), None)


def _sender_of(name: str, payload: Mapping[str, Any]) -> str:
    """Return the agent that sends such a payload, where the command does not name it."""
    marked = (who for who, contract in CONTRACTS.items() if contract.mark and contract.mark in payload)
    known = (who for who, contract in CONTRACTS.items() if name in contract.rules)
    return next(marked, next(known, DEFAULT))


def _is_relayed(agent: str, payload: Mapping[str, Any]) -> bool:
    """Return whether Cursor runs another agent's hook, such as Claude Code's; Cursor's own hook reports the same."""
    return agent != "cursor" and CONTRACTS["cursor"].mark in payload
