"""Plays labelled sessions through a real store, in this process or by hooks, and gathers what became of them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from rich.console import Console
from rich.progress import track

import recollect
from evaluation.sessions.sets import Event, Place, SessionSet
from recollect import App, Settings
from recollect.client import launch
from recollect.domain.enums import ObservationType
from recollect.doors import hook_texts
from recollect.doors.handlers import perform
from recollect.errors import RecollectError

err = Console(stderr=True)
AGENT: Final = "claude-code"
SUMMARIES: Final = frozenset(
    {ObservationType.SESSION_SUMMARY, ObservationType.CHECKPOINT, ObservationType.COMPRESSED_SUMMARY}
)
"""Types of the memories that the pipeline makes by itself, of many events."""
_PAGE: Final = 100
_PAUSE: Final = 0.01
OPERATIONS: Final = {
    "session:start": "session_start",
    "prompt:submit": "prompt_submit",
    "tool:post": "tool_post",
    "session:checkpoint": "session_checkpoint",
    "session:end": "session_end",
}
_NAMES: Final = {
    "session:start": "SessionStart",
    "prompt:submit": "UserPromptSubmit",
    "tool:post": "PostToolUse",
    "session:checkpoint": "PreCompact",
    "session:end": "SessionEnd",
}


@dataclass(frozen=True)
class Stored:
    """A memory as it stands after the sessions."""

    id: int
    title: str
    content: str
    type: str
    replaced: bool = False

    @property
    def text(self) -> str:
        """Return what it says, with its title."""
        return self.content if self.content.startswith(self.title) else f"{self.title}\n{self.content}"

    @property
    def summary(self) -> bool:
        """Say whether the pipeline made it of many events."""
        return self.type in SUMMARIES


@dataclass(frozen=True)
class Decided:
    """What became of one event: the memories that were made of it or grew by it, and why."""

    memory_ids: tuple[int, ...] = ()
    reason: str = ""
    score: float | None = None


@dataclass(frozen=True)
class Injected:
    """What was put before a prompt: the text, and the memories in it."""

    text: str = ""
    memory_ids: tuple[int, ...] = ()


@dataclass
class Played:
    """What became of a set: decisions and boundaries by event, the memories, and what was put before which prompt."""

    decided: dict[Place, Decided] = field(default_factory=dict)
    boundaries: set[Place] = field(default_factory=set)
    memories: dict[int, Stored] = field(default_factory=dict)
    injected: dict[Place, Injected] = field(default_factory=dict)
    asked: dict[str, Injected] = field(default_factory=dict)
    leaks: list[str] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    lost: int = 0
    late: int = 0

    def kept(self, place: Place) -> list[Stored]:
        """Return the memories of one event that are still there; a summary is of no event in particular."""
        ids = self.decided[place].memory_ids if place in self.decided else ()
        return [self.memories[one] for one in ids if one in self.memories and not self.memories[one].summary]

    def sources(self) -> dict[int, tuple[Place, ...]]:
        """Return the events that each memory came from, in order; a summary came from none in particular."""
        found: dict[int, list[Place]] = {}
        for place in self.decided:
            for one in self.kept(place):
                found.setdefault(one.id, []).append(place)
        return {memory: tuple(places) for memory, places in found.items()}


class Player(Protocol):
    """A way to hand events to a store.

    `took` are the milliseconds of the last event until the agent could go on, `late` how many prompts went on without
    what the store had found for them.
    """

    took: float
    late: int

    def send(self, event: Event, session: str, folder: str) -> Injected:
        """Hand over an event, wait until it is worked off, and return what a prompt got."""

    def perform(self, name: str, **fields: Any) -> Any:
        """Run an operation."""

    def lost(self) -> int:
        """Return how many events were lost."""


class InStore:
    """Runs the operations of the events in this process."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app, self._caller = app, settings.caller
        self.took, self.late = 0.0, 0

    def send(self, event: Event, session: str, folder: str) -> Injected:
        fields: dict[str, Any] = {"session_id": session, "agent": AGENT, "folder": folder, "at": event.at.isoformat()}
        if event.event == "tool:post":
            output = hook_texts.cut(event.output)  # as a hook hands it over, without what no store takes
            fields |= {"tool": event.tool, "input": event.input, "output": output, "failed": event.failed}
        elif event.event == "prompt:submit":
            fields["prompt"] = event.prompt
        else:
            fields |= {name: event.input[name] for name in ("source", "reason") if name in event.input}
        start = time.perf_counter()
        answer = self.perform(OPERATIONS[event.event], **fields)
        self.took = (time.perf_counter() - start) * 1e3
        if event.event != "prompt:submit":
            return Injected()
        return Injected(answer.text, tuple(int(one) for one in answer.memory_ids))

    def perform(self, name: str, **fields: Any) -> Any:
        return perform(self._app, name, fields, self._caller)

    def lost(self) -> int:
        return 0


