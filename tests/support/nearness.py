"""Late interaction by memory: a row of the columns that the store returns, for tests that look at one memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recollect.engines import signal_columns


class LateInteraction(NamedTuple):
    """The cosine of a memory, and its late interaction, which is None where its tokens are not stored."""

    cosine: float
    late: float | None
    rare: float | None


def by_memory(columns: signal_columns.LateInteraction) -> dict[int, LateInteraction]:
    """Return the row of each memory."""
    rows = zip(columns.ids, *(column.tolist() for column in columns[1:]), strict=True)
    known = ((memory_id, [None if np.isnan(value) else value for value in values]) for memory_id, *values in rows)
    return {memory_id: LateInteraction(*values) for memory_id, values in known}
