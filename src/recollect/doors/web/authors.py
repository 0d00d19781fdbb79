"""The speaker of a memory, and the way it came in, in words such as "you" and "Claude Code, from a command"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from recollect.domain.enums import ObservationType, Source
from recollect.domain.origin import SaidBy
from recollect.domain.results import Memory
from recollect.doors.agents.agents import agents

_NO_AGENT: Final = "an agent"
_FROM: Final[Mapping[SaidBy, str]] = {
    SaidBy.ASSISTANT: "with its memory tool",
    SaidBy.REPORT: "in a report",
    SaidBy.FILE: "from a file",
    SaidBy.COMMAND: "from a command",
    SaidBy.FOREIGN_FILE: "from a file outside the project",
    SaidBy.TOOL: "from another tool",
    SaidBy.WEB: "from a web page",
    SaidBy.MODEL: "in the words of a language model",
}
_SUMMARIES: Final[Mapping[ObservationType, str]] = {
    ObservationType.SESSION_SUMMARY: "at a session's end",
    ObservationType.CHECKPOINT: "at a checkpoint",
    ObservationType.COMPRESSED_SUMMARY: "from older notes",
}


def agent_title(name: str) -> str:
    """Return an agent's name as people write it: Claude Code for claude-code."""
    known = agents().get(name)
    return known.title if known is not None else name or _NO_AGENT


def who(memory: Memory, user: str, agent: str = "") -> str:
    """Return who said a memory and how it came in, as words for this `user`; `agent` is the agent of its session."""
    person = "you" if memory.author == user else memory.author
    machine = agent_title(agent) + ("" if memory.author == user else f" of {memory.author}")
    if memory.type is not None and (summed_up := _SUMMARIES.get(memory.type)):
        return f"{machine}, {summed_up}"
    if memory.source is Source.IMPORT:
        return f"{person}, by an import"
    said_by = memory.stamp.said_by
    if said_by in _FROM:
        return f"{machine}, {_FROM[said_by]}"
    return f"{person}, in a prompt to {agent_title(agent)}" if memory.source is Source.HOOK else person
