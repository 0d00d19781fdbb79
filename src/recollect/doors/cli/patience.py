"""A word for whoever waits at a terminal: a command that has no answer after a second says what it waits for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from threading import Timer
from typing import Final

from recollect import environment

AFTER: Final = 1.0
"""Seconds of silence before the line."""
LINE: Final = "Waiting for the memory daemon. After a pause its start takes some seconds."
JSON: Final = "--json"
_DIM: Final = "\x1b[2m{}\x1b[0m"


@contextmanager
def told_after_a_second(words: Sequence[str]) -> Iterator[None]:
    """Print one dim line on standard error if the block takes longer than a second.

    Nothing is printed unless a person sits before both streams, nor where the `words` of the command ask for JSON.
    """
    if not _is_watched(words):
        yield
        return
    timer = Timer(AFTER, _say_wait)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _is_watched(words: Sequence[str]) -> bool:
    for stream in (sys.stdout, sys.stderr):
        if stream is None or not stream.isatty():
            return False
    return not {JSON, "json"} & {*takewhile(lambda word: word != "--", words)}


def _say_wait() -> None:
    plain = {"NO_COLOR"} & environment.of_terminal().keys() or environment.of_terminal().get("TERM") == "dumb"
    sys.stderr.write(f"{LINE if plain else _DIM.format(LINE)}\n")
    sys.stderr.flush()
