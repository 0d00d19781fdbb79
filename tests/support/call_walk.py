"""The walk of a verb: how many functions a reader passes, and how often the way leads back up to the verb's room."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import recollect

SOURCE = f"{Path(recollect.__file__).parent}/"
NOUNS = ("domain", "wiring")
"""The rooms whose functions are small questions, such as to which namespace a caller writes, or what time it is."""


class Walk:
    """The functions of the verb's room, and those of other rooms that it calls, in the order of their first call."""

    def __init__(self, verb: str) -> None:
        self.verb = verb
        self.functions: list[tuple[str, str]] = []

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note the calls of this thread until the block ends."""
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; what the language generates, such as comprehensions, and properties are passed over."""
        if event != "call" or (here := place_of(frame)) is None or is_property(frame):
            return
        outer = frame.f_back
        while outer is not None and place_of(outer) is None:
            outer = outer.f_back
        called_from = None if outer is None else place_of(outer)
        own = here[0] == self.verb or called_from is None or called_from[0] == self.verb
        if own and here[0] not in NOUNS and here not in self.functions:
            self.functions.append(here)

    @property
    def climbs(self) -> int:
        """Count the ways back to the verb's room that are followed by a way down: one fewer than the ways down."""
        rooms = [room for room, _ in self.functions]
        return sum(room == self.verb != following for room, following in pairwise(rooms)) - 1


def place_of(frame: FrameType) -> tuple[str, str] | None:
    """Return the room and the name of a function of the package; None for all else."""
    code = frame.f_code
    if not code.co_filename.startswith(SOURCE) or code.co_name.startswith(("<", "__")):
        return None
    path = code.co_filename.removeprefix(SOURCE)
    return path.partition("/")[0].removesuffix(".py"), f"{path}:{code.co_qualname}"


def is_property(frame: FrameType) -> bool:
    """Return whether a call reads a property."""
    return isinstance(getattr(type(frame.f_locals.get("self")), frame.f_code.co_name, None), property)
