"""Boundaries: where in a stream of prompts and outputs one topic ends and another begins.

The keywords of a text are compared with those of the last five texts together, by their Jaccard similarity. Below the
threshold another topic begins. Outputs of tools share few words with each other, so an output opens a topic only
where the window is full. The state is a value that its owner writes as JSON and reads back, so that a session goes on
after a restart.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict

from recollect.domain.enums import OnSecret
from recollect.domain.lifecycle import SubmitPrompt, UseTool
from recollect.domain.requests import StoreFact
from recollect.errors import RecollectError
from recollect.gate import clear, masked
from recollect.sessions.observations.lines import read
from recollect.sessions.observations.occurrence import shown_input, used
from recollect.sessions.observations.statements import said
from recollect.text.normalization import fold
from recollect.text.terms import jaccard, spellings, stem, topic_words

if TYPE_CHECKING:
    from recollect.sessions.session_state import Context

OUTPUTS: Final = 5
"""Texts in the sliding window."""

THRESHOLD: Final = 0.05
"""Jaccard similarity of keywords below which a text is of another topic than the window."""

PREDICATE: Final = "boundary_at"
_FEWEST: Final = 3  # keywords of a text that says what it is about
_MOST: Final = 20  # keywords of a text, the most frequent
_NAMED: Final = 8  # keywords that name a topic
_READ: Final = 20_000  # characters of a text that are looked at
_BOUNDARIES: Final = 200  # of a session that are kept
_WORD: Final = re.compile(r"\w+")


class Window(BaseModel):
    """The keywords of the last texts of a topic, the oldest first, at most five."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    outputs: tuple[frozenset[str], ...] = ()


class Boundary(BaseModel):
    """When a topic began, and the words of its first text that say what it is about, the most frequent first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    keywords: tuple[str, ...]


def window_after(window: Window, text: str, at: datetime, *, prompt: bool = False) -> tuple[Window, Boundary | None]:
    """Return the next window after an output or a prompt, and the boundary before it if it opens another topic.

    The window of a new topic holds that text alone. A text of fewer than three keywords says nothing of the topic.
    """
    counts = _counts(text)
    words = frozenset(word for word, _ in counts.most_common(_MOST))
    if len(words) < _FEWEST:
        return window, None
    full = len(window.outputs) == OUTPUTS or (prompt and bool(window.outputs))
    if full and jaccard(words, frozenset().union(*window.outputs)) < THRESHOLD:
        return Window(outputs=(words,)), Boundary(at=at, keywords=_keywords(text, counts))
    return Window(outputs=(*window.outputs, words)[-OUTPUTS:]), None


def _counts(text: str) -> Counter[str]:
    """Return the topic words of a text with how often each stands in it, in an order that the text alone decides."""
    topics = topic_words(text)
    spoken = Counter(stem(word) for word in _WORD.findall(fold(text)))
    return Counter({word: spoken[word] or 1 for word in sorted(topics)})


def _keywords(text: str, counts: Counter[str]) -> tuple[str, ...]:
    """Return the most frequent topic words of a text as it spells them first; parts of names as their stems."""
    spelt = spellings([text])
    return tuple(spelt.get(word, word) for word, _ in counts.most_common(_NAMED))


def segment_prompt(context: Context[SubmitPrompt]) -> None:
    """Look whether a prompt opens another topic."""
    _segment(context, said(context.event.prompt), prompt=True)


def segment_output(context: Context[UseTool]) -> None:
    """Look whether an output is of another topic; lines that are noise say nothing of it."""
    one = used(context.event.tool, context.event.input, context.event.output)
    told = [line.text for line in read(one.text) if not line.noise]
    _segment(context, "\n".join([shown_input(one.input), *told]), prompt=False)


def _segment(context: Context[SubmitPrompt] | Context[UseTool], text: str, *, prompt: bool) -> None:
    if not (context.settings.capture and context.has("memory.boundaries")):
        return
    window, boundary = window_after(context.state.window, masked(text[:_READ]), context.at, prompt=prompt)
    context.update(window=window)
    if boundary is not None:
        _keep(context, boundary)


def _keep(context: Context[SubmitPrompt] | Context[UseTool], boundary: Boundary) -> None:
    fact = clear(
        StoreFact(
            subject=f"session:{context.event.session_id}",
            predicate=PREDICATE,
            object=" ".join([f"{boundary.at:%Y-%m-%dT%H:%M:%SZ}", *boundary.keywords]),
            valid_from=boundary.at,
        ),
        OnSecret.REDACT,
    ).value
    keywords = tuple(fact.object.split(" ")[1:])
    kept = boundary.model_copy(update={"keywords": keywords})
    context.update(boundaries=(*context.state.boundaries, kept)[-_BOUNDARIES:])
    if context.has("memory.store"):
        try:
            context.perform("store_fact", **fact.model_dump(exclude_unset=True))
        except RecollectError:
            return  # the boundary is in the session's state all the same
