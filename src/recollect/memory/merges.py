"""Merges: of which statements a merged memory consists, and the memory without one of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.enums import OnSecret
from recollect.domain.requests import Draft
from recollect.domain.results import Memory
from recollect.gate import clear
from recollect.memory.likeness import merged
from recollect.memory.prepare_write import Embeddings, PreparedDraft, draft_of, entry_for, prepare
from recollect.memory.reconcile import expired

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

LABELS = ("tags", "concepts", "files_read", "files_modified")
"""The fields of which a merged memory has what all its parts have."""


def statements(whole: Memory, parts: Sequence[Memory]) -> list[Memory]:
    """Return those of `parts`, its earlier texts too, of which the memory consists; none where it says more or less."""
    said = [one for one in parts if merged(whole.content, one.content) == whole.content]
    return said if said and _content(said) == whole.content else []


def without(
    app: App, transaction: Writing, part: Memory, author: str, embedded: Embeddings, on_secret: OnSecret
) -> bool:
    """Take a statement out of the memory that it was merged into; say whether that consisted of its statements still.

    Where one statement is left, the memory has its text and labels again. Raises `EmbeddingNeeded` and `SecretFound`.
    """
    whole = transaction.by_id(part.merged_into) if part.merged_into is not None else None
    said = statements(whole, transaction.archived(whole.id)) if whole is not None else []
    rest = [one for one in said if one.id != part.id]
    if whole is None or not rest or len(rest) == len(said):
        return False
    cleared = clear(draft_of(rest[0], key=whole.key) if len(rest) == 1 else _joined(rest), on_secret)
    one = prepare(app, cleared, whole, embedded)
    if expired(whole, app.clock()):
        one = PreparedDraft(cleared, one.content_hash, ())  # no index holds what is hidden
    transaction.update(whole, entry_for(app, one, whole, author), "update", revive=False)
    if len(rest) == 1:
        transaction.delete(rest[0].id)
    return True


def _joined(parts: Sequence[Memory]) -> Draft:
    labels = {name: tuple(dict.fromkeys(chain(*(getattr(one, name) for one in parts)))) for name in LABELS}
    sure = max(one.confidence for one in parts)
    return Draft(content=_content(parts), scope=parts[0].scope, confidence=sure, **labels)


def _content(parts: Sequence[Memory]) -> str:
    return reduce(merged, (one.content for one in parts))