class ThroughHooks:
    """Runs `recollect hook` for each event, as Claude Code does, against the daemon of the store."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.took, self.late = 0.0, 0
        self._link = recollect.connect(settings)
        ours = {f"RECOLLECT_{name.upper()}": str(one) for name, one in settings.model_dump(exclude_none=True).items()}
        self._environment = {name: one for name, one in os.environ.items() if not name.startswith("RECOLLECT_")} | ours
        self._seen: dict[str, tuple[int, ...]] = {}
        while self._status()["model"] != "ready":
            time.sleep(_PAUSE)

    def send(self, event: Event, session: str, folder: str) -> Injected:
        name, payload = _payload(event)
        payload |= {"session_id": session, "cwd": folder, "hook_event_name": name, "timestamp": event.at.isoformat()}
        command = [str(Path(sys.executable).with_name("recollect")), "hook", name, "--agent", AGENT]
        start = time.perf_counter()
        done = subprocess.run(
            command, input=json.dumps(payload), env=self._environment, capture_output=True, text=True, check=False
        )
        self.took = (time.perf_counter() - start) * 1e3
        if done.returncode:
            raise RecollectError(f"The hook {name} ended with {done.returncode}, which none may: {done.stderr}")
        while self._status()["events_waiting"]:
            time.sleep(_PAUSE)
        new = self._newly_injected(session)
        text = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout.strip() else ""
        self.late += bool(new) and not text
        return Injected(text, new if text else ())

    def perform(self, name: str, **fields: Any) -> Any:
        return self._link.perform(name, **fields)

    def lost(self) -> int:
        return int(self._status()["events_lost"])

    def _status(self) -> dict[str, Any]:
        return launch.ensure(self._settings).post("/status", {})

    def _newly_injected(self, session: str) -> tuple[int, ...]:
        """Return the memories that the session's last prompt got, by what the store knows of the session."""
        file = self._settings.folder / "memory.db"
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            found = database.execute("select state from session where session_id = ?", (session,)).fetchone()
        now = tuple(json.loads(found[0]).get("injected", ())) if found else ()
        before, self._seen[session] = self._seen.get(session, ()), now
        return now[len(before) :] if now[: len(before)] == before else now


def _payload(event: Event) -> tuple[str, dict[str, Any]]:
    """Return Claude Code's name of an event, and what its hook says of it."""
    name = _NAMES[event.event]
    if event.event == "prompt:submit":
        return name, {"prompt": event.prompt}
    if event.event != "tool:post":
        return name, {one: event.input[one] for one in ("source", "reason") if one in event.input}
    if event.tool == "Assistant":
        return "Stop", {"last_assistant_message": event.output}
    used: dict[str, Any] = {"tool_name": event.tool, "tool_input": event.input}
    if event.failed:
        return "PostToolUseFailure", used | {"error": event.output}
    shell = {"stdout": event.output, "stderr": "", "interrupted": False, "isImage": False}
    return name, used | {"tool_response": shell if event.tool == "Bash" else event.output}


def settings_of(home: Path, name: str, *, daemon: bool) -> Settings:
    """Return settings of a store of the set's own, with the prepared model of whoever runs this."""
    given = Settings()
    places = {"home": home / name / "home", "models_dir": given.models_dir}
    return Settings(user="eval", team="eval", project=name, model=given.model, daemon=daemon, **places)


@contextmanager
def opened(through: str, settings: Settings) -> Iterator[Player]:
    """Open a store of its own and yield the player: `store` or `hooks`; the daemon of the latter is stopped again."""
    if through == "store":
        with recollect.open_app(settings, background=False) as app:
            yield InStore(app, settings)
        return
    try:
        yield ThroughHooks(settings)
    finally:
        launch.stop(settings)


