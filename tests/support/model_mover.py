"""A process that moves a store to the second model, asks after every step, and says on stdout how far it is.

The parent kills it at any instant.
"""

from __future__ import annotations

import sys
from pathlib import Path

from recollect import Query, Settings, open_app, recall, reindex
from second_model import NAME


def say(*words: object) -> None:
    """Write one line and see to it that it has left this process."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def work(models: Path) -> None:
    """Move the store; each line of progress carries the key of what recall found."""
    with open_app() as app:
        say("ready")

        def report(done: int, total: int) -> None:
            hits = recall(app, Query(query="Which page speaks of the walrus?", min_score=0.0), Settings().caller).hits
            say("at", done, total, hits[0].memory.key if hits else "nothing")

        reindex(app, report, model=NAME, models_dir=models)
        say("over")


if __name__ == "__main__":
    work(Path(sys.argv[1]))
