"""Scripts: the words of a text in any writing system, and where a line may be cut.

Where words stand without spaces between them (or particles stick to them, as in Korean), a stretch is taken apart
into units, single characters with their marks, and pairs of neighbours, as Lucene's CJK analysis does. An emoji is
the words of its Unicode name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby, pairwise

from recollect.text.normalization import limit_marks

_BLOCKS = (*range(0x483, 0x1D00), *range(0x302A, 0x30FF), *range(0xA66F, 0xAC00))  # where marks belong to words
_MARKS = [code for code in _BLOCKS if unicodedata.category(chr(code)).startswith("M")]
_RUNS = [[code for _, code in run] for _, run in groupby(enumerate(_MARKS), lambda place: place[1] - place[0])]
_MARK = "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in _RUNS)

_HAN = "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30fc"
_KATAKANA = "\u3099\u309a\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"
_SOUTHERN = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
_DENSE = re.compile(
    "("
    + "|".join(f"[{letters}]+" for letters in (_HAN, _KATAKANA, _HIRAGANA, _HANGUL, "\u3100-\u312f", _SOUTHERN))
    + ")"
)
_KANA = re.compile(f"[{_HIRAGANA}]+")
_WORD = re.compile(rf"\w[\w{_MARK}]*")
_UNIT = re.compile(f".[{_MARK}]{{0,8}}")

_EMOJI = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}"  # a flag
    "|[\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u2600-\u2767\u2795-\u2797\u2b50\u2b55\U0001f000-\U0001f0ff"
    "\U0001f300-\U0001f3fa\U0001f400-\U0001faff]"
)
_FLAG = "\U0001f1e6"
_EMOJI_FILLERS = frozenset(["and", "black", "face", "heavy", "of", "sign", "symbol", "the", "white", "with"])

_ATTACHED = f"{_MARK}\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f"
_ATTACHED += "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"  # skin tones, and the tags of a region's flag
_CLUSTER = re.compile(
    f"(?:[\U0001f1e6-\U0001f1ff]{{2}}|.)(?:[{_ATTACHED}]|\u200d+(?:[\U0001f1e6-\U0001f1ff]{{2}}|[^\u200d])?)*",
    re.DOTALL,
)


def words(folded: str, *, every: bool) -> Iterable[str]:
    """Return the words of a folded text in order: of scripts without spaces the pairs, and the units too if `every`."""
    found: list[str] = _WORD.findall(folded)
    return found if folded.isascii() else _cut_words(found, every=every)


def _cut_words(found: Iterable[str], *, every: bool) -> Iterator[str]:
    """Yield words, and in the place of those in scripts without spaces their pairs, and the units too if `every`."""
    for word in found:
        if word.isascii():
            yield word
            continue
        for segment in script_segments(word):
            units = [unit for unit in _UNIT.findall(segment) if unit[0].isalnum()] if is_dense(segment) else [segment]
            if every or len(units) == 1:
                yield from units[:1]
            for first, second in pairwise(units):
                yield from (first + second, second) if every else (first + second,)


def script_segments(word: str) -> list[str]:
    """Return the pieces of a word, cut where a script without spaces begins or ends: PostgreSQL数据库 is two."""
    return [segment for segment in _DENSE.split(word) if segment]


def dense_runs(folded: str) -> list[str]:
    """Return the stretches of three or more units without spaces, whole."""
    return [run for run in _DENSE.findall(folded) if len(_UNIT.findall(run)) > 2]


@lru_cache(maxsize=100_000)
def is_dense(text: str) -> bool:
    """Return whether `text` begins in a script in which units and pairs stand for words."""
    return not text.isascii() and _DENSE.match(text) is not None


def holds_dense(text: str) -> bool:
    """Return whether any part of `text` is in a script without spaces."""
    return not text.isascii() and _DENSE.search(text) is not None


def is_single_kana(word: str) -> bool:
    """Return whether `word` is a single kana: a particle, or the end of an inflected word."""
    return len(word) == 1 and _KANA.match(word) is not None


def word_probability(word: str, known: bool) -> float:
    """Return the probability (0–1) that `word`, a pair of units, is a word; `known` says that the store holds it.

    A pair may stand across two words, and mostly does when it is not stored; hiragana are mostly grammar.
    """
    if not is_dense(word):
        return 1.0
    return 0.25 if _KANA.fullmatch(word) or not (known or len(word) == 1) else 1.0


def emoji(text: str) -> tuple[str, ...]:
    """Return the words for the emoji in `text`: rocket for 🚀, and for a flag the flag itself too."""
    return () if text.isascii() else tuple(word for sign in _EMOJI.findall(text) for word in _words_for_emoji(sign))


def emoji_as_words(text: str) -> str:
    """Return `text` with emoji as words and letters in full width: 🚀 is rocket, ﾃﾞｰﾀ is データ.

    It is for a model that knows neither.
    """
    if text.isascii():
        return text
    named = _EMOJI.sub(
        lambda match: f" {' '.join(word for word in _words_for_emoji(match[0]) if word.isascii())} ", text
    )
    return unicodedata.normalize("NFKC", limit_marks(text if named == text else " ".join(named.split())))


@lru_cache(maxsize=5_000)
def _words_for_emoji(sign: str) -> tuple[str, ...]:
    """Return the words of an emoji's Unicode name, for a flag `flag` and the flag itself."""
    if sign[0] >= _FLAG and len(sign) == 2:
        return "flag", sign
    name = unicodedata.name(sign, "").lower().replace("-", " ").split()
    return tuple(word for word in name if word not in _EMOJI_FILLERS) or tuple(name) or (sign,)


def is_latin(text: str) -> bool:
    """Say whether `text` has a Latin letter, or no letter at all."""
    letters = "" if text.isascii() else [character for character in text if character.isalpha()]
    return not letters or any(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)


def cut_to_width(text: str, columns: int) -> str:
    """Return the longest beginning of `text` at most `columns` wide that tears no character from its marks.

    Ideographs and emoji are two columns wide.
    """
    if len(text) * 2 <= columns or (text.isascii() and len(text) <= columns):
        return text
    if text[: columns + 1].isascii():
        return text[:columns]
    end, wide = 0, 0
    for cluster in _CLUSTER.finditer(text):
        wide += max(len(cluster[0]), 2 if unicodedata.east_asian_width(cluster[0][0]) in "WF" else 1)
        if wide > columns:
            return text[: end or columns]
        end = cluster.end()
    return text
