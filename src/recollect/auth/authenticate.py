"""From a bearer token to a principal, checked at every request, so that a revoked token opens nothing any more."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from recollect.app import App
from recollect.auth.principal import Principal
from recollect.auth.tokens import has_form, hashed, is_signed
from recollect.domain.enums import Role
from recollect.errors import Unauthorized
from recollect.store.sql.granted_access import Access

_USED_EVERY: Final = timedelta(minutes=1)
"""How exactly it is kept when a token was used last."""
INVALID: Final = (
    "Invalid token: it is unknown, has expired or was revoked. "
    "An admin can invite you anew with `recollect user invite NAME`."
)


def authenticate(app: App, bearer: str) -> Principal:
    """Return who holds a token; raise `Unauthorized`, in the same words for every token that opens nothing."""
    found, used = _known(app, bearer)
    now = app.clock()
    if used is None or now - used >= _USED_EVERY:
        app.accounts.used(hashed(bearer), now)
    return found


def look_again(app: App, bearer: str) -> Principal:
    """Return who holds a token by now, or raise `Unauthorized`; within a transaction it is what that one sees."""
    return _known(app, bearer)[0]


def remembered(app: App, bearer: str) -> Principal | None:
    """Return who held a token when this process last read it, without a look at the database; None where unknown.

    The token may have ended since: `authenticate` says so.
    """
    access = app.accounts.remembered(hashed(bearer)) if _may_open(bearer) else None
    return None if access is None or _has_ended(access, app.clock()) else _principal(access)


def _known(app: App, bearer: str) -> tuple[Principal, datetime | None]:
    """Return who holds a token, and when it was used last."""
    access = app.accounts.access(hashed(bearer)) if _may_open(bearer) else None
    if access is None or _has_ended(access, app.clock()):
        raise Unauthorized(INVALID)
    return _principal(access), access.token.last_used_at


def _may_open(bearer: str) -> bool:
    return has_form(bearer) or is_signed(bearer)


def _has_ended(access: Access, now: datetime) -> bool:
    token = access.token
    expired = token.expires_at is not None and token.expires_at <= now
    return expired or token.revoked_at is not None or access.user.disabled_at is not None


def _principal(access: Access) -> Principal:
    token, user = access.token, access.user
    return Principal(
        user=user.user,
        admin=user.admin,
        token=token.prefix,
        cap=token.role or Role.ADMIN,
        invitation=token.invitation,
        teams=user.teams,
        projects=access.projects,
        private=access.private,
        limits=access.limits,
    )
