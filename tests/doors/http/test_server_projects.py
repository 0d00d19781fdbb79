"""Projects of a team over HTTP: what a token may do in another project decides what is moved, named and shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from team_server import Talk, TeamServer

SAID = "The release train leaves on Tuesday mornings."
ASKED = {"query": "release train"}


@pytest.fixture
def crew(team: TeamServer) -> TeamServer:
    """Return a server with the private projects `vault`, in which Bob writes, and `yard`, in which Ada reads."""
    for project, user, role in (("vault", "bob", "writer"), ("yard", "ada", "reader")):
        team.administer("add_project", team="crew", project=project, private=True)
        team.administer("grant_project", team="crew", project=project, user=user, role=role)
    return team


def stored(talk: Talk, content: str, project: str, who: str) -> str:
    """Remember a text in a project, and return its id."""
    answer = talk.post("/v1/remember", {"content": content}, who=who, params={"project": project})
    return str(answer.json()["id"])


def contents(talk: Talk, project: str, who: str, **more: Any) -> list[str]:
    """Return what is listed in a project."""
    params = {"project": project} if project else {}
    found = talk.post("/v1/list_memories", more, who=who, params=params).json()["memories"]
    return sorted(one["content"] for one in found)


@pytest.mark.parametrize(
    ("project", "said"),
    [
        ("vault", "You have no role in the project `vault` of the team `crew`, or there is none."),
        ("yard", "You have no right to write to `project:crew/yard`: an admin of the team can give it."),
    ],
)
def test_nothing_moves_where_the_token_may_not_write(crew: TeamServer, talk: Talk, project: str, said: str) -> None:
    """A writer moves nothing into a project in which they may not write, and hears nothing of what is there."""
    mine = stored(talk, SAID, "engine", "ada")
    theirs = stored(talk, "The vault is under the quay.", "vault", "bob")
    for memory_id in (mine, theirs, "99"):
        refused = talk.post("/v1/move_memory", {"id": memory_id, "to_project": project})
        assert refused.status_code in (403, 404)
        assert "under the quay" not in refused.text
    refused = talk.post("/v1/move_memory", {"id": mine, "to_project": project})
    assert (refused.status_code, refused.json()["message"]) == (403, said)
    assert contents(talk, "engine", "ada") == [SAID]
    assert contents(talk, "vault", "bob") == ["The vault is under the quay."]
    assert contents(talk, "yard", "ada") == []


def test_a_reader_moves_and_marks_nothing(crew: TeamServer, talk: Talk) -> None:
    """Who reads in the team takes nothing out of a project into one of their own, and pins and buries nothing."""
    mine = stored(talk, SAID, "engine", "ada")
    for verb, more in (
        ("move_memory", {"to_project": "vault"}),
        ("promote", {}),
        ("promote", {"scope": "team"}),
        ("pin", {}),
        ("bury", {}),
    ):
        assert talk.post(f"/v1/{verb}", {"id": mine} | more, who="bob").status_code == 403, verb
    assert contents(talk, "engine", "ada") == [SAID]
    assert contents(talk, "vault", "bob") == []


def test_a_weak_token_moves_nothing_into_another_project(crew: TeamServer, talk: Talk) -> None:
    """A token that may only read does so in every project, whatever its user may."""
    mine = stored(talk, SAID, "engine", "ada")
    weak = talk.post("/v1/admin/add_token", {"role": "reader"}).json()["token"]
    for more in ({"to_project": "open"}, {"scope": "personal"}):
        assert talk.post("/v1/move_memory", {"id": mine} | more, who=weak).status_code == 403
    moved = talk.post("/v1/move_memory", {"id": mine, "to_project": "open"})
    assert moved.status_code == 200
    assert contents(talk, "open", "ada") == [SAID]


def test_only_projects_of_the_token_are_named_and_looked_into(crew: TeamServer, talk: Talk) -> None:
    """An empty answer names the projects that may be read, `everywhere` finds what is there, and no other is told."""
    stored(talk, SAID, "open", "ada")
    stored(talk, "The release train of the vault is late.", "vault", "bob")
    here = {
        name: talk.post(f"/v1/{name}", body).json()
        for name, body in (("recall", ASKED), ("recall_compact", ASKED), ("list_memories", {}), ("stats", {}))
    }
    for name, body in here.items():
        told = "Not in project engine, but in your other projects: 1 in open"
        assert body["notes"][0].startswith(told), name
        assert "vault" not in json.dumps(body), name
    assert contents(talk, "engine", "ada", everywhere=True) == [SAID]
    assert contents(talk, "", "bob", everywhere=True) == [SAID, "The release train of the vault is late."]
    assert talk.post("/v1/recall", ASKED, who="eve", params={}).json().get("notes", []) == []
    found = talk.post("/v1/recall", ASKED | {"everywhere": True}).json()["hits"]
    assert [one["memory"]["content"] for one in found] == [SAID]
