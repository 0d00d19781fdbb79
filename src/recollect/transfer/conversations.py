"""Conversations: exports of ChatGPT and Claude, and transcripts of Claude Code and Codex, a message at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import SEEK_SET
from pathlib import PurePath
from typing import Any, BinaryIO, Final

import ijson

from recollect.domain.enums import Scope
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.origin import Origin, SaidBy, read_also
from recollect.domain.transfer import ImportItem, ItemKind, Problem
from recollect.gate import masked
from recollect.text import layers
from recollect.text.prompts import MARKS, REMINDER, SENTENCES, is_typed, is_typed_entry
from recollect.text.separators import gap
from recollect.transfer.markdown import cut
from recollect.transfer.reading import (
    CUT,
    DEEPEST,
    LARGEST_FILE,
    Unreadable,
    items_of,
    lines,
    parsed,
    set_only,
    time_of,
)

USER: Final = "user"
ASSISTANT: Final = "assistant"
SPEAKERS: Final = {USER: USER, "human": USER, ASSISTANT: ASSISTANT}
"""Who speaks in a conversation, by the names that programs give them; what others say is no memory."""
_LONGEST_NAME: Final = 200
_TITLE: Final = 500


Outside = Callable[[str, Mapping[str, Any], str, str], str]
"""Says what from outside an assistant has read, once it has used one more tool.

It takes the name of the tool, what that was given, the folder of the session, and what it said before; an empty text
stands for nothing.
"""


def any_tool(tool: str, _given: Mapping[str, Any], _folder: str, outside: str) -> str:
    """Take whatever a tool shows for something from outside."""
    return read_also(outside, tool)


@dataclass(slots=True)
class Conversation:
    """One session of a program, and how many of its messages there are so far.

    `outside` is what the assistant has read from outside since the last prompt: what it says then may only repeat that.
    Without `outside_of` the file is not believed in who said what.
    A chat that no project knows of is of a `scope` of its own, unless the import names another.
    """

    program: str
    session: str
    title: str = ""
    project: str = ""
    scope: Scope | None = None
    said: int = 0
    folder: str = ""
    outside: str = ""
    outside_of: Outside | None = None

    def speaks(self, speaker: str, where: str) -> Origin | None:
        """Return whose words a message is, where the file is believed; a prompt begins a turn."""
        if self.outside_of is None:
            return None
        if speaker == USER:
            self.outside = ""
            return Origin(said_by=SaidBy.PERSON, came_from=where)
        if self.outside:
            return Origin(said_by=SaidBy.WEB, came_from=self.outside)
        return Origin(said_by=SaidBy.REPORT, came_from=where)

    def use(self, tool: object, given: object) -> None:
        """Note that the assistant has used a tool."""
        if self.outside_of is not None:
            self.outside = self.outside_of(
                str(tool), given if isinstance(given, dict) else {}, self.folder, self.outside
            )

    def message(
        self, number: object, speaker: str, text: str, time: object, where: str, origin: Origin | None = None
    ) -> Iterator[ImportItem]:
        """Yield a message, in parts where it is long; `number` is its name in the session, `where` its place."""
        at = time_of(time)
        own = f"{self.program}:{self.session[:_LONGEST_NAME]}/{str(number)[:_LONGEST_NAME]}"
        for part, content in enumerate(cut(text.strip(), MAX_CONTENT), 1):
            fields: dict[str, Any] = {
                "content": content,
                "key": own if part == 1 else f"{own}~{part}",
                "title": layers.shortened(" ".join(masked(self.title).split()), _TITLE),
                "tags": [self.program],
                "session_id": self.session[:_LONGEST_NAME],
                "speaker": speaker,
                "position": self.said,
                "project": self.project[:_LONGEST_NAME],
                "scope": self.scope,
                "observed_at": at,
                "created_at": at,
            }
            self.said += 1
            yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(fields), said=origin)


def text_of(blocks: object, *kinds: str) -> str:
    """Return what was said: a text, or those of a list's blocks that are of these kinds and hold one."""
    if isinstance(blocks, str):
        return blocks.strip()
    parts = blocks if isinstance(blocks, list) else []
    said = (one.get("text") for one in parts if isinstance(one, dict) and one.get("type") in kinds)
    return "\n\n".join(text.strip() for text in said if isinstance(text, str) and text.strip())


