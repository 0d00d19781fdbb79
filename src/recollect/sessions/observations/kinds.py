"""Kinds: what type an observation is, what it is about, how much it matters and how far its source is trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from recollect.domain.enums import Concept, ObservationType
from recollect.sessions.observations.occurrence import Occurrence, Origin
from recollect.sessions.observations.statements import is_document
from recollect.text.terms import jaccard, topic_words

TRUST: Final[Mapping[Origin, float]] = {
    Origin.PROMPT: 0.9,
    Origin.FILE: 0.7,
    Origin.EDIT: 0.7,
    Origin.COMMAND: 0.6,
    Origin.REPORT: 0.5,
    Origin.OTHER: 0.4,
    Origin.WEB: 0.3,
}
"""How far each origin is trusted (0–1): people most, then files and tools, then what somebody put on the web."""

REWRITTEN: Final = 0.6
"""Jaccard similarity of the topic words that an edit takes out and puts in, from which it says the same otherwise."""

_DEFINES: Final = re.compile(
    r"^[ \t]*(?:(?:export|public|private|static|async|default|abstract|pub(?:\(\w+\))?)[ \t]+)*"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait|impl|type|module|component|CREATE TABLE|"
    r"@\w+\.(?:get|post|put|delete|route))\b",
    re.MULTILINE | re.IGNORECASE,
)
_TRADE_OFF: Final = re.compile(
    r"\b(?:trade-?offs?|at the (?:cost|expense|price) of|but (?:slower|faster|larger|smaller|costs?)|instead of|"
    r"rather than|in exchange for|worth (?:it|the)|versus|vs\.?|statt|au lieu de|en vez de)(?!\w)",
    re.IGNORECASE,
)


def kind_of_edit(occurrence: Occurrence) -> ObservationType:
    """Return `feature` for code that defines something new, `refactor` for the same in other words, else `change`.

    A refactoring takes text out and puts nearly the same words in. An edit of a document is a change.
    """
    if is_document(occurrence.path):
        return ObservationType.CHANGE
    before, after = topic_words(occurrence.removed), topic_words(occurrence.written)
    if before and jaccard(before, after) >= REWRITTEN:
        return ObservationType.REFACTOR
    new = len(_DEFINES.findall(occurrence.written)) > len(_DEFINES.findall(occurrence.removed))
    return ObservationType.FEATURE if new else ObservationType.CHANGE


def concepts_of(
    occurrence: Occurrence, kind: ObservationType | None, text: str, *, failed: bool
) -> tuple[Concept, ...]:
    """Return the concepts of an observation."""
    about = {
        Concept.PROBLEM_SOLUTION: kind is ObservationType.BUGFIX,
        Concept.GOTCHA: failed,
        Concept.WHAT_CHANGED: occurrence.origin is Origin.EDIT,
        Concept.PATTERN: kind is ObservationType.DECISION,
        Concept.TRADE_OFF: bool(_TRADE_OFF.search(text)),
        Concept.HOW_IT_WORKS: occurrence.origin in (Origin.REPORT, Origin.WEB),
    }
    return tuple(concept for concept, holds in about.items() if holds)


def importance_of(source: Origin, score: float) -> float:
    """Return the importance of a draft (0–1): by its score, and higher for a person's words than for a tool's."""
    base = {Origin.PROMPT: 0.55, Origin.WEB: 0.3}.get(source, 0.4)
    return round(min(base + 0.4 * score, 0.95), 2)
