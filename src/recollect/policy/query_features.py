"""What kind of text a memory is: which share of it asks, and who speaks in it; and a date as people write it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime

_MONTHS = "January February March April May June July August September October November December".split()
_SENTENCES = re.compile(r"[.!?]+")
_TURN = re.compile(r"^([A-Z][\w.\-]*(?: [A-Z][\w.\-]*)?):\s", re.MULTILINE)


def questions(text: str) -> float:
    """Return which share (0–1) of a text's sentences are questions."""
    asked = text.count("?")
    return min(asked / max(len(_SENTENCES.findall(text)), 1), 1.0) if asked else 0.0


def transcript_speakers(text: str) -> frozenset[str]:
    """Return the speakers of a transcript, a text most of whose lines begin with a name that begins several."""
    lines = [line for line in text.splitlines() if line.strip()]
    turns = Counter(_TURN.findall(text))
    often = frozenset(name for name, count in turns.items() if count > 1)
    return often if turns.total() >= max(4, 0.5 * len(lines)) and 2 <= len(often) <= 8 else frozenset()


def date_in_words(moment: datetime) -> str:
    """Return a date as people write it in a query: 7 May 2023."""
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
