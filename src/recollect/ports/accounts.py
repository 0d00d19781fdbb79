"""What the store promises of users, teams, projects and tokens. It knows the hash of a token, and never a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from recollect.domain.accounts import Token, User
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