_SPACE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_HEAD: Final = 4_096
_BEGINS: Final = frozenset({"start_map", "start_array"})
_ENDS: Final = frozenset({"end_map", "end_array"})


class _Bounded:
    """A file of which only so many bytes are read between two pieces, as one piece stands in the memory whole."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._left = LARGEST_FILE

    def read(self, size: int = -1) -> bytes:
        self._left -= max(size, 0)
        if self._left < 0:
            raise Unreadable(f"One conversation is larger than {LARGEST_FILE // 2**20} MiB.")
        return self._source.read(size)

    def found(self) -> None:
        self._left = LARGEST_FILE


def objects(source: BinaryIO, name: str, what: str) -> Iterator[tuple[str, Any]]:
    """Yield each value of a list with its place, `name, what number`, or the one object that a document is.

    Raises `Unreadable` where it is no strict JSON; what stands before that was yielded.
    """
    head = source.read(_HEAD)
    start = len(_BOM) if head.startswith(_BOM) else 0
    source.seek(start, SEEK_SET)
    bounded = _Bounded(source)
    above = 1 if head[start:].lstrip(_SPACE).startswith(b"[") else 0
    try:
        for number, one in enumerate(_values(bounded, above), 1):
            bounded.found()
            yield f"{name}, {what} {number}", one
    except ijson.IncompleteJSONError:
        raise Unreadable(CUT) from None
    except (ijson.JSONError, UnicodeDecodeError, RecursionError):
        raise Unreadable("It is not JSON.") from None


def _values(source: _Bounded, above: int) -> Iterator[Any]:
    """Yield each JSON value below so many levels as soon as it is whole; raise `Unreadable` where it is too deep.

    The levels are counted as they begin: the library's own way to a value has a name as long as all that is above it,
    at each level.
    """
    level, builder = 0, ijson.ObjectBuilder()
    for event, value in ijson.basic_parse(source, use_float=True):
        begins, ends = event in _BEGINS, event in _ENDS
        level += begins - ends
        if level > above + DEEPEST:
            raise Unreadable("It is nested too deeply.")
        if (begins and level <= above) or (ends and level < above):
            continue
        builder.event(event, value)
        if level == above:
            yield builder.value
            builder = ijson.ObjectBuilder()


_SPOKEN: Final = ("text", "multimodal_text")


def read_chatgpt(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield each message of user and assistant, conversation by conversation; raise `Unreadable` for broken JSON."""
    return items_of(objects(source, name, "conversation"), _messages)


def _messages(found: dict[str, Any], where: str) -> Iterator[ImportItem]:
    mapping = found.get("mapping")
    if not isinstance(mapping, dict):
        raise Unreadable("It is no conversation: it has no `mapping`.")
    session = str(found.get("conversation_id") or found.get("id") or found.get("create_time") or where)
    talk = Conversation("chatgpt", session, str(found.get("title") or ""), scope=Scope.PERSONAL)
    for number, node in _branch(mapping, found.get("current_node")):
        message = node.get("message")
        if (
            isinstance(message, dict)
            and (speaker := _speaker(message))
            and (text := _chatgpt_text(message.get("content")))
        ):
            yield from talk.message(message.get("id") or number, speaker, text, message.get("create_time"), where)


def _branch(mapping: dict[str, Any], last: object) -> list[tuple[str, dict[str, Any]]]:
    """Return the messages from the first to the `last` one; where that is not there, to the one that was made last."""
    nodes = {number: node for number, node in mapping.items() if isinstance(node, dict)}
    if last not in nodes:
        parents = {node.get("parent") for node in nodes.values() if isinstance(node.get("parent"), str)}
        last = max((one for one in nodes if one not in parents), key=lambda one: _made(nodes[one]), default=None)
    found: dict[str, dict[str, Any]] = {}
    while isinstance(last, str) and last in nodes and last not in found:
        found[last] = nodes[last]
        last = nodes[last].get("parent")
    return list(found.items())[::-1]


def _made(node: dict[str, Any]) -> float:
    message = node.get("message")
    made = message.get("create_time") if isinstance(message, dict) else None
    return float(made) if isinstance(made, int | float) else 0.0


