"""Numbers and dates in one written form: "five megabytes" is "5 MB", "the 3rd of May 2024" is "2024-05-03".

A number keeps its unit, so that 5 MB and 5 GB are as different as 5 and 6. English words; digits of any script.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_AMOUNT = re.compile(r"([-−+]?)([$€£¥₹]?)(\d[\d,]*(?:\.\d+)?)(?:([^\W\d_]{1,12}|[%°][^\W\d_]?)(?:\.|\b|$)?)?")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ISO = re.compile(r"((?:19|20)\d\d)-(\d\d)-(\d\d)")

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {**{word: value for value, word in enumerate(_SMALL)}, **{w: 10 * n for n, w in enumerate(_TENS, start=2)}}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "k": 1_000}
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_ORDINAL = {word: f"{value}{_ENDINGS.get(value, 'th')}" for value, word in enumerate(_ORDINALS, start=1)}
_UNITS = {
    one: names[0]
    for names in (
        line.split()
        for line in """ms millisecond milliseconds msec
        s second seconds sec secs
        min minute minutes mins
        h hour hours hr hrs
        d day days
        wk week weeks
        mo month months
        yr year years
        B byte bytes
        kB kilobyte kilobytes kb
        MB megabyte megabytes mb
        GB gigabyte gigabytes gb
        TB terabyte terabytes tb
        KiB kib
        MiB mib
        GiB gib
        mm millimetre millimetres millimeter millimeters
        cm centimetre centimetres centimeter centimeters
        m metre metres meter meters
        km kilometre kilometres kilometer kilometers
        mi mile miles
        ft foot feet
        kg kilogram kilograms kilo kilos
        g gram grams
        lb lbs pound-weight
        l litre litres liter liters
        % percent per-cent pct
        $ dollar dollars usd
        € euro euros eur
        £ gbp quid
        ¥ yen jpy
        °C celsius °c
        °F fahrenheit °f
        am a.m
        pm p.m
        hz hertz
        mhz megahertz
        ghz gigahertz
        kw kilowatt kilowatts
        px pixel pixels""".splitlines()
    )
    for one in names
}
_BITS = {"Kb": "kbit", "Mb": "Mbit", "Gb": "Gbit", "kbps": "kbit/s", "mbps": "Mbit/s", "gbps": "Gbit/s"}
_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTH = {
    **{name[:size]: number for number, name in enumerate(_MONTHS, start=1) for size in (3, len(name))},
    "sept": 9,
}
_WEEKDAY = {
    **{name + end: number for number, name in enumerate(_WEEKDAYS, start=1) for end in ("", "s")},
    **{"mon": 1, "tue": 2, "tues": 2, "wed": 3, "thu": 4, "thur": 4, "thurs": 4, "fri": 5, "sat": 6, "sun": 7},
}
_ALSO_WORDS = frozenset("may march mar jan dec sep mon wed sat sun".split())
_BEFORE_MONTH = frozenset("in of since until by last this next during from to and for".split())


def dated(words: Sequence[str], at: int) -> tuple[tuple[str, ...], int] | None:
    """Return the date that begins at `words[at]` as day, month and year in one form, and how many words it took."""
    if iso := _ISO.fullmatch(words[at]):
        return (f"{iso[2]}-{iso[3]}", iso[1]), 1
    if (weekday := _WEEKDAY.get(words[at].lower().rstrip("."))) and _is_name(words, at):
        return (f"weekday {weekday}",), 1
    day, month, taken = _day_and_month(words, at)
    if not month:
        return None
    found = f"{month:02}-{day:02}" if day else f"month {month}"
    year = _word(words, at + taken)
    return ((found, year), taken + 1) if _YEAR.fullmatch(year) else ((found,), taken)


def _day_and_month(words: Sequence[str], at: int) -> tuple[int, int, int]:
    """Return day, month (0 for what is not there) and the number of words: 3 May, 3rd of May, May 3, May."""
    if number := _DAY.fullmatch(words[at].lower()):
        skip = 2 if _word(words, at + 1).lower() == "of" else 1
        month = _MONTH.get(_word(words, at + skip).lower().rstrip("."), 0)
        return (int(number[1]), month, skip + 1) if month and 1 <= int(number[1]) <= 31 else (0, 0, 0)
    month = _MONTH.get(words[at].lower().rstrip("."), 0)
    after = _word(words, at + 1).lower()
    day = _DAY.fullmatch(after)
    unit = _word(words, at + 2).lower() in _UNITS
    if month and day and 1 <= int(day[1]) <= 31 and not unit:
        return int(day[1]), month, 2
    sure = month and (_is_name(words, at) or _YEAR.fullmatch(after))
    return 0, month if sure else 0, 1


def _is_name(words: Sequence[str], at: int) -> bool:
    """Say whether a word that is also an ordinary one, such as may, stands as a name."""
    if words[at].lower().rstrip(".") not in _ALSO_WORDS:
        return True
    return _word(words, at - 1).lower() in _BEFORE_MONTH or (at > 0 and words[at][0].isupper())


def quantity(words: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the number that begins at `words[at]`, with its unit, and how many words it took; None for no number."""
    if word := _ORDINAL.get(words[at].lower()):
        return word, 1
    if found := _AMOUNT.fullmatch(words[at]):
        sign, money, digits, suffix = found.groups()
        value = digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits
        if suffix is None or suffix.lower() == "k":
            value, taken = _scaled(value, [suffix] if suffix else words[at + 1 : at + 2])
            taken = 1 if suffix else 1 + taken
            unit, more = ("", 0) if suffix and not money else _unit(_word(words, at + taken))
        else:
            unit, taken, more = _unit(suffix)[0] or suffix.lower(), 1, 0
        named = " ".join(filter(None, (unit, _UNITS.get(money, money) if money != unit else "")))
        return f"{sign.replace('+', '').replace('−', '-')}{value} {named}".strip(), taken + more
    return _spelled(words, at)


def _scaled(value: str, following: Sequence[str]) -> tuple[str, int]:
    scale = _SCALES.get(following[0].lower()) if following else None
    if scale is None:
        return value, 0
    return f"{float(value) * scale:.10g}" if re.fullmatch(r"\d{1,12}(?:\.\d{1,6})?", value) else f"{value}×{scale}", 1


def _spelled(words: Sequence[str], at: int) -> tuple[str, int] | None:
    """Read number words: twenty-five, two hundred and six, three million."""
    total = value = taken = 0
    for word in (one.lower() for one in words[at : at + 12]):
        if word in _VALUES and (value % 100 == 0 or (value % 100 >= 20 and value % 10 == 0 and 0 < _VALUES[word] < 10)):
            if taken and not value and not total:
                break
            value += _VALUES[word]
        elif word in _SCALES and word != "k" and taken:
            total, value = (total, value * 100) if word == "hundred" else (total + value * _SCALES[word], 0)
        else:
            break
        taken += 1
    if not taken:
        return None
    unit, more = _unit(_word(words, at + taken))
    return f"{total + value} {unit}".strip(), taken + more


def _unit(word: str) -> tuple[str, int]:
    """Return the unit that a word is, and 1, or nothing and 0."""
    unit = _BITS.get(word) or _BITS.get(word.lower(), "") or _UNITS.get(word) or _UNITS.get(word.lower().rstrip("."))
    return (unit, 1) if unit else ("", 0)


def _word(words: Sequence[str], at: int) -> str:
    return words[at] if 0 <= at < len(words) else ""
