"""The transcripts of Codex, `~/.codex/sessions/**/*.jsonl`: what user and assistant said to each other.

Tool calls, reasoning and what the program puts before the first message are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Final

from recollect.domain.transfer import ImportItem, Problem
from recollect.text.prompts import is_typed
from recollect.transfer.conversations import ASSISTANT, SPEAKERS, Conversation, Outside, text_of
from recollect.transfer.reading import items_of, lines, parse_json

BY_CODEX: Final = (
    "<environment_context",
    "<user_instructions",
    "<permissions",
    "<turn_aborted",
    "<skill",
    "# AGENTS.md",
)


def read_codex(source: BinaryIO, name: str, outside_of: Outside | None = None) -> Iterator[ImportItem | Problem]:
    """Yield each message of user and assistant; raise `Unreadable` for nothing: a bad line is a problem.

    With `outside_of` the file is believed in who said what.
    """
    talk = Conversation("codex", PurePath(name).stem.removeprefix("rollout-"), outside_of=outside_of)

    def item(line: dict[str, Any], where: str) -> Iterator[ImportItem]:
        inner = line.get("payload")
        entry = inner if isinstance(inner, dict) else line
        if line.get("type") == "session_meta" or ("instructions" in entry and entry.get("id")):
            talk.session = str(entry.get("id") or talk.session)
            talk.folder = str(entry.get("cwd") or "")
            talk.project = PurePath(talk.folder).name
        if str(entry.get("type")).endswith("_call"):
            talk.use(*_codex_use(entry))
        speaker = SPEAKERS.get(str(entry.get("role")))
        if speaker is None or entry.get("type") != "message" or line.get("type") not in ("message", "response_item"):
            return
        text = text_of(entry.get("content"), "input_text", "output_text", "text")
        if text and not text.startswith(BY_CODEX):
            number = where.rpartition(":")[2]
            typed = speaker == ASSISTANT or is_typed(text)
            origin = talk.origin_of_message(speaker, where) if typed else None
            yield from talk.message(number, speaker, text, line.get("timestamp"), where, origin)

    return items_of(lines(source, name), item)


def _codex_use(call: dict[str, Any]) -> tuple[object, object]:
    """Return the name of the tool that Codex called, and what that was given."""
    arguments = call.get("arguments") or call.get("input") or call.get("action")
    if isinstance(arguments, str) and arguments.startswith("{"):
        arguments = parse_json(arguments.encode())
    name = call.get("name") or str(call["type"]).removesuffix("_call")
    return name, {"input": arguments} if isinstance(arguments, str) else arguments
