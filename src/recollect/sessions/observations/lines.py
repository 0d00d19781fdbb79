"""Lines: what each line of an output is, noise of a tool or something that tells, and how much it tells.

Noise is known by the forms that tools print, and what tells by its form too: a failure's name, a measure, a remark, a
name of the code, a sentence. No line is judged by the words of a language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from recollect.text.sentences import sentences

_MAX_LINE: Final = 600  # characters of a line that are read
_MAX_LINES: Final = 400  # lines of an output that are judged, from both ends
_MAX_FAILURE_LINES: Final = 60  # lines of a failure that are judged where an agent waits for the answer

NOISE: Final[Mapping[str, re.Pattern[str]]] = {
    "progress": re.compile(
        r"[⠀-⣿]|[■█▓▒░━]{4,}|\[[=>#.\- ]{8,}\]|\b\d{1,3}% ?(?:of \d|\||\[)|^\s*\d{1,3}%(?:\s|$)|\bETA\b|"
        r"\b(?:Pull complete|Already exists|Pushed|Extracting|Mounted from)\b|^\s*✔ |^\[\+\] Running|^Downloading |"
        r"^(?:remote: )?(?:Enumerating|Counting|Compressing|Writing|Receiving|Resolving|Unpacking) (?:objects|deltas)",
    ),
    "an installation": re.compile(
        r"^\s*[+~-] [\w.@/-]+==?[\w.]+$|^(?:Resolved|Prepared|Installed|Audited|Uninstalled|Built) \d+ |"
        r"^(?:Collecting|Requirement already|Using cached|Successfully installed|Installing collected)|"
        r"^added \d+ packages|^\d+ packages are looking|^(?:Selecting|Preparing to unpack|Setting up|Get:\d+|Hit:\d+)|"
        r"^\s*(?:Compiling|Downloaded|Updating|Locking) [\w-]+ v?\d|^Creating virtual|^found 0 vulnerab|^up to date|"
        r"^(?:Reading package lists|Building dependency tree|Reading state information|The following )"
    ),
    "a build log": re.compile(
        r"^#\d+ |^\s*dist/|^(?:transforming|rendering chunks|computing gzip)|modules transformed|^✓ built in|^> .+@\d|"
        r"^\(!\) |^> (?:tsc|vite|webpack|next)|^\s*(?:Finished|Compiling) |^[0-9a-f]{12}: |^BUILD SUCCESS|"
        r"^\[\d+/\d+\] |^make(?:\[\d+\])?: |^vite v|building for production|digest: sha256|^> Task :"
    ),
    "passing tests": re.compile(
        r"^[.\sEFsx]{8,}(?:\[ *\d+%\])?$|\bPASSED\b|^\s*(?:✓|✔|√) |^\s*ok\s+\d|^ok\s+\S+\s+[\d.]+s|"
        r"^=+ (?:test session|[\d\w ,]*passed)|^\s*(?:Tests?|Test Files|Test Suites|Snapshots|Duration|Start at|Time|"
        r"Ran all)\b|^(?:platform|rootdir|configfile|plugins|collected|collecting|asyncio:|cachedir)\b|^\s*RUN  v|"
        r"^=* ?(?:\d+ (?:passed|skipped|deselected|xfailed|warnings?)(?:, |\b))+|^[Rr]unning \d+ tests?|"
        r"^test result: ok|^\s+Running (?:unit|tests/)|^test .+ ok$|^OK$|^--- PASS|^PASS\b|^Ran \d+ tests"
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
        r"unchanged|reformatted|already formatted)|^✖ \d+ problems|^Found \d+ errors?|^Success: no issues"
    ),
    "a listing": re.compile(
        r"^[dl-][rwxsSt-]{9}[.+@]?\s|^total \d+$|^\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?\s+\d+ \S+$|^\s*(?:PRE )\S+/$|"
        r"^(?:\.{0,2}/)?(?:[\w@.+-]+/)+[\w@.+-]*$|^[├└│─ ]++\s*\S*$|^Found \d+ (?:files?|total occ)|"
        r"^[\w./-]+\.\w{1,5}$|^[\w./-]+:\d+$|^REPOSITORY\s|^CONTAINER ID|^\s*Name\s+Command"
    ),
    "a log of routine": re.compile(r"\b(?:INFO|DEBUG)\b(?!.*\b(?:ERROR|FAILED|[45]\d\d)\b)"),
}
"""What lines that nobody looks for again look like, by what they are."""

_UNIT: Final = (
    r"(?:ms|µs|us|ns|s|sec|min|m\d+s?|h|[KMGT]i?B|[kmg]b|bytes|%|x|×|fps|qps|rps|p|px|°C?|V|A|mA|Hz|[kMG]Hz|dB|mm|km|"
    r"[^\W\d_]{1,12}/s)"
)
SIGNS: Final[Mapping[str, re.Pattern[str]]] = {
    "failure": re.compile(
        r"\b[A-Z]\w*(?:Error|Exception|Violation|Timeout|Panic|Failure)\b|\b(?:error|fatal|panic|failed|ERR!|FAILED|FAIL|"
        r"ERROR|FATAL|undefined|undeclared|panicked|SIG[A-Z]{3,}|E[A-Z]{4,}\d*|OOM\w*|SQLSTATE|cannot access|"
        r"[Nn]o such file|[Pp]ermission denied|command not found)\b|✗|✘|❌|^E  |"
        r"\b(?:4[0-4]\d|50[0-4]) [A-Z][a-z]+|\bHTTP\S* [45]\d\d\b|\b(?:rc|code|status)[ =:]+[1-9]\d*\b",
    ),
    "measure": re.compile(
        rf"(?<![\w.-])\d[\d,.]{{0,30}}\s?{_UNIT}(?![\w/])|\b\d+ ?/ ?\d+\b(?!/)|\b\d[\d,.]{{0,30}} [a-zà-ÿ]{{3,}}s\b"
    ),
    "pointer": re.compile(r"\s(?:<-+|-+>|=>|←|→|<=)\s|\S\.\w{1,4}:\d+\b|\bline \d+\b"),
    "remark": re.compile(r"(?:^|\s)(?:#|//|--|/\*|<!--)\s++(?=[^\W\d])\S++(?:\s+[^\W\d]\S*){3}"),
    "name": re.compile(r"\b[a-z]+[A-Z]\w+|\b\w+_\w+\b|\w\(\)|\b[A-Z][A-Z0-9_]{3,}\b|`[^`]+`|--\w[\w-]+"),
}
"""What makes a line worth reading again."""

_WORTH: Final[Mapping[str, float]] = {"failure": 1.5, "measure": 1.0, "pointer": 0.7, "remark": 0.8, "name": 0.3}
_PROSE_SHARE: Final = 0.3
_NAMING_PENALTY: Final = 2.0  # taken off a line that only names or counts what failed
_COUNTED: Final = re.compile(r"^\W*\d+ (?:failed|errors?|passed)\b")
_MIN_PROSE_WORDS: Final = 6
_PLAIN: Final = re.compile(r"[^\W\d_][^\W\d_'’-]*[.,;:!?)]*")
_TESTED: Final = re.compile(r"^(?:FAILED|ERROR) \S+(?:::| - )|^\s*(?:❯|×|✕) |^--- FAIL|^FAIL\b")
_FRAME: Final = re.compile(r"^\s*(?:E\s{2,}|[│├└─*>•-]{1,80}\s+|\d{2}:\d{2}:\d{2}\S*\s+|#+\s+|\*\*)+")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an output with the signs it has; `noise` is what it is where nobody looks for it again."""

    text: str
    noise: str = ""
    signs: frozenset[str] = frozenset()
    prose: bool = False

    @property
    def worth(self) -> float:
        """Return how informative the line is, from 0 up."""
        if self.noise:
            return 0.0
        named = _NAMING_PENALTY if _TESTED.search(self.text) or _COUNTED.search(self.text) else 0.0
        return sum(_WORTH[sign] for sign in self.signs) + _PROSE_SHARE * self.prose - named


