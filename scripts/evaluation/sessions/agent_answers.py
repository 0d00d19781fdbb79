"""Reads what language models answered to the pages of the evaluation of an agent: files with one object a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect.errors import InvalidInput

SUFFIX = ".answers.jsonl"


@dataclass(frozen=True)
class Pick:
    """What an agent does for one later prompt: the memories it opens, and the words it recalls with."""

    open: tuple[str, ...] = ()
    recall: str = ""


@dataclass(frozen=True)
class Judgement:
    """What a judge says of one memory: its worth, whether it is out of date, and the numbers of lessons.

    It `says` a lesson alone, or `helps` to say it together with other memories.
    """

    says: frozenset[int] = frozenset()
    helps: frozenset[int] = frozenset()
    worth: bool = False
    outdated: bool = False


def answers_of(page: Path) -> Path:
    """Return the file that holds the answers to a page."""
    return page.with_name(page.stem + SUFFIX)


def rows_of(file: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a file with the numbers of their lines; raise `InvalidInput` naming a line that is none.

    Blank lines are left out. A file without a line is an answer too.
    """
    found: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidInput("folder", f"{file}, line {number}: this is not JSON.") from error
        if not isinstance(row, dict):
            raise InvalidInput("folder", f"{file}, line {number}: this is no object.")
        found.append((number, row))
    return found


def read_picks(file: Path, ids: Iterable[str]) -> dict[str, Pick]:
    """Return the pick for each of these prompts; raise `InvalidInput` where one is missing or another is named."""
    found: dict[str, Pick] = {}
    for number, row in rows_of(file):
        recall = row.get("recall") or ""
        if not isinstance(recall, str):
            raise InvalidInput("folder", f"{file}, line {number}: `recall` is no text.")
        opened = dict.fromkeys(map(str, _list(file, number, row, "open")))
        found[str(row.get("id"))] = Pick(tuple(opened), recall.strip())
    _complete(file, found, ids)
    return found


def read_judgements(file: Path, ids: Iterable[str]) -> dict[str, Judgement]:
    """Return the judgement on each of these memories; raise `InvalidInput` where one is missing or another is named."""
    found: dict[str, Judgement] = {}
    for number, row in rows_of(file):
        says, helps = (_numbers(file, number, row, name) for name in ("says", "helps"))
        judged = Judgement(says, helps, row.get("worth") is True, row.get("outdated") is True)
        found[str(row.get("memory"))] = judged
    _complete(file, found, ids)
    return found


def _numbers(file: Path, number: int, row: dict[str, Any], name: str) -> frozenset[int]:
    found = _list(file, number, row, name)
    if not all(isinstance(one, int) for one in found):
        raise InvalidInput("folder", f"{file}, line {number}: `{name}` is no list of numbers.")
    return frozenset(found)


def digest(files: Iterable[Path]) -> str:
    """Return what changes with the names and contents of some files."""
    made = hashlib.sha256()
    for file in sorted(files, key=lambda one: one.name):
        made.update(f"{file.name}\n{file.read_text(encoding='utf-8')}\n".encode())
    return made.hexdigest()[:16]


def _list(file: Path, number: int, row: dict[str, Any], name: str) -> list[Any]:
    found = row.get(name) or []
    if not isinstance(found, list):
        raise InvalidInput("folder", f"{file}, line {number}: `{name}` is no list.")
    return found


def _complete(file: Path, found: Iterable[str], ids: Iterable[str]) -> None:
    if missing := sorted({*ids} - {*found}):
        raise InvalidInput("folder", f"{file}: no line answers {', '.join(missing)}.")
    if unknown := sorted({*found} - {*ids}):
        raise InvalidInput("folder", f"{file}: these ids were not asked about: {', '.join(unknown)}.")
