"""Reads an agent's transcript of a session that is over as the events that its hooks would have reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from recollect.domain.transfer import ImportFormat
from recollect.doors.hook_contracts import CONTRACTS
from recollect.doors.hook_texts import arguments, cut, opened, says_failure, text_of, unwrapped
from recollect.text.prompts import MARKS, REMINDER, is_typed, is_typed_entry
from recollect.text.separators import gap_for
from recollect.transfer.codex_transcript import BY_CODEX
from recollect.transfer.reading import Unreadable, lines, object_of

_SAID: Final = ("text", "input_text", "output_text")
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


class Event(NamedTuple):
    """The verb that takes an event, and its fields; a `final` event is made by the end of the file."""

    verb: str
    fields: dict[str, Any]
    final: bool = False


@dataclass(slots=True)
class _Turns:
    """A session that is being replayed: its tool calls without an answer, and the assistant's last text."""

    agent: str
    session: str
    folder: str = ""
    at: object = None
    called: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    last_text: str = ""

    def event(self, verb: str, **fields: Any) -> Event:
        common = {"session_id": self.session, "agent": self.agent, "folder": self.folder}
        at = {"at": self.at} if isinstance(self.at, str) else {}
        return Event(verb, common | at | fields)

    def prompt(self, text: str) -> Iterator[Event]:
        """Yield the end of the previous turn, and the prompt that begins the next turn."""
        yield from self.end_turn()
        yield self.event("note_prompt", prompt=cut(text))

    def end_turn(self) -> Iterator[Event]:
        text, self.last_text = self.last_text, ""
        if text:
            yield self.event("tool_post", tool="Assistant", output=cut(text))

    def call(self, number: object, name: object, typed: object) -> None:
        tool = str(name or "")
        self.called[str(number)] = CONTRACTS[self.agent].tools.get(tool, tool), arguments(typed)

    def answer(self, number: object, answered: object, *, failed: bool = False) -> Iterator[Event]:
        """Yield the use of a tool, once it has answered."""
        tool, typed = self.called.pop(str(number), ("", {}))
        if not tool:
            return
        found = opened(answered)
        text, wrapped = unwrapped(text_of(found))
        failed = failed or wrapped or says_failure(found)
        yield self.event("tool_post", tool=tool[:200], input=typed, output=cut(text), failed=failed)


def events_of(file: Path, format: ImportFormat) -> Iterator[Event]:
    """Yield the events of a session in order, from start to end; a line that cannot be read is skipped.

    A file that has grown gives the same events and then more, except for the final events.
    """
    read = _claude_code_events if format is ImportFormat.CLAUDE_CODE else _codex_events
    turns = _Turns(str(format), file.stem.removeprefix("rollout-"))
    began = False
    with file.open("rb") as source:
        for _, line in lines(source, file.name):
            try:
                entry = object_of(line)
            except Unreadable:
                continue
            for event in read(turns, entry):
                if not began:
                    began = True
                    yield turns.event("session_start", source="startup")
                yield event
    if began:
        for event in (*turns.end_turn(), turns.event("session_end", reason="over")):
            yield event._replace(final=True)


def _claude_code_events(turns: _Turns, line: dict[str, Any]) -> Iterator[Event]:
    """Yield the events in a line of a Claude Code transcript."""
    message, speaker = line.get("message"), line.get("type")
    if not isinstance(message, dict) or any(line.get(mark) for mark in MARKS):
        return
    turns.session = str(line.get("sessionId") or turns.session)
    turns.folder = str(line.get("cwd") or turns.folder)
    turns.at = line.get("timestamp")
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    text = REMINDER.sub(gap_for, content if isinstance(content, str) else _text_of_blocks(blocks)).strip()
    answers = [block for block in blocks if block.get("type") == "tool_result"]
    if speaker == "user":
        for answer in answers:
            yield from turns.answer(
                answer.get("tool_use_id"), answer.get("content"), failed=bool(answer.get("is_error"))
            )
        if not answers and is_typed_entry(line) and is_typed(text):
            yield from turns.prompt(text)
    elif speaker == "assistant":
        turns.last_text = text or turns.last_text
        for answer in blocks:
            if answer.get("type") == "tool_use":
                turns.call(answer.get("id"), answer.get("name"), answer.get("input"))


def _codex_events(turns: _Turns, line: dict[str, Any]) -> Iterator[Event]:
    """Yield the events in a line of a Codex transcript."""
    inner = line.get("payload")
    entry = inner if isinstance(inner, dict) else line
    turns.at = line.get("timestamp")
    if line.get("type") == "session_meta":
        turns.session, turns.folder = str(entry.get("id") or turns.session), str(entry.get("cwd") or "")
        return
    kind = entry.get("type")
    if kind in _CALLS:
        typed = entry.get("arguments") or entry.get("input") or entry.get("action")
        turns.call(entry.get("call_id"), entry.get("name") or "shell", typed)
    elif kind in _OUTPUTS:
        yield from turns.answer(entry.get("call_id"), entry.get("output"))
    elif kind == "message" and line.get("type") in ("message", "response_item"):
        blocks = entry.get("content")
        text = _text_of_blocks(
            [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        )
        if entry.get("role") == "assistant":
            turns.last_text = text or turns.last_text
        elif entry.get("role") == "user" and is_typed(text) and not text.startswith(BY_CODEX):
            yield from turns.prompt(text)


def _text_of_blocks(blocks: list[dict[str, Any]]) -> str:
    texts = (block.get("text") for block in blocks if block.get("type") in _SAID)
    return "\n\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
