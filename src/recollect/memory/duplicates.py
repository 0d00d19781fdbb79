"""Memories that resemble a draft in exactly its namespace and level: which one it joins, and which the answer names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.app import App
from recollect.domain.enums import OF_SESSION, POLICIES, FactType, Merge, Order, Sensitivity, owned
from recollect.domain.requests import Caller, Draft
from recollect.domain.results import Memory, NearMemory, Outcome
from recollect.domain.search import View
from recollect.engines.reconcile import Judgement
from recollect.errors import RecollectError
from recollect.memory import reconcile
from recollect.memory.prepare_write import PreparedDraft
from recollect.prompt.neutral import neutral
from recollect.search.parse import parse
from recollect.store.text.index import Term
from recollect.text import layers

_LOOKED_AT = 5
_NAMED = 3
_READ = 1_000  # characters of a draft without vectors
_MOST_WORDS = 16
_CHUNKS = 4  # of a long text only so many stretches are compared with what is stored
_SCANNED = 5_000  # while the vector index is not ready, looking through more than so many would hold up every write


@dataclass(frozen=True, slots=True)
class Nearby:
    """The memories nearest to a draft, nearest first, and the cosine (-1–1) of the best chunks of both.

    `view` shows the namespace and level of the draft. `unknown` says that there are memories which the draft was not
    compared with, as it has no vectors yet.
    """

    view: View
    cosines: dict[int, float]
    unknown: bool = False


def memories_near(app: App, one: PreparedDraft, namespace: str, user: str) -> Nearby:
    """Return the memories near a draft; none for a turn of a talk."""
    view = View(
        namespaces=(namespace,),
        now=app.clock(),
        sensitivities=(owned(one.draft.sensitivity, user),),
    )
    if one.draft.position is not None:
        return Nearby(view, {})
    if one.chunks is None:
        return Nearby(view, {}, unknown=app.text.size(view) > 0)
    return Nearby(view, _nearest_cosines(app, one, view))


def decide_by_likeness(app: App, one: PreparedDraft, caller: Caller, near: Nearby) -> reconcile.Decision:
    """Return what to do with a draft that has neither the key nor the content of a stored memory.

    A profile is merged with the nearest profile. Any other draft refreshes the memory that says the same; else a
    language model chooses, where there is one; else it becomes a new memory. A draft joins only a memory of the same
    authority.
    """
    draft, rank = one.draft, caller.origin.authority
    if POLICIES[draft.fact_type].merge is Merge.ALWAYS and draft.key is None:
        profiles = _nearest_profiles(app, one, near.view.model_copy(update={"fact_type": FactType.PROFILE}))
        joined = (old for old in profiles if reconcile.may_join(draft, old, rank) and draft.trust >= old.trust)
        nearest = next(joined, None)
        return reconcile.NEW if nearest is None else reconcile.merge_or_refresh(draft, nearest)
    if reconcile.always_new(draft) or draft.key is not None or draft.position is not None:
        return reconcile.NEW
    close = [number for number, cosine in near.cosines.items() if cosine >= app.embedder.card.similar]
    if one.chunks is None:
        close = _ids_by_words(app, draft, near.view)
    found = app.records.load(close, near.view) if close else {}
    memories = [found[number] for number in close if number in found and reconcile.may_join(draft, found[number], rank)]
    if not memories:
        return reconcile.NEW
    decision = reconcile.refresh_if_same(draft, memories)
    choice = _ask_for_choice(app, draft, memories) if decision is reconcile.NEW else None
    return decision if choice is None else reconcile.follow_judgement(draft, memories, choice)


def memories_to_name(app: App, draft: Draft, near: Nearby, outcome: Outcome) -> tuple[NearMemory, ...]:
    """Return the memories that the answer names: the nearest that everybody in the namespace sees, as they are now."""
    least, cosines = app.embedder.card.near, near.cosines
    close = [number for number, cosine in cosines.items() if cosine >= least and str(number) != outcome.id]
    if not close or draft.sensitivity is not Sensitivity.PUBLIC:
        return ()
    found = app.records.load(close, near.view)
    said = {one: found[one].content for one in close if one in found and found[one].type not in OF_SESSION}
    lines = {number: neutral(layers.abstract(content)) for number, content in said.items()}
    return tuple(NearMemory(str(number), line, round(min(cosines[number], 1.0), 2)) for number, line in lines.items())[
        :_NAMED
    ]


def _ids_by_words(app: App, draft: Draft, view: View) -> list[int]:
    """Return the ids of the memories that share the rarest words with a draft; used while it has no vectors."""
    words = parse(draft.content[:_READ]).words[:_MOST_WORDS]
    return list(app.text.search([Term(word) for word in words], view, _LOOKED_AT))


def _nearest_profiles(app: App, one: PreparedDraft, view: View) -> list[Memory]:
    """Return the profiles nearest to a draft; while there are no vectors, the profiles changed last."""
    ids = list(_nearest_cosines(app, one, view)) or app.records.lists.ids(view, Order.UPDATED, _LOOKED_AT, 0)
    found = app.records.load(ids, view)
    return [found[number] for number in ids if number in found]


def _nearest_cosines(app: App, one: PreparedDraft, view: View) -> dict[int, float]:
    """Return, by memory id, the cosine (-1–1) of the stored memories nearest to the draft, nearest first.

    It is empty while a full scan would take too long.
    """
    if app.vectors.state != "ready" and app.text.size(view) > _SCANNED:
        return {}
    best: dict[int, float] = {}
    for chunk in (one.chunks or ())[:_CHUNKS]:
        for number, cosine in app.vectors.nearest(chunk.vector, view, _LOOKED_AT).items():
            best[number] = max(cosine, best.get(number, cosine))
    return dict(sorted(best.items(), key=lambda pair: -pair[1]))


def _ask_for_choice(app: App, draft: Draft, near: Sequence[Memory]) -> Judgement | None:
    """Ask the model what becomes of a draft beside these memories; None where none can or may be asked."""
    model = app.capabilities.reconcile
    if model is None or draft.sensitivity is not Sensitivity.PUBLIC:  # what is private is nobody else's to read
        return None
    try:
        return model.choose(draft.content, [memory.content for memory in near])
    except RecollectError:  # without a choice it is a new memory
        return None
