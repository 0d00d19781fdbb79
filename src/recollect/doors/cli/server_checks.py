"""Checks the server of a team for `doctor` and `status`: whether it answers, and what the token opens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from recollect import __version__
from recollect.client.connection import ServerConnection
from recollect.domain.limits import HELD, Usage
from recollect.domain.results import Check
from recollect.domain.review import WaitingPage
from recollect.doors.cli.opening import perform
from recollect.errors import Forbidden, RecollectError, Unauthorized
from recollect.settings import Settings

_PREFIX = slice(4, 12)  # of a token, `rec_` left out


def server_checks(settings: Settings) -> Iterator[Check]:
    """Yield a check of the server, of the token, and of the user's teams; the first problem ends them."""
    server = ServerConnection(settings)
    try:
        version = str(server.client.get("/openapi.json").get("info", {}).get("version", ""))
        advice = "Use the same version on both sides."
        yield Check("server", version == __version__, f"{settings.url}, recollect {version}", advice)
        row = next(
            (row for row in server.administer("list_tokens").tokens if row.prefix == settings.token[_PREFIX]), None
        )
        if row is None:
            return
        until = f", until {row.expires_at:%Y-%m-%d}" if row.expires_at else ""
        yield Check("token", True, f"{row.prefix} of {row.user}{until}" + (f", as {row.role}" if row.role else ""))
        teams = [team for team in server.administer("list_teams").teams if row.user in team.members]
        named = ", ".join(f"{team.team} ({team.members[row.user]})" for team in teams)
        several = len(teams) > 1 and "team" not in settings.model_fields_set
        yield Check("teams", not several, named or "none", "Set RECOLLECT_TEAM to the one whose memories you mean.")
        yield from _limit_checks(server.administer("show_limits"))
    except Unauthorized as error:
        advice = "Set RECOLLECT_TOKEN, or RECOLLECT_TOKEN_FILE, to a token that is valid."
        yield Check("server", True, settings.url)
        yield Check("token", False, str(error), advice)
    except RecollectError as error:
        yield Check("server", False, str(error), "Check RECOLLECT_URL, and whether the server runs.")


def _limit_checks(usage: Usage) -> Iterator[Check]:
    """Yield a check of the limits that a user and their teams have; none without any."""
    for each in usage.holders:
        limited = [use for use in each.uses if use.most is not None]
        full = [use for use in limited if use.resource in HELD and use.used >= (use.most or 0)]
        seen = "; ".join(f"{use.used:,} of {use.most:,} {use.resource.words}" for use in limited)
        if limited:
            advice = "Forget what is no longer needed, or ask an admin of the deployment for more."
            yield Check(f"limits of {each.name}", not full, seen, advice)


def inbox_checks(settings: Settings) -> list[Check]:
    """Return the check of the memories that wait on a server; none for a user who may not read there."""
    with suppress(Forbidden):
        page: WaitingPage = perform(settings, "inbox", {"limit": 1})
        return [page.check]
    return []
