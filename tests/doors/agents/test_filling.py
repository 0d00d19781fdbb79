"""What agents have remembered already: found, shown, and taken in once after a yes, each with its own origin."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents_home import BERTHS, OF_CODEX, OF_PROJECT, OWN, RULE, folder_name, furnish, transcript, written
from recollect import App, Settings
from recollect.domain.origin import SaidBy
from recollect.domain.requests import Caller
from recollect.domain.transfer import ImportFormat
from recollect.doors.agents.filling import take_in
from recollect.doors.agents.replay import events_of
from recollect.doors.cli import setup
from recollect.doors.handlers import perform
from recollect.transfer import remembered
from recollect.transfer.remembered import Plan, State, What, find_remembered

Typed = Callable[..., Any]
CLAUDE, CODEX = ImportFormat.CLAUDE_CODE, ImportFormat.CODEX


@pytest.fixture
def starting(typing: Typed, settings: Settings) -> Typed:
    """Return a function that types a command with a store of its own, without a daemon."""
    ours = {"HOME": settings.home, "USER": "ada", "DAEMON": "0"}
    return partial(typing, **{f"RECOLLECT_{name}": str(value) for name, value in ours.items()})


def test_init_says_first_and_takes_in_after_a_yes(starting: Typed, home: Path, checkout: Path) -> None:
    """Where nobody can be asked it only says how; then each file counts as whoever wrote it, once and not twice."""
    furnish(home, checkout)
    told = starting("init")
    assert "What agents here remember (5 files, " in told.out
    assert "`recollect init --take-in` takes it in." in told.out
    assert starting("stats", "--json").json["memories"] == 0
    body = starting("init", "--take-in", "--json").json
    assert body["remembered"] == {"files": 5, "bytes": body["remembered"]["bytes"], "older_sessions": 0} | {
        "state": "taken in"
    }
    found = starting("list", "--all", "--json").json["memories"]
    texts = [starting("show", one["id"], "--json").json["content"] for one in found]
    assert {RULE, BERTHS, OWN} <= set(texts)
    again = starting("init", "--take-in", "--json").json
    assert (again["remembered"]["state"], again["remembered"]["files"]) == ("nothing new", 0)
    assert starting("stats", "--json").json["memories"] == len(found)


def test_a_terminal_is_asked(starting: Typed, home: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever says no keeps an empty store, and has seen what there is."""
    furnish(home, checkout)
    monkeypatch.setattr(setup, "interactive", lambda: True)
    ended = starting("init", stdin=b"n\nn\nn\nn\nn\nn\nn\nn\n")
    assert ended.code == 0, ended.err
    assert "was left alone" in ended.out
    for part in ("Claude Code\tmemory files\t1", "Codex\tmemory files\t1", "Claude Code\tsessions\t1"):
        assert part in ended.out
    assert starting("stats", "--json").json["memories"] == 0


def taken(app: App, caller: Caller) -> dict[str, Any]:
    """Return what a caller sees, by what it says."""
    return {one.content: one for one in perform(app, "list_memories", {"limit": 100}, caller).memories}


