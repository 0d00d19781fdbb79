"""`App`, the frozen bag that carries everything an operation needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from recollect.domain.enums import OnSecret
from recollect.domain.lifecycle import LifecycleSettings
from recollect.domain.results import Check
from recollect.ports.accounts import Accounts
from recollect.ports.models import Capabilities, Embedder, Fusion
from recollect.ports.search import ShadowIndex, Text, Vectors
from recollect.ports.sessions import Sessions
from recollect.ports.storage import ExportReader, Records, RetentionRules


@dataclass(frozen=True, kw_only=True)
class App:
    """Everything an operation needs, chosen once by wiring. Use it as a context manager, or call `close`."""

    on_secret: OnSecret
    retention_rules: RetentionRules
    lifecycle: LifecycleSettings
    sessions: Sessions
    accounts: Accounts
    records: Records
    export_reader: ExportReader
    text: Text
    vectors: Vectors
    shadow_index: ShadowIndex
    embedder: Embedder
    open_model: Callable[[str, Path | None], Embedder]
    fusion: Fusion
    capabilities: Capabilities
    clock: Callable[[], datetime]
    run_later: Callable[[Callable[[], None]], None]
    ask_later: Callable[[Callable[[], None]], None]
    """Runs what asks a language model behind the answer; where nothing works in the background, at once."""
    checks: Callable[..., list[Check]]
    remaining: Callable[[], list[str]]
    close: Callable[[], None]
    reads_folders: bool = True
    """Whether the folders that events name are on this machine, so that the settings in them count."""

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
