"""Labelled sessions of coding agents: reads their folders, and makes the secrets that stand in them as placeholders.

A set is a folder with events.jsonl and prompts.jsonl. Its days are moved so that the last session ended within a day,
as what is remembered ages.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from evaluation.sets import lines_of
from recollect.errors import InvalidInput

Place = tuple[str, int]
"""A session, and the number of one of its events."""

EVENTS: Final = ("session:start", "prompt:submit", "tool:post", "session:checkpoint", "session:end")
LABELS: Final = ("keep", "maybe", "drop")
PLANTED: Final = "prompt_injection"
TRAITS: Final = frozenset(
    "listing progress install_log build_log passing_tests file_read git_status lint huge_json binary minified repeated "
    "memory_echo secret".split()
) | {PLANTED}
"""The reasons why an event is in a set that are known here; others change nothing."""
_ANSWERED: Final = "assistant:stop"
_PLACEHOLDER: Final = re.compile(r"\{\{SECRET:(\w+)\}\}")
_LATER: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Event:
    """One event of a session with its label; `topic` counts the topics of its session from 0."""

    session: str
    seq: int
    at: datetime
    event: str
    label: str
    topic: int
    tool: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    prompt: str = ""
    failed: bool = False
    what: str = ""
    kind: str = ""
    boundary: bool = False
    obsoletes: tuple[Place, ...] = ()
    traits: frozenset[str] = frozenset()

    @property
    def place(self) -> Place:
        """Return its session and its number in it."""
        return self.session, self.seq

    @property
    def said(self) -> str:
        """Return what a person would recognise it by, on one line."""
        given = self.input.get("command") or self.input.get("file_path") or self.input.get("pattern") or ""
        return " ".join((self.prompt or f"{self.tool or self.event} {given}").split())


@dataclass(frozen=True)
class Ask:
    """A later prompt, the events whose lesson it wants, the most useful first, and those that must not come."""

    id: str
    prompt: str
    wants: tuple[Place, ...]
    must_not: tuple[Place, ...] = ()


@dataclass(frozen=True)
class SessionSet:
    """The sessions of one repository, what is asked after them, and the values of the secrets in them.

    The placeholders of `unknown` kinds of secrets stay as they are.
    """

    name: str
    events: tuple[Event, ...]
    asks: tuple[Ask, ...]
    secrets: dict[str, str]
    unknown: tuple[str, ...] = ()

    @property
    def by_place(self) -> dict[Place, Event]:
        """Return the events by session and number."""
        return {one.place: one for one in self.events}

    @property
    def sessions(self) -> tuple[str, ...]:
        """Return the sessions in their order."""
        return tuple(dict.fromkeys(one.session for one in self.events))

    @property
    def unknown_traits(self) -> tuple[str, ...]:
        """Return the traits of events that are not known here."""
        return tuple(sorted(frozenset().union(*(one.traits for one in self.events)) - TRAITS))

    def folder(self, session: str) -> str:
        """Return the folder that a session says it works in; empty where it says none."""
        begun = (one for one in self.events if one.session == session and one.event == "session:start")
        return next((str(one.input["cwd"]) for one in begun if one.input.get("cwd")), "")

    def masked(self, text: str) -> str:
        """Return a text with the placeholders in the place of the secrets."""
        for kind, value in self.secrets.items():
            text = text.replace(value, f"{{{{SECRET:{kind}}}}}")
        return text

    @property
    def asked_at(self) -> datetime:
        """Return when the prompts are asked."""
        return self.events[-1].at + _LATER


def load(folder: Path, now: datetime | None = None, *, as_recorded: bool = False) -> SessionSet:
    """Read a folder; raise `InvalidInput` naming the file and line of what cannot be understood.

    With `as_recorded` its days are not moved.
    """
    given = _rows(folder / "events.jsonl")
    made = _Secrets(folder.resolve().name)
    try:
        times = [_time(one["at"]) for _, one in given]
        shift = timedelta() if as_recorded else _shift(times, now or datetime.now(UTC))
    except (KeyError, ValueError) as error:
        raise InvalidInput("folder", f"{folder / 'events.jsonl'}: an event has no time: {error}.") from error
    topics: dict[str, int] = {}
    events: list[Event] = []
    for number, row in given:
        session = str(row.get("session"))
        topics[session] = topics.get(session, 0) + bool(row.get("boundary"))
        events.append(_checked(folder / "events.jsonl", number, lambda: _event(made(row), topics[session], shift)))  # noqa: B023
    known = {one.place for one in events}
    prompts = folder / "prompts.jsonl"
    asks = tuple(_checked(prompts, number, lambda: _ask(row, known)) for number, row in _rows(prompts))  # noqa: B023
    return SessionSet(folder.resolve().name, tuple(events), asks, made.values, tuple(sorted(made.unknown)))


def _checked(file: Path, number: int, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput("folder", f"{file}, line {number}: {type(error).__name__}: {error}.") from error


def _event(row: dict[str, Any], topic: int, shift: timedelta) -> Event:
    event, label = row["event"], row["label"]
    if event == _ANSWERED:  # what an assistant says at the end of a turn
        event, row = "tool:post", row | {"tool": "Assistant", "output": row["message"]}
    if event not in EVENTS or label not in LABELS:
        raise ValueError(f"unknown event or label: {event}, {label}")
    if label == "keep" and not row.get("what"):
        raise ValueError("an event to keep says no lesson")
    output = row.get("output", "")
    texts = {name: row[name] for name in ("tool", "prompt", "what", "kind") if name in row}
    return Event(
        session=row["session"],
        seq=row["seq"],
        at=_time(row["at"]) + shift,
        event=event,
        label=label,
        topic=topic,
        input=row.get("input", {}),
        output=output if isinstance(output, str) else json.dumps(output, ensure_ascii=False),
        failed=bool(row.get("failed")),
        boundary=bool(row.get("boundary")),
        obsoletes=_places(row.get("obsoletes", ())),
        traits=frozenset(row.get("traits", ())),
        **texts,
    )


def _ask(row: dict[str, Any], known: set[Place]) -> Ask:
    found = Ask(row["id"], row["prompt"], _places(row["wants"]), _places(row.get("must_not", ())))
    if unknown := {*found.wants, *found.must_not} - known:
        raise ValueError(f"no such event: {sorted(unknown)}")
    return found


def _places(rows: Sequence[Sequence[Any]]) -> tuple[Place, ...]:
    return tuple((str(session), int(seq)) for session, seq in rows)


def _rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the objects of a JSON-lines file with the numbers of their lines."""
    lines = lines_of(path)
    found = [(number, _checked(path, number, lambda: json.loads(line))) for number, line in lines]  # noqa: B023
    for number, one in found:
        if not isinstance(one, dict):
            raise InvalidInput("folder", f"{path}, line {number}: this is no object.")
    return found


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _shift(times: Sequence[datetime], now: datetime) -> timedelta:
    """Return the whole days by which to move the events, so that the prompts after them come within the last day."""
    return timedelta(days=(now - _LATER - max(times)).days)


