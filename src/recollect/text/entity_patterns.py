"""Things named by their shape; one pattern is tried at each place of a text, so that nothing is found inside another.

URLs, e-mail addresses, files, tickets (ABC-123, #123), versions (v1.2, 1.2.3, and 3.11 after a product's name),
hashtags, mentions of people, identifiers (in backticks, camelCase, snake_case, dotted.names, calls(), --flags, hashes).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from recollect.domain.enums import EntityType
from recollect.text.terms import STOP_WORDS

_LISTS = tomllib.loads((files("recollect.text") / "entity_words.toml").read_text(encoding="utf-8"))
WORDS = {name: frozenset(word.replace("_", " ") for word in words.split()) for name, words in _LISTS.items()}
"""The words that the rules know: endings of files, products, places, given names."""

_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff"  # written without spaces
_LETTER = rf"[^\W{_DENSE}]"
_URL_END = r"\s\0<>\"`|\\^{}()\[\]（）「」『』【】《》，。、；！？"
_URL = rf"(?:[^{_URL_END}]|\([^{_URL_END}]{{0,200}}\))"
_HOST = r"(?:[a-z0-9-]{1,63}\.){1,9}(?:com|org|net|io|dev|ai)"
_PRE = r"(?:[-.]?(?:alpha|beta|rc|dev|post|a|b)[.-]?\d{0,4})?"
_SHAPES = {
    "code": r"(?<!`)`[^`\n]{1,200}`(?!`)",
    "url": rf"(?<![A-Za-z0-9+.-])(?:[A-Za-z][A-Za-z0-9+.-]{{1,20}}://|www\.){_URL}+|git@[\w.-]{{1,100}}:[\w./~-]+"
    rf"|(?<![\w@./-]){_HOST}(?:/{_URL}*|(?![\w@-]|\.\w))",
    "email": r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9À-ɏ._%+-]{1,64}@(?:[A-Za-z0-9À-ɏ-]{1,63}\.){1,9}[A-Za-z]{2,24}",
    "ticket": r"(?<![\w./-])[\w.-]{1,39}/[\w.-]{1,100}#\d{1,7}(?!\w)|(?<![\w&#/])#(?!\d{6}\b)\d{1,7}(?![\w-])"
    r"|(?<![\w-])[A-Z][A-Z0-9]{1,9}-\d{1,6}(?!\w|-\w|\.\d)",
    "version": rf"(?<![\w.-])v\d{{1,4}}(?:\.\d{{1,6}}){{0,3}}{_PRE}(?!\w|\.\d)"
    rf"|(?<![\w.,/:-])\d{{1,4}}(?:\.\d{{1,6}}){{1,2}}{_PRE}(?![\w%°/:]|[.,]\d)",
    "hashtag": rf"(?<!{_LETTER})(?<![&#/(])[#＃](?!(?=\w*\d)[0-9a-fA-F]{{6}}\b)"
    r"(?=[^\W\d_])[\w\u0300-\u036f\u0900-\u0e4e]{2,64}",
    "person": r"(?<![\w@/.+={-])@[A-Za-zÀ-ɏ_][\w-]{1,38}(?![\w(@/]|\.\w)",
    "identifier": r"(?<![\w@])@[a-z0-9][\w.-]{0,60}/[a-z0-9][\w-]{0,100}"  # @scope/package
    r"|(?<![\w-])(?:--[A-Za-z][\w-]{2,63}|(?:RFC|PEP|CVE|CWE|ISO)[ -]?\d{1,5}(?:-\d{1,7})?|0x[0-9a-fA-F]{1,16}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]{0,39}\d)(?=\d{0,39}[a-f])[0-9a-f]{7,40})(?![\w-])",
    "run": rf"[A-Za-z]:\\[^\s\0<>:\"|?*`']+|(?:{_LETTER}|[.@+~/-])+(?:\(\))?",
}
_SHAPE = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _SHAPES.items()))
_FENCE = re.compile(r"^[ \t]{0,8}(?:`{3}|~{3})", re.MULTILINE)
_TRAILING = ".,:;!?'’”\"*~_…-+"
_LONGEST_RUN = 512

_DATE = re.compile(r"(?:\d{1,2}\.){2}(?:19|20)\d\d|\d\d\.\d\d\.\d\d|(?:19|20)\d\d\.\d\d\.\d\d|\d{1,3}(?:\.\d{3}){2}")
_IDENTIFIER = re.compile(
    r"_*[^\W_]+(?:_+[^\W_]+)+_*|__(?:init|main|name|file|all|call|repr|str|dict)__|[a-z][a-z0-9]+[A-Z]\w*"
)
_DOTTED = re.compile(r"[^\W\d]\w+(?:\.[^\W\d]\w+)+")


class Found(NamedTuple):
    """A name from `start` to `end` of a text; without a type it is none, but holds nothing else either."""

    start: int
    end: int
    type: EntityType | None


def _any_word_of(name: str) -> str:
    return "|".join(sorted(WORDS[name]))


_VERSIONED = re.compile(rf"(?:[<>=~!^]=?=?|\b(?:{_any_word_of('products')}|version|release|fw))\s?$", re.IGNORECASE)
_FILE = re.compile(
    rf"\w(?:[\w.+-]*\w)?\.(?:{_any_word_of('file_endings')})|(?:{_any_word_of('file_names')})(?:\.\w+)?"
    r"|\.(?:env|git|venv|[a-z-]{1,20}(?:rc|ignore|attributes|config|versions))(?:\.[a-z]{1,20}){0,2}"
)
_LIBRARY = re.compile(rf"(?:[A-Z]\w*|{_any_word_of('products')})\.js")


def shaped_entities(text: str) -> Iterator[Found]:
    """Yield the entities of a text that have a known shape, in order."""
    for place in _SHAPE.finditer(text):
        kind, name, (start, end) = place.lastgroup or "", place[0], place.span()
        if kind == "code":
            yield from _entities_in_backticks(name, start)
        elif kind == "run":
            yield from _file_or_identifier(name, start)
        elif kind == "version":
            yield Found(start, end, EntityType.VERSION if _is_version(name, text[max(start - 30, 0) : start]) else None)
        elif kind == "person":
            yield Found(start + 1, end, None if name[1:].lower() in WORDS["not_mentions"] else EntityType.PERSON)
        elif kind == "ticket":
            known = name.partition("-")[0] in WORDS["not_tickets"] or name.strip("#0") in ("", "1")
            yield Found(start, end, None if known else EntityType.TICKET)
        else:
            yield Found(start, start + len(name.rstrip(_TRAILING)), EntityType(kind))


def fence_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each fenced block of code."""
    marks = [place.start() for place in _FENCE.finditer(text)]
    return list(zip(marks[::2], [*marks[1::2], len(text)], strict=False))


