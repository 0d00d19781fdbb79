"""Orders to a model: finds the sentences of a text that give them, and redacts those.

Orders to people, programs and tools ("never run migrations on Friday") stay. How much a sentence sounds like an order
is told by its words, its letters and what they stand for: a linear model over hashed features, whose weights
`scripts/train orders` fits and writes beside this file. The store keeps every memory as it was written.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import combinations, pairwise
from math import sqrt
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote
from zlib import crc32

from recollect.gate.look_alikes import without_look_alikes
from recollect.prompt.neutral import neutral, without_invisible, without_marks
from recollect.text.sentences import sentences

REDACTED: Final = "[redacted: instruction]"
LIKELY: Final = 0.3
"""The score from which a sentence is taken for an order to a model."""

CERTAIN: Final = 2.5
"""The same of lines that are one sentence only together, and of a line of few words, which are mostly names."""

SLOTS: Final = 2**15
"""How many weights there are; each is a signed byte."""
SCALE: Final = 16.0
"""What a weight is divided by."""
WEIGHTS: Final = "order_weights.bin"

_LONGEST_JUDGED: Final = 20_000  # characters of a text from outside that are read for orders
_LINE_JUDGED: Final = 2_000
_MIN_SPOKEN_WORDS: Final = 6  # words of a line that may be an order in any wording
_MAX_SENTENCE: Final = 400  # characters of a sentence that are read
_WEB: Final = re.compile(
    r"\b(?:https?|ftp)\b\W*\S+|\b[^\s@]{1,64}@[^\s@]{1,99}\.\w+|\b[\w.-]{1,99}\.(?:example|com|net|io|org|ru)\b\S*"
)
_DENSE: Final = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"  # written without spaces: each letter is a word
_WORD: Final = re.compile(rf"[{_DENSE}]|[^\W\d_{_DENSE}]+|\d+|[,:;?]")
_LATIN: Final = re.compile(r"[a-zà-ɏ]+")
_MAX_WORD: Final = 24  # letters of a word
_GRAM_LETTERS: Final = 4
_MIN_ORDER_WORDS: Final = 2  # words of an order
_MIN_FEATURES: Final = 50  # features of a sentence that says little
_MAX_PAIR_DISTANCE: Final = 3
_MAX_CONCEPT_DISTANCE: Final = 5

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
    for word in {word for words in CONCEPTS.values() for word in words.split()}
}
_MARKUP: Final = re.compile(r"[*_`~>#\"'“”‘’«»<{}()\[\]|\\/!-]+")
_MESSAGE: Final = re.compile(
    r"""["']?(?:role|type)["']?\s*:\s*["'](?:system|developer|user|assistant|tool|function|tool_use|tool_result|message)["']"""
    r"""\s*,.{0,200}?["'](?:content|input|arguments|text)["']\s*:\s*["'\[{]""",
    re.IGNORECASE,
)  # of a conversation in JSON
_TALK: Final = (
    "memor|note|context|user|system|assistant|prompt|message|instruction|conversation|recall|untrusted|data|input"
)
_DRAWN: Final = r"(?:(?<![=#*~_+<>!\[({|-])[=#*~_+<>!\[({|-]{2,}+|^\W{0,3}[\[({<#]|[\[<])\s*"
_DELIMITER: Final = re.compile(
    rf"{_DRAWN}(?:(?:begin|end|start|stop|close|open)(?:s|ning|ing|ed)?\b[\w ]{{0,30}}?\b(?:{_TALK})|"
    rf"\b(?:{_TALK})[\w -]{{0,20}}\b(?:begins?|ends?|starts?|stops?|closed|over)\b)"
)  # that a text draws by itself
_HEADER: Final = re.compile(
    r"^([\"'`#*<|\[({=~\s]*)(system|developer|user|human|assistant|tool|model)([\"'`#*>|\])}=~:\s]*)$", re.IGNORECASE
)  # of somebody's turn, alone on its line
_LONGEST_LINE: Final = 20_000  # characters of a line that are looked at; what is longer is redacted whole
_ESCAPES: Final = re.compile(r"\\u\{?([0-9a-fA-F]{4,6})\}?|\\x([0-9a-fA-F]{2})|%u([0-9a-fA-F]{4})")


@dataclass(frozen=True, slots=True)
class Governed:
    """A text that may stand before a model, and how many of its sentences were redacted."""

    text: str
    redacted: int


def governed(text: str) -> Governed:
    """Return a text without orders to the model and without frames of a conversation.

    A line is redacted whole where its sentences are an order only together, and so are two such lines.
    """
    lines, redacted = [], 0
    for line in without_invisible(text).split("\n"):
        kept, count = _redacted_line(line)
        redacted += count
        lines.append(kept)
    filled = [place for place, line in enumerate(lines) if line.strip()]
    for first, second in pairwise(filled):
        if REDACTED not in lines[first] + lines[second] and is_order(f"{lines[first]} {lines[second]}", CERTAIN):
            lines[first], lines[second] = REDACTED, ""
            redacted += 1
    return Governed(neutral("\n".join(lines)), redacted)


def gives_orders(text: str) -> bool:
    """Return whether a text has a line, or two lines in a row, that a model might take for an order.

    Short lines are names and messages of programs: for these only a certain order counts.
    """
    lines = [line[:_LINE_JUDGED] for line in text[:_LONGEST_JUDGED].split("\n")]
    spoken = [line for line in lines if len(line.split()) >= _MIN_SPOKEN_WORDS]
    brief = (line for line in lines if len(line.split()) < _MIN_SPOKEN_WORDS)
    return bool(governed("\n".join(spoken)).redacted) or any(is_order(line, CERTAIN) for line in brief)