def _speaker(message: dict[str, Any]) -> str | None:
    """Return who says a message to whom it is shown; None for what tools and the program itself say."""
    author, about = message.get("author"), message.get("metadata")
    speaker = SPEAKERS.get(str(author.get("role"))) if isinstance(author, dict) else None
    hidden = isinstance(about, dict) and about.get("is_visually_hidden_from_conversation")
    to_a_tool = speaker == ASSISTANT and message.get("recipient") not in (None, "all")
    return None if hidden or to_a_tool else speaker


def _chatgpt_text(content: object) -> str:
    if not isinstance(content, dict) or content.get("content_type") not in _SPOKEN:
        return ""
    parts = content.get("parts")
    said = [one.strip() for one in parts if isinstance(one, str)] if isinstance(parts, list) else []
    return "\n\n".join(filter(None, said))


def read_claude(source: BinaryIO, name: str) -> Iterator[ImportItem | Problem]:
    """Yield each message, conversation by conversation, and each noted text; raise `Unreadable` for broken JSON."""
    return items_of(objects(source, name, "conversation"), _claude_messages)


def _claude_messages(found: dict[str, Any], where: str) -> Iterator[ImportItem]:
    if "conversations_memory" in found or "project_memories" in found:
        yield from _noted(found, where)
        return
    messages = found.get("chat_messages")
    if not isinstance(messages, list):
        raise Unreadable("It is no conversation: it has no `chat_messages`.")
    session, title = str(found.get("uuid") or where), str(found.get("name") or "")
    talk = Conversation("claude", session, title, scope=Scope.PERSONAL)
    for number, one in enumerate(messages, 1):
        speaker = SPEAKERS.get(str(one.get("sender"))) if isinstance(one, dict) else None
        if speaker is None:
            continue
        plain = one.get("text")
        text = text_of(one.get("content"), "text") or (plain.strip() if isinstance(plain, str) else "")
        if text:
            yield from talk.message(one.get("uuid") or number, speaker, text, one.get("created_at"), where)


def _noted(found: dict[str, Any], where: str) -> Iterator[ImportItem]:
    """Yield what Claude noted of all conversations, and of those in each project."""
    projects = found.get("project_memories")
    texts = {"": found.get("conversations_memory")} | (projects if isinstance(projects, dict) else {})
    owner = str(found.get("account_uuid") or "")[:_LONGEST_NAME]
    for project, text in texts.items():
        own = f"claude-memory:{owner}/{project[:_LONGEST_NAME]}"
        for part, content in enumerate(cut(text.strip(), MAX_CONTENT) if isinstance(text, str) else (), 1):
            fields = {"content": content, "key": own if part == 1 else f"{own}~{part}", "tags": ["claude"]}
            yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=fields | {"scope": Scope.PERSONAL})


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
        blocks = [one for one in _listed(message.get("content")) if isinstance(one, dict)]
        text = REMINDER.sub(gap, text_of(message.get("content"), "text")).strip()
        number = str(line.get("uuid") or where.rpartition(":")[2])
        marked = any(line.get(mark) for mark in MARKS)
        if text and not marked and not text.startswith(BY_CLAUDE) and number not in seen:
            seen.add(number)
            typed = speaker == ASSISTANT or (_typed(line, text) and not any(_answers(one) for one in blocks))
            origin = talk.speaks(speaker, where) if typed else None
            yield from talk.message(number, speaker, text, line.get("timestamp"), where, origin)
        for one in blocks:
            if str(one.get("type")).endswith("tool_use"):
                talk.use(one.get("name"), one.get("input"))

    return items_of(lines(source, name), item)


def _typed(line: dict[str, Any], text: str) -> bool:
    return is_typed_entry(line) and is_typed(text)


def _listed(content: object) -> list[Any]:
    return content if isinstance(content, list) else []


def _answers(block: dict[str, Any]) -> bool:
    """Say whether a block is what a tool has answered: no person types into the message that holds one."""
    return str(block.get("type")).endswith("tool_result")


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
            origin = talk.speaks(speaker, where) if typed else None
            yield from talk.message(number, speaker, text, line.get("timestamp"), where, origin)

    return items_of(lines(source, name), item)


def _codex_use(call: dict[str, Any]) -> tuple[object, object]:
    """Return the name of the tool that Codex called, and what that was given."""
    given = call.get("arguments") or call.get("input") or call.get("action")
    if isinstance(given, str) and given.startswith("{"):
        given = parsed(given.encode())
    name = call.get("name") or str(call["type"]).removesuffix("_call")
    return name, {"input": given} if isinstance(given, str) else given