def read_lines(text: str, *, by_sentence: bool = False) -> list[Line]:
    """Return the non-empty lines of an output, or its sentences; of a long output the beginning and the end."""
    pieces = sentences(text) if by_sentence else text.split("\n")
    return [_judge_line(line) for line in from_both_ends(pieces)]


def read_failures(lines: Sequence[str]) -> list[Line]:
    """Return the lines that report a failure, and the last line; of many lines those at both ends."""
    found = [line for line in lines[:-1] if SIGNS["failure"].search(line)]
    return [_judge_line(line) for line in (*from_both_ends(found, _MAX_FAILURE_LINES), *lines[-1:])]


def from_both_ends(pieces: Iterable[str], most: int = _MAX_LINES) -> list[str]:
    """Return the non-empty pieces; of more than `most` pieces only the first and the last."""
    lines = [line.rstrip()[:_MAX_LINE] for line in pieces if line.strip()]
    return lines if len(lines) <= most else lines[: most // 2] + lines[-most // 2 :]


def is_prose(text: str) -> bool:
    """Say whether a text is a sentence of a language: six words or more, most of them plain."""
    words = text.split()
    return len(words) >= _MIN_PROSE_WORDS and sum(bool(_PLAIN.fullmatch(word)) for word in words) >= 0.7 * len(words)


def without_frame(text: str) -> str:
    """Return a line without the prefix that a tool puts before it."""
    return " ".join(_FRAME.sub("", text).split())


def _judge_line(line: str) -> Line:
    """Return a line with its signs, with the reason where it is noise, and whether it is prose."""
    signs = frozenset(name for name, sign in SIGNS.items() if sign.search(line))
    if not _TESTED.search(line):
        noise = next((name for name, pattern in NOISE.items() if pattern.search(line)), "")
        if noise and not (noise == "a log of routine" and "failure" in signs):
            return Line(line, noise, signs)
    return Line(line, "", signs, is_prose(line))
