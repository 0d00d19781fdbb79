"""Notes: what is written down of an occurrence, in its own words, and why nothing is where nothing is.

A note quotes: of a person the sentences that state something, of a command the lines that tell most, of an edit its
first comment or its longest new line, of a report its beginning. It is a draft for the agent, which knows the whole
session and says it better. The trail is what a session did just before, as far as that tells what an output means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, ConfigDict

from recollect.domain.enums import Concept, FactType
from recollect.domain.enums import ObservationType as Kind
from recollect.prompt.orders import CERTAIN, orders
from recollect.sessions.memorability import states_rule
from recollect.sessions.observations.command_lines import without_documents, work, works
from recollect.sessions.observations.kinds import TRUST, concepts_of, kind_of_edit
from recollect.sessions.observations.lines import Line, from_both_ends, read, read_failures
from recollect.sessions.observations.noise import noise
from recollect.sessions.observations.occurrence import Occurrence, Origin
from recollect.sessions.observations.statements import explanations, said, sentences
from recollect.text.layers import shortened

NOTHING: Final = "it says nothing that lasts"
LONGEST: Final = 400
"""Characters of a note."""

_TITLE: Final = 120
_EVIDENCE: Final = 300
_LINE: Final = 160
_LINES: Final = 4  # of an output that a note quotes
_EDITS: Final = 3  # files that a trail remembers
_STEPS: Final = 12  # of a plan
_SENTENCES: Final = 60  # of a prompt that are looked at
_TAGS: Final = 5
_FRAME: Final = re.compile(r"^\s*(?:E\s{2,}|[│├└─*>•-]{1,80}\s+|\d{2}:\d{2}:\d{2}\S*\s+|#+\s+|\*\*)+")
_PASSED: Final = re.compile(r"^(?!.*\b\d+ (?:failed|errors?)\b).*\b\d+ passed\b|\btest result: ok\b|^OK$|^PASS\b")
_CHANGES_FOLDER: Final = re.compile(r"^cd \S+ && ")
_INTERPRETER: Final = re.compile(r"^(?:python[\d.]*|node|bash|sh|ruby|perl|deno|bun|ssh)$")
_PREFERS: Final = re.compile(r"\b(?:prefer|bevorzug|préfèr|prefier)\w*", re.IGNORECASE)


class Trail(BaseModel):
    """What a session did just before.

    `failure` is the command that failed last and how, `draft` the memory that tells of it (0 for none), `edits` are the
    files that were changed since then, `open` is what the agent's plan has not done yet.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    failure: tuple[str, str] | None = None
    draft: int = 0
    edits: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


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


def observe(one: Occurrence, trail: Trail, seen: Collection[str] = (), folder: str = "") -> Observed:
    """Look at an occurrence; `seen` are the digests of earlier outputs, and paths are shown from `folder`."""
    if one.origin is Origin.PROMPT:
        notes = _of_prompt(one)
        return Observed(trail, notes) if notes else Observed(trail, noise=NOTHING)
    lines = read(one.text, by_sentence=one.origin in (Origin.REPORT, Origin.WEB))
    after, proof = trail_after(trail, one, lines, folder), proves(one, lines, trail)
    if not proof and (reason := noise(one, lines, seen)):
        return Observed(after, noise=reason)
    match one.origin:
        case Origin.EDIT:
            note = _of_edit(one, folder)
        case Origin.REPORT | Origin.WEB:
            note = _of_report(one, lines)
        case _:
            note = _of_output(one, lines, trail, folder, proof=proof)
    return Observed(after, (note,)) if note.content else Observed(after, noise=NOTHING)


