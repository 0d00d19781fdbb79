"""Lines: what each line of an output is, noise or something that tells what was found, and how much it tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from recollect.text.terms import STOP_WORDS
from recollect.text.writing_systems import fold

_LONGEST: Final = 600  # characters of a line that are read
_MOST: Final = 400  # lines of an output that are judged, from both ends

NOISE: Final[Mapping[str, re.Pattern[str]]] = {
    "progress": re.compile(
        r"[⠀-⣿]|[■█▓▒░━]{4,}|\[[=>#.\- ]{8,}\]|\b\d{1,3}% ?(?:of \d|\||\[)|^\s*\d{1,3}%(?:\s|$)|\bETA\b|"
        r"\b(?:Pull complete|Pulling|Already exists|Layer already exists|Pushed|Extracting|Waiting|Mounted from)\b|"
        r"^\s*✔ |^\[\+\] Running|^(?:remote: )?(?:Enumerating|Counting|Compressing|Writing|Receiving|Resolving|"
        r"Unpacking) (?:objects|deltas)|^Delta compression|^Downloading ",
    ),
    "an installation": re.compile(
        r"^\s*[+~-] [\w.@/-]+==?[\w.]+$|^(?:Resolved|Prepared|Installed|Audited|Uninstalled|Built) \d+ |"
        r"^(?:Collecting|Requirement already|Using cached|Successfully installed|Installing collected)|"
        r"^added \d+ packages|^\d+ packages are looking|^(?:Selecting|Preparing to unpack|Setting up|Get:\d+|Hit:\d+)|"
        r"^\s*(?:Compiling|Downloaded|Updating|Locking) [\w-]+ v?\d|^Creating virtual|^Using CPython|"
        r"^found 0 vulnerab|^up to date"
    ),
    "a build log": re.compile(
        r"^#\d+ |^\s*dist/|^(?:transforming|rendering chunks|computing gzip)|modules transformed|^✓ built in|^> .+@\d|"
        r"^> (?:tsc|vite|webpack|next)|^\s*(?:Finished|Compiling) |^The push refers|^[0-9a-f]{12}: |^BUILD SUCCESS|"
        r"^\[\d+/\d+\] |^make(?:\[\d+\])?: |^vite v|building for production|digest: sha256"
    ),
    "passing tests": re.compile(
        r"^[.\sEFsx]{8,}(?:\[ *\d+%\])?$|\bPASSED\b|^\s*(?:✓|✔|√) |^\s*ok\s+\d|^ok\s+\S+\s+[\d.]+s|"
        r"^=+ (?:test session|[\d\w ,]*passed)|^\s*(?:Tests?|Test Files|Test Suites|Snapshots|Duration|Start at|Time|"
        r"Ran all)\b|^(?:platform|rootdir|configfile|plugins|collected|collecting|asyncio:|cachedir)\b|^\s*RUN  v|"
        r"\bup nodes\.\.\.$|^=* ?(?:\d+ (?:passed|skipped|deselected|xfailed|warnings?)(?:, |\b))+|"
        r"^[Rr]unning \d+ tests?|^test result: ok|^\s+Running (?:unit|tests/)|^test .+ ok$|^OK$|^To open last HTML|"
        r"npx playwright show-report|^--- PASS|^PASS\b|^Ran \d+ tests"
    ),
    "the names of failed tests": re.compile(
        r"^=+ |^_{3,}|^!{3,}|^-{3,}|^\s*at [^(]+\(.+:\d|^\s*\^+\s*$|^\s*File \".+\", line \d+|^Traceback \(most|"
        r"^\[\.\.\.|^\[…|^\.\.\.$"
    ),
    "git housekeeping": re.compile(
        r"^(?: ?[MADRCU?]{1,2}|\?\?) \S+$|^On branch |^Your branch|^nothing to commit|^Changes (?:not|to be)|"
        r"^\s+(?:modified|new file|deleted|renamed):|^\s*\(use \"git|^Untracked files|\|\s+\d+ [+-]+$|"
        r"^\s*\d+ files? changed|^ (?:create|delete) mode|^Fast-forward|^Updating [0-9a-f]{7}|^Already up to date|"
        r"^To (?:https?|git)|^\s*[0-9a-f]{7,}\.\.[0-9a-f]{7,}|^branch '|^remote:|^Total \d+ \(delta|"
        r"^\[[\w/.-]+ [0-9a-f]{7,}\]|^(?:index|diff --git|@@) |^Switched to|^[0-9a-f]{7,12} [A-Z]"
    ),
    "lint": re.compile(
        r"\.{6}(?:Passed|Skipped|Failed|\(no files)|^- (?:hook id|exit code|files were)|^\S+:\d+:\d+:? "
        r"\[?[A-Z]{1,4}\d{2,4}\]?\b|^\s*\d+:\d+\s+(?:warning|error)\s|^All checks passed|^\d+ files? (?:left "
        r"unchanged|reformatted|already formatted)|^✖ \d+ problems|potentially fixable|^Found \d+ errors?|"
        r"fixable with the|^Success: no issues"
    ),
    "a listing": re.compile(
        r"^[dl-][rwxsSt-]{9}[.+@]?\s|^total \d+$|^\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?\s+\d+ \S+$|^\s*(?:PRE )\S+/$|"
        r"^(?:\.{0,2}/)?(?:[\w@.+-]+/)+[\w@.+-]*$|^[├└│─ ]++\s*\S*$|^Found \d+ files?$|^Found \d+ total occ|"
        r"^[\w./-]+\.\w{1,5}$|^[\w./-]+:\d+$|^REPOSITORY\s|^CONTAINER ID|^\s*Name\s+Command"
    ),
    "a log of routine": re.compile(
        r"\bINFO\b(?!.*(?:error|fail|4\d\d|5\d\d|Running upgrade))|\bDEBUG\b|\bsucceeded in\b|\breceived$",
    ),
}
"""What lines that nobody looks for again look like, by what they are."""

_UNIT: Final = (
    r"(?:ms|µs|us|ns|s|sec|seconds?|minutes?|min|m\d+s?|h|hours?|days?|[KMGT]i?B|[kmg]b|bytes?|%|x|×|fps|(?:req|"
    r"requests?|rows?|ops|qps|rps|queries|errors?|items?|tokens?)(?:/s(?:ec)?)?|p|px|threads?|workers?|clients?)"
)
SIGNS: Final[Mapping[str, re.Pattern[str]]] = {
    "error": re.compile(
        r"\b(?:[A-Z]\w*)?(?:Error|Exception|Violation|Timeout|Refused|Denied)\b|\b(?:error|fatal|panic|failed|failure|"
        r"cannot|could not|can't|unable|refused|denied|rejected|killed|crash(?:ed)?|deadlock\w*|segfault|OOM\w*|"
        r"leak\w*|corrupt\w*|invalid|unexpected|unknown|mismatch\w*|missing|undefined|too (?:long|many|large|small|"
        r"old)|not (?:found|supported|allowed|permitted|available|defined|exist|valid|a valid)|does(?: not|n't) exist|"
        r"no such|suspended|expired|stale|timed? ?out|conflict\w*|diff(?:er|erent|ers)|unreachable|exceed\w*|"
        r"over(?:sold|flow\w*|lap\w*)|lost|dropped|skipped|duplicate\w*|wrong|NoSuch\w+)\b|✗|✘|❌|×\s",
        re.IGNORECASE,
    ),
    "status": re.compile(
        r"\b(?:HTTP/\d\S* |http |status(?:[ _]code)?[ =:]*|code[ =:]*|\" |^)(?:[345]\d\d)\b|\b[45]\d\d [A-Z][a-z]+|"
        r"\bSQLSTATE\b|\bexit(?:ed)?(?: with)?(?: code| status)?[ =:]+[1-9]|\brc=[1-9]|\bE[A-Z]{4,}\b|\bORA-\d|"
        r"\b4(?:0[0134589]|1[0-9]|2[2369])\b|\b50[0234]\b",
    ),
    "cause": re.compile(
        r"\b(?:because|since|caus(?:e|ed|es)|due to|reason|hint|root cause|as the|so that|therefore|means? that|"
        r"which is why|only (?:if|when|in|on|for|one|with)|unless|must(?:n't| not)?|needs?|requires?|expect(?:s|ed)|"
        r"instead|actually|got|never|always|otherwise|falls? back|overrid\w+|ignored?|rounded|not|no longer|without|"
        r"default(?:s|ed)? to|deprecat\w+|limit(?:ed|s)?|allowed|shared|per)\b",
        re.IGNORECASE,
    ),
    "measure": re.compile(
        rf"(?<![\w.-])\d[\d,.]{{0,30}}\s?{_UNIT}\b|(?<![\w.])\d[\d,.]{{0,30}}\s?%|\b\d+ ?/ ?\d+\b(?!/)|"
        rf"\b\d[\d,.]{{0,30}} [a-z]{{3,}}s\b"
    ),
    "comparison": re.compile(
        r"\b(?:before|after|was|previous(?:ly)?|now|vs\.?|versus|instead of|faster|slower|median|mean|avg|p9[059]|p50|"
        r"baseline|main:|old|new|speed-?up|ratio|delta|improve\w*|regress\w*|worse|better|compared|hits?|misses)\b",
        re.IGNORECASE,
    ),
    "pointer": re.compile(r"\s(?:<-+|-+>|=>|←|→|<=)\s|\S\.\w{1,4}:\d+\b|\bline \d+\b"),
    "remark": re.compile(
        r"(?:^|\s)(?:#|//|--|/\*|<!--)\s++(?=[^\W\d])(?=.{0,600}\b(?:the|an?|is|are|to|of|in|on|not|no|only|by|for|at|must|never|do|"
        r"it)\b)\S++(?:\s+\S+){2}|^note: ",
        re.IGNORECASE,
    ),
    "message": re.compile(
        r"\b[A-Z]?\w*(?:Error|Exception|Violation|Failure|error|ERROR|FATAL|fatal|panicked)\b.{0,40}?[:(]\s*.{12,}"
    ),
    "value": re.compile(r"^\s*+\"?[\w .-]{2,40}\"?\s*(?:=|:)\s*\S"),
    "name": re.compile(r"\b[a-z]+[A-Z]\w+|\b\w+_\w+\b|\w\(\)|\b[A-Z][A-Z0-9_]{3,}\b"),
}
"""What makes a line worth reading again."""

_WORTH: Final[Mapping[str, float]] = {
    "error": 1.5,
    "message": 0.8,
    "status": 1.0,
    "cause": 0.8,
    "measure": 1.0,
    "comparison": 0.6,
    "pointer": 0.7,
    "remark": 0.8,
    "value": 0.3,
    "name": 0.3,
}
_NONE_OF: Final = re.compile(
    r"\b(?:0|no|zero) (?:errors?|fail\w*|deadlocks?|differ\w*|mismatch\w*|problems?|warnings?|lost|dropped|missing|"
    r"invalid|skipped|conflicts?)\b|\b[\w ]{3,30}[:=]\s*0(?:\s|$|,| /| of)",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*])|\n+")
_TESTED: Final = re.compile(r"^(?:FAILED|ERROR) \S+(?:::| - )|^\s*(?:❯|×|✕) |^--- FAIL|^FAIL\b")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an output with the signs it has; `noise` is what it is where nobody looks for it again."""

    text: str
    noise: str = ""
    signs: frozenset[str] = frozenset()
    prose: bool = False

    @property
    def worth(self) -> float:
        """Return how much the line tells, from 0."""
        return 0.0 if self.noise else sum(_WORTH[sign] for sign in self.signs) + 0.6 * self.prose


def read(text: str, *, by_sentence: bool = False) -> list[Line]:
    """Return the lines of an output that are not empty, or its sentences; of a long one the beginning and the end."""
    pieces = _SENTENCE.split(text) if by_sentence else text.split("\n")
    lines = [line.rstrip()[:_LONGEST] for line in pieces if line.strip()]
    if len(lines) > _MOST:
        lines = lines[: _MOST // 2] + lines[-_MOST // 2 :]
    return [_judged(line) for line in lines]


def is_prose(text: str) -> bool:
    """Say whether a text is a sentence of a language: six words or more, and small words among them."""
    words = fold(text).split()
    return len(words) >= 6 and sum(word.strip(".,;:()") in STOP_WORDS for word in words) >= max(2, len(words) // 8)


def _judged(line: str) -> Line:
    told = _NONE_OF.sub("", line)
    signs = frozenset(name for name, sign in SIGNS.items() if sign.search(told if name == "error" else line))
    if not _TESTED.search(line):
        noise = next((name for name, pattern in NOISE.items() if pattern.search(line)), "")
        if noise and not (noise == "a log of routine" and "error" in signs):
            return Line(line, noise, signs)
    return Line(line, "", signs, is_prose(line))
