"""Wording: the title and the text of a memory, from the person's words or from the lines that tell most."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from recollect.sessions.observations.explanations import explanations, is_document
from recollect.sessions.observations.lines import Line
from recollect.sessions.observations.occurrence import Occurrence, Origin, without_documents
from recollect.sessions.observations.statements import Statement
from recollect.sessions.observations.trail import Trail, change, work
from recollect.text.layers import shortened

LONGEST: Final = 1_200
"""Characters of the text of a memory."""

_TITLE: Final = 120
_SHARE: Final = 800  # characters of the lines of an output
_LINE: Final = 240
_OF_ONE_SHAPE: Final = 3
_LEADS: Final = re.compile(
    r"^(?:(?:ok(?:ay)?|ah|hm+|lovely|good|great|nice|no way|so|then|and|but|also|please|fyi|heads up|"
    r"one rule for later|decision|rule|by the way|btw|note that|as i feared|right|well|yes)\b[\s,:;.!-]+)+",
    re.IGNORECASE,
)
_FOUND: Final = re.compile(
    r"^(?:found it|done|here(?:'s| is).{0,30}|cause|root cause|summary|result|answer)[.:!]*\s*", re.IGNORECASE
)
_FRAME: Final = re.compile(r"^\s*(?:E\s{2,}|[│├└─*>•-]{1,80}\s+|\d{2}:\d{2}:\d{2}\S*\s+|#+\s+|\*\*)+")
_PLAIN_WORD: Final = re.compile(r"[^\W\d_]+(?=[\s,:;.!?']|$)")
_OF_TESTS: Final = re.compile(r"\b\d+ (?:passed|failed)\b|^FAILED |^ERROR \S+::|\.py:\d+: \w+$")
_PASSED: Final = re.compile(r"\b\d+ passed\b")
_CHANGES_FOLDER: Final = re.compile(r"^cd \S+ && ")


@dataclass(frozen=True, slots=True)
class Wording:
    """A title of one line, a second one on where it comes from, and the text of a memory."""

    title: str
    subtitle: str
    content: str


def worded(one: Occurrence, lines: list[Line], stated: list[Statement], trail: Trail, folder: str = "") -> Wording:
    """Return an occurrence in words; paths are shown from `folder`."""
    match one.origin:
        case Origin.PROMPT:
            wording = _of_prompt(stated, trail)
        case Origin.EDIT | Origin.FILE:
            wording = _of_file(one)
        case Origin.REPORT | Origin.WEB:
            wording = _of_report(one, lines, trail)
        case _:
            wording = _of_output(one, lines, trail)
    return Wording(*(_from(folder, part) for part in (wording.title, wording.subtitle, wording.content)))


def relative(path: str, folder: str) -> str:
    """Return a path from a folder, as it is where it lies elsewhere."""
    inside = folder and path.startswith(folder.rstrip("/") + "/")
    return path[len(folder.rstrip("/")) + 1 :] if inside else path


def _from(folder: str, text: str) -> str:
    return text.replace(folder.rstrip("/") + "/", "") if len(folder) > 1 else text


def _of_prompt(stated: list[Statement], trail: Trail) -> Wording:
    """Keep the person's words: what is stated, and what stands between, less tasks, questions and thanks."""
    kept = [one for one in stated if one.states or (one.worth >= 0 and len(one.text.split()) > 2)]
    best = max((one for one in stated if one.states), key=lambda one: one.worth, default=stated[0])
    said = [_sentence(one.text) for one in kept]
    during = [f"Said during: {_sentence(trail.task)}"] if trail.task else []
    return Wording(_title(best.text), "Said by the user", _cut("\n".join([*said, *during]), LONGEST))


def _of_file(one: Occurrence) -> Wording:
    text = one.written if one.origin is Origin.EDIT else one.text
    old = set(explanations(one.removed, one.path))
    told = [said for said in explanations(text, one.path) if said not in old]
    name = one.path.rpartition("/")[2]
    if one.origin is Origin.EDIT and is_document(one.path):
        before = {line.strip() for line in one.removed.split("\n")}
        body = "\n".join(line for line in text.split("\n") if line.strip() and line.strip() not in before)
        first = told[0] if told else change(one)
        return Wording(
            _title(f"{name}: {first}"), f"Written into {one.path}", _cut(f"{one.path} now says:\n{body}", LONGEST)
        )
    told = told or [change(one)]
    lead = f"{one.path} was changed:" if one.origin is Origin.EDIT else f"{one.path} says:"
    content = "\n".join([lead, *told, *([f"`{change(one)}`"] if one.origin is Origin.EDIT else [])])
    return Wording(
        _title(f"{name}: {told[0]}"),
        f"{'Edit of' if one.origin is Origin.EDIT else 'From'} {one.path}",
        _cut(content, LONGEST),
    )


