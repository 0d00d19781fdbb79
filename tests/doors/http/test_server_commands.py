"""Every operation and every command through `RECOLLECT_URL`, against a server that listens on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import recollect
from command_line import Ended, call
from every_operation import REQUESTS
from recollect import Settings
from recollect.domain.verbs import BY_NAME
from recollect.doors.cli.main import whole
from team_server import TeamServer, listening

pytestmark = pytest.mark.slow

COMMANDS: dict[str, tuple[str, ...]] = {
    "remember": ("The harbour is deployed on Fridays", "--tag", "ship"),
    "recall": ("harbour", "--min-score", "0"),
    "list": (),
    "timeline": (),
    "by-file": ("src/ship.py",),
    "by-concept": ("gotcha",),
    "similar": ("The harbour is deployed", "--threshold", "-1"),
    "prompt": ("harbour",),
    "update": ("2", "--title", "Harbour"),
    "show": ("2",),
    "undo": ("2",),
    "edit": ("2",),
    "fact": ("harbour", "is", "deep"),
    "facts": (),
    "stats": (),
    "summarize": (),
    "rescan": (),
    "inbox": (),
    "withdraw": ("--source", "docs.example.com"),
    "tags": (),
    "session list": (),
    "session show": ("s1",),
    "session keep": ("s1", "1"),
    "session drop": ("s1", "1"),
    "export": ("notes.jsonl",),
    "import": ("notes.jsonl",),
    "extract": ("talk.jsonl",),
    "tag": ("2", "ops"),
    "pin": ("2",),
    "unpin": ("2",),
    "bury": ("2",),
    "unbury": ("2",),
    "promote": ("2",),
    "move": ("3", "--to", "mast"),
    "settings": (),
    "filters": (),
    "forget": ("2",),
    "purge": (),
    "doctor": (),
    "status": (),
    "team add": ("dock",),
    "team list": (),
    "team grant": ("dock", "eve", "--role", "writer"),
    "project set": ("engine",),
    "project add": ("dock", "hull"),
    "project list": (),
    "project registered": (),
    "project move": ("mast",),
    "project rename": ("hull", "--json"),
    "project grant": ("dock", "hull", "eve", "--role", "reader"),
    "project revoke": ("dock", "hull", "eve"),
    "team revoke": ("dock", "eve"),
    "user add": ("zoe",),
    "user invite": ("zoe",),
    "user list": (),
    "user disable": ("zoe",),
    "user enable": ("zoe",),
    "user link": ("zoe", "https://login.example.com", "7f2c"),
    "token add": ("--label", "laptop"),
    "token accept": (),
    "token list": (),
    "token revoke": ("{prefix}",),
    "audit export": ("--to", "audit.jsonl"),
    "audit verify": ("audit.jsonl",),
    "limit set": ("team", "dock", "--projects", "9"),
    "limit list": (),
    "limits": (),
    "limit clear": ("team", "dock"),
    "hold set": ("case-7", "--team", "crew", "--reason", "litigation"),
    "hold list": (),
    "hold release": ("case-7",),
    "retention set": ("dock", "365", "--yes"),
    "retention list": (),
    "retention drop": ("dock",),
    "me export": ("mine.jsonl",),
    "user export": ("zoe", "zoe.jsonl"),
    "user delete": ("zoe", "--erase", "--yes"),
    "user receipt": ("zoe",),
    "install": ("claude-code", "--print"),
    "uninstall": ("claude-code", "--dry-run"),
    "backup verify": ("backup.db",),
    "restore": ("backup.db",),
}
"""What each command is typed with, in an order in which each has something to answer with."""
TALK = {
    "type": "user",
    "uuid": "u1",
    "parentUuid": None,
    "sessionId": "s2",
    "timestamp": "2026-01-02T03:04:05Z",
    "message": {"role": "user", "content": "The pier is long."},
}
LOCAL: dict[str, tuple[str, ...]] = {
    "reindex": (),
    "start": (),
    "stop": (),
    "serve": (),
    "backup create": ("backup.db",),
    "backup drill": (),
    "backup restore": ("backup.db",),
    "migrate-store": ("--to", "server"),
    "init": (),
}
"""Commands that look after a store, and so run where it is."""
CODES = {"token accept": 11, "edit": 2, "session keep": 4, "session drop": 4, "backup verify": 2, "restore": 2}
"""Commands that end otherwise than with 0: without an invitation, an editor, an observation, or a backup."""
ELSEWHERE = {
    "mcp": "test_team_walk.py",
    "hook": "test_hook_remote.py",
    "page": "test_page_command.py",
    "login": "test_provider_sign_in.py",
    "logout": "test_provider_sign_in.py",
}
"""Commands that need an agent, a browser or an identity provider, and the tests that have these."""


@dataclass
class Client:
    """A machine without a store, whose commands ask the server as its first admin, who administers the team too."""

    url: str
    team: TeamServer
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("RECOLLECT_")}
        ours = {"URL": self.url, "TOKEN": self.team.tokens["root"], "HOME": str(self.folder / "none")}
        ours |= {"PROJECT": "engine", "TEAM": "crew"}
        return kept | {f"RECOLLECT_{name}": text for name, text in ours.items()} | {"HOME": str(self.folder)}

    def connected(self, project: str = "engine") -> Any:
        """Return a connection of a program that works in a project."""
        token = self.team.tokens["root"]
        return recollect.connect(Settings(url=self.url, token=token, home=self.folder, project=project))

    def types(self, command: str, *words: str) -> Ended:
        """Type a command."""
        return call([*command.split(), *words], self.environment, self.folder)


@pytest.fixture
def client(team: TeamServer, tmp_path: Path) -> Iterator[Client]:
    """Return a client of a server that listens."""
    team.administer("grant_team", team="crew", user="root", role="admin")
    with listening(team) as served:
        yield Client(served.url, team, tmp_path)


def every(command: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the words of each command of the command line."""
    for name, one in getattr(command, "commands", {}).items():
        yield from every(one, (*words, name))
    if not hasattr(command, "commands"):
        yield " ".join(words)


