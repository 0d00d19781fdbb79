"""The error tree. Each error knows how it ends: its HTTP status and its exit code; doors ask, nobody maps.

RecollectError                 500  exit 1   anything of ours
├── InvalidInput (ValueError)  422  exit 2   a field is missing or out of range
├── SecretFound (ValueError)   422  exit 3   the gate refused a write
├── NotFound (LookupError)     404  exit 4   no such memory in the caller's namespaces
├── StoreOwned (OSError)       409  exit 5   another process holds the store
├── StoreUnusable (OSError)    503  exit 6   the data folder cannot be used as it is
├── ModelMismatch              409  exit 7   the store was built with another embedding model
├── ModelUnusable (OSError)    503  exit 8   weights are absent, altered or cannot be loaded
├── DaemonUnreachable (OSError) 503  exit 9  the daemon cannot be started, or does not answer
├── Unauthorized (PermissionError) 401  exit 10  no token, or one that is not valid
├── Forbidden (PermissionError) 403  exit 11  the caller has no right to that
├── TooLarge (ValueError)       413  exit 12  a request is larger than the server takes
├── TooManyRequests             429  exit 13  somebody asks more often than the server allows
├── ServerUnreachable (OSError) 503  exit 14  the server of a team does not answer, or is not to be trusted
├── Conflict                   409  exit 15  a memory has changed, was withdrawn or is there already; a legal hold
└── QuotaFull                  403  exit 16  a user or a team holds as much as they may
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar


class RecollectError(Exception):
    """Base of every error that a user may see; its text is one plain sentence."""

    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    details: ClassVar[tuple[str, ...]] = ()
    """The attributes that it has beside its sentence, which it keeps from one process to another."""

    def public(self) -> dict[str, Any]:
        """Return its class name, its sentence and its details, as JSON."""
        details = {name: getattr(self, name) for name in self.details}
        known = {name: value for name, value in details.items() if value is not None}
        return {"error": type(self).__name__, "message": str(self), **known}


class InvalidInput(RecollectError, ValueError):
    """A field of a request is missing, unknown or out of range; nothing was written."""

    status = 422
    exit_code = 2
    details = ("field",)
    field = ""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class SecretFound(RecollectError, ValueError):
    """The gate found a secret; the text names the field and the kind, never the value."""

    status = 422
    exit_code = 3
    details = ("field", "kinds")
    field = ""
    kinds: tuple[str, ...] = ()

    def __init__(self, field: str, kinds: tuple[str, ...]) -> None:
        super().__init__(
            "Secret detection: Blocks storage of API keys, tokens, and passwords. "
            f"Found in `{field}`: {', '.join(kinds)}. Nothing was stored; "
            "remember where the secret is kept instead of the secret itself."
        )
        self.field = field
        self.kinds = kinds


class NotFound(RecollectError, LookupError):
    """No such thing in the namespaces the caller may see."""

    status = 404
    exit_code = 4


class StoreOwned(RecollectError, OSError):
    """Another process owns the store."""

    status = 409
    exit_code = 5


class StoreUnusable(RecollectError, OSError):
    """The data folder or the database cannot be used as it is."""

    status = 503
    exit_code = 6


class ModelMismatch(RecollectError, RuntimeError):
    """The store was built with another embedding model than the one configured."""

    status = 409
    exit_code = 7


class ModelUnusable(RecollectError, OSError):
    """The weights of the embedding model are absent, altered or cannot be loaded."""

    status = 503
    exit_code = 8


class DaemonUnreachable(RecollectError, OSError):
    """The daemon cannot be started, does not answer, or is not one this client may talk to."""

    status = 503
    exit_code = 9


class Unauthorized(RecollectError, PermissionError):
    """A request carries no token, or one that is not valid: unknown, expired, revoked, or of a disabled user."""

    status = 401
    exit_code = 10


class Forbidden(RecollectError, PermissionError):
    """The caller has no right to what was asked; nothing was written, and nothing is told of what is there."""

    status = 403
    exit_code = 11


class TooLarge(RecollectError, ValueError):
    """A request is larger than the server takes; nothing was read of it."""

    status = 413
    exit_code = 12


class TooManyRequests(RecollectError, RuntimeError):
    """Somebody has asked more often than the server allows; `retry_after` says in how many seconds they may again."""

    status = 429
    exit_code = 13
    details = ("retry_after",)
    retry_after = 0.0
    fields: Mapping[str, str] = MappingProxyType({})
    """The header fields of an answer that say what is left of which limit."""

    def __init__(self, retry_after: float, why: str = "") -> None:
        """Say when to try again, and `why` not now: whose limit on what is used up."""
        super().__init__(f"Too many requests: {why}Try again in {_in_words(max(1, round(retry_after)))}.")
        self.retry_after = retry_after


class ServerUnreachable(RecollectError, OSError):
    """The server that `RECOLLECT_URL` names does not answer, or cannot show that it is the one."""

    status = 503
    exit_code = 14


class Conflict(RecollectError, RuntimeError):
    """Something is not in the state that a write expects, or a legal hold keeps it; nothing was written."""

    status = 409
    exit_code = 15


class QuotaFull(RecollectError, RuntimeError):
    """A user or a team would hold more than they may; nothing was written.

    `limit` names what is limited, `used` says how much they hold, `most` how much they may; `team` is the team whose
    limit it is, empty for that of a user.
    """

    status = 403
    exit_code = 16
    details = ("limit", "used", "most")
    limit = ""
    used: int | None = None
    most: int | None = None
    team = ""

    def __init__(self, kind: str, name: str, limit: str, counted: str, numbers: tuple[int, int, int] | None) -> None:
        """Say whose limit on what is reached; `numbers` are what is used, what is allowed and what the write adds.

        Without numbers it keeps to itself how much is held.
        """
        self.limit, self._parts = limit, (kind, name, limit, counted)
        self.team = name if kind == "team" else ""
        about = f"the {kind} {name} has no room for more {counted}"
        if numbers is not None:
            self.used, self.most, added = numbers
            about = f"the {kind} {name} has {self.used:,} of {self.most:,} {counted}, and this adds {added:,}"
        super().__init__(
            f"Limit reached: {about}. Nothing was written. Forget what is no longer needed, or ask an admin of the "
            f"deployment for more: `recollect limit set {kind} {shlex.quote(name)} --{limit} N`."
        )

    def without_numbers(self) -> QuotaFull:
        """Return the error for a caller who may not know how much is held."""
        return QuotaFull(*self._parts, None)


def invalid_setting(name: str, variable: str, reason: object) -> InvalidInput:
    """Return the error of a setting that cannot be used: its variable, what is wrong, and what is allowed."""
    return InvalidInput(name, f"Invalid setting {variable}: {reason}")


def relayed(kind: str, message: str, told: Mapping[str, Any] | None = None) -> RecollectError:
    """Return the error that another process of ours reported, built from its class name, sentence and details."""
    found = next((one for one in RecollectError.__subclasses__() if one.__name__ == kind), RecollectError)
    error = found.__new__(found)
    error.args = (message,)
    for name in found.details:
        if name in (told or {}):
            value = (told or {})[name]
            setattr(error, name, tuple(value) if isinstance(value, list) else value)
    return error


def _in_words(seconds: int) -> str:
    """Return a time to wait as people say it: in seconds, from two minutes on in minutes, then in hours."""
    if seconds < 120:
        return f"{seconds} s"
    minutes = -(-seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say which byte keeps an input from being text; positions begin with 0."""
    return f"The input is not UTF-8: byte 0x{error.object[error.start]:02X} at position {error.start}"
