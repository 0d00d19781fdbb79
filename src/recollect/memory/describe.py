"""What a language model says of stored texts, behind the answer to whoever stored them.

By then the rules have written every title, layer, fact and entity, and the summaries. Here, and nowhere else, a model's
words take the place of a rule's or stand beside them: where there is no model, or what it says is not borne out by the
text, what the rules wrote stays. While it is asked no transaction is open, and nothing is written where a text changed
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from recollect.app import App
from recollect.domain.enums import ObservationType, OnSecret, Sensitivity, Source
from recollect.domain.fields import MAX_CONTENT, fold_part
from recollect.domain.origin import Origin, SaidBy, least_trusted
from recollect.domain.requests import Caller, Draft, StoreFact
from recollect.domain.results import Entity, Memory, Outcome, WriteStatus
from recollect.domain.search import View
from recollect.engines.describe import Description, Triple
from recollect.errors import InvalidInput, ModelUnusable, SecretFound
from recollect.gate import Cleared, clear
from recollect.memory.condense import IN_SHORT, day_of, with_overview, with_titles
from recollect.memory.grounding import MOST_ENTITIES, grounded_description
from recollect.memory.prepare_write import (
    Embeddings,
    PreparedDraft,
    draft_of,
    entry_for,
    prepare_draft,
    retry_with_embeddings,
)
from recollect.memory.reconcile import expired
from recollect.store.entries import FactEntry
from recollect.text import layers
from recollect.text.normalization import fold

if TYPE_CHECKING:
    from recollect.engines.describe import ChatDescribe
    from recollect.store.sql.writing import Writing

T = TypeVar("T")

_LONG: Final = 1_200
"""Characters from which on a text is read: the overview of a shorter one, by rule, holds half of it or more."""

_EXTRACTED: Final = 200
"""Characters from which on the facts of an extracted memory are asked for; its layers are there."""

_SURE: Final = 0.4  # confidence of a fact that a model read out of a text
_MOST_NAMED: Final = 64


def describe_later(app: App, outcome: Outcome, draft: Draft, caller: Caller) -> None:
    """Have the model read a text just stored: for layers that nobody wrote, for facts and for entities.

    That is done for a long text, also after a merge, and for one that a model extracted. A turn of a talk is left
    alone.
    """
    extracted = draft.source is Source.EXTRACTION and outcome.status is WriteStatus.STORED
    length = _EXTRACTED if extracted else 0 if outcome.status is WriteStatus.MERGED else _LONG
    worth = len(draft.content) >= length and draft.position is None and draft.sensitivity is Sensitivity.PUBLIC
    if worth and (extracted or not (draft.abstract and draft.overview)):
        ask_later_within_budget(app, partial(_describe_memory, app, int(outcome.id), length or _LONG, caller))


def sum_up_later(app: App, summary_id: int, members: Sequence[Memory], caller: Caller) -> None:
    """Have the model add to a summary a few sentences on what its members say, above the lines that quote them."""
    if _all_public(members):
        ask_later_within_budget(app, partial(_sum_up_members, app, summary_id, members, caller))


def sum_up_session(app: App, summary_id: int, kept: Sequence[Memory], caller: Caller) -> None:
    """Have the model write better titles for the notes of a session, and a few sentences for its summary."""
    texts = [one.content for one in kept]
    answer = _ask_model(app, lambda model: model.session(texts)) if _all_public(kept) else None
    if answer is not None:
        whole, each = answer
        notes = {
            kept[number].id: grounded_description(one, texts[number])
            for number, one in each.items()
            if number < len(kept)
        }
        _write_summary(app, summary_id, kept, grounded_description(whole, "\n".join(texts)), notes, caller)


def ask_later_within_budget(app: App, ask: Callable[[], None]) -> None:
    """Ask the model in the background while half of the token budget is left; the rest is for waiting callers."""
    if app.capabilities.describe is None:
        return

    def within_budget() -> None:
        """Ask unless more than half of the tokens of this hour or this day are used."""
        used = app.capabilities.chat.used() if app.capabilities.chat else None
        if used is None or (2 * used.hour <= used.most_hour and 2 * used.day <= used.most_day):
            ask()

    app.ask_later(within_budget)


def _ask_model(app: App, ask: Callable[[ChatDescribe], T]) -> T | None:
    """Return the model's answer, None without a model or where it gave no usable answer."""
    writer = app.capabilities.describe
    try:
        return None if writer is None else ask(writer)
    except ModelUnusable:
        return None


