"""The governor: what recalled text may say to a model that did not ask for it.

It redacts sentences that give orders to the model itself. The store keeps every memory as it was written: this is for
the block that is put before a prompt. Orders to people, programs and tools ("never run migrations on Friday") stay.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import unquote

from recollect.domain.enums import Sensitivity
from recollect.domain.results import Memory
from recollect.policy.injection_phrases import ORDERS
from recollect.policy.prompt import fenced
from recollect.policy.text.lookalikes import latin, without_marks
from recollect.policy.text.neutral import neutral, visible

FENCE: Final = "memory-context"
REDACTED: Final = "[redacted: instruction]"
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？।؟])")
_MARKUP: Final = re.compile(r"[*_`~>#\"'“”‘’«»<{}()\[\]|\\/!-]+")
_SPACED: Final = re.compile(r"(?<!\w)(?:\w[ .\-_*]{1,2}){3,}\w(?!\w)")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_DIGITS: Final = str.maketrans("013457@$", "oieastas")
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
        if REDACTED not in lines[first] + lines[second] and orders(f"{lines[first]} {lines[second]}"):
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
    shown = [one for one in memories if permitted(one, levels) and not _is_redacted(one)]
    return fenced(shown, max_tokens, count, fence=FENCE, line_of=_context_line)


def orders(text: str) -> bool:
    """Say whether a text gives orders to a model, in whatever disguise."""
    return len(text) > _LONGEST or any(ORDERS.search(one) for one in _readings(text))


def _is_redacted(memory: Memory) -> bool:
    said = governed(memory.content)
    return bool(said.redacted) and not said.text.replace(REDACTED, "").strip()


def _context_line(memory: Memory, said: str) -> str:
    day = (memory.observed_at or memory.updated_at).date().isoformat()
    labels = f"{memory.fact_type}, {day}, from {memory.source} by {memory.author}, trust {memory.trust:.1f}"
    return f"- [{memory.id}] ({governed(labels).text}) {governed(said).text}"


def _line(line: str) -> tuple[str, int]:
    """Return a line with its orders redacted, and how many they were."""
    if not orders(line):
        return line, 0
    pieces = _SENTENCE.split(line)
    found = [bool(piece) and orders(piece) for piece in pieces]
    rest = " ".join(piece for piece, order in zip(pieces, found, strict=True) if not order)
    if not any(found) or orders(rest):
        return REDACTED, 1
    return " ".join(REDACTED if order else piece for piece, order in zip(pieces, found, strict=True)), sum(found)


def _readings(text: str) -> Iterator[str]:
    """Yield what a text may be read as: as it stands, decoded, spelled out, turned around or in figures."""
    decoded = html.unescape(unquote(text))
    plain = _plain(decoded)
    yield plain
    if (joined := _SPACED.sub(_joined, decoded)) != decoded:
        yield _plain(joined)
    if any(one.isdigit() or one in "@$" for one in plain):
        yield plain.translate(_DIGITS)
    yield codecs.decode(plain, "rot13")
    yield plain[::-1]
    for found in _BASE64.findall(text):
        if hidden := _unpacked(found):
            yield _plain(hidden)


def _plain(text: str) -> str:
    """Return a text as it is compared: Latin letters for their lookalikes, no marks, single spaces."""
    return " ".join(_MARKUP.sub(" ", latin(without_marks(text))).split())


def _joined(match: re.Match[str]) -> str:
    """Return spelled letters as words: a wider gap, or none, is between words."""
    return re.sub(r"(?<=\w)[ .\-_*](?=\w)", "", match[0])


def _unpacked(text: str) -> str:
    """Return what a Base64 text says, or nothing where that is no text."""
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        said = base64.b64decode(bare + "=" * (-len(bare) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return said if said.isprintable() else ""
