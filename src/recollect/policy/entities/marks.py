"""Things named by their shape: URLs, addresses, files, tickets, versions, hashtags, identifiers and mentions.

Every pattern begins where a word may begin and repeats nothing that could be read in two ways, so that each is
linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from recollect.domain import EntityType
from recollect.policy.entities.names import identifiers
from recollect.policy.entities.words import (
    BARE_ENDINGS,
    FILE_ENDINGS,
    FILE_NAMES,
    FOLDERS,
    LOGGING,
    NO_HASHTAG,
    NO_MENTION,
    NO_TICKET,
    PRODUCTS,
    ROOTS,
    SCRIPT_LIBRARIES,
)


class Found(NamedTuple):
    """A name from `start` to `end`; with no type it is none, but nothing else is looked for in what it covers."""

    start: int
    end: int
    type: EntityType | None
    cover: tuple[int, int]


class Mark(NamedTuple):
    """One kind of thing and how to find it; `prose` says that code is left out."""

    find: Callable[[str], Iterator[Found]]
    prose: bool = False


_END = r"\s\0<>\"`|\\^{}()\[\]（）「」『』【】《》，。、；！？"
_BODY = rf"(?:[^{_END}]|\([^{_END}]{{0,200}}\)|\[[^{_END}]{{0,200}}\])"
_HOST = r"(?:[a-z0-9-]{1,63}\.){1,20}"
_URL = re.compile(
    rf"(?<![A-Za-z0-9+.-])(?:[A-Za-z][A-Za-z0-9+.-]{{1,20}}://{_BODY}+|www\.{_BODY}+"
    rf"|git@[\w.-]{{1,100}}:[\w./~-]+"
    rf"|(?<![\w@.-]){_HOST}(?:(?:com|org|net|edu|gov|io|dev|ai|app|co)(?::\d{{1,5}})?/{_BODY}*|(?:com|org|net|edu|gov)(?![\w@-]|\.\w)))",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?'’”\"*~_…"
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9À-ɏ._%+-])[A-Za-z0-9À-ɏ_%+-][A-Za-z0-9À-ɏ._%+-]{0,63}@"
    r"(?:[A-Za-z0-9À-ɏ-]{1,63}\.){1,10}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(rf"(?:[^\W{_DENSE}]|[.@+~/-])+")
_WINDOWS = re.compile(r"(?<![A-Za-z0-9])(?:[A-Za-z]:\\|\\\\[\w.-]{1,60}\\)[^\s\0<>:\"|?*`']{2,}")
_HIDDEN = re.compile(
    r"\.(?:env(?:\.[a-z]{1,20}){0,2}|[a-z]{1,20}(?:rc|ignore|attributes|config)(?:\.[a-z]{1,5})?|profile|ssh|github|vscode|"
    r"flake8|venv|git)"
)
_ISSUE = re.compile(r"(?<![\w.\-/])[A-Za-z0-9][\w.-]{0,38}/[\w.-]{1,100}#\d{1,7}(?!\w)")
_TICKET = re.compile(r"(?<![\w-])([A-Z][A-Z0-9]{1,9})-\d{1,6}(?!\w|-\w|\.\d)")
_NUMBERED = re.compile(r"(?<![\w&#/\0])#(\d{1,7})(?![\w-])")
_ASKED = re.compile(
    r"(?:issues?|pr|mr|prs|pull request|bug|ticket|fix(?:e[sd])?|close[sd]?|resolve[sd]?)\s*$", re.IGNORECASE
)
_COLOUR = re.compile(r"(?:colou?r|background|fill|hex|border)\S{0,10}\s*$", re.IGNORECASE)
_PRE = r"(?:[-.]?(?:alpha|beta|rc|dev|post|pre|a|b)[.-]?\d{0,4})?(?:\+[A-Za-z0-9.]{1,20}[A-Za-z0-9])?"
_VERSION = re.compile(
    rf"(?<![\w.\-/])v\d{{1,4}}(?:\.\d{{1,6}}){{0,4}}{_PRE}(?!\w|\.\d)"
    rf"|(?<![\w.,/:-])V?\d{{1,4}}(?:\.\d{{1,6}}){{1,2}}{_PRE}(?![\w%°/:]|[.,]\d)"
)
_DATE = re.compile(r"\d{1,2}\.\d{1,2}\.(?:19|20)\d\d|\d\d\.\d\d\.\d\d|(?:19|20)\d\d\.\d\d\.\d\d")
_AMOUNT = re.compile(r"\d{1,3}(?:\.\d{3}){2}")
_OPERATOR = re.compile(r"(?:[<>=~!]=|===|[\^~<>])\s?$")
_WORD_BEFORE = re.compile(r"([^\W\d_][\w+#.]{0,20})\s$")
_UNIT = re.compile(
    r"\s?(?:%|percent|ms|s|[kmgt]i?b|million|billion|times|x|seconds?|minutes?|hours?|points?)\b", re.IGNORECASE
)
_BETWEEN = re.compile(r"\s?(?:to|and|or|,|–|-|->|→|/)\s?")
_CALENDAR = re.compile(r"20\d\d\.\d{1,2}")
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff\u0e31-\u0e4e"
_TAG = re.compile(rf"(?<![^\W{_DENSE}])(?<![&#/\0])[#＃](?=[^\W\d_])([\w{_MARKS}]{{2,}})")
_HEX = re.compile(r"(?=[0-9a-f]*\d)[0-9a-f]{3,8}|([0-9a-f])\1{2,7}", re.IGNORECASE)
_MENTION = re.compile(r"(?<![\w@/.+={\0-])@([A-Za-zÀ-ɏ_][\w-]{1,38})(?![\w(@/]|\.\w)")
_CODE = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")


def _whole(start: int, end: int, kind: EntityType | None) -> Found:
    return Found(start, end, kind, (start, end))


def _urls(text: str) -> Iterator[Found]:
    for place in _URL.finditer(text):
        name = place[0].rstrip(_TRAILING)
        yield _whole(place.start(), place.start() + len(name), EntityType.URL)


def _emails(text: str) -> Iterator[Found]:
    for place in _EMAIL.finditer(text):
        yield _whole(place.start(), place.end(), EntityType.EMAIL)


def _windows(text: str) -> Iterator[Found]:
    for place in _WINDOWS.finditer(text):
        name = place[0].rstrip(".,;!)")
        yield _whole(place.start(), place.start() + len(name), EntityType.FILE)


def _files(text: str) -> Iterator[Found]:
    for place in _RUN.finditer(text):
        name = place[0].rstrip(".-+~@")
        start = place.start()
        if name and name[0] in "+-@~" and not name.startswith("~/"):
            start += len(name) - len(name.lstrip("+-@~"))
            name = name.lstrip("+-@~") if place[0][0] != "@" else ""
        called = text[place.end() : place.end() + 1] == "("
        if "/" in name:
            if _is_path(name):
                yield _whole(start, start + len(name), EntityType.FILE)
        elif "." in name[1:] and name.lower().endswith(".js") and name[:-3].lower() in SCRIPT_LIBRARIES:
            yield _whole(start, start + len(name), None)
        elif name and not called and _is_file(name):
            yield _whole(start, start + len(name), EntityType.FILE)


def _is_path(name: str) -> bool:
    """Say whether a run with slashes is a path: relative, under a known root or folder, or ending in a file."""
    steps = [one for one in name.split("/") if one]
    if not steps or not any(letter.isalpha() for letter in name):
        return False
    if name.startswith(("./", "../", "~/")):
        return True
    last = steps[-1]
    filed = _is_file(last) or ("." in last[1:] and last.rpartition(".")[2].lower() in FILE_ENDINGS)
    if name.startswith("/"):
        return filed or (steps[0] in ROOTS and len(steps) > 1)
    folder = len(steps) > 1 and (steps[0] == "src" or (steps[0][0] == "." and len(steps[0]) > 2))
    return folder or (filed and len(steps) > 1) or (steps[0] in FOLDERS and len(steps) > 1 + (not name.endswith("/")))


def _is_file(name: str) -> bool:
    """Say whether a name without slashes is a file's."""
    if name in FILE_NAMES or name.startswith(("Dockerfile.", "Makefile.")) or _HIDDEN.fullmatch(name):
        return True
    stem, dot, ending = name.rpartition(".")
    if not dot or ending.lower() not in BARE_ENDINGS or not any(one.isalnum() for one in stem):
        return False
    return ending != "log" or stem.lower() not in LOGGING


