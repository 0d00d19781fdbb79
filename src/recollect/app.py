"""`App`, the frozen bag that carries everything an operation needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.domain.enums import OnSecret, Retention
from recollect.domain.lifecycle import LifecycleSettings
from recollect.domain.results import Check
from recollect.engines.embedder import Embedder

if TYPE_CHECKING:
    from recollect.engines.chat import PydanticAiChat
    from recollect.engines.cross_encoder import CrossEncoderRerank
    from recollect.engines.describe import ChatDescribe
    from recollect.engines.fusion import LearnedFusion
    from recollect.engines.reconcile import ChatReconcile
    from recollect.store.erasure import StorePlaces
    from recollect.store.sql.accounts import Accounts
    from recollect.store.sql.export_reader import ExportReader
    from recollect.store.sql.limits import UsageLimits
    from recollect.store.sql.records import Records
    from recollect.store.sql.sessions import Sessions
    from recollect.store.text.index import TextIndex
    from recollect.store.usage_counts import UsageCounts
    from recollect.store.vectors.shadow_index import ShadowIndex
    from recollect.store.vectors.vector_search import VectorSearch


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """How long memories are kept, how many in one namespace at most (0: no limit), and how long one may wait."""

    retention: Retention = Retention.KEEP
    max_memories: int = 0
    inbox_days: float = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The skills that this store was opened with, None for each that is off; and whether strangers share it."""

    rerank: CrossEncoderRerank | None = None
    reconcile: ChatReconcile | None = None
    describe: ChatDescribe | None = None
    chat: PydanticAiChat | None = None
    shared: bool = False


@dataclass(frozen=True, kw_only=True)
class App:
    """Everything an operation needs, chosen once by wiring. Use it as a context manager, or call `close`."""

    on_secret: OnSecret
    retention_rules: RetentionRules
    lifecycle: LifecycleSettings
    sessions: Sessions
    accounts: Accounts
    records: Records
    usage: UsageCounts
    export_reader: ExportReader
    text: TextIndex
    vectors: VectorSearch
    shadow_index: ShadowIndex
    embedder: Embedder
    open_model: Callable[[str, Path | None], Embedder]
    fusion: LearnedFusion
    capabilities: Capabilities
    clock: Callable[[], datetime]
    run_later: Callable[[Callable[[], None]], None]
    ask_later: Callable[[Callable[[], None]], None]
    """Runs what asks a language model behind the answer; where nothing works in the background, at once."""
    checks: Callable[..., Iterator[Check]]
    remaining: Callable[[], list[str]]
    places: StorePlaces
    """Where the store keeps what people wrote, for a look after an erasure."""
    close: Callable[[], None]
    limits: UsageLimits
    token_days_max: float = 0.0
    """How many days a token may be valid that a user makes; 0 is any number, and without end."""
    reads_folders: bool = True
    """Whether the folders that events name are on this machine, so that the settings in them count."""

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
