"""Users, teams, projects and tokens in SQL. Each change is journalled in the transaction that makes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, delete, func, insert, literal, or_, select, update

from recollect.domain.accounts import (
    Audit,
    AuditLine,
    AuditRecord,
    ExportAudit,
    ProjectSummary,
    TeamSummary,
    Token,
    User,
)
from recollect.domain.enums import Role, Sensitivity
from recollect.domain.limits import Holder, HolderKind, Limits, Resource
from recollect.errors import NotFound
from recollect.store.journal import extend
from recollect.store.journal import tips as journal_tips
from recollect.store.sql import store_metadata
from recollect.store.sql.account_rows import TOKENS, role_of, token_of, user_of
from recollect.store.sql.database import Database
from recollect.store.sql.departures import DepartureWriting, add_done
from recollect.store.sql.dialect import Dialect
from recollect.store.sql.granted_access import Access, GrantedAccess, raise_version
from recollect.store.sql.holds import HoldWriting
from recollect.store.sql.limits import Quotas, clear_limits, resources_set, write_limits
from recollect.store.sql.retention_rules import RetentionRuleWriting
from recollect.store.sql.statements import select_in
from recollect.store.sql.tables import (
    account,
    identity,
    journal,
    membership,
    project_membership,
    team,
    team_project,
    token,
)

_BEFORE_ALL: Final = 2**31 - 1

OF_BROWSER: Final = "browser of "
"""The beginning of the label of a browser's token; the prefix of the token that it was made with follows."""
OF_PROVIDER: Final = "sign-in at "
"""The beginning of the label of a token that an identity provider has issued; the host of the provider follows."""
ACCOUNTS = "accounts"
"""The chain of the journal for users and tokens; the chain of a team is for its members and projects."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """Users, teams, projects and tokens of a database; `clock` dates what is written, `quotas` bound projects."""

    _database: Database
    _clock: Callable[[], datetime]
    _quotas: Quotas = field(default_factory=lambda: Quotas({}))
    _granted: GrantedAccess = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_granted", GrantedAccess(self._database))

    def access(self, hashed: str) -> Access | None:
        """Return the rights of the token with this hash (SHA-256 in hex), valid or not; None for an unknown token."""
        return self._granted.of(hashed)

    def remembered(self, hashed: str) -> Access | None:
        """Return the rights of the token as this process last read them; the token may have ended since."""
        return self._granted.remembered(hashed)

    def used(self, hashed: str, at: datetime) -> None:
        """Note when a token was used last; no writer is waited for."""
        with self._database.writing() as connection:
            connection.execute(update(token).where(token.c.hash == hashed).values(last_used_at=at))
        self._granted.used(hashed, at)

    @contextmanager
    def changing(self, actor: str) -> Iterator[AccountWriting]:
        """Open one transaction, journalled as by `actor`; nothing of it exists before the block has ended well."""
        with self._database.exclusive() as connection:
            yield AccountWriting(connection, actor, self._clock(), self._quotas, self._database.dialect)
            raise_version(connection)

    @contextmanager
    def looking(self) -> Iterator[AccountWriting]:
        """Open a transaction that only looks; what is written in it is undone."""
        with self._database.reading() as connection:
            yield AccountWriting(connection, "", self._clock(), self._quotas, self._database.dialect)

    def user_of(self, issuer: str, subject: str) -> User | None:
        """Return the user that a person of an identity provider is here, without roles; None before they first came."""
        with self._database.reading() as connection:
            found = connection.execute(_select_user(issuer, subject)).first()
        return None if found is None else user_of(found, {})

    def users(self, teams: Sequence[str] | None) -> list[User]:
        """Return all users, or the members of some teams, by their names."""
        query = select(account).order_by(account.c.name)
        if teams is not None:
            inside = select(membership.c.account_id).join(team, team.c.id == membership.c.team_id)
            query = query.where(account.c.id.in_(inside.where(team.c.name.in_(teams))))
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            roles = _roles_by_team(connection, None)
        seen = None if teams is None else set(teams)
        return [user_of(one, _roles_within(roles.get(one.id, {}), seen)) for one in rows]

    def teams(self, names: Sequence[str] | None) -> list[TeamSummary]:
        """Return all teams, or those of these names."""
        query = (
            select(team.c.name.label("team"), account.c.name.label("user"), membership.c.role)
            .select_from(team)
            .outerjoin(membership, membership.c.team_id == team.c.id)
            .outerjoin(account, account.c.id == membership.c.account_id)
            .order_by(team.c.name, account.c.name)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query if names is None else query.where(team.c.name.in_(names))).all()
        members: dict[str, dict[str, Role]] = defaultdict(dict)
        for one in rows:
            members[one.team] |= {one.user: role_of(one.role)} if one.user is not None else {}
        return [TeamSummary(name, roles) for name, roles in members.items()]

    def projects(self, teams: Sequence[str] | None) -> list[ProjectSummary]:
        """Return the registered projects of all teams, or of some."""
        with self._database.reading() as connection:
            return registered_projects(connection, None if teams is None else team.c.name.in_(teams))

    def tokens(self, user: str) -> list[Token]:
        """Return the tokens of a user, the newest first."""
        with self._database.reading() as connection:
            query = TOKENS.where(account.c.name == user).order_by(token.c.id.desc())
            return [token_of(one) for one in connection.execute(query)]

    def identities(self, user: str) -> list[tuple[str, str, datetime]]:
        """Return the persons of the identity provider that are a user here: issuer, name there, and since when."""
        columns = (identity.c.issuer, identity.c.subject, identity.c.created_at)
        query = select(*columns).join(account, account.c.id == identity.c.account_id).where(account.c.name == user)
        return [(row.issuer, row.subject, row.created_at) for row in self._database.rows(query.order_by(*columns))]

    def lines(self, teams: Sequence[str] | None, asked: Audit, limit: int, *, accounts: bool) -> list[AuditLine]:
        """Return journal lines of teams and their projects, the newest first, with those of accounts if asked for.

        Of `asked` the number and the times count between which they lie.

        None stands for all teams; no line of a personal namespace is among them, and none of a private project.
        """
        query = select(journal).where(_audited(journal.c.namespace, teams, accounts=accounts))
        query = _of_time(query, asked).where(journal.c.id < (asked.before or _BEFORE_ALL))
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(journal.c.id.desc()).limit(limit)).all()
        return [
            AuditLine(one.id, one.at, one.actor, one.namespace, one.action, one.memory_id, dict(one.changes))
            for one in rows
        ]

    def export(
        self, teams: Sequence[str] | None, asked: ExportAudit, *, accounts: bool, chained: bool
    ) -> tuple[list[AuditRecord], tuple[int, ...]]:
        """Return the next lines that `lines` may show, and where each chain that was read ends now, as line numbers.

        Chain by chain, each from the line behind that in `asked.after` on: the writers of a chain exclude each other,
        so no line of it appears later below a number that was read. With `chained` each has its hashes.
        """
        tips = journal_tips()
        with self._database.reading() as connection:
            query = select(journal.c.namespace, journal.c.id)
            done = {row.namespace: row.id for row in select_in(connection, query, journal.c.id, asked.after)}
            named = select(tips).where(_audited(tips.c.namespace, teams, accounts=accounts))
            waiting = sorted(row.namespace for row in connection.execute(named) if row.id > done.get(row.namespace, 0))
            found: list[Row[Any]] = []
            for namespace in waiting:
                here = (journal.c.namespace == namespace) & (journal.c.id > done.get(namespace, 0))
                rows = _of_time(select(journal).where(here), asked).order_by(journal.c.id)
                found += connection.execute(rows.limit(asked.limit - len(found))).all()
                done |= {line.namespace: line.id for line in found[-1:]}
                if len(found) == asked.limit:
                    break
        return [_record_of(line, chained=chained) for line in found], tuple(sorted(done.values()))


@dataclass(frozen=True, slots=True)
class AccountWriting:
    """One open transaction on accounts, which excludes every other; each change leaves a line in the journal."""

    _connection: Connection
    _actor: str
    _at: datetime
    _quotas: Quotas
    _dialect: Dialect

    def user(self, name: str) -> User | None:
        """Return the user of this name, None where there is none."""
        found = self._connection.execute(select(account).where(account.c.name == name)).first()
        return None if found is None else user_of(found, _roles_by_team(self._connection, [found.id]).get(found.id, {}))

    def admins(self) -> int:
        """Count the admins of the deployment who are not disabled."""
        query = select(func.count()).select_from(account).where(account.c.admin, account.c.disabled_at.is_(None))
        return self._connection.execute(query).scalar_one()

    def ever_had_memories(self, user: str) -> bool:
        """Say whether a memory was ever stored in this user's personal namespace, also if it was deleted since."""
        here = select(journal.c.id).where(journal.c.namespace == f"user:{user}").limit(1)
        return self._connection.execute(here).first() is not None

    def add_user(self, name: str, *, admin: bool) -> None:
        """Write a new user."""
        self._connection.execute(insert(account).values(name=name, admin=admin, created_at=self._at))
        self._journal_change(ACCOUNTS, "add_user", user=name, admin=admin)

    def user_of(self, issuer: str, subject: str) -> str | None:
        """Return the name of the user that a person of an identity provider is here."""
        found = self._connection.execute(_select_user(issuer, subject)).first()
        return None if found is None else str(found.name)

    def link(self, user: str, issuer: str, subject: str) -> None:
        """Let a person of an identity provider be a user here, in place of whom they were before."""
        here = (identity.c.issuer == issuer, identity.c.subject == subject)
        row = {"account_id": self._account_id(user), "created_at": self._at}
        if not self._connection.execute(update(identity).where(*here).values(row)).rowcount:
            self._connection.execute(insert(identity).values(row | {"issuer": issuer, "subject": subject}))
        self._journal_change(ACCOUNTS, "link_identity", user=user, issuer=issuer, subject=subject)

    def takes_groups(self, issuer: str, subject: str, issued_at: datetime) -> bool:
        """Say whether what the provider issued then is the newest that tells the groups of a person, and keep when."""
        here = (identity.c.issuer == issuer, identity.c.subject == subject)
        newest = or_(identity.c.groups_at.is_(None), identity.c.groups_at <= issued_at)
        found = self._connection.execute(update(identity).where(*here, newest).values(groups_at=issued_at))
        return bool(found.rowcount)

    def set_disabled(self, name: str, *, disabled: bool) -> None:
        """Disable or enable a user."""
        at = self._at if disabled else None
        self._connection.execute(update(account).where(account.c.name == name).values(disabled_at=at))
        self._journal_change(ACCOUNTS, "disable_user" if disabled else "enable_user", user=name)

    def delete_user(self, name: str) -> dict[str, int]:
        """Remove a user with tokens, roles, persons of the identity provider and limits; count the rows."""
        mine = self._account_id(name)
        tables = (token, identity, membership, project_membership)
        gone = {
            table.name: self._connection.execute(delete(table).where(table.c.account_id == mine)).rowcount
            for table in tables
        }
        gone["usage_limit"] = len(clear_limits(self._connection, Holder(HolderKind.USER, name), Resource))
        self._connection.execute(delete(account).where(account.c.id == mine))
        self._journal_change(ACCOUNTS, "delete_user", user=name)
        return gone | {account.name: 1}

    def open_tokens(self, name: str) -> int:
        """Count the tokens of a user that open anything, with those of their browsers."""
        mine = (token.c.account_id == self._account_id(name), token.c.revoked_at.is_(None))
        return self._connection.execute(select(func.count()).select_from(token).where(*mine)).scalar_one()

    def journal(self, chain: str, action: str, **changes: Any) -> int:
        """Write a line about what changed no row of an account; return its id."""
        self._journal_change(chain, action, **changes)
        return self.last_line(chain)

    def last_line(self, chain: str = ACCOUNTS) -> int:
        """Return the id of the last line of a chain."""
        query = select(func.max(journal.c.id)).where(journal.c.namespace == chain)
        return int(self._connection.execute(query).scalar_one())

    @property
    def departures(self) -> DepartureWriting:
        """Return what writes departures in this transaction."""
        return DepartureWriting(self._connection)

    @property
    def holds(self) -> HoldWriting:
        """Return what writes legal holds in this transaction."""
        return HoldWriting(self._connection)

    @property
    def retention(self) -> RetentionRuleWriting:
        """Return what writes rules of retention in this transaction."""
        return RetentionRuleWriting(self._connection)

    @property
    def at(self) -> datetime:
        """Return the time of whatever this transaction writes."""
        return self._at

    def note_done(self, number: int, counts: Mapping[str, int]) -> None:
        """Add to what a departure has removed."""
        add_done(self._connection, number, counts)

    def has_team(self, team: str) -> bool:
        """Say whether there is a team of this name."""
        return self._find_team_id(team) is not None

    def add_team(self, name: str) -> None:
        """Write a new team."""
        self._connection.execute(insert(team).values(name=name, created_at=self._at))
        self._journal_change(f"team:{name}", "add_team", team=name)

    def set_role(self, team_name: str, user: str, role: Role | None) -> None:
        """Give a user a role in a team in place of the one they had; None takes it away, and those in its projects."""
        team_id, account_id = self._team_id(team_name), self._account_id(user)
        here = (membership.c.team_id == team_id, membership.c.account_id == account_id)
        self._connection.execute(delete(membership).where(*here))
        if role is not None:
            row = {"team_id": team_id, "account_id": account_id, "role": str(role)}
            self._connection.execute(insert(membership).values(row))
            self._journal_change(f"team:{team_name}", "grant_team", user=user, role=str(role))
            return
        inside = select(team_project.c.id).where(team_project.c.team_id == team_id)
        gone = (project_membership.c.project_id.in_(inside), project_membership.c.account_id == account_id)
        self._connection.execute(delete(project_membership).where(*gone))
        self._journal_change(f"team:{team_name}", "revoke_team", user=user)

    def project(self, team_name: str, project: str) -> ProjectSummary | None:
        """Return a registered project, None where it is not."""
        here = (team.c.name == team_name) & (team_project.c.name == project)
        return next(iter(registered_projects(self._connection, here)), None)

    def put_project(self, team_name: str, project: str, *, private: bool) -> None:
        """Register a project, or write whether it is private; raise `QuotaFull` where the team may have no more."""
        resources = resources_set(store_metadata.read(self._connection))
        place = f"team:{team_name}"
        with self._quotas.kept(self._connection, self._dialect, [place], self._at, resources):
            self._write_project(team_name, project, private=private)
        self._journal_change(place, "put_project", project=project, private=private)

    def _write_project(self, team_name: str, project: str, *, private: bool) -> None:
        """Write the row of a registered project."""
        team_id = self._team_id(team_name)
        here = (team_project.c.team_id == team_id, team_project.c.name == project)
        known = self._connection.execute(update(team_project).where(*here).values(private=private))
        if not known.rowcount:
            row = {"team_id": team_id, "name": project, "private": private, "created_at": self._at}
            self._connection.execute(insert(team_project).values(row))

    def set_limits(self, holder: Holder, limits: Limits) -> None:
        """Set limits of a user or a team, which must be there, in place of those that were set before."""
        self._require(holder)
        write_limits(self._connection, holder, limits)
        self._journal_limits("set_limits", holder, {str(name): most for name, most in limits.items()})

    def clear_limits(self, holder: Holder, resources: Iterable[Resource]) -> list[Resource]:
        """Take away limits of a user or a team, which must be there; return which."""
        self._require(holder)
        if gone := clear_limits(self._connection, holder, resources):
            self._journal_limits("clear_limits", holder, {"limits": [str(name) for name in gone]})
        return gone

    def _require(self, holder: Holder) -> None:
        """Raise `NotFound` where there is no such user or team."""
        find = self._account_id if holder.kind is HolderKind.USER else self._team_id
        find(holder.name)

    def _journal_limits(self, action: str, holder: Holder, changes: Mapping[str, Any]) -> None:
        """Journal a change of limits: of a team among its lines, of a user among those of accounts."""
        team = holder.kind is HolderKind.TEAM
        self._journal_change(
            f"team:{holder.name}" if team else ACCOUNTS, action, **{str(holder.kind): holder.name}, **changes
        )

    def set_project_role(self, team_name: str, project: str, user: str, role: Role | None) -> None:
        """Give a user a role in a registered project; None takes it away."""
        query = select(team_project.c.id).where(
            team_project.c.team_id == self._team_id(team_name), team_project.c.name == project
        )
        project_id, account_id = self._connection.execute(query).scalar_one(), self._account_id(user)
        here = (project_membership.c.project_id == project_id, project_membership.c.account_id == account_id)
        self._connection.execute(delete(project_membership).where(*here))
        if role is None:
            self._journal_change(f"team:{team_name}", "revoke_project", project=project, user=user)
            return
        row = {"project_id": project_id, "account_id": account_id, "role": str(role)}
        self._connection.execute(insert(project_membership).values(row))
        self._journal_change(f"team:{team_name}", "grant_project", project=project, user=user, role=str(role))

    def token(self, prefix: str) -> Token | None:
        """Return the token with this prefix, None where there is none."""
        found = self._connection.execute(TOKENS.where(token.c.prefix == prefix)).first()
        return None if found is None else token_of(found)

    def has_hash(self, hashed: str) -> bool:
        """Say whether there is a token with this hash (SHA-256 in hex), valid or not."""
        return self._connection.execute(select(token.c.id).where(token.c.hash == hashed)).first() is not None

    def forget_expired(self, user: str) -> None:
        """Remove the tokens of a user that an identity provider has issued and that have expired."""
        expired = (token.c.account_id == self._account_id(user), token.c.expires_at < self._at)
        self._connection.execute(delete(token).where(*expired, token.c.label.startswith(OF_PROVIDER, autoescape=True)))

    def add_token(self, new: Token, hashed: str, action: str = "add_token") -> None:
        """Write a new token by its hash (SHA-256 in hex); the journal calls that by the name of an action."""
        row = {name: getattr(new, name) for name in ("prefix", "label", "invitation", "created_at", "expires_at")}
        row |= {"hash": hashed, "account_id": self._account_id(new.user), "role": str(new.role) if new.role else None}
        self._connection.execute(insert(token).values(row))
        action = "invite_user" if new.invitation else action
        self._journal_change(
            ACCOUNTS, action, user=new.user, prefix=new.prefix, role=str(new.role) if new.role else None
        )

    def revoke(self, prefix: str) -> None:
        """Let a token open nothing any more, nor those of the browsers that were signed in with it."""
        if self._revoked(prefix):
            owner = select(token.c.account_id).where(token.c.prefix == prefix).scalar_subquery()
            its_own = (token.c.label == f"{OF_BROWSER}{prefix}") & (token.c.account_id == owner)
            for one in self._connection.execute(select(token.c.prefix).where(its_own)).scalars().all():
                self._revoked(one)  # no browser is signed in with the token of a browser

    def revoke_all(self, user: str) -> int:
        """Let no token of a user open anything any more; return how many there were."""
        query = select(token.c.prefix).where(token.c.account_id == self._account_id(user), token.c.revoked_at.is_(None))
        prefixes = self._connection.execute(query).scalars().all()
        for one in prefixes:
            self.revoke(one)
        return len(prefixes)

    def refuse(self, field: str, kinds: Sequence[str]) -> None:
        """Journal that the gate refused a request: the field and the kinds of secret, never a value."""
        self._journal_change(ACCOUNTS, "refuse", field=field, kinds=list(kinds))

    def _revoked(self, prefix: str) -> bool:
        """Revoke a token alone; say whether it was not revoked before."""
        here = (token.c.prefix == prefix, token.c.revoked_at.is_(None))
        changed = bool(self._connection.execute(update(token).where(*here).values(revoked_at=self._at)).rowcount)
        if changed:
            self._journal_change(ACCOUNTS, "revoke_token", prefix=prefix)
        return changed

    def _find_team_id(self, name: str) -> int | None:
        """Return the number of the team with this name, None where there is no such team."""
        return self._connection.execute(select(team.c.id).where(team.c.name == name)).scalar()

    def _team_id(self, name: str) -> int:
        """Return the id of a team; raise `NotFound` where there is none of this name."""
        if (found := self._find_team_id(name)) is None:
            raise NotFound(f"There is no team `{name}`.")
        return found

    def _account_id(self, name: str) -> int:
        """Return the id of a user; raise `NotFound` where there is none of this name."""
        found = self._connection.execute(select(account.c.id).where(account.c.name == name)).scalar()
        if found is None:
            raise NotFound(f"There is no user `{name}`.")
        return int(found)

    def _journal_change(self, chain: str, action: str, **changes: Any) -> None:
        """Write a line into a chain of the accounts' journal, without the values that are None."""
        told = {name: value for name, value in changes.items() if value is not None}
        extend(self._connection, chain, self._actor, self._at, action, [(None, Sensitivity.PUBLIC, told)])


