"""Withdraw what came from one source, with all that was made of it, and undo that.

Everything happens in one transaction, also a dry run, which leaves nothing behind: so a crash withdraws all or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rapidfuzz import fuzz, process

from recollect.app import App
from recollect.domain.enums import OF_SESSION, ObservationType, OnSecret
from recollect.domain.origin import MOST_TRUST, Origin, least_trusted, places_of
from recollect.domain.requests import Caller, Draft, MemoryFields
from recollect.domain.results import Fact, Memory
from recollect.domain.review import UndoWithdrawal, Withdraw, Withdrawn
from recollect.errors import NotFound
from recollect.memory import merges
from recollect.memory.condense import (
    IN_SHORT,
    day_of,
    first_words,
    heading,
    kept_fields,
    labels_of,
    merged_labels,
    quotable_text,
    quotes_any,
)
from recollect.memory.prepare_write import (
    Embeddings,
    draft_of,
    entry_for,
    prepare_draft,
    with_embeddings,
)
from recollect.memory.reconcile import expired
from recollect.memory.summaries import MOST_NAMED, session_key
from recollect.search.visibility import allowed_levels, parse_id
from recollect.text.layers import one_line

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_MADE: Final = OF_SESSION | {ObservationType.COMPRESSED_SUMMARY}
_MOST_SOURCES: Final = 20
_MOST_NEAREST: Final = 10
_BACK: Final = "back"  # what came back with it, where it was undone
_BEHIND: Final = "/:?# ,"
"""What may follow a host or a path in an address."""
_UNDONE: Final = tuple("hidden parts links copies ends members facts texts quarantined forgotten".split())


class _Member(NamedTuple):
    """What a summary keeps of a member that was removed by rule, and whether that is withdrawn."""

    number: int
    note: Mapping[str, Any]
    here: bool


@dataclass
class _Work:
    """What one transaction withdraws from one namespace; `undo` is how to bring it back."""

    app: App
    writing: Writing
    caller: Caller
    made: Embeddings
    request: Withdraw
    found: dict[int, Memory] = field(default_factory=dict)
    gone: dict[int, list[_Member]] = field(default_factory=dict)
    hidden: list[int] = field(default_factory=list)
    rebuilt: list[int] = field(default_factory=list)
    current: list[int] = field(default_factory=list)
    undo: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _UNDONE})

    def run(self) -> None:
        """Hide the memories found, rebuild those made of them, and make what they had replaced current again."""
        self.gone = self._members_gone()
        for whole in self._merged_memories():
            self._rebuild_merged(whole)
        for one in self.found.values():
            if one.merged_into is None and one.id not in self.rebuilt:
                self._hide_memory(one)
        for one in _memories_from_source(self.writing, self.request, quarantined=True):
            self.writing.withdrawals.put_away(one)
            self.undo["quarantined"].append(one.id)
            self.hidden.append(one.id)
        self._rewrite_summaries()
        self._restore_replaced()
        self._withdraw_facts()
        self._withdraw_session_texts()

    def _members_gone(self) -> dict[int, list[_Member]]:
        """Return, by the summary that still quotes them, the withdrawn members that were removed by rule."""
        found: dict[int, list[_Member]] = {}
        for whole, number, note in self.writing.summary_members.removed():
            at = datetime.fromisoformat(note["created_at"])
            here = _meets_request(self.request, note["came_from"], note["session_id"], note["author"], at)
            found.setdefault(whole, []).append(_Member(number, note, here=here))
        return found

    def _merged_memories(self) -> list[Memory]:
        """Return the merged memories of which something found is a part, or which are found themselves."""
        ids = {one.merged_into or one.id for one in self.found.values()}
        wholes = (self.writing.lookup.by_id(one) for one in sorted(ids))
        return [one for one in wholes if one is not None and self.writing.lookup.archived(one.id)]

    def _rebuild_merged(self, whole: Memory) -> None:
        """Rewrite a merged memory from its remaining parts; hide it too where none is left."""
        parts = self.writing.lookup.archived(whole.id)
        gone = [one for one in parts if one.id in self.found]
        rest = [one for one in parts if one.id not in self.found]
        merged = merges.statements_of(whole, parts)
        if merged and gone:
            left = [one for one in merged if one.id not in self.found]
        elif not merged and whole.id in self.found:
            left = rest[-1:]
        else:
            left = []
        if left:
            self._rewrite_memory(whole, _rebuilt_draft(left), left)
        elif whole.id not in self.found and merged and gone:
            self._hide_memory(whole)
        for one in gone:
            self.writing.withdrawals.put_away(one)
            self.undo["parts"].append([one.id, one.merged_into])
            self.hidden.append(one.id)

    def _rewrite_memory(
        self, whole: Memory, draft: Draft, members: Sequence[Memory], more: Sequence[Origin] = ()
    ) -> None:
        """Write a memory anew, as the words of its members, and keep what it said where no answer shows it."""
        copy = self.writing.memories.archive(whole)
        kept = self.writing.lookup.by_id(copy)
        if kept is not None:
            self.writing.withdrawals.put_away(kept)
        self.undo["copies"].append([whole.id, copy])
        shown = not expired(whole, self.app.clock()) and whole.merged_into is None
        one = prepare_draft(self.app, draft, whole, self.made, on_secret=OnSecret.REDACT, indexed=shown)
        entry = entry_for(self.app, one, whole, self.caller.user)
        stamp = least_trusted([*(each.stamp for each in members), *more] or [whole.stamp])
        reviews = {each.review for each in members}
        review = reviews.pop() if len(reviews) == 1 else whole.review
        named = dict.fromkeys(chain(entry.parts.entities, *(each.entities for each in members)))
        entry = replace(entry, said_by=stamp.said_by, came_from=stamp.came_from or None, review=review)
        trust = min(draft.trust, MOST_TRUST[stamp.said_by])
        entry = replace(entry.with_entities(islice(named, MOST_NAMED)), expires_at=whole.expires_at, trust=trust)
        self.writing.memories.update(whole, entry, "withdraw", revive=False, keep=False)
        self.rebuilt.append(whole.id)

    def _rewrite_summaries(self) -> None:
        """Take the memories found out of the summaries of them; hide a summary of nothing else."""
        anew = filter(None, map(self.writing.lookup.by_id, self.rebuilt))
        numbers = {one.superseded_by for one in (*self.found.values(), *anew) if one.superseded_by}
        numbers |= {whole for whole, some in self.gone.items() if any(one.here for one in some)}
        found = [self.writing.lookup.by_id(one) for one in sorted(numbers)]
        sessions = {one.session_id for one in self.found.values() if one.session_id}
        found += [self.writing.lookup.by_key(session_key(one)) for one in sorted(sessions)]
        for whole in found:
            if whole is not None and whole.type in _MADE and whole.id not in self.found:
                self._unquote_found(whole)

    def _unquote_found(self, whole: Memory) -> None:
        """Take out of a summary the lines that quote only memories found; quote each remaining member."""
        first, *lines = whole.content.split("\n")
        gone = self.gone.get(whole.id, ())
        members = [one for one in self.writing.withdrawals.replaced_by([whole.id]) if one.deleted_at is None]
        if whole.type in OF_SESSION and whole.session_id:
            members = self.writing.withdrawals.from_origin(None, whole.session_id, None, (None, None))
        bad = [quotable_text(one) for one in self.found.values()]
        bad_lines = {line for one in gone if one.here for line in one.note["lines"]}
        good = [quotable_text(one) for one in members]
        good_lines = {line for one in gone if not one.here for line in one.note["lines"]}

        def stays(line: str) -> bool:
            """Say whether a line of a summary stays: it quotes a good member, or no bad one and sums up nothing."""
            if line in good_lines or quotes_any(line, good):
                return True
            return not line.startswith(IN_SHORT) and line not in bad_lines and not quotes_any(line, bad)

        rest = [one for one in lines if stays(one)]
        rest = [one for one, after in zip(rest, [*rest[1:], ""], strict=False) if one[-1:] != ":" or after[:2] == "- "]
        fields = draft_of(whole).model_dump(exclude_unset=True, exclude={"abstract", "overview"})
        if whole.type in OF_SESSION:
            if not rest:
                self._hide_memory(whole)
            elif rest != lines:
                del fields["trust"]  # it is that of all summaries of sessions, as far as its origin lets it
                self._rewrite_memory(whole, Draft(**fields | {"content": "\n".join([first, *rest])}), members)
            return
        left = [one.note for one in gone if not one.here]
        days = [*map(day_of, members), *(one["day"] for one in left)]
        if not days:
            self._hide_memory(whole)
            return
        category = whole.category if whole.category and _of_all(members, whole.category) else None
        fields |= kept_fields(members) if members else {}
        fields |= merged_labels([*(one.get("labels", {}) for one in left), *map(labels_of, members)])
        fields["title"] = f"Summary of {len(days)} memories" + (f" about {category}" if category else "")
        fields["content"] = "\n".join([heading(category, days), *_with_quotes(rest, members)])
        self._rewrite_memory(whole, Draft(**fields), members, [Origin(**one) for one in left])
        for member in (one for one in gone if one.here):
            self.writing.summary_members.drop(whole.id, member.number)
            self.undo["members"].append([whole.id, member.note])

    def _hide_memory(self, one: Memory) -> None:
        """Hide a memory, and note in `undo` whether it was softly deleted before."""
        forgotten = one.deleted_at is not None
        if self.writing.withdrawals.withdraw(one.id, forgotten=forgotten):
            self.undo["forgotten" if forgotten else "hidden"].append(one.id)
            self.hidden.append(one.id)

    def _restore_replaced(self) -> None:
        """Make memories that hidden ones replaced current again, or let them give way to what replaced those."""
        gone = set(self.hidden)
        for one in self.writing.withdrawals.replaced_by(gone):
            by, seen = one.superseded_by, set()
            while by in gone and by not in seen:
                seen.add(by)
                later = self.writing.lookup.by_id(by)
                by = later.superseded_by if later is not None else None
            self.writing.withdrawals.set_link(one, by)
            self.undo["links"].append([one.id, one.superseded_by])
            if by is None and one.id not in gone:
                self.current.append(one.id)

    def _withdraw_facts(self) -> None:
        """Hide the facts that came from there; facts that a hidden fact had ended hold on.

        They hold until a fact that is left begins.
        """
        request = self.request
        passed = [number for some in self.gone.values() for one in some if one.here for number in one.note["facts"]]
        alone = self.writing.facts.by_ids(passed)
        if request.session_id is None:
            stated = self.writing.facts.from_origin(request.source, request.author, (request.since, request.until))
            alone += [one for one in stated if request.source is None or is_from(one.came_from or "", request.source)]
        gone = {one.id: one for one in (*self.writing.facts.of_memories(self.hidden), *alone)}
        for one in gone.values():
            for old in self.writing.facts.ended_by(one):
                if old.id not in gone:
                    self.undo["ends"].append([old.id, one.valid_from.isoformat()])
                    self.writing.facts.set_end(old.id, self._next_beginning(one, gone))
        for one in alone:
            self.writing.facts.withdraw(one)
            self.undo["facts"].append(one.id)

    def _withdraw_session_texts(self) -> None:
        """Take out of the sessions the texts that came from there, or from a hidden memory, and became no memory."""
        rows = set()
        for one in self.writing.session_texts.noted():
            came_from = str((one.draft or {}).get("came_from") or "")
            if _meets_request(self.request, came_from, one.session_id, one.owner.removeprefix("user:"), one.at):
                self.undo["texts"].append([one.session, one.number, one.summary, one.draft])
                self.writing.session_texts.write(one.session, one.number, "", None)
                rows.add(one.session)
        self.writing.session_texts.forget_words(self.hidden, rows)

    def _next_beginning(self, one: Fact, gone: Mapping[int, Fact]) -> datetime | None:
        """Return when the first fact that is left begins, of those that follow one that is hidden."""
        while one.valid_to is not None:
            later = self.writing.facts.about(one.subject, one.predicate, one.valid_to)
            following = [each for each in later if each.valid_from == one.valid_to]
            if any(each.id not in gone for each in following):
                return one.valid_to
            if not following:
                break
            one = following[0]
        return None


def withdraw(app: App, request: Withdraw, caller: Caller, *, request_id: str = "") -> Withdrawn:
    """List what came from a source, a session, an author or a time; with `apply`, withdraw it.

    It is hidden from every answer, what was merged or summed up with it is rebuilt without it, and what it had replaced
    is current again. For 30 days `undo_withdrawal` brings everything back. Only namespaces that the caller may write,
    and levels that the request lets in, are looked at.
    """
    del request_id  # a second withdrawal finds nothing more
    spaces = app.records.namespaces.existing(caller.writable_namespaces())
    levels = allowed_levels(request)

    def write(made: Embeddings) -> Withdrawn:
        with app.records.importing(spaces, caller.user, levels, dry=not request.apply) as writings:
            works = [_Work(app, one, caller, made, request, _found_memories(one, request)) for one in writings.values()]
            numbers = []
            for one in works:
                one.run()
                if any(one.undo.values()):
                    touched = [str(each.sensitivity) for each in one.found.values()]
                    numbers.append(one.writing.withdrawals.note(one.undo, touched))
            nearest: tuple[str, ...] = ()
            if request.source is not None and not any(one.undo[name] for one in works for name in one.undo):
                places = [place for work in works for place in work.writing.withdrawals.sources()]
                nearest = _similar_sources(request.source, places)
            return replace(_withdrawn_answer(works, numbers, applied=request.apply), nearest=nearest)

    answer = with_embeddings(app, write)
    _refresh_indexes(app)
    return answer


def take_out(app: App, writing: Writing, caller: Caller, made: Embeddings, request: Withdraw) -> dict[str, list[Any]]:
    """Hide what came from a source and rebuild what was made of it, in an open transaction; return what was done.

    That is how to undo it, unless whoever asks deletes what was hidden. Raises `EmbeddingNeeded`.
    """
    work = _Work(app, writing, caller, made, request, _found_memories(writing, request))
    work.run()
    return work.undo


def undo_withdrawal(app: App, request: UndoWithdrawal, caller: Caller, *, request_id: str = "") -> Withdrawn:
    """Bring back what a withdrawal took away, as it was.

    Undone again, it gives the same answer and changes nothing. Raises `NotFound` for one that is unknown or too old.
    """
    del request_id
    number = parse_id(request.id)
    spaces = app.records.namespaces.existing(caller.writable_namespaces())

    def write(made: Embeddings) -> Withdrawn:
        with app.records.importing(spaces, caller.user, allowed_levels(request)) as writings:
            for writing in writings.values():
                undo = writing.withdrawals.undo_of(number) if number else None
                if undo is not None and number:
                    if (back := undo.get(_BACK)) is None:
                        back = _undo_in_namespace(app, writing, undo, caller, made)
                        writing.withdrawals.note_undone(number, {name: [] for name in undo} | {_BACK: back})
                    hidden, rebuilt = map(tuple, back)
                    return Withdrawn(request.id, True, hidden, rebuilt, (), undone=True)
        raise NotFound(f"Withdrawal {request.id} not found.")

    answer = with_embeddings(app, write)
    _refresh_indexes(app)
    return answer


def _found_memories(writing: Writing, request: Withdraw) -> dict[int, Memory]:
    """Return, by id, the memories of the namespace that came from the source of the request."""
    return {one.id: one for one in _memories_from_source(writing, request)}


def _memories_from_source(writing: Writing, request: Withdraw, *, quarantined: bool = False) -> list[Memory]:
    """Return the memories of the namespace that meet the request, or those in quarantine that do."""
    times, source = (request.since, request.until), request.source
    named = (source, request.session_id, request.author, times)
    found = writing.withdrawals.from_origin(*named, quarantined=quarantined, forgotten=True)
    return [one for one in found if source is None or is_from(one.came_from or "", source)]


def _meets_request(request: Withdraw, came_from: str, session_id: str | None, author: str, at: datetime) -> bool:
    """Say whether something that is no memory meets all that the request names."""
    return (
        (request.source is None or is_from(came_from, request.source))
        and request.session_id in (None, session_id)
        and request.author in (None, author)
        and (request.since is None or at >= request.since)
        and (request.until is None or at <= request.until)
    )


def _similar_sources(source: str, places: Iterable[str]) -> tuple[str, ...]:
    """Return the known sources whose names are most like `source`, the most alike first."""
    named = process.extract(source, list(dict.fromkeys(places)), scorer=fuzz.WRatio, limit=_MOST_NEAREST)
    return tuple(one_line(place) for place, *_ in named)


def is_from(came_from: str, source: str) -> bool:
    """Say whether an address, or one of several, is a source, lies below it, or has it as its host."""
    for place in places_of(came_from):
        for rest in (place, place.partition("://")[2]):
            if rest.lower().startswith(source.lower()):
                behind = rest[len(source) : len(source) + 1]
                if not behind or behind in _BEHIND or source[-1] in _BEHIND:
                    return True
    return came_from == source


def _undo_in_namespace(
    app: App, writing: Writing, undo: dict[str, list[Any]], caller: Caller, made: Embeddings
) -> tuple[list[int], list[int]]:
    """Restore what the withdrawal hid; return the ids in sight again, and the ids that have their old text again."""
    rebuilt, hidden = [], []
    for whole_id, copy_id in undo["copies"]:
        whole, copy = writing.lookup.by_id(whole_id), writing.lookup.by_id(copy_id)
        if whole is None or copy is None:
            continue
        shown = not expired(whole, app.clock()) and whole.merged_into is None
        one = prepare_draft(app, draft_of(copy), whole, made, on_secret=OnSecret.REDACT, indexed=shown)
        entry = entry_for(app, one, whole, caller.user)
        stamp = copy.stamp
        entry = replace(entry, said_by=stamp.said_by, came_from=stamp.came_from or None, review=copy.review)
        entry = replace(entry.with_entities(copy.entities), expires_at=copy.expires_at)
        writing.memories.update(whole, entry, "restore", revive=False, keep=False)
        writing.memories.delete(copy_id)
        rebuilt.append(whole_id)
    for memory_id, whole_id in undo["parts"]:
        if (one_part := writing.lookup.by_id(memory_id)) is not None:
            writing.withdrawals.set_part_of(one_part, whole_id)
    for memory_id in undo["hidden"]:
        if (old := writing.lookup.by_id(memory_id)) is not None and old.deleted_at is not None:
            back = prepare_draft(app, draft_of(old), old, made, on_secret=OnSecret.REDACT)
            entry = replace(entry_for(app, back, old, caller.user), expires_at=old.expires_at)
            writing.memories.update(old, entry, "restore", keep=False)
            if old.superseded_by is not None:
                writing.withdrawals.set_link(old, old.superseded_by)
            hidden.append(memory_id)
    for memory_id in undo.get("forgotten", ()):
        if (old := writing.lookup.by_id(memory_id)) is not None and old.deleted_at is not None:
            writing.withdrawals.leave_forgotten(old)
    for memory_id in undo.get("quarantined", ()):
        writing.memories.quarantine(memory_id, back=True)
    for memory_id, by in undo["links"]:
        if (old := writing.lookup.by_id(memory_id)) is not None:
            writing.withdrawals.set_link(old, by)
    for fact_id, at in undo.get("ends", ()):
        writing.facts.set_end(fact_id, datetime.fromisoformat(at))
    for fact in writing.facts.by_ids(undo.get("facts", ())):
        writing.facts.withdraw(fact, back=True)
    for whole_id, note in undo.get("members", ()):
        writing.summary_members.note(whole_id, note)
    for session, number, summary, draft in undo.get("texts", ()):
        writing.session_texts.write(session, number, summary, draft)
    return hidden, rebuilt


def _rebuilt_draft(members: Sequence[Memory]) -> Draft:
    """Return the draft that says what is left of a memory, with every field of theirs and none of another's."""
    first = members[0]
    names = MemoryFields.model_fields.keys() - {"key", "ttl_days", "scope"}
    fields: dict[str, Any] = {name: getattr(first, name) for name in names}
    if len(members) > 1:
        joined = merges.joined_draft(members)
        fields |= {name: getattr(joined, name) for name in (*merges.LABELS, "content", "confidence")}
        fields |= {"abstract": "", "overview": ""}
    return Draft(scope=first.scope, **fields)


