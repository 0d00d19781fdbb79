"""Notes: what is written down of an occurrence, in its own words, or the reason why nothing is.

A note quotes: of a person the sentences that state something, of a command the lines that tell most, of an edit its
first comment or its longest new line, of a report its beginning. It is a draft for the agent, which knows the whole
session and says it better.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from recollect.domain.enums import Concept, FactType
from recollect.domain.enums import ObservationType as Kind
from recollect.prompt.orders import CERTAIN, is_order
from recollect.sessions.observations.command_lines import without_documents, works_of
from recollect.sessions.observations.kinds import TRUST, concepts_of, kind_of_edit
from recollect.sessions.observations.lines import Line, read_lines, without_frame
from recollect.sessions.observations.noise import noise_reason
from recollect.sessions.observations.occurrence import Occurrence, Origin
from recollect.sessions.observations.statements import explanations, own_words, statements, states_rule
from recollect.sessions.observations.trail import LONGEST_LINE, Trail, failure_line, proves, relative_path, trail_after
from recollect.text.layers import shortened

NOTHING: Final = "it says nothing that lasts"
LONGEST: Final = 400
"""Characters of a note."""

_MAX_TITLE: Final = 120
_MAX_EVIDENCE: Final = 300
_MAX_LINES: Final = 4  # of an output that a note quotes
_MAX_SENTENCES: Final = 60  # of a prompt that are looked at
_MAX_TAGS: Final = 5
_CHANGES_FOLDER: Final = re.compile(r"^cd \S+ && ")
_INTERPRETER: Final = re.compile(r"^(?:python[\d.]*|node|bash|sh|ruby|perl|deno|bun|ssh)$")
_PREFERS: Final = re.compile(r"\b(?:prefer|bevorzug|préfèr|prefier)\w*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Note:
    """What may become a draft: its text, its title, the evidence in one line, and what kind of observation it is.

    It is a `proof` where a command passes now that failed before an edit. `kind` is None for a sentence of a person
    that states no rule.
    """

    content: str
    title: str
    kind: Kind | None
    evidence: str = ""
    fact_type: FactType = FactType.GENERAL
    concepts: tuple[Concept, ...] = ()
    trust: float = 0.5
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    proof: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """The result of looking at an occurrence: the trail after it, and notes, or the reason why nothing is noted."""

    trail: Trail
    notes: tuple[Note, ...] = ()
    noise: str = ""


def observe(occurrence: Occurrence, trail: Trail, seen: Collection[str] = (), folder: str = "") -> Observed:
    """Return the notes on an occurrence and the new trail; `seen` are digests of earlier outputs."""
    if occurrence.origin is Origin.PROMPT:
        notes = _notes_of_prompt(occurrence)
        return Observed(trail, notes) if notes else Observed(trail, noise=NOTHING)
    lines = read_lines(occurrence.text, by_sentence=occurrence.origin in (Origin.REPORT, Origin.WEB))
    after, proof = trail_after(trail, occurrence, lines, folder), proves(occurrence, lines, trail)
    if not proof and (reason := noise_reason(occurrence, lines, seen)):
        return Observed(after, noise=reason)
    match occurrence.origin:
        case Origin.EDIT:
            note = _note_of_edit(occurrence, folder)
        case Origin.REPORT | Origin.WEB:
            note = _note_of_report(occurrence, lines)
        case _:
            note = _note_of_output(occurrence, lines, trail, folder, proof=proof)
    return Observed(after, (note,)) if note.content else Observed(after, noise=NOTHING)


def _notes_of_prompt(occurrence: Occurrence) -> tuple[Note, ...]:
    """Return the sentences of a prompt, without pasted text that gives orders to a model."""
    found = statements(own_words(occurrence.text))[:_MAX_SENTENCES]
    return tuple(_note_of_sentence(occurrence, text) for text in found if not is_order(text, CERTAIN))


def _note_of_sentence(occurrence: Occurrence, text: str) -> Note:
    """Return the note of a person's sentence: a decision or a preference where it states a rule."""
    rule = states_rule(text)
    kind = Kind.DECISION if rule else None
    preference = FactType.PREFERENCE if _PREFERS.search(text) else FactType.DECISION
    return Note(
        content=shortened(text, LONGEST),
        title=_title_of(text),
        kind=kind,
        fact_type=preference if rule else FactType.GENERAL,
        concepts=concepts_of(occurrence, kind, text, failed=False),
        trust=TRUST[Origin.PROMPT],
    )


