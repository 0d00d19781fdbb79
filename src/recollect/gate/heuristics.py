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
def _word_list(name: str) -> frozenset[str]:
    return frozenset(table("words")[name].split())


def _without_punctuation(value: str) -> str:
    return value.strip("*_").rstrip(".,;:!?)]}=")


def mixes_classes(value: str) -> bool:
    """Say whether upper case, lower case, digits and signs alternate as in no word, path or code."""
    if len(value) < 10 or pattern("template").match(value) or pattern("reference").match(value):
        return False
    classes = [0 if c.islower() else 1 if c.isupper() else 2 if c.isdigit() else 3 for c in value]
    if not {0, 1} <= set(classes) or (2 not in classes and not pattern("rare_sign").search(value)):
        return False
    return sum(a != b for a, b in pairwise(classes)) >= len(value) / 2


def is_placeholder(value: str) -> bool:
    """Return whether the value is a placeholder, a reference to another place, or code that yields the value."""
    shapes = (pattern("stand_in"), pattern("reference"), pattern("code"))
    return any(shape.match(value) for shape in shapes) and not mixes_classes(value)


def is_documented_example(value: str) -> bool:
    """Return whether this very value is a common example in documentation."""
    known = table("tokens")["examples"]
    spellings = (value, value.partition("=")[2], value.partition(" ")[2])
    return any(sha256(spelling.encode()).hexdigest()[:16] in known for spelling in spellings)


def are_random_letters(value: str) -> bool:
    """Return whether the value is eight or more random letters of both cases, not words in camelCase."""
    if len(value) < 8 or not value.isascii() or not value.isalpha() or value.islower() or value.isupper():
        return False
    words = pattern("parts").findall(value)
    known = sum(len(word) for word in words if len(word) > 2 and word.lower() in _word_list("common"))
    spoken = sum(len(word) for word in words if _is_pronounceable(word))
    if len(value) < 10:
        return not known and spoken < len(value) / 3
    return known < len(value) / 2 and (len(value) / len(words) < 3.3 or spoken < len(value) / 2)


def has_random_letters(value: str) -> bool:
    """Return whether the letters of a value are random; it has signs, but neither digits nor spaces."""
    letters = "".join(filter(str.isalpha, value))
    return are_random_letters(letters) and bool(pattern("signed_letters").fullmatch(value))


def _is_pronounceable(word: str) -> bool:
    """Return whether a part of a name may be a word of English or of a similar language."""
    vowels = sum(letter in "aeiouy" for letter in word.lower())
    return len(word) > 2 and not word.isupper() and vowels >= len(word) / 5 and not pattern("unspoken").search(word)


def is_made_of_words(value: str) -> bool:
    """Return whether every part is a plain word, a short number or a well-known technical name such as `sha256`."""
    return not (mixes_classes(value) or has_random_letters(value)) and all(
        (part.isalpha() and not are_random_letters(part))
        or (part.isdigit() and len(part) <= 4)
        or pattern("technical").match(part)
        for part in pattern("separators").split(value)
        if part
    )


def is_common_name(value: str) -> bool:
    """Return whether the value is a name of common words and short numbers, such as `db-credentials-v2`."""
    if pattern("rare_sign").search(value) or has_leet_word(value):
        return False
    known = _word_list("common")
    if value.lower().strip("0123456789_-./:") in known:
        return True
    parts = [part for part in pattern("parts").findall(value) if not (part.isdigit() and len(part) <= 4)]
    short = sum(len(part) for part in parts if len(part) <= 2)
    return short * 2 <= sum(map(len, parts)) and all(len(part) <= 2 or part.lower() in known for part in parts)


def has_leet_word(value: str) -> bool:
    """Return whether digits stand for letters inside a word: True for `l4mp`, False for `oauth2token`."""
    return bool(pattern("digit_inside").search(value)) and any(map(_is_leet_word, pattern("leet_word").findall(value)))


def _is_leet_word(word: str) -> bool:
    """Return whether a word has digits or signs in place of letters, and is no technical name."""
    word = word.lower()
    for spelt in (word.rstrip(digits), word):
        meant = spelt.translate(_LEET)
        if len(meant) >= 4 and meant in _word_list("common") and not spelt[:-1].isalpha():
            return True
    match = pattern("leet").fullmatch(word)
    if match is None or pattern("technical").match(word):
        return False
    head, _, tail = match.groups()
    known = [part in _word_list("common") for part in (head, tail) if len(part) > 3 or part == "key"]
    return bool(head or len(tail) >= 3) and not (tail.isalpha() and any(known))


