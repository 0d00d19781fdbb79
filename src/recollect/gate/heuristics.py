"""Tells a value that looks like a real secret from a placeholder, a reference, a piece of code or a plain word.

Pure decisions over one string. Nothing here searches a text or keeps what it was shown.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from hashlib import sha256
from itertools import pairwise
from math import log2
from string import ascii_letters, digits
from typing import Final

from recollect.gate.tables import pattern, table

_LEET: Final = str.maketrans("013457@$", "oieastas")
_ENDS: Final = ".,;:!?*_`\"')]}"


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(table("words")[name].split())


def _core(value: str) -> str:
    return value.strip("*_").rstrip(".,;:!?)]}=")


def mixes_classes(value: str) -> bool:
    """Say whether upper case, lower case, digits and signs alternate as in no word, path or code."""
    if len(value) < 10 or pattern("template").match(value) or pattern("reference").match(value):
        return False
    classes = [0 if c.islower() else 1 if c.isupper() else 2 if c.isdigit() else 3 for c in value]
    if not {0, 1} <= set(classes) or (2 not in classes and not pattern("rare_sign").search(value)):
        return False
    return sum(a != b for a, b in pairwise(classes)) >= len(value) / 2


def placeholder(value: str) -> bool:
    """Say whether the value is a placeholder, a reference to somewhere else, or code that yields the value."""
    shapes = (pattern("stand_in"), pattern("reference"), pattern("code"))
    return any(shape.match(value) for shape in shapes) and not mixes_classes(value)


def example(value: str) -> bool:
    """Say whether documentation shows this very value again and again."""
    known = table("tokens")["examples"]
    spellings = (value, value.partition("=")[2], value.partition(" ")[2])
    return any(sha256(spelling.encode()).hexdigest()[:16] in known for spelling in spellings)


def random_letters(value: str) -> bool:
    """Say whether eight or more letters of both cases are drawn at random, and no words in camelCase."""
    if len(value) < 8 or not value.isascii() or not value.isalpha() or value.islower() or value.isupper():
        return False
    words = pattern("parts").findall(value)
    known = sum(len(word) for word in words if len(word) > 2 and word.lower() in _words("common"))
    spoken = sum(len(word) for word in words if _pronounceable(word))
    if len(value) < 10:
        return not known and spoken < len(value) / 3
    return known < len(value) / 2 and (len(value) / len(words) < 3.3 or spoken < len(value) / 2)


def drawn(value: str) -> bool:
    """Say whether the letters of a value that has signs, but neither digits nor spaces, are drawn at random."""
    letters = "".join(filter(str.isalpha, value))
    return random_letters(letters) and bool(pattern("signed_letters").fullmatch(value))


def _pronounceable(word: str) -> bool:
    """Say whether a part of a name may be a word of English or of a language near to it."""
    vowels = sum(letter in "aeiouy" for letter in word.lower())
    return len(word) > 2 and not word.isupper() and vowels >= len(word) / 5 and not pattern("unspoken").search(word)


def made_of_words(value: str) -> bool:
    """Say whether every part is a plain word, a short number or a well-known technical name such as `sha256`."""
    return not (mixes_classes(value) or drawn(value)) and all(
        (part.isalpha() and not random_letters(part))
        or (part.isdigit() and len(part) <= 4)
        or pattern("technical").match(part)
        for part in pattern("separators").split(value)
        if part
    )


def common(value: str) -> bool:
    """Say whether the value is a name made of common words and short numbers, such as `db-credentials-v2`."""
    if pattern("rare_sign").search(value) or leet(value):
        return False
    known = _words("common")
    if value.lower().strip("0123456789_-./:") in known:
        return True
    parts = [part for part in pattern("parts").findall(value) if not (part.isdigit() and len(part) <= 4)]
    short = sum(len(part) for part in parts if len(part) <= 2)
    return short * 2 <= sum(map(len, parts)) and all(len(part) <= 2 or part.lower() in known for part in parts)


def leet(value: str) -> bool:
    """Say whether digits stand for letters inside a word, as in no technical name: `l4mp`, not `oauth2token`."""
    return bool(pattern("digit_inside").search(value)) and any(map(_leet_word, pattern("leet_word").findall(value)))


def _leet_word(word: str) -> bool:
    word = word.lower()
    for spelt in (word.rstrip(digits), word):
        meant = spelt.translate(_LEET)
        if len(meant) >= 4 and meant in _words("common") and not spelt[:-1].isalpha():
            return True
    match = pattern("leet").fullmatch(word)
    if match is None or pattern("technical").match(word):
        return False
    head, _, tail = match.groups()
    known = [part in _words("common") for part in (head, tail) if len(part) > 3 or part == "key"]
    return bool(head or len(tail) >= 3) and not (tail.isalpha() and any(known))


def compound(value: str) -> bool:
    """Say whether the value is words and a number without a separator, as people make passwords: `WikiPass2024!`."""
    core = value.rstrip(".,;:)")
    head = core[: len(core) - len(core.lstrip(ascii_letters).lstrip(digits))]
    if not pattern("compound").fullmatch(core) or pattern("technical").match(head):
        return False
    return bool(pattern("firm").search(core)) or len(pattern("parts").findall(core)) > 2


def named(value: str) -> bool:
    """Say whether the value is a name of code, which is no password even where a sentence calls it a password."""
    return common(value) and not compound(value)


def built(value: str) -> bool:
    """Say whether a value is an expression or a path, as only code and links have them."""
    core = value.strip(_ENDS)
    return bool(pattern("built").search(core.replace("=", "") if mixes_classes(core) else core))


def enclosed(value: str) -> bool:
    """Say whether a value is a word with another in brackets, which is no call of a function that code may have."""
    found = pattern("enclosed").fullmatch(value)
    return bool(found and not pattern("function").fullmatch(found[1]) and not (common(found[1]) and common(found[2])))


def weak(value: str) -> bool:
    """Say whether lists of leaked passwords are full of this value, or of its word with other digits."""
    core = value.strip(_ENDS).lower()
    word = core.rstrip(digits)
    tail = len(core) - len(word)
    ordinary = word in _words("weak") and word not in _words("common")
    return core in _words("weak") or (tail > 1 and word in _words("defaults")) or (tail > 0 and ordinary)


def phrase(value: str, least: int) -> bool:
    """Say whether the value is a passphrase: so many words or more that nobody uses to speak of passwords."""
    parts = re.split("[- ]", value.strip(_ENDS))
    return len(parts) >= least and all(
        3 <= len(part) <= 12 and part.isalpha() and part.isascii() and part.lower() not in _words("common")
        for part in parts
    )


def passphrase(words: list[str]) -> bool:
    """Say whether quoted words are a passphrase: four or more, or a word that is a password, and no sentence."""
    if pattern("sentence_word").search(" ".join(words)):
        return False
    plain = all(re.fullmatch(r"[A-Za-z0-9]+[!?.]?", word) for word in words)
    return (len(words) >= 4 and plain) or any(password(word) for word in words)


def _camel(value: str) -> bool:
    return sum(map(len, pattern("camel_word").findall(value))) >= len(value) * 0.75


def _mixes(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def password(value: str) -> bool:
    """Say whether a value in the place of a password looks like a password: not a word, not a placeholder, not code."""
    core = _core(value)
    if len(value) < 5 or placeholder(value) or placeholder(core) or (len(core) < 6 and common(core)):
        return False
    if value.isdigit():
        return len(value) >= 6
    if pattern("human_short").fullmatch(value) and not common(core):
        return True
    if pattern("human_tail").match(value) and len(value) >= 9:
        return not pattern("technical").match(pattern("separators").split(value)[0])
    if pattern("names_itself").match(core) and "_" in core and not leet(core):
        return False
    symbols = bool(pattern("symbol").search(core)) and any(c.isalpha() for c in core)
    return not made_of_words(core) and (symbols or _mixes(core) or drawn(core))


def plain_word(value: str) -> bool:
    """Say whether the value is a word in small letters that nobody uses to speak of passwords."""
    if common(value) or placeholder(value) or value in _words("descriptions") or pattern("description").match(value):
        return False
    return len(value) >= 5 and value.islower() and value.isascii()


def plausible_password(value: str) -> bool:
    """Say whether a value in the place of a password is a password: no placeholder, no reference, no word for it."""
    return weak(value) or (len(value) >= 4 and not (placeholder(value) or named(value)))


def stated_password(value: str) -> bool:
    """Say whether the value that a sentence or a call gives as the password is a password."""
    return weak(value) or phrase(value, 3) or (password(value) and not named(value))


def adjacent_password(value: str) -> bool:
    """Say whether a value would be taken for a password right behind a word for passwords, or behind a login."""
    core = value.rstrip(".,;:)")
    if stands_out(value) or phrase(core.rstrip(digits), 3) or (weak(core) and any(map(str.isdigit, core[4:]))):
        return not core.isdigit()
    if len(core) < 6 or placeholder(core) or pattern("commit").fullmatch(core) or built(core):
        return False
    if made_of_words(core) and not pattern("human_short").fullmatch(core):
        return False
    if compound(core) and pattern("firm").search(core):
        return True
    return leet(core) or bool(not common(core) and pattern("human_wide").fullmatch(core))


def stands_out(value: str) -> bool:
    """Say whether a value would be taken for a password wherever it stands in a sentence about a password."""
    core = value.strip(_ENDS)
    if len(core) < 6 or common(core) or placeholder(core) or pattern("commit").fullmatch(core) or built(core):
        return False
    if made_of_words(core):
        return phrase(core, 4)
    digits = [c.isdigit() for c in core]
    changes = sum(a != b for a, b in pairwise(digits)) if len(core) >= 8 and core.isalnum() else 0
    cased = len(core) >= 10 and any(c.isupper() for c in core) and any(c.islower() for c in core)
    mixed = cased and len(pattern("parts").findall(core)) >= 5 and any(digits)
    letters = len(core) >= 12 and drawn(core)
    return changes >= 4 - cased or mixed or letters or bool(pattern("human").match(core)) or looks_random(value)


def looks_random(value: str) -> bool:
    """Say whether a value beside the word "password" looks like a password: letters, digits and signs mixed."""
    core = _core(value)
    if len(core) < 8 or placeholder(core) or made_of_words(core) or pattern("call").search(core):
        return False
    return mixes_classes(core) or (_mixes(core) and bool(pattern("sign").search(value.rstrip(".,;:?)]}="))))


def key(value: str) -> bool:
    """Say whether a value in the place of a key looks like a key: long, letters mixed with digits, no name in code."""
    core = _core(value)
    if len(core) < 8 or placeholder(value) or placeholder(core) or made_of_words(core):
        return False
    if pattern("names_itself").match(core) or _camel(core):
        return False
    return _mixes(core) or drawn(core) or mixes_classes(core)


def long_key(value: str) -> bool:
    """Say whether a value looks like a key by itself: long, and random or hexadecimal."""
    core = value.strip(_ENDS)
    if len(core) < 16 or not key(core):
        return False
    hexadecimal = bool(pattern("long_hex").fullmatch(core))
    return hexadecimal or high_entropy(core) or mixes_classes(core) or drawn(core)


def high_entropy(value: str) -> bool:
    """Say whether 20 or more characters look random: all three classes, much entropy, and no plain hash."""
    body = value.rstrip("=")
    if len(body) < 20 or pattern("hex_hash").match(body) or placeholder(value) or made_of_words(body) or _camel(body):
        return False
    if body.count("/") > 4 or (len(body) < 40 and max(map(len, pattern("separators").split(body))) < 12):
        return False
    entropy = -sum(n / len(body) * log2(n / len(body)) for n in Counter(body).values())  # bits per character
    kinds = (any(c.islower() for c in body), any(c.isupper() for c in body), sum(c.isdigit() for c in body) >= 2)
    return all(kinds) and entropy > min(4.2, log2(len(body)) * 0.82)


def real_token(value: str) -> bool:
    """Say whether a token with a known prefix is more than a documented shape such as `ghp_xxxxxxxx`, or than DNA."""
    return not pattern("shape").search(value) and not set(value) <= set("ACGTN")
