"""The transcripts of Codex, `~/.codex/sessions/**/*.jsonl`: what user and assistant said to each other.

Tool calls, reasoning and what the program puts before the first message are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Final

from recollect.domain.transfer import ImportItem, Problem
from recollect.transfer.messages import SPEAKERS, Conversation, text_of
from recollect.transfer.reading import items_of, lines

_ADDED: Final = ("<environment_context", "<user_instructions", "<permissions", "<turn_aborted", "<skill", "# AGENTS.md")


def read(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield each message of user and assistant; raise `Unreadable` for nothing: a bad line is a problem."""
    talk = Conversation("codex", PurePath(name).stem.removeprefix("rollout-"))

    def item(line: dict[str, Any], where: str) -> Iterator[ImportItem]:
        inner = line.get("payload")
        entry = inner if isinstance(inner, dict) else line
        if line.get("type") == "session_meta" or ("instructions" in entry and entry.get("id")):
            talk.session = str(entry.get("id") or talk.session)
            talk.project = PurePath(str(entry.get("cwd") or "")).name
        speaker = SPEAKERS.get(str(entry.get("role")))
        if speaker is None or entry.get("type") != "message" or line.get("type") not in ("message", "response_item"):
            return
        text = text_of(entry.get("content"), "input_text", "output_text", "text")
        if text and not text.startswith(_ADDED):
            number = where.rpartition(":")[2]
            yield from talk.message(number, speaker, text, line.get("timestamp"), where)

    return items_of(lines(source, name), item)
