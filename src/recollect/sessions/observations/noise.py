"""Noise: what nobody wants to find again, each with a reason that a person understands."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

from recollect.prompt.orders import gives_orders
from recollect.sessions.observations.command_lines import programs
from recollect.sessions.observations.lines import Line
from recollect.sessions.observations.occurrence import Occurrence, Origin
from recollect.sessions.observations.statements import explanations

COMMANDED: Final = "it gives orders to a model"
REPEATED: Final = "the same was seen before in this session"
ECHO: Final = "it is what memory itself returned"
_ECHO: Final = re.compile(r"<[\w-]*memor(?:y|ies)(?:[\s>-]|\Z)|^\s*\{\"memories\":", re.IGNORECASE)
_MIN_SETTINGS: Final = 8
_MIN_ROUTINE: Final = 5
_MAX_ANSWER_PATHS: Final = 3  # so few paths may be an answer
_SETTING: Final = re.compile(r"^\s*(?:- )?\"?[\w./-]+\"?:?(?:\s*[:=]\s*[^\s;]*)?$|^\s*- \S+$|^\s*[\[\]{}],?$")
_MIN_LARGE_JSON: Final = 600  # characters of an answer in JSON
_SAYS: Final = re.compile(r"\w")
_TIMES: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]?|\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?Z?|\bin \d+(?:\.\d+)? ?m?s\b")

_GIT: Final = frozenset(
    "status diff log add commit push pull fetch checkout switch branch stash show rev-parse ls-files merge rebase rm "
    "mv "
    "tag remote restore reset config clone worktree clean".split()
)
_HOUSEKEEPING: Final[Mapping[str, frozenset[str]]] = {
    "a listing": frozenset(
        "ls tree find fd du df pwd which whereis file stat ps env printenv id whoami date free uptime top lsof ss "
        "mount".split()
    ),
    "lint": frozenset(
        "ruff eslint prettier black flake8 isort pylint stylelint golangci-lint shellcheck gofmt rustfmt clippy biome "
        "pre-commit markdownlint hadolint mypy pyright".split()
    ),
}
_SUBCOMMANDS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    "git": ("git housekeeping", re.compile(rf"^(?:-\S+(?: [^-\s]\S*)? )*(?:{'|'.join(_GIT)})\b")),
    "gh": ("a listing", re.compile(r"^\w+ (?:list|ls|status|view --json)\b|^auth\b")),
    "aws": ("a listing", re.compile(r"^s3 ls\b")),
    "docker": ("a listing", re.compile(r"^(?:ps|images|image ls|volume ls|network ls|pull|compose ps)\b")),
    "kubectl": ("a listing", re.compile(r"^get\b(?!.*-o)")),
    "cargo": ("lint", re.compile(r"^(?:clippy|fmt|check)\b")),
    "pip": ("a listing", re.compile(r"^(?:list|freeze|show)\b")),
    "npm": ("lint", re.compile(r"^run lint\b|^ls\b")),
    "make": ("lint", re.compile(r"^(?:lint|fmt|format)\b")),
}
_INSTALLS: Final = re.compile(
    r"^(?:(?:pip3?|uv pip|pipx|apt(?:-get)?|brew|gem|cargo|go|npm|pnpm|yarn|bun|poetry|uv|dnf|yum|apk|playwright|"
    r"bundle)\s+(?:-\S+ )*(?:install|add|ci|sync|update|upgrade|fetch|get|i)|docker (?:compose )?pull)\b"
)
_HELP: Final = re.compile(r"(?:^|\s)(?:--help|-h|help)(?:\s*(?:2>&1\s*)?(?:\|.*)?)$|(?:^|[;&|]\s*)man \w")
_CHECKS_STYLE: Final = re.compile(r"^(?:-\S+ )*(?:run )?(?:lint|fmt|format|validate)\b")
_SHOWS: Final = frozenset("cd echo head tail cat wc less more nl cut sort uniq tr column file".split())
_SEARCHES: Final = frozenset("rg ag ack".split())
_RECURSIVE: Final = re.compile(r"(?:^|\s)-\w*[rR]\w*\b|--recursive\b")
_SILENT: Final = frozenset(
    "cd echo export set true sleep source test [ mkdir rm cp mv touch chmod xargs tail head sort uniq wc cut sed "
    "tr".split()
)


def noise_reason(occurrence: Occurrence, lines: list[Line], seen: Collection[str] = ()) -> str:
    """Return the reason why an occurrence is of no interest later; '' where it may be.

    `seen` are digests of earlier outputs.
    """
    return next((reason for check in _CHECKS if (reason := check(occurrence, lines, seen))), "")


def output_digest(text: str) -> str:
    """Return a digest that is equal for outputs that differ only in times of day and durations."""
    plain = _TIMES.sub("", text)
    return hashlib.sha256(" ".join(plain.split()).encode()).hexdigest()[:16]


def _echo_reason(occurrence: Occurrence, _lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where the text is what memory itself returned, else ''."""
    return (
        ECHO
        if occurrence.origin is Origin.MEMORY
        or (_ECHO.search(occurrence.text) and occurrence.origin is not Origin.PROMPT)
        else ""
    )


