"""Neutral text: what a memory says without what nobody sees, and without what a model may take for a frame.

A frame is what models read as the end of our fence, as a tag of the conversation or as somebody's turn in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from recollect.gate.look_alikes import without_look_alikes
from recollect.text.normalization import limit_marks
from recollect.text.separators import SEPARATORS, gap_for

_SUSPECT = re.compile(
    r"[^\t\n\x20-\x7e]|[<\[]|&(?:lt|#)|[a-z][ \t*_]*:", re.IGNORECASE
)  # of any other text nothing changes
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]|(?<=[\ufe0e\ufe0f\u200c\u200d])[\ufe0e\ufe0f\u200c\u200d]+(?=[\ufe0e\ufe0f\u200c\u200d])|"
    r"(?<=[\x00-\x7f])[\u200c\u200d]+(?=[\x00-\x7f])"
)
_LESS = re.compile(r"[<＜﹤]+(?=([^<＜﹤>＞﹥]{0,80}))")
_ESCAPED = re.compile(r"&(?:lt|#0*60|#x0*3c);(?=([^<>&]{0,80}))", re.IGNORECASE)
_INSTRUCTIONS = re.compile(r"\[(?=\s*+(?:/\s*+)?INST\s*\])", re.IGNORECASE)
_ROLES = "system|developer|user|human|assistant|tool"
_TURN = re.compile(  # what begins a text like the key `user:name` is none
    rf"((?:\A|\n)[ \t>#*_]*)({_ROLES})(?=[ \t*_]*[:：]\s|[ \t*_]*[:：]\Z)|(\n[ \t>#*_]*)({_ROLES})(?=[ \t*_]*[:：])",
    re.IGNORECASE,
)
_NAME = re.compile(r"[\s/\\]*([\w:.\-\u00ad]+)")
_FRAMES = frozenset(
    [
        *"memories memorycontext memoryindex memoryask memorymoment".split(),
        *"system sys systemreminder systemprompt developer user human assistant".split(),
        *"instructions tool tools tooluse toolresult toolresults toolcall toolcalls toolresponse".split(),
        *"function functions functioncall functioncalls functionresult functionresults invoke thinking".split(),
        *"imstart imend endoftext endofturn startofturn s".split(),
    ]
)


def neutral(text: str) -> str:
    """Return a text without invisible characters and with another sign where a frame of a conversation would begin.

    Tabs, line breaks, the joiners inside words and emoji, and the tags of ordinary markup stay.
    """
    if not _SUSPECT.search(text):
        return text
    seen = without_invisible(text)
    seen = _LESS.sub(lambda less: "‹" * len(less[0]) if _is_frame_name(less[1]) else less[0], seen)
    seen = _ESCAPED.sub(lambda less: "‹" if _is_frame_name(less[1]) else less[0], seen)
    seen = _INSTRUCTIONS.sub("⟦", seen)
    return _TURN.sub(lambda turn: f"{turn[1] or turn[3] or ''}[{turn[2] or turn[4]}]", seen)


def without_invisible(text: str) -> str:
    """Return a text without invisible characters; the end of a line or a page becomes a space."""
    return _UNSEEN.sub("", SEPARATORS.sub(gap_for, text))


def neutral_json(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with every text in it neutral, the names of fields too."""
    return {neutral(name): _neutral_value(value) for name, value in body.items()}


def _neutral_value(value: Any) -> Any:
    """Return a JSON value with every text in it neutral."""
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, list):
        return [_neutral_value(part) for part in value]
    return neutral_json(value) if isinstance(value, Mapping) else value


def _is_frame_name(after: str) -> bool:
    """Return whether the text after `<` is the name of a frame, however it is spaced or written."""
    plain = without_look_alikes(unicodedata.normalize("NFKC", after).casefold())
    name = _NAME.match(plain)
    whole = "".join(filter(str.isalnum, plain))
    first = "".join(filter(str.isalnum, name[1])) if name else ""
    return plain.lstrip().startswith("|") or bool({first.removeprefix("antml"), whole} & _FRAMES)


def without_marks(text: str) -> str:
    """Return a text in lower case, in compatible characters and without accents; non-Latin scripts keep their marks."""
    apart = unicodedata.normalize("NFKD", limit_marks(text)).casefold()
    return unicodedata.normalize("NFC", "".join(char for char in apart if not "\u0300" <= char <= "\u036f"))
