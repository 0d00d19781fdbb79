"""The export of the Claude apps: `conversations.json` with its messages, `memories.json` with what Claude noted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from recollect.domain.enums import Scope
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.transfer.conversations import LONGEST_NAME, SPEAKERS, Conversation, text_of
from recollect.transfer.json_stream import objects_in
from recollect.transfer.markdown_sections import cut_text
from recollect.transfer.reading import Unreadable, items_of


def read_claude(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield each message, conversation by conversation, and each noted text; raise `Unreadable` for broken JSON."""
    return items_of(objects_in(source, name, "conversation"), _claude_messages)


def _claude_messages(found: dict[str, Any], where: str) -> Iterator[ImportItem]:
    """Yield the messages of a conversation, or the items of Claude's own notes."""
    if "conversations_memory" in found or "project_memories" in found:
        yield from _notes_of_claude(found, where)
        return
    messages = found.get("chat_messages")
    if not isinstance(messages, list):
        raise Unreadable("It is no conversation: it has no `chat_messages`.")
    session, title = str(found.get("uuid") or where), str(found.get("name") or "")
    talk = Conversation("claude", session, title, scope=Scope.PERSONAL)
    for number, message in enumerate(messages, 1):
        speaker = SPEAKERS.get(str(message.get("sender"))) if isinstance(message, dict) else None
        if speaker is None:
            continue
        plain = message.get("text")
        text = text_of(message.get("content"), "text") or (plain.strip() if isinstance(plain, str) else "")
        if text:
            yield from talk.message(message.get("uuid") or number, speaker, text, message.get("created_at"), where)


def _notes_of_claude(found: dict[str, Any], where: str) -> Iterator[ImportItem]:
    """Yield Claude's notes on all conversations, and on those in each project."""
    projects = found.get("project_memories")
    texts = {"": found.get("conversations_memory")} | (projects if isinstance(projects, dict) else {})
    owner = str(found.get("account_uuid") or "")[:LONGEST_NAME]
    for project, text in texts.items():
        own = f"claude-memory:{owner}/{project[:LONGEST_NAME]}"
        for part, content in enumerate(cut_text(text.strip(), MAX_CONTENT) if isinstance(text, str) else (), 1):
            fields = {"content": content, "key": own if part == 1 else f"{own}~{part}", "tags": ["claude"]}
            yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=fields | {"scope": Scope.PERSONAL})
