"""Features: what of an occurrence speaks for a memory or against one, each 0–1 and with a name that a person reads.

Wording: the title and the text of a memory, from the person's words or from the lines that tell most.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from recollect.sessions.observations.lines import Line
from recollect.sessions.observations.noise import settings_share
from recollect.sessions.observations.occurrence import Occurrence, Origin, Trail, change, without_documents, work, works
from recollect.sessions.observations.statements import STATING, Statement, explanations, is_document
from recollect.text.layers import shortened


class Feature(StrEnum):
    """What is weighed; the values are what a person reads."""

    # how much is said
    TELLING = "telling lines"
    SENTENCES = "whole sentences"
    MEASURED = "measurements"
    NAMES = "names of things"
    WORDS = "length of the prompt"
    # how much it matters
    ERROR = "an error with its message"
    STATUS = "an error code"
    CAUSE = "words of cause"
    COMPARED = "a comparison"
    POINTER = "a pointer to the culprit"
    REMARK = "a remark that explains"
    BOTH = "failure and success together"
    ASKS = "the command answers a question"
    MEASURES = "the command measures or reproduces"
    ROUTINE = "a routine command"
    TESTS = "only the names of failed tests"
    SAME_LINES = "lines of one shape"
    SETTINGS = "settings as they stand"
    AFTER_EDIT = "it follows an edit"
    AGAIN = "the same command again"
    STEPS = "several steps in one command"
    RULE = "a rule"
    HABIT = "always or only"
    DECISION = "a decision"
    FACT = "a fact"
    REPLACEMENT = "something replaced"
    REASON = "a reason"
    LIMIT = "a limit"
    PREFERENCE = "a preference"
    QUESTION = "a question"
    TASK = "a task"
    COMPLAINT = "a complaint"
    CHATTER = "chatter"
    # what it is
    PROMPT = "said by a person"
    COMMAND = "output of a command"
    FILE = "a file"
    DOCUMENT = "a document"
    EDIT = "an edit of code"
    NOTES = "an edit of a document"
    WEB = "a web page"
    REPORT = "a report"
    ANSWER = "the assistant's own words"
    OTHER = "another tool"


SUBSTANCE: Final = frozenset([Feature.TELLING, Feature.SENTENCES, Feature.MEASURED, Feature.NAMES, Feature.WORDS])
TYPES: Final[Mapping[Origin, Feature]] = {
    Origin.PROMPT: Feature.PROMPT,
    Origin.COMMAND: Feature.COMMAND,
    Origin.FILE: Feature.FILE,
    Origin.EDIT: Feature.EDIT,
    Origin.WEB: Feature.WEB,
    Origin.REPORT: Feature.REPORT,
}
"""Features that say what an occurrence is; all others but those of substance say how much it matters."""
TYPE_FEATURES: Final = frozenset([*TYPES.values(), Feature.DOCUMENT, Feature.NOTES, Feature.ANSWER, Feature.OTHER])

AGAINST: Final = frozenset(
    [
        *(Feature.ROUTINE, Feature.TESTS, Feature.SAME_LINES, Feature.SETTINGS),
        *(Feature.QUESTION, Feature.TASK, Feature.COMPLAINT, Feature.CHATTER),
    ]
)
"""Features that speak against a memory."""

_QUESTION: Final = re.compile(
    r"\?\s*$|^(?:why|what|where|when|which|who|how|is|are|does|do|did|can|would|will|should|find (?:out|the|where|"
    r"why)|see (?:what|why|if|how)|check (?:what|why|if|whether|how|that))\b",
    re.IGNORECASE,
)
_LOOKS: Final = re.compile(
    r"^(?:look (?:at|into|for)|understand|investigate|debug|inspect|trace|diagnose|figure)\b|\blook$", re.IGNORECASE
)
_MEASURES: Final = re.compile(
    r"\b(?:measur\w*|profil\w*|bench\w*|tim(?:e|ing)|compar\w*|reproduc\w*|verif\w*|hammer\w*|load|stress|soak|"
    r"count\w*|under load|latency|throughput|experiment\w*|try|tried|retry|point \w+ at|with(?:out)? \w+|"
    r"after the fix|explain|cost\w*|replay\w*|simulat\w*|query plan|several|sizes)\b",
    re.IGNORECASE,
)
_ROUTINE: Final = re.compile(
    r"\b(?:list|show|commit|push|pull|install|build|lint|format|status|start|restart|stop|open|view|overview|fetch|"
    r"download|clean ?up|remove|rename|apply|run (?:the |all |\w+ ){0,3}tests?|tests?$|full suite|run the suite|"
    r"deploy|release|log in|current|recent|generate|check changes|stage|bump|upgrade|sync|print|cat|quick look|"
    r"again)\b",
    re.IGNORECASE,
)
_SUCCESS: Final = re.compile(
    r"\b(?:\d+ passed|ok\b|success\w*|200|201|ready|done|0 (?:errors?|fail\w*|differ))", re.IGNORECASE
)
_TEST_LINE: Final = re.compile(r"^(?:FAILED|ERROR) \S+::|^\d+ (?:failed|passed|errors?)\b|^test result:|^--- FAIL")


def features(one: Occurrence, lines: list[Line], stated: list[Statement], trail: Trail) -> dict[Feature, float]:
    """Return the features of an occurrence that are not 0."""
    found = {_type(one): 1.0}
    if one.origin is Origin.PROMPT:
        found |= _of_prompt(stated)
    elif one.origin in (Origin.EDIT, Origin.FILE):
        found |= _of_file(one)
    else:
        found |= _of_output(lines) | _of_command(one, trail)
    return {name: round(value, 3) for name, value in found.items() if value}


def _type(one: Occurrence) -> Feature:
    if one.origin in (Origin.FILE, Origin.EDIT) and is_document(one.path):
        return Feature.DOCUMENT if one.origin is Origin.FILE else Feature.NOTES
    return Feature.ANSWER if one.tool == "Assistant" else TYPES.get(one.origin, Feature.OTHER)


def _of_prompt(stated: list[Statement]) -> dict[Feature, float]:
    signs = [sign for one in stated if one.states for sign in one.signs if sign in STATING]
    asking = [sign for one in stated if not one.states for sign in one.signs if sign not in STATING]
    words = sum(len(one.text.split()) for one in stated if one.states)
    states = {
        Feature.RULE: _share(signs.count("rule"), 2),
        Feature.HABIT: _share(signs.count("habit"), 2),
        Feature.DECISION: _share(signs.count("decision"), 2),
        Feature.FACT: _share(signs.count("fact"), 2),
        Feature.REPLACEMENT: _share(signs.count("replacement"), 2),
        Feature.REASON: _share(signs.count("reason"), 2),
        Feature.LIMIT: _share(signs.count("limit"), 2),
        Feature.PREFERENCE: _share(signs.count("preference"), 2),
        Feature.WORDS: min(words / 30, 1.0),
        Feature.NAMES: _share(sum("name" in one.signs for one in stated if one.states), 2),
    }
    only_asks = not any(one.states for one in stated)
    asks = {
        Feature.QUESTION: float("question" in asking),
        Feature.TASK: float(only_asks and "task" in asking),
        Feature.COMPLAINT: float("complaint" in asking),
        Feature.CHATTER: float(only_asks and "chatter" in asking),
    }
    return states | asks


def _of_file(one: Occurrence) -> dict[Feature, float]:
    text = one.written if one.origin is Origin.EDIT else one.text
    old = set(explanations(one.removed, one.path))
    told = [said for said in explanations(text, one.path) if said not in old]
    size = sum(len(line) for line in text.split("\n"))
    return {
        Feature.REMARK: _share(len(told), 2),
        Feature.SENTENCES: min(sum(map(len, told)) / max(size, 1) * 1.5, 1.0),
    }


def _of_output(lines: list[Line]) -> dict[Feature, float]:
    told = [line for line in lines if not line.noise]
    tests = [line for line in told if _TEST_LINE.search(line.text)]
    rest = [line for line in told if line not in tests] or told
    shapes = {re.sub(r"\d+|[0-9a-f]{6,}", "0", line.text) for line in told}

    def share(sign: str, most: int) -> float:
        return _share(sum(sign in line.signs for line in rest), most)

    failed, passed = share("error", 1), any(_SUCCESS.search(line.text) for line in lines)
    return {
        Feature.TELLING: _share(sum(line.worth >= 1 for line in rest), 4),
        Feature.SENTENCES: _share(sum(line.prose for line in rest), 2),
        Feature.MEASURED: _share(
            sum(len(re.findall(r"\d[\d.,]*", line.text)) for line in rest if "measure" in line.signs), 6
        ),
        Feature.NAMES: share("name", 3),
        Feature.ERROR: max(share("message", 1), share("error", 2)),
        Feature.STATUS: share("status", 2),
        Feature.CAUSE: share("cause", 2),
        Feature.COMPARED: share("comparison", 2),
        Feature.POINTER: share("pointer", 2),
        Feature.REMARK: _share(sum("remark" in line.signs for line in rest), 1),
        Feature.BOTH: float(bool(failed) and passed),
        Feature.TESTS: len(tests) / len(told) if told else 0.0,
        Feature.SETTINGS: settings_share(told) if len(told) > 5 else 0.0,
        Feature.SAME_LINES: 1 - len(shapes) / len(told) if len(told) > 3 else 0.0,
    }


def _of_command(one: Occurrence, trail: Trail) -> dict[Feature, float]:
    if one.origin is not Origin.COMMAND:
        return {}
    said = one.description
    done = work(one.command)
    return {
        Feature.ASKS: 1.0 if _QUESTION.search(said) else 0.5 * bool(_LOOKS.search(said)),
        Feature.MEASURES: float(bool(_MEASURES.search(said))),
        Feature.ROUTINE: float(
            bool(_ROUTINE.search(said) and not _QUESTION.search(said) and not _MEASURES.search(said))
        ),
        Feature.AFTER_EDIT: float(trail.edited is not None),
        Feature.AGAIN: float(bool(done) and done in trail.commands),
        Feature.STEPS: min(max(len(set(works(one.command))) - 1, 0) / 3, 1.0),
    }


def _share(count: int, most: int) -> float:
    return min(count / most, 1.0)


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
            wording = _words_of_prompt(stated, trail)
        case Origin.EDIT | Origin.FILE:
            wording = _words_of_file(one)
        case Origin.REPORT | Origin.WEB:
            wording = _of_report(one, lines, trail)
        case _:
            wording = _words_of_output(one, lines, trail)
    return Wording(*(_from(folder, part) for part in (wording.title, wording.subtitle, wording.content)))


def relative(path: str, folder: str) -> str:
    """Return a path from a folder, as it is where it lies elsewhere."""
    inside = folder and path.startswith(folder.rstrip("/") + "/")
    return path[len(folder.rstrip("/")) + 1 :] if inside else path


def _from(folder: str, text: str) -> str:
    return text.replace(folder.rstrip("/") + "/", "") if len(folder) > 1 else text


def _words_of_prompt(stated: list[Statement], trail: Trail) -> Wording:
    """Keep the person's words: what is stated, and what stands between, less tasks, questions and thanks."""
    kept = [one for one in stated if one.states or (one.worth >= 0 and len(one.text.split()) > 2)]
    best = max((one for one in stated if one.states), key=lambda one: one.worth, default=stated[0])
    said = [_sentence(one.text) for one in kept]
    during = [f"Said during: {_sentence(trail.task)}"] if trail.task else []
    return Wording(_title(best.text), "Said by the user", _cut("\n".join([*said, *during]), LONGEST))


def _words_of_file(one: Occurrence) -> Wording:
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


def _words_of_output(one: Occurrence, lines: list[Line], trail: Trail) -> Wording:
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
