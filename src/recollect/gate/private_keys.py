"""Finds private keys of several lines: PEM, OpenSSH, PGP, SSH2 and PuTTY, with or without their last line.

A finding covers the whole block, so that redaction leaves nothing of the body.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

_NAME: Final = r"(?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?(?: ?-{2,8})?"
_BEGIN: Final = re.compile(rf"(?:-{{2,8}} ?)?BEGIN {_NAME}")
_END: Final = re.compile(rf"END {_NAME}")
_PUTTY: Final = re.compile(r"PuTTY-User-Key-File-\d")
_PUTTY_END: Final = re.compile(r"Private-MAC: *[0-9a-fA-F]*")
_BODY: Final = re.compile(
    r"""(?x)(?:[\s"'\\,]{0,12}+(?:[A-Za-z][A-Za-z\-]{2,20}:[ ][^\n]{1,200}+|[A-Za-z0-9+/]{20,}+={0,2}))*+
        (?:[\s"'\\,]{0,12}+[A-Za-z0-9+/]{1,76}+={0,2}(?=["'\n]|\s*$))?"""
)
_FARTHEST: Final = 65_536
_PUTTY_FARTHEST: Final = 8_192


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each private key."""
    yield from _key_spans(text, _BEGIN, _END, _FARTHEST)
    yield from _key_spans(text, _PUTTY, _PUTTY_END, _PUTTY_FARTHEST)


def _key_spans(text: str, begin: re.Pattern[str], end: re.Pattern[str], farthest: int) -> Iterator[tuple[int, int]]:
    """Yield the span from each `begin` to the next `end` within `farthest` characters, else to the end of the body."""
    heads = [match.span() for match in begin.finditer(text)]
    if not heads:
        return
    tails = [match.span() for match in end.finditer(text)]
    starts = [start for start, _ in tails]
    for start, stop in heads:
        place = bisect_left(starts, stop)
        if place < len(tails) and tails[place][0] - stop <= farthest:
            yield start, tails[place][1]
        else:
            body = _BODY.match(text, stop)
            yield start, body.end() if body else stop
