"""Command lines: which programs a command runs, without what starts them, and which of these do its work."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 160
_TRIVIAL: Final = frozenset(
    "cd echo export source set sed grep rg head tail sleep cat sort uniq wc cut tr awk xargs tee jq true for do done "
    "if then fi else while [ test".split()
)
_WORD: Final = re.compile(r"[\w./:-]+")
_HERE: Final = re.compile(r"<<-?\s*['\"]?(\w+)")
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_SEPARATES: Final = re.compile(r"[;&|\n]")
_SEGMENTS: Final = re.compile(r"&&|\|\||;|\||\n|(?<![>&])&(?!&)")
_BEFORE_PROGRAM: Final = re.compile(
    r"^(?:(?:sudo|time|nice|exec|then|do|env|command|nohup)\s+|timeout\s+\S+\s+|\w+=\S*\s+|[({!]\s*)+"
)
_RUNNERS: Final = re.compile(
    r"^(?:(?:uv|poetry|pipenv|pdm|hatch|bundle|mise) (?:run|exec)|npx|pnpm (?:exec|dlx)|yarn (?:dlx|run)|bunx|"
    r"python[\d.]* -m|docker compose (?:-\S+ \S+ )*(?:exec|run)(?: -\S+)*+ [^-\s]\S*|docker exec(?: -\S+)*+ [^-\s]\S*|"
    r"kubectl exec(?: -\S+)*+ [^-\s]\S*(?: --)?)(?:\s+-[\w-]+)*+\s+['\"]?"
)


def programs(command: str) -> list[tuple[str, str]]:
    """Return the program of each part of a command line with the rest of that part, without wrappers such as sudo."""
    found = []
    for segment in _SEGMENTS.split(_QUOTED.sub(_without_separators, without_documents(command))):
        bare = _BEFORE_PROGRAM.sub("", segment.strip())
        bare = _BEFORE_PROGRAM.sub("", _RUNNERS.sub("", bare))
        name, _, rest = bare.strip("'\" ").partition(" ")
        if name:
            found.append((name.rpartition("/")[2], rest.strip()))
    return found


def without_documents(command: str) -> str:
    """Return a command line without its here-documents."""
    lines = command.split("\n")
    last = {line.rstrip(" \t"): place for place, line in enumerate(lines)}
    kept, at = [], 0
    while at < len(lines):
        mark = next((match for match in _HERE.finditer(lines[at]) if last.get(match[1], 0) > at), None)
        kept.append(lines[at] if mark is None else f"{lines[at][: mark.start()]}<<{mark[1]}")
        at += 1
        while mark and lines[at - 1].rstrip(" \t") != mark[1]:
            at += 1
    return "\n".join(kept)


def _without_separators(quoted: re.Match[str]) -> str:
    """Return a quoted text, or `…` where a separator of commands in it would part the line."""
    return quoted[0] if not _SEPARATES.search(quoted[0]) else "…"


def first_work(command: str) -> str:
    """Return the first program of a command line with its first words: equal for commands that do the same work."""
    return next(iter(works_of(command)), "")


def works_of(command: str) -> list[str]:
    """Return the programs of a command line, each with its first words, without options and without mere filters."""
    found = []
    for name, rest in programs(command):
        if name not in _TRIVIAL:
            words = [word for word in _WORD.findall(rest) if not word.startswith("-")]
            found.append(" ".join([name, *words[:2]])[:_LONGEST])
    return found
