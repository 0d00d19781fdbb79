"""The `conversations.json` of a ChatGPT export: trees of messages, of which the branch that is shown is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from recollect.domain.enums import Scope
from recollect.domain.transfer import ImportItem, Problem
from recollect.transfer.conversations import ASSISTANT, SPEAKERS, Conversation
from recollect.transfer.json_stream import objects_in
from recollect.transfer.reading import Unreadable, items_of

_SPOKEN: Final = ("text", "multimodal_text")


def read_chatgpt(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield each message of user and assistant, conversation by conversation; raise `Unreadable` for broken JSON."""
    return items_of(objects_in(source, name, "conversation"), _messages_of)


def _messages_of(found: dict[str, Any], where: str) -> Iterator[ImportItem]:
    """Yield the messages on the last branch of a conversation, in order."""
    mapping = found.get("mapping")
    if not isinstance(mapping, dict):
        raise Unreadable("It is no conversation: it has no `mapping`.")
    session = str(found.get("conversation_id") or found.get("id") or found.get("create_time") or where)
    talk = Conversation("chatgpt", session, str(found.get("title") or ""), scope=Scope.PERSONAL)
    for number, node in _messages_to(mapping, found.get("current_node")):
        message = node.get("message")
        if (
            isinstance(message, dict)
            and (speaker := _speaker(message))
            and (text := _chatgpt_text(message.get("content")))
        ):
            yield from talk.message(message.get("id") or number, speaker, text, message.get("create_time"), where)


def _messages_to(mapping: dict[str, Any], last: object) -> list[tuple[str, dict[str, Any]]]:
    """Return the messages up to the `last`; without it, up to the newest message."""
    nodes = {number: node for number, node in mapping.items() if isinstance(node, dict)}
    if last not in nodes:
        parents = {node.get("parent") for node in nodes.values() if isinstance(node.get("parent"), str)}
        last = max(
            (name for name in nodes if name not in parents), key=lambda name: _created_at(nodes[name]), default=None
        )
    found: dict[str, dict[str, Any]] = {}
    while isinstance(last, str) and last in nodes and last not in found:
        found[last] = nodes[last]
        last = nodes[last].get("parent")
    return list(found.items())[::-1]


def _created_at(node: dict[str, Any]) -> float:
    message = node.get("message")
    made = message.get("create_time") if isinstance(message, dict) else None
    return float(made) if isinstance(made, int | float) else 0.0


def _speaker(message: dict[str, Any]) -> str | None:
    """Return the speaker of a message; None for hidden messages and those of tools and the program itself."""
    author, about = message.get("author"), message.get("metadata")
    speaker = SPEAKERS.get(str(author.get("role"))) if isinstance(author, dict) else None
    hidden = isinstance(about, dict) and about.get("is_visually_hidden_from_conversation")
    to_a_tool = speaker == ASSISTANT and message.get("recipient") not in (None, "all")
    return None if hidden or to_a_tool else speaker


def _chatgpt_text(content: object) -> str:
    if not isinstance(content, dict) or content.get("content_type") not in _SPOKEN:
        return ""
    parts = content.get("parts")
    texts = [part.strip() for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    return "\n\n".join(filter(None, texts))
