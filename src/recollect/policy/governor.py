"""The governor: what recalled text may say to a model that did not ask for it.

It redacts sentences that give orders to the model itself. The store keeps every memory as it was written: this is for
the block that is put before a prompt. Orders to people, programs and tools ("never run migrations on Friday") stay.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from recollect.domain.enums import Sensitivity
from recollect.domain.results import Memory
from recollect.policy.injection_phrases import order_phrases
from recollect.policy.order_score import score
from recollect.policy.prompt import fenced, is_derived
from recollect.text import layers
from recollect.text.decoded import hidden, unescaped
from recollect.text.lookalikes import latin, without_marks
from recollect.text.neutral import neutral, visible
from recollect.text.terms import STOP_WORDS

FENCE: Final = "memory-context"
REDACTED: Final = "[redacted: instruction]"
_HOPELESS: Final = -3.0  # a score below which no phrase of an order was ever found
_BRIEF, _FAR = 60, 400  # characters of a text that is too short for a score, or goes on after it
_PLAINLY: Final = 0.25  # share of little words from which a sentence reads as it stands
_WHOLE: Final = 800  # characters of a memory that are shown where there is room
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？।؟])")
_MARKUP: Final = re.compile(r"[*_`~>#\"'“”‘’«»<{}()\[\]|\\/!-]+")
_SPACED: Final = re.compile(r"(?<![^\W_])(?:[^\W_][ .\-_*]{1,2}){3,}[^\W_](?![^\W_])")
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
_DIGITS: Final = str.maketrans("013457@$", "oieastas")
LIKELY: Final = 0.45
"""The score from which a sentence is taken for an order to a model."""

CERTAIN: Final = 2.5
"""The same where the sentence has to be turned around or read by figures, which mostly gives nonsense."""

DECIPHERED: Final = -0.5
"""The same where the sentence stood in a code: nobody hides an ordinary note."""

_LONGEST: Final = 20_000  # characters of a line that are looked at; what is longer is redacted whole


@dataclass(frozen=True, slots=True)
class Governed:
    """A text that may stand before a model, and how many of its sentences were redacted."""

    text: str
    redacted: int


def governed(text: str) -> Governed:
    """Return a text without orders to the model and without frames of a conversation.

    A line whose sentences are harmless one by one but not together is redacted whole, and so are two such lines.
    """
    lines, redacted = [], 0
    for line in visible(text).split("\n"):
        kept, count = _line(line)
        redacted += count
        lines.append(kept)
    filled = [place for place, line in enumerate(lines) if line.strip()]
    for first, second in pairwise(filled):
        if REDACTED not in lines[first] + lines[second] and _phrased(f"{lines[first]} {lines[second]}"):
            lines[first], lines[second] = REDACTED, ""
            redacted += 1
    return Governed(neutral("\n".join(lines)), redacted)


def permitted(memory: Memory, levels: Collection[Sensitivity] = (Sensitivity.PUBLIC,)) -> bool:
    """Say whether a memory may be shown unasked: only what is of one of `levels`, and still holds."""
    gone = memory.deleted_at is not None or memory.merged_into is not None or memory.superseded_by is not None
    return memory.sensitivity in levels and not gone


def memory_context(
    memories: Sequence[Memory],
    max_tokens: int,
    count: Callable[[str], int],
    levels: Collection[Sensitivity] = (Sensitivity.PUBLIC,),
) -> tuple[str, list[int]]:
    """Return the `<memory-context>` block of at most `max_tokens` and the ids it shows; empty where nothing may stand.

    Each line tells where its memory came from and how far that is trusted (0–1). A memory that says nothing but orders
    to the model is left out.
    """
    shown = [governed_memory(one) for one in memories if permitted(one, levels)]
    telling = [one for one in shown if (one.abstract + one.content).replace(REDACTED, "").strip(" …\n")]
    return fenced(telling, max_tokens, count, fence=FENCE, line_of=_context_line, whole=2 * _WHOLE)


def governed_memory(memory: Memory) -> Memory:
    """Return a memory as it may stand before a model that did not ask for it: the first 800 characters of it.

    It is looked at line by line, before a block makes one line of it.
    """
    content = governed(memory.content[:_WHOLE]).text + (" …" if len(memory.content) > _WHOLE else "")
    said = layers.abstract(content) if is_derived(memory) else governed(memory.abstract).text
    return memory.model_copy(update={"content": content, "abstract": said})


def orders(text: str) -> bool:
    """Say whether a text gives orders to a model, in whatever disguise."""
    return any(_is_order(one, least) for one, least in _readings(text))


def _context_line(memory: Memory, said: str) -> str:
    day = (memory.observed_at or memory.updated_at).date().isoformat()
    author = governed(memory.author).text
    labels = f"{memory.type or memory.fact_type}, {day}, from {memory.source} by {author}, trust {memory.trust:.1f}"
    return neutral(f"- [{memory.id}] ({labels}) {said}")


def _line(line: str) -> tuple[str, int]:
    """Return a line with its orders redacted, and how many they were."""
    if len(line) > _LONGEST or _MESSAGE.search(line) or _DELIMITER.search(latin(without_marks(line))):
        return REDACTED, 1
    if header := _HEADER.match(line):
        return f"[{header[2]}]", 0
    pieces = _SENTENCE.split(line)
    found = [bool(piece.strip()) and orders(piece) for piece in pieces]
    rest = " ".join(piece for piece, order in zip(pieces, found, strict=True) if not order)
    if _phrased(rest):
        return REDACTED, 1
    if not any(found):
        return line, 0
    return " ".join(REDACTED if order else piece for piece, order in zip(pieces, found, strict=True)), sum(found)


def _is_order(said: str, least: float) -> bool:
    """Say whether a text as it is compared is an order; a phrase is looked for only where that is not far off."""
    sounds = score(said)
    return sounds >= least or ((sounds > _HOPELESS or len(said) < _BRIEF) and bool(order_phrases().search(said)))


def _phrased(text: str) -> bool:
    """Say whether a text holds a known phrase of an order, which may go over several sentences, or hides an order."""
    said = plain(unescaped(text))
    if (score(said) > _HOPELESS or not _BRIEF <= len(said) <= _FAR) and order_phrases().search(said):
        return True
    return any(_is_order(plain(one), DECIPHERED) for one in hidden(text))


def _readings(text: str) -> Iterator[tuple[str, float]]:
    """Yield what a text may be read as, and the score from which that is an order.

    That is as it stands, decoded, spelled out, in figures, turned around or shifted; the last two are mostly nonsense.
    """
    decoded = unescaped(text)
    shown = plain(decoded)
    yield shown, LIKELY
    if (joined := _SPACED.sub(_joined, decoded)) != decoded:
        yield plain(joined), LIKELY
    if any(one.isdigit() or one in "@$" for one in shown):
        yield shown.translate(_DIGITS), CERTAIN
    words = shown.split()
    if sum(word in STOP_WORDS for word in words) < _PLAINLY * len(words):
        yield codecs.decode(shown, "rot13"), CERTAIN
        yield shown[::-1], CERTAIN
    for said in hidden(text):
        yield plain(said), DECIPHERED
        yield plain(said)[::-1], CERTAIN


def sentences(line: str) -> list[str]:
    """Return the sentences of a line."""
    return [piece for piece in _SENTENCE.split(line) if piece]


def plain(text: str) -> str:
    """Return a text as it is compared: Latin letters for their lookalikes, no marks, single spaces."""
    return " ".join(_MARKUP.sub(" ", latin(without_marks(text))).split())


def _joined(match: re.Match[str]) -> str:
    """Return spelled letters as words: a wider gap, or none, is between words."""
    return re.sub(r"(?<=\w)[ .\-_*](?=\w)", "", match[0])
