"""Condensing without a model: many memories as one list of what each says first, oldest first.

Here stands what every summary of memories keeps, whoever chose them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from recollect.domain.enums import Observation, strictest
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.results import Memory
from recollect.text.layers import one_line, shortened

MOST: Final = 40
"""Memories in one summary; more would leave too little of each."""

IN_SHORT: Final = "In short: "
"""Begins the line of a summary that quotes nobody: it goes when one of the members is forgotten."""

_MOST_TAGS: Final = 50
_MOST_FILES: Final = 200
_CITED: Final = 140  # characters


def may_condense(memory: Memory) -> bool:
    """Say whether a memory may be condensed: not one with a key or a term, which the summary would not keep."""
    return memory.key is None and memory.ttl_days is None and memory.type is not Observation.COMPRESSED_SUMMARY


def beginning(memory: Memory) -> str:
    """Return what a memory says first, on one line."""
    return one_line(memory.abstract or memory.content)


def condensed(category: str | None, memories: Sequence[Memory], said: Callable[[Memory], str] = beginning) -> str:
    """Return one text of the memories: a heading, then a line for each of what is `said` of it.

    The same line is not said twice.
    """
    first, last = min(day(one) for one in memories), max(day(one) for one in memories)
    about = f" about {category}" if category else ""
    heading = f"What {len(memories)} memories{about} said from {first} to {last}:"
    lines = dict.fromkeys(f"- {said(one)}" for one in memories)
    return "\n".join([heading, *lines])[:MAX_CONTENT]


def with_overview(content: str, overview: str) -> str:
    """Return a summary that says, below its heading, in one line what its members say together."""
    heading, *lines = content.split("\n")
    return "\n".join([heading, IN_SHORT + " ".join(overview.split()), *lines])


def retitled(content: str, titles: Mapping[str, str]) -> str:
    """Return a summary whose lines have the new titles of its members in the place of the old ones."""
    new = {f"- {cited(old)}": f"- {cited(title)}" for old, title in titles.items()}
    return "\n".join(new.get(line, line) for line in content.split("\n"))


def cited(said: str) -> str:
    """Return a title as a summary of a session lists it."""
    return shortened(" ".join(said.split()), _CITED)


def kept_fields(memories: Sequence[Memory]) -> dict[str, Any]:
    """Return what a summary keeps of its memories: every label and file, the highest importance, the mean trust.

    It is as sensitive as the most sensitive of them, and of their kind and project where they have one in common.
    """
    most = {"tags": _MOST_TAGS, "concepts": None, "files_read": _MOST_FILES, "files_modified": _MOST_FILES}
    lists = {
        name: tuple(dict.fromkeys(v for one in memories for v in getattr(one, name)))[:n] for name, n in most.items()
    }
    alike = {name: {getattr(one, name) for one in memories} for name in ("fact_type", "project")}
    return (
        lists
        | {name: values.pop() for name, values in alike.items() if len(values) == 1}
        | {
            "importance": max(one.importance for one in memories),
            "trust": sum(one.trust for one in memories) / len(memories),
            "sensitivity": strictest(*(one.sensitivity for one in memories)),
        }
    )


def day(one: Memory) -> str:
    """Return the day on which what a memory says happened or was stored."""
    return (one.observed_at or one.created_at).date().isoformat()
