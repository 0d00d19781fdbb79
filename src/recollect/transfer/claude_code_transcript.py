"""The transcripts of Claude Code, `~/.claude/projects/*/*.jsonl`: what user and assistant said to each other.

Tool calls, their results, thoughts, subagents' talk and what the program adds by itself are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Final

from recollect.domain.transfer import ImportItem, Problem
from recollect.transfer.messages import SPEAKERS, Conversation, text_of
from recollect.transfer.reading import items_of, lines

_REMINDER: Final = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_ADDED: Final = ("<command-", "<local-command-", "<bash-", "Caveat: The messages below", "[Request interrupted")
_MARKS: Final = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")


def read(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield each message of user and assistant; raise `Unreadable` for nothing: a bad line is a problem."""
    sessions: dict[str, Conversation] = {}
    seen: set[str] = set()

    def item(line: dict[str, Any], where: str) -> Iterator[ImportItem]:
        speaker, message = SPEAKERS.get(str(line.get("type"))), line.get("message")
        if speaker is None or not isinstance(message, dict) or any(line.get(mark) for mark in _MARKS):
            return
        text = _REMINDER.sub("", text_of(message.get("content"), "text")).strip()
        number = str(line.get("uuid") or where.rpartition(":")[2])
        if not text or text.startswith(_ADDED) or number in seen:
            return
        seen.add(number)
        session = str(line.get("sessionId") or PurePath(name).stem)
        talk = sessions.setdefault(session, Conversation("claude-code", session))
        talk.project = PurePath(str(line.get("cwd") or talk.project)).name
        yield from talk.message(number, speaker, text, line.get("timestamp"), where)

    return items_of(lines(source, name), item)
