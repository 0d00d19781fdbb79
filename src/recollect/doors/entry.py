"""The console script. A coding agent waits for each of its hooks, so a hook starts with next to nothing imported."""

from __future__ import annotations

from sys import argv, exit


def main() -> None:
    """Run the typed command."""
    words = argv[1:]
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from recollect.doors.hook import main as run_hook

        run_hook(words[1:], {})
    from recollect.doors.cli.dispatch import run

    code = run(words)
    if code is None:
        from recollect.doors.cli.main import main as run_here

        code = run_here()
    exit(code)