def trail_after(trail: Trail, one: Occurrence, lines: Sequence[Line], folder: str = "") -> Trail:
    """Return the trail after what a tool did."""
    if one.origin is Origin.PLAN:
        return trail.model_copy(update={"open": _undone(one)})
    if one.origin is Origin.EDIT:
        path = relative(one.path, folder)
        return trail.model_copy(update={"edits": tuple(dict.fromkeys((*trail.edits, path)))[-_EDITS:]})
    if one.origin is not Origin.COMMAND:
        return trail
    if failed := failure_line(one, lines):
        return trail.model_copy(update={"failure": (work(one.command), failed), "draft": 0, "edits": ()})
    if trail.failure is None or passes_now(one, lines, trail):
        return trail.model_copy(update={"failure": None, "draft": 0, "edits": ()})
    return trail


def failure_line(one: Occurrence, lines: Sequence[Line]) -> str:
    """Return the line of an output that tells how it failed, empty where it did not."""
    found = [line for line in lines if "failure" in line.signs]
    if found and (one.failed or not any(_PASSED.search(line.text) for line in lines)):
        return _bare(max(found, key=lambda line: line.worth).text)[:_LINE]
    return _bare(lines[-1].text)[:_LINE] if one.failed and lines else ""


def failure_of(one: Occurrence) -> str:
    """Return how an output tells that it failed, as `failure_line` does, but judge only the lines that may say so."""
    return _failure(one.text, one.failed)


@lru_cache(maxsize=16)
def _failure(text: str, failed: bool) -> str:
    lines = from_both_ends(text.split("\n"))
    if not failed and any(map(_PASSED.search, lines)):
        return ""
    return failure_line(Occurrence(Origin.COMMAND, text, failed=failed), read_failures(lines))


def passes_now(one: Occurrence, lines: Sequence[Line], trail: Trail) -> bool:
    """Say whether a command passes now although it failed before; it may have run more of the same tests, or fewer."""
    if trail.failure is None or failure_line(one, lines):
        return False
    before, now = trail.failure[0].split(), work(one.command).split()
    return before[:2] == now[:2] or (before[:1] == now[:1] and 1 in (len(before), len(now)))


def proves(one: Occurrence, lines: Sequence[Line], trail: Trail) -> bool:
    """Say whether a command passes now that failed before an edit."""
    return one.origin is Origin.COMMAND and bool(trail.edits) and passes_now(one, lines, trail)


def relative(path: str, folder: str) -> str:
    """Return a path from a folder, as it is where it lies elsewhere."""
    inside = folder and path.startswith(folder.rstrip("/") + "/")
    return path[len(folder.rstrip("/")) + 1 :] if inside else path


def _of_prompt(one: Occurrence) -> tuple[Note, ...]:
    """Return the sentences of a prompt, without what a person pasted that gives orders to a model."""
    found = sentences(said(one.text))[:_SENTENCES]
    return tuple(_of_sentence(one, text) for text in found if not orders(text, CERTAIN))


def _of_sentence(one: Occurrence, text: str) -> Note:
    rule = states_rule(text)
    kind = Kind.DECISION if rule else None
    preference = FactType.PREFERENCE if _PREFERS.search(text) else FactType.DECISION
    return Note(
        content=shortened(text, LONGEST),
        title=_title(text),
        kind=kind,
        fact_type=preference if rule else FactType.GENERAL,
        concepts=concepts_of(one, kind, text, failed=False),
        trust=TRUST[Origin.PROMPT],
    )


def _of_edit(one: Occurrence, folder: str) -> Note:
    """Return the first comment that an edit brings, else the longest line that it brings, after the path."""
    path, kind = relative(one.path, folder), kind_of_edit(one)
    old, before = set(explanations(one.removed, one.path)), {line.strip() for line in one.removed.split("\n")}
    told = [text for text in explanations(one.written, one.path) if text not in old]
    new = [line.strip() for line in one.written.split("\n") if line.strip() and line.strip() not in before]
    text = told[0] if told else max(new, key=lambda line: min(len(line), _LINE), default="")[:_LINE]
    content = shortened(f"{path}: {text}", LONGEST) if text else ""
    return Note(
        content=content,
        title=_title(content),
        kind=kind,
        evidence=f"Edit of {path}",
        concepts=concepts_of(one, kind, text, failed=False),
        trust=TRUST[Origin.EDIT],
        files_modified=tuple(relative(each, folder) for each in one.patched) or ((path,) if path else ()),
    )


