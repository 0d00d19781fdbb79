"""Duplicates: whether two texts say the same, and one text in place of two that repeat each other.

Two texts say the same when they have the same words in the same order, once variants of spelling are set aside. So
every number, date, name, unit and negation agrees, and who does what to whom. In doubt they are two memories.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from recollect.text.normalization import limit_marks
from recollect.text.sentences import sentence_spans, sentences

_CONTRACTIONS = (
    (re.compile(r"[‘’]"), "'"),
    (re.compile(r"\b(?:can't|cannot)\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(r"'re\b", re.IGNORECASE), " are"),
    (re.compile(r"'ve\b", re.IGNORECASE), " have"),
    (re.compile(r"'ll\b", re.IGNORECASE), " will"),
    (re.compile(r"\bI'm\b", re.IGNORECASE), "I am"),
    (re.compile(r"\b(he|she|it|that|there|what|who|where)'s\b", re.IGNORECASE), r"\1 is"),
)
_OPENING = re.compile(
    r"^[ \t]*(?:(?:[-*•–]|#{1,6})[ \t]+)*(?:(?:note|remember|reminder|fyi)(?: that|:)\s)?", re.I | re.M
)
_BEFORE = "\"'“”„«»`([{"
_BEHIND = "\"'“”«»`)]}.,;:!?…。，、；：！"
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_AMOUNT = re.compile(r"([-+]?[\d.,]*\d)([^\W\d_]+|%)")
_ARTICLES = frozenset(("a", "an", "the"))
_BEING = frozenset(("is", "are", "am", "be"))
_UP_TO_TWENTY = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty"""
_NUMBERS = {word: str(number) for number, word in enumerate(_UP_TO_TWENTY.split())}
_VOWEL = re.compile(r"[aeiouy]")
_RESTRICTING = frozenset(
    """not no never none nobody nothing nor neither without unless except but only if until till instead rather
    hardly barely formerly anymore longer nicht kein keine nie ohne ne pas jamais sans nunca sin""".split()
)
_LONGEST = 60  # words of a sentence that may begin with another


def say_the_same(one: str, other: str) -> bool:
    """Say whether two texts say the same."""
    ours, theirs = _compared_words(one), _compared_words(other)
    if not ours or len(ours) != len(theirs):
        return one == other
    return all(map(_is_same_word, ours, theirs))


def says_all(old: str, new: str) -> bool:
    """Say whether each sentence of `new` has exactly the words of a sentence of `old`, in whatever order."""

    def bags(text: str) -> set[tuple[str, ...]]:
        """Return the compared words of each sentence, sorted, so that neither order counts."""
        return {tuple(sorted(_compared_words(sentence))) for sentence in sentences(text)}

    return bags(new) <= bags(old)


def merged_text(old: str, new: str) -> str:
    """Return `old` followed by the sentences of `new` that it does not say yet.

    A sentence that only adds to one of `old`, as "X and Y" does to "X", takes its place. Code blocks are left whole.
    """
    if "```" in old or "```" in new:
        return old if new in old else f"{old}\n{new}"
    text = old.strip()
    places = list(sentence_spans(text))
    known = [text[start:end] for start, end in places]
    both = list(known)
    whole = {_open_beginnings(one)[-1]: at for at, one in enumerate(known)}
    said = {beginning for one in known for beginning in _open_beginnings(one)}
    for sentence in sentences(new):
        beginnings = _open_beginnings(sentence)
        if beginnings[-1] in said:
            continue
        added_to = next((one for one in beginnings if one in whole), None)
        at = whole.pop(added_to) if added_to is not None else len(both)  # what took its place stays
        both[at : at + 1] = [sentence]
        whole[beginnings[-1]] = at
        said.update(beginnings)
    if both == known:
        return old
    if len(both) > 1 and "\n" not in text + new.strip():
        both = [_with_full_stop(one) for one in both]
    gaps = [text[end:start] for (_, end), (start, _) in pairwise(places)]
    more = len(both) - 1 - len(gaps)
    return _join_sentences(both, [*gaps, *["\n" if "\n" in text + new.strip() else " "] * more])


def _with_full_stop(sentence: str) -> str:
    """Return a sentence with its full stop, so that it does not run into the next."""
    return f"{sentence}." if sentence[-1].isascii() and sentence[-1].isalnum() else sentence


def _join_sentences(parts: list[str], gaps: list[str]) -> str:
    """Return the sentences with the gaps between them, or a line for each where they would run into each other."""
    text = "".join(map("".join, zip(parts, [*gaps, ""], strict=True)))
    return text if sentences(text) == parts else "\n".join(parts)


def _open_beginnings(sentence: str) -> list[tuple[str, ...]]:
    """Return the sentence's words, then each beginning of the sentence that its later words do not restrict."""
    words = tuple(_compared_words(sentence))
    if len(words) > _LONGEST:
        return [words]
    last = max((at for at, word in enumerate(words) if word in _RESTRICTING), default=0)
    return [*(words[:size] for size in range(last + 1, len(words))), words]


def _compared_words(text: str) -> list[str]:
    """Return the words and signs of a text in the one form in which texts are compared.

    Letter case, final marks, quotes, list marks, articles and contractions do not count. A word with an inner capital
    keeps it (US is not us, MB is not Mb), and so does each sign inside a word (C++, .env, src/a.py, 3.11, -5).
    """
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    found: list[str] = []
    for piece in _OPENING.sub("", _THOUSANDS.sub("", unicodedata.normalize("NFC", limit_marks(text)))).split():
        bare = piece.rstrip(_BEHIND)
        word = bare.lstrip(_BEFORE)
        amount = _AMOUNT.fullmatch(word)
        found += map(_uncased, amount.groups() if amount else [word] if word else [])
        found += ["?"] if "?" in piece[len(bare) :] else []
    spoken = [_NUMBERS.get(word, word) for word in found if word not in _ARTICLES]
    return [one for one, following in pairwise([*spoken, ""]) if not (one in _BEING and following.endswith("ing"))]


def _uncased(word: str) -> str:
    """Return the word with a small first letter, unless it has capitals further on, as names in code have."""
    return word.lower() if word[1:] == word[1:].lower() else word


def _is_same_word(one: str, other: str) -> bool:
    """Say whether two words are one, or one of them is the other in -ing: plays, playing."""
    return one == other or ("ing" in (one[-3:], other[-3:]) and _verb_stem(one) == _verb_stem(other))


def _verb_stem(word: str) -> str:
    """Return a verb without its -s or -ing."""
    base = word
    if word.endswith("ing") and len(word) > 5 and _VOWEL.search(word[:-3]):
        base = word[:-3]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        base = word[:-1]
    base = base[:-1] if base.endswith("e") and len(base) > 2 else base
    return base[:-1] if len(base) > 3 and base[-1] == base[-2] else base
