"""Merges: the draft that joins a memory, the statements of a merged memory, and that memory without one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.enums import OnSecret
from recollect.domain.moments import MOST as MOST_MOMENTS
from recollect.domain.requests import Draft
from recollect.domain.results import Memory
from recollect.memory.likeness import merged_text
from recollect.memory.prepare_write import Embeddings, draft_of, entry_for, prepare_draft
from recollect.memory.reconcile import expired

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

LABELS = {"tags": None, "concepts": None, "files_read": None, "files_modified": None, "when": MOST_MOMENTS}
"""The fields of which a merged memory has what all its parts have, or the last of that where a number says how much."""


def merged_draft(old: Memory, new: Draft) -> Draft:
    """Return the draft that says what both drafts say, with the labels of both and the higher confidence."""
    return _with_labels(
        old, new, content=merged_text(old.content, new.content), confidence=max(old.confidence, new.confidence)
    )


def refreshed_draft(old: Memory, new: Draft) -> Draft:
    """Return a draft of the old text with the labels that the new draft brought."""
    return _with_labels(old, new, content=old.content)


def _with_labels(old: Memory, new: Draft, **fields: object) -> Draft:
    """Return a draft of these `fields` with the labels, importance and term of both."""
    labels = {
        name: _last_distinct((*getattr(old, name), *getattr(new, name)), most)
        for name, most in LABELS.items()
        if getattr(new, name)
    }
    importance = {"importance": max(old.importance, new.importance)} if "importance" in new.model_fields_set else {}
    term = {} if new.ttl_days is None or old.ttl_days is None else {"ttl_days": max(old.ttl_days, new.ttl_days)}
    return Draft(scope=new.scope, source=old.source, **fields, **labels, **importance, **term)


def statements_of(whole: Memory, parts: Sequence[Memory]) -> list[Memory]:
    """Return those of `parts`, earlier texts too, of which the memory consists; empty where it says more or less."""
    said = [one for one in parts if merged_text(whole.content, one.content) == whole.content]
    return said if said and _joined_content(said) == whole.content else []


def take_statement_out(
    app: App, writing: Writing, part: Memory, author: str, embedded: Embeddings, on_secret: OnSecret
) -> bool:
    """Take a statement out of a merged memory; return whether the memory still consisted of its statements.

    Where one statement is left, the memory has its text and labels again. Raises `EmbeddingNeeded` and `SecretFound`.
    """
    whole = writing.lookup.by_id(part.merged_into) if part.merged_into is not None else None
    said = statements_of(whole, writing.lookup.archived(whole.id)) if whole is not None else []
    rest = [one for one in said if one.id != part.id]
    if whole is None or not rest or len(rest) == len(said):
        return False
    draft = draft_of(rest[0], key=whole.key) if len(rest) == 1 else joined_draft(rest)
    shown = not expired(whole, app.clock())
    one = prepare_draft(app, draft, whole, embedded, on_secret=on_secret, indexed=shown)
    writing.memories.update(whole, entry_for(app, one, whole, author), "update", revive=False, keep=False)
    if len(rest) == 1:
        writing.memories.delete(rest[0].id)
    return True


def drop_earlier_wholes(writing: Writing, whole: int, part: Memory) -> None:
    """Delete the earlier texts of a merged memory that consist of its statements, this part among them."""
    parts = writing.lookup.archived(whole)
    for one in parts:
        said = statements_of(one, [each for each in parts if each.id != one.id])
        if len(said) > 1 and part.id in [each.id for each in said]:
            writing.memories.delete(one.id)


def joined_draft(parts: Sequence[Memory]) -> Draft:
    """Return the draft that says what these statements say together, with the labels of all."""
    labels = {
        name: _last_distinct(chain(*(getattr(one, name) for one in parts)), most) for name, most in LABELS.items()
    }
    sure = max(one.confidence for one in parts)
    return Draft(content=_joined_content(parts), scope=parts[0].scope, confidence=sure, **labels)


def _last_distinct(values: Iterable[str], most: int | None) -> tuple[str, ...]:
    """Return the distinct values, at most the last `most` of them; all where `most` is None."""
    return tuple(dict.fromkeys(values))[-(most or 0) :]


def _joined_content(parts: Sequence[Memory]) -> str:
    """Return one text that says what all parts say."""
    return reduce(merged_text, (one.content for one in parts))
