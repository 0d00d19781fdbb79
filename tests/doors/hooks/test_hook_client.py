"""`recollect hook`: hands events to the daemon, answers in the agent's words, and is silent and well in any trouble."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from command_line import EXECUTABLE
from hook_payloads import payload
from recollect import process, store_owner
from recollect.client import launch, light
from recollect.doors import hook, hook_spool
from stand_in_daemon import TOKEN, http, publish, standing_in

pytestmark = pytest.mark.slow

Run = Callable[..., str]
KEEP = hook_spool.keep
PROMPT = payload("claude-code", "UserPromptSubmit", {"prompt": "When do we ship?"})
USED = payload(
    "claude-code", "PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_response": "y"}
)
START = payload("claude-code", "SessionStart", {"source": "startup"})
INJECTED = http({"text": "<memory-context>"})
PLANNED = payload("claude-code", "PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "git push --force"}})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the data folder of a store."""
    (tmp_path / "h").mkdir()
    return tmp_path / "h"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Return the starts of a daemon that were asked for; none happens."""
    asked: list[dict[str, str]] = []
    monkeypatch.setattr(hook, "_start_daemon", lambda given: asked.append(dict(given)))
    for name in ("keep", "deliver_later"):
        monkeypatch.setattr(hook_spool, name, lambda *_: None)
    return asked


@pytest.fixture
def delivering(started: object, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[bytes, float], bool]]:
    """Return what would deliver kept events in a process of its own; none is made."""
    asked: list[Callable[[bytes, float], bool]] = []
    monkeypatch.setattr(hook_spool, "keep", KEEP)
    monkeypatch.setattr(hook_spool, "deliver_later", lambda _, deliver: asked.append(deliver))
    return asked


@pytest.fixture
def run(home: Path, started: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that takes a payload as the command does, in this process."""
    for name in ("RECOLLECT_DAEMON", "RECOLLECT_TEAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RECOLLECT_HOME", str(home))

    def running(said: Any, *words: str, seconds: float = 5.0, **given: str) -> str:
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        return hook.answer(words or ("UserPromptSubmit",), content, given, time.monotonic() + seconds)

    return running


