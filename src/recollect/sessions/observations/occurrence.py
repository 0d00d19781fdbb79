"""Occurrences: what happened in a session, in one form whatever agent reports it.

Agents name their tools differently; an occurrence knows only where its text comes from.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from recollect.prompt.neutral import without_invisible
from recollect.sessions.observations.command_lines import programs, without_documents
from recollect.text.prompts import is_typed, report_text
from recollect.text.separators import gap_for

_MAX_PROMPT: Final = 20_000  # characters of a prompt, or of an edit, that are read
_MAX_OUTPUT_END: Final = 40_000  # characters that are read of either end of an output
_MAX_COMMAND: Final = 4_000
_MAX_DESCRIPTION: Final = 300
ASSISTANT: Final = "Assistant"
"""The tool that stands for the assistant's last text of a turn."""
_OWN: Final = re.compile(r"recollect|(?:^|_)memor(?:y|ies)", re.IGNORECASE)
_RECALLS: Final = re.compile(
    r"(?:^|[;&|(]\s*|\s)(?:\S{0,200}/)?(?:recollect|\w{0,40}mem\w{0,40})\s+(?:-\S+\s+){0,20}"
    r"(?:recall|remember|search|query|prompt|list|show|forget|context|session)\b"
)
_READERS: Final = frozenset("cat head tail sed less bat nl".split())
_PATCH: Final = "*** Begin Patch\n"
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update) File: (.*\S)\s*$", re.MULTILINE)
_GAPS: Final = re.compile(r"[ \t]+")
_NUMBERED: Final = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)
_MOVES: Final = re.compile(r"\x1b\[[0-9;]*[CGHf]")  # of the cursor: what follows stands elsewhere
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*\x07")
_OVERWRITTEN: Final = re.compile(r"^[^\n]*\r(?=[^\n])", re.MULTILINE)
_SHELL: Final = re.compile(r"^(?:/\S*/)?(?:ba|z|da)?sh -l?c(?: (?!-)|$)(?!['\"])")


class Origin(StrEnum):
    """Where the text of an occurrence comes from."""

    PROMPT = "prompt"
    COMMAND = "command"
    FILE = "file"
    SEARCH = "search"
    EDIT = "edit"
    WEB = "web"
    REPORT = "report"
    PLAN = "plan"
    MEMORY = "memory"
    OTHER = "other"


_TOOLS: Final[Mapping[Origin, frozenset[str]]] = {
    Origin.COMMAND: frozenset(
        "bash shell localshell runshellcommand execcommand executecommand runterminalcmd runcommand terminal exec "
        "powershell bashoutput beforeshellexecution".split()
    ),
    Origin.FILE: frozenset("read readfile readmanyfiles view viewfile openfile cat notebookread".split()),
    Origin.SEARCH: frozenset(
        "grep glob ls find search listdirectory listdir searchfilecontent codebasesearch filesearch grepsearch".split()
    ),
    Origin.EDIT: frozenset(
        "edit write multiedit notebookedit replace writefile editfile applypatch strreplace create createfile "
        "strreplacebasededittool searchreplace".split()
    ),
    Origin.WEB: frozenset("webfetch websearch fetch googlewebsearch browser openurl".split()),
    Origin.REPORT: frozenset("task assistant agent subagent".split()),
    Origin.PLAN: frozenset("todowrite todoread updateplan exitplanmode writetodos taskcreate taskupdate".split()),
}
_ORIGINS: Final = {name: origin for origin, names in _TOOLS.items() for name in names}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A prompt, the input and output of a tool, or a report; `text` is its text, without control characters."""

    origin: Origin
    text: str
    tool: str = ""
    input: Mapping[str, Any] = field(default_factory=dict)
    failed: bool = False

    @property
    def command(self) -> str:
        """Return the command that ran, empty where there is none, such as a patch in place of a command."""
        if self.origin is Origin.EDIT:
            return ""
        command = self.input.get("command") or self.input.get("cmd") or ""
        if isinstance(command, list):  # such as ["bash", "-lc", "make test"]
            command = " ".join(map(str, command[2:] if _SHELL.match(" ".join(map(str, command[:2]))) else command))
        return _GAPS.sub(" ", _SHELL.sub("", str(command)[:_MAX_COMMAND], count=1))

    @property
    def description(self) -> str:
        """Return the agent's own description of the call."""
        return str(self.input.get("description") or "").strip()[:_MAX_DESCRIPTION]

    @property
    def path(self) -> str:
        """Return the file that was read or written, empty where there is none or several."""
        for name in ("file_path", "path", "filePath", "notebook_path", "absolute_path", "target_file"):
            if isinstance(path := self.input.get(name), str) and path:
                return path
        if self.origin is Origin.EDIT:
            return next(iter(self.patched), "")
        return _file_shown_by(self.command) if self.origin is Origin.FILE else ""

    @property
    def patched(self) -> tuple[str, ...]:
        """Return the files that a patch adds or changes."""
        return tuple(dict.fromkeys(_PATCHED.findall(_patch_in(self.input))))

    @property
    def written(self) -> str:
        """Return the text that an edit put into its file."""
        if patch := _patch_in(self.input):
            return _patch_lines("+", patch)
        for name in ("new_string", "content", "file_text", "new_str", "new_source", "patch", "input"):
            if isinstance(text := self.input.get(name), str):
                return text[:_MAX_PROMPT]
        edits = self.input.get("edits")
        if isinstance(edits, list):
            return "\n".join(str(edit.get("new_string", "")) for edit in edits if isinstance(edit, Mapping))[
                :_MAX_PROMPT
            ]
        return ""

    @property
    def removed(self) -> str:
        """Return the text that an edit took out of its file."""
        if patch := _patch_in(self.input):
            return _patch_lines("-", patch)
        return str(self.input.get("old_string") or self.input.get("old_str") or "")[:_MAX_PROMPT]


