"""Rows of accounts as nouns of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import Row, select

from recollect.domain.accounts import Token, User
from recollect.domain.enums import Role
from recollect.errors import StoreUnusable
from recollect.store.sql.tables import account, token

TOKENS: Final = select(token, account.c.name.label("user")).join(account, account.c.id == token.c.account_id)
"""All tokens with the names of their users, for a caller that adds conditions."""


def role_of(text: str) -> Role:
    """Return the role of this name; raise `StoreUnusable` for one that somebody else must have written."""
    try:
        return Role(text)
    except ValueError:
        raise StoreUnusable(
            "A role in the accounts is none that Recollect knows, so somebody has changed the tables: give it anew "
            "(`recollect team grant`, `recollect project grant`), or revoke the token. `recollect doctor` counts them."
        ) from None


def user_of(row: Row[Any], teams: Mapping[str, Role]) -> User:
    """Return the user of a row, with their roles by team."""
    return User(row.name, bool(row.admin), row.created_at, row.disabled_at, dict(teams))


def token_of(row: Row[Any]) -> Token:
    """Return the token of a row."""
    return Token(
        prefix=row.prefix,
        user=row.user,
        label=row.label,
        created_at=row.created_at,
        role=role_of(row.role) if row.role else None,
        invitation=bool(row.invitation),
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