@pytest.fixture
def typed(home: Path) -> Iterator[Callable[..., tuple[int, bytes, bytes]]]:
    """Return a function that runs the real command, which can start no daemon in a home without a model."""
    environment = {"HOME": str(home), "RECOLLECT_HOME": str(home), "PATH": "/usr/bin:/bin", "RECOLLECT_USER": "ada"}
    inherited = {name: os.environ[name] for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE") if name in os.environ}

    def typing(said: bytes, *words: str, **options: Any) -> tuple[int, bytes, bytes]:
        done = subprocess.run(
            [EXECUTABLE, *(words or ("hook", "UserPromptSubmit", "--agent", "claude-code"))],
            input=said,
            capture_output=True,
            env=environment | inherited,
            cwd=home,
            check=False,
            **options,
        )
        return done.returncode, done.stdout, done.stderr

    return typing


def test_a_prompt_is_answered_in_the_agents_words(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon gets event, fields, caller and folder with its token; its text goes to the agent as context."""
    monkeypatch.setenv("RECOLLECT_TEAM", "crew")
    monkeypatch.delenv("RECOLLECT_TEST_POSTGRES_URL", raising=False)  # which these tests themselves may be given
    with standing_in(home, lambda _: INJECTED) as taken:
        answer = run(PROMPT, "UserPromptSubmit", "--agent", "claude-code", user="ada")
    assert json.loads(answer) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "<memory-context>"}
    }
    [body] = taken
    assert body["headers"]["Authorization"] == f"Bearer {TOKEN}"
    assert body["path"] == "/v1/hooks/prompt:submit"
    transcript = "/home/ada/.claude/projects/x/abc123.jsonl"
    said = {"session_id": "abc123", "prompt": "When do we ship?", "agent": "claude-code"}
    assert body["fields"] == said | {"transcript": transcript}
    assert body["client"]["folder"] == "/srv/engine"
    assert body["client"]["variables"] == {"RECOLLECT_HOME": str(home), "RECOLLECT_TEAM": "crew"}
    assert body["client"]["given"] == {"user": "ada"}
    assert body["client"]["user"] == process.user()


@pytest.mark.parametrize(
    ("said", "passed"), [("2026-11-22T10:00:00Z", "2026-11-22T10:00:00Z"), ("x" * 65, None), ("ä", None), (7, None)]
)
def test_the_time_of_a_payload_is_passed_on(run: Run, home: Path, said: object, passed: str | None) -> None:
    """An agent may say when an event happened; what cannot be a time stays behind."""
    with standing_in(home, lambda _: INJECTED) as taken:
        run(PROMPT | {"timestamp": said}, "UserPromptSubmit", "--agent", "claude-code")
    assert taken[0]["fields"].get("at") == passed


def test_the_real_command_prints_only_the_answer(typed: Callable[..., Any], home: Path) -> None:
    """As an agent runs it: the answer on standard output, nothing on standard error, and 0; settings may come first."""
    with standing_in(home, lambda _: INJECTED) as taken:
        ended = [
            typed(json.dumps(PROMPT).encode()),
            typed(json.dumps(PROMPT).encode(), "--team", "crew", "hook", "prompt:submit", "--agent=codex"),
        ]
    assert [(code, err) for code, _, err in ended] == [(0, b""), (0, b"")]
    assert all(json.loads(out)["hookSpecificOutput"]["additionalContext"] == "<memory-context>" for _, out, _ in ended)
    assert [one["client"]["given"] for one in taken] == [{}, {"team": "crew"}]
    assert [one["fields"]["agent"] for one in taken] == ["claude-code", "codex"]


@pytest.mark.parametrize(
    ("agent", "name", "key"),
    [
        ("claude-code", "SessionStart", "additionalContext"),
        ("claude-code", "PreToolUse", "additionalContext"),
        ("claude-code", "PostToolUseFailure", "additionalContext"),
        ("codex", "PreToolUse", "additionalContext"),
        ("codex", "PostToolUse", "additionalContext"),
        ("gemini-cli", "AfterTool", "additionalContext"),
        ("cursor", "sessionStart", "additional_context"),
        ("cursor", "postToolUse", "additional_context"),
    ],
)
def test_memories_come_where_an_agent_takes_them(run: Run, home: Path, agent: str, name: str, key: str) -> None:
    """At the start of a session and after a tool they stand where the agent's contract says."""
    more = {"tool_name": "Bash", "tool_response": "y", "tool_output": "y", "error": "y", "tool_input": {"command": "x"}}
    with standing_in(home, lambda _: INJECTED):
        said = json.loads(run(payload(agent, name, more), "--agent", agent))
    assert said.get("hookSpecificOutput", said)[key] == "<memory-context>"


def test_a_moment_decides_nothing_for_the_agent(run: Run, home: Path) -> None:
    """Before a tool runs the answer adds context alone: whether it may run stays with the agent and the person."""
    with standing_in(home, lambda _: INJECTED) as taken:
        said = json.loads(run(PLANNED, "PreToolUse", "--agent", "claude-code"))
    assert said == {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "<memory-context>"}}
    assert (taken[0]["path"], taken[0]["fields"]["input"]) == ("/v1/hooks/tool:pre", {"command": "git push --force"})


def test_a_moment_waits_for_no_daemon(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a daemon nothing is printed or kept, and none is started for it: it would come too late."""
    started = list[object]()
    monkeypatch.setattr(hook, "_start_daemon", started.append)
    began = time.monotonic()
    assert run(PLANNED, "PreToolUse", "--agent", "claude-code") == ""
    assert time.monotonic() - began < hook.LIMIT
    assert (started, list(home.iterdir()) if home.exists() else []) == ([], [])


@pytest.mark.parametrize("tool", ["Read", "Grep", "Task", "mcp__recollect__memory"])
def test_no_moment_is_asked_for_what_only_looks(run: Run, home: Path, tool: str) -> None:
    """A tool that runs no command and writes no file has no moment before it, nor has our own."""
    with standing_in(home, lambda _: INJECTED) as taken:
        assert run(PLANNED | {"tool_name": tool}, "PreToolUse", "--agent", "claude-code") == ""
    assert taken == []


@pytest.mark.parametrize(
    ("agent", "name", "late"),
    [
        ("gemini-cli", "AfterTool", True),
        ("cursor", "postToolUse", True),
        ("opencode", "PostToolUse", True),
        ("claude-code", "PostToolUse", None),
        ("codex", "PostToolUse", None),
    ],
)
def test_an_agent_that_takes_nothing_before_a_tool_takes_it_after(
    run: Run, home: Path, agent: str, name: str, late: bool | None
) -> None:
    """Where an agent's contract has no place for context before a tool, the event after it asks for that too."""
    more = {"tool_name": "Shell", "tool_input": {"command": "x"}, "tool_response": "y", "tool_output": "y"}
    with standing_in(home, lambda _: INJECTED) as taken:
        run(payload(agent, name, more), "--agent", agent)
    assert taken[0]["fields"].get("also_before") is late


def test_the_end_of_a_turn_lets_the_agent_go_on(run: Run, home: Path) -> None:
    """What the daemon asks at the end of a turn goes to the agent; where it asks nothing, the turn ends."""
    stopped = payload("claude-code", "Stop", {"stop_hook_active": False, "last_assistant_message": "Done."})
    with standing_in(home, lambda _: http({"text": "<memory-ask>"})) as taken:
        assert json.loads(run(stopped)) == {"decision": "block", "reason": "<memory-ask>"}
    assert taken[0]["path"] == "/v1/hooks/turn:end"
    assert taken[0]["fields"] | {"agent": ""} == {
        **{"session_id": "abc123", "output": "Done.", "continued": False},
        "agent": "",
    }
    (home / "s").unlink()
    with standing_in(home, lambda _: http({"text": "", "taken": True})):
        assert run(stopped) == ""


@pytest.mark.parametrize("name", ["PreCompact", "SessionEnd"])
def test_other_events_say_nothing(run: Run, home: Path, name: str) -> None:
    """What takes no context is handed over and printed nothing of, whatever the daemon answers."""
    more = {"tool_name": "Bash", "tool_response": "y", "last_assistant_message": "Done."}
    with standing_in(home, lambda _: INJECTED) as taken:
        assert run(payload("claude-code", name, more)) == ""
    assert len(taken) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage",
        b"HTTP/1.1",
        b"HTTP/1.1 999 \r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\nnot JSON",
        b"HTTP/1.1 200 OK\r\n\r\n[1]",
        b'HTTP/1.1 200 OK\r\n\r\n{"text": 7}',
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 200_000,
        b"\xff\xfe" * 1_000,
        http({"text": "wrong"}, "500 Internal Server Error"),
        http({"error": "InvalidInput", "message": "no"}, "422 Unprocessable Entity"),
        http({}),
    ],
    ids=range(12),
)
def test_a_daemon_that_answers_garbage(typed: Callable[..., Any], home: Path, answer: bytes) -> None:
    """Whatever comes back, the command ends with 0 and says nothing."""
    with standing_in(home, lambda _: answer):
        assert typed(json.dumps(PROMPT).encode()) == (0, b"", b"")