def _tickets(text: str) -> Iterator[Found]:
    for place in _ISSUE.finditer(text):
        yield _whole(place.start(), place.end(), EntityType.TICKET)


def _keys(text: str) -> Iterator[Found]:
    for place in _TICKET.finditer(text):
        yield _whole(place.start(), place.end(), None if place[1] in NO_TICKET else EntityType.TICKET)


def _numbers(text: str) -> Iterator[Found]:
    for place in _NUMBERED.finditer(text):
        before = text[max(place.start() - 30, 0) : place.start()]
        if _COLOUR.search(before) or (len(place[1]) == 1 and not _ASKED.search(before)) or place[1] == "000":
            continue
        yield _whole(place.start(), place.end(), EntityType.TICKET)


def _versions(text: str) -> Iterator[Found]:
    last = -1
    for place in _VERSION.finditer(text):
        follows = last >= 0 and place.start() - last <= 5 and bool(_BETWEEN.fullmatch(text[last : place.start()]))
        if _is_version(text, place, follows):
            last = place.end()
            yield _whole(place.start(), place.end(), EntityType.VERSION)


def _is_version(text: str, place: re.Match[str], follows: bool) -> bool:
    """Say whether digits and dots are a version: one that says so, or three parts, or two in fitting company."""
    name = place[0]
    if name[0] in "vV":
        return True
    if name.count(".") > 1:
        return not (_DATE.fullmatch(name) or _AMOUNT.fullmatch(name))
    if follows:
        return not _UNIT.match(text, place.end())
    before = text[max(place.start() - 30, 0) : place.start()]
    word = _WORD_BEFORE.search(before)
    known = word is not None and word[1].lower().rstrip(".") in PRODUCTS
    yearly = word is not None and word[1][0].isupper() and len(word[1]) > 3 and _CALENDAR.fullmatch(name)
    return bool(known or yearly or _OPERATOR.search(before)) and not _UNIT.match(text, place.end())


