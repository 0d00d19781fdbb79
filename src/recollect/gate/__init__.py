"""The gate that every write passes: `clear` scans every string of a request and refuses or redacts secrets.

Only `clear` makes a `Cleared`, and the store accepts nothing else. The gate never keeps, logs or repeats the value of
a secret.
"""

from __future__ import annotations

from typing import Any, Final, Generic, NoReturn, Self, TypeVar

from pydantic import BaseModel

from recollect.domain.enums import OnSecret
from recollect.errors import InvalidInput, SecretFound
from recollect.gate.cross_field import TOO_LONG, secrets_in
from recollect.gate.redaction import masked, redacted
from recollect.gate.scanner import Finding, scan
from recollect.gate.time_limit import ScanTooLong, limit_scan_time

__all__ = ["Cleared", "Finding", "clear", "masked", "scan", "secrets_in"]

_SECONDS: Final = 5.0  # of processor time for all the texts of a request: 200,000 ordinary characters take a tenth
_ONLY_CLEAR: Final = "Cleared is made by recollect.gate.clear() only"

T_co = TypeVar("T_co", bound=BaseModel, covariant=True)
T = TypeVar("T", bound=BaseModel)


class Cleared(Generic[T_co]):
    """A request without secrets, as the gate returned it; a copy is the same object, pickling is refused."""

    __slots__ = ("_value",)
    _value: T_co

    def __new__(cls, *_args: object, **_kwargs: object) -> Self:  # noqa: D102 - it only refuses
        raise TypeError(_ONLY_CLEAR)

    def __init_subclass__(cls, **_kwargs: object) -> NoReturn:
        raise TypeError(_ONLY_CLEAR)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Cleared is frozen: `{name}` cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Cleared is frozen: `{name}` cannot be deleted")

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError(_ONLY_CLEAR)

    def __setstate__(self, _state: object) -> NoReturn:
        raise TypeError(_ONLY_CLEAR)

    def __copy__(self) -> Cleared[T_co]:
        return self

    def __deepcopy__(self, _memo: object) -> Cleared[T_co]:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cleared) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((Cleared, self._value))

    def __repr__(self) -> str:
        return f"Cleared({type(self._value).__name__})"

    @property
    def value(self) -> T_co:
        """Return the request."""
        return self._value


def clear(noun: T, on_secret: OnSecret = OnSecret.BLOCK) -> Cleared[T]:
    """Return the request as cleared, or raise `SecretFound`; with `REDACT`, write `[redacted: kind]` for each secret.

    Every string is scanned, those of nested models, sequences, mappings and their keys too. The error names the first
    field that holds a secret and the kinds found there. A text that takes too long raises `InvalidInput`, a value that
    cannot be scanned, such as bytes, `TypeError`.
    """
    try:
        with limit_scan_time(_SECONDS):
            if on_secret is OnSecret.REDACT:
                noun = redacted(noun)
            else:
                _raise_for_secrets(noun)
    except ScanTooLong:
        raise InvalidInput("content", f"Invalid request: {TOO_LONG}") from None
    return _new_cleared(noun)


def _raise_for_secrets(noun: BaseModel) -> None:
    """Raise `SecretFound` for the first field that holds secrets."""
    for field, _, findings in secrets_in(noun):
        raise SecretFound(field, tuple(dict.fromkeys(finding.kind for finding in findings)))


def _new_cleared(noun: T) -> Cleared[T]:
    """Return a `Cleared` that holds the request; its constructor refuses everybody else."""
    made: Any = Cleared
    cleared: Cleared[T] = object.__new__(made)
    object.__setattr__(cleared, "_value", noun)
    return cleared