class _Secrets:
    """Puts a freshly made value of the right shape in the place of each placeholder; one kind has one value."""

    def __init__(self, name: str) -> None:
        self._dice = random.Random(name)
        self.values: dict[str, str] = {}
        self.unknown: set[str] = set()

    def __call__(self, found: Any) -> Any:
        if isinstance(found, str):
            return _PLACEHOLDER.sub(lambda match: self._value(match[1]) or match[0], found)
        if isinstance(found, dict):
            return {key: self(one) for key, one in found.items()}
        return [self(one) for one in found] if isinstance(found, list) else found

    def _value(self, kind: str) -> str:
        letters, digits = string.ascii_letters, string.digits
        if kind not in self.values:
            if kind == "aws_key":
                value = "AK" + "IA" + self._drawn(string.ascii_uppercase + "234567", 16)
            elif kind == "token":
                value = "gh" + "p_" + self._drawn(letters + digits, 36)
            elif kind == "password":
                value = self._drawn(letters, 5) + self._drawn(digits, 3) + "-" + self._drawn(letters + digits, 7)
            else:
                self.unknown.add(kind)
                return ""
            self.values[kind] = value
        return self.values[kind]

    def _drawn(self, signs: str, count: int) -> str:
        return "".join(self._dice.choice(signs) for _ in range(count))
