"""The time zone of the times on the page: that of the browser, or of this machine where a browser has sent none."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from recollect.errors import InvalidInput

COOKIE: Final = "recollect_zone"
LIFE: Final = 365 * 86_400  # seconds
_LONGEST: Final = 64


@lru_cache(maxsize=64)
def zone_named(name: str) -> ZoneInfo | None:
    """Return the zone of this name, such as `Europe/Berlin`; None for a name that this machine does not know."""
    if not 0 < len(name) <= _LONGEST:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # no name of a zone, a folder of zones, or none that is known
        return None


def zone_from_browser(name: str) -> ZoneInfo:
    """Return the zone that a browser names; raise `InvalidInput` for an unknown zone."""
    zone = zone_named(name)
    if zone is None:
        raise InvalidInput("zone", "Invalid zone: Must be the name of a time zone, such as Europe/Berlin")
    return zone


def local(at: datetime, zone: ZoneInfo | None) -> datetime:
    """Return a moment in a zone; without a zone in that of this machine, with the offset of that day."""
    return at.astimezone(zone)


def zone_words(zone: ZoneInfo | None, now: datetime) -> str:
    """Return which zone the times of a screen are in, for a person."""
    return zone.key if zone is not None else f"{local(now, None).tzname()}, the zone of the server"
