"""Roles: what a principal may read and write in each scope, held against a table of its own."""

from __future__ import annotations

from itertools import product

import pytest

from recollect.auth.principal import Principal
from recollect.domain.enums import Role, Scope
from recollect.errors import Forbidden, InvalidInput

ROLES = (None, *Role)
ORDER = {None: 0, Role.READER: 1, Role.WRITER: 2, Role.ADMIN: 3}


def _principal(in_team: Role | None, in_project: Role | None, cap: Role, *, private: bool) -> Principal:
    return Principal(
        user="ada",
        admin=True,  # which gives no right to any memory
        cap=cap,
        teams={"crew": in_team} if in_team else {},
        projects={("crew", "engine"): in_project} if in_project else {},
        private=frozenset({("crew", "engine")}) if private else frozenset(),
    )


@pytest.mark.parametrize(("in_team", "in_project", "cap", "private"), [*product(ROLES, ROLES, Role, (False, True))])
def test_rights_follow_roles(in_team: Role | None, in_project: Role | None, cap: Role, private: bool) -> None:
    """The role in a project counts before that in the team, a private project needs one, and a token only lessens."""
    who = _principal(in_team, in_project, cap, private=private)
    there = in_project or (None if private else in_team)
    if there is None:
        with pytest.raises(Forbidden, match=r"You have no role in the (project|team)"):
            who.caller("crew", "engine")
        return
    caller = who.caller("crew", "engine")
    wanted = {Scope.PERSONAL: Role.WRITER, Scope.TEAM: in_team, Scope.PROJECT: there}
    assert set(caller.reads) == {scope for scope, role in wanted.items() if role is not None}
    writes = {scope for scope, role in wanted.items() if min(ORDER[role], ORDER[cap]) >= ORDER[Role.WRITER]}
    assert set(caller.writes) == writes
    assert (caller.user, caller.team, caller.project) == ("ada", "crew", "engine")


@pytest.mark.parametrize(("in_team", "cap", "admin"), [*product(ROLES, Role, (False, True))])
def test_who_administers(in_team: Role | None, cap: Role, admin: bool) -> None:
    """An admin of the deployment administers every team, an admin of a team that one, and only by a whole token."""
    who = Principal(user="ada", admin=admin, cap=cap, teams={"crew": in_team} if in_team else {})
    whole = cap is Role.ADMIN
    assert who.administers() is (admin and whole)
    assert who.administers("crew") is (whole and (admin or in_team is Role.ADMIN))
    assert who.administers("other") is (admin and whole)


def test_a_team_that_is_not_named_is_the_only_one() -> None:
    """Without a team a request is of the user's only one; with two it sees no team, and must name one for a project."""
    one = Principal(user="ada", teams={"crew": Role.WRITER})
    assert one.caller(project="engine").namespaces() == ("user:ada", "project:crew/engine", "team:crew")
    two = Principal(user="ada", teams={"crew": Role.WRITER, "dock": Role.WRITER})
    assert two.caller().namespaces() == ("user:ada",)
    with pytest.raises(InvalidInput, match="Missing team"):
        two.caller(project="engine")


def test_a_guest_sees_the_project_alone() -> None:
    """A role in a project without one in its team opens the project, and nothing of the team."""
    guest = Principal(user="eve", projects={("crew", "engine"): Role.READER})
    caller = guest.caller("crew", "engine")
    assert (caller.reads, caller.writes) == ((Scope.PERSONAL, Scope.PROJECT), (Scope.PERSONAL,))
    with pytest.raises(Forbidden):
        guest.caller("crew", "hull")


def test_what_exists_is_not_told() -> None:
    """A team or project that exists is refused in the same words as one that does not."""
    who = Principal(user="ada", teams={"crew": Role.ADMIN}, private=frozenset({("crew", "engine")}))
    said = []
    for team, project in (("crew", "engine"), ("dock", "pier")):
        with pytest.raises(Forbidden) as error:
            who.caller(team, project)
        said.append(str(error.value).replace(team, "T").replace(project, "P"))
    assert "there is none" in said[0]
    assert "there is none" in said[1]


@pytest.mark.parametrize("who", [Principal(user="ada", invitation=True), Principal(user="root", operator=True)])
def test_who_is_no_user_reads_no_memories(who: Principal) -> None:
    """Neither an invitation nor the operator of the machine becomes a caller."""
    with pytest.raises(Forbidden):
        who.caller()


@pytest.mark.parametrize(("in_team", "in_project", "cap", "private"), [*product(ROLES, ROLES, Role, (False, True))])
def test_rights_elsewhere_are_those_there(
    in_team: Role | None, in_project: Role | None, cap: Role, private: bool
) -> None:
    """What a caller may do in another project is what they might do if their request named that one."""
    who = _principal(in_team, in_project, cap, private=private)
    if not who.known_teams:
        assert who.caller().elsewhere.role_in("engine") is None
        return
    here = who.caller("crew", "hull" if in_team else "")
    if not (in_project or (in_team and not private)):
        for ask in (lambda: who.caller("crew", "engine"), lambda: here.in_project("engine")):
            with pytest.raises(
                Forbidden, match="You have no role in the project `engine` of the team `crew`, or there"
            ):
                ask()
        return
    there, moved = who.caller("crew", "engine"), here.in_project("engine")
    assert (moved.project, moved.reads, moved.writes) == (there.project, there.reads, there.writes)