def is_order(text: str, least: float = LIKELY) -> bool:
    """Return whether a text sounds like an order to a model, with a score of at least `least`."""
    return order_score(comparable_text(unescaped(text))) >= least


def _redacted_line(line: str) -> tuple[str, int]:
    """Return a line with its orders redacted, and how many orders it had."""
    if (
        len(line) > _LONGEST_LINE
        or _MESSAGE.search(line)
        or _DELIMITER.search(without_look_alikes(without_marks(line)))
    ):
        return REDACTED, 1
    if header := _HEADER.match(line):
        return f"[{header[2]}]", 0
    pieces = sentences(line, semicolons=True)
    found = [is_order(piece) for piece in pieces]
    rest = [piece for piece, order in zip(pieces, found, strict=True) if not order]
    if len(rest) > 1 and is_order(" ".join(rest), CERTAIN):
        return REDACTED, 1
    if not any(found):
        return line, 0
    return " ".join(REDACTED if order else piece for piece, order in zip(pieces, found, strict=True)), sum(found)


def comparable_text(text: str) -> str:
    """Return a text as it is compared: Latin letters in place of look-alikes, no marks, single spaces."""
    return " ".join(_MARKUP.sub(" ", without_look_alikes(without_marks(text))).split())


def unescaped(text: str) -> str:
    """Return a text with its entities, percent signs and escapes read."""
    text = html.unescape(unquote(text)) if "&" in text or "%" in text else text
    return _ESCAPES.sub(_escaped_character, text) if "\\" in text or "%u" in text else text


def _escaped_character(match: re.Match[str]) -> str:
    """Return the character of an escape; the escape itself where it stands for none."""
    number = int(match[1] or match[2] or match[3], 16)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else ""


def order_score(plain: str) -> float:
    """Return the log-odds that a sentence is an order to a model; it comes folded, in Latin letters where it may."""
    if len(_WORD.findall(plain)) < _MIN_ORDER_WORDS:
        return -9.0
    places = feature_places(plain)
    weights = _weights_and_bias()
    return (sum(weights[place] for place in places) * feature_weight(places) + weights[SLOTS]) / SCALE


def feature_weight(places: Sequence[int]) -> float:
    """Return the weight of each feature: 1 / √n for n features, with n at least `_MIN_FEATURES`."""
    return 1.0 / sqrt(max(len(places), _MIN_FEATURES))


def feature_places(plain: str) -> list[int]:
    """Return the places of the distinct features of a sentence, 0 to SLOTS - 1, in order."""
    tokens = [
        "0" if word[0].isdigit() else word[:_MAX_WORD]
        for word in _WORD.findall(_WEB.sub(" urlurl ", plain[:_MAX_SENTENCE]))
    ]
    words = [word for word in tokens if word.isalnum()]
    found = {crc32(name.encode()) % SLOTS for name in _feature_names(tokens, words)}
    return sorted(found.union(*map(_concepts_of_word, words)))


@lru_cache(maxsize=20_000)
def _concepts_of_word(word: str) -> frozenset[int]:
    return frozenset(crc32(name.encode()) % SLOTS for name in (f"w {word}", *_letter_grams(word)))


@lru_cache(maxsize=1)
def _weights_and_bias() -> tuple[int, ...]:
    """Return the weights, and after them the bias, two bytes in all."""
    packed = (files("recollect.prompt") / WEIGHTS).read_bytes()
    signed = [weight - 256 if weight > 127 else weight for weight in packed[:SLOTS]]
    return (*signed, int.from_bytes(packed[SLOTS:], "big", signed=True))


def _feature_names(tokens: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    """Yield the names of the features of a sentence: pairs of neighbours, pairs with a gap, and concepts."""
    for first, two in pairwise(["^", *tokens]):
        yield f"b {first} {two}"
    for place, first in enumerate(words):
        for two in words[place + 2 : place + 1 + _MAX_PAIR_DISTANCE]:
            yield f"s {first} {two}"
    yield from _concept_features(words)


def _concept_features(words: Sequence[str]) -> Iterator[str]:
    """Yield the concept features of words: single concepts, pairs, near pairs in order, and the first concept."""
    named = [_OF_WORD.get(word, ()) for word in words]
    found = sorted({name for names in named for name in names})
    yield from (f"c {name}" for name in found)
    yield from (f"c {first} {two}" for first, two in combinations(found, 2))
    for place, names in enumerate(named):
        later = (
            {name for after in named[place + 1 : place + 1 + _MAX_CONCEPT_DISTANCE] for name in after} if names else ()
        )
        yield from (f"o {name} {two}" for name in names for two in later)
    if named:
        yield from (f"^c {name}" for name in named[0])


def _letter_grams(word: str) -> Iterator[str]:
    """Yield pieces of a word: four letters of Latin script, else three and two."""
    if _LATIN.fullmatch(word):
        marked = f"<{word}>"
        yield from (f"g {marked[place : place + _GRAM_LETTERS]}" for place in range(len(marked) - _GRAM_LETTERS + 1))
        return
    for size in (2, 3):
        yield from (f"g {word[place : place + size]}" for place in range(len(word) - size + 1))