def is_compound_password(value: str) -> bool:
    """Return whether the value is words and a number without a separator, like a typical password: `WikiPass2024!`."""
    core = value.rstrip(".,;:)")
    head = core[: len(core) - len(core.lstrip(ascii_letters).lstrip(digits))]
    if not pattern("compound").fullmatch(core) or pattern("technical").match(head):
        return False
    return bool(pattern("firm").search(core)) or len(pattern("parts").findall(core)) > 2


def is_code_name(value: str) -> bool:
    """Return whether the value is a name in code; such a name is never taken for a password."""
    return is_common_name(value) and not is_compound_password(value)


def is_expression(value: str) -> bool:
    """Return whether the value is an expression or a path, as only code and links have them."""
    core = value.strip(_ENDS)
    return bool(pattern("built").search(core.replace("=", "") if mixes_classes(core) else core))


def is_word_with_brackets(value: str) -> bool:
    """Return whether the value is a word with another in brackets, but not the call of a function."""
    found = pattern("enclosed").fullmatch(value)
    return bool(
        found
        and not pattern("function").fullmatch(found[1])
        and not (is_common_name(found[1]) and is_common_name(found[2]))
    )


def is_weak_password(value: str) -> bool:
    """Return whether lists of leaked passwords hold this value, or its word with other digits."""
    core = value.strip(_ENDS).lower()
    word = core.rstrip(digits)
    tail = len(core) - len(word)
    ordinary = word in _word_list("weak") and word not in _word_list("common")
    return core in _word_list("weak") or (tail > 1 and word in _word_list("defaults")) or (tail > 0 and ordinary)


def is_passphrase(value: str, least: int) -> bool:
    """Return whether the value is a passphrase: at least `least` words that technical texts rarely use."""
    parts = re.split("[- ]", value.strip(_ENDS))
    return len(parts) >= least and all(
        3 <= len(part) <= 12 and part.isalpha() and part.isascii() and part.lower() not in _word_list("common")
        for part in parts
    )


def are_passphrase_words(words: list[str]) -> bool:
    """Return whether quoted words are a passphrase, not a sentence: four or more, or a word that is a password."""
    if pattern("sentence_word").search(" ".join(words)):
        return False
    plain = all(re.fullmatch(r"[A-Za-z0-9]+[!?.]?", word) for word in words)
    return (len(words) >= 4 and plain) or any(looks_like_password(word) for word in words)


def _is_camel_case(value: str) -> bool:
    return sum(map(len, pattern("camel_word").findall(value))) >= len(value) * 0.75


