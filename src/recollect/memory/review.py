"""What of a write waits for a person's decision, and why; what waits is never put before a prompt unasked."""

from __future__ import annotations

from typing import Final

from recollect.app import App
from recollect.domain.enums import OF_SESSION
from recollect.domain.origin import APPROVED, Authority, Origin, SaidBy
from recollect.domain.requests import Caller
from recollect.domain.results import Memory
from recollect.memory.duplicates import Nearby
from recollect.memory.likeness import say_the_same
from recollect.memory.prepare_write import PreparedDraft

REJECTED: Final = "rejected"
"""What is said of something from a source that a person has rejected: it is hidden at once."""
OF_MODEL: Final = "proposed by a language model"
NEW_SOURCE: Final = "the source is not approved"
_CONTRADICTS: Final = "may contradict memory "


def outranks(old: Memory, said: Origin) -> bool:
    """Say whether words of this origin may not take the place of a memory."""
    return old.authority > said.authority and old.type not in OF_SESSION


def contradiction_reason(old: Memory) -> str:
    """Return the reason why a memory waits: it is about the subject of a memory with more authority."""
    return f"{_CONTRADICTS}{old.id}"


def why_review(app: App, one: PreparedDraft, namespace: str, caller: Caller, near: Nearby) -> str | None:
    """Return why a new memory waits for a decision; None where it does not.

    What was told waits for nobody. All else waits that is near something told and says another thing; what comes from
    outside waits until its source is approved.
    """
    origin = caller.origin
    if origin.authority is Authority.TOLD or one.draft.type in OF_SESSION:
        return None
    decided = None
    if origin.authority is Authority.OUTSIDE:
        decided = decision_on_source(app, namespace, origin)
        if decided is False:
            return REJECTED
    if (told := _contradicted_memory(app, one, caller, near)) is not None:
        return contradiction_reason(told)
    if origin.authority is not Authority.OUTSIDE or decided:
        return APPROVED if decided else None
    return OF_MODEL if origin.said_by is SaidBy.MODEL else NEW_SOURCE


def decision_on_source(app: App, namespace: str, said: Origin) -> bool | None:
    """Return whether a source is approved in a namespace, None where nobody has decided.

    Of several sources all must be approved; one that is rejected rejects all.
    """
    whole = app.records.reviews.source_rule(namespace, said.source)
    if whole is not None or len(said.sources) == 1:
        return whole
    each = [app.records.reviews.source_rule(namespace, one) for one in said.sources]
    return False if False in each else True if all(each) else None


def _contradicted_memory(app: App, one: PreparedDraft, caller: Caller, near: Nearby) -> Memory | None:
    """Return the nearest memory that somebody told about the same subject and that says something else; else None."""
    card, outside = app.embedder.card, caller.origin.authority is Authority.OUTSIDE
    least = card.subject if outside else card.similar
    close = [number for number, cosine in near.cosines.items() if cosine >= least]
    if not close:
        return None
    found = app.records.load(close, near.view)
    told = (found[number] for number in close if number in found and found[number].authority is Authority.TOLD)
    return next((old for old in told if not say_the_same(old.content, one.draft.content)), None)
