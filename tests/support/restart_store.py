"""A process of its own that opens the parts of the store in the folder of its first argument, as a daemon would.

A damaged graph may kill it, which no test process would survive. It prints what the doctor saw, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from recollect.engines.late_interaction import similarity
from recollect.store.integrity import examine
from recollect.store.sql.database import open_file
from recollect.store.sql.migrations import migrate
from recollect.store.vectors.chroma import ChromaIndex
from recollect.store.vectors.vector_search import VectorSearch


def run(folder: Path) -> dict[str, str]:
    """Bring the index up to date and return what is not well."""
    database = open_file(folder / "memory.db")
    migrate(database)
    index = ChromaIndex(folder / "chroma", "test")
    vectors = VectorSearch(database, index, threading.Event(), similarity)
    vectors.sync()
    found = {check.name: check.seen for check in examine(database, vectors, index) if not check.well}
    found |= {} if vectors.state == "ready" else {"state": vectors.state}
    vectors.close()
    database.close()
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Path(sys.argv[1]))))
