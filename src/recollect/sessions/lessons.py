"""Lessons: what of an occurrence is stored, as a statement for somebody who was not there, with its evidence behind it.

A lesson has at most 400 characters: of a person the sentences that state something; of a command what was tried and
what came out, with the problem and the change before it; of the assistant what the tools bear out. The trail is what a
session did just before, as far as it tells what an output means; its owner writes it as JSON and reads it back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict

from recollect.sessions.observations.lines import Line
from recollect.sessions.observations.occurrence import Occurrence, Origin, without_documents, work
from recollect.sessions.observations.statements import explanations, sentences
from recollect.text.layers import shortened

LONGEST: Final = 400
"""Characters of the text of a memory."""

ASKED: Final = "Asked: "
"""Begins what the work was for."""

_TITLE: Final = 120
_EVIDENCE: Final = 600
_RESULT: Final = 230  # characters of the lines of an output
_TASK: Final = 200
_TASK_CITED: Final = 110
_LINE: Final = 160
_OF_ONE_SHAPE: Final = 2
_COMMANDS: Final = 12
_EDITS: Final = 3
_TOLD: Final = 40
_FRAME: Final = re.compile(r"^\s*(?:E\s{2,}|[│├└─*>•-]{1,80}\s+|\d{2}:\d{2}:\d{2}\S*\s+|#+\s+|\*\*)+")
_PLAIN_WORD: Final = re.compile(r"[^\W\d_]+(?=[\s,:;.!?']|$)")
_PASSED: Final = re.compile(r"^(?!.*\b\d+ (?:failed|errors?)\b).*\b\d+ passed\b|\btest result: ok\b|^OK$|^PASS\b")
_CHANGES_FOLDER: Final = re.compile(r"^cd \S+ && ")
_NAME: Final = re.compile(r"[\w./:@=%+-]+")
_PARTICULAR: Final = re.compile(r"\d|[a-z][A-Z]|\w[_/.:=]\w")


class Trail(BaseModel):
    """What a session did just before.

    `task` is what the person asked for last, `failure` what failed and how, `lesson` the memory of that (0 for none),
    `edits` are files with what says most of each change since then, `edited` says whether one came after the last
    command, `told` is what the tools said since the task began, `open` what the agent's plan has not done yet.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    task: str = ""
    edits: tuple[tuple[str, str], ...] = ()
    edited: bool = False
    commands: tuple[str, ...] = ()
    failure: tuple[str, str] | None = None
    lesson: int = 0
    told: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wording:
    """A title of one line, the evidence on one line, and the text of a memory."""

    title: str
    evidence: str
    content: str


