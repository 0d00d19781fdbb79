"""Observe: what becomes of an occurrence: noise with a reason, or a candidate for a memory in words.

Kinds: what a kept occurrence is, what it is about, how much it matters and how far its source is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from recollect.domain.enums import Concept, FactType, ObservationType
from recollect.prompt.orders import CERTAIN, orders
from recollect.sessions.lessons import ASKED, Trail, Wording, followed, lesson, proves, relative, stated
from recollect.sessions.observations.features import Feature, features, of_sentence
from recollect.sessions.observations.lines import Line, read
from recollect.sessions.observations.noise import noise
from recollect.sessions.observations.occurrence import Occurrence, Origin, works
from recollect.sessions.observations.statements import said, sentences

NOTHING: Final = "it says nothing that lasts"
_MOST: Final = 5
_ABOUT: Final = 160  # characters
_SENTENCES: Final = 60  # of a prompt that are judged
_INTERPRETER: Final = re.compile(r"^(?:python[\d.]*|node|bash|sh|ruby|perl|deno|bun|ssh)$")


@dataclass(frozen=True, slots=True)
class Part:
    """A text that is judged by itself, with its features: a sentence of a prompt, or what a tool told.

    `about` says of a tool what it was used for.
    """

    text: str
    features: Mapping[Feature, float]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may become a memory, and the `parts` of it to judge: each sentence of a prompt, else all of it."""

    parts: tuple[Part, ...]
    wording: Wording
    kind: ObservationType
    concepts: tuple[Concept, ...]
    fact_type: FactType
    trust: float
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What an occurrence is: noise, with the reason, or a candidate; and the trail after it.

    It is a `proof` where a command passes that failed before an edit.
    """

    trail: Trail
    noise: str = ""
    candidate: Candidate | None = None
    proof: bool = False


def observe(one: Occurrence, trail: Trail, seen: Collection[str] = (), folder: str = "") -> Observed:
    """Look at an occurrence; `seen` are the digests of earlier outputs, and paths are shown from `folder`."""
    if one.origin is Origin.PROMPT:
        parts = parts_of(one.text)
        return Observed(trail, "", _of_prompt(parts)) if parts else Observed(trail, NOTHING)
    lines = read(one.text, by_sentence=one.origin in (Origin.REPORT, Origin.WEB))
    after = followed(trail, one, lines)
    proof = proves(one, lines, trail)
    if not proof and (reason := noise(one, lines, seen)):
        return Observed(after, reason)
    return Observed(after, "", _of_tool(one, lines, trail, folder), proof)


def parts_of(prompt: str) -> tuple[Part, ...]:
    """Return the sentences of a prompt, without what a person pasted that gives orders to a model."""
    found = sentences(said(prompt))[:_SENTENCES]
    return tuple(Part(text, of_sentence(text)) for text in found if not orders(text, CERTAIN))


def _of_prompt(parts: tuple[Part, ...]) -> Candidate:
    return Candidate(
        parts=parts,
        wording=stated([one.text for one in parts], parts[0].text),
        kind=ObservationType.DECISION,
        concepts=(Concept.PATTERN,),
        fact_type=FactType.DECISION,
        trust=TRUST[Origin.PROMPT],
    )


def _of_tool(one: Occurrence, lines: list[Line], trail: Trail, folder: str) -> Candidate:
    found, wording = features(one, lines, trail), lesson(one, lines, trail, folder)
    kind = kind_of(one, lines, trail)
    read_files, modified = _files(one, trail, folder)
    return Candidate(
        parts=(told_of(wording.content, one.description or one.command or wording.title, found),),
        wording=wording,
        kind=kind,
        concepts=_concepts(one, kind, found),
        fact_type=FactType.GENERAL,
        trust=TRUST.get(one.origin, TRUST[Origin.OTHER]),
        files_read=read_files,
        files_modified=modified,
        tags=_tags(one),
    )


def told_of(lesson: str, about: str, found: Mapping[Feature, float]) -> Part:
    """Return what a tool told as it is judged: without the task, which says nothing of how much it tells."""
    return Part(lesson.partition(f" {ASKED}")[0], found, about[:_ABOUT])


def kind_of(one: Occurrence, lines: list[Line], trail: Trail) -> ObservationType:
    """Return what kind of observation the use of a tool is, given what came before."""
    if one.origin is Origin.EDIT:
        return ObservationType.CHANGE
    if proves(one, lines, trail):
        return ObservationType.BUGFIX
    return ObservationType.DISCOVERY


def _concepts(one: Occurrence, kind: ObservationType, found: Mapping[Feature, float]) -> tuple[Concept, ...]:
    about = {
        Concept.PROBLEM_SOLUTION: kind is ObservationType.BUGFIX,
        Concept.GOTCHA: bool(found.get(Feature.FAILURE)),
        Concept.WHAT_CHANGED: one.origin is Origin.EDIT,
        Concept.WHY_IT_EXISTS: bool(found.get(Feature.REMARK)),
        Concept.HOW_IT_WORKS: one.origin in (Origin.REPORT, Origin.WEB, Origin.FILE),
    }
    return tuple(concept for concept, holds in about.items() if holds)


def _files(one: Occurrence, trail: Trail, folder: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    path = relative(one.path, folder)
    if one.origin is Origin.EDIT:
        return (), tuple(relative(each, folder) for each in one.patched) or ((path,) if path else ())
    shown = trail.edits if one.command and (trail.edited or trail.failure) else ()
    edited = dict.fromkeys(relative(file, folder) for file, _ in shown if file)
    return (path,) if path else (), tuple(edited)


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


def importance_of(source: Origin, score: float) -> float:
    """Return how much a memory matters (0–1): its score, and what a person said more than what a tool wrote."""
    base = {Origin.PROMPT: 0.55, Origin.WEB: 0.3}.get(source, 0.4)
    return round(min(base + 0.4 * score, 0.95), 2)
