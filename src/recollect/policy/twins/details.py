"""Details: a sentence as the things that must agree before two sentences say the same.

Numbers with their units, dates, names, words that deny, restrict or doubt, and the plain words by their stems.
The word lists are English, with the commonest negations of other languages. Nothing here knows of memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from recollect.policy import scripts
from recollect.policy.letters import fold
from recollect.policy.terms import STOP_WORDS
from recollect.policy.twins.numbers import dated, quantity
from recollect.policy.twins.words import ALIKE, CASED, DENYING_CHARACTERS, EMPTY, ENGLISH, LINKS, POLAR


class Kind(StrEnum):
    """What a word does in its sentence."""

    WORD = "word"
    NAME = "name"
    NUMBER = "number"
    LINK = "link"
    POLAR = "polar"


@dataclass(frozen=True, slots=True)
class Token:
    """One word in the form that is compared; `single` says that a or an stands before it, `cut` a comma."""

    text: str
    kind: Kind
    single: bool = False
    cut: bool = False

    @property
    def telling(self) -> bool:
        """Say whether the word carries meaning by itself."""
        return self.kind in (Kind.WORD, Kind.NAME, Kind.NUMBER)


class Sentence(NamedTuple):
    """One sentence taken apart; the word lists speak for it only if it is `english`."""

    tokens: tuple[Token, ...]
    english: bool

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the words alone."""
        return tuple(one.text for one in self.tokens)


_BREAK = re.compile(r"(?<=[.!?…])[\"'”’)\]]{0,3}[^\S\n]{1,20}|[^\S\n]{0,20}\n|(?<=[。！？।؟۔])")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:[^\W\d_]|[^\W\d_]\.[^\W\d_]|Mrs?|Ms|Dr|Prof|St|vs|etc|cf|approx|No|Nr|Jr|Sr|Inc|Ltd|Co|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]{0,8}(?:`{3}|~{3})", re.MULTILINE)
_OPENING = re.compile(
    r"(?:[\s>*•–]{1,20}|-\s|#{1,6}\s|\d{1,3}[.)]\s|"
    r"(?:note that|note:|note -|remember that|remember:|remember,|fyi,?|reminder:|info:|fact:)(?=\s))*",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"[A-Za-z][A-Za-z+.-]{1,15}://\S+"
    r"|(?:(?<![^\s(])[-−])?[$€£¥₹@#]?\.?[^\W_]+(?:(?:[./:@'’\\+\-&,]|_+)[^\W_]+)*(?:\+\+|°[CF]?|[+#%])?"
    r"|[<>=≤≥≈→±×]+|[^\w\s.!:\"'“”‘’()\[\]{}*`_~\-–—…|\\/#@^]"
)
_SIGN = re.compile(r"(?<!\w)\.\w+|\w+(?:[.:/@'’,\\\-]\w+)*|[^\w\s.,;:!\"'“”‘’*`…。！、，()]")
_SHORT = {"n't": "not", "'re": "are", "'ll": "will", "'ve": "have", "'d": "would", "'m": "am"}
_BEING = frozenset("it that he she there what who where here".split())
_PAST_AFTER = frozenset(("be", "was", "have", "had", "get", "got"))
_ISE = re.compile(r"is(e[ds]?|ing|ations?)$")
_SHORTLY = 500  # characters of a sentence that is worth keeping in mind: one new text meets many old ones
_VOWEL = re.compile(r"[aeiouy]")
_INNER = re.compile(r"[./:@_\\#]")