def followed(trail: Trail, one: Occurrence, lines: list[Line]) -> Trail:
    """Return the trail after what a tool did."""
    if one.origin is Origin.PLAN:
        return trail.model_copy(update={"open": _undone(one)})
    if one.origin is Origin.EDIT:
        edit = (one.path, shortened(" ".join(reasons(one)[:1]) or change(one), _LINE))
        told = (*trail.told, edit[1], change(one))[-_TOLD:]
        return trail.model_copy(update={"edits": (*trail.edits, edit)[-_EDITS:], "edited": True, "told": told})
    useful = sorted((line for line in lines if line.worth > 0), key=lambda line: -line.worth)[: _TOLD // 4]
    told = (*trail.told, *(line.text.strip()[:_LINE] for line in useful))[-_TOLD:]
    if one.origin is not Origin.COMMAND:
        return trail.model_copy(update={"told": told})
    made, failed = work(one.command), failure(one, lines)
    changes: dict[str, object] = {"commands": (*trail.commands, made)[-_COMMANDS:], "edited": False, "told": told}
    if failed:
        changes["failure"] = (made, failed)
    elif passes_now(one, lines, trail) or not trail.failure:
        changes |= {"failure": None, "lesson": 0, "edits": ()}
    return trail.model_copy(update=changes)


def asked(trail: Trail, said: Sequence[str]) -> Trail:
    """Return the trail after a prompt that asks for what is `said` in it; nothing changes where it asks nothing."""
    task = shortened(" ".join(said), _TASK)
    return (
        trail.model_copy(update={"task": task, "failure": None, "lesson": 0, "edits": (), "edited": False})
        if task
        else trail
    )


def failure(one: Occurrence, lines: list[Line]) -> str:
    """Return the line of an output that tells how it failed, empty where it did not."""
    found = [line for line in lines if "failure" in line.signs]
    if found and (one.failed or not any(_PASSED.search(line.text) for line in lines)):
        return _bare(max(found, key=lambda line: line.worth).text)[:_LINE]
    return _bare(lines[-1].text)[:_LINE] if one.failed and lines else ""


def passes_now(one: Occurrence, lines: list[Line], trail: Trail) -> bool:
    """Say whether a command passes whose program failed before."""
    before = trail.failure and _program(trail.failure[0]) == _program(work(one.command))
    return bool(before) and not failure(one, lines)


def proves(one: Occurrence, lines: list[Line], trail: Trail) -> bool:
    """Say whether a command passes now that failed before an edit."""
    return one.origin is Origin.COMMAND and bool(trail.edits) and passes_now(one, lines, trail)


def reasons(one: Occurrence) -> list[str]:
    """Return what the comments of a file, or those that an edit brings, explain."""
    old = set(explanations(one.removed, one.path))
    text = one.written if one.origin is Origin.EDIT else one.text
    return [said for said in explanations(text, one.path) if said not in old]


def change(one: Occurrence) -> str:
    """Return the line of an edit that says most of what it changed."""
    before = {line.strip() for line in one.removed.split("\n")}
    new = [line.strip() for line in one.written.split("\n") if line.strip() and line.strip() not in before]
    return max(new, key=lambda line: min(len(line), _LINE), default="")[:_LINE]


def particulars(text: str) -> frozenset[str]:
    """Return the figures and names of a text: what nobody says by chance."""
    names = (one for one in _NAME.findall(text) if _PARTICULAR.search(one))
    return frozenset(one.strip(".:,=/-+%").lower() for one in names) - {""}


def borne_out(text: str, trail: Trail) -> float:
    """Return the share (0–1) of a text's figures and names that the tools have said; 0 where it has none."""
    named = particulars(text)
    told = " ".join(trail.told).lower()
    return sum(one in told for one in named) / len(named) if named else 0.0


def lesson(one: Occurrence, lines: list[Line], trail: Trail, folder: str = "") -> Wording:
    """Return what a tool did or wrote in words; paths are shown from `folder`."""
    match one.origin:
        case Origin.EDIT | Origin.FILE:
            wording = _of_file(one, trail, folder)
        case Origin.REPORT | Origin.WEB:
            wording = _of_report(one, lines, trail)
        case _:
            wording = _of_output(one, lines, trail, folder)
    return Wording(*(_from(folder, part) for part in (wording.title, wording.evidence, wording.content)))


def stated(said: Sequence[str], best: str) -> Wording:
    """Return the sentences of a person that state something; `best` is the one that states most."""
    return Wording(_title(best), "", _fitted([_sentence(one) for one in said], " "))


def relative(path: str, folder: str) -> str:
    """Return a path from a folder, as it is where it lies elsewhere."""
    inside = folder and path.startswith(folder.rstrip("/") + "/")
    return path[len(folder.rstrip("/")) + 1 :] if inside else path


def _from(folder: str, text: str) -> str:
    return text.replace(folder.rstrip("/") + "/", "") if len(folder) > 1 else text


def _of_file(one: Occurrence, trail: Trail, folder: str) -> Wording:
    told = reasons(one)
    edits, path = one.origin is Origin.EDIT, relative(one.path, folder)
    changed = change(one) if edits else ""
    parts = [f"{path}: {told[0] if told else f'`{changed}`'}", *told[1:]]
    if edits and told and changed and changed not in " ".join(told):
        parts.append(f"`{changed}`")
    if edits and trail.failure:
        parts.append(f"Before: {trail.failure[1]}")
    name = one.path.rpartition("/")[2]
    evidence = f"{'Edit of' if edits else 'Read in'} {path}" + (f": {_flat(one.written)}" if edits else "")
    return Wording(
        _title(f"{name}: {told[0] if told else changed}"),
        shortened(evidence, _EVIDENCE),
        _fitted([*map(_sentence, parts), *_for(trail)], " "),
    )


def _of_report(one: Occurrence, lines: list[Line], trail: Trail) -> Wording:
    about = str(one.input.get("description") or one.input.get("query") or one.input.get("url") or "").strip()
    said = [_bare(line) for line in sentences(one.text)]
    told = [line.text for line in lines if not line.noise and not line.text.rstrip().endswith("?")] or said
    kept = _conclusion([_bare(line) for line in told], trail)
    evidence = [text for text in trail.told if particulars(text) & particulars(" ".join(kept))][-_EDITS:]
    lead = [f"{about}:"] if about else []
    return Wording(
        _title(" ".join([*lead, *kept[:1]])),
        shortened(f"{one.tool} said so" + (f"; the tools: {' | '.join(evidence)}" if evidence else ""), _EVIDENCE),
        _fitted([*lead, *map(_sentence, kept), *_for(trail)], " "),
    )


def _conclusion(said: Sequence[str], trail: Trail) -> list[str]:
    """Return of the sentences of a report those that have most figures and names, first those that tools bear out."""

    def weight(one: str) -> float:
        named = particulars(one)
        told = " ".join(trail.told).lower()
        return len(named) + 2.0 * sum(name in told for name in named) + min(len(one), 80) / 80

    room, taken = LONGEST - 20, set[int]()
    for place, one in sorted(enumerate(said), key=lambda each: -weight(each[1])):
        if len(one) <= room or not taken:
            taken.add(place)
            room -= len(one) + 1
    return [one for place, one in enumerate(said) if place in taken]


def _of_output(one: Occurrence, lines: list[Line], trail: Trail, folder: str) -> Wording:
    command = " ".join(_CHANGES_FOLDER.sub("", without_documents(one.command)).split())
    about = one.description.rstrip(" .:") or (f"`{shortened(command, 80)}`" if command else one.tool)
    useful = [line for line in lines if not line.noise] or lines
    told = _chosen(useful, _RESULT)
    passed = [line.text.strip() for line in lines if line.noise and _PASSED.search(line.text)][-1:]
    parts: list[str] = []
    best = _best(useful)
    title = f"{about}{'' if about.endswith(('?', '!')) else ':'} {best}" if best else about
    if trail.failure and proves(one, lines, trail):
        parts.append(f"Problem: {_sentence(trail.failure[1])}")
        title = f"{trail.failure[1]}: fixed in {relative(trail.edits[-1][0], folder)}"
    if trail.edited or parts:
        path, said = trail.edits[-1]
        parts.append(f"Change in {relative(path, folder)}: {_sentence(said)}" if said else f"Change in {path}.")
    result = "; ".join(dict.fromkeys([*told, *passed]))
    parts.append(f"{about}{'' if about.endswith(('?', '!')) else ':'} {_sentence(result)}" if result else about)
    gave = " | ".join(dict.fromkeys([*_chosen(useful, _EVIDENCE // 2), *passed]))
    return Wording(
        _title(title),
        shortened(f"`{shortened(command, _EVIDENCE // 3)}` gave: {gave}" if command else gave, _EVIDENCE),
        _fitted([*parts, *_for(trail)], " "),
    )


def _for(trail: Trail) -> list[str]:
    """Return what the work was for, in the person's words: these are the words in which somebody asks for it again."""
    return [f"{ASKED}{_sentence(shortened(trail.task, _TASK_CITED))}"] if trail.task else []


def _fitted(parts: Iterable[str], between: str) -> str:
    """Return the parts that fit into a lesson, in order; of the first that does not, its beginning."""
    found = ""
    for part in parts:
        longer = f"{found}{between}{part}" if found else part
        if len(longer) > LONGEST:
            return shortened(longer, LONGEST) if LONGEST - len(found) > _TASK_CITED // 2 else found
        found = longer
    return found


def _program(made: str) -> str:
    return made.partition(" ")[0]


def _bare(text: str) -> str:
    """Return a line without what a tool puts before it."""
    return " ".join(_FRAME.sub("", text).split())


def _flat(text: str) -> str:
    return " ".join(text.split())


def _best(told: list[Line]) -> str:
    """Return the line that tells most."""
    best = max(told, key=lambda line: line.worth - abs(len(line.text) - 80) / 400, default=None)
    return _bare(best.text) if best else ""


def _chosen(told: list[Line], room: int) -> list[str]:
    """Return the lines that tell most, in their order, as many as there is room for, few of one shape."""
    shapes: Counter[str] = Counter()
    taken: list[tuple[int, str]] = []
    for place, line in sorted(enumerate(told), key=lambda each: (-each[1].worth, each[0])):
        text = shortened(_bare(line.text), _LINE)
        shape = re.sub(r"[0-9a-f]{6,}|\d+", "0", text)
        if text and shapes[shape] < _OF_ONE_SHAPE and room >= len(text):
            shapes[shape] += 1
            room -= len(text) + 2
            taken.append((place, text))
    return [text for _, text in sorted(taken)]


def _title(text: str) -> str:
    plain = " ".join(text.split())
    first = plain[:1].upper() if _PLAIN_WORD.match(plain) else plain[:1]
    return shortened(first + plain[1:], _TITLE).rstrip(" .:;,")


def _sentence(text: str) -> str:
    plain = " ".join(text.split()).rstrip(";,")
    return plain if plain.endswith((".", "?", "!", ":", "…")) else f"{plain}."


def _undone(one: Occurrence) -> tuple[str, ...]:
    """Return what a plan has not done yet."""
    listed = next((found for name in ("todos", "plan", "items") if isinstance(found := one.input.get(name), list)), [])
    steps = [
        step
        for step in listed
        if isinstance(step, dict) and step.get("status") not in ("completed", "done", "cancelled")
    ]
    said = [str(step.get("content") or step.get("step") or step.get("title") or "") for step in steps]
    return tuple(shortened(one, _LINE) for one in said if one)[:_COMMANDS]