def _withdrawn_answer(works: Iterable[_Work], numbers: Sequence[int], *, applied: bool) -> Withdrawn:
    """Return the answer that lists what the withdrawal changed in all namespaces, with its `numbers` where applied."""
    every = list(works)
    origins = dict.fromkeys(one.origin for work in every for one in work.found.values())
    return Withdrawn(
        id=", ".join(map(str, numbers)) if applied else "",
        applied=applied,
        hidden=tuple(sorted({one for work in every for one in work.hidden})),
        rebuilt=tuple(sorted({one for work in every for one in work.rebuilt})),
        current_again=tuple(sorted({one for work in every for one in work.current})),
        sources=tuple(one_line(one) for one in origins)[:_MOST_SOURCES],
    )


def _refresh_indexes(app: App) -> None:
    """Bring the vector index, the text index and the journal file up to date in the background."""
    app.records.request_sync()
    app.run_later(app.vectors.sync)
    app.run_later(app.text.purge_deleted)


def _with_quotes(lines: Sequence[str], members: Sequence[Memory]) -> list[str]:
    """Return the lines of a summary plus a line for each member that no line quotes, in the order of the members."""
    found = list(lines)
    for number, member in enumerate(members):
        if not any(quotes_any(line, [quotable_text(member)]) for line in found):
            later = [quotable_text(one) for one in members[number + 1 :]]
            place = next((at for at, line in enumerate(found) if quotes_any(line, later)), len(found))
            found.insert(place, f"- {first_words(member)}")
    return found


def _of_all(members: Sequence[Memory], category: str) -> bool:
    """Say whether all the members have this category."""
    return all(one.category == category for one in members)