def _of_report(one: Occurrence, lines: list[Line], trail: Trail) -> Wording:
    asked = str(one.input.get("description") or one.input.get("query") or "").strip()
    source = str(one.input.get("url") or "")
    told = [line for line in lines if not line.noise] or lines
    best = max(told[:12], key=lambda line: line.worth + line.prose) if told else None
    first = _FOUND.sub("", _FRAME.sub("", best.text)) if best else asked
    body = one.text.strip() if len(one.text) <= LONGEST - 200 else "\n".join(_chosen(told, LONGEST - 200))
    lead = f"{_sentence(asked)}\n" if asked else f"{source} says:\n" if source else ""
    subtitle = (
        f"From {source}"
        if source
        else "Reported by a subagent"
        if one.tool != "Assistant"
        else "Reported by the assistant"
    )
    return Wording(
        _title(f"{asked}: {first}" if asked else first), subtitle, _cut("\n".join([*_for(trail), lead + body]), LONGEST)
    )


def _of_output(one: Occurrence, lines: list[Line], trail: Trail) -> Wording:
    command = " ".join(_CHANGES_FOLDER.sub("", without_documents(one.command)).split())
    asked = one.description.rstrip(" .:") or shortened(command, 80) or one.tool
    useful = [line for line in lines if not line.noise] or lines
    told = _chosen(useful, _SHARE)
    told += [line.text for line in lines if line.noise and _PASSED.search(line.text)][-1:]
    parts = [_sentence(asked), *_for(trail)]
    if trail.edited and trail.edited[0]:
        parts.append(
            f"After a change of {trail.edited[0]}: `{trail.edited[1]}`"
            if trail.edited[1]
            else f"After a change of {trail.edited[0]}."
        )
    if (
        trail.failure
        and trail.edited
        and not _failed(lines)
        and _program(trail.failure[0]) == _program(work(one.command))
    ):
        parts.append(f"Before that: {trail.failure[1]}")
    if command:
        parts.append(f"`{shortened(command, 280)}` gave:")
    best = _best(useful)
    return Wording(
        _title(f"{asked}{'' if asked.endswith(('?', '!')) else ':'} {best}" if best else asked),
        shortened(f"Output of {command}", 160) if command else f"Output of {one.tool}",
        _cut("\n".join([*parts, *told]), LONGEST),
    )


def _for(trail: Trail) -> list[str]:
    """Return what the work was for, in the person's words: these are the words in which somebody asks for it again."""
    return [f"This was for: {_sentence(trail.task)}"] if trail.task else []


def _program(made: str) -> str:
    return made.partition(" ")[0]


def _failed(lines: list[Line]) -> bool:
    return any(not line.noise and "message" in line.signs for line in lines)


def _best(told: list[Line]) -> str:
    """Return the line that tells most, without what a tool puts before it."""
    if not told:
        return ""
    best = max(
        told, key=lambda line: line.worth - abs(len(line.text) - 80) / 400 - 2 * bool(_OF_TESTS.search(line.text))
    )
    return " ".join(_FRAME.sub("", best.text).split())


def _chosen(told: list[Line], room: int) -> list[str]:
    """Return the lines that tell most, in their order, as many as there is room for, few of one shape."""
    shapes: Counter[str] = Counter()
    taken: list[tuple[int, str]] = []
    for place, line in sorted(enumerate(told), key=lambda each: (-each[1].worth, each[0])):
        shape = re.sub(r"[0-9a-f]{6,}|\d+", "0", line.text)
        text = line.text if len(line.text) <= _LINE else line.text[: _LINE - 1] + "…"
        if shapes[shape] < _OF_ONE_SHAPE and room >= len(text):
            shapes[shape] += 1
            room -= len(text) + 1
            taken.append((place, text))
    return [text for _, text in sorted(taken)]


def _title(text: str) -> str:
    plain = " ".join(text.split())
    bare = _LEADS.sub("", plain) or plain
    first = bare[:1].upper() if _PLAIN_WORD.match(bare) else bare[:1]
    return shortened(first + bare[1:], _TITLE).rstrip(" .:;,")


def _sentence(text: str) -> str:
    plain = " ".join(text.split()).rstrip(";,")
    return plain if plain.endswith((".", "?", "!", ":", "…")) else f"{plain}."


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    kept = text[: length - 1]
    return kept[: max(kept.rfind("\n"), kept.rfind(" "), length // 2)].rstrip() + "…"
