"""The console script. A coding agent waits for each of its hooks, so a hook starts with next to nothing imported."""

from __future__ import annotations

from importlib import import_module
from sys import argv, exit


def main() -> None:
    """Run what was typed."""
    words = argv[1:]
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        import_module("recollect.doors.hook").main(words[1:], {})
    exit(import_module("recollect.doors.dispatch").run(words))