def _of_report(one: Occurrence, lines: Sequence[Line]) -> Note:
    """Return the beginning of a report or a page, after what was asked for."""
    about = str(one.input.get("description") or one.input.get("query") or one.input.get("url") or "").strip()
    text = " ".join(_bare(line.text) for line in lines if not line.noise and not line.text.rstrip().endswith("?"))
    content = shortened(f"{about}: {text}" if about and text else text, LONGEST)
    return Note(
        content=content,
        title=_title(content),
        kind=Kind.DISCOVERY,
        evidence=f"Report of {one.tool}",
        concepts=concepts_of(one, Kind.DISCOVERY, text, failed=False),
        trust=TRUST[one.origin],
    )


def _of_output(one: Occurrence, lines: Sequence[Line], trail: Trail, folder: str, *, proof: bool) -> Note:
    """Return the lines of an output that tell most, after what was run; of a proof what failed and what changed."""
    command = " ".join(_CHANGES_FOLDER.sub("", without_documents(one.command)).split())
    path = relative(one.path, folder)
    about = one.description.rstrip(" .:") or (f"`{shortened(command, 80)}`" if command else path or one.tool)
    text = "; ".join(_telling(lines))
    if proof and trail.failure:
        text = f"{trail.failure[1]}: passes after a change of {', '.join(trail.edits)}"
    content = shortened(_from(folder, f"{about}: {text}" if text else ""), LONGEST)
    kind = Kind.BUGFIX if proof else Kind.DISCOVERY
    return Note(
        content=content,
        title=_title(content),
        kind=kind,
        evidence=shortened(f"`{command}`", _EVIDENCE) if command else "",
        concepts=concepts_of(one, kind, text, failed=bool(failure_line(one, lines))),
        trust=TRUST.get(one.origin, TRUST[Origin.OTHER]),
        files_read=(path,) if path else (),
        files_modified=trail.edits if proof else (),
        tags=_tags(one),
        proof=proof,
    )


def _telling(lines: Sequence[Line]) -> list[str]:
    """Return the few lines that tell most, in their order."""
    useful = [line for line in lines if not line.noise] or list(lines)
    best = sorted(range(len(useful)), key=lambda place: (-useful[place].worth, place))[:_LINES]
    return list(dict.fromkeys(shortened(_bare(useful[place].text), _LINE) for place in sorted(best)))


def _undone(one: Occurrence) -> tuple[str, ...]:
    """Return what a plan has not done yet."""
    listed = next((found for name in ("todos", "plan", "items") if isinstance(found := one.input.get(name), list)), [])
    steps = [
        step
        for step in listed
        if isinstance(step, dict) and step.get("status") not in ("completed", "done", "cancelled")
    ]
    texts = [str(step.get("content") or step.get("step") or step.get("title") or "") for step in steps]
    return tuple(shortened(text, _LINE) for text in texts if text)[:_STEPS]


def _tags(one: Occurrence) -> tuple[str, ...]:
    """Return the programs that ran, by which a memory of a command is found again; of an interpreter its script."""
    names = []
    for ran in works(one.command):
        name, _, rest = ran.partition(" ")
        names.append(rest.partition(" ")[0].rpartition("/")[2].partition(".")[0] if _INTERPRETER.match(name) else name)
    found = (name.lower() for name in names)
    return tuple(dict.fromkeys(name for name in found if re.fullmatch(r"[a-z][\w.+-]{1,29}", name)))[:_TAGS]


def _from(folder: str, text: str) -> str:
    return text.replace(folder.rstrip("/") + "/", "") if len(folder) > 1 else text


def _bare(text: str) -> str:
    """Return a line without what a tool puts before it."""
    return " ".join(_FRAME.sub("", text).split())


def _title(text: str) -> str:
    return shortened(" ".join(text.split()), _TITLE).rstrip(" .:;,")
