"""A team's walk: an admin invites two users, whose agents share a project by their tokens, until one is revoked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from command_line import Ended, execute
from recollect import Settings
from recollect.errors import Forbidden, InvalidInput, ServerUnreachable, Unauthorized
from stdio_client import environment_of, talking
from stores import lay
from team_process import Asking, TeamProcess, serving_team


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[TeamProcess]:
    """Return the server of a team that has no users yet."""
    folder = tmp_path_factory.mktemp("team")
    lay(migrated, folder / "home")
    with serving_team(folder / "home", folder / "log") as process:
        yield process


@pytest.fixture(scope="module")
def root(server: TeamProcess) -> str:
    """Return the token of the first admin."""
    token = server.init()
    server.start()
    return token


class Person:
    """Somebody with a token, on a machine of their own that has no store."""

    def __init__(self, server: TeamProcess, token: str, home: Path) -> None:
        self.environment = environment_of(home, DAEMON="1", URL=server.url, TOKEN=token, USER="nobody")
        self.home = home

    def types(self, *words: str) -> Ended:
        """Type a command."""
        return execute(words, self.environment, Path.cwd())

    @property
    def settings(self) -> Settings:
        """Return the settings of a program of theirs."""
        names = ("url", "token", "home", "team", "project")
        return Settings(**{name: self.environment[f"RECOLLECT_{name.upper()}"] for name in names})


def test_a_team_shares_and_keeps_apart(server: TeamProcess, root: str, tmp_path: Path) -> None:
    """What is a project's is shared, what is personal is not, a reader does not write, and a revoked token ends."""
    admin = Person(server, root, tmp_path / "root")
    assert admin.types("team", "add", "crew").code == 0
    people = {}
    for name, role in (("ada", "writer"), ("bob", "writer")):
        invited = admin.types("user", "add", name, "--team", "crew", "--role", role)
        guest = Person(server, invited.out.strip(), tmp_path / name)
        accepted = guest.types("token", "accept", "--label", f"{name}'s laptop")
        people[name] = Person(server, accepted.out.strip(), tmp_path / name)
    ada, bob = people["ada"], people["bob"]
    with talking(ada.environment) as hers, talking(bob.environment) as his:
        shared = hers.remember("The harbour service is deployed on Fridays", scope="project")
        hers.remember("The quokka of Ada drinks tea", scope="personal")
        assert [one["id"] for one in his.recall("when is the harbour deployed")] == [shared]
        assert his.recall("quokka tea", scope="personal") == []
        assert "quokka" not in str(his.call(action="recall", query="quokka tea").content)
        [token] = [one for one in bob.types("token", "list", "--json").json["tokens"] if not one.get("invitation")]
        assert token["label"] == "bob's laptop"
        assert admin.types("token", "revoke", token["prefix"]).code == 0
        assert "Invalid token" in his.refused(action="recall", query="harbour")
        assert hers.recall("harbour deployed")
    assert bob.types("list").code == Unauthorized.exit_code
    assert "quokka" not in admin.types("recall", "quokka", "tea", "--min-score", "0").out
    lines = admin.types("audit", "--json").json["lines"]
    told = {(one["actor"], one["namespace"], one["action"]) for one in lines}
    assert {
        ("root", "accounts", "add_user"),
        ("ada", "accounts", "add_token"),
        ("ada", "project:crew/engine", "insert"),
        ("root", "accounts", "revoke_token"),
    } <= told
    assert not any(one["namespace"].startswith("user:") for one in lines)
    assert re.search(r"rec_\w{8}_", server.log()) is None
    assert "quokka" not in server.log()
    assert not (ada.home / "memory.db").exists()


def test_a_program_asks_the_server(server: TeamProcess, root: str, tmp_path: Path) -> None:
    """`connect` and the command line run operations on the server; what looks after a store says where it runs."""
    person = Person(server, root, tmp_path / "root")
    alone = person.settings.model_copy(update={"team": "local"})
    with recollect.connect(Settings(url=server.url, token=root, home=alone.home, project="engine")) as link:
        stored = link.perform("remember", content="The admin prefers coffee", scope="personal")
        assert link.perform("get_memory", id=stored.id).author == "root"
        with pytest.raises(Forbidden):
            link.perform("remember", content="Nobody's", scope="team")
    del person.environment["RECOLLECT_TOKEN"]
    without = person.types("list")
    assert (without.code, "RECOLLECT_TOKEN" in without.err) == (Unauthorized.exit_code, True)
    done = person.types("reindex")
    assert (done.code, "RECOLLECT_URL" in done.err) == (InvalidInput.exit_code, True)


def test_what_is_wrong_with_a_server_is_told(tmp_path: Path) -> None:
    """A server that cannot be reached and an address in the clear are one sentence each."""
    theirs = environment_of(tmp_path, URL="http://127.0.0.1:9", TOKEN="rec_x")
    gone = execute(["list"], theirs, tmp_path)
    assert (gone.code, "cannot be reached" in gone.err) == (ServerUnreachable.exit_code, True)
    clear = execute(["list"], theirs | {"RECOLLECT_URL": "http://memory.example"}, tmp_path)
    assert (clear.code, "https://" in clear.err) == (InvalidInput.exit_code, True)


@pytest.mark.full
def test_a_graceful_end_loses_nothing(tmp_path: Path, migrated: Path) -> None:
    """What was acknowledged before the server was told to end is there when it starts again, and it ends with 0."""
    lay(migrated, tmp_path / "home")
    with serving_team(tmp_path / "home", tmp_path / "log") as process:
        ask = Asking(process.url, process.init())
        process.start()
        ids = [ask("remember", content=f"The pier has {number} lamps", scope="personal")["id"] for number in range(3)]
        assert process.stop() == 0
        process.start()
        assert [one["id"] for one in ask("list_memories", scope="personal")["memories"]] == list(reversed(ids))
