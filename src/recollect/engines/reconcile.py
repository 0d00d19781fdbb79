"""The judge of duplicates that asks a language model: whether a new text is new, adds to an old one, or ends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, Field

from recollect.domain.enums import Choice, Reason
from recollect.engines.chat import PydanticAiChat

_TASK: Final = (
    "The user's text is a JSON object: `new` is a note that somebody wants to keep, `old` are notes that are kept "
    "already, the nearest first. Decide what becomes of `new`. `create`: it says something of its own. `merge`: it "
    "adds to one of `old`, and both are still right. `skip`: one of `old` says all of it. `supersede`: one of `old` "
    "cannot be right any longer if `new` is. `which` is the number of that old note, from 0. In doubt, `create`."
)
_ANSWER_TOKENS: Final = 400  # tokens; models that think need more than the answer
_MAX_CHARACTERS: Final = 4_000  # characters of each text


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of something new, which of the old texts (from 0, nearest first) that is about, and why."""

    choice: Choice
    which: int = 0
    reason: Reason = Reason.UNSURE


class _Answer(BaseModel):
    choice: Choice
    which: int = Field(0, ge=0, description="Number of the old note.")
    reason: Reason


class ChatReconcile:
    """Judges by a language model."""

    def __init__(self, chat: PydanticAiChat) -> None:
        self._chat = chat

    def choose(self, new: str, old: Sequence[str]) -> Judgement:
        """Return the choice, and which of `old` it is about; raise `ModelUnusable` when there is none to be had."""
        text = {"new": new[:_MAX_CHARACTERS], "old": [text[:_MAX_CHARACTERS] for text in old]}
        found = self._chat.ask(_TASK, text, _Answer, most=_ANSWER_TOKENS)
        return Judgement(found.choice, found.which, found.reason)
