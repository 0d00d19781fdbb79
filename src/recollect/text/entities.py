"""Entities: what a text names, found without a model by a small set of rules, precision before recall.

First by shape: URLs, e-mail addresses, files, tickets (ABC-123, #123), versions (v1.2, 1.2.3, and 3.11 after a
product's name), hashtags, mentions of people, identifiers (in backticks, camelCase, snake_case, dotted.names,
calls(), --flags, hashes). Then by capital letters: a person needs evidence (a title, a known given name, a verb of
people beside it), a place is one that is known, an organisation has a suffix such as Ltd or University, a short word
in capitals such as OTA is a concept, and any other name is a thing. A script without capital letters has only shapes.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

from recollect.domain.enums import EntityType
from recollect.domain.results import Entity
from recollect.text.speaker_names import transcript_speakers
from recollect.text.terms import STOP_WORDS
from recollect.text.writing_systems import fold

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

_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
_OWN = re.compile(r"['’]s?$")
_PASCAL = re.compile(r"[A-Z]\w*[a-z][A-Z]|[A-Z]{2,}[a-z]{2}")
_NATIONALITY = re.compile(r".*(?:ish|ese|lian|nian|sian|tian|gian)s?")
_NOT_IN_HEADINGS = (EntityType.ORGANISATION, EntityType.THING, EntityType.CONCEPT)
_OPENERS = frozenset("\0.!?:;\"“”„«»'‘’()[]*-–—•>#|\t\n")
_SENTENCE = re.compile("[,.;]")
_LONGEST_NAME = 6  # words
_LONGEST_ACRONYM = 5  # letters
_NO_NAME = STOP_WORDS | WORDS["not_names"]
_PLACED, _PRODUCTS, _TITLES = WORDS["place_words"], WORDS["products"], WORDS["titles"]

_OF_PROSE = (EntityType.HASHTAG, EntityType.PERSON)
_LONGEST = 512  # characters of a name


class Found(NamedTuple):
    """A name from `start` to `end` of a text; without a type it is none, but holds nothing else either."""

    start: int
    end: int
    type: EntityType | None


def _any(name: str) -> str:
    return "|".join(sorted(WORDS[name]))


_VERSIONED = re.compile(rf"(?:[<>=~!^]=?=?|\b(?:{_any('products')}|version|release|fw))\s?$", re.IGNORECASE)
_FILE = re.compile(
    rf"\w(?:[\w.+-]*\w)?\.(?:{_any('file_endings')})|(?:{_any('file_names')})(?:\.\w+)?"
    r"|\.(?:env|git|venv|[a-z-]{1,20}(?:rc|ignore|attributes|config|versions))(?:\.[a-z]{1,20}){0,2}"
)
_LIBRARY = re.compile(rf"(?:[A-Z]\w*|{_any('products')})\.js")


def shapes(text: str) -> Iterator[Found]:
    """Yield what a text names by its shape, in order."""
    for place in _SHAPE.finditer(text):
        kind, name, (start, end) = place.lastgroup or "", place[0], place.span()
        if kind == "code":
            yield from _code(name, start)
        elif kind == "run":
            yield from _run(name, start)
        elif kind == "version":
            yield Found(start, end, EntityType.VERSION if _is_version(name, text[max(start - 30, 0) : start]) else None)
        elif kind == "person":
            yield Found(start + 1, end, None if name[1:].lower() in WORDS["not_mentions"] else EntityType.PERSON)
        elif kind == "ticket":
            known = name.partition("-")[0] in WORDS["not_tickets"] or name.strip("#0") in ("", "1")
            yield Found(start, end, None if known else EntityType.TICKET)
        else:
            yield Found(start, start + len(name.rstrip(_TRAILING)), EntityType(kind))


def fences(text: str) -> list[tuple[int, int]]:
    """Return where fenced blocks of code begin and end."""
    marks = [place.start() for place in _FENCE.finditer(text)]
    return list(zip(marks[::2], [*marks[1::2], len(text)], strict=False))


def _code(name: str, start: int) -> Iterator[Found]:
    """Yield what stands between backticks: a single word is an identifier, unless it is something else."""
    inner = name[1:-1]
    found = [Found(start + 1 + one.start, start + 1 + one.end, one.type) for one in shapes(inner)]
    whole = any(one.end - one.start == len(inner) and one.type for one in found)
    if not whole and len(inner) <= 64 and re.fullmatch(r"(?:[^\w\s\0]|\d)*+[^\W\d][^\s\0]*", inner):
        found = [Found(start + 1, start + 1 + len(inner.removesuffix("()")), EntityType.IDENTIFIER)]
    yield from found


def _run(name: str, start: int) -> Iterator[Found]:
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
        kind = EntityType.IDENTIFIER if known and any(one.isalpha() for one in name) else None
    if kind is not None:
        yield Found(start, start + len(name), kind)


def _is_path(name: str) -> bool:
    """Say whether a run with slashes is a path: relative, in a folder that is known, or ending in a file."""
    steps = name.strip("/").split("/")
    if not any(one.isalpha() for one in name):
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


class Word(NamedTuple):
    """One word of a line as written, without its 's, and folded."""

    start: int
    end: int
    text: str
    folded: str
    owning: bool

    @property
    def capital(self) -> bool:
        """Say whether the word begins with a capital."""
        return self.text[0].isupper() and self.text[:2] not in ("I'", "I’")

    @property
    def loud(self) -> bool:
        """Say whether the word is in capitals."""
        return len(self.text) > 1 and self.text.isupper()

    @property
    def skipped(self) -> bool:
        """Say whether the word is never a part of a name."""
        return self.folded in _NO_NAME or self.folded.removesuffix("s") in _NO_NAME