def test_every_operation_answers_a_client_of_the_server(client: Client) -> None:
    """Each operation of the table comes back over the wire as the type that it declares."""
    assert {name for name, _ in REQUESTS} == BY_NAME.keys()
    with client.connected() as link:
        for name, fields in REQUESTS:
            found = link.perform(name, **fields)
            assert (found is None) == (BY_NAME[name].answer is type(None)), name


def test_every_command_answers_a_client_of_the_server(client: Client) -> None:
    """Each command of the command line does on the server what it is for; one without a sample fails this test."""
    known = set(every(whole()))
    assert known == {*COMMANDS, *LOCAL, *ELSEWHERE}
    (client.folder / "talk.jsonl").write_text(json.dumps(TALK))
    with client.connected() as link:
        link.perform("session_start", session_id="s1", agent="claude-code", source="startup")
    with client.connected("mast") as link:
        link.perform("remember", content="The mast is pine.")
    prefix = client.team.tokens["bob"].split("_")[1]
    odd = {}
    for command, words in COMMANDS.items():
        ended = client.types(command, *[one.format(prefix=prefix) for one in words])
        if ended.code != CODES.get(command, 0):
            odd[command] = (ended.code, ended.err or ended.out)
    assert odd == {}


@pytest.mark.parametrize("command", LOCAL)
def test_a_command_that_looks_after_a_store_says_where_it_runs(command: str, tmp_path: Path) -> None:
    """With `RECOLLECT_URL` it touches no store of this machine, and its one sentence names the variable."""
    theirs = {"RECOLLECT_URL": "http://127.0.0.1:9", "RECOLLECT_HOME": str(tmp_path / "none"), "HOME": str(tmp_path)}
    ended = call([*command.split(), *LOCAL[command]], theirs, tmp_path)
    assert (ended.code, "RECOLLECT_URL" in ended.err) == (recollect.errors.InvalidInput.exit_code, True), ended.err
    assert not (tmp_path / "none").exists()
