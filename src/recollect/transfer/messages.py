"""Messages of conversations as memories: who said what, in which session, at which place in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from recollect.domain.fields import MAX_CONTENT
from recollect.domain.transfer import ImportItem, ItemKind
from recollect.gate import masked
from recollect.text import layers
from recollect.transfer.markdown_sections import cut
from recollect.transfer.reading import set_only, time_of

USER: Final = "user"
ASSISTANT: Final = "assistant"
SPEAKERS: Final = {USER: USER, "human": USER, ASSISTANT: ASSISTANT}
"""Who speaks in a conversation, by the names that programs give them; what others say is no memory."""
_NAME: Final = 200
_TITLE: Final = 500


@dataclass(slots=True)
class Conversation:
    """One session of a program, and how many of its messages there are so far."""

    program: str
    session: str
    title: str = ""
    project: str = ""
    said: int = 0

    def message(self, number: object, speaker: str, text: str, time: object, where: str) -> Iterator[ImportItem]:
        """Yield a message, in parts where it is long; `number` is its name in the session, `where` its place."""
        at = time_of(time)
        own = f"{self.program}:{self.session[:_NAME]}/{str(number)[:_NAME]}"
        for part, content in enumerate(cut(text.strip(), MAX_CONTENT), 1):
            fields: dict[str, Any] = {
                "content": content,
                "key": own if part == 1 else f"{own}~{part}",
                "title": layers.shortened(" ".join(masked(self.title).split()), _TITLE),
                "tags": [self.program],
                "session_id": self.session[:_NAME],
                "speaker": speaker,
                "position": self.said,
                "project": self.project[:_NAME],
                "observed_at": at,
                "created_at": at,
            }
            self.said += 1
            yield ImportItem(kind=ItemKind.MEMORY, where=where, fields=set_only(fields))


def text_of(blocks: object, *kinds: str) -> str:
    """Return what was said: a text, or those of a list's blocks that are of these kinds and hold one."""
    if isinstance(blocks, str):
        return blocks.strip()
    parts = blocks if isinstance(blocks, list) else []
    said = (one.get("text") for one in parts if isinstance(one, dict) and one.get("type") in kinds)
    return "\n\n".join(text.strip() for text in said if isinstance(text, str) and text.strip())
