"""Boundaries: where in a stream of prompts and outputs one topic ends and another begins.

A text is compared with the topic words of the last five together. Outputs of tools share few words with each other, so
that an output opens a topic only where there are five before it and hardly any of its words stood in the topic so
far. A prompt is the natural place: what it asks, how it begins, and how long it was quiet before it are weighed too.
The state is a value that its owner writes as JSON and reads back, so that a session goes on after a restart.

The settings of a project for its sessions, as its files, or a client in its stead, ask for them.

A project's files come from whoever wrote the repository. So they may change these settings alone, turn on nothing that
is off, and spend and fade no more than without them. A value that is not allowed changes nothing.
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
from recollect.sessions.memorability import memorability
from recollect.sessions.observations.lines import read
from recollect.sessions.observations.observe import parts_of
from recollect.sessions.observations.occurrence import shown_input, used
from recollect.sessions.observations.statements import said
from recollect.text.terms import jaccard, spellings, stem, topic_words
from recollect.text.writing_systems import fold

if TYPE_CHECKING:
    from recollect.sessions.session_state import Context
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from recollect.domain.lifecycle import LifecycleSettings
from recollect.projects import ASKING, FILTERS, NAMES, NO_LESS, NO_MORE, table_in

OUTPUTS: Final = 5
"""Texts in the sliding window."""

THRESHOLD: Final = 0.25
"""Jaccard similarity to the window below which a text may be of another topic."""

KNOWN: Final = 0.05
"""Share of an output's words that stood in the topic before, from which it is of that topic."""

OPENS: Final = 5.6
"""Evidence from which a prompt opens a topic."""

_EVIDENCE: Final = (4.2, 0.3, 5.0, -3.7)
"""What a pause, new words, a long prompt and a statement count, fitted to labelled sessions."""

_FEWEST: Final = 3  # topic words of a text that says what it is about
_KEYWORDS: Final = 8
_MOST: Final = 60  # topic words of one text that are kept
_MOST_OF_TOPIC: Final = 600
_QUIET: Final = 300.0  # seconds without an event after which a prompt may well be about something else
_WORD: Final = re.compile(r"\w+")


class Window(BaseModel):
    """The topic words of the last texts of one topic, the oldest first, at most five; those of the whole topic.

    `last_at` is when the last of them came.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    outputs: tuple[frozenset[str], ...] = ()
    topic: frozenset[str] = frozenset()
    last_at: AwareDatetime | None = None


class Boundary(BaseModel):
    """When a topic began, and the words of its first text that say what it is about, the most frequent first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    keywords: tuple[str, ...]


def observed(
    window: Window, text: str, at: datetime, prompt: bool = False, states: float = 0.0
) -> tuple[Window, Boundary | None]:
    """Return the next window after an output or a prompt, and the boundary before it if it opens another topic.

    The window of a new topic holds that text alone. A text of fewer than three topic words says nothing of the topic
    and only moves the time. `states` is how far a prompt states something instead of asking for it, 0–1.
    """
    counts = _counts(text)
    words = frozenset(word for word, _ in counts.most_common(_MOST))
    if len(words) < _FEWEST:
        return window.model_copy(update={"last_at": at}), None
    differs = bool(window.outputs) and jaccard(words, frozenset().union(*window.outputs)) < THRESHOLD
    if differs and (opening(window, words, at, states) >= OPENS if prompt else _departs(window, words)):
        return Window(outputs=(words,), topic=words, last_at=at), Boundary(at=at, keywords=_keywords(text, counts))
    topic = window.topic | words if len(window.topic) < _MOST_OF_TOPIC else window.topic
    return Window(outputs=(*window.outputs, words)[-OUTPUTS:], topic=topic, last_at=at), None


def _departs(window: Window, words: frozenset[str]) -> bool:
    """Say whether an output shares hardly a word with the topic so far."""
    return len(window.outputs) == OUTPUTS and len(words & window.topic) / len(words) < KNOWN


def opening(window: Window, words: frozenset[str], at: datetime, states: float) -> float:
    """Return the evidence that a prompt opens a topic: it follows a pause, is of new words, says much, and asks."""
    quiet = (at - window.last_at).total_seconds() / _QUIET if window.last_at else 0.0
    fresh = 1.0 - len(words & window.topic) / len(words)
    return sum(
        w * x for w, x in zip(_EVIDENCE, (min(quiet, 2.0), fresh, min(len(words) / 15, 1.0), states), strict=True)
    )


def _counts(text: str) -> Counter[str]:
    """Return the topic words of a text with how often each stands in it, in an order that the text alone decides."""
    topics = topic_words(text)
    spoken = Counter(stem(word) for word in _WORD.findall(fold(text)))
    return Counter({word: spoken[word] or 1 for word in sorted(topics)})


def _keywords(text: str, counts: Counter[str]) -> tuple[str, ...]:
    """Return the most frequent topic words of a text as it spells them first; parts of names as their stems."""
    spelt = spellings([text])
    return tuple(spelt.get(word, word) for word, _ in counts.most_common(_KEYWORDS))


PREDICATE: Final = "boundary_at"
_READ: Final = 20_000  # characters of one text that are looked at
_BOUNDARIES: Final = 200  # of one session that are kept


def segment_prompt(context: Context[SubmitPrompt]) -> None:
    """Look whether a prompt opens another topic."""
    parts = parts_of(said(context.event.prompt))
    known = context.meanings(parts)
    scores = [memorability(one.features, known[place] if known else None).score for place, one in enumerate(parts)]
    _segment(context, said(context.event.prompt), prompt=True, states=max(scores, default=0.0))


def segment_output(context: Context[UseTool]) -> None:
    """Look whether an output is of another topic; lines that are noise say nothing of it."""
    one = used(context.event.tool, context.event.input, context.event.output)
    told = [line.text for line in read(one.text) if not line.noise]
    _segment(context, "\n".join([shown_input(one.input), *told]), prompt=False)


def _segment(
    context: Context[SubmitPrompt] | Context[UseTool], text: str, *, prompt: bool, states: float = 0.0
) -> None:
    if not (context.settings.capture and context.has("memory.boundaries")):
        return
    window, boundary = observed(context.state.window, masked(text[:_READ]), context.at, prompt, states)
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


log = logging.getLogger(__name__)


def settings_in(folder: str, defaults: LifecycleSettings) -> LifecycleSettings:
    """Return the settings of the project around a folder over the `defaults`; the nearest file that has any counts.

    Any file turns capture or injection off.
    """
    table = table_in(folder)
    return narrowed(defaults, table, folder) if table else defaults


def narrowed(defaults: LifecycleSettings, asked: Mapping[str, Any], project: str) -> LifecycleSettings:
    """Return the defaults with those values that are allowed, of what the settings of a `project` ask for."""
    settings = defaults
    for name, value in asked.items():
        if name not in NAMES:
            continue
        text = ",".join(map(str, value)) if isinstance(value, list) else value
        try:
            settings = LifecycleSettings.model_validate(settings.model_dump() | {name: text})
        except ValidationError as error:
            log.warning("the setting %s of the project %s is not used: %s", name, project, error.errors()[0]["msg"])
    least = {name: min(getattr(settings, name), getattr(defaults, name)) for name in NO_MORE}
    most = {name: max(getattr(settings, name), getattr(defaults, name)) for name in NO_LESS}
    least["ask"] = min(settings.ask, defaults.ask, key=ASKING.index)
    off = sorted((settings.off - FILTERS) | defaults.off)
    return settings.model_copy(update=least | most | {"modules_off": ",".join(off)})