def names(prose: str) -> Iterator[Found]:
    """Yield the names in a text without its code."""
    for name in transcript_speakers(prose):
        if fold(name) not in _NO_NAME:
            start = prose.find(f"{name}:")
            yield Found(start, start + len(name), EntityType.PERSON)
    at = 0
    for line in prose.splitlines(keepends=True):
        words = [_word(place, at) for place in _WORD.finditer(line)]
        plain = any(not one.capital and one.folded not in STOP_WORDS for one in words)
        heading = len(words) > 2 and not plain and not _SENTENCE.search(line)
        first = 0
        while first < len(words):
            end = _chain(prose, words, first) if words[first].capital else first + 1
            found = _name(prose, words, first, end)
            if found and not (heading and found.type in _NOT_IN_HEADINGS):
                yield found
            first = end
        at += len(line)


def _word(place: re.Match[str], at: int) -> Word:
    owner = _OWN.search(place[0])
    text = place[0][: owner.start()] if owner else place[0]
    return Word(at + place.start(), at + place.start() + len(text), text, fold(text), owner is not None)


def _chain(prose: str, words: Sequence[Word], first: int) -> int:
    """Return where the capitalised words from `first` on end: joined by a space, an initial's stop, a particle, &."""
    end = first + 1
    while end < min(len(words), first + _LONGEST_NAME) and not words[end - 1].owning:
        last, gap = words[end - 1], prose[words[end - 1].end : words[end].start]
        if gap not in (" ", " & ") and not (gap == ". " and (len(last.text) == 1 or last.folded in _TITLES)):
            break
        joins = words[end].folded in WORDS["particles"] or (
            words[end].text == "of" and last.folded in WORDS["organisations"]
        )
        if not words[end].capital and not (joins and end + 1 < len(words) and words[end + 1].capital):
            break
        end += 1
    return end


