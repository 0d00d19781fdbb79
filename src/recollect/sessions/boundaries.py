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
from typing import Final

from pydantic import AwareDatetime, BaseModel, ConfigDict

from recollect.text.normalization import fold
from recollect.text.terms import jaccard, spellings, stem, topic_words

OUTPUTS: Final = 5
"""Texts in the sliding window."""

THRESHOLD: Final = 0.05
"""Jaccard similarity of keywords below which a text is of another topic than the window."""

_MIN_KEYWORDS: Final = 3  # keywords of a text that says what it is about
_MAX_KEYWORDS: Final = 20  # keywords of a text, the most frequent
_NAMING_KEYWORDS: Final = 8  # keywords that name a topic
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
    """Return the window after an output or a prompt, and the boundary before the text if it opens another topic.

    The window of a new topic holds that text alone. A text of fewer than three keywords leaves the topic open.
    """
    counts = _topic_word_counts(text)
    words = frozenset(word for word, _ in counts.most_common(_MAX_KEYWORDS))
    if len(words) < _MIN_KEYWORDS:
        return window, None
    full = len(window.outputs) == OUTPUTS or (prompt and bool(window.outputs))
    if full and jaccard(words, frozenset().union(*window.outputs)) < THRESHOLD:
        return Window(outputs=(words,)), Boundary(at=at, keywords=_most_frequent_words(text, counts))
    return Window(outputs=(*window.outputs, words)[-OUTPUTS:]), None


def _topic_word_counts(text: str) -> Counter[str]:
    """Return the topic words of a text and how often each occurs, in an order that the text alone decides."""
    topics = topic_words(text)
    spoken = Counter(stem(word) for word in _WORD.findall(fold(text)))
    return Counter({word: spoken[word] or 1 for word in sorted(topics)})


def _most_frequent_words(text: str, counts: Counter[str]) -> tuple[str, ...]:
    """Return the most frequent topic words of a text in their first spelling; parts of names as their stems."""
    spelt = spellings([text])
    return tuple(spelt.get(word, word) for word, _ in counts.most_common(_NAMING_KEYWORDS))
