"""Condensing without a model: many memories as one list of what each says first, oldest first."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.domain.fields import MAX_CONTENT
from recollect.domain.results import Memory
from recollect.policy.text.layers import one_line


def condensed(category: str | None, memories: Sequence[Memory]) -> str:
    """Return one text of the memories: a heading, then a line for each with its day, its key words and its id.

    The same line is not said twice.
    """
    first, last = min(_day(one) for one in memories), max(_day(one) for one in memories)
    about = f" about {category}" if category else ""
    heading = f"What {len(memories)} memories{about} said from {first} to {last}:"
    lines = dict.fromkeys(f"- {one_line(one.abstract or one.content)}" for one in memories)
    return "\n".join([heading, *lines])[:MAX_CONTENT]


def _day(one: Memory) -> str:
    return (one.observed_at or one.created_at).date().isoformat()
