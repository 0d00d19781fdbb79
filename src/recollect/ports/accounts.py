"""What the store promises of users, teams, projects and tokens. It knows the hash of a token, and never a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from recollect.domain.accounts import AuditLine, ProjectSummary, TeamSummary, Token, User
from recollect.domain.enums import Role

ACCOUNTS = "accounts"
"""The chain of the journal that tells of users and tokens; that of a team tells of its members and projects."""


confirm: ContextVar[Callable[[], object] | None] = ContextVar("confirm", default=None)
"""What every transaction that writes calls first, within it: it raises where a right was taken away meanwhile."""


@contextmanager
def confirmed_by(check: Callable[[], object]) -> Iterator[None]:
    """Let each transaction that this thread writes in begin with a check."""
    token = confirm.set(check)
    try:
        yield
    finally:
        confirm.reset(token)


@dataclass(frozen=True, slots=True)
class Access:
    """What the store knows of whoever holds a token: the token, its user, and the user's roles.

    `projects` are the roles by team and project that count in place of those in `teams`, and `private` the projects of
    these teams that are for those alone who have such a role.
    """

    token: Token
    user: User
    projects: dict[tuple[str, str], Role] = field(default_factory=dict)
    private: frozenset[tuple[str, str]] = frozenset()


class AccountWriting(Protocol):
    """One open transaction on accounts, which excludes every other; each change leaves a line in the journal."""

    def user(self, name: str) -> User | None:
        """Return the user of this name, None where there is none."""

    def admins(self) -> int:
        """Count the admins of the deployment who are not disabled."""

    def has_memories(self, user: str) -> bool:
        """Say whether something was ever stored as the personal memory of this name."""

    def add_user(self, name: str, *, admin: bool) -> None:
        """Write a new user."""

    def set_disabled(self, name: str, *, disabled: bool) -> None:
        """Disable or enable a user."""

    def has_team(self, team: str) -> bool:
        """Say whether there is a team of this name."""

    def add_team(self, team: str) -> None:
        """Write a new team."""

    def set_role(self, team: str, user: str, role: Role | None) -> None:
        """Give a user a role in a team in place of the one they had; None takes it away, and those in its projects."""

    def project(self, team: str, project: str) -> ProjectSummary | None:
        """Return a registered project, None where it is not."""

    def put_project(self, team: str, project: str, *, private: bool) -> None:
        """Register a project, or write whether it is private."""

    def set_project_role(self, team: str, project: str, user: str, role: Role | None) -> None:
        """Give a user a role in a registered project; None takes it away."""

    def token(self, prefix: str) -> Token | None:
        """Return the token with this prefix, None where there is none."""

    def add_token(self, token: Token, hashed: str) -> None:
        """Write a new token by its hash (SHA-256 in hex)."""

    def revoke(self, prefix: str) -> None:
        """Let a token open nothing any more."""

    def revoke_all(self, user: str) -> int:
        """Let no token of a user open anything any more; return how many there were."""

    def refuse(self, field: str, kinds: Sequence[str]) -> None:
        """Journal that the gate refused a request: the field and the kinds of secret, never a value."""


class Accounts(Protocol):
    """The users, teams, projects and tokens of a deployment."""

    def access(self, hashed: str) -> Access | None:
        """Return what is known of the token with this hash (SHA-256 in hex), valid or not; None for an unknown one."""

    def used(self, prefix: str, at: datetime) -> None:
        """Note when a token was used last; no writer is waited for."""

    def changing(self, actor: str) -> AbstractContextManager[AccountWriting]:
        """Open one transaction, journalled as by `actor`; nothing of it exists before the block has ended well."""

    def users(self, teams: Sequence[str] | None) -> list[User]:
        """Return all users, or the members of some teams, by their names."""

    def teams(self, names: Sequence[str] | None) -> list[TeamSummary]:
        """Return all teams, or those of these names."""

    def projects(self, teams: Sequence[str] | None) -> list[ProjectSummary]:
        """Return the registered projects of all teams, or of some."""

    def tokens(self, user: str) -> list[Token]:
        """Return the tokens of a user, the newest first."""

    def lines(self, teams: Sequence[str] | None, before: int | None, limit: int, *, accounts: bool) -> list[AuditLine]:
        """Return journal lines of teams and their projects, the newest first, with those of accounts if asked for.

        None stands for all teams; no line of a personal namespace is among them, and none of a private project.
        """
