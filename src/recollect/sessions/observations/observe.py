"""Observe: what becomes of an occurrence: noise with a reason, or a candidate for a memory in words.

Kinds: what a kept occurrence is, what it is about, how much it matters and how far its source is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from recollect.domain.enums import Concept, FactType, ObservationType
from recollect.prompt.orders import CERTAIN, orders
from recollect.sessions.observations.features import Feature, Wording, features, relative, worded
from recollect.sessions.observations.lines import Line, read
from recollect.sessions.observations.noise import noise
from recollect.sessions.observations.occurrence import Occurrence, Origin, Trail, followed, works
from recollect.sessions.observations.statements import SIGNS, Statement, statements

_TRIPLE: Final = re.compile(
    r"^(?:the |our |their )?(?P<subject>[\w][\w ./@-]{1,40}?) (?P<predicate>(?:is|are|lives?|runs?|uses?|needs?|"
    r"belongs?|goes|go|comes?|stays?|moved|listens?|must be|must)(?: (?:in|on|at|under|through|to|from|behind|by|into|"
    r"with))?) (?P<object>[^.;:]{3,120})",
    re.IGNORECASE,
)
_PRONOUNS: Final = frozenset("it this that these those they we i you he she there what which who".split())
_MOST: Final = 5
_INTERPRETER: Final = re.compile(r"^(?:python[\d.]*|node|bash|sh|ruby|perl|deno|bun|ssh)$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may become a memory; `facts` are triples of subject, predicate and object."""

    wording: Wording
    features: Mapping[Feature, float]
    kind: ObservationType
    concepts: tuple[Concept, ...]
    fact_type: FactType
    trust: float
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    facts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What an occurrence is: noise, with the reason, or a candidate; and the trail after it."""

    trail: Trail
    noise: str = ""
    candidate: Candidate | None = None
    lines: list[Line] = field(default_factory=list)


def observe(
    one: Occurrence, trail: Trail, seen: Collection[str] = (), folder: str = "", *, opens: bool = False
) -> Observed:
    """Judge an occurrence; `seen` are the digests of earlier outputs, and paths are shown from `folder`.

    `opens` says that it opens a topic.
    """
    lines = read(one.text, by_sentence=one.origin in (Origin.REPORT, Origin.WEB))
    after = followed(trail, one, lines, opens=opens)
    if reason := noise(one, lines, seen):
        return Observed(after, reason, None, lines)
    stated = _without_orders(statements(one.text)) if one.origin is Origin.PROMPT else []
    if one.origin is Origin.PROMPT and not any(said.states for said in stated):
        return Observed(after, _of_no_statement(stated), None, lines)
    found = features(one, lines, stated, trail)
    kind = kind_of(one, found, trail.task)
    read_files, modified = _files(one, trail, folder)
    candidate = Candidate(
        wording=worded(one, lines, stated, trail, folder),
        features=found,
        kind=kind,
        concepts=concepts_of(one, kind, found),
        fact_type=fact_type_of(one, found),
        trust=TRUST.get(one.origin, TRUST[Origin.OTHER]),
        files_read=read_files,
        files_modified=modified,
        tags=_tags(one),
        facts=_facts(stated),
    )
    return Observed(after, "", candidate, lines)


def _without_orders(stated: list[Statement]) -> list[Statement]:
    """Leave out what a person pasted that gives orders to a model."""
    return [one for one in stated if not orders(one.text, CERTAIN)]


def _of_no_statement(stated: list[Statement]) -> str:
    signs = {sign for one in stated for sign in one.signs}
    if not stated:
        return "it says nothing that lasts"
    if "chatter" in signs and not signs & {"task", "complaint", "question"}:
        return "it is small talk"
    return "it asks for something and states nothing that holds later"


def _files(one: Occurrence, trail: Trail, folder: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    path = relative(one.path, folder)
    if one.origin is Origin.EDIT:
        return (), tuple(relative(each, folder) for each in one.patched) or ((path,) if path else ())
    edited = (relative(trail.edited[0], folder),) if trail.edited and trail.edited[0] and one.command else ()
    return (path,) if path else (), edited


def _tags(one: Occurrence) -> tuple[str, ...]:
    """Return the programs that ran, by which a memory of a command is found again."""
    named = (_program(work).lower() for work in works(one.command))
    return tuple(dict.fromkeys(name for name in named if re.fullmatch(r"[a-z][\w.+-]{1,29}", name)))[:_MOST]


def _program(work: str) -> str:
    """Return the program of a work; of an interpreter the script that it runs."""
    name, _, rest = work.partition(" ")
    if not _INTERPRETER.match(name):
        return name
    return rest.partition(" ")[0].rpartition("/")[2].partition(".")[0]


def _facts(stated: list[Statement]) -> tuple[tuple[str, str, str], ...]:
    """Return the triples that plain sentences of a prompt say: what is where, and what uses what."""
    found = []
    for one in stated:
        match = _TRIPLE.match(one.text)
        if (
            one.states
            and match
            and not _PRONOUNS & set(match["subject"].lower().split())
            and "question" not in one.signs
        ):
            found.append((match["subject"].strip(), match["predicate"].lower(), match["object"].strip()))
    return tuple(found[:_MOST])


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


def kind_of(one: Occurrence, found: Mapping[Feature, float], task: str = "") -> ObservationType:
    """Return what kind of observation an occurrence is, given what it was for."""
    if one.origin is Origin.PROMPT:
        if found.get(Feature.REPLACEMENT, 0) > found.get(Feature.RULE, 0):
            return ObservationType.CHANGE
        states = any(
            found.get(feature) for feature in (Feature.RULE, Feature.DECISION, Feature.LIMIT, Feature.PREFERENCE)
        )
        return ObservationType.DECISION if states else ObservationType.DISCOVERY
    if one.origin is Origin.EDIT:
        return ObservationType.FEATURE if not one.removed and not found.get(Feature.NOTES) else ObservationType.CHANGE
    failed, fixed = found.get(Feature.ERROR, 0), found.get(Feature.AFTER_EDIT, 0)
    if not fixed or (failed >= 1 and not found.get(Feature.BOTH)) or one.description.rstrip().endswith("?"):
        return ObservationType.DISCOVERY
    if _FIXES.search(one.description) or SIGNS["complaint"].search(task):
        return ObservationType.BUGFIX
    if _REFACTORS.search(f"{one.description} {task}"):
        return ObservationType.REFACTOR
    return ObservationType.FEATURE if _ADDS.search(f"{one.description} {task}") else ObservationType.DISCOVERY


def concepts_of(one: Occurrence, kind: ObservationType, found: Mapping[Feature, float]) -> tuple[Concept, ...]:
    """Return what an occurrence is about."""
    has = found.get
    about = {
        Concept.PROBLEM_SOLUTION: kind is ObservationType.BUGFIX or bool(has(Feature.BOTH)),
        Concept.GOTCHA: bool(has(Feature.ERROR) or (has(Feature.STATUS) and not has(Feature.MEASURED))),
        Concept.WHAT_CHANGED: kind is ObservationType.CHANGE
        or bool(has(Feature.REPLACEMENT))
        or one.origin is Origin.EDIT,
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
