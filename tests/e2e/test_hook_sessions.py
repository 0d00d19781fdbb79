"""A coding agent's session, hook by hook as separate processes, with a real daemon behind them."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from daemon_place import SERVER, Place, until


def hook(place: Place, name: str, **fields: Any) -> str:
    """Run a hook as Claude Code does, check that it ends well and without a word of error, and return its answer."""
    said = {"session_id": "live-1", "cwd": str(place.folder), "hook_event_name": name} | fields
    command = [SERVER, "hook", name, "--agent", "claude-code"]
    done = subprocess.run(
        command, input=json.dumps(said), capture_output=True, text=True, env=place.environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def sessions(place: Place) -> list[Any]:
    """Return the sessions that the store knows: id, agent, and whether each has ended."""
    return place.rows("select session_id, agent, ended_at is not null from session order by id")


def test_the_first_hook_starts_the_daemon(place: Place) -> None:
    """No hook waits for the start; once the daemon is there, the next ones reach it, and the session ends in order."""
    assert hook(place, "SessionStart", source="startup") == ""
    until(place.runtime_file.exists)
    assert len(place.daemons()) == 1
    hook(place, "UserPromptSubmit", prompt="We ship on Fridays. When do we ship?")
    hook(place, "PostToolUse", tool_name="Bash", tool_input={"command": "make"}, tool_response={"stdout": "ok"})
    hook(place, "SessionEnd", reason="other")
    until(lambda: sessions(place) == [("live-1", "claude-code", 1)])
    until(lambda: place.json("status")["events_waiting"] == 0)
    assert place.json("status")["events_lost"] == 0


def test_a_stop_works_off_what_was_taken(place: Place) -> None:
    """Events that the daemon has taken are done when it has ended in order."""
    place.pid()
    for number in range(20):
        hook(place, "SessionStart", session_id=f"s{number}", source="startup")
    place.cli("stop")
    assert [one for one, *_ in sessions(place)] == [f"s{number}" for number in range(20)]


def test_status_tells_what_waits_and_what_was_lost(place: Place) -> None:
    """A person reads how many events of sessions wait in the daemon, and how many it lost."""
    place.pid()
    assert "0 events wait, 0 were lost" in place.cli("status")


def test_an_answered_prompt_and_a_queue_beside_it(place: Place) -> None:
    """A prompt is answered in JSON or not at all, whoever else is working on the same session."""
    place.remember("We ship on Fridays, because the support team is at work then")
    running = [
        subprocess.Popen(
            [SERVER, "hook", "PostToolUse"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=place.environment,
        )
        for _ in range(4)
    ]
    for number, one in enumerate(running):
        said = {"session_id": "live-1", "tool_name": "Bash", "tool_response": f"line {number}"}
        one.communicate(json.dumps(said).encode())
    answer = hook(place, "UserPromptSubmit", prompt="When do we ship, and why?")
    assert not answer or set(json.loads(answer)) == {"hookSpecificOutput"}
    until(lambda: place.json("status")["events_waiting"] == 0)
    assert [one.returncode for one in running] == [0] * 4