def _note_of_edit(occurrence: Occurrence, folder: str) -> Note:
    """Return the note of an edit: the path, then the first comment that the edit adds, else its longest new line."""
    path, kind = relative_path(occurrence.path, folder), kind_of_edit(occurrence)
    old, before = (
        set(explanations(occurrence.removed, occurrence.path)),
        {line.strip() for line in occurrence.removed.split("\n")},
    )
    remarks = [text for text in explanations(occurrence.written, occurrence.path) if text not in old]
    new = [line.strip() for line in occurrence.written.split("\n") if line.strip() and line.strip() not in before]
    text = remarks[0] if remarks else max(new, key=lambda line: min(len(line), LONGEST_LINE), default="")[:LONGEST_LINE]
    content = shortened(f"{path}: {text}", LONGEST) if text else ""
    return Note(
        content=content,
        title=_title_of(content),
        kind=kind,
        evidence=f"Edit of {path}",
        concepts=concepts_of(occurrence, kind, text, failed=False),
        trust=TRUST[Origin.EDIT],
        files_modified=tuple(relative_path(each, folder) for each in occurrence.patched) or ((path,) if path else ()),
    )


def _note_of_report(occurrence: Occurrence, lines: Sequence[Line]) -> Note:
    """Return the note of a report or a page: the request, then the beginning of the text."""
    about = str(
        occurrence.input.get("description") or occurrence.input.get("query") or occurrence.input.get("url") or ""
    ).strip()
    text = " ".join(
        without_frame(line.text) for line in lines if not line.noise and not line.text.rstrip().endswith("?")
    )
    content = shortened(f"{about}: {text}" if about and text else text, LONGEST)
    return Note(
        content=content,
        title=_title_of(content),
        kind=Kind.DISCOVERY,
        evidence=f"Report of {occurrence.tool}",
        concepts=concepts_of(occurrence, Kind.DISCOVERY, text, failed=False),
        trust=TRUST[occurrence.origin],
    )


def _note_of_output(occurrence: Occurrence, lines: Sequence[Line], trail: Trail, folder: str, *, proof: bool) -> Note:
    """Return the note of a command: its most informative lines; for a fixed failure, the failure and the edits."""
    command = " ".join(_CHANGES_FOLDER.sub("", without_documents(occurrence.command)).split())
    path = relative_path(occurrence.path, folder)
    about = occurrence.description.rstrip(" .:") or (
        f"`{shortened(command, 80)}`" if command else path or occurrence.tool
    )
    text = "; ".join(_most_informative(lines))
    if proof and trail.failure:
        text = f"{trail.failure[1]}: passes after a change of {', '.join(trail.edits)}"
    content = shortened(_with_relative_paths(folder, f"{about}: {text}" if text else ""), LONGEST)
    kind = Kind.BUGFIX if proof else Kind.DISCOVERY
    return Note(
        content=content,
        title=_title_of(content),
        kind=kind,
        evidence=shortened(f"`{command}`", _MAX_EVIDENCE) if command else "",
        concepts=concepts_of(occurrence, kind, text, failed=bool(failure_line(occurrence, lines))),
        trust=TRUST.get(occurrence.origin, TRUST[Origin.OTHER]),
        files_read=(path,) if path else (),
        files_modified=trail.edits if proof else (),
        tags=_program_tags(occurrence),
        proof=proof,
    )


def _most_informative(lines: Sequence[Line]) -> list[str]:
    """Return the few most informative lines, in their order."""
    useful = [line for line in lines if not line.noise] or list(lines)
    best = sorted(range(len(useful)), key=lambda place: (-useful[place].worth, place))[:_MAX_LINES]
    return list(dict.fromkeys(shortened(without_frame(useful[place].text), LONGEST_LINE) for place in sorted(best)))


def _program_tags(occurrence: Occurrence) -> tuple[str, ...]:
    """Return the names of the programs that ran, as tags; for an interpreter the name of its script."""
    names = []
    for ran in works_of(occurrence.command):
        name, _, rest = ran.partition(" ")
        names.append(rest.partition(" ")[0].rpartition("/")[2].partition(".")[0] if _INTERPRETER.match(name) else name)
    found = (name.lower() for name in names)
    return tuple(dict.fromkeys(name for name in found if re.fullmatch(r"[a-z][\w.+-]{1,29}", name)))[:_MAX_TAGS]


def _with_relative_paths(folder: str, text: str) -> str:
    """Return a text with the paths below a folder as relative ones."""
    return text.replace(folder.rstrip("/") + "/", "") if len(folder) > 1 else text


def _title_of(text: str) -> str:
    return shortened(" ".join(text.split()), _MAX_TITLE).rstrip(" .:;,")