def prompt_occurrence(prompt: str, *, typed: bool | None = None) -> Occurrence:
    """Return a prompt as an occurrence: a report, unless a person typed it.

    `typed` is the finding from the agent's transcript, None where it shows nothing.
    """
    if is_typed(prompt) and typed is not False:
        return Occurrence(Origin.PROMPT, _plain_output(prompt[:_MAX_PROMPT]))
    return Occurrence(Origin.REPORT, _plain_output(report_text(prompt)[:_MAX_PROMPT]))


def tool_occurrence(tool: str, arguments: Mapping[str, Any], output: str, *, failed: bool = False) -> Occurrence:
    """Return the use of a tool as an occurrence; the tools `Assistant` and `Task` are reports."""
    origin = _origin_of_tool(tool, arguments)
    text = _plain_output(
        output if len(output) <= 2 * _MAX_OUTPUT_END else f"{output[:_MAX_OUTPUT_END]}\n{output[-_MAX_OUTPUT_END:]}"
    )
    if origin is Origin.FILE:
        text = _NUMBERED.sub("", text)
    return Occurrence(origin, text, tool, arguments, failed)


def _origin_of_tool(tool: str, arguments: Mapping[str, Any]) -> Origin:
    """Return where the text of a tool's use comes from, by the tool's name and for a command by its programs."""
    if _OWN.search(tool):
        return Origin.MEMORY
    bare = tool.rpartition("__")[2].rpartition(".")[2].replace("_", "").replace("-", "").lower()
    origin = _ORIGINS.get(bare, Origin.OTHER)
    if origin is Origin.COMMAND:
        if _patch_in(arguments):
            return Origin.EDIT
        command = Occurrence(origin, "", tool, arguments).command
        if _RECALLS.search(without_documents(command)):
            return Origin.MEMORY
        if _file_shown_by(command):
            return Origin.FILE
    return origin


def _file_shown_by(command: str) -> str:
    """Return the file of a command that only shows a single file; '' for any other command."""
    steps = [program for program in programs(command) if program[0] not in ("cd", "echo", "true")]
    if len(steps) != 1 or steps[0][0] not in _READERS or (steps[0][0] == "sed" and "-n" not in steps[0][1]):
        return ""
    try:
        words = shlex.split(steps[0][1])
    except ValueError:
        return ""
    files = [word for word in words if not word.startswith(("-", ">", "2>")) and re.search(r"[./]\w|^[A-Z]\w+$", word)]
    return files[0] if len(files) == 1 else ""


def _patch_in(arguments: Mapping[str, Any]) -> str:
    """Return the patch in the input of a tool or in its command, '' where there is none."""
    for name in ("command", "cmd", "input", "patch"):
        value = arguments.get(name)
        text = " ".join(map(str, value)) if isinstance(value, list) else value
        if isinstance(text, str) and _PATCH in text:
            return text.partition(_PATCH)[2][:_MAX_PROMPT]
    return ""


def _patch_lines(sign: str, patch: str) -> str:
    """Return the lines of a patch that begin with a sign, without the sign."""
    return "\n".join(line[1:] for line in patch.split("\n") if line.startswith(sign))


def _plain_output(text: str) -> str:
    """Return what a terminal shows of an output: without escapes, overwritten lines and invisible characters."""
    plain = _ESCAPES.sub("", _MOVES.sub(gap_for, text.replace("\r\n", "\n")))
    return without_invisible(_OVERWRITTEN.sub("", plain))


def shown_input(arguments: Mapping[str, Any]) -> str:
    """Return the input of a tool on a single line, as a person would name it."""
    for name in ("description", "command", "pattern", "query", "url", "prompt", "file_path", "path"):
        if isinstance(value := arguments.get(name), str) and value.strip():
            return " ".join(value.split())
    return json.dumps(dict(arguments), ensure_ascii=False, default=str) if arguments else ""
