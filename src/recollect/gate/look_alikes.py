"""Reads letters of other scripts that look like Latin ones: a secret or an order to a model may hide behind them."""

from __future__ import annotations

import re
from typing import Final

from recollect.gate.tables import pattern

_LATIN: Final = str.maketrans(
    "аеорсухіјѕкмтвнԁԛԝһгпАВЕКМНОРСТУХІЈЅҮԚԜαεογνρτικυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡʏ",
    "aeopcyxijskmtbhdqwhrnABEKMHOPCTYXIJSYQWaeoyvptikuxwABEZHIKMNOPTYXiagy",
)
_WORD: Final = re.compile(r"\w{1,256}")


def without_look_alikes(text: str) -> str:
    """Return the text with Greek and Cyrillic letters as the Latin ones they resemble, in words that mix scripts."""
    mixed = pattern("mixed_scripts").search
    if text.isascii() or not mixed(text):
        return text
    return _WORD.sub(lambda word: word[0].translate(_LATIN) if mixed(word[0]) else word[0], text)
