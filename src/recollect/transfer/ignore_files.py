"""Ignore files: which paths git would leave out, by the lines of the `.gitignore` in their folder or above it.

A stranger may have written the lines. So no wildcard goes back: a star takes as little as it can and keeps that, which
finds a match wherever there is one, and a line costs at most its length times that of a name.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from recollect import repository_files

log = logging.getLogger(__name__)

NAME: Final = ".gitignore"
_LONGEST_NAME: Final = 255  # bytes: no file has a longer name
_TOKEN: Final = re.compile(
    r"(?P<stars>\*+)|(?P<any>\?)|\\(?P<escaped>.)|(?P<plain>[^*?\[\\]+)"
    r"|\[(?P<other>[!^]?)(?P<among>\]?(?:\[:\w+:\]|\\.|[^\]\\])*+)\]",
    re.DOTALL,
)
_MEMBER: Final = re.compile(r"\[:(?P<kind>\w+):\]|(?P<first>\\.|.)(?:-(?P<last>\\.|[^\]]))?", re.DOTALL)
_KINDS: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r"\ \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Rule(NamedTuple):
    """A line: the patterns of the names on the way to a path (None: any names), what it says, and of what."""

    steps: tuple[re.Pattern[str] | None, ...]
    ignores: bool
    only_folders: bool


class Rules(NamedTuple):
    """The rules of a folder's ignore file, the last rule first, as the last match decides."""

    folder: Path
    rules: tuple[Rule, ...]


def ignore_rules(folder: Path) -> Rules | None:
    """Return the rules of a folder's own ignore file, None without any; a too large file ignores the whole folder."""
    file = folder / NAME
    if file.is_symlink() or not file.is_file():
        return None
    try:
        data = repository_files.beginning(file, repository_files.LARGEST + 1)
    except OSError:
        return None
    if len(data) > repository_files.LARGEST:
        log.warning("%s is larger than %d bytes, so all of its folder is left out", file, repository_files.LARGEST)
        data = b"*"
    found = parse_rules(data.decode("utf-8-sig", "surrogateescape"))
    return Rules(folder, found) if found else None


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Return the rules of a file's lines, the last rule first."""
    return tuple(filter(None, map(_parse_rule, reversed(text.split("\n")))))


def ignores(above: Sequence[Rules], path: Path, *, is_folder: bool) -> bool:
    """Say whether a path is left out by the rules of the folders above it, of which the nearest comes last."""
    for folder, rules in reversed(above):
        names = path.relative_to(folder).parts
        for rule in rules:
            if (is_folder or not rule.only_folders) and _rule_fits(rule.steps, names):
                return rule.ignores
    return False


def _parse_rule(line: str) -> Rule | None:
    """Return the rule of a line; None for a comment, an empty line, and a line that no path can fit."""
    line = _without_end_spaces(line.removesuffix("\r"))
    body = line.removeprefix("!").removesuffix("/")
    if not body or line.startswith("#"):
        return None
    anchored = "/" in body
    names = body.removeprefix("/").split("/")
    try:
        steps = [None if anchored and name == "**" else _name_pattern(name) for name in names]
    except re.error:
        return None
    return Rule((*([] if anchored else [None]), *steps), not line.startswith("!"), line.endswith("/"))


def _without_end_spaces(line: str) -> str:
    """Return a line without the spaces at its end; a space behind a backslash stays."""
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if escapes % 2 and len(bare) < len(line) else bare


@lru_cache(maxsize=4_096)
def _name_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of a name with wildcards; raise `re.error` where no name can fit it.

    The text between two stars is an atomic group, which stays at its first match.
    """
    pieces = [""]
    least = at = 0
    while at < len(name):
        token = _TOKEN.match(name, at)
        if token is None or least > _LONGEST_NAME:
            raise re.error("it fits nothing", name, at)
        at = token.end()
        if token["stars"]:
            pieces.append("")
            continue
        least += len(token["plain"] or " ")
        pieces[-1] += _character_pattern(token) if token["plain"] is None else re.escape(token["plain"])
    first, *others = pieces
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    return re.compile(first + middle + (f".*{others[-1]}" if others else ""), re.DOTALL)


def _character_pattern(token: re.Match[str]) -> str:
    """Return the pattern of a token that stands for a single character."""
    if token["any"]:
        return "."
    if token["escaped"]:
        return re.escape(token["escaped"])
    return f"[{'^' if token['other'] else ''}{''.join(map(_bracket_part, _MEMBER.finditer(token['among'])))}]"


def _bracket_part(member: re.Match[str]) -> str:
    """Return the next part of a bracket expression: a character, a range, or a class."""
    if kind := member["kind"]:
        if kind not in _KINDS:
            raise re.error("it is no kind of characters", kind)
        return _KINDS[kind]
    ends = (member["first"], member["last"]) if member["last"] else (member["first"],)
    return "-".join(re.escape(end.removeprefix("\\") or end) for end in ends)


def _rule_fits(steps: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Return whether the steps of a rule fit these names; None fits any number of them, a last None not zero."""
    at = step = 0
    begun, again = 0, -1  # where the last step of any names took its first name, and which step comes behind it
    while at < len(names):
        known = steps[step] if step < len(steps) else None
        if step < len(steps) and known is None:
            begun, again, step = at, step + 1, step + 1
            if step == len(steps):
                return True
        elif known is not None and known.fullmatch(names[at]):
            at, step = at + 1, step + 1
        elif again < 0:
            return False
        else:
            begun, step = begun + 1, again
            at = begun
    return step == len(steps)
