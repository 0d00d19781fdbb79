"""Condensing without a model: many memories as one list of what each says first, oldest first.

Here stands what every summary of memories keeps, whoever chose them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from recollect.domain.enums import ObservationType, strictest
from recollect.domain.fields import MAX_CONTENT
from recollect.domain.moments import MOST as MOST_MOMENTS
from recollect.domain.results import Memory
from recollect.text.layers import one_line, shortened

MOST: Final = 40
"""Memories in one summary; more would leave too little of each."""

IN_SHORT: Final = "In short: "
"""Begins the line of a summary that quotes nobody: it goes when one of the members is forgotten."""

_LABELS: Final = {"tags": 50, "concepts": None, "files_read": 200, "files_modified": 200, "when": MOST_MOMENTS}
"""Labels and files of memories, and how many of them a summary keeps."""
_CITED: Final = 140  # characters
_READ: Final = 2_000  # characters of a title that are read for that; longer ones are none
_QUOTED: Final = re.compile(r"- (?:\d{4}-\d\d-\d\d: )?(.+?)…?")


def may_condense(memory: Memory) -> bool:
    """Say whether a memory may be condensed: not if it has a key or a term, which the summary would not keep."""
    return memory.key is None and memory.ttl_days is None and memory.type is not ObservationType.COMPRESSED_SUMMARY


def first_words(memory: Memory) -> str:
    """Return the abstract of a memory, or its content without one, on one line."""
    return one_line(memory.abstract or memory.content)


def condensed_text(
    category: str | None,
    memories: Sequence[Memory],
    said: Callable[[Memory], str] = first_words,
    told: Sequence[Memory] | None = None,
) -> str:
    """Return one text of the memories: a heading, and a line `said(memory)` for each memory of `told`, or for each.

    A line that stands there already is not repeated.
    """
    lines = dict.fromkeys(f"- {said(one)}" for one in (memories if told is None else told))
    return "\n".join([heading(category, [day_of(one) for one in memories]), *lines])[:MAX_CONTENT]


def heading(category: str | None, days: Sequence[str]) -> str:
    """Return the first line of a summary of memories of these days."""
    about = f" about {category}" if category else ""
    return f"What {len(days)} memories{about} said from {min(days)} to {max(days)}:"


def quotable_text(memory: Memory) -> str:
    """Return all that a summary may quote of a memory, on one line."""
    return " ".join(f"{memory.content} {memory.abstract} {memory.title}".split())


def quotes_any(line: str, said: Iterable[str]) -> bool:
    """Say whether a line of a summary quotes one of these texts."""
    quoted = _QUOTED.fullmatch(line)
    return quoted is not None and any(quoted[1] in one for one in said)


def with_overview(content: str, overview: str) -> str:
    """Return a summary with a line below its heading that sums up what its members say together."""
    first, *lines = content.split("\n")
    return "\n".join([first, IN_SHORT + " ".join(overview.split()), *lines])


def with_titles(content: str, titles: Mapping[str, str]) -> str:
    """Return a summary in whose lines the new titles of its members replace the old titles."""
    new = {f"- {cited_title(old)}": f"- {cited_title(title)}" for old, title in titles.items()}
    return "\n".join(new.get(line, line) for line in content.split("\n"))


def cited_title(said: str) -> str:
    """Return a title as a summary of a session lists it."""
    return shortened(" ".join(said[:_READ].split()), _CITED)


def kept_fields(memories: Sequence[Memory]) -> dict[str, Any]:
    """Return the fields that a summary takes over from its memories.

    It has every label and file, the highest importance and the lowest trust of its memories. It is as sensitive as the
    most sensitive of them, and of their kind and project where they share one.
    """
    alike = {name: {getattr(one, name) for one in memories} for name in ("fact_type", "project")}
    return (
        merged_labels(map(labels_of, memories))
        | {name: values.pop() for name, values in alike.items() if len(values) == 1}
        | {
            "importance": max(one.importance for one in memories),
            "trust": min(one.trust for one in memories),
            "sensitivity": strictest(*(one.sensitivity for one in memories)),
        }
    )


def labels_of(one: Memory) -> dict[str, tuple[str, ...]]:
    """Return the labels and files of a memory."""
    return {name: getattr(one, name) for name in _LABELS}


def merged_labels(members: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, Any]:
    """Return every label and file of some memories, each once, up to the number that a summary keeps."""
    every = list(members)
    return {
        name: tuple(dict.fromkeys(value for one in every for value in one.get(name, ())))[:most]
        for name, most in _LABELS.items()
    }


def day_of(one: Memory) -> str:
    """Return the day on which a memory's event happened, or else on which it was stored, as text."""
    return (one.observed_at or one.created_at).date().isoformat()
