"""The walk of `remember`: how many functions a reader passes, and how often the way leads back up to the verb."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import recollect
from callers import ADA
from recollect import App, Draft, remember

SOURCE = f"{Path(recollect.__file__).parent}/"
VERB = "memory"
NOUNS = ("domain", "wiring")
"""The rooms whose functions are small questions, such as to which namespace a caller writes, or what time it is."""
MOST_FUNCTIONS = 30
MOST_CLIMBS = 3


class Walk:
    """The functions of the verb's room, and those of other rooms that it calls, in the order of their first call."""

    def __init__(self) -> None:
        self.functions: list[tuple[str, str]] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; what the language generates, such as comprehensions, and properties are passed over."""
        if event != "call" or (here := place_of(frame)) is None or is_property(frame):
            return
        outer = frame.f_back
        while outer is not None and place_of(outer) is None:
            outer = outer.f_back
        called_from = None if outer is None else place_of(outer)
        own = here[0] == VERB or called_from is None or called_from[0] == VERB
        if own and here[0] not in NOUNS and here not in self.functions:
            self.functions.append(here)

    @property
    def climbs(self) -> int:
        """Count the ways back to the verb's room that are followed by a way down: one fewer than the ways down."""
        rooms = [room for room, _ in self.functions]
        return sum(room == VERB != following for room, following in pairwise(rooms)) - 1


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


def test_a_new_memory_is_a_short_walk(app: App) -> None:
    """To store a new memory, a reader passes at most thirty functions between the verb and the rooms below it."""
    remember(app, Draft(content="Deploys happen on Tuesday mornings."), ADA)
    app.vectors.sync()
    walk = Walk()
    sys.setprofile(walk)
    try:
        remember(app, Draft(content="The API returns cents, never floats."), ADA)
    finally:
        sys.setprofile(None)
    assert len(walk.functions) <= MOST_FUNCTIONS, "\n".join(name for _, name in walk.functions)
    assert walk.climbs <= MOST_CLIMBS, walk.functions