def test_a_daemon_that_hangs(run: Run, home: Path, delivering: list[Callable[[bytes, float], bool]]) -> None:
    """One that does not answer in time is given up, and gets the event again later, under the same id."""

    def hang(_: dict[str, Any]) -> bytes:
        time.sleep(0.6)
        return INJECTED

    with standing_in(home, hang) as taken:
        assert run(PROMPT, seconds=0.2) == ""
    (home / "s").unlink()
    with standing_in(home, lambda _: http({"taken": True})) as again:
        hook_spool.deliver_kept(str(home), delivering[0])
    assert [one["id"] for one in taken] == [one["id"] for one in again] != [""]


def test_a_process_that_stands_still_keeps_its_event(home: Path) -> None:
    """Where the machine holds the process up until its end is near, its event is delivered later."""
    code = """
import sys, time
from recollect.doors import hook, hook_spool
hook._post_event = lambda *_: time.sleep(60)
hook_spool.deliver_later = lambda *_: {}
hook.main(["UserPromptSubmit"], {})
"""
    environment = {**os.environ, "RECOLLECT_HOME": str(home), "RECOLLECT_DAEMON": "1"}
    subprocess.run([sys.executable, "-c", code], input=json.dumps(PROMPT).encode(), env=environment, check=True)
    [kept] = (home / "hook-events").glob("*.json")
    assert json.loads(kept.read_bytes())["fields"]["prompt"] == PROMPT["prompt"]


