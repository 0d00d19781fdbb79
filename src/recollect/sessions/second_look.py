"""A second look at a session that ended, by a language model where there is one: what of it is worth a memory.

The fitted weights know the form of a text and what it is about; a language model understands what it says. It chooses
among what the weights saw, and writes nothing: what it adds is stored as it was said, with its own origin, and what it
leaves out is forgotten softly. What people said and what tools told are two questions, so that no output of a tool
says anything about a person's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from recollect.app import App
from recollect.domain.enums import Sensitivity, Source
from recollect.domain.lifecycle import Decision, Observation, Session, SubmitPrompt
from recollect.domain.requests import Caller, Draft, SoftForget
from recollect.domain.results import Memory
from recollect.errors import ModelUnusable, RecollectError
from recollect.memory.forget import memory_forget
from recollect.search.visibility import unfiltered
from recollect.sessions.session_state import BY_YOU, drafted, keep_after_all

if TYPE_CHECKING:
    from recollect.engines.chat import PydanticAiChat

ADDED: Final = "a language model found it worth a memory"
REMOVED: Final = "a language model found nothing in it that lasts; `recollect undo {}` brings it back"
_MOST: Final = 40  # texts of people, and of tools: those with the best scores
_TOGETHER: Final = 12  # texts of one question
_SHOWN: Final = 1_000  # characters of a text
_ANSWER: Final = 600  # tokens

_WORTH: Final = (
    "The user's text is a JSON object of numbered texts. {of} `worth` has the numbers of those that will help an agent "
    "in a later session, which did not see this one: {worth}. Leave out {rest}, and what an earlier one of the texts "
    "says already. An empty list is a good answer."
)
_OF_PEOPLE: Final = _WORTH.format(
    of="They are what people typed to a coding agent in one session.",
    worth="rules, decisions with or without their reasons, preferences, habits, facts about the system, its people or "
    "its world",
    rest="tasks, questions, thanks, reports of the moment",
)
_OF_TOOLS: Final = _WORTH.format(
    of="They are what the tools of a coding agent told in one session.",
    worth="the cause of a failure, with or without what cured it; a measurement that decides something; a fact, a "
    "limit or a decision that a page, a ticket, a chat or a comment states; how the system really behaves",
    rest="routine output, code and settings as they stand, edits that give no reason, builds, installations and "
    "tests that prove nothing new, the state of the moment, what any engineer knows",
)


class _Worth(BaseModel):
    worth: list[int]


@dataclass(frozen=True, slots=True)
class Seen:
    """An observation of a session with what it says: the memory that it was kept as, or what would have been stored."""

    observation: Observation
    text: str
    memory: Memory | None = None


def look_again(app: App, session: Session, caller: Caller) -> tuple[list[int], list[int]]:
    """Ask what of a session is worth a memory, and do so; return the ids of what was added and of what was removed."""
    chat = app.capabilities.chat
    added: list[int] = []
    removed: list[int] = []
    if chat is None:
        return added, removed
    every = _seen(app, session, caller)
    for said in (True, False):
        shown = [one for one in every if (one.observation.event == SubmitPrompt.event) is said]
        shown = sorted(shown, key=lambda one: -(one.observation.score or 0.0))[:_MOST]
        shown.sort(key=lambda one: one.observation.number)
        lasting = _worth(chat, shown, said=said)
        if lasting is None:
            continue
        for number, one in enumerate(shown):
            if one.memory is None and number in lasting:
                added += _added(app, session, one.observation, caller)
            elif one.memory is not None and number not in lasting:
                removed += _removed(app, session, one, one.memory, caller)
    return added, removed


def _worth(chat: PydanticAiChat, shown: Sequence[Seen], *, said: bool) -> set[int] | None:
    """Return the places of what is worth a memory; None where the model says nothing of use, or that all is worthless.

    A model that finds nothing in all that was kept rather did not read it.
    """
    try:
        found = worth(chat, [one.text for one in shown], said=said)
    except ModelUnusable:
        return None
    return found or (None if any(one.memory for one in shown) else set())


def worth(chat: PydanticAiChat, texts: Sequence[str], *, said: bool) -> set[int]:
    """Return the places of the texts of a session that help later; people `said` them, or tools told them.

    A question shows at most twelve. Raises `ModelUnusable`, also where only one of several questions has no answer.
    """
    found: set[int] = set()
    for start in range(0, len(texts), _TOGETHER):
        part = range(start, min(start + _TOGETHER, len(texts)))
        shown = {str(number): texts[number][:_SHOWN] for number in part}
        answer = chat.ask(_OF_PEOPLE if said else _OF_TOOLS, shown, _Worth, most=_ANSWER)
        found |= {number for number in answer.worth if number in part}
    return found


def _seen(app: App, session: Session, caller: Caller) -> list[Seen]:
    """Return what the weights kept and dropped of a session, without noise and what another memory says already.

    What a person decided on stays as it is.
    """
    every = [one for one in app.sessions.observations(session) if one.reason != BY_YOU]
    kept = {one.memory_id for one in every if one.memory_id and one.decision is Decision.KEPT}
    memories = app.records.load(kept, unfiltered(app, Draft(content="-"), caller)) if kept else {}
    found: dict[int, Seen] = {}  # of a memory of several observations the last one counts
    for one in every:
        memory = memories.get(one.memory_id or 0)
        if one.decision is Decision.KEPT and memory is not None:
            captured = memory.source is Source.HOOK and one.score is not None and memory.superseded_by is None
            undecided = memory.standing is None and memory.review is None
            if captured and undecided and memory.sensitivity is Sensitivity.PUBLIC:
                found[memory.id] = Seen(one, _told(memory.content, memory.subtitle), memory)
        elif one.decision is Decision.DROPPED and one.draft and one.memory_id is None:
            draft, _ = drafted(one.draft)
            if draft.sensitivity is Sensitivity.PUBLIC:
                found[-one.number] = Seen(one, _told(draft.content, draft.subtitle))
    return list(found.values())


def _told(content: str, evidence: str) -> str:
    return content if not evidence or evidence in content else f"{content}\n{evidence}"


def _added(app: App, session: Session, one: Observation, caller: Caller) -> list[int]:
    try:
        return [int(keep_after_all(app, session, one, caller, ADDED))]
    except RecollectError:
        return []


def _removed(app: App, session: Session, one: Seen, memory: Memory, caller: Caller) -> list[int]:
    try:
        memory_forget(app, SoftForget(id=str(memory.id)), caller)
    except RecollectError:
        return []
    reason = REMOVED.format(memory.id)
    app.sessions.decide(session, one.observation.number, Decision.DROPPED, reason, memory.id)
    return [memory.id]