def play(one: SessionSet, through: str, settings: Settings) -> Played:
    """Play the sessions of a set, then ask its prompts, each in a fresh session that keeps nothing."""
    played = Played()
    work, asking = settings.folder.parent / "work", settings.folder.parent / "asking"
    for folder in (work, asking):
        folder.mkdir(parents=True, exist_ok=True)
    (asking / "recollect.toml").write_text("capture = false\n", encoding="utf-8")
    with opened(through, settings) as player:
        watch = _Watch(player, played)
        for event in track(one.events, f"{one.name}: playing through {through}", console=err):
            found = watch.send(event, f"{one.name}-{event.session}", one.folder(event.session) or str(work))
            if event.event == "prompt:submit":
                played.injected[event.place] = found
        played.memories = memories_of(player)
        for ask in track(one.asks, f"{one.name}: asking", console=err):
            event = Event("", 0, one.asked_at, "prompt:submit", "drop", 0, prompt=ask.prompt)
            played.asked[ask.id] = player.send(event, f"{one.name}-{ask.id}", str(asking))
        played.lost, played.late = player.lost(), player.late
    played.leaks = leaks(settings.folder, one.secrets)
    for injected in (*played.injected.values(), *played.asked.values()):
        played.leaks += [
            f"{kind} in what was injected" for kind, value in one.secrets.items() if value in injected.text
        ]
    return played


class _Watch:
    """Looks after each event what the store has noted of it."""

    def __init__(self, player: Player, played: Played) -> None:
        self._player, self._played = player, played
        self._observed: dict[str, int] = {}
        self._topics: dict[str, tuple[str, ...]] = {}

    def send(self, event: Event, session: str, folder: str) -> Injected:
        found = self._player.send(event, session, folder)
        self._played.milliseconds.setdefault(event.event, []).append(self._player.took)
        shown = self._player.perform("show_session", session_id=session)
        new = [one for one in shown.observations if one.number > self._observed.get(session, 0)]
        self._observed[session] = max((one.number for one in shown.observations), default=0)
        own = [one for one in new if one.event == event.event]
        if own:
            made = tuple(int(one.memory_id) for one in own if one.decision == "kept" and one.memory_id)
            self._played.decided[event.place] = Decided(made, own[-1].reason, own[-1].score)
        if set(shown.boundaries) - set(self._topics.get(session, ())):
            self._played.boundaries.add(event.place)
        self._topics[session] = shown.boundaries
        self._played.failed |= shown.failures
        return found


def memories_of(player: Player) -> dict[int, Stored]:
    """Return every memory there is, replaced ones too."""
    found: dict[int, Stored] = {}
    while True:
        page = player.perform(
            "list_memories", limit=_PAGE, offset=len(found), superseded=True, allow_private=True, allow_secret=True
        ).memories
        found |= {
            one.id: Stored(one.id, one.title or "", one.content, str(one.type or ""), one.superseded_by is not None)
            for one in page
        }
        if len(page) < _PAGE:
            return found


def leaks(home: Path, secrets: dict[str, str]) -> list[str]:
    """Return where in a data folder the value of a secret stands: files, and columns of tables."""
    found: list[str] = []
    for file in sorted(one for one in home.rglob("*") if one.is_file()):
        content = file.read_bytes()
        found += [f"{kind} in {file.relative_to(home)}" for kind, value in secrets.items() if value.encode() in content]
        if content.startswith(b"SQLite format 3"):
            found += [f"{kind} in {file.name}, {where}" for kind, where in _in_tables(file, secrets)]
    return found


def _in_tables(file: Path, secrets: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the kind of each secret that a table holds, and the table with its column; a long text spans pages."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        database.text_factory = bytes
        tables = [one[0].decode() for one in database.execute("select name from sqlite_master where type = 'table'")]
        for table in tables:
            try:
                rows = database.execute(f'select * from "{table}"')
                columns = [one[0] for one in rows.description]
                held = {
                    (kind, column)
                    for row in rows
                    for column, cell in zip(columns, row, strict=True)
                    for kind, value in secrets.items()
                    if isinstance(cell, bytes) and value.encode() in cell
                }
            except sqlite3.Error:  # a virtual table of an extension that is not loaded; its file was read
                continue
            yield from ((kind, f"{table}.{column}") for kind, column in sorted(held))
