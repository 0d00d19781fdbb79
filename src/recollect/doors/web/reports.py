"""The screens about the whole: the journal, the store's health, the team, and the first visit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import leather  # type: ignore[import-untyped]
from markupsafe import Markup
from starlette.datastructures import QueryParams

from recollect.domain.leaving import CHOICES
from recollect.domain.page import Browsed, Counted, JournalPage
from recollect.domain.requests import Caller
from recollect.domain.results import Outcome, Recalled
from recollect.doors.web.visit import Done, Shown, Visit
from recollect.errors import Forbidden, InvalidInput, RecollectError

_MOST_PLACES: Final = 200
_WIDTH: Final = 440
_BAR: Final = 34
_MARGINS: Final = 110
_INK: Final = "#1f6feb"
ADMINISTERED: Final = (
    *("add_user", "invite_user", "disable_user", "enable_user", "add_team", "grant_team", "revoke_team"),
    *("add_project", "grant_project", "revoke_project", "add_token", "revoke_token", "set_limits", "clear_limits"),
    "delete_user",
)
"""What the forms of the team do."""


def places(visit: Visit) -> list[dict[str, str]]:
    """Return the teams and projects that the user may open, with the place that is open now."""
    found: list[dict[str, str]] = []
    teams = visit.asker.principal.known_teams if visit.team_server else (visit.place.get("team", "local"),)
    for team in teams:
        found += [{"team": team, "project": ""}] if visit.team_server else []
        for namespace in visit.app.records.namespaces.of_team(team):
            project = namespace.partition("/")[2]
            if not visit.team_server or _may_read(visit.asker.principal, team, project):
                found.append({"team": team, "project": project})
    here = {"team": visit.place.get("team", "local"), "project": visit.place.get("project", "")}
    return found[:_MOST_PLACES] if here in found else [here, *found[: _MOST_PLACES - 1]]


def _may_read(principal: Any, team: str, project: str) -> bool:
    with suppress(Forbidden):
        caller: Caller = principal.caller(team, project)
        return bool(caller.reads)
    return False


def journal(visit: Visit) -> Shown:
    """Show the journal, the newest line first."""
    fields = {name: visit.value(name) for name in ("scope", "actor", "action") if visit.value(name)}
    before = visit.number("before", 0) or None
    found: JournalPage = visit.run("read_journal", **fields, before=before, **visit.levels)
    return Shown("journal.html", {"journal": found, "chosen": fields, "before": before})


def changes(visit: Visit) -> Shown:
    """Say the number of the newest line of the journal, by which the page notices that something changed."""
    with visit.caller() as caller:
        newest = visit.app.records.overview.newest_line(caller.namespaces())
    return Shown("changes.html", {"newest": newest})


def health(visit: Visit) -> Shown:
    """Show the doctor's findings and advice, the counts, and how long a search and a page take."""
    counted: Counted = visit.run("facets", states=True, **visit.levels)
    facts: int = visit.run("query_facts", limit=1, **visit.levels).total
    may_check = not visit.team_server or visit.asker.current().administers()
    sizes = dict(sorted(visit.app.records.overview.sizes().items(), key=lambda pair: -pair[1])[:8]) if may_check else {}
    times = {
        "search": _seconds_taken(lambda: visit.run("recall", query="what was decided about the database", limit=5)),
        "page of memories": _seconds_taken(lambda: visit.run("browse", limit=20)),
    }
    months = dict(sorted(counted.counts["month"].items())[-12:])
    milliseconds = {name: round(1000 * seconds, 1) for name, seconds in times.items()}
    mebibytes = {name: round(size / 2**20, 1) for name, size in sizes.items()}
    charts = (
        ("By kind", "memories", counted.counts["fact_type"]),
        ("Stored, by month", "memories", dict(reversed(months.items()))),
        ("Sizes, in MiB", "MiB", mebibytes),
        ("How long things take now, in milliseconds", "ms", milliseconds),
    )
    data = {
        "checkup": visit.checkup.state() if may_check else None,
        "counted": counted,
        "facts": facts,
        "times": times,
        "sizes": sizes,
        "months": months,
        "_charts": [(*chart, _bar_chart(chart[2])) for chart in charts],
    }
    return Shown("health.html", data)


def check_up(visit: Visit) -> Done:
    """Let the doctor look at the whole store."""
    with visit.asker.asking(QueryParams(visit.place))("doctor"):  # raises where who asks has no right to it
        look = visit.checkup.begin()
    data = {"checkup": visit.checkup.state()}
    return Done(visit.link("health"), "The doctor looks at the whole store.", data=data, after=look)