def _plan_reason(occurrence: Occurrence, _lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason for the agent's plan, an empty text for all else."""
    return "it is the agent's own plan" if occurrence.origin is Origin.PLAN else ""


def _order_reason(occurrence: Occurrence, _lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason for output that gives orders to a model, an empty text for all else."""
    return COMMANDED if occurrence.origin is not Origin.PROMPT and gives_orders(occurrence.text) else ""


def _emptiness_reason(occurrence: Occurrence, lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where no line says anything, else ''."""
    if occurrence.origin is Origin.EDIT or any(_SAYS.search(line.text) for line in lines):
        return ""
    return "it says nothing"


def _repetition_reason(occurrence: Occurrence, _lines: list[Line], seen: Collection[str]) -> str:
    """Return the reason for output that the session has seen before, an empty text for all else."""
    return REPEATED if occurrence.origin is not Origin.EDIT and output_digest(occurrence.text) in seen else ""


def _unreadable_reason(occurrence: Occurrence, lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where the text is binary or minified code, else ''."""
    if occurrence.origin is Origin.EDIT:
        return ""
    dumped = sum(
        bool(re.match(r"^[0-9a-f]{6,}:?  ?(?:[0-9a-f]{2,4} ){4}|^[A-Za-z0-9+/=]{48,}$", line.text)) for line in lines
    )
    unprintable = sum(
        not (char.isprintable() or char.isspace()) or char == "\ufffd" for char in occurrence.text[:4_000]
    )
    if (lines and dumped > len(lines) / 2) or unprintable > len(occurrence.text[:4_000]) * 0.02:
        return "it is binary"
    return "it is minified code" if any(_is_minified(line.text) for line in lines) and len(lines) <= 5 else ""


def _is_minified(line: str) -> bool:
    """Say whether a long line is code without spaces: few blanks, many brackets and separators."""
    return len(line) > 300 and line.count(" ") < len(line) / 12 and sum(map(line.count, "(){};=,")) > len(line) / 14


def _json_reason(occurrence: Occurrence, _lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where the text is a large answer in JSON, else ''."""
    begins = occurrence.text.lstrip()[:2].strip()
    is_json = begins[:1] in ("{", "[") and occurrence.text.count('":') >= 8
    return "it is a large answer in JSON" if is_json and len(occurrence.text) > _MIN_LARGE_JSON else ""


def _search_reason(occurrence: Occurrence, _lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason for a search of the code, an empty text for all else."""
    return "it is a search of the code" if occurrence.origin is Origin.SEARCH else ""


def _command_reason(occurrence: Occurrence, lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where every part of a command line is of no interest later, else ''."""
    if occurrence.origin is not Origin.COMMAND or not occurrence.command:
        return ""
    if _HELP.search(occurrence.command):
        return "it is the help of a command"
    if _INSTALLS.match(occurrence.command.rpartition("&& ")[2].strip()) and not _has_failed(occurrence, lines):
        return "it is an installation"
    if {name for name, _ in programs(occurrence.command)} <= _SHOWS and not _has_failed(occurrence, lines):
        return "it is a file as it stands"
    kinds = [_program_reason(name, rest) for name, rest in programs(occurrence.command)]
    known = [kind for kind in kinds if kind]
    if not known or None in kinds or (known[0] == "a listing" and _has_failed(occurrence, lines)):
        return ""
    return f"it is {known[0]}"


def _program_reason(name: str, rest: str) -> str | None:
    """Return why the output of a program is of no interest; '' for a program without output, None for any other."""
    if rest in ("--version", "-V", "version"):
        return ""
    if _CHECKS_STYLE.search(rest):
        return "lint"
    if name in _SEARCHES or (name == "grep" and _RECURSIVE.search(rest)):
        return "a search of the code"
    for kind, names in _HOUSEKEEPING.items():
        if name in names:
            return kind
    if name in _SUBCOMMANDS:
        kind, pattern = _SUBCOMMANDS[name]
        return kind if pattern.search(rest) else None
    return "" if name in _SILENT else None


def _has_failed(occurrence: Occurrence, lines: list[Line]) -> bool:
    return occurrence.failed or any(not line.noise and "failure" in line.signs for line in lines)


def _routine_reason(occurrence: Occurrence, lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where the lines differ in hardly more than numbers, as in a log of routine, else ''."""
    bare = [line for line in lines if not line.noise]
    if occurrence.origin is not Origin.COMMAND or len(bare) < _MIN_ROUTINE:
        return ""
    shapes = {re.sub(r"\d+", "0", line.text) for line in bare}
    telling = any("failure" in line.signs for line in bare)
    return "it is a log of routine" if len(shapes) <= len(bare) / 5 and not telling else ""


def _settings_reason(occurrence: Occurrence, lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where most lines are names with values, else ''."""
    bare = [line for line in lines if not line.noise]
    if (
        occurrence.origin is not Origin.COMMAND
        or len(bare) < _MIN_SETTINGS
        or any("remark" in line.signs for line in bare)
    ):
        return ""
    return "it is settings as they stand" if settings_share(bare) >= 0.8 else ""


def settings_share(lines: list[Line]) -> float:
    """Return the share (0–1) of the lines that are names with values and nothing else."""
    return sum(bool(_SETTING.search(line.text)) for line in lines) / len(lines) if lines else 0.0


def _noise_lines_reason(occurrence: Occurrence, lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where every line is noise or says nothing, else ''."""
    if occurrence.origin in (Origin.EDIT, Origin.PROMPT, Origin.FILE, Origin.REPORT) or not lines:
        return ""
    if all(line.noise or not _SAYS.search(line.text) for line in lines):
        kinds = Counter(line.noise for line in lines if line.noise)
        if set(kinds) == {"a listing"} and len(lines) <= _MAX_ANSWER_PATHS:
            return ""
        return f"it is {kinds.most_common(1)[0][0]}" if kinds else "it says nothing"
    return ""


def _file_reason(occurrence: Occurrence, _lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where a file was read that explains nothing, else ''."""
    if occurrence.origin is not Origin.FILE:
        return ""
    return "" if explanations(occurrence.text, occurrence.path) else "it is a file as it stands"


def _deletion_reason(occurrence: Occurrence, _lines: list[Line], _seen: Collection[str]) -> str:
    """Return the reason where an edit only takes text out, else ''."""
    if occurrence.origin is not Origin.EDIT:
        return ""
    return "" if occurrence.written.strip() else "it only takes text out"


_CHECKS: Final[tuple[Callable[[Occurrence, list[Line], Collection[str]], str], ...]] = (
    _echo_reason,
    _plan_reason,
    _emptiness_reason,
    _repetition_reason,
    _unreadable_reason,
    _json_reason,
    _search_reason,
    _command_reason,
    _file_reason,
    _deletion_reason,
    _settings_reason,
    _routine_reason,
    _noise_lines_reason,
    _order_reason,
)
