"""The types of columns: aware UTC datetimes, and members of closed sets."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import DateTime, Dialect, Text, TypeDecorator

from recollect.domain.enums import sensitivity_of

QUARANTINED = "quarantined:"
"""What stands before the level of sensitivity of what is in quarantine: so it is none that a read lets in."""

WITHDRAWN = "withdrawn:"
"""The same of what was withdrawn with its source."""

AWAY = (QUARANTINED, WITHDRAWN)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC datetime, also where the database knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: Dialect) -> datetime | None:
        """Bring an aware datetime to UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any, _: Dialect) -> datetime | None:
        """Return what was stored as an aware UTC datetime."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class EnumText(TypeDecorator[StrEnum]):
    """A member of a closed set, stored as its text; what is in quarantine or withdrawn is read as what it was before.

    A text that is none of them is read as `unknown`, where given; the owner behind a level is passed over.
    """

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum], unknown: StrEnum | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.unknown = unknown
        self._members = {prefix + one: one for one in kind for prefix in ("", *AWAY)}

    def process_bind_param(self, value: str | None, _: Dialect) -> str | None:
        """Return the text of a member."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, _: Dialect) -> StrEnum | None:
        """Return the member of this text."""
        if value is None:
            return None
        if value in self._members:
            return self._members[value]
        return self._members.get(sensitivity_of(value), self.unknown) or self.kind(value)