def test_the_process_ends_beside_a_daemon_that_hangs(typed: Callable[..., Any], home: Path) -> None:
    """The whole command ends by itself, with 0 and in silence, and starts no other daemon."""

    def hang(_: dict[str, Any]) -> bytes:
        time.sleep(2)
        return INJECTED

    with standing_in(home, hang) as taken:
        assert typed(json.dumps(PROMPT).encode()) == (0, b"", b"")
    assert len(taken) == 1


def test_standard_input_that_does_not_end() -> None:
    """An agent that never closes standard input keeps the process no longer than its limit."""
    with subprocess.Popen([EXECUTABLE, "hook", "UserPromptSubmit"], stdin=subprocess.PIPE) as hanging:
        assert hanging.wait() == 0


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\x00\xff\xfe\x80 binary",
        b"\xed\xa0\x80",
        b'{"session_id": "s", "hook_event_name": ["a"], "prompt": {}}',
        b'{"session_id": 7, "hook_event_name": "UserPromptSubmit", "prompt": "x"}',
        b'{"session_id": "s", "hook_event_name": "UserPromptSubmit"}',
        b'{"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": ["x"]}',
        b'{"session_id": "s", "hook_event_name": "Nonsense", "prompt": "x"}',
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"session_id": "s", "prompt": 1' + b"0" * 5_000 + b"}",
    ],
    ids=range(15),
)
def test_hostile_input_is_met_with_silence(typed: Callable[..., Any], home: Path, said: bytes) -> None:
    """No JSON, the wrong types, deep nesting: 0, not a word, and the daemon hears nothing."""
    with standing_in(home, lambda _: INJECTED) as taken:
        assert typed(said) == (0, b"", b"")
    assert taken == []


