"""Messages of conversations as memories: who said what, in which session, at which place in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from recollect.domain.enums import Scope
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.origin import Origin, SaidBy, with_address
from recollect.domain.transfer import ImportItem, ItemKind
from recollect.gate import masked
from recollect.text import layers
from recollect.transfer.markdown_sections import cut_text
from recollect.transfer.reading import time_of, without_empty

USER: Final = "user"
ASSISTANT: Final = "assistant"
SPEAKERS: Final = {USER: USER, "human": USER, ASSISTANT: ASSISTANT}
"""Who speaks in a conversation, by the names that programs give them; what others say is no memory."""
LONGEST_NAME: Final = 200
_TITLE: Final = 500

Outside = Callable[[str, Mapping[str, Any], str, str], str]
"""Says what from outside an assistant has read, once it has used one more tool.

It takes the name of the tool, what that was given, the folder of the session, and what it said before; an empty text
stands for nothing.
"""


def any_tool(tool: str, _given: Mapping[str, Any], _folder: str, outside: str) -> str:
    """Return the tool itself as an outside source, whatever it is."""
    return with_address(outside, tool)


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
    message_count: int = 0
    folder: str = ""
    outside: str = ""
    outside_of: Outside | None = None

    def origin_of_message(self, speaker: str, where: str) -> Origin | None:
        """Return the origin of a message, where the file is trusted to say who spoke; a prompt begins a turn."""
        if self.outside_of is None:
            return None
        if speaker == USER:
            self.outside = ""
            return Origin(said_by=SaidBy.PERSON, came_from=where)
        if self.outside:
            return Origin(said_by=SaidBy.WEB, came_from=self.outside)
        return Origin(said_by=SaidBy.REPORT, came_from=where)

    def use(self, tool: object, arguments: object) -> None:
        """Note that the assistant has used a tool."""
        if self.outside_of is not None:
            self.outside = self.outside_of(
                str(tool), arguments if isinstance(arguments, dict) else {}, self.folder, self.outside
            )

    def message(
        self, number: object, speaker: str, text: str, time: object, where: str, origin: Origin | None = None
    ) -> Iterator[ImportItem]:
        """Yield a message, in parts where it is long; `number` is its name in the session, `where` its place."""
        at = time_of(time)
        own = f"{self.program}:{self.session[:LONGEST_NAME]}/{str(number)[:LONGEST_NAME]}"
        for part, content in enumerate(cut_text(text.strip(), MAX_CONTENT), 1):
            fields: dict[str, Any] = {
                "content": content,
                "key": own if part == 1 else f"{own}~{part}",
                "title": layers.shortened(" ".join(masked(self.title).split()), _TITLE),
                "tags": [self.program],
                "session_id": self.session[:LONGEST_NAME],
                "speaker": speaker,
                "position": self.message_count,
                "project": self.project[:LONGEST_NAME],
                "scope": self.scope,
                "observed_at": at,
                "created_at": at,
            }
            self.message_count += 1
            yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=without_empty(fields), said=origin)


def text_of(blocks: object, *kinds: str) -> str:
    """Return the text of a message: the text itself, or the texts of its blocks of these kinds."""
    if isinstance(blocks, str):
        return blocks.strip()
    parts = blocks if isinstance(blocks, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in kinds)
    return "\n\n".join(text.strip() for text in texts if isinstance(text, str) and text.strip())