def _describe_memory(app: App, memory_id: int, length: int, caller: Caller) -> None:
    """Ask the model about a memory of at least this `length` (characters), and write its answer; skip others.

    A long memory is described only where its layers were made by rule.
    """
    old = _load_writable(app, memory_id, caller)
    if (
        old is None
        or old.position is not None
        or len(old.content) < length
        or not (length < _LONG or _layers_by_rule(old))
    ):
        return
    answer = _ask_model(app, lambda model: model.text(old.content))
    if answer is None:
        return
    said = grounded_description(answer, old.content)
    fields = {name: getattr(said, name) for name in _layers_by_rule(old) if getattr(said, name)}
    with app.records.writing(caller.writable(old.namespace), caller.user) as transaction:
        now = _reload_unchanged(app, transaction, old)
        if now is not None:
            _write_description(app, transaction, now, fields, said, caller)


def _sum_up_members(app: App, summary_id: int, members: Sequence[Memory], caller: Caller) -> None:
    """Ask the model what the members say together, and write its answer into their summary."""
    texts = [f"{day_of(one)}: {one.content}" for one in members]
    answer = _ask_model(app, lambda model: model.together(texts))
    if answer is not None:
        said = grounded_description(answer, "\n".join(texts))
        _write_summary(app, summary_id, members, said, {}, caller, hidden_by=summary_id)


def _write_summary(
    app: App,
    summary_id: int,
    members: Sequence[Memory],
    said: Description,
    notes: Mapping[int, Description],
    caller: Caller,
    hidden_by: int | None = None,
) -> None:
    """Write what the model found in the members, and its overview into their summary, in one transaction.

    Nothing is written where one of them changed or went: the summary might quote what was forgotten.
    """
    namespace = caller.writable(members[0].namespace)
    outcome = Outcome(WriteStatus.UPDATED, str(summary_id))

    def write(made: Embeddings) -> Outcome:
        with app.records.writing(namespace, caller.user) as transaction:
            now = [_reload_unchanged(app, transaction, one, hidden_by) for one in members]
            whole = transaction.lookup.by_id(summary_id)
            if whole is None or not _is_summary(whole) or expired(whole, app.clock()) or None in now:
                return outcome
            titles: dict[str, str] = {}
            for one in filter(None, now):
                note = notes.get(one.id, Description())
                title = {"title": note.title} if note.title and one.source is Source.HOOK else {}
                titles |= {one.title: note.title} if title else {}
                _write_description(app, transaction, one, title, note, caller)
            _write_whole(app, transaction, whole, said, titles, made, caller)
        return outcome

    retry_with_embeddings(app, write)


def _write_whole(
    app: App,
    transaction: Writing,
    whole: Memory,
    said: Description,
    titles: Mapping[str, str],
    made: Embeddings,
    caller: Caller,
) -> None:
    """Write a summary with new titles in its lines and the model's overview above them."""
    content = with_titles(whole.content, titles)
    if said.overview and not any(line.startswith(IN_SHORT) for line in content.split("\n")):
        content = with_overview(content, said.overview)
    abstract = {"abstract": said.abstract} if said.abstract and said.overview else {}
    if content == whole.content or len(content) > MAX_CONTENT:
        return
    fields = draft_of(whole).model_dump(exclude_unset=True, exclude={"abstract", "overview"})
    try:
        draft = Draft(**fields | {"content": content} | abstract)
        one = prepare_draft(app, draft, whole, made, on_secret=OnSecret.BLOCK)
    except (InvalidInput, SecretFound):
        return
    entry = entry_for(app, one, whole, caller.user)
    entry = entry.with_entities((*entry.parts.entities, *whole.entities))
    transaction.memories.update(whole, entry, "update", revive=False, keep=False)