def test_huge_input_is_read_to_its_end_and_dropped(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than any payload has is not kept, and whoever writes it meets no closed pipe."""
    monkeypatch.setattr(hook, "_LARGEST", 1_000)
    reading, writing = os.pipe()
    monkeypatch.setattr(os, "read", lambda _, size, read=os.read: read(reading, size))
    os.write(writing, b"x" * 5_000)
    os.close(writing)
    assert hook._read_payload() is None
    assert os.read(0, 1) == b""


def test_surrogates_reach_the_daemon_as_question_marks(run: Run, home: Path) -> None:
    """A prompt with half a character is answered like any other."""
    with standing_in(home, lambda _: INJECTED) as taken:
        assert run(rb'{"session_id": "s\ud800", "hook_event_name": "UserPromptSubmit", "prompt": "a \udfff b"}')
    assert taken[0]["fields"] | {"agent": ""} == {"session_id": "s?", "prompt": "a ? b", "agent": ""}


def test_without_a_daemon_one_is_started(run: Run, home: Path, started: list[dict[str, str]]) -> None:
    """Each event starts one: a start waits longest for it, since it comes once, and a tool the least."""
    waited = []
    for said, given in ((START, {}), (USED, {"team": "crew"})):
        began = time.monotonic()
        assert run(said, **given) == ""
        waited.append(time.monotonic() - began)
    assert 2.0 < waited[0] < 3.0 + hook.START_LIMIT
    assert waited[1] < 1.5
    assert run(PROMPT, seconds=0.2) == ""
    assert started == [{}, {"team": "crew"}, {}]


@pytest.mark.parametrize(("said", "seconds"), [(PROMPT, 0.0), (START, 1.3)], ids=["a prompt", "a start"])
def test_a_daemon_that_comes_up_meanwhile_answers(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], seconds: float
) -> None:
    """A prompt that waits for the daemon is answered, and the start of a session also if that takes two seconds."""
    asked: list[int] = []
    with standing_in(home, lambda _: INJECTED):
        (home / "daemon.json").rename(home / "later.json")

        def start(_: object) -> None:
            asked.append(1)
            threading.Timer(seconds, lambda: (home / "later.json").rename(home / "daemon.json")).start()

        monkeypatch.setattr(hook, "_start_daemon", start)
        monkeypatch.setattr(light, "is_busy", lambda _: bool(asked))
        assert "<memory-context>" in run(said)
    assert asked == [1]


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (["SessionStart", "--agent", "claude-code"], True),
        (["sessionStart"], True),
        (["session:start"], True),
        (["--agent=codex", "SessionStart"], True),
        (["UserPromptSubmit"], False),
        (["SessionEnd", "--agent", "claude-code"], False),
        ([], False),
    ],
)
def test_a_command_for_a_start_has_more_time(words: list[str], starts: bool) -> None:
    """The name of the event says it before anything is read, and agents wait longer than the command may take."""
    assert hook._is_session_start(words) is starts
    agents_wait = 3.0  # seconds, as `agents.toml` and opencode's program say
    assert agents_wait > hook.START_LIMIT + hook._END + 0.25


def test_a_runtime_file_of_before(run: Run, home: Path, started: list[dict[str, str]]) -> None:
    """Where nobody listens any more, or another has the token, the daemon is started and nothing goes elsewhere."""
    publish(home, home / "gone")
    assert run(PROMPT, seconds=0.2) == ""
    publish(home, home / "daemon.json")  # no socket
    assert run(USED, seconds=0.2) == ""
    assert len(started) == 2
    for status in ("401 Unauthorized", "404 Not Found"):
        (home / "s").unlink(missing_ok=True)
        with standing_in(home, lambda _, status=status: http({}, status)):  # type: ignore[misc]
            assert run(USED, seconds=0.2) == ""
    assert len(started) == 4


def test_a_port_counts_only_while_its_daemon_owns_the_store(
    run: Run, home: Path, started: list[dict[str, str]]
) -> None:
    """Another program may listen by now at the port of a daemon that has ended: it hears nothing."""
    publish(home, home / "s", socket="", port=9, pid=os.getpid())
    assert run(PROMPT, seconds=0.2) == ""
    assert started == [{}]
    assert not store_owner.owns(str(home), os.getpid())
    with owned(home) as pid:
        assert store_owner.owns(str(home), pid)
        assert not store_owner.owns(str(home), pid + 1)


@contextmanager
def owned(home: Path) -> Iterator[int]:
    """Let another process own the store of a data folder, and give its id."""
    program = (
        "import sys; from pathlib import Path; from recollect.store import store_lock\n"
        "owner = store_lock.own(Path(sys.argv[1])); print('mine', flush=True); sys.stdin.read()"
    )
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program, str(home)], **pipes) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "mine\n"
        yield owner.pid
        owner.communicate("")


def test_a_store_that_somebody_owns_or_a_start_under_way_needs_no_other(
    run: Run, home: Path, started: list[dict[str, str]]
) -> None:
    """While a process without a daemon owns the store, or one is being started, no hook starts another."""
    with owned(home):
        assert run(USED, seconds=0.2) == ""
    with FileLock(home / "starting.lock"):
        assert run(PROMPT, seconds=0.2) == ""
    assert started == []
    assert run(USED, seconds=0.2) == ""
    assert started == [{}]


@pytest.mark.parametrize("mode", [0o644, 0o620])
def test_a_runtime_file_that_others_may_touch(run: Run, home: Path, started: list[dict[str, str]], mode: int) -> None:
    """Somebody else may have written its token and address: nothing is sent there."""
    with standing_in(home, lambda _: INJECTED) as taken:
        (home / "daemon.json").chmod(mode)
        assert run(PROMPT, seconds=0.2) == ""
    assert taken == []


def test_a_runtime_file_of_another_user(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that belongs to somebody else is not trusted."""
    with standing_in(home, lambda _: INJECTED) as taken:
        monkeypatch.setattr(os, "getuid", lambda: 12_345)
        assert run(PROMPT, seconds=0.2) == ""
    assert taken == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"token": 7, "socket": "s"}', b'{"token": "t", "socket": 1}'])
def test_a_damaged_runtime_file(run: Run, home: Path, started: list[dict[str, str]], content: bytes) -> None:
    """A runtime file that says nothing is as good as none."""
    (home / "daemon.json").write_bytes(content)
    (home / "daemon.json").chmod(0o600)
    assert run(USED, seconds=0.2) == ""
    assert started == [{}]


