"""What each agent sends for an event of its session, and the texts in it.

What each coding agent's hooks say, as one table: its events, the fields of ours they fill, and how it is answered.

By the agents' published references: Claude Code (code.claude.com/docs/en/hooks), Codex (its JSON schemas, and
developers.openai.com/codex/hooks), Cursor (cursor.com/docs/hooks), Gemini CLI (geminicli.com/docs/hooks/reference),
opencode (opencode.ai/v1/docs/plugins).
Imports nothing, as each hook waits for it.

Makes the text of what a tool answered, in whichever form an agent hands it on, and cuts what is too long.
"""

from __future__ import annotations

import json
import re

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


SESSION = ("session_id", "conversation_id", "thread_id")
"""The keys under which a payload says its session."""
FOLDER = ("cwd", "workspace_roots", "working_directory")
"""The keys under which a payload says its folder."""

_USED = {"tool": ("tool_name",), "input": ("tool_input",)}
_ASSISTANT = {"tool": "Assistant"}
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


_LOOKING = frozenset("Read Glob Grep LS WebFetch WebSearch Task Assistant".split())
"""Tools that run no command and write no file, as our table names them."""


class Heard:
    """A payload that was understood: who sent it, its own name for the event, our event, and its fields."""

    __slots__ = ("agent", "event", "fields", "name")

    def __init__(self, agent: str, name: str, event: str, fields: dict[str, Any]) -> None:
        self.agent = agent
        self.name = name
        self.event = event
        self.fields = fields


def understood(event: str, agent: str, payload: Mapping[str, Any]) -> Heard | None:
    """Return what a payload says in our terms, None where it is of no event that matters.

    The payload's own name of the event counts more than `event`, which is one of ours or of the agent's.
    """
    said = payload.get("hook_event_name")
    name = said if isinstance(said, str) and said else event
    who = agent or _sender(name, payload)
    contract = CONTRACTS.get(who)
    if contract is None or _foreign(who, payload):
        return None
    name = contract.event_for(name) if name in OURS else name
    rule = contract.rules.get(name)
    if rule is None or any(payload.get(key) == value for key, value in rule.unless.items()):
        return None
    fields = {field: _first(payload, keys) for field, keys in rule.fields.items()} | dict(rule.fixed)
    if rule.within:
        fields["input"] = {field: _first(payload, keys) for field, keys in rule.within.items()}
    if isinstance(fields.get("tool"), str):
        fields["tool"] = contract.tools.get(fields["tool"], fields["tool"])
    return Heard(who, name, rule.event, fields | {"session_id": _first(payload, SESSION)})


def injection(heard: Heard, text: str) -> dict[str, Any] | None:
    """Return the answer that adds a text to the context, None where the agent's contract has no place for it."""
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
    """Say whether a tool may run a command or write a file, as far as its name tells."""
    return tool not in _LOOKING


def takes_late(heard: Heard) -> bool:
    """Say whether an agent that takes no context before it uses a tool takes it after this one."""
    may = heard.event == TOOL and takes_context(heard) and acts(str(heard.fields.get("tool")))
    return may and not CONTRACTS[heard.agent].event_for(BEFORE)


def folder_of(payload: Mapping[str, Any]) -> str:
    """Return the folder that a payload names, an empty text without one."""
    found = _first(payload, FOLDER)
    if isinstance(found, list):
        found = found[0] if found else ""
    return found if isinstance(found, str) else ""


def _first(payload: Mapping[str, Any], keys: Keys) -> Any:
    return next((payload[key] for key in keys if payload.get(key) is not None), None)


def _sender(name: str, payload: Mapping[str, Any]) -> str:
    """Return whose payload it is where the command does not say."""
    marked = (who for who, one in CONTRACTS.items() if one.mark and one.mark in payload)
    known = (who for who, one in CONTRACTS.items() if name in one.rules)
    return next(marked, next(known, DEFAULT))


def _foreign(agent: str, payload: Mapping[str, Any]) -> bool:
    """Say whether Cursor runs the hooks of another agent, as it does with Claude Code's: its own report the same."""
    return agent != "cursor" and CONTRACTS["cursor"].mark in payload


