"""The transcripts of Claude Code, `~/.claude/projects/*/*.jsonl`: what user and assistant said to each other.

Tool calls, their results, thoughts, subagents' talk and what the program adds by itself are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Final

from recollect.domain.transfer import ImportItem, Problem
from recollect.text.prompts import MARKS, REMINDER, SENTENCES, is_typed, is_typed_entry
from recollect.text.separators import gap_for
from recollect.transfer.conversations import ASSISTANT, SPEAKERS, Conversation, Outside, text_of
from recollect.transfer.reading import items_of, lines

BY_CLAUDE: Final = ("<command-", "<local-command-", "<bash-", *SENTENCES)


def read_claude_code(source: BinaryIO, name: str, outside_of: Outside | None = None) -> Iterator[ImportItem | Problem]:
    """Yield each message of user and assistant; raise `Unreadable` for nothing: a bad line is a problem.

    With `outside_of` the file is believed in who said what.
    """
    sessions: dict[str, Conversation] = {}
    seen: set[str] = set()

    def item(line: dict[str, Any], where: str) -> Iterator[ImportItem]:
        speaker, message = SPEAKERS.get(str(line.get("type"))), line.get("message")
        if speaker is None or not isinstance(message, dict):
            return
        session = str(line.get("sessionId") or PurePath(name).stem)
        talk = sessions.setdefault(session, Conversation("claude-code", session, outside_of=outside_of))
        talk.folder = str(line.get("cwd") or talk.folder)
        talk.project = PurePath(talk.folder or talk.project).name
        blocks = [block for block in _list_or_empty(message.get("content")) if isinstance(block, dict)]
        text = REMINDER.sub(gap_for, text_of(message.get("content"), "text")).strip()
        number = str(line.get("uuid") or where.rpartition(":")[2])
        marked = any(line.get(mark) for mark in MARKS)
        if text and not marked and not text.startswith(BY_CLAUDE) and number not in seen:
            seen.add(number)
            typed = speaker == ASSISTANT or (
                _is_typed_line(line, text) and not any(_is_tool_result(block) for block in blocks)
            )
            origin = talk.origin_of_message(speaker, where) if typed else None
            yield from talk.message(number, speaker, text, line.get("timestamp"), where, origin)
        for block in blocks:
            if str(block.get("type")).endswith("tool_use"):
                talk.use(block.get("name"), block.get("input"))

    return items_of(lines(source, name), item)


def _is_typed_line(line: dict[str, Any], text: str) -> bool:
    return is_typed_entry(line) and is_typed(text)


def _list_or_empty(content: object) -> list[Any]:
    return content if isinstance(content, list) else []


def _is_tool_result(block: dict[str, Any]) -> bool:
    """Return whether a block is the result of a tool; no person types into the message that holds it."""
    return str(block.get("type")).endswith("tool_result")
