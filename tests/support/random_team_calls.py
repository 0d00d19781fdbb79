"""Random calls of a team by its tokens, over REST and MCP, and an independent model of who has which rights.

Users, teams, roles, projects and tokens change between the calls. The model knows none of the code that it judges: it
keeps its own tables of roles, and what a call may see and change follows from them and from the rows.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from clock import Clock
from random_calls import Maker, Model, Places, RandomCall, state_of
from recollect import App, Caller, Settings
from recollect.auth.administration import administer, initialize
from recollect.auth.authenticate import authenticate
from recollect.client.connection import from_wire
from recollect.domain.verbs import BY_NAME
from recollect.doors.http.application import Application
from recollect.doors.http.team import TeamAccess
from recollect.doors.memory_tool import ToolAnswer
from recollect.doors.toolset_names import SETS

USERS = ("ada", "bob", "eve", "rita")
TEAMS = ("crew", "dock")
PROJECTS = ("engine", "hull", "vault")
ROLES = ("reader", "writer", "admin")
BEGUN = (("ada", "crew", "writer"), ("bob", "crew", "admin"), ("bob", "dock", "writer"), ("eve", "crew", "reader"))
ORDER = {None: 0, "reader": 1, "writer": 2, "admin": 3}
BOTH = {"Accept": "application/json, text/event-stream"}


class Refused(Exception):
    """A sentence that a request was answered with in place of what it asked for."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Held:
    """A token and what the model knows of it."""

    text: str
    prefix: str
    user: str
    cap: str | None = None
    valid: bool = True


@dataclass
class Rules:
    """Who has which role, by tables of its own."""

    admins: set[str] = field(default_factory=lambda: {"root"})
    teams: dict[tuple[str, str], str] = field(default_factory=dict)
    projects: dict[tuple[str, str, str], str] = field(default_factory=dict)
    private: dict[tuple[str, str], bool] = field(default_factory=dict)

    def rights(self, held: Held, team: str, project: str) -> tuple[str, Places, Places] | int:
        """Return the team, and where a request may read and write; or with which status it is refused."""
        if not held.valid:
            return 401
        mine = {name: role for (user, name), role in self.teams.items() if user == held.user}
        ours = {(name, one): role for (user, name, one), role in self.projects.items() if user == held.user}
        known = sorted({*mine, *(name for name, _ in ours)})
        if team and team not in known:
            return 403
        if not team and len(known) != 1:
            if known and project:
                return 422
            project = ""
        team = team or (known[0] if len(known) == 1 else "")
        roles = {"personal": "writer", "team": mine.get(team)}
        if project:
            secluded = self.private.get((team, project), False)
            roles["project"] = ours.get((team, project)) or (None if secluded else mine.get(team))
            if roles["project"] is None:
                return 403
        names = {"personal": f"user:{held.user}", "team": f"team:{team}", "project": f"project:{team}/{project}"}
        reads = {scope: names[scope] for scope, role in roles.items() if role}
        most = ORDER[held.cap or "admin"]
        writes = {scope: names[scope] for scope, role in roles.items() if min(ORDER[role], most) >= ORDER["writer"]}
        return team, reads, writes

    def reaches(self, held: Held, team: str, namespace: str, writes: bool) -> bool:
        """Say whether a token may read, or write, in the project of a team that has this namespace."""
        prefix = f"project:{team}/"
        if not held.valid or not namespace.startswith(prefix):
            return False
        project = namespace.removeprefix(prefix)
        role = self.projects.get((held.user, team, project))
        if role is None and not self.private.get((team, project), False):
            role = self.teams.get((held.user, team))
        may = min(ORDER[role], ORDER[held.cap or "admin"])
        return may >= ORDER["writer" if writes else "reader"]

    def administers(self, held: Held, team: str = "") -> bool:
        """Say whether a token administers a team, or without one the deployment."""
        if not held.valid or held.cap not in (None, "admin"):
            return False
        return held.user in self.admins or (bool(team) and self.teams.get((held.user, team)) == "admin")


