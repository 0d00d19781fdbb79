"""Kinds: what a kept occurrence is, what it is about, how much it matters and how far its source is trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from recollect.domain.enums import Concept, FactType, Observation
from recollect.sessions.observations.features import Feature
from recollect.sessions.observations.occurrence import Occurrence, Origin
from recollect.sessions.observations.statements import SIGNS

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

_FIXES: Final = re.compile(
    r"\b(?:fix\w*|bug\w*|solv\w*|repair\w*|regress\w*|leak\w*|broken|wrong|patch\w*)\b", re.IGNORECASE
)
_REFACTORS: Final = re.compile(r"\b(?:refactor\w*|renam\w*|extract\w*|clean ?up|simplif\w*|split\w*)\b", re.IGNORECASE)
_ADDS: Final = re.compile(r"\b(?:add\w*|implement\w*|new|introduc\w*|support\w*)\b", re.IGNORECASE)


def kind_of(one: Occurrence, found: Mapping[Feature, float], task: str = "") -> Observation:
    """Return what kind of observation an occurrence is, given what it was for."""
    if one.origin is Origin.PROMPT:
        if found.get(Feature.REPLACEMENT, 0) > found.get(Feature.RULE, 0):
            return Observation.CHANGE
        states = any(
            found.get(feature) for feature in (Feature.RULE, Feature.DECISION, Feature.LIMIT, Feature.PREFERENCE)
        )
        return Observation.DECISION if states else Observation.DISCOVERY
    if one.origin is Origin.EDIT:
        return Observation.FEATURE if not one.removed and not found.get(Feature.NOTES) else Observation.CHANGE
    failed, fixed = found.get(Feature.ERROR, 0), found.get(Feature.AFTER_EDIT, 0)
    if not fixed or (failed >= 1 and not found.get(Feature.BOTH)) or one.description.rstrip().endswith("?"):
        return Observation.DISCOVERY
    if _FIXES.search(one.description) or SIGNS["complaint"].search(task):
        return Observation.BUGFIX
    if _REFACTORS.search(f"{one.description} {task}"):
        return Observation.REFACTOR
    return Observation.FEATURE if _ADDS.search(f"{one.description} {task}") else Observation.DISCOVERY


def concepts_of(one: Occurrence, kind: Observation, found: Mapping[Feature, float]) -> tuple[Concept, ...]:
    """Return what an occurrence is about."""
    has = found.get
    about = {
        Concept.PROBLEM_SOLUTION: kind is Observation.BUGFIX or bool(has(Feature.BOTH)),
        Concept.GOTCHA: bool(has(Feature.ERROR) or (has(Feature.STATUS) and not has(Feature.MEASURED))),
        Concept.WHAT_CHANGED: kind is Observation.CHANGE or bool(has(Feature.REPLACEMENT)) or one.origin is Origin.EDIT,
        Concept.WHY_IT_EXISTS: bool(has(Feature.REASON) or has(Feature.REMARK)),
        Concept.PATTERN: one.origin is Origin.PROMPT and bool(has(Feature.RULE)),
        Concept.TRADE_OFF: bool(has(Feature.COMPARED, 0) >= 1 and has(Feature.MEASURED, 0) >= 0.5),
        Concept.HOW_IT_WORKS: bool(has(Feature.FACT)) or one.origin in (Origin.REPORT, Origin.WEB, Origin.FILE),
    }
    return tuple(concept for concept, holds in about.items() if holds)


def fact_type_of(one: Occurrence, found: Mapping[Feature, float]) -> FactType:
    """Return what kind of knowledge an occurrence is: what a person said is a decision, a preference or a context."""
    if one.origin is not Origin.PROMPT:
        return FactType.GENERAL
    if found.get(Feature.RULE) or found.get(Feature.DECISION) or found.get(Feature.REPLACEMENT):
        return FactType.DECISION
    return FactType.PREFERENCE if found.get(Feature.PREFERENCE) else FactType.CONTEXT


def importance_of(one: Occurrence, score: float) -> float:
    """Return how much a memory matters (0–1): its score, and what a person said more than what a tool wrote."""
    base = {Origin.PROMPT: 0.55, Origin.WEB: 0.3}.get(one.origin, 0.4)
    return round(min(base + 0.4 * score, 0.95), 2)
