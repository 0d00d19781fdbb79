"""Folders of the checkout that tests read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parents[1]
ROOT: Final = TESTS.parent
SCRIPTS: Final = ROOT / "scripts"
DOCS: Final = ROOT / "docs"
MODELS: Final = ROOT / "models"
DEFAULT_MODEL: Final = MODELS / "notes-MiniLM-L6-v2"
