"""Summaries of memories: what every one keeps, how it takes the place of its members, and forgets one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from recollect.app import App
from recollect.domain.enums import OF_SESSION, ObservationType, OnSecret, Scope, Source
from recollect.domain.origin import least_trusted
from recollect.domain.requests import Caller, Draft
from recollect.domain.results import Memory
from recollect.errors import SecretFound
from recollect.memory.condense import IN_SHORT, kept_fields, quotable_text, quotes_any
from recollect.memory.describe import sum_up_later
from recollect.memory.prepare_write import (
    Embeddings,
    draft_of,
    entry_for,
    evict_memory,
    journal_refusals,
    new_entry,
    prepare_draft,
)
from recollect.memory.reconcile import expired

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

MOST_NAMED: Final = 100
_SUMMING: Final = OF_SESSION | {ObservationType.COMPRESSED_SUMMARY}


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
        type=ObservationType.COMPRESSED_SUMMARY,
        category=category,
        source=Source.COMPRESSION,
        **kept_fields(members),
    )
    try:
        with journal_refusals(app, namespace, caller):
            one = prepare_draft(app, draft)
    except SecretFound:
        return None
    entry = new_entry(app, one, caller.user, least_trusted(one.stamp for one in members), review_of_members(members))
    named = dict.fromkeys(chain(entry.parts.entities, *(member.entities for member in members)))
    with app.records.writing(caller.writable(namespace), caller.user) as transaction:
        if any(transaction.lookup.by_id(member.id) != member for member in members):
            return None
        new = transaction.memories.insert(entry.with_entities(islice(named, MOST_NAMED)))
        for member in members:
            transaction.memories.supersede(member.id, by=new)
        surplus = transaction.retention.surplus(app.retention_rules.max_memories, new)
        for memory_id in surplus:
            evict_memory(transaction, memory_id)
    if surplus:
        app.run_later(app.text.purge_deleted)
    sum_up_later(app, new, members, caller)
    return new


def review_of_members(members: Iterable[Memory]) -> str | None:
    """Return the reason why a summary waits for a decision: that of its member of least authority, else None."""
    slight = min(members, key=lambda one: (one.speaks_unasked, one.authority))
    return slight.review


def session_key(session_id: str) -> str:
    """Return the key of the one memory that sums up a session: a checkpoint until it ends, then its summary."""
    return f"session:{session_id}"[:192] + ":summary"


def ids_that_replaced(app: App, memory_id: int, namespace: str) -> frozenset[int]:
    """Return the ids of the memories that ever replaced this one: a summary still quotes a member once restored."""
    lines = app.records.journal.history(memory_id, [namespace])
    return frozenset(int(by) for one in lines if (by := one.changes.get("superseded_by")))


def take_quotes_out(
    app: App, transaction: Writing, member: Memory, author: str, embedded: Embeddings, before: Iterable[int] = ()
) -> tuple[int, ...]:
    """Remove the lines that quote a member from the summaries of it; return the ids of the changed summaries.

    That is the summary which took its place, those that did `before`, and what sums up its session. One of which no
    line is left is deleted. Raises `EmbeddingNeeded`.
    """
    numbers = {*before, member.superseded_by} - {None}
    found = [transaction.lookup.by_id(one) for one in sorted(filter(None, numbers))]
    if member.session_id:
        found.append(transaction.lookup.by_key(session_key(member.session_id)))
    summing = [one for one in found if one is not None and one.type in _SUMMING and one.id != member.id]
    for earlier in [each for one in summing for each in transaction.lookup.archived(one.id)]:
        _take_lines_out(app, transaction, earlier, member, author, embedded)
    return tuple(one.id for one in summing if _take_lines_out(app, transaction, one, member, author, embedded))


def _take_lines_out(
    app: App, transaction: Writing, whole: Memory, member: Memory, author: str, embedded: Embeddings
) -> bool:
    """Remove the lines that quote a member, or all members together, from a summary; say whether there were any."""
    first, *lines = whole.content.split("\n")
    rest = [line for line in lines if not line.startswith(IN_SHORT) and not quotes_any(line, [quotable_text(member)])]
    if len(rest) == len(lines):
        return False
    rest = [line for line, after in zip(rest, [*rest[1:], ""], strict=False) if line[-1:] != ":" or after[:2] == "- "]
    if not rest:
        transaction.memories.delete(whole.id)
        return True
    fields = draft_of(whole).model_dump(exclude_unset=True, exclude={"abstract", "overview"})  # these are made anew
    draft = Draft(**fields | {"content": "\n".join([first, *rest])})
    shown = not expired(whole, app.clock()) and whole.merged_into is None
    one = prepare_draft(app, draft, whole, embedded, on_secret=OnSecret.REDACT, indexed=shown)
    transaction.memories.update(whole, entry_for(app, one, whole, author), "update", revive=False, keep=False)
    return True
