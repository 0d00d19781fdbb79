"""Compression at the end of a session: old memories about the same rank below one summary of them.

It concerns what consolidation concerns. Nothing is destroyed: members stay findable below their summary, `restore`
makes each current again, and what somebody took out of a summary once is never put into another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from recollect.app import App
from recollect.domain.enums import Observation, Scope
from recollect.domain.lifecycle import EndSession, LifecycleSettings
from recollect.domain.requests import Caller
from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.lifecycle.capabilities import COMPRESSION
from recollect.lifecycle.context import Context
from recollect.operations.summaries import write_summary
from recollect.policy.compression import FEWEST, clusters, summary, topic

_SUMMARIES: Final = 5
"""Summaries of one session's end; the next end writes the next."""

_LOOKED_AT: Final = 1_000
"""Memories that are compared at one session's end: those that were written last of the old ones."""

Say = Callable[[Sequence[Memory]], str]
"""Makes one text of a cluster's members."""


@dataclass(frozen=True, slots=True)
class Compressed:
    """How many memories were compared, and which summaries were written of how many."""

    looked_at: int
    ids: tuple[int, ...]
    members: int


def at_session_end(context: Context[EndSession]) -> None:
    """Compress the memories of the session's project, where the capability is there."""
    compress_old = context.capabilities.get(COMPRESSION)
    if compress_old is not None:
        compress_old()


def compress(app: App, caller: Caller, settings: LifecycleSettings, say: Say = summary) -> Compressed:
    """Write a summary of each cluster of old memories about the same, at most five of them."""
    old = _old(app, caller, settings)
    written: list[int] = []
    members = 0
    for cluster in clusters(old, app.clock(), timedelta(days=settings.compression_min_age_days)):
        some = [one for one in cluster if not _was_replaced(app, one)]
        if len(some) < FEWEST:
            continue
        new = _write(app, some, say, caller)
        if new is not None:
            written.append(new)
            members += len(some)
        if len(written) == _SUMMARIES:
            break
    return Compressed(len(old), tuple(written), members)


def _old(app: App, caller: Caller, settings: LifecycleSettings) -> list[Memory]:
    """Return the memories that are old enough and stand for themselves."""
    now, namespace = app.clock(), caller.writable(caller.namespace(Scope.PROJECT))
    before = now - timedelta(days=settings.compression_min_age_days)
    current = [one for one in app.records.aging(namespace, settings.fading) if not one.replaced]
    ripe = [one for one in current if one.updated_at < before and one.type is not Observation.COMPRESSED_SUMMARY]
    ids = [one.id for one in sorted(ripe, key=lambda one: (one.updated_at, one.id))[-_LOOKED_AT:]]
    view = View(namespaces=app.records.existing_namespaces([namespace]), now=now)
    return list(app.records.load(ids, view).values())


def _was_replaced(app: App, one: Memory) -> bool:
    """Say whether a memory has given way to another before: whoever made it current again wants it so."""
    history = app.records.history(one.id, [one.namespace])
    return any("superseded_by" in line.changes for line in history)


def _write(app: App, some: Sequence[Memory], say: Say, caller: Caller) -> int | None:
    categories = {one.category for one in some}
    about = topic(some)
    title = f"{len(some)} memories" + (f" about {about}" if about else "")
    category = categories.pop() if len(categories) == 1 else None
    return write_summary(app, Scope.PROJECT, say(some), title, category, some, caller)
