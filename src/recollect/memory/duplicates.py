"""What a draft resembles in exactly its namespace and level of sensitivity: what it joins, what the answer names.

Merges: of which statements a merged memory consists, and the memory without one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

from recollect.app import App
from recollect.domain.enums import OF_SESSION, FactType, OnSecret, Order, Sensitivity, owned
from recollect.domain.moments import MOST as MOST_MOMENTS
from recollect.domain.requests import Caller, Draft
from recollect.domain.results import Memory, NearMemory, Outcome
from recollect.domain.search import View
from recollect.engines.chat import Judgement
from recollect.errors import RecollectError
from recollect.gate import clear
from recollect.memory import reconcile
from recollect.memory.likeness import merged
from recollect.memory.prepare_write import Embeddings, PreparedDraft, draft_of, entry_for, prepare
from recollect.memory.reconcile import expired
from recollect.prompt.neutral import neutral
from recollect.search.parse import parse
from recollect.store.text.index import Term
from recollect.text import layers

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_LOOKED_AT = 5
_NAMED = 3
_READ = 1_000  # characters of a draft without vectors
_MOST_WORDS = 16
_CHUNKS = 4  # of a long text only so many stretches are compared with what is stored
_SCANNED = 5_000  # while the vector index is not ready, looking through more than so many would hold up every write


def cosines(app: App, one: PreparedDraft, namespace: str, user: str) -> dict[int, float]:
    """Return the memories nearest to a draft, nearest first, and the cosine (-1–1) of the best chunks of both.

    A turn of a talk resembles nothing; nor does a draft whose vectors, or those of the others, are not there yet.
    """
    return {} if one.draft.position is not None else _nearest(app, one, _view(app, one.draft, namespace, user))


def unlooked(app: App, one: PreparedDraft, namespace: str, user: str) -> bool:
    """Say whether something may be near a draft that could not be looked for, as the draft has no vectors yet."""
    waits = one.chunks is None and one.draft.position is None
    return waits and app.text.size(_view(app, one.draft, namespace, user)) > 0


def decide_by_likeness(
    app: App, one: PreparedDraft, namespace: str, caller: Caller, near: dict[int, float]
) -> reconcile.Decision:
    """Return what becomes of a draft that has neither the key nor the content of a memory.

    A profile is merged with the nearest one. Any other refreshes the memory that says the same; else a language model
    chooses, where there is one; else it is a new memory. It joins only what has the same authority.
    """
    draft, user, rank = one.draft, caller.user, caller.origin.authority
    if reconcile.always_merged(draft):

        def joins(old: Memory) -> bool:
            return reconcile.may_join(draft, old, rank) and draft.trust >= old.trust

        nearest = next((old for old in _profiles(app, one, namespace, user) if joins(old)), None)
        return reconcile.NEW if nearest is None else reconcile.merge_or_refresh(draft, nearest)
    if reconcile.always_new(draft) or draft.key is not None or draft.position is not None:
        return reconcile.NEW
    close = [number for number, cosine in near.items() if cosine >= app.embedder.card.similar]
    if one.chunks is None:
        close = _with_its_words(app, draft, namespace, user)
    found = app.records.load(close, _view(app, draft, namespace, user)) if close else {}
    memories = [found[number] for number in close if number in found and reconcile.may_join(draft, found[number], rank)]
    decision = reconcile.refresh_if_same(draft, memories)
    choice = _choice(app, draft, memories) if memories and decision is reconcile.NEW else None
    return decision if choice is None else reconcile.follow_judgement(draft, memories, choice)


def named(
    app: App, draft: Draft, namespace: str, user: str, near: dict[int, float], outcome: Outcome
) -> tuple[NearMemory, ...]:
    """Return what the answer names: the nearest memories that everybody in the namespace sees, as they are now."""
    close = [
        number for number, cosine in near.items() if cosine >= app.embedder.card.near and str(number) != outcome.id
    ]
    if not close or draft.sensitivity is not Sensitivity.PUBLIC:
        return ()
    found = app.records.load(close, _view(app, draft, namespace, user))
    said = {one: found[one].content for one in close if one in found and found[one].type not in OF_SESSION}
    lines = {number: neutral(layers.abstract(content)) for number, content in said.items()}
    return tuple(NearMemory(str(number), line, round(min(near[number], 1.0), 2)) for number, line in lines.items())[
        :_NAMED
    ]


def merged_draft(old: Memory, new: Draft) -> Draft:
    """Return the draft that says what both say, with the labels of both, as sure and for as long as either."""
    return _with_labels(
        old, new, content=merged(old.content, new.content), confidence=max(old.confidence, new.confidence)
    )


def refreshed_draft(old: Memory, new: Draft) -> Draft:
    """Return the old text with the labels that the new draft brought."""
    return _with_labels(old, new, content=old.content)


def _with_labels(old: Memory, new: Draft, **fields: object) -> Draft:
    labels = {
        name: _last((*getattr(old, name), *getattr(new, name)), most)
        for name, most in LABELS.items()
        if getattr(new, name)
    }
    importance = {"importance": max(old.importance, new.importance)} if "importance" in new.model_fields_set else {}
    term = {} if new.ttl_days is None or old.ttl_days is None else {"ttl_days": max(old.ttl_days, new.ttl_days)}
    return Draft(scope=new.scope, source=old.source, **fields, **labels, **importance, **term)


def _with_its_words(app: App, draft: Draft, namespace: str, user: str) -> list[int]:
    """Return the memories that share the rarest words with a draft, which is all that is known without vectors."""
    words = parse(draft.content[:_READ]).words[:_MOST_WORDS]
    return list(app.text.search([Term(word) for word in words], _view(app, draft, namespace, user), _LOOKED_AT))


def _profiles(app: App, one: PreparedDraft, namespace: str, user: str) -> list[Memory]:
    """Return the profiles nearest to a draft; while there are no vectors, those that were changed last."""
    view = _view(app, one.draft, namespace, user, FactType.PROFILE)
    ids = list(_nearest(app, one, view)) or app.records.list_ids(view, Order.UPDATED, _LOOKED_AT, 0)
    found = app.records.load(ids, view)
    return [found[number] for number in ids if number in found]


def _view(app: App, draft: Draft, namespace: str, user: str, kind: FactType | None = None) -> View:
    return View(
        namespaces=app.records.existing_namespaces([namespace]),
        now=app.clock(),
        sensitivities=(owned(draft.sensitivity, user),),
        fact_type=kind,
    )


def _nearest(app: App, one: PreparedDraft, view: View) -> dict[int, float]:
    if not view.namespaces or (app.vectors.state != "ready" and app.text.size(view) > _SCANNED):
        return {}
    best: dict[int, float] = {}
    for chunk in (one.chunks or ())[:_CHUNKS]:
        for number, cosine in app.vectors.nearest(chunk.vector, view, _LOOKED_AT).items():
            best[number] = max(cosine, best.get(number, cosine))
    return dict(sorted(best.items(), key=lambda pair: -pair[1]))


def _choice(app: App, draft: Draft, near: Sequence[Memory]) -> Judgement | None:
    model = app.capabilities.reconcile
    if model is None or draft.sensitivity is not Sensitivity.PUBLIC:  # what is private is nobody else's to read
        return None
    try:
        return model.choose(draft.content, [memory.content for memory in near])
    except RecollectError:  # without a choice it is a new memory
        return None


LABELS = {"tags": None, "concepts": None, "files_read": None, "files_modified": None, "when": MOST_MOMENTS}
"""The fields of which a merged memory has what all its parts have, or the last of that where a number says how much."""


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
    cleared = clear(draft_of(rest[0], key=whole.key) if len(rest) == 1 else joined(rest), on_secret)
    one = prepare(app, cleared, whole, embedded)
    if expired(whole, app.clock()):
        one = PreparedDraft(cleared, one.content_hash, ())  # no index holds what is hidden
    transaction.update(whole, entry_for(app, one, whole, author), "update", revive=False, keep=False)
    if len(rest) == 1:
        transaction.delete(rest[0].id)
    return True


def drop_earlier_wholes(transaction: Writing, whole: int, part: Memory) -> None:
    """Delete the earlier texts of a merged memory that consist of its statements, this part among them."""
    parts = transaction.archived(whole)
    for one in parts:
        said = statements(one, [each for each in parts if each.id != one.id])
        if len(said) > 1 and part.id in [each.id for each in said]:
            transaction.delete(one.id)


def joined(parts: Sequence[Memory]) -> Draft:
    """Return the draft that says what these statements say together, with the labels of all."""
    labels = {name: _last(chain(*(getattr(one, name) for one in parts)), most) for name, most in LABELS.items()}
    sure = max(one.confidence for one in parts)
    return Draft(content=_content(parts), scope=parts[0].scope, confidence=sure, **labels)


def _last(values: Iterable[str], most: int | None) -> tuple[str, ...]:
    """Return values, each once, and where that is limited the last of them."""
    return tuple(dict.fromkeys(values))[-(most or 0) :]


def _content(parts: Sequence[Memory]) -> str:
    return reduce(merged, (one.content for one in parts))