class Deployment:
    """A server over a store, with users who have no roles yet, and the model's tables beside it."""

    def __init__(self, app: App, settings: Settings, chance: random.Random) -> None:
        self._app = app
        self._chance = chance
        self.rules = Rules()
        self.application = Application(TeamAccess(app, settings))
        first = initialize(app, "root", "root")
        self.root = Held(first.token, first.prefix, "root")
        self.tokens = [self.root]
        self.odd: list[str] = []
        for team in TEAMS:
            self._administer("add_team", team=team)
        for user in USERS:
            invited = self._administer("add_user", user=user)
            made = administer(app, "accept_invitation", {"days": 0}, authenticate(app, invited.token))
            self.tokens.append(Held(made.token, made.prefix, user))
        for user, team, role in BEGUN:
            self._administer("grant_team", team=team, user=user, role=role)
            self.rules.teams[user, team] = role

    def _administer(self, name: str, **fields: Any) -> Any:
        return administer(self._app, name, fields, authenticate(self._app, self.root.text))

    def change(self, client: TestClient) -> None:
        """Let somebody change a role, a project or a token, and hold what becomes of it to the tables."""
        pick, rules = self._chance.choice, self.rules
        held, team, user, role = pick(self.tokens), pick(TEAMS), pick(USERS), pick(ROLES)
        project = pick(PROJECTS)
        held = self.root if self._chance.random() < 0.5 else held
        name = pick(
            ("grant_team", "grant_team", "revoke_team", "add_project", "grant_project", "add_token", "revoke_token")
        )
        if self._chance.random() < 0.3:
            self._ask_about_leaving(client, held, team, user)
        of = pick(self.tokens[1:])
        fields: dict[str, Any] = {
            "grant_team": {"team": team, "user": user, "role": role},
            "revoke_team": {"team": team, "user": user},
            "add_project": {"team": team, "project": project, "private": self._chance.random() < 0.6},
            "grant_project": {"team": team, "project": project, "user": user, "role": role},
            "add_token": {"role": pick((None, None, *ROLES)), "days": 0},
            "revoke_token": {"prefix": of.prefix},
        }[name]
        allowed = rules.administers(held, team)
        if name == "add_token":
            allowed = held.valid and held.cap in (None, "admin")
        elif name == "revoke_token":
            own = held is of or (held.user == of.user and held.cap in (None, "admin"))
            allowed = held.valid and (own or rules.administers(held))
        if name == "revoke_token" and self._chance.random() < 0.7:
            return  # so that some tokens live for a while
        answer = client.post(f"/v1/admin/{name}", json=fields, headers=_bearer(held))
        there = name != "grant_project" or (team, project) in rules.private
        if (answer.status_code == 200) is not (allowed and there):
            self.odd.append(f"{name} {fields} by {held.user} ({held.cap}) was answered {answer.status_code}")
        if answer.status_code == 200:
            self._note(name, fields, held, of, answer.json())

    def _ask_about_leaving(self, client: TestClient, held: Held, team: str, user: str) -> None:
        """Let somebody ask for what concerns leavers, and hold who is let in and what an export shows to the tables."""
        rules, whole = self.rules, self.rules.administers(held)
        asked: dict[str, dict[str, Any]] = {
            "export_user": {"user": user},
            "delete_user": {"user": user, "erase": True, "dry_run": True},
            "list_receipts": {},
            "set_retention": {"team": team, "days": 30, "dry_run": True},
            "list_holds": {},
        }
        allowed = {
            "export_user": held.valid and (whole or held.user == user),
            "delete_user": whole,
            "list_receipts": whole,
            "set_retention": rules.administers(held, team),
            "list_holds": held.valid,
        }
        name = self._chance.choice(list(asked))
        answer = client.post(f"/v1/admin/{name}", json=asked[name], headers=_bearer(held))
        if (answer.status_code == 200) is not allowed[name]:
            self.odd.append(f"{name} {asked[name]} by {held.user} ({held.cap}) was answered {answer.status_code}")
        if name == "export_user" and answer.status_code == 200:
            self._judge_export(client, held, user, answer.json())

    def _judge_export(self, client: TestClient, held: Held, user: str, page: dict[str, Any]) -> None:
        """Hold every line of an export to what is the person's, and to where they may read by now."""
        lines = list(page["lines"])
        while page["after"]:
            more = {"user": user, "after": page["after"]}
            page = client.post("/v1/admin/export_user", json=more, headers=_bearer(held)).json()
            lines += page["lines"]
        place = ""
        for line in lines:
            place = line["namespace"]["name"] if "namespace" in line else place
            noun = line.get("memory") or line.get("fact")
            if noun is None:
                continue
            foreign = noun.get("author", user) != user and place != f"user:{user}"
            private = noun.get("sensitivity", "public") != "public" and held.user != user
            team, _, project = place.partition(":")[2].partition("/")
            unread = held.user == user and not place.startswith("user:") and not self._may_read(held, team, project)
            if foreign or private or unread or (place.startswith("user:") and place != f"user:{user}"):
                self.odd.append(f"the export of {user} by {held.user} shows {noun} of {place}")

    def _may_read(self, held: Held, team: str, project: str) -> bool:
        """Say whether a user has a role in a team, or in a project of it."""
        role = self.rules.teams.get((held.user, team))
        if not project:
            return role is not None
        own = self.rules.projects.get((held.user, team, project))
        return own is not None or (role is not None and not self.rules.private.get((team, project), False))

    def _note(self, name: str, fields: dict[str, Any], held: Held, of: Held, answer: dict[str, Any]) -> None:
        rules = self.rules
        if name == "grant_team":
            rules.teams[fields["user"], fields["team"]] = fields["role"]
        elif name == "revoke_team":
            rules.teams.pop((fields["user"], fields["team"]), None)
            gone = [one for one in rules.projects if one[:2] == (fields["user"], fields["team"])]
            for one in gone:
                del rules.projects[one]
        elif name == "add_project":
            rules.private[fields["team"], fields["project"]] = fields["private"]
        elif name == "grant_project":
            rules.projects[fields["user"], fields["team"], fields["project"]] = fields["role"]
        elif name == "add_token":
            self.tokens.append(Held(answer["token"], answer["prefix"], held.user, fields["role"]))
        else:
            of.valid = False
            if not any(one.user == of.user and one.valid and one.cap in (None, "admin") for one in self.tokens):
                made = self._administer("invite_user", user=of.user)
                new = administer(self._app, "accept_invitation", {"days": 0}, authenticate(self._app, made.token))
                for one in self.tokens:
                    one.valid = one.valid and one.user != of.user
                self.tokens.append(Held(new.token, new.prefix, of.user))


