"""Bearer tokens: how they are made, which parts are kept, and how they look."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from typing import Final, NamedTuple

_FORM: Final = re.compile(r"rec_([A-Za-z0-9]{8})_[A-Za-z0-9_-]{43}")
_SIGNED: Final = re.compile(r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_LETTERS: Final = string.ascii_letters + string.digits
_SECRET: Final = 32  # random bytes: 256 bits


class NewToken(NamedTuple):
    """A token as its user keeps it, its prefix, and the hash by which it is known."""

    text: str
    prefix: str
    hashed: str


def new_token() -> NewToken:
    """Make a token: `rec_`, a prefix of 8 characters by which people tell it, and 256 random bits."""
    prefix = "".join(secrets.choice(_LETTERS) for _ in range(8))
    text = f"rec_{prefix}_{secrets.token_urlsafe(_SECRET)}"
    return NewToken(text, prefix, hashed(text))


def hashed(text: str) -> str:
    """Return the SHA-256 of a token in hex; its 256 random bits need no slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def has_form(text: str) -> bool:
    """Say whether a text looks like a token of ours."""
    return _FORM.fullmatch(text) is not None


def is_signed(text: str) -> bool:
    """Say whether a text looks like a token that an identity provider has signed: a JWT."""
    return _SIGNED.fullmatch(text) is not None
