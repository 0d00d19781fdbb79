"""Summaries of memories: what every one of them keeps, and how it takes the place of its members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from recollect.domain.enums import Observation, Scope, Source
from recollect.domain.requests import Caller, Draft
from recollect.domain.results import Memory
from recollect.errors import SecretFound
from recollect.operations.prepare_write import clear_or_journal, entry_for, evict_surplus, prepare
from recollect.policy.condense import kept_fields
from recollect.ports.app import App

_MOST_ENTITIES: Final = 100


def write_summary(
    app: App, scope: Scope, content: str, title: str, category: str | None, members: Sequence[Memory], caller: Caller
) -> int | None:
    """Write a summary of public memories, which rank below it from then on; return its id.

    It has every label, file, entity and the highest importance of its members; their facts stay with them, and pass to
    the summary when a member is evicted. None is written where one changed meanwhile or the gate refuses.
    """
    namespace = caller.namespace(scope)
    draft = Draft(
        content=content,
        title=title,
        scope=scope,
        type=Observation.COMPRESSED_SUMMARY,
        category=category,
        source=Source.COMPRESSION,
        **kept_fields(members),
    )
    try:
        one = prepare(app, clear_or_journal(app, draft, namespace, caller))
    except SecretFound:
        return None
    entry = entry_for(app, one, None, caller.user)
    named = dict.fromkeys(chain(entry.entities, *(member.entities for member in members)))
    with app.records.writing(namespace, caller.user) as transaction:
        if any(transaction.by_id(member.id) != member for member in members):
            return None
        new = transaction.insert(replace(entry, entities=tuple(named)[:_MOST_ENTITIES]))
        for member in members:
            transaction.supersede(member.id, by=new)
        if evict_surplus(app, transaction, new):
            app.run_later(app.text.purge_deleted)
    return new