def judged_team(
    app: App,
    settings: Settings,
    time: Clock,
    seed: int,
    calls: int,
    more: Callable[[], bool] = lambda: True,
) -> tuple[Model, Deployment]:
    """Make random calls through the server of a store nobody has used, and judge each; `more` may end that early."""
    chance = random.Random(seed)
    make = Maker(chance, speakers=())
    # What a team's server serves is shared, also where its store is a folder.
    app = replace(app, capabilities=replace(app.capabilities, shared=True))
    deployment = Deployment(app, settings, chance)
    store: Path | str = settings.database_url or settings.folder
    model = Model(store, time)
    with TestClient(deployment.application, raise_server_exceptions=False) as client:
        for _ in range(6):
            deployment.change(client)
        before = state_of(store)
        for number in range(calls):
            if model.breaches or deployment.odd or not more():
                break
            if chance.random() < 0.05:
                deployment.change(client)
            call, answer, why = _asked(client, deployment, make, chance, number)
            after = state_of(store)
            model.judge(call, before, after, answer)
            if why:
                model.breaches.append(f"call {model.calls} {why}: {call}")
            before = after
            make.highest = max(before.memories, default=0)
            if number % 25 == 24:
                time.pass_days(0.5)
    return model, deployment


def _asked(
    client: TestClient, deployment: Deployment, make: Maker, chance: random.Random, number: int
) -> tuple[RandomCall, Any, str]:
    """Make one call by some token in some team and project; return it, its answer, and what is wrong at once."""
    held = chance.choice(
        [one for one in deployment.tokens if one.valid] if chance.random() < 0.9 else deployment.tokens
    )
    places = [(team, project) for team in (*TEAMS, "", "nowhere") for project in (*PROJECTS, "", "nothing")]
    if chance.random() < 0.8:  # somewhere that they may look, mostly
        mine = [one for one in places if not isinstance(deployment.rules.rights(held, *one), int)]
        places = [one for one in mine if one[1]] or mine or places
    team, project = chance.choice(places)
    call = make.call(["remember", "store_memory", "store_fact"] if number < 30 else None)
    rights = deployment.rules.rights(held, team, project)
    nowhere = isinstance(rights, int)
    there, reads, writes = ("-", {}, {}) if isinstance(rights, int) else rights
    caller = Caller(user=held.user, team=there or "-", project=project or "-")
    others = partial(deployment.rules.reaches, held, there)
    call = replace(call, caller=caller, reads=reads, writes=writes, others=others)
    params = {name: one for name, one in (("team", team), ("project", project)) if one}
    answer = _sent(client, call, held, params)
    if isinstance(answer, Refused) and answer.status >= 500:
        return call, answer, f"was answered {answer.status}"
    if not nowhere:
        return call, answer, ""
    refused = answer.failed if isinstance(answer, ToolAnswer) else isinstance(answer, Refused)
    allowed = (401,) if rights == 401 else (403, 422)
    if isinstance(answer, Refused) and not call.tool and answer.status not in allowed:
        return call, answer, f"was answered {answer.status} and not {rights}"
    return call, answer, "" if refused else "was answered without any right"


def _sent(client: TestClient, call: RandomCall, held: Held, params: dict[str, str]) -> Any:
    if call.tool:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        message["params"] = {"name": call.name, "arguments": call.fields}
        answer = client.post(
            "/mcp", json=message, params=params | {"toolset": list(SETS)}, headers=_bearer(held) | BOTH
        )
        if answer.status_code != 200:
            return Refused(answer.status_code, answer.json()["message"])
        return _tool_answer(json.loads(answer.text.partition("data: ")[2]))
    answer = client.post(f"/v1/{call.name}", json=call.fields, params=params, headers=_bearer(held))
    if answer.status_code != 200:
        return Refused(answer.status_code, answer.json()["message"])
    return from_wire(BY_NAME[call.name].answer, answer.json())


def _tool_answer(line: dict[str, Any]) -> Any:
    if "error" in line:
        return Refused(422, line["error"]["message"])
    result = line["result"]
    texts = tuple(one["text"] for one in result["content"])
    return ToolAnswer(texts, result.get("structuredContent") or {}, bool(result.get("isError")))


def _bearer(held: Held) -> dict[str, str]:
    return {"Authorization": f"Bearer {held.text}"}