LONGEST = 200_000
"""Characters of a prompt or an output that are sent; of longer ones the middle is left out."""
_LONGEST_INPUT = 20_000  # characters of one text that a tool was given
_MOST_INPUT = 200_000  # characters of all that a tool was given, as JSON
_LONGEST_JSON = 4 * LONGEST  # characters of a text that is read as JSON
_DEEPEST = 8
_MOST_ITEMS = 500
_TEXTS = (
    "stdout",
    "stderr",
    "output",
    "content",
    "text",
    "llmContent",
    "result",
    "error",
    "message",
    "file",
    "filenames",
)
"""The keys under which the tools of the agents put what they wrote, in the order in which it is read."""
_EXITS = ("exitCode", "exit_code", "returncode")
_FENCE = re.compile(r"^</?untrusted_context>\n?", re.MULTILINE)
_FAILED = re.compile(r"Exit [Cc]ode:? -?[1-9]\d*(?:\n|$)")
_CODEX = re.compile(r"Exit code: (-?\d+)\nWall time: .*\n(?:Total output lines: .*\n)?Output:\n")
_GEMINI = re.compile(r"(?:Command: .*\nDirectory: .*\n)?Output: ?")
_GEMINI_ENDS = ("Error: (none)", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ")
"""What the agents put around the output of a command."""
_STORED = re.compile(r"Memory (?:stored|updated) successfully (?:with ID: |\(ID: )\d{1,18}")
_LEFT_OUT = frozenset(("originalFile", "structuredPatch", "base64", "data", "blob"))
"""What repeats a whole file, or is no text."""


def opened(found: Any) -> Any:
    """Return a tool's answer, of JSON in a text what that says, where it is an answer and not a file of JSON."""
    if not isinstance(found, str) or found[:1] not in ("{", "[") or len(found) > _LONGEST_JSON:
        return found
    try:
        said = json.loads(found)
    except (ValueError, RecursionError):
        return found
    if isinstance(said, dict):
        return said if any(key in said for key in (*_TEXTS, *_EXITS)) else found
    parts = isinstance(said, list) and said and all(isinstance(one, dict) and "text" in one for one in said)
    return said if parts else found


def text_of(found: Any, depth: int = 0) -> str:
    """Return as one text what a tool answered: a text, an object, or a list of parts."""
    if isinstance(found, str):
        return found
    if found is None or depth > _DEEPEST:
        return ""
    if isinstance(found, list):
        return "\n".join(filter(None, (text_of(one, depth + 1) for one in found[:_MOST_ITEMS])))
    if isinstance(found, dict):
        named = [text_of(found[key], depth + 1) for key in _TEXTS if found.get(key) is not None]
        if named:
            return "\n".join(filter(None, named))
        rest = given(found, left_out=_LEFT_OUT)
        return json.dumps(rest, ensure_ascii=False) if rest else ""
    return json.dumps(found)


def stored(found: Any) -> str:
    """Return by which words our own tool answered that it stored a memory, empty where it did not."""
    said = _STORED.search(text_of(opened(found)))
    return said[0] if said else ""


def unwrapped(text: str) -> tuple[str, bool]:
    """Return what a tool wrote without the lines that its agent puts around it, and whether they tell of a failure."""
    if text.startswith("<untrusted_context>"):
        text = _FENCE.sub("", text)
    if head := _CODEX.match(text):
        return text[head.end() :], head[1] != "0"
    head, lines = _GEMINI.match(text), text.rstrip().split("\n")
    after = len(lines)
    while after and lines[after - 1].startswith(_GEMINI_ENDS):
        after -= 1
    if head and after < len(lines):
        said = "\n".join(lines[:after])[head.end() :]
        return "" if said == "(empty)" else said, any(map(_FAILED.match, lines[after:]))
    told = _FAILED.match(text)  # Claude Code's first line
    return (text[told.end() :], True) if told else (text, False)


def says_failure(found: Any) -> bool:
    """Say whether a tool's answer tells that it failed: by an error, or by an exit code other than 0."""
    if not isinstance(found, dict):
        return False
    return bool(found.get("error")) or any(found.get(key, 0) not in (0, None) for key in _EXITS)


def given(found: Any, depth: int = 0, left_out: frozenset[str] = frozenset()) -> Any:
    """Return what a tool was given with each text cut, and without what lies too deep or shall be left out."""
    if isinstance(found, str):
        return cut(found, _LONGEST_INPUT)
    if isinstance(found, dict):
        pairs = list(found.items())[:_MOST_ITEMS] if depth <= _DEEPEST else []
        return {cut(str(key), 200): given(one, depth + 1, left_out) for key, one in pairs if key not in left_out}
    if isinstance(found, list):
        return [given(one, depth + 1, left_out) for one in found[:_MOST_ITEMS]] if depth <= _DEEPEST else []
    return found


def arguments(found: Any) -> dict[str, Any]:
    """Return what a tool was given as an object, also where an agent hands it on as JSON in a text."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except (ValueError, RecursionError):
            return {"input": cut(found, _LONGEST_INPUT)} if found.strip() else {}
    if not isinstance(found, dict):
        return {}
    taken: dict[str, Any] = given(found)
    if len(json.dumps(taken)) <= _MOST_INPUT:
        return taken
    return {key: cut(one, 2_000) for key, one in taken.items() if isinstance(one, str)}


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text that can be stored: no lone surrogates, spaces for zero bytes, and of one too long both ends."""
    if len(text) > longest:
        half = longest // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:]}"
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
