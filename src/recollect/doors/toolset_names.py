"""The names of the toolsets, apart from the tools: what checks a command line needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from recollect.errors import InvalidInput

SETS: Final = ("memory", "store", "dual", "more")
DEFAULT: Final = ("memory",)


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return these toolsets, each once, or the default without any; raise `InvalidInput` for an unknown one."""
    wanted = tuple(dict.fromkeys(names)) or DEFAULT
    if unknown := next((name for name in wanted if name not in SETS), None):
        known = ", ".join(f"`{name}`" for name in SETS)
        raise InvalidInput("toolset", f"Unknown toolset: `{unknown}`. Allowed: {known}")
    return wanted