def test_without_a_shared_daemon_nothing_happens(run: Run, started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the settings want no daemon, nobody is asked and none is started."""
    monkeypatch.setenv("RECOLLECT_DAEMON", "off")
    assert run(PROMPT) == ""
    assert started == []


def test_nothing_is_written_to_disk(typed: Callable[..., Any], home: Path) -> None:
    """Neither a log nor a cache is left of what was said."""
    with standing_in(home, lambda _: INJECTED):
        typed(json.dumps(PROMPT).encode())
        typed(json.dumps(USED).encode())
    assert sorted(one.name for one in home.iterdir()) == ["daemon.json", "s"]


def test_an_output_that_cannot_be_written(typed: Callable[..., Any], home: Path) -> None:
    """On a full disk, and with standard output closed, the command ends with 0 too."""
    with standing_in(home, lambda _: INJECTED), Path("/dev/full").open("wb") as full:
        command = [EXECUTABLE, "hook", "UserPromptSubmit"]
        environment = {**os.environ, "RECOLLECT_HOME": str(home), "RECOLLECT_DAEMON": "1"}
        said = json.dumps(PROMPT).encode()
        done = subprocess.run(command, input=said, stdout=full, stderr=subprocess.PIPE, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        closed = ["sh", "-c", f"exec {EXECUTABLE} hook UserPromptSubmit >&-"]
        done = subprocess.run(closed, input=said, stderr=subprocess.PIPE, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "words", [("hook",), ("hook", "--nonsense"), ("hook", "a", "b", "--agent"), ("--user", "a", "hook")]
)
def test_any_words_end_well(typed: Callable[..., Any], words: tuple[str, ...]) -> None:
    """A command line that nobody means stops no agent's work either."""
    assert typed(b"{}", *words) == (0, b"", b"")


def test_its_help_says_what_it_is(typed: Callable[..., Any]) -> None:
    """`--help` is answered by the whole command line, with our events."""
    code, out, _ = typed(b"", "hook", "--help")
    assert code == 0
    assert b"session:checkpoint" in out


def test_events_without_a_daemon_are_delivered_in_their_order(
    run: Run, home: Path, delivering: list[Callable[[bytes, float], bool]]
) -> None:
    """What finds no daemon is kept for its user alone, and once one is up it gets all, each once and marked as late."""
    said = [f"We deploy on day {number}" for number in range(3)]
    for prompt in said:
        assert run(PROMPT | {"prompt": prompt}, "UserPromptSubmit", seconds=0.1) == ""
    kept = sorted((home / "hook-events").glob("*.json"))
    assert [stat.S_IMODE(one.stat().st_mode) for one in (home / "hook-events", *kept)] == [0o700, *[0o600] * 3]
    with standing_in(home, lambda _: http({"taken": True})) as taken:
        assert run(PROMPT | {"prompt": "What now?"}, "UserPromptSubmit", seconds=0.1) == ""
        hook_spool.deliver_kept(str(home), delivering[0])
    assert [one["fields"]["prompt"] for one in taken] == [*said, "What now?"]
    assert all(one["late"] and one["fields"]["at"] for one in taken)
    assert (hook_spool.waits(str(home)), hook_spool.lost(str(home))) == (False, 0)


def test_events_that_nobody_takes_are_counted_and_deleted(
    run: Run, home: Path, delivering: list[Callable[[bytes, float], bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no daemon comes up in time, and where it refuses an event, nothing stays behind but how many were lost."""
    run(PROMPT, "UserPromptSubmit", seconds=0.1)
    assert hook_spool.PATIENCE >= launch._START_TIMEOUT  # as long as a daemon may take to start
    monkeypatch.setattr(hook_spool, "PATIENCE", 0.3)
    hook_spool.deliver_kept(str(home), delivering[0])
    assert (hook_spool.waits(str(home)), hook_spool.lost(str(home))) == (False, 1)
    run(PROMPT, "UserPromptSubmit", seconds=0.1)
    with standing_in(home, lambda _: http({}, "500 Internal Server Error")):
        hook_spool.deliver_kept(str(home), delivering[0])
    assert (hook_spool.waits(str(home)), hook_spool.lost(str(home))) == (False, 2)


@pytest.mark.usefixtures("delivering")
def test_one_process_delivers_a_burst(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one process delivers, another leaves at once; what comes to more than is kept is counted."""
    monkeypatch.setattr(hook_spool, "_MOST", 2)
    for _ in range(3):
        run(PROMPT, "UserPromptSubmit", seconds=0.1)
    assert hook_spool.lost(str(home)) == 1
    with FileLock(home / "hook-events" / "lock", is_singleton=False):
        hook_spool.deliver_kept(str(home), lambda *_: pytest.fail("two deliver at once"))
    assert len(list((home / "hook-events").glob("*.json"))) == 2
