"""What dateparser does for us; the only module that imports it, which takes long."""

from __future__ import annotations

from datetime import date, datetime, time
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dateparser.date import DateDataParser


@lru_cache(maxsize=2)
def query_date_parser(today: date) -> DateDataParser:
    """Return the parser of date expressions in a query, which are taken for days in the past."""
    from dateparser.date import DateDataParser

    base = datetime.combine(today, time(hour=12))
    return DateDataParser(
        languages=["en"], settings={"RELATIVE_BASE": base, "PREFER_DATES_FROM": "past", "DATE_ORDER": "DMY"}
    )


def typed_date_parser(now: datetime, *, ahead: bool) -> DateDataParser:
    """Return the parser of typed dates, by a clock without a zone; with `ahead` they are taken for days to come."""
    from dateparser.date import DateDataParser

    side = "future" if ahead else "past"
    settings = {"RELATIVE_BASE": now, "PREFER_DATES_FROM": side, "DATE_ORDER": "DMY", "RETURN_TIME_AS_PERIOD": True}
    return DateDataParser(languages=["en"], settings=settings)


def order_of(locale: str) -> str:
    """Return the order of day, month and year in a locale such as `en-GB`: `DMY`, `MDY`, `YMD`; empty if unknown."""
    from dateparser.languages.loader import default_loader

    try:
        return str(default_loader.get_locale(locale).info.get("date_order") or "")
    except ValueError:
        return ""
