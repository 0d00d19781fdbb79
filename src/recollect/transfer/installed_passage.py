"""The passage that `recollect install` writes into an instruction file, and how it is known there."""

from __future__ import annotations

import re
from typing import Final

PASSAGE_BEGIN: Final = re.compile(r"<!-- recollect:begin\b[^>]{0,200}-->")
PASSAGE_END: Final = "<!-- recollect:end -->"
PASSAGE: Final = re.compile(
    rf"{PASSAGE_BEGIN.pattern}(?:[^<]++|<(?!!-- recollect:(?:begin|end)\b))*+{re.escape(PASSAGE_END)}(?:\r?\n)?"
)
"""What `recollect install` writes into an instruction file: it is no memory, and no other one begins within it."""
