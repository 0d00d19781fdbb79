"""Tokens of browsers: what a person's token is exchanged for when they sign in to the page, for half a day at most."""

from __future__ import annotations

from datetime import timedelta

from recollect.app import App
from recollect.auth.authenticate import authenticate
from recollect.auth.tokens import has_form, hashed, is_signed, new_token
from recollect.domain.accounts import Token
from recollect.errors import Forbidden, Unauthorized
from recollect.store.sql.accounts import OF_BROWSER

LIFE = timedelta(hours=12)


def sign_in(app: App, bearer: str) -> str:
    """Return a token for a browser in place of a person's token; it ends with that token, and may do no more.

    Any replica knows it. Raises `Unauthorized` for an invalid token, `Forbidden` for a browser's token.
    """
    who = authenticate(app, bearer)
    if who.invitation or is_signed(bearer) or is_browser_token(app, bearer):
        raise Forbidden("Sign in with a token of yours: an invitation or the token of a browser opens no page.")
    with app.accounts.changing(who.user) as writing:
        own = writing.token(who.token)
        if own is None or own.revoked_at is not None:
            raise Unauthorized("Invalid token: it was revoked.")
        made, now = new_token(), app.clock()
        ends = min(now + LIFE, own.expires_at or now + LIFE)
        label = f"{OF_BROWSER}{own.prefix}"
        writing.add_token(Token(made.prefix, own.user, label, now, own.role, False, ends), made.hashed)
    return made.text


def is_browser_token(app: App, token: str) -> bool:
    """Return whether a token was made for a browser."""
    found = app.accounts.access(hashed(token)) if has_form(token) else None
    return found is not None and found.token.label.startswith(OF_BROWSER)
