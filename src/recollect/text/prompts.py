"""Who wrote what stands in the place of a person's prompt: only what a person typed is a person's word.

Agents put reports of tasks, messages of other agents, outputs of commands and summaries of their own in that place.
They wrap them in a tag, or begin them with a fixed sentence or a heading in brackets. A text that begins like that
counts as a report, also where a person may have typed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from recollect.text.separators import gap_for

REMINDER: Final = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
"""What Claude Code adds to a person's prompt, before or behind it."""
ADDED: Final = re.compile(
    r"<([\w-]{0,40}?memor(?:y|ies)[\w-]{0,40}+|system-reminder|environment_context|hook_context|ide_\w{1,40})\b[^>]{0,500}+>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
"""What agents and their memories add to a person's prompt.

Gemini CLI puts what a hook answered before the first prompt of a session that has no terminal, as `hook_context`.
"""
SENTENCES: Final = (
    "Another Claude session sent a message",
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
    "[Request interrupted",
    "# AGENTS.md",
)
"""How agents begin what they write themselves."""
_TAG: Final = re.compile(r"</?[A-Za-z][\w:-]{0,60}(?:\s[^<>]{0,500})?/?>")
_HEADING: Final = re.compile(
    r"\[[^\]\n]{0,200}\b(?:message|notification|report|reply|update|output|result|reminder|summary|hook|task|agent|"
    r"subagent|teammate|system|automated|scheduled|cron)\b[^\]\n]{0,200}\](?!\()",
    re.IGNORECASE,
)
MARKS: Final = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")
"""What a transcript of Claude Code says of an entry that nobody typed."""
_HUMAN: Final = "human"
_NOT_TYPED: Final = frozenset({"system", "hook", "task", "agent", "peer"})
_TAIL: Final = 2**18  # bytes at the end of a transcript that are read
_COMPARED: Final = 200  # characters by which a prompt is found there; a short one may stand anywhere in another


def without_agent_blocks(text: str) -> str:
    """Return a prompt without the blocks that an agent adds to what a person typed."""
    return ADDED.sub(gap_for, text).strip()


def is_typed(prompt: str) -> bool:
    """Return whether a person typed a prompt, as far as its beginning shows."""
    bare = without_agent_blocks(prompt)
    return bool(bare) and not (bare.startswith(SENTENCES) or _TAG.match(bare) or _HEADING.match(bare))


def report_text(prompt: str) -> str:
    """Return the text of a prompt that no person typed, without the agent's additions and the tags around it."""
    lines = without_agent_blocks(prompt).split("\n")
    return "\n".join(_TAG.sub("", line) if line.lstrip().startswith("<") else line for line in lines).strip()


def is_typed_entry(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of a transcript is a prompt that a person typed, as far as its marks show."""
    origin = entry.get("origin")
    kind = origin.get("kind", _HUMAN) if isinstance(origin, Mapping) else _HUMAN
    marked = any(entry.get(mark) for mark in MARKS)
    return kind == _HUMAN and not marked and entry.get("promptSource") not in _NOT_TYPED


def is_typed_by_transcript(file: Path, prompt: str) -> bool | None:
    """Return whether a person typed the prompt, by its last entry in a transcript; None without an entry.

    An agent may write the entry only after it has called the hook.
    """
    if not file.is_file():  # opening a pipe would wait for its other end
        return None
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _TAIL))
            lines = stream.read(_TAIL).decode("utf-8", "replace").split("\n")
    except OSError:
        return None
    wanted = _beginning_without_spaces(prompt)
    for line in reversed(lines):
        entry = _parsed_entry(line)
        if entry is not None and wanted and wanted == _beginning_without_spaces(_text_of_entry(entry)):
            return is_typed_entry(entry)
    return None


def _beginning_without_spaces(text: str) -> str:
    return " ".join(without_agent_blocks(text).split())[:_COMPARED]


def _parsed_entry(line: str) -> dict[str, Any] | None:
    """Return an entry of a transcript in which a person may speak; None for any other line."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):  # the first line of the tail is cut
        return None
    return entry if isinstance(entry, dict) and entry.get("type") == "user" else None


def _text_of_entry(entry: Mapping[str, Any]) -> str:
    """Return the text of an entry's message; '' where it has none."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