def _hashtags(text: str) -> Iterator[Found]:
    for place in _TAG.finditer(text):
        linked = text[max(place.start() - 2, 0) : place.start()] == "]("
        if not (linked or place[1] in NO_HASHTAG or _HEX.fullmatch(place[1])):
            yield _whole(place.start(), place.end(), EntityType.HASHTAG)


def _named(text: str) -> Iterator[Found]:
    for start, end, taken in identifiers(text):
        yield _whole(start, end, EntityType.IDENTIFIER if taken else None)


def _code(text: str) -> Iterator[Found]:
    for place in _CODE.finditer(text):
        start, end = place.span(1)
        if place[1].endswith("()"):
            end -= 2
        name = text[start:end]
        single = 1 < len(name) <= 64 and not any(one.isspace() or one == "\0" for one in name)
        kind = EntityType.IDENTIFIER if single and any(one.isalpha() for one in name) else None
        yield Found(start, end, kind, place.span())


def _mentions(text: str) -> Iterator[Found]:
    for place in _MENTION.finditer(text):
        first, after = place.start() == 0 or text[place.start() - 1] in "\n\t ", text[place.end() : place.end() + 1]
        noted = (
            first
            and after == "\n"
            and not text[max(place.start() - 200, 0) : place.start()].rpartition("\n")[2].strip()
        )
        kind = None if noted or place[1].lower() in NO_MENTION else EntityType.PERSON
        yield Found(*place.span(1), kind, place.span())


MARKS = (
    *(Mark(find) for find in (_urls, _emails, _windows, _tickets, _files, _keys, _numbers, _versions, _named, _code)),
    *(Mark(find, prose=True) for find in (_hashtags, _mentions)),
)