@pytest.fixture
def project(home: Path, checkout: Path, at_home: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the checkout of somebody whose agents remember something, and work in it."""
    furnish(home, checkout)
    monkeypatch.chdir(checkout)
    return checkout


def test_each_word_counts_as_its_speakers(app: App, project: Path, tmp_path: Path) -> None:
    """Notes of an agent are the assistant's, the user's own rules a person's, the project's file a file's."""
    plan = Plan(tmp_path)
    plan.add(find_remembered(project, tmp_path).files, "ada", "local")
    take_in(app, plan)
    (name,) = {one.project for one in plan.files if one.project}
    own = taken(app, Caller(user="ada", team="local", project=name))
    said = {text: (one.said_by, str(one.scope)) for text, one in own.items()}
    assert said[BERTHS] == (SaidBy.ASSISTANT, "project")
    assert said[OWN] == (SaidBy.PERSON, "personal")
    assert said[f"# Habits\n\n{OF_CODEX}"] == (SaidBy.ASSISTANT, "personal")
    assert said[f"# Tests\n\n{OF_PROJECT}"] == (SaidBy.FILE, "project")
    assert said[RULE][0] is SaidBy.PERSON
    assert f"{own[RULE].observed_at:%Y-%m-%d}" == "2026-02-01"
    assert own[BERTHS].files_read[0].endswith("memory/berths.md")
    assert perform(app, "inbox", {}, Caller(user="ada", team="local", project=name)).total == 0
    other = taken(app, Caller(user="ada", team="local", project="elsewhere"))
    assert other.keys() == {OWN, f"# Habits\n\n{OF_CODEX}"}


@pytest.mark.parametrize("events", range(1, 4))
def test_it_goes_on_where_it_was(app: App, project: Path, tmp_path: Path, events: int) -> None:
    """Whoever is stopped after any event goes on with the next one, and keeps nothing twice."""
    files = [one for one in find_remembered(project, tmp_path).files if one.what is What.SESSION]
    plan = Plan(tmp_path)
    plan.add(files, "ada", "local")
    left = iter([False] * (events + 1))
    take_in(app, plan, lambda: next(left, True))
    again = Plan(tmp_path)
    assert again.files[0].sent == events
    assert ("0 of 1 files" in again.message) == bool(again.waiting)
    take_in(app, again)
    assert again.files[0].state is State.DONE
    caller = Caller(user="ada", team="local", project=files[0].project)
    assert list(taken(app, caller)).count(RULE) == 1
    session = perform(app, "show_session", {"session_id": "s1"}, caller)
    assert [one.tool for one in session.observations if one.event == "tool:post"] == ["Bash", "Assistant"]


def test_only_what_is_new_is_read(app: App, project: Path, home: Path, tmp_path: Path) -> None:
    """A session that has grown adds what is new, one that hooks reported is known, a broken file hinders nobody."""
    own = home / ".claude" / "projects" / folder_name(project)
    plan = Plan(tmp_path)
    plan.add(find_remembered(project, tmp_path).files, "ada", "local")
    take_in(app, plan)
    assert plan.new(find_remembered(project, tmp_path).files) == []
    more = "We always tag releases of the harbour with the date, as customs asks for it."
    grown = transcript(project) + transcript(project, rule=more).replace('"s1-', '"s2-')
    written(own / "s1.jsonl", grown)
    reported = Caller(user="ada", team="local", project=plan.files[-1].project)
    perform(app, "session_start", {"session_id": "live"}, reported)
    written(own / "live.jsonl", transcript(project, "live"))
    (own / "memory" / "bad.md").write_bytes(b"\xff\xfe\xff")
    new = plan.new(find_remembered(project, tmp_path).files)
    assert {Path(one.path).name for one in new} == {"s1.jsonl", "live.jsonl", "bad.md"}
    plan.add(new, "ada", "local")
    take_in(app, plan)
    states = {Path(one.path).name: one.state for one in plan.files}
    assert (states["s1.jsonl"], states["live.jsonl"], states["bad.md"]) == (State.DONE, State.KNOWN, State.FAILED)
    assert more in taken(app, reported)
    assert "; 1 could not be read" in plan.message


def test_what_ends_the_process_again_and_again_is_left(app: App, project: Path, tmp_path: Path) -> None:
    """A file that was begun three times without an end is noted and passed over."""
    plan = Plan(tmp_path)
    plan.add(find_remembered(project, tmp_path).files[:1], "ada", "local")
    for _ in range(3):
        plan.put(remembered.replace(plan.files[0], tries=plan.files[0].tries + 1))
    take_in(app, Plan(tmp_path))
    assert Plan(tmp_path).files[0].state is State.FAILED


def test_the_last_sessions_within_the_budget(
    project: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty sessions are taken, the oldest of them first; what is older, of a subagent, or behind a link is not."""
    own = home / ".claude" / "projects" / folder_name(project)
    for number in range(25):
        written(own / f"n{number}.jsonl", transcript(project, f"n{number}"), age=1_000 + number)
    written(own / "agent-1.jsonl", transcript(project, "sub"))
    (own / "linked.jsonl").symlink_to(written(tmp_path / "out.jsonl", transcript(project, "out")))
    (own / "memory" / "linked").symlink_to(written(tmp_path / "away" / "note.md", "Away.").parent)
    found = find_remembered(project, tmp_path)
    sessions = [Path(one.path).name for one in found.files if one.what is What.SESSION]
    assert sessions == [*(f"n{number}.jsonl" for number in reversed(range(19))), "s1.jsonl"]
    assert found.older == 6
    assert [Path(one.path).name for one in found.files if one.what is What.MEMORIES] == ["berths.md", "MEMORY.md"]
    size = len(transcript(project).encode())
    monkeypatch.setattr(remembered, "BUDGET", 3 * size)
    assert len([one for one in find_remembered(project, tmp_path).files if one.what is What.SESSION]) in (2, 3)


def test_a_folder_is_known_by_its_name_alone(project: Path, home: Path, tmp_path: Path) -> None:
    """Where no transcript is left, the name of Claude Code's folder tells the project."""
    (home / ".claude" / "projects" / folder_name(project) / "s1.jsonl").unlink()
    (one,) = [one for one in find_remembered(project, tmp_path).files if one.path.endswith("berths.md")]
    assert one.folder == str(project)


def test_codex_is_replayed_alike(tmp_path: Path) -> None:
    """A session of Codex gives its prompts, what its tools wrote, and its last words of each turn."""

    def line(**payload: Any) -> str:
        return json.dumps({"timestamp": "2026-02-01T10:00:00Z", "type": "response_item", "payload": payload}) + "\n"

    def message(role: str, text: str) -> str:
        return line(type="message", role=role, content=[{"type": "input_text", "text": text}])

    meta = {"type": "session_meta", "payload": {"id": "c1", "cwd": "/home/ada/ship"}}
    lines = [
        json.dumps(meta) + "\n",
        message("user", "<environment_context>linux</environment_context>"),
        message("user", RULE),
        line(type="function_call", name="shell", call_id="1", arguments=json.dumps({"command": ["make", "check"]})),
        line(type="function_call_output", call_id="1", output="Exit code: 2\nWall time: 1 s\nOutput:\nno such target"),
        "{broken\n",
        message("assistant", "The target is missing."),
    ]
    file = written(tmp_path / "rollout-2026-c1.jsonl", "".join(lines))
    verbs = [(one.verb, one.final) for one in events_of(file, CODEX)]
    assert verbs == [
        ("session_start", False),
        ("note_prompt", False),
        ("tool_post", False),
        ("tool_post", True),
        ("session_end", True),
    ]
    events = [one.fields for one in events_of(file, CODEX)]
    assert {one["session_id"] for one in events} == {"c1"}
    assert {one["folder"] for one in events} == {"/home/ada/ship"}
    assert (events[2]["output"], events[2]["failed"]) == ("no such target", True)
    assert (events[3]["tool"], events[3]["output"]) == ("Assistant", "The target is missing.")