def _write_description(
    app: App, transaction: Writing, old: Memory, fields: Mapping[str, Any], said: Description, caller: Caller
) -> None:
    """Write headings over a memory, and the facts and entities that a model found beside those of the rules."""
    more = _new_entities(old, said.entities)
    if fields or more:
        draft = {"content": old.content, "scope": old.scope, "confidence": old.confidence} | dict(fields)
        if (cleared := _clear_draft(draft)) is not None:
            one = PreparedDraft(cleared, old.content_hash, None)
            entry = entry_for(app, one, old, caller.user)
            transaction.memories.update(old, entry.with_entities((*old.entities, *more)), "update", revive=False)
    for fact in said.facts:
        _write_fact(app, transaction, old, fact, caller)


def _write_fact(app: App, transaction: Writing, of: Memory, fact: Triple, caller: Caller) -> None:
    """Write a fact of a memory, unless the same fact is stored already; no other fact ends by it."""
    subject, predicate, what = fact
    begins = of.observed_at or of.created_at
    known = transaction.facts.about(subject, predicate, begins)
    if any(fold_part(one.object) == fold_part(what) for one in known):
        return
    try:
        request = StoreFact(subject=subject, predicate=predicate, object=what, confidence=_SURE, scope=of.scope)
        cleared = clear(request)
    except (InvalidInput, SecretFound):
        return
    transaction.facts.insert(
        FactEntry(
            cleared=cleared,
            memory_id=of.id,
            sensitivity=Sensitivity.PUBLIC,
            valid_from=begins,
            at=app.clock(),
            author=caller.user,
            stamp=least_trusted([of.stamp, Origin(said_by=SaidBy.MODEL, came_from=of.stamp.came_from)]),
        )
    )


def _clear_draft(fields: Mapping[str, Any]) -> Cleared[Draft] | None:
    """Return the draft as the gate clears it; None where the gate refuses it, or a field is invalid."""
    try:
        return clear(Draft(**fields))
    except (InvalidInput, SecretFound):
        return None


def _load_writable(app: App, memory_id: int, caller: Caller) -> Memory | None:
    """Return the memory if it is public, in sight and in a namespace that the caller may write; else None."""
    namespaces = app.records.namespaces.existing(caller.writable_namespaces())
    found = app.records.load([memory_id], View(namespaces=namespaces, now=app.clock()))
    return found.get(memory_id)


def _reload_unchanged(app: App, transaction: Writing, old: Memory, hidden_by: int | None = None) -> Memory | None:
    """Return the memory as it is now; None where its text, or what it gave way to, has changed."""
    now = transaction.lookup.by_id(old.id)
    if now is None or expired(now, app.clock()) or now.merged_into is not None:
        return None
    return now if now.content_hash == old.content_hash and now.superseded_by == hidden_by else None


def _is_summary(one: Memory) -> bool:
    """Say whether this is the current summary of memories or of a session."""
    return (
        one.type in (ObservationType.COMPRESSED_SUMMARY, ObservationType.SESSION_SUMMARY) and one.superseded_by is None
    )


def _layers_by_rule(old: Memory) -> list[str]:
    """Return the names of the layers that the rules made from the content."""
    return [name for name in ("abstract", "overview") if getattr(old, name) == getattr(layers, name)(old.content)]


def _new_entities(old: Memory, found: Sequence[Entity]) -> tuple[Entity, ...]:
    """Return the found entities that the memory does not name yet, as many as it has room for."""
    known = {fold(one.name) for one in old.entities}
    room = max(_MOST_NAMED - len(old.entities), 0)
    return tuple(one for one in found if fold(one.name) not in known)[: min(room, MOST_ENTITIES)]


def _all_public(memories: Sequence[Memory]) -> bool:
    """Say whether nothing is shown to a model that only some may read."""
    return bool(memories) and all(one.sensitivity is Sensitivity.PUBLIC for one in memories)
