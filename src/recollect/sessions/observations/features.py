"""Features: the structure of an occurrence, each 0–1: who speaks, what came before, and the form of what is said.

What it means is told by its embedding; no feature looks for given words of a language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from math import sqrt
from typing import Final
from zlib import crc32

from recollect.sessions.lessons import Trail, borne_out, passes_now, reasons
from recollect.sessions.observations.lines import SIGNS, Line
from recollect.sessions.observations.noise import settings_share
from recollect.sessions.observations.occurrence import Occurrence, Origin, work, works
from recollect.sessions.observations.statements import is_document


class Feature(StrEnum):
    """What is weighed; the values are what a person reads."""

    # how much is said
    LENGTH = "length"
    PROSE = "whole sentences"
    MEASURED = "figures"
    NAMES = "names of the code"
    # how much it matters
    FAILURE = "a failure"
    ENDED_BADLY = "it ended with an error"
    UNSOLVED = "something failed before it"
    PASSES_NOW = "it failed before and passes now"
    AFTER_EDIT = "it follows an edit"
    REMARK = "a remark that explains"
    QUESTION = "a question"
    SHORT = "a few words"
    CLAUSES = "several clauses"
    STEPS = "several steps in one command"
    AGAIN = "the same command again"
    SAME_LINES = "lines of one shape"
    BORNE_OUT = "the tools bear it out"
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


SUBSTANCE: Final = frozenset([Feature.LENGTH, Feature.PROSE, Feature.MEASURED, Feature.NAMES])
TYPES: Final[Mapping[Origin, Feature]] = {
    Origin.PROMPT: Feature.PROMPT,
    Origin.COMMAND: Feature.COMMAND,
    Origin.FILE: Feature.FILE,
    Origin.EDIT: Feature.EDIT,
    Origin.WEB: Feature.WEB,
    Origin.REPORT: Feature.REPORT,
}
TYPE_FEATURES: Final = frozenset([*TYPES.values(), Feature.DOCUMENT, Feature.NOTES, Feature.ANSWER, Feature.OTHER])
"""Features that say what an occurrence is; all others but those of substance say how much it matters."""

CROSSED: Final = (
    Feature.LENGTH,
    Feature.PROSE,
    Feature.MEASURED,
    Feature.NAMES,
    Feature.FAILURE,
    Feature.AFTER_EDIT,
    Feature.REMARK,
    Feature.QUESTION,
)
"""Features that count more or less by what an occurrence is."""

FORMS: Final = 2048
"""Places that the words of a sentence fall on."""

_ENDING: Final = 3  # letters
_WORDS: Final = re.compile(r"[^\W\d_]+|\d+|[?!:,;]")
_FIGURE: Final = re.compile(r"\d[\d.,]*")
_SHORT: Final = 4  # words


def of_sentence(sentence: str) -> dict[Feature, float]:
    """Return the features of one sentence of a person that are not 0."""
    words = len(sentence.split())
    return _present(
        {
            Feature.PROMPT: 1.0,
            Feature.LENGTH: min(words / 30, 1.0),
            Feature.SHORT: float(words < _SHORT),
            Feature.QUESTION: float(sentence.rstrip().endswith("?")),
            Feature.MEASURED: float(bool(_FIGURE.search(sentence))),
            Feature.NAMES: float(bool(SIGNS["name"].search(sentence))),
            Feature.CLAUSES: float("," in sentence or ";" in sentence),
        }
    )


def forms(sentence: str) -> tuple[tuple[int, float], ...]:
    """Return the words of a sentence as places (0 to `FORMS`) with their shares, which are a vector of length 1.

    The first word counts twice more as the first, the last once more as the last, and of a long word its ending too.
    A vector of what a sentence means hardly tells a rule from a report or a wish; the words that it is put in do. They
    are weighed by fitted numbers, so that no language has a list.
    """
    words = ["0" if one.isdigit() else one for one in _WORDS.findall(sentence.lower())]
    ends = [f"^{one}" for one in words[:1]] * 2 + [f"{one}$" for one in words[-1:]]
    counts: Counter[int] = Counter()
    for one in (*words, *ends, *(f"~{one[-_ENDING:]}" for one in words if len(one) > _ENDING + 1)):
        code = crc32(one.encode())
        counts[code % FORMS] += 1 if code >> 20 & 1 else -1
    size = sqrt(sum(count * count for count in counts.values())) or 1.0
    return tuple((place, count / size) for place, count in counts.items() if count)


def features(one: Occurrence, lines: list[Line], trail: Trail) -> dict[Feature, float]:
    """Return the features of what a tool did or wrote that are not 0."""
    found = {
        _type(one): 1.0,
        Feature.AFTER_EDIT: float(trail.edited),
        Feature.ENDED_BADLY: float(one.failed),
        Feature.UNSOLVED: float(trail.failure is not None),
    }
    if one.origin in (Origin.EDIT, Origin.FILE):
        return _present(found | _of_file(one))
    found |= _of_output(lines) | {Feature.BORNE_OUT: borne_out(one.text, trail) if _is_report(one) else 0.0}
    if one.origin is not Origin.COMMAND:
        return _present(found | {Feature.QUESTION: float(one.text.rstrip().endswith("?"))})
    done = work(one.command)
    return _present(
        found
        | {
            Feature.QUESTION: float(one.description.endswith("?")),
            Feature.AGAIN: float(bool(done) and done in trail.commands),
            Feature.STEPS: min(max(len(set(works(one.command))) - 1, 0) / 3, 1.0),
            Feature.PASSES_NOW: float(passes_now(one, lines, trail)),
        }
    )


def _is_report(one: Occurrence) -> bool:
    return one.origin is Origin.REPORT


def _type(one: Occurrence) -> Feature:
    if one.origin in (Origin.FILE, Origin.EDIT) and is_document(one.path):
        return Feature.DOCUMENT if one.origin is Origin.FILE else Feature.NOTES
    return Feature.ANSWER if one.tool == "Assistant" else TYPES.get(one.origin, Feature.OTHER)


def _of_file(one: Occurrence) -> dict[Feature, float]:
    text = one.written if one.origin is Origin.EDIT else one.text
    told = reasons(one)
    return {
        Feature.REMARK: min(len(told) / 2, 1.0),
        Feature.PROSE: min(sum(map(len, told)) / max(len(text), 1) * 1.5, 1.0),
        Feature.LENGTH: min(text.count("\n") / 40, 1.0),
        Feature.MEASURED: float(any(_FIGURE.search(said) for said in told)),
    }


def _of_output(lines: list[Line]) -> dict[Feature, float]:
    told = [line for line in lines if not line.noise]
    shapes = {re.sub(r"\d+|[0-9a-f]{6,}", "0", line.text) for line in told}

    def share(sign: str, most: int) -> float:
        return min(sum(sign in line.signs for line in told) / most, 1.0)

    figures = sum(len(_FIGURE.findall(line.text)) for line in told if "measure" in line.signs)
    return {
        Feature.LENGTH: min(len(told) / 30, 1.0),
        Feature.PROSE: min(sum(line.prose for line in told) / 2, 1.0),
        Feature.MEASURED: min(figures / 6, 1.0),
        Feature.NAMES: share("name", 3),
        Feature.FAILURE: share("failure", 2),
        Feature.REMARK: share("remark", 1),
        Feature.SAME_LINES: max(
            1 - len(shapes) / len(told) if len(told) > 3 else 0.0, settings_share(told) if len(told) > 5 else 0.0
        ),
    }


def _present(found: Mapping[Feature, float]) -> dict[Feature, float]:
    return {name: round(value, 3) for name, value in found.items() if value}
