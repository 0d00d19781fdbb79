"""Big stores for the evaluation of an agent: reads their folders, and fills a store with them.

A set is a folder with memories.jsonl and prompts.jsonl. Its memories are stored in the order of time, each at its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from evaluation.sessions.agent_answers import rows_of
from recollect.domain.origin import SaidBy
from recollect.errors import InvalidInput

FIELDS: Final = ("content", "title", "fact_type", "category", "importance")
_SPEAKERS: Final[Mapping[str, SaidBy]] = {"person": SaidBy.PERSON, "assistant": SaidBy.ASSISTANT}
_LATER: Final = timedelta(hours=1)
T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A memory of the file: its id there, who said it, when, and the fields of the request that stores it."""

    id: str
    said_by: SaidBy
    observed_at: datetime
    fields: dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A later prompt, the memories that it wants, and those that are out of date for it."""

    id: str
    prompt: str
    wants: frozenset[str]
    outdated: frozenset[str]


@dataclass(frozen=True)
class StoreSet:
    """The memories of a store in the order of time, and what is asked after them."""

    name: str
    entries: tuple[Entry, ...]
    questions: tuple[Question, ...]

    @property
    def asked_at(self) -> datetime:
        """Return when the prompts are asked."""
        return self.entries[-1].observed_at + _LATER


def is_store(folder: Path) -> bool:
    """Say whether a folder holds a big store, and not the recording of sessions."""
    return (folder / "memories.jsonl").exists()


def load_store(folder: Path) -> StoreSet:
    """Read a folder; raise `InvalidInput` naming the file and line of what cannot be understood."""
    entries = _each(folder / "memories.jsonl", _entry)
    known = {one.id for one in entries}

    def question(row: dict[str, Any]) -> Question:
        wants, outdated = (frozenset(map(str, row.get(name) or ())) for name in ("wants", "outdated"))
        if unknown := (wants | outdated) - known:
            raise ValueError(f"no such memory: {', '.join(sorted(unknown))}")
        return Question(str(row["id"]), str(row["prompt"]), wants, outdated)

    questions = _each(folder / "prompts.jsonl", question)
    ordered = sorted(entries, key=lambda one: one.observed_at)
    return StoreSet(folder.resolve().name, tuple(ordered), tuple(questions))


def _entry(row: dict[str, Any]) -> Entry:
    at = datetime.fromisoformat(row["observed_at"])
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    given = {name: row[name] for name in FIELDS if row.get(name) is not None}
    if row["said_by"] not in _SPEAKERS:
        raise ValueError(f"`said_by` must be one of {', '.join(_SPEAKERS)}")
    return Entry(str(row["id"]), _SPEAKERS[row["said_by"]], at, given | {"observed_at": at.isoformat()})


def _each(file: Path, read: Callable[[dict[str, Any]], T]) -> list[T]:
    if not file.is_file():
        raise InvalidInput("folder", f"{file} cannot be read: No such file or directory.")
    found = []
    for number, row in rows_of(file):
        try:
            found.append(read(row))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput("folder", f"{file}, line {number}: {type(error).__name__}: {error}.") from error
    if not found:
        raise InvalidInput("folder", f"{file} is empty.")
    return found
