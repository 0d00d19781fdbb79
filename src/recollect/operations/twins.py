"""Near twins: what a draft resembles in exactly its namespace and level of sensitivity, and what becomes of it then."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.domain import POLICIES, Choice, Draft, Memory, Merge, View
from recollect.errors import RecollectError
from recollect.operations.entry import Ready
from recollect.policy.reconcile import Action, Decision, Twin, alike, reconcile, resembles
from recollect.policy.twins import NEAR_CORRECTION, Relation, merged, relate
from recollect.ports import App

_LOOKED_AT = 5
_SCANNED = 5_000  # while the vector index is not ready, looking through more than so many would hold up every write


def judged(app: App, one: Ready, namespace: str) -> Decision:
    """Return what becomes of a draft, judged by what it resembles; its key and its content are looked at elsewhere."""
    twins = alike(one.draft, near(app, one, namespace)) if resembles(one.draft) else []
    return reconcile(one.draft, twins, _choice(app, one.draft, twins)) if twins else Decision(Action.INSERT)


def near(app: App, one: Ready, namespace: str) -> list[Twin]:
    """Return the memories whose best chunk is as near to the draft as the model card says of twins, nearest first.

    One that the draft corrects need not be quite as near, and to a profile every other one is near enough. A text of
    several chunks is no single claim: only a profile of that length has twins.
    """
    profile = POLICIES[one.draft.fact_type].merge is Merge.ALWAYS
    if not one.chunks or (len(one.chunks) > 1 and not profile):
        return []
    kind = one.draft.fact_type if profile else None
    view = View(app.records.existing([namespace]), app.clock(), (one.draft.sensitivity,), fact_type=kind)
    if not view.namespaces or (app.vectors.state != "ready" and app.text.size(view) > _SCANNED):
        return []
    cosines = app.vectors.nearest(one.chunks[0].vector, view, _LOOKED_AT)
    close = {number: cosine for number, cosine in cosines.items() if profile or cosine >= NEAR_CORRECTION}
    memories = app.records.load(close, view)
    content = one.draft.content
    twins = [
        Twin(memories[number], cosine, relate(content, memories[number].content, cosine))
        for number, cosine in close.items()
        if number in memories
    ]
    twin = app.embedder.card.twin
    return [one for one in twins if profile or one.cosine >= twin or one.relation is Relation.CORRECTION]


def joined(old: Memory, new: Draft) -> Draft:
    """Return the draft that says what both say, with the labels of both, as sure and for as long as either."""
    confidence = max(old.confidence, new.confidence)
    return _with_labels(old, new, content=merged(old.content, new.content), confidence=confidence)


def again(old: Memory, new: Draft) -> Draft:
    """Return the old text with the labels that the new draft brought."""
    return _with_labels(old, new, content=old.content)


def _with_labels(old: Memory, new: Draft, **fields: object) -> Draft:
    labels = {
        name: tuple(dict.fromkeys((*getattr(old, name), *getattr(new, name))))
        for name in ("tags", "concepts", "files_read", "files_modified")
        if getattr(new, name)
    }
    importance = {"importance": max(old.importance, new.importance)} if "importance" in new.model_fields_set else {}
    term = {} if new.ttl_days is None or old.ttl_days is None else {"ttl_days": max(old.ttl_days, new.ttl_days)}
    return Draft(scope=new.scope, **fields, **labels, **importance, **term)


def _choice(app: App, draft: Draft, twins: Sequence[Twin]) -> tuple[Choice, int] | None:
    judge = app.capabilities.reconcile
    ruled = draft.key is not None or POLICIES[draft.fact_type].merge is Merge.ALWAYS
    if judge is None or ruled or any(twin.memory.content == draft.content for twin in twins):
        return None
    try:
        return judge.choose(draft.content, [twin.memory.content for twin in twins])
    except RecollectError:  # the safe rule judges instead
        return None
