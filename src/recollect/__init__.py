"""Recollect: durable, searchable memory for AI agents and their teams.

Everything here is loaded on first use, so that `import recollect` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from sys import modules

TYPE_CHECKING = False  # as `typing` has it, which takes longer to import than all else that a hook needs
if TYPE_CHECKING:
    from recollect.app import App as App
    from recollect.client.connection import Connection as Connection
    from recollect.domain.enums import FactType as FactType
    from recollect.domain.enums import Scope as Scope
    from recollect.domain.requests import ByConcept as ByConcept
    from recollect.domain.requests import ByFile as ByFile
    from recollect.domain.requests import Caller as Caller
    from recollect.domain.requests import Draft as Draft
    from recollect.domain.requests import FactQuery as FactQuery
    from recollect.domain.requests import FindSimilar as FindSimilar
    from recollect.domain.requests import Forget as Forget
    from recollect.domain.requests import ForPrompt as ForPrompt
    from recollect.domain.requests import Get as Get
    from recollect.domain.requests import Inspect as Inspect
    from recollect.domain.requests import Listing as Listing
    from recollect.domain.requests import MemoryRecall as MemoryRecall
    from recollect.domain.requests import MemoryRemember as MemoryRemember
    from recollect.domain.requests import MemoryStore as MemoryStore
    from recollect.domain.requests import Purge as Purge
    from recollect.domain.requests import Query as Query
    from recollect.domain.requests import ReadAccess as ReadAccess
    from recollect.domain.requests import Rescan as Rescan
    from recollect.domain.requests import Restore as Restore
    from recollect.domain.requests import SoftForget as SoftForget
    from recollect.domain.requests import StoreFact as StoreFact
    from recollect.domain.requests import Summarize as Summarize
    from recollect.domain.requests import Timeline as Timeline
    from recollect.domain.requests import Update as Update
    from recollect.domain.results import Entity as Entity
    from recollect.domain.results import Fact as Fact
    from recollect.domain.results import FactsFound as FactsFound
    from recollect.domain.results import Hit as Hit
    from recollect.domain.results import JournalEntry as JournalEntry
    from recollect.domain.results import Listed as Listed
    from recollect.domain.results import Memory as Memory
    from recollect.domain.results import Outcome as Outcome
    from recollect.domain.results import Prompt as Prompt
    from recollect.domain.results import Purged as Purged
    from recollect.domain.results import Recalled as Recalled
    from recollect.domain.results import Similar as Similar
    from recollect.domain.results import Stats as Stats
    from recollect.domain.results import Summarized as Summarized
    from recollect.domain.review import Rescanned as Rescanned
    from recollect.doors.python import AsyncConnection as AsyncConnection
    from recollect.doors.python import connect as connect
    from recollect.doors.python import connect_async as connect_async
    from recollect.errors import RecollectError as RecollectError
    from recollect.memory.aliases import memory_recall as memory_recall
    from recollect.memory.aliases import memory_remember as memory_remember
    from recollect.memory.aliases import memory_store as memory_store
    from recollect.memory.facts import forget_fact as forget_fact
    from recollect.memory.facts import query_facts as query_facts
    from recollect.memory.facts import store_fact as store_fact
    from recollect.memory.forget import forget as forget
    from recollect.memory.forget import memory_forget as memory_forget
    from recollect.memory.forget import purge_expired as purge_expired
    from recollect.memory.listing import get_memory as get_memory
    from recollect.memory.listing import get_timeline as get_timeline
    from recollect.memory.listing import list_memories as list_memories
    from recollect.memory.listing import search_by_concept as search_by_concept
    from recollect.memory.listing import search_by_file as search_by_file
    from recollect.memory.prompt import format_for_prompt as format_for_prompt
    from recollect.memory.reindex import reindex as reindex
    from recollect.memory.remember import remember as remember
    from recollect.memory.reports import doctor as doctor
    from recollect.memory.reports import history as history
    from recollect.memory.reports import stats as stats
    from recollect.memory.rescan import rescan as rescan
    from recollect.memory.restore import restore_memory as restore_memory
    from recollect.memory.similar import find_similar as find_similar
    from recollect.memory.summarize import summarize_old as summarize_old
    from recollect.memory.update import update_memory as update_memory
    from recollect.search.recall import recall as recall
    from recollect.settings import Settings as Settings
    from recollect.wiring import backup as backup
    from recollect.wiring import open_app as open_app
    from recollect.wiring import restore as restore

__version__ = "0.1.0"

_NAMES = {
    "recollect.app": "App",
    "recollect.client.connection": "Connection",
    "recollect.domain.enums": "FactType Scope",
    "recollect.domain.requests": """
        ByConcept ByFile Caller Draft FactQuery FindSimilar ForPrompt Forget Get Inspect Listing MemoryRecall
        MemoryRemember MemoryStore Purge Query ReadAccess Rescan Restore SoftForget StoreFact Summarize Timeline
        Update
    """,
    "recollect.domain.results": """
        Entity Fact FactsFound Hit JournalEntry Listed Memory Outcome Prompt Purged Recalled Similar
        Stats Summarized
    """,
    "recollect.domain.review": "Rescanned",
    "recollect.doors.python": "AsyncConnection connect connect_async",
    "recollect.errors": "RecollectError",
    "recollect.memory.aliases": "memory_recall memory_remember memory_store",
    "recollect.memory.facts": "forget_fact query_facts store_fact",
    "recollect.memory.forget": "forget memory_forget purge_expired",
    "recollect.memory.listing": "get_memory get_timeline list_memories search_by_concept search_by_file",
    "recollect.memory.prompt": "format_for_prompt",
    "recollect.memory.reindex": "reindex",
    "recollect.memory.remember": "remember",
    "recollect.memory.reports": "doctor history stats",
    "recollect.memory.rescan": "rescan",
    "recollect.memory.restore": "restore_memory",
    "recollect.memory.similar": "find_similar",
    "recollect.memory.summarize": "summarize_old",
    "recollect.memory.update": "update_memory",
    "recollect.search.recall": "recall",
    "recollect.settings": "Settings",
    "recollect.wiring": "backup open_app restore",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=modules[__name__])
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
