"""How values become text on the page: nothing that a memory says stays invisible, and nothing becomes markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from difflib import SequenceMatcher
from typing import Any, Final

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from recollect.domain.results import Memory
from recollect.doors.web.authors import agent_title
from recollect.doors.web.zones import local
from recollect.text.normalization import fold
from recollect.text.terms import STOP_WORDS, stem
from recollect.text.writing_systems import is_dense

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_WORD: Final = re.compile(r"\s+|[^\s]+")
_MOST_WORDS: Final = 4_000
_TOKEN: Final = re.compile(r"[^\W_]+")
_BEGUN: Final = 3  # letters from which a word that somebody types marks those that begin so
_FIRST: Final = 240  # characters of a text that a row has room for
_MARK: Final = Markup("<mark>{}</mark>")
_CODE: Final = re.compile(r"`([^`]{1,200})`")


def shown(text: object) -> str:
    """Return a text with names in place of invisible characters and of those that change the direction of others."""
    return _UNSEEN.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", str(text))


class Raw(str):
    """A text that a form sends back as it is: what nobody sees in it stays in it."""

    __slots__ = ()


def written(value: object) -> object:
    """Return the value as a template writes it: a text with names for invisible characters, unless it is raw."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup | Raw) else value


def coded(text: object) -> Markup:
    """Return a sentence of ours as markup: text between backticks becomes code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(shown(text)))))  # noqa: S704 - all else is escaped


@pass_context
def moment(context: Context, at: datetime | None) -> str:
    """Return a time to the minute, in the zone of the visit."""
    visit = context.get("visit")
    return "" if at is None else local(at, visit.zone if visit else None).strftime("%Y-%m-%d %H:%M")


def day(at: date, today: date) -> str:
    """Return a day as people say it, such as Today or Friday, 27 November 2026."""
    near = {0: "Today", 1: "Yesterday"}.get((today - at).days)
    return near or f"{at:%A}, {at.day} {at:%B %Y}"


def ago(at: datetime | None) -> str:
    """Return the time since a moment as a number and a word."""
    if at is None:
        return ""
    seconds = (datetime.now(UTC) - at).total_seconds()
    ahead, seconds = seconds < -60, abs(seconds)
    for size, name in ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            many = int(seconds // size)
            span = f"{many} {name}{'s' if many > 1 else ''}"
            return f"in {span}" if ahead else f"{span} ago"
    return "just now"


def percent(share: float) -> str:
    """Return a share of 0–1 in percent."""
    return "< 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def thousands(number: int) -> str:
    """Return a number with its thousands apart."""
    return f"{number:,}"


def many(number: int, one: str, more: str = "") -> str:
    """Return a number with the noun that it counts."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def plain(name: object) -> str:
    """Return an internal name as words."""
    return str(name).replace("_", " ").replace("-", " ")


def first_words(memory: Memory) -> str:
    """Return the text of a memory's row: its own title, else the beginning of its text."""
    title = memory.title.rstrip("….")
    derived = not title or memory.content.startswith(title)
    return " ".join(memory.content[:_FIRST].split()) if derived else memory.title


def marked(text: str, query: str) -> Markup:
    """Return a text as markup in which the words of a query stand out, in whatever form; all else is escaped."""
    words = _TOKEN.findall(query)
    asked = [fold(one) for one in words]
    wanted = {stem(one) for one in asked if one not in STOP_WORDS}
    whole = {one for one in asked if is_dense(one)}
    begun = tuple(one for one in asked if len(one) >= _BEGUN and one not in STOP_WORDS)
    pieces: list[str] = []
    end = 0
    dense = "|".join(re.escape(one) for one in words if is_dense(one))
    for token in re.finditer(rf"{dense}|(?:(?!{dense})[^\W_])+", text) if dense else _TOKEN.finditer(text):
        word = fold(token[0])
        if word in whole or stem(word) in wanted or (begun and word.startswith(begun)):
            pieces += [escape(shown(text[end : token.start()])), _MARK.format(token[0])]
            end = token.end()
    return Markup("").join([*pieces, escape(shown(text[end:]))])


def differences(before: str, after: str) -> list[tuple[str, str]]:
    """Return the stretches that turn `before` into `after`, in order: `del`, `ins`, or an empty text for equal text."""
    old, new = (_diff_parts(text) for text in (before, after))
    return list(_diff_stretches(old, new))


def _diff_parts(text: str) -> list[str]:
    words = _WORD.findall(text)
    return words if len(words) <= _MOST_WORDS else text.splitlines(keepends=True)


def _diff_stretches(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    for tag, first, last, start, stop in SequenceMatcher(None, old, new, autojunk=True).get_opcodes():
        if tag == "equal":
            yield "", "".join(old[first:last])
            continue
        if last > first:
            yield "del", "".join(old[first:last])
        if stop > start:
            yield "ins", "".join(new[start:stop])


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "raw": lambda value: Raw(value),
    "agent": agent_title,
    **{each.__name__: each for each in (coded, moment, ago, day, percent, thousands, many, plain, first_words, marked)},
}