def _audited(name: ColumnElement[str], teams: Sequence[str] | None, *, accounts: bool) -> ColumnElement[bool]:
    """Select the namespaces whose lines an audit shows: of some teams or with None of all, and that of the accounts.

    Personal ones and private projects are not among them.
    """
    private = select(literal("project:") + team.c.name + "/" + team_project.c.name).join(
        team, team.c.id == team_project.c.team_id
    )
    of_teams = [name.startswith("team:"), name.startswith("project:")]
    if teams is not None:
        of_teams = [name == f"team:{known}" for known in teams]
        of_teams += [name.startswith(f"project:{known}/", autoescape=True) for known in teams]
    wanted = or_(*of_teams, name == ACCOUNTS if accounts else name != name)
    return wanted & name.not_in(private.where(team_project.c.private))


def _of_time(query: Select[Any], asked: Audit | ExportAudit) -> Select[Any]:
    """Narrow a selection of lines to the public ones, and to those of the times that were asked for."""
    if asked.since is not None:
        query = query.where(journal.c.at >= asked.since)
    if asked.until is not None:
        query = query.where(journal.c.at <= asked.until)
    return query.where(journal.c.sensitivity == str(Sensitivity.PUBLIC))


def _record_of(line: Row[Any], *, chained: bool) -> AuditRecord:
    chain = (line.sensitivity, line.state, line.previous, line.hash) if chained else ()
    about = (line.actor, line.namespace, line.action, line.memory_id, dict(line.changes))
    return AuditRecord(line.id, line.at, *about, *chain)


