"""Legal holds, which keep what they cover, and rules of retention, which remove what is old: who may set which."""

from __future__ import annotations

from recollect.app import App
from recollect.auth.principal import Principal
from recollect.domain.accounts import Done
from recollect.domain.leaving import (
    DropRetention,
    Hold,
    Holds,
    ListHolds,
    ListRetention,
    ReleaseHold,
    RetentionRule,
    RetentionRules,
    RetentionScope,
    RetentionSet,
    SetHold,
    SetRetention,
)
from recollect.errors import Forbidden, InvalidInput, NotFound
from recollect.memory.outlive import remove_outlived
from recollect.store.sql.accounts import ACCOUNTS, AccountWriting


def set_hold(app: App, request: SetHold, principal: Principal) -> Done:
    """Set a legal hold: on a team or its projects as an admin of it, on a person as an admin of the deployment."""
    _require_admin(principal, request.team)
    with app.accounts.changing(principal.user) as writing:
        if writing.holds.active(request.hold) is not None:
            raise InvalidInput("hold", f"Invalid hold: There is a hold `{request.hold}` already")
        if request.user is not None and writing.user(request.user) is None:
            raise NotFound(f"There is no user `{request.user}`.")
        _require_team(writing, request.team)
        named = {name: getattr(request, name) for name in ("reason", "user", "team", "project")}
        named["name"] = request.hold
        writing.holds.add(Hold(**named, set_by=principal.user, set_at=writing.at))
        writing.journal(_chain_of(request.team), "set_hold", **{name: value for name, value in named.items() if value})
    return Done(f"The hold {request.hold} keeps all that it covers: nothing of it is deleted for good.")


def list_holds(app: App, request: ListHolds, principal: Principal) -> Holds:
    """List the holds on the teams that you are in, and on yourself; all of them for an admin of the deployment."""
    found = app.records.holds.all(released=request.released)
    return Holds(tuple(hold for hold in found if _may_see(principal, hold)))


def release_hold(app: App, request: ReleaseHold, principal: Principal) -> Done:
    """Release a hold, as whoever may set it: what it kept can be deleted again, and nothing is by itself."""
    with app.accounts.changing(principal.user) as writing:
        hold = writing.holds.active(request.hold)
        if hold is None or not (_may_see(principal, hold) or principal.administers(hold.team or "")):
            raise NotFound(f"There is no hold `{request.hold}`.")
        _require_admin(principal, hold.team)
        writing.holds.release(request.hold, principal.user, writing.at)
        writing.journal(_chain_of(hold.team), "release_hold", name=request.hold)
    return Done(f"The hold {request.hold} is released.")


def set_retention(app: App, request: SetRetention, principal: Principal) -> RetentionSet:
    """Set the days after which memories of a team are removed for good, and remove what is older; or only count it."""
    _require_admin(principal, request.team)
    with app.accounts.looking() if request.dry_run else app.accounts.changing(principal.user) as writing:
        _require_team(writing, request.team)
        rule = _rule_of(request, request.days, principal.user, writing)
        before = app.records.retention_rules.of_teams([request.team])
        rules = [*(known for known in before if _scope_of(known) != _scope_of(rule)), rule]
        if not request.dry_run:
            writing.retention.put(rule)
            writing.journal(f"team:{rule.team}", "set_retention", **_named(rule), days=rule.days)
    gone = remove_outlived(app.records, app.clock(), rules, principal.user, dry=request.dry_run)
    if gone and not request.dry_run:
        app.run_later(app.vectors.sync)
        app.run_later(app.text.purge_deleted)
    what = f"{gone} memory" if gone == 1 else f"{gone} memories"
    message = f"Now it would remove {what}." if request.dry_run else f"It has removed {what}, and goes on each hour."
    return RetentionSet(message, gone, request.dry_run)


def list_retention(app: App, request: ListRetention, principal: Principal) -> RetentionRules:
    """List the rules of retention of the teams that you are in; all of them for an admin of the deployment."""
    teams = None if principal.administers() else principal.known_teams
    if request.team is not None:
        if teams is not None and request.team not in teams:
            raise Forbidden(f"You have no role in the team `{request.team}`, or there is none of that name.")
        teams = (request.team,)
    found = app.records.retention_rules.of_teams(teams)
    return RetentionRules(tuple(rule for rule in found if _may_see_project(principal, rule.team, rule.project)))


def drop_retention(app: App, request: DropRetention, principal: Principal) -> Done:
    """Remove a rule of retention; what it removed does not come back."""
    _require_admin(principal, request.team)
    with app.accounts.changing(principal.user) as writing:
        rule = _rule_of(request, 0.0, principal.user, writing)
        if not writing.retention.drop(rule):
            raise NotFound("There is no such rule of retention.")
        writing.journal(f"team:{rule.team}", "drop_retention", **_named(rule))
    return Done(f"The rule of retention of the team {request.team} is removed.")


def _may_see(principal: Principal, hold: Hold) -> bool:
    """Say whether a principal may see a hold: on them, on a place where they read, or as an admin."""
    if principal.administers(hold.team or "") or hold.user == principal.user:
        return True
    return hold.team in principal.known_teams and _may_see_project(principal, hold.team or "", hold.project)


def _may_see_project(principal: Principal, team: str, project: str | None) -> bool:
    """Say whether a principal may know of a project of a team; None stands for the team itself."""
    if principal.administers(team):
        return True
    return principal.reads(f"team:{team}" if project is None else f"project:{team}/{project}")


def _rule_of(request: RetentionScope, days: float, by: str, writing: AccountWriting) -> RetentionRule:
    return RetentionRule(request.team, request.project, request.fact_type, days, by, writing.at)


def _scope_of(rule: RetentionRule) -> tuple[object, ...]:
    return rule.team, rule.project, rule.fact_type


def _named(rule: RetentionRule) -> dict[str, str]:
    """Return the scope of a rule as the journal tells it."""
    named = {"team": rule.team, "project": rule.project, "fact_type": rule.fact_type and str(rule.fact_type)}
    return {name: value for name, value in named.items() if value}


def _chain_of(team: str | None) -> str:
    """Return the chain of the journal for a hold: that of its team, or that of accounts for a hold on a person."""
    return ACCOUNTS if team is None else f"team:{team}"


def _require_admin(principal: Principal, team: str | None) -> None:
    """Raise `Forbidden` unless the principal administers the team, or the deployment where none is named."""
    if not principal.administers(team or ""):
        raise Forbidden(f"You do not administer {f'the team `{team}`' if team else 'the deployment'}.")


def _require_team(writing: AccountWriting, team: str | None) -> None:
    if team is not None and not writing.has_team(team):
        raise NotFound(f"There is no team `{team}`.")