def _entities_in_backticks(name: str, start: int) -> Iterator[Found]:
    """Yield the entities between backticks: a single word is an identifier, unless it has another shape."""
    inner = name[1:-1]
    found = [Found(start + 1 + shape.start, start + 1 + shape.end, shape.type) for shape in shaped_entities(inner)]
    whole = any(entity.end - entity.start == len(inner) and entity.type for entity in found)
    if not whole and len(inner) <= 64 and re.fullmatch(r"(?:[^\w\s\0]|\d)*+[^\W\d][^\s\0]*", inner):
        found = [Found(start + 1, start + 1 + len(inner.removesuffix("()")), EntityType.IDENTIFIER)]
    yield from found


def _file_or_identifier(name: str, start: int) -> Iterator[Found]:
    """Yield the file or identifier that a run of letters, digits and a few marks is."""
    if len(name) > _LONGEST_RUN:
        return
    called, name = name.endswith("()"), name.removesuffix("()").rstrip(_TRAILING.replace("_", ""))
    if not name.startswith("~/"):
        start, name = start + len(name) - len(name.lstrip("+-@~")), name.lstrip("+-@~")
    if "/" in name or "\\" in name:
        kind = EntityType.FILE if _is_path(name) else None
    elif _LIBRARY.fullmatch(name):
        kind = EntityType.THING
    elif _FILE.fullmatch(name) and not called:
        kind = EntityType.FILE
    else:
        steps = name.lower().split(".")
        dotted = _DOTTED.fullmatch(name) and STOP_WORDS.isdisjoint(steps) and (called or name[0].islower())
        known = dotted or called or any(map(_IDENTIFIER.fullmatch, name.split(".")))
        kind = EntityType.IDENTIFIER if known and any(character.isalpha() for character in name) else None
    if kind is not None:
        yield Found(start, start + len(name), kind)


def _is_path(name: str) -> bool:
    """Say whether a run with slashes is a path: relative, in a folder that is known, or ending in a file."""
    steps = name.strip("/").split("/")
    if not any(character.isalpha() for character in name):
        return False
    if name.startswith(("./", "../", "~/", "src/")) or "\\" in name or _FILE.fullmatch(steps[-1]):
        return True
    if (name[0] != "/" and name.endswith("/")) or name.startswith("."):
        return name.islower() and len(steps[0]) > 2
    return steps[0] in WORDS["folders"] and name.count("/") > 1


def _is_version(name: str, before: str) -> bool:
    """Say whether digits and dots are a version: v2, three parts, or two after a product or a comparison."""
    if name[0] == "v":
        return True
    return not _DATE.fullmatch(name) if name.count(".") > 1 else bool(_VERSIONED.search(before))