def _select_user(issuer: str, subject: str) -> Select[Any]:
    """Return the query for the account to which an identity of a provider is linked."""
    query = select(account).join(identity, identity.c.account_id == account.c.id)
    return query.where(identity.c.issuer == issuer, identity.c.subject == subject)


def registered_projects(connection: Connection, here: ColumnElement[bool] | None) -> list[ProjectSummary]:
    """Return the registered projects that meet the condition `here`, or all, with the roles of their members."""
    query = (
        select(team.c.name.label("team"), team_project.c.name.label("project"), team_project.c.private)
        .add_columns(account.c.name.label("user"), project_membership.c.role)
        .select_from(team_project)
        .join(team, team.c.id == team_project.c.team_id)
        .outerjoin(project_membership, project_membership.c.project_id == team_project.c.id)
        .outerjoin(account, account.c.id == project_membership.c.account_id)
        .order_by(team.c.name, team_project.c.name, account.c.name)
    )
    members: dict[tuple[str, str, bool], dict[str, Role]] = defaultdict(dict)
    for one in connection.execute(query if here is None else query.where(here)):
        roles = members[one.team, one.project, bool(one.private)]
        roles |= {one.user: role_of(one.role)} if one.user is not None else {}
    return [ProjectSummary(*place, roles) for place, roles in members.items()]


def _roles_by_team(connection: Connection, ids: Sequence[int] | None) -> dict[int, dict[str, Role]]:
    """Return, by account id, its roles by team; of some accounts or of all."""
    query = select(membership.c.account_id, team.c.name, membership.c.role).join(
        team, team.c.id == membership.c.team_id
    )
    if ids is not None:
        query = query.where(membership.c.account_id.in_(ids))
    found: dict[int, dict[str, Role]] = defaultdict(dict)
    for one in connection.execute(query.order_by(team.c.name)):
        found[one.account_id][one.name] = role_of(one.role)
    return found


def _roles_within(roles: Mapping[str, Role], seen: set[str] | None) -> dict[str, Role]:
    """Return the roles in those places that are seen, in all where `seen` is None."""
    return {name: role for name, role in roles.items() if seen is None or name in seen}