def _seconds_taken(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    with suppress(RecollectError):
        work()
    return round(time.perf_counter() - began, 4)


def _bar_chart(values: Mapping[str, float]) -> Markup:
    """Return an SVG with a bar for each value, in their order."""
    if not values:
        return Markup()
    chart = leather.Chart()
    chart.add_bars([(value, name.replace("_", " ")) for name, value in values.items()], fill_color=_INK)
    height = _MARGINS + _BAR * len(values)
    size = f'width="{_WIDTH}" height="{height}"'
    drawn = chart.to_svg(width=_WIDTH, height=height).replace(size, f'viewBox="0 0 {_WIDTH} {height}"', 1)
    return Markup(drawn)  # noqa: S704 - the library escapes names


def team(visit: Visit) -> Shown:
    """Show users, teams, projects, tokens, limits and the audit log, as far as the user may see them."""
    data = {name: getattr(visit.administer(f"list_{name}"), name) for name in ("users", "teams", "projects", "tokens")}
    principal = visit.asker.current()
    manages = principal.administered is None or bool(principal.administered)
    rights = {"user": principal.user, "admin": principal.administers(), "administered": principal.administered}
    audit = visit.administer("audit", before=visit.number("before", 0) or None, limit=30) if manages else None
    data |= {"usage": visit.administer("show_limits").holders}
    data |= {"limits": visit.administer("list_limits").limits if principal.administers() else ()}
    return Shown("team.html", data | rights | {"audit": audit, "issued": None, "departure": None, "_manages": manages})


def administer(visit: Visit) -> Done | Shown:
    """Run an operation of administration; a new token is shown once, on the answer itself."""
    name = visit.value("do")
    if name not in ADMINISTERED:
        raise InvalidInput("do", f"Invalid do: Must be one of {', '.join(ADMINISTERED)}")
    fields = {key: value for key, value in visit.form.items() if key not in ("do", "token") and value.strip()}
    for flag in ("admin", "private"):
        if flag in fields:
            fields[flag] = "true"
    if name == "delete_user":
        return _delete_user(visit, fields)
    done = visit.administer(name, **fields)
    if name in ("add_user", "invite_user", "add_token"):
        shown = team(visit)
        return Shown(shown.template, shown.data | {"issued": done})
    return Done(visit.link("team"), done.message, data={"done": done})


def _delete_user(visit: Visit, fields: dict[str, str]) -> Done | Shown:
    """Delete a user once the form says that somebody has seen what it would do; before, show that."""
    agreed = fields.pop("agreed", "")
    choice, target = fields.pop("choice", ""), fields.pop("target", "")
    named = {"user": fields.get("user", ""), choice: target or "true"} if choice in CHOICES else fields
    if not agreed:
        preview = visit.administer("delete_user", **named, dry_run=True)
        shown = team(visit)
        asked = {"user": named["user"], "choice": choice, "target": target}
        return Shown(shown.template, shown.data | {"departure": preview, "_asked": asked})
    done = visit.administer("delete_user", **named)
    return Done(visit.link("team"), done.message, data={"done": done})


def start(visit: Visit) -> Shown:
    """Show which agents are connected, and what to do next."""
    recent: Browsed = visit.run("browse", limit=1)
    data: dict[str, Any] = {"stored": bool(recent.memories), "agents": [], "trial": None}
    if not visit.team_server:
        from recollect.doors.agents import registrations  # reads the files of agents, which no other screen does

        data["agents"] = registrations.checks(registrations.project_folder())
    return Shown("start.html", data)


def trial(visit: Visit) -> Shown:
    """Let a memory go round: store it, find it by a typo, and forget it again; say how long each took."""
    text = "Recollect test memory: the lighthouse keeper of this page likes marzipan."
    steps: list[dict[str, Any]] = []
    began = time.perf_counter()

    def note(what: str, well: bool) -> None:
        nonlocal began
        now = time.perf_counter()
        steps.append({"what": what, "well": well, "seconds": round(now - began, 3)})
        began = now

    stored: Outcome = visit.run("remember", content=text, scope="personal", fact_type="event", ttl_days=1)
    note(f"It was stored as memory {stored.id}.", True)
    try:
        recalled: Recalled = visit.run("recall", query="lighthose keeper marzipan", scope="personal")
        hits = [str(hit.memory.id) for hit in recalled.hits]
        note("A search with a typo found it.", stored.id in hits)
    finally:
        forgotten: Outcome = visit.run("forget", id=stored.id)
        note("It was forgotten again.", str(forgotten.status) == "deleted")
    again: Recalled = visit.run("recall", query="lighthose keeper marzipan", scope="personal")
    note("No search finds it any more.", all(str(hit.memory.id) != stored.id for hit in again.hits))
    shown = start(visit)
    return Shown(shown.template, shown.data | {"trial": {"well": all(step["well"] for step in steps), "steps": steps}})
