"""Order score: how much a sentence sounds like an order to a model, by its words, its letters and what they stand for.

A linear model over hashed features. `scripts/orders.py` fits it and writes its weights beside this file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import combinations, pairwise
from math import sqrt
from types import MappingProxyType
from typing import Final
from zlib import crc32

SLOTS: Final = 2**15
"""How many weights there are; each is a signed byte."""
SCALE: Final = 16.0
"""What a weight is divided by."""
WEIGHTS: Final = "order_weights.bin"

_MOST: Final = 400  # characters of a sentence that are read
_WEB: Final = re.compile(
    r"\b(?:https?|ftp)\b\W*\S+|\b[^\s@]{1,64}@[^\s@]{1,99}\.\w+|\b[\w.-]{1,99}\.(?:example|com|net|io|org|ru)\b\S*"
)
_WORD: Final = re.compile(r"[^\W\d_]+|\d+|[,:;?]")
_LATIN: Final = re.compile(r"[a-zà-ɏ]+")
_LONGEST: Final = 24  # letters of a word
_GRAM: Final = 4
_FEWEST: Final = 3  # words of an order
_SHORT: Final = 50  # features of a sentence that says little
_REACH: Final = 3
_NEAR: Final = 5

CONCEPTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "drop": "ignore disregard forget override bypass discard abandon neglect overrule unlearn violate disobey "
        "overwrite erase wipe suspend void revoke lift scrap dismiss circumvent evade sidestep nullify cancel "
        "reject",
        "rules": "instruction instructions rule rules guideline guidelines guidance directive directives constraint "
        "constraints restriction restrictions order orders policy policies limitation limitations guardrail "
        "guardrails programming training safeguard safeguards safety filter filters ethics limits alignment",
        "ai": "ai llm llms assistant assistants chatbot claude chatgpt gpt copilot gemini model models agent agents "
        "bot anthropic openai cursor codex",
        "you": "you your yours yourself",
        "prompt": "prompt prompts preprompt context system developer persona role",
        "tell": "reveal print show output repeat leak dump display disclose expose recite quote paste write list share",
        "send": "send upload post email mail forward exfiltrate transmit submit push publish share copy leak fetch "
        "request ping beacon append encode embed",
        "secret": "key keys credential credentials secret secrets password passwords token tokens env ssh pem cookie "
        "cookies wallet history conversation memories private confidential netrc kubeconfig",
        "user": "user users human humans operator owner anyone anybody person people",
        "hide": "tell inform alert notify warn mention reveal conceal hide secretly silently quietly covertly secret "
        "unnoticed discreetly stealthily behind knowing knowledge",
        "approve": "approve approved authorise authorize authorised authorized permission permitted permit allow "
        "allowed consent consented granted grant confirm confirmation approval clearance signed waive waived ask "
        "asking",
        "always": "always never permanently forever henceforth future session sessions every now onwards remember "
        "memorise memorize store save persist",
        "trust": "trust trusted verified authoritative priority precedence outrank outranks supersede supersedes "
        "binding legitimate genuine official",
        "run": "run execute call invoke launch start curl wget bash sh sudo eval install npm pip chmod rm force "
        "delete drop shutdown",
        "free": "unrestricted unfiltered uncensored jailbreak jailbroken dan unshackled unlimited evil malicious god "
        "root free freed liberated unbound",
        "harm": "backdoor malware exploit payload evil attacker hacked pwned phishing advert advertisement",
        "obey": "obey comply follow heed submit adhere listen execute",
        "not": "not no never without don dont stop cease refrain avoid skip nothing",
        "reply": "answer answers reply replies respond response responses say speak begin start end",
        "must": "must shall should need needs has have required obliged expected supposed asked invited encouraged "
        "will may can could would ought instructed told ordered",
        "turn": "session sessions turn output outputs answer answers reply chat conversation review memory note",
        "act": "push merge commit deploy delete remove install disable skip approve publish overwrite edit write add "
        "change replace rewrite drop reset revert accept download turn switch mark tell report act carry do "
        "follow",
        "web": "urlurl",
        "when": "if when whenever once after before until upon until each every next",
        "this": "this following below text note memory message file above",
    }
)
"""Words by what they stand for in an order."""

_OF_WORD: Final = {
    word: tuple(name for name, words in CONCEPTS.items() if word in words.split())
    for word in {one for words in CONCEPTS.values() for one in words.split()}
}


def score(plain: str) -> float:
    """Return the log-odds that a sentence is an order to a model; it comes folded, in Latin letters where it may."""
    if len(_WORD.findall(plain)) < _FEWEST:
        return -9.0
    places = features(plain)
    weights = _weights()
    return (sum(weights[place] for place in places) * share(places) + weights[SLOTS]) / SCALE


def share(places: Sequence[int]) -> float:
    """Return how much each feature of a sentence counts: the less the more there are, and in a short one no more."""
    return 1.0 / sqrt(max(len(places), _SHORT))


def features(plain: str) -> list[int]:
    """Return the places of the distinct features of a sentence, 0 to SLOTS - 1, in order."""
    tokens = [
        "0" if word[0].isdigit() else word[:_LONGEST] for word in _WORD.findall(_WEB.sub(" urlurl ", plain[:_MOST]))
    ]
    words = [word for word in tokens if word.isalnum()]
    found = {crc32(name.encode()) % SLOTS for name in _names(tokens, words)}
    return sorted(found.union(*map(_of_word, words)))


@lru_cache(maxsize=20_000)
def _of_word(word: str) -> frozenset[int]:
    return frozenset(crc32(name.encode()) % SLOTS for name in (f"w {word}", *_grams(word)))


@lru_cache(maxsize=1)
def _weights() -> tuple[int, ...]:
    """Return the weights, and after them the bias, two bytes in all."""
    packed = (files("recollect.policy") / WEIGHTS).read_bytes()
    signed = [one - 256 if one > 127 else one for one in packed[:SLOTS]]
    return (*signed, int.from_bytes(packed[SLOTS:], "big", signed=True))


def _names(tokens: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    for one, two in pairwise(["^", *tokens]):
        yield f"b {one} {two}"
    for place, one in enumerate(words):
        for two in words[place + 2 : place + 1 + _REACH]:
            yield f"s {one} {two}"
    yield from _concepts(words)


def _concepts(words: Sequence[str]) -> Iterator[str]:
    """Yield what the words stand for: each, in pairs, in order where they stand near, and what comes first."""
    named = [_OF_WORD.get(word, ()) for word in words]
    found = sorted({name for names in named for name in names})
    yield from (f"c {name}" for name in found)
    yield from (f"c {one} {two}" for one, two in combinations(found, 2))
    for place, names in enumerate(named):
        later = {name for after in named[place + 1 : place + 1 + _NEAR] for name in after} if names else ()
        yield from (f"o {one} {two}" for one in names for two in later)
    if named:
        yield from (f"^c {name}" for name in named[0])


def _grams(word: str) -> Iterator[str]:
    """Yield pieces of a word: of Latin letters fours, of other scripts threes and twos."""
    if _LATIN.fullmatch(word):
        marked = f"<{word}>"
        yield from (f"g {marked[place : place + _GRAM]}" for place in range(len(marked) - _GRAM + 1))
        return
    for size in (2, 3):
        yield from (f"g {word[place : place + size]}" for place in range(len(word) - size + 1))
