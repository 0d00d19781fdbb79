"""Bearer tokens: how they are made, which parts are kept, and how they look."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from typing import Final, NamedTuple

_TOKEN_FORM: Final = re.compile(r"rec_([A-Za-z0-9]{8})_[A-Za-z0-9_-]{43}")
_JWT_FORM: Final = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_LETTERS: Final = string.ascii_letters + string.digits
_SECRET_BYTES: Final = 32  # random bytes: 256 bits


class NewToken(NamedTuple):
    """A token as its user keeps it, its prefix, and the hash by which it is known."""

    text: str
    prefix: str
    hashed: str


def new_token() -> NewToken:
    """Return a new token: `rec_`, a prefix of 8 characters by which people recognize it, and 256 random bits."""
    prefix = "".join(secrets.choice(_LETTERS) for _ in range(8))
    text = f"rec_{prefix}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    return NewToken(text, prefix, hashed(text))


def hashed(text: str) -> str:
    """Return the SHA-256 of a token in hex; its 256 random bits need no slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def has_form(text: str) -> bool:
    """Return whether a text has the form of a token of Recollect."""
    return _TOKEN_FORM.fullmatch(text) is not None


def is_signed(text: str) -> bool:
    """Return whether a text has the form of a token signed by an identity provider: a JWT."""
    return _JWT_FORM.fullmatch(text) is not None
