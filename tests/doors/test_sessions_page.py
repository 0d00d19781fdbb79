"""docs/sessions.md tells the truth: its commands answer as it shows, one after another, on a session made here."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from places import DOCS
from recollect import App, Settings
from recollect.domain.lifecycle import Decision, Observation
from recollect.doors.agents.agents import agents
from recollect.doors.hook_contracts import CONTRACTS, PROMPT, START, TOOL
from recollect.sessions.boundaries import Boundary
from recollect.sessions.session_state import SessionState
from run_operations import add, do
from stores import open_app

pytestmark = pytest.mark.slow

PAGE = (DOCS / "sessions.md").read_text(encoding="utf-8")
BLOCK = "".join(re.findall(r"^```console\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
RUNS = "Backend tests need `docker compose --profile test up -d db-test` first."
NOTE = "CI runs on Node 22"


def seen(minute: int, decision: Decision, **fields: Any) -> Observation:
    """Return what became of the output of a tool."""
    when = AT + timedelta(minutes=minute)
    return Observation(at=when, event="tool:post", decision=decision, **{"tool": "Bash"} | fields)


def prepare(settings: Settings) -> None:
    """Leave the session of the page."""
    with open_app(settings) as app:
        kept = add(app, RUNS, source="hook")
        session = app.sessions.begin(ADA, "5b0c2f6e", "claude-code", AT)
        topic = Boundary(at=AT + timedelta(minutes=21), keywords=("node", "lock", "workflow"))
        changes = {"ended_at": AT + timedelta(minutes=40), "last_at": AT + timedelta(minutes=40)}
        state = SessionState(boundaries=(topic,)).model_dump(mode="json")
        draft = {"content": NOTE, "source": "hook"}
        app.sessions.save(
            session.model_copy(update=changes | {"state": state}),
            [
                seen(1, Decision.DROPPED, summary="ls -la", reason="a listing"),
                seen(4, Decision.KEPT, score=0.61, memory_id=kept, reason="it tells of a cause"),
                seen(21, Decision.DROPPED, score=0.20, summary=NOTE, reason="0.20 of 0.30", draft=draft),
            ],
        )


def test_its_commands_answer_as_shown(environment: dict[str, str], settings: Settings, tmp_path: Path) -> None:
    """Each command prints on a terminal of ninety columns what the page shows, blanks at the ends of lines aside."""
    prepare(settings)
    ours = environment | {"RECOLLECT_DAEMON": "0", "COLUMNS": "90", "TERM": "xterm", "NO_COLOR": "1"}
    ours |= {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}
    command = str(Path(sys.executable).with_name("recollect"))
    steps = re.split(r"^\$ ", BLOCK, flags=re.MULTILINE)[1:]
    assert len(steps) >= 4
    for step in steps:
        typed, _, shown = step.partition("\n")
        words = [command, *shlex.split(typed)[1:]]
        done = subprocess.run(words, env=ours, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert _plain(done.stdout) == _plain(shown), typed


def test_its_examples_are_kept_and_dropped_as_shown(app: App) -> None:
    """Each prompt on the page of formulas has the score that the page works out, and is kept from the threshold on."""
    formulas = " ".join((DOCS / "formulas.md").read_text(encoding="utf-8").split())
    examples = re.findall(r"\"([^\"]+)\" has [^\"]*? = ([\d.]+)\. It is (kept|dropped)", formulas)
    assert len(examples) == 2
    for number, (prompt, score, became) in enumerate(examples):
        do(app, "prompt_submit", session_id=str(number), prompt=prompt)
        (one,) = do(app, "show_session", session_id=str(number)).observations
        assert one.score == pytest.approx(float(score), abs=0.005), prompt
        assert one.decision == became, prompt


def _plain(text: str) -> list[str]:
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return [line.rstrip() for line in bare.strip().splitlines()]


def test_what_each_agent_supports_is_what_its_contract_says() -> None:
    """The table says of each agent where it takes a text: at a start, with a prompt, after a failure, at the end."""
    table = [line.strip("| ").split(" | ") for line in PAGE.partition("What each agent supports:")[2].splitlines()]
    head, *lines = [[cell.strip() for cell in one] for one in table if len(one) > 2]
    told = {row[0]: dict(zip(head, row[1:], strict=True)) for row in lines[:5]}
    titles = {agent.title: name for name, agent in agents().items()}
    assert {titles[one] for one in head} == CONTRACTS.keys()
    for title in head:
        contract = CONTRACTS[titles[title]]
        takes = {contract.rules[one].event for one in contract.injects}
        assert told["the index"][title] == ("yes" if START in takes else "no")
        assert told["memories with a prompt"][title] == ("yes" if PROMPT in takes else "no")
        assert (told["memories after a failure"][title] != "no") is (TOOL in takes)
        ends = "as a message" if contract.goes_on else "yes"
        assert told["the question at the end of a turn"][title].startswith(ends)