def units(text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences and lines of `text`, a fenced block of code as one, blanks left out."""
    spans: list[tuple[int, int]] = []
    fences = [place.start() for place in _FENCE.finditer(text)]
    start = 0
    for opening, closing in zip(fences[::2], [*fences[1::2], len(text)], strict=False):
        spans += _sentences(text, start, opening)
        end = text.find("\n", closing)
        start = len(text) if end < 0 else end
        spans += _trimmed(text, opening, start)
    spans += _sentences(text, start, len(text))
    return spans


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    first = start
    for place in _BREAK.finditer(text, start, end):
        short = "\n" not in place[0] and _ABBREVIATED.search(text[max(first, place.start() - 10) : place.start()])
        if place.start() <= first or short:
            continue
        yield from _trimmed(text, first, place.end())
        first = place.end()
    yield from _trimmed(text, first, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    if stripped := piece.strip():
        begin = start + len(piece) - len(piece.lstrip())
        yield begin, begin + len(stripped)


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of `text`."""
    return [text[start:end] for start, end in units(text)]


def bare(sentence: str) -> str:
    """Return a sentence without what opens a list's line or a note."""
    place = _OPENING.match(sentence)
    return sentence[place.end() :] if place and place.end() < len(sentence) else sentence


def key(sentence: str) -> tuple[str, ...]:
    """Return every word and sign of a sentence, without case and the marks of its ends: what reads the same.

    A block of code is its own text. A word in capitals stays so where it would read as another: US is not us.
    """
    if _FENCE.match(sentence):
        return (sentence,)
    loud = sentence.isupper()
    return tuple(one if not loud and _is_cased(one) else fold(one) for one in _SIGN.findall(bare(sentence)))


def _is_cased(word: str) -> bool:
    return word in CASED or (word.isupper() and len(word) > 1 and word.lower() in STOP_WORDS)


def read(sentence: str) -> Sentence:
    """Take one sentence apart; of a block of code nothing is compared but the whole."""
    if _FENCE.match(sentence):
        return Sentence((), english=False)
    return _read(sentence) if len(sentence) <= _SHORTLY else _read.__wrapped__(sentence)


@lru_cache(maxsize=2_000)
def _read(sentence: str) -> Sentence:
    plain = not scripts.holds_dense(sentence)
    return Sentence(tokens(sentence), plain and any(one in ENGLISH for one in fold(sentence).split()))


def tokens(sentence: str) -> tuple[Token, ...]:
    """Return the words of one sentence in the form that is compared, without those that say nothing.

    Numbers and dates are in one written form, words are free of endings, n't is not, be is dropped before -ing, a
    verb's past is marked, and a question ends in its mark.
    """
    found: list[Token] = []
    words, cuts = _words(bare(sentence))
    at, single, cut = 0, False, False
    while at < len(words):
        cut = cut or cuts[at]
        made, taken = _made(words, at, found)
        for text, kind in made:
            found.append(Token(text, kind, single, cut))
            single = cut = False
        single = (single and not made) or words[at].lower() in ("a", "an")
        at += taken
    return tuple(found)


def _words(sentence: str) -> tuple[list[str], list[bool]]:
    """Return the words as written, contractions and compounds taken apart, and before which a comma stands."""
    words: list[str] = []
    cuts: list[bool] = []
    cut = False
    for place in _TOKEN.finditer(sentence):
        if place[0] in ",;":
            cut = True
            continue
        for word in _apart(place[0]):
            words.append(word)
            cuts.append(cut)
            cut = False
    return words, cuts


def _apart(word: str) -> list[str]:
    """Take don't, Maria's, well-known, 5-day and runs of scripts without spaces apart; names with marks stay whole."""
    word = word.replace("’", "'") if "’" in word else word
    folded = word.lower()
    if folded in ("cannot", "can't"):
        return ["can", "not"]
    if folded == "won't":
        return ["will", "not"]
    if "'" in word:
        for end, meant in _SHORT.items():
            if folded.endswith(end) and len(folded) > len(end):
                return [word[: -len(end)], meant]
        if folded.endswith("'s"):
            return [word[:-2], "is"] if folded[:-2] in _BEING else [word[:-2]]
    if "://" not in word and not word.isascii() and scripts.holds_dense(word):
        return [one for part in scripts.segments(word) for one in (part if scripts.is_dense(part) else [part])]
    parts = word.split("-")
    plain = len(parts) > 1 and all(part.isalpha() for part in parts[1:]) and (parts[0].isalnum())
    if plain and folded not in ALIKE and not (len(parts) == 2 and parts[1].isupper() and parts[0].isdigit()):
        return parts
    return [word]


def _made(words: list[str], at: int, before: list[Token]) -> tuple[list[tuple[str, Kind]], int]:
    """Return the tokens of the word or words at `at`, none for an empty one, and how many words they took."""
    if date := dated(words, at):
        return [(one, Kind.NUMBER) for one in date[0]], date[1]
    if number := quantity(words, at):
        return [(number[0], Kind.NUMBER)], number[1]
    folded = "and" if words[at] == "&" else fold(words[at])
    if folded in EMPTY or folded == "'s":
        return [], 1
    if folded == "?" or folded in POLAR or folded in DENYING_CHARACTERS:
        return [(ALIKE.get(folded, folded), Kind.POLAR)], 1
    if folded in LINKS:
        return [(folded, Kind.LINK)], 1
    if folded in ("is", "are", "am", "be", "been") and _goes_on(words, at):
        return [], 1
    return [(_normal(folded, before), _kind(words[at], at))], 1


def _goes_on(words: list[str], at: int) -> bool:
    """Say whether be only helps a word in -ing: is playing, is not really playing."""
    following = (one.lower() for one in words[at + 1 : at + 4])
    after = next((one for one in following if one not in EMPTY and one not in ("not", "being")), "")
    return after.endswith("ing") and len(after) > 4 and after not in ("nothing", "something", "anything", "morning")


def _normal(folded: str, before: list[Token]) -> str:
    if folded in ALIKE:
        return ALIKE[folded]
    if _INNER.search(folded) or not folded.isalpha():
        return folded
    base = uninflected(_ISE.sub(r"iz\1", folded) if len(folded) > 6 else folded)
    base = _BASES.get(base, base)
    past = folded.endswith("ed") and len(folded) > 3 and not any(one.text in _PAST_AFTER for one in before[-2:])
    return f"{base}~ed" if past else base


@lru_cache(maxsize=50_000)
def uninflected(word: str) -> str:
    """Return a word without a plural's or a verb's ending, and no more: a Porter stem takes important for import."""
    base = word
    if word.endswith(("ies", "ied")) and len(word) > 4:
        base = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is", "news")) and len(word) > 3:
        base = word[:-1]
    elif (word.endswith("ing") and len(word) > 5) or (word.endswith("ed") and word[-3:] != "eed" and len(word) > 3):
        cut = word[:-3] if word.endswith("ing") else word[:-2]
        base = cut if _VOWEL.search(cut) else word
    base = base[:-1] if base.endswith("e") and len(base) > 2 else base
    return base[:-1] if len(base) > 3 and base[-1] == base[-2] and base.isascii() else base


_BASES = {uninflected(word): meant for word, meant in ALIKE.items() if len(word) > 2}


def _kind(word: str, at: int) -> Kind:
    if any(letter.isdigit() for letter in word):
        return Kind.NUMBER
    marked = bool(_INNER.search(word)) or (word[1:] != word[1:].lower())
    return Kind.NAME if marked or (at > 0 and word[0].isupper() and word != "I") else Kind.WORD