def _has_letters_and_digits(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def looks_like_password(value: str) -> bool:
    """Return whether a value in the place of a password looks like a password: not a word, a placeholder or code."""
    core = _without_punctuation(value)
    if len(value) < 5 or is_placeholder(value) or is_placeholder(core) or (len(core) < 6 and is_common_name(core)):
        return False
    if value.isdigit():
        return len(value) >= 6
    if pattern("human_short").fullmatch(value) and not is_common_name(core):
        return True
    if pattern("human_tail").match(value) and len(value) >= 9:
        return not pattern("technical").match(pattern("separators").split(value)[0])
    if pattern("names_itself").match(core) and "_" in core and not has_leet_word(core):
        return False
    symbols = bool(pattern("symbol").search(core)) and any(c.isalpha() for c in core)
    return not is_made_of_words(core) and (symbols or _has_letters_and_digits(core) or has_random_letters(core))


def is_unusual_word(value: str) -> bool:
    """Return whether the value is a word in small letters that technical texts rarely use."""
    if (
        is_common_name(value)
        or is_placeholder(value)
        or value in _word_list("descriptions")
        or pattern("description").match(value)
    ):
        return False
    return len(value) >= 5 and value.islower() and value.isascii()


def is_plausible_password(value: str) -> bool:
    """Return whether a value in the place of a password is no placeholder, no reference and no name."""
    return is_weak_password(value) or (len(value) >= 4 and not (is_placeholder(value) or is_code_name(value)))


def is_stated_password(value: str) -> bool:
    """Return whether the value that a sentence or a call states as the password is a password."""
    return (
        is_weak_password(value) or is_passphrase(value, 3) or (looks_like_password(value) and not is_code_name(value))
    )


def is_adjacent_password(value: str) -> bool:
    """Return whether a value directly after a word for passwords, or after a login, looks like a password."""
    core = value.rstrip(".,;:)")
    if (
        stands_out_as_password(value)
        or is_passphrase(core.rstrip(digits), 3)
        or (is_weak_password(core) and any(map(str.isdigit, core[4:])))
    ):
        return not core.isdigit()
    if len(core) < 6 or is_placeholder(core) or pattern("commit").fullmatch(core) or is_expression(core):
        return False
    if is_made_of_words(core) and not pattern("human_short").fullmatch(core):
        return False
    if is_compound_password(core) and pattern("firm").search(core):
        return True
    return has_leet_word(core) or bool(not is_common_name(core) and pattern("human_wide").fullmatch(core))


def stands_out_as_password(value: str) -> bool:
    """Return whether a value looks like a password anywhere in a sentence about a password."""
    core = value.strip(_ENDS)
    if (
        len(core) < 6
        or is_common_name(core)
        or is_placeholder(core)
        or pattern("commit").fullmatch(core)
        or is_expression(core)
    ):
        return False
    if is_made_of_words(core):
        return is_passphrase(core, 4)
    digits = [c.isdigit() for c in core]
    changes = sum(a != b for a, b in pairwise(digits)) if len(core) >= 8 and core.isalnum() else 0
    cased = len(core) >= 10 and any(c.isupper() for c in core) and any(c.islower() for c in core)
    mixed = cased and len(pattern("parts").findall(core)) >= 5 and any(digits)
    letters = len(core) >= 12 and has_random_letters(core)
    return (
        changes >= 4 - cased
        or mixed
        or letters
        or bool(pattern("human").match(core))
        or has_letters_digits_signs(value)
    )


def has_letters_digits_signs(value: str) -> bool:
    """Return whether a value beside the word "password" mixes letters, digits and signs."""
    core = _without_punctuation(value)
    if len(core) < 8 or is_placeholder(core) or is_made_of_words(core) or pattern("call").search(core):
        return False
    return mixes_classes(core) or (
        _has_letters_and_digits(core) and bool(pattern("sign").search(value.rstrip(".,;:?)]}=")))
    )


def looks_like_key(value: str) -> bool:
    """Return whether a value in the place of a key looks like a key: long, letters and digits mixed, no code name."""
    core = _without_punctuation(value)
    if len(core) < 8 or is_placeholder(value) or is_placeholder(core) or is_made_of_words(core):
        return False
    if pattern("names_itself").match(core) or _is_camel_case(core):
        return False
    return _has_letters_and_digits(core) or has_random_letters(core) or mixes_classes(core)


def is_long_key(value: str) -> bool:
    """Return whether a value looks like a key by itself: long, and random or hexadecimal."""
    core = value.strip(_ENDS)
    if len(core) < 16 or not looks_like_key(core):
        return False
    hexadecimal = bool(pattern("long_hex").fullmatch(core))
    return hexadecimal or has_high_entropy(core) or mixes_classes(core) or has_random_letters(core)


def has_high_entropy(value: str) -> bool:
    """Return whether 20 or more characters look random: all three classes, much entropy, and no plain hash."""
    body = value.rstrip("=")
    if (
        len(body) < 20
        or pattern("hex_hash").match(body)
        or is_placeholder(value)
        or is_made_of_words(body)
        or _is_camel_case(body)
    ):
        return False
    if body.count("/") > 4 or (len(body) < 40 and max(map(len, pattern("separators").split(body))) < 12):
        return False
    entropy = -sum(n / len(body) * log2(n / len(body)) for n in Counter(body).values())  # bits per character
    kinds = (any(c.islower() for c in body), any(c.isupper() for c in body), sum(c.isdigit() for c in body) >= 2)
    return all(kinds) and entropy > min(4.2, log2(len(body)) * 0.82)


def is_real_token(value: str) -> bool:
    """Return whether a token with a known prefix is real: not a documented shape such as `ghp_xxxxxxxx`, nor DNA."""
    return not pattern("shape").search(value) and not set(value) <= set("ACGTN")