def _name(prose: str, words: Sequence[Word], first: int, end: int) -> Found | None:
    """Return what the capitalised words from `first` to `end` name, less those that are never a part of a name."""
    opens = prose[max(words[first].start - 3, 0) : words[first].start].rstrip(" ")[-1:] in ("", *_OPENERS)
    while first < end and words[first].skipped:
        first, opens = first + 1, False
    while end > first and words[end - 1].skipped:
        end -= 1
    chain = words[first:end]
    if not chain or not chain[0].capital:
        return None
    before = words[first - 1].folded if first and prose[words[first - 1].end : chain[0].start] in (" ", ". ") else ""
    after = words[end].folded if end < len(words) and prose[chain[-1].end : words[end].start] == " " else ""
    kind = _known(chain, before)
    if kind is None and opens and len(chain) > 1 and (kind := _known(chain[1:], chain[0].folded)):
        chain = chain[1:]  # a verb or an adjective that only opens the sentence
    kind = kind or _likely(chain, before, after, opens)
    titled = kind is EntityType.PERSON and len(chain) > 1 and chain[0].folded in _TITLES
    return Found(chain[titled].start, chain[-1].end, kind) if kind else None


def _known(chain: Sequence[Word], before: str) -> EntityType | None:
    """Return what a chain of capitalised words names, as far as the word lists know."""
    first, single, whole = chain[0].folded, len(chain) == 1, " ".join(one.folded for one in chain)
    if before in _TITLES or (first in _TITLES and not single):
        return EntityType.PERSON
    if whole in WORDS["places"]:
        return EntityType.PLACE
    if not single and any(one.folded in WORDS["organisations"] for one in chain):
        return EntityType.ORGANISATION
    if first in WORDS["given_names"] and not chain[0].loud and before not in ("the", "a", "an"):
        return EntityType.PERSON
    if not single and not _PLACED.isdisjoint((first, chain[-1].folded)):
        return EntityType.PLACE
    if whole in _PRODUCTS:
        return EntityType.THING
    if not (single and chain[0].loud):
        return None
    if sum(one.isdigit() for one in whole) > 1:  # the number of a part or a model
        return EntityType.THING
    return EntityType.CONCEPT if len(whole) <= _LONGEST_ACRONYM else None


def _likely(chain: Sequence[Word], before: str, after: str, opens: bool) -> EntityType | None:
    """Return what unknown capitalised words name: a person where words for people stand beside them, else a thing."""
    single, pascal = len(chain) == 1, any(_PASCAL.match(one.text) for one in chain)
    if len(chain[0].text) < 2 or all(one.loud for one in chain) or (single and opens and not pascal):
        return None
    if single and _NATIONALITY.fullmatch(chain[0].folded):
        return None
    human = after in WORDS["person_verbs"] or (before in WORDS["before_person"] and not opens)
    if human and not pascal and len(chain) < 4 and not any(one.loud or one.folded in _PRODUCTS for one in chain):
        return EntityType.PERSON
    return EntityType.THING


def entities(text: str, limit: int = 64) -> tuple[Entity, ...]:
    """Return the first `limit` things that `text` names, in order of appearance, each once by type and folded name.

    Names are as written, less the quotes and backticks around them, an @ before a person and the () of a call.
    """
    whole = text.replace("\0", " ")
    prose = _without(whole, fences(whole))
    found = [one for one in shapes(whole) if one.type not in _OF_PROSE or prose[one.start] != "\0"]
    found += names(_without(prose, ((one.start, one.end) for one in found)))
    unique: dict[tuple[str, str], Entity] = {}
    for one in sorted(found, key=lambda one: one.start):
        name = text[one.start : one.end]
        if one.type is not None and len(name) <= _LONGEST:
            unique.setdefault((one.type, fold(name)), Entity(name=name, type=one.type))
    for _, name in [key for key in unique if key[0] == EntityType.PERSON]:
        for kind in (EntityType.THING, EntityType.CONCEPT):
            unique.pop((kind, name), None)
    return tuple(unique.values())[: max(limit, 0)]


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return `text` with NUL in place of the spans, which are in order."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += [text[at:start], "\0" * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])
