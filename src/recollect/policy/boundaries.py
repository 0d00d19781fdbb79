"""Boundaries: where in a stream of outputs one topic ends and another begins.

An output is compared with the topic words of the last five together, and only when there are five: outputs of tools
share few words, so that a window of fewer finds a boundary at nearly every one. The state is a value that its owner
writes as JSON and reads back, so that a session goes on after a restart.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from pydantic import AwareDatetime, BaseModel, ConfigDict

from recollect.policy.text.normalization import fold
from recollect.policy.text.terms import stem
from recollect.policy.text.topics import jaccard, spellings, topic_words

OUTPUTS: Final = 5
"""Outputs in the sliding window."""

THRESHOLD: Final = 0.25
"""Jaccard similarity below which an output is of another topic than the window."""

_FEWEST: Final = 3  # topic words of an output that says what it is about
_KEYWORDS: Final = 8
_MOST: Final = 60  # topic words of one output that are kept
_WORD: Final = re.compile(r"\w+")


class Window(BaseModel):
    """The topic words of the last outputs of one topic, the oldest first; at most five outputs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outputs: tuple[frozenset[str], ...] = ()


class Boundary(BaseModel):
    """When a topic began, and the words of its first output that say what it is about, the most frequent first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    keywords: tuple[str, ...]


def observed(window: Window, output: str, at: AwareDatetime) -> tuple[Window, Boundary | None]:
    """Return the next window after an output, and the boundary before it if it is of another topic.

    The window of a new topic holds that output alone, and is not compared before it is full. An output of fewer than
    three topic words says nothing of the topic and changes nothing.
    """
    counts = _counts(output)
    words = frozenset(word for word, _ in counts.most_common(_MOST))
    if len(words) < _FEWEST:
        return window, None
    if len(window.outputs) == OUTPUTS and jaccard(words, frozenset().union(*window.outputs)) < THRESHOLD:
        return Window(outputs=(words,)), Boundary(at=at, keywords=_keywords(output, counts))
    return Window(outputs=(*window.outputs, words)[-OUTPUTS:]), None


def _counts(text: str) -> Counter[str]:
    """Return the topic words of a text with how often each stands in it, in an order that the text alone decides."""
    topics = topic_words(text)
    spoken = Counter(stem(word) for word in _WORD.findall(fold(text)))
    return Counter({word: spoken[word] or 1 for word in sorted(topics)})


def _keywords(text: str, counts: Counter[str]) -> tuple[str, ...]:
    """Return the most frequent topic words of a text as it spells them first; parts of names as their stems."""
    spelt = spellings([text])
    return tuple(spelt.get(word, word) for word, _ in counts.most_common(_KEYWORDS))
