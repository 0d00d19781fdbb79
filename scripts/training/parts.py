"""The four parts of what trains, so that the vectors of a set can come from an adapter that never saw it."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Final

from recollect.errors import InvalidInput

FILE: Final = Path(__file__).with_name("parts.toml")


def part_of(name: str, group: str) -> int:
    """Return the part of one group of a set; raises `InvalidInput` where neither is in the file."""
    parts = _parts()
    found = parts.get(group, parts.get(name))
    if found is None:
        raise InvalidInput("part", f"{FILE.name} names neither {name} nor {group}; add one to a part.")
    return found


@cache
def _parts() -> dict[str, int]:
    parts = tomllib.loads(FILE.read_text(encoding="utf-8"))["parts"]
    return {name: number for number, names in enumerate(parts) for name in names.split()}
