"""A whole transcript through extraction: by the command, by the hook before an agent compacts, and each part once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from chat_server import ChatServer, Reply, chat_server
from command_line import call
from local_access import local_access
from places import ROOT
from recollect import App, Settings
from recollect.doors.http import local
from run_operations import do, listed

pytestmark = pytest.mark.slow

HISTORY = ROOT / "CHANGELOG.md"
KINDS = ("profile", "preferences", "entities", "events", "cases", "patterns")
Compacting = Callable[..., list[str]]
MOST = 6  # memories of one answer


def reader(_: str, text: str) -> Reply:
    """Name the first sentences of the messages, each as a memory of another kind; decide and describe nothing else."""
    if not text.startswith("["):
        return Reply("nothing to say")
    shown = json.loads(text)
    said = [one["said"].split(". ")[0] for one in shown][:MOST]
    found = [{"category": KINDS[place % len(KINDS)], "content": one} for place, one in enumerate(said)]
    return Reply(json.dumps({"memories": found}))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Return a running model that reads what it is shown."""
    with chat_server() as running:
        running.script = reader
        yield running


def transcript(file: Path, messages: list[str]) -> Path:
    """Write messages as Claude Code does, the user and the assistant in turn."""
    lines = []
    for number, text in enumerate(messages):
        speaker = ("user", "assistant")[number % 2]
        about = {"parentUuid": None, "sessionId": "s1", "cwd": "/engine", "timestamp": "2026-01-02T03:04:05Z"}
        said = {"type": speaker, "uuid": f"u{number}", "message": {"role": speaker, "content": text}}
        lines.append(json.dumps(about | said))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def history() -> list[str]:
    """Return what happened in this repository, a change each."""
    text = HISTORY.read_text(encoding="utf-8")
    return [" ".join(one.split()) for one in text.split("\n- ")[1:90]]


@pytest.mark.full
def test_this_repositorys_history_twice(environment: dict[str, str], server: ChatServer, tmp_path: Path) -> None:
    """The second time asks nothing and adds nothing; of a longer one only what is new at its end is read."""
    ours = environment | {"RECOLLECT_CHAT_MODEL": "tiny", "RECOLLECT_CHAT_URL": server.url}
    told = history()
    file = transcript(tmp_path / "session.jsonl", told[:-2])
    first = call(["extract", str(file), "--json"], ours, tmp_path).json
    assert first["parts"] >= 2
    assert first["new"] >= 6
    asked = len(server.asked)
    again = call(["extract", str(file), "--json"], ours, tmp_path).json
    assert (again["new"], again["updated"], again["parts"], again["known"]) == (0, 0, 0, first["parts"])
    assert len(server.asked) == asked
    longer = call(["extract", str(transcript(file, told)), "--json"], ours, tmp_path).json
    assert longer["known"] >= first["parts"] - 1
    assert longer["parts"] <= 2


@pytest.fixture
def reading(open_store: Callable[..., App], server: ChatServer) -> App:
    return open_store(chat_model="tiny", chat_url=server.url)


@pytest.fixture
def compacting(reading: App, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Compacting:
    """Return what takes the event before an agent compacts, as the daemon does, and gives the operations that ran."""
    ran: list[str] = []

    def perform(_: App, name: str, fields: dict[str, Any], *__: Any) -> Any:
        ran.append(name)
        return do(reading, name, **fields) if name == "extract_memories" else None

    def compacting(file: Path, **given: Any) -> list[str]:
        ran.clear()
        given = {"user": "ada", "team": "crew", "project": "engine"} | given
        client = {"given": given, "variables": {}, "folder": str(file.parent), "user": "ada"}
        access = local_access(reading, settings)
        event = access.event(QueryParams(""), {"session_id": "s1", "transcript": str(file)}, client)
        access.events.take("session:checkpoint", event, reading.clock().isoformat())
        assert access.events.finish(60)
        return ran

    monkeypatch.setattr(local, "perform", perform)
    return compacting


def test_a_hook_reads_what_is_about_to_be_cut(
    compacting: Compacting, reading: App, server: ChatServer, tmp_path: Path
) -> None:
    """What the agent's transcript says becomes memories, once and for good, whichever way it came."""
    file = transcript(tmp_path / "session.jsonl", ["We ship on Fridays. Always.", "The harbour has nine cranes."])
    assert compacting(file) == ["extract_memories", "session_checkpoint"]
    assert len(listed(reading)) == 2
    reading.records.outcomes.drop(reading.clock() + timedelta(days=400))
    compacting(file)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "kind", ["absent", "folder", "pipe", "too large", "another format", "not JSON", "not captured"]
)
def test_a_transcript_that_is_none_is_left_alone(
    compacting: Compacting,
    reading: App,
    server: ChatServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """A payload may name anything: only a regular file of an agent's format is read, and no error comes of it."""
    file = transcript(tmp_path / "session.jsonl", ["We ship on Fridays."])
    given: dict[str, Any] = {}
    if kind == "too large":
        monkeypatch.setattr("recollect.transfer.transcripts._LARGEST", 10)
    elif kind == "another format":
        file.write_text('{"entities": [], "relations": []}', encoding="utf-8")
    elif kind == "not JSON":
        file.write_bytes(b"\xff\x00 nothing")
    elif kind == "not captured":
        given = {"capture": False}
    else:
        file.unlink()
        if kind == "folder":
            file.mkdir()
        if kind == "pipe":
            os.mkfifo(file)
    compacting(file, **given)
    assert server.asked == []
    assert listed(reading) == []
