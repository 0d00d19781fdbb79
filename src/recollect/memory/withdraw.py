"""Withdraw what came from one source, with all that was made of it, and undo that.

Everything happens in one transaction, also a dry run, which leaves nothing behind: so a crash withdraws all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from recollect.app import App
from recollect.domain.enums import OF_SESSION, ObservationType, OnSecret
from recollect.domain.origin import least
from recollect.domain.requests import Caller, Draft, MemoryFields
from recollect.domain.results import Fact, Memory
from recollect.domain.review import UndoWithdrawal, Withdraw, Withdrawn
from recollect.errors import NotFound
from recollect.gate import clear
from recollect.memory import duplicates
from recollect.memory.grounding import IN_SHORT, kept_fields
from recollect.memory.prepare_write import (
    EmbeddingNeeded,
    Embeddings,
    PreparedDraft,
    chunks_of,
    draft_of,
    entry_for,
    is_long,
    prepare,
)
from recollect.memory.reconcile import expired
from recollect.memory.summaries import session_key
from recollect.search.visibility import allowed_levels, parse_id
from recollect.text.layers import one_line

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

_MADE: Final = OF_SESSION | {ObservationType.COMPRESSED_SUMMARY}
_MOST_SOURCES: Final = 20
_BACK: Final = "back"  # what came back with it, where it was undone
_BEHIND: Final = "/:?# ,"
"""What may follow a host or a path in an address."""
T = TypeVar("T")


@dataclass
class _Work:
    """What one transaction withdraws from one namespace; `undo` is how to bring it back."""

    app: App
    writing: Writing
    caller: Caller
    made: Embeddings
    found: dict[int, Memory] = field(default_factory=dict)
    hidden: list[int] = field(default_factory=list)
    rebuilt: list[int] = field(default_factory=list)
    current: list[int] = field(default_factory=list)
    undo: dict[str, list[Any]] = field(
        default_factory=lambda: {"hidden": [], "parts": [], "links": [], "copies": [], "ends": []}
    )

    def run(self) -> None:
        """Hide what was found, rebuild what was made of it, and let what it had replaced be current again."""
        self._summaries()
        for whole in self._wholes():
            self._rebuild(whole)
        for one in self.found.values():
            if one.merged_into is None and one.id not in self.rebuilt:
                self._hide(one)
        self._bring_back()
        self._open_facts()

    def _wholes(self) -> list[Memory]:
        ids = {one.merged_into or one.id for one in self.found.values()}
        wholes = (self.writing.by_id(one) for one in sorted(ids))
        return [one for one in wholes if one is not None and self.writing.archived(one.id)]

    def _rebuild(self, whole: Memory) -> None:
        """Let a memory say only what is left of its parts; without any it goes with the others."""
        parts = self.writing.archived(whole.id)
        gone = [one for one in parts if one.id in self.found]
        rest = [one for one in parts if one.id not in self.found]
        merged = duplicates.statements(whole, parts)
        if merged and gone:
            left = [one for one in merged if one.id not in self.found]
        elif not merged and whole.id in self.found:
            left = rest[-1:]
        else:
            left = []
        if left:
            self._write(whole, _draft_of(left), left)
        elif whole.id not in self.found and merged and gone:
            self._hide(whole)
        for one in gone:
            self.writing.put_away(one)
            self.undo["parts"].append([one.id, one.merged_into])
            self.hidden.append(one.id)

    def _write(self, whole: Memory, draft: Draft, members: Sequence[Memory]) -> None:
        """Write a memory anew, and keep what it said where no answer shows it."""
        copy = self.writing.archive(whole)
        kept = self.writing.by_id(copy)
        if kept is not None:
            self.writing.put_away(kept)
        self.undo["copies"].append([whole.id, copy])
        one = prepare(self.app, clear(draft, OnSecret.REDACT), whole, self.made)
        if expired(whole, self.app.clock()) or whole.merged_into is not None:
            one = PreparedDraft(one.cleared, one.content_hash, ())
        entry = entry_for(self.app, one, whole, self.caller.user)
        stamp = least(each.stamp for each in members)
        reviews = {each.review for each in members}
        review = reviews.pop() if len(reviews) == 1 else whole.review
        entry = replace(entry, said_by=stamp.said_by, came_from=stamp.came_from or None, review=review)
        self.writing.update(whole, entry, "withdraw", revive=False)
        self.rebuilt.append(whole.id)

    def _summaries(self) -> None:
        """Take what was found out of what sums it up; a summary of nothing else goes too."""
        numbers = {one.superseded_by for one in self.found.values() if one.superseded_by}
        found = [self.writing.by_id(one) for one in sorted(numbers)]
        sessions = {one.session_id for one in self.found.values() if one.session_id}
        found += [self.writing.by_key(session_key(one)) for one in sorted(sessions)]
        for whole in found:
            if whole is not None and whole.type in _MADE and whole.id not in self.found:
                self._unquote(whole)

    def _unquote(self, whole: Memory) -> None:
        first, *lines = whole.content.split("\n")
        said = [" ".join(f"{one.content} {one.abstract} {one.title}".split()) for one in self.found.values()]
        rest = [one for one in lines if not one.startswith(IN_SHORT) and not _quotes(one, said)]
        rest = [one for one, after in zip(rest, [*rest[1:], ""], strict=False) if one[-1:] != ":" or after[:2] == "- "]
        members = [one for one in self.writing.replaced_by([whole.id]) if one.id not in self.found]
        if whole.type in OF_SESSION and rest == lines:
            return
        if not rest or (whole.type not in OF_SESSION and not members):
            self._hide(whole)
            return
        fields = draft_of(whole).model_dump(exclude_unset=True, exclude={"abstract", "overview"})
        if whole.type not in OF_SESSION:
            about = f" about {whole.category}" if whole.category and _of_all(members, whole.category) else ""
            first = f"What {len(members)} memories{about} said:"
            fields |= kept_fields(members) | {"title": f"Summary of {len(members)} memories{about}"}
        self._write(whole, Draft(**fields | {"content": "\n".join([first, *rest])}), members or [whole])

    def _hide(self, one: Memory) -> None:
        if self.writing.hide(one.id, "withdraw"):
            self.undo["hidden"].append(one.id)
            self.hidden.append(one.id)

    def _bring_back(self) -> None:
        """Let what gave way to something that is hidden now be current, or give way to what that gave way to."""
        gone = set(self.hidden)
        for one in self.writing.replaced_by(gone):
            by, seen = one.superseded_by, set()
            while by in gone and by not in seen:
                seen.add(by)
                later = self.writing.by_id(by)
                by = later.superseded_by if later is not None else None
            self.writing.set_link(one, by)
            self.undo["links"].append([one.id, one.superseded_by])
            if by is None and one.id not in gone:
                self.current.append(one.id)

    def _open_facts(self) -> None:
        """Let facts that ended for a fact that is hidden now hold on, until a fact that is left begins."""
        gone = {one.id: one for one in self.writing.facts_of(self.hidden)}
        for one in gone.values():
            for old in self.writing.ended_by(one):
                if old.id not in gone:
                    self.undo["ends"].append([old.id, one.valid_from.isoformat()])
                    self.writing.set_end(old.id, self._end_after(one, gone))

    def _end_after(self, one: Fact, gone: Mapping[int, Fact]) -> datetime | None:
        """Return when the first fact that is left begins, of those that follow one that is hidden."""
        while one.valid_to is not None:
            later = self.writing.facts_about(one.subject, one.predicate, one.valid_to)
            following = [each for each in later if each.valid_from == one.valid_to]
            if any(each.id not in gone for each in following):
                return one.valid_to
            if not following:
                break
            one = following[0]
        return None


def withdraw(app: App, request: Withdraw, caller: Caller, *, request_id: str = "") -> Withdrawn:
    """Say what came from a source, a session, an author or a time, and with `apply` withdraw it.

    It is hidden from every answer, what was merged or summed up with it is rebuilt without it, and what it had replaced
    is current again. For 30 days `undo_withdrawal` brings everything back. Only namespaces that the caller may write,
    and levels that the request lets in, are looked at.
    """
    del request_id  # a second withdrawal finds nothing more
    spaces = app.records.existing_namespaces(caller.writable_namespaces())
    levels = allowed_levels(request)

    def write(made: Embeddings) -> Withdrawn:
        with app.records.importing(spaces, caller.user, levels, dry=not request.apply) as writings:
            works = [_Work(app, one, caller, made, _found(one, request)) for one in writings.values()]
            numbers = []
            for one in works:
                one.run()
                if one.hidden or one.rebuilt:
                    touched = [str(each.sensitivity) for each in one.found.values()]
                    numbers.append(one.writing.note_withdrawal(one.undo, touched))
            return _answer(works, numbers, applied=request.apply)

    answer = _with_embeddings(app, write)
    _refresh(app)
    return answer


def undo_withdrawal(app: App, request: UndoWithdrawal, caller: Caller, *, request_id: str = "") -> Withdrawn:
    """Bring back what a withdrawal took away, as it was; raise `NotFound` for one that is not there or too old.

    Undone again, it gives the same answer and changes nothing.
    """
    del request_id
    number = parse_id(request.id)
    spaces = app.records.existing_namespaces(caller.writable_namespaces())

    def write(made: Embeddings) -> Withdrawn:
        with app.records.importing(spaces, caller.user, allowed_levels(request)) as writings:
            for writing in writings.values():
                undo = writing.undo_of(number) if number else None
                if undo is not None and number:
                    if (back := undo.get(_BACK)) is None:
                        back = _undone(app, writing, undo, caller, made)
                        writing.note_undone(number, {name: [] for name in undo} | {_BACK: back})
                    hidden, rebuilt = map(tuple, back)
                    return Withdrawn(request.id, True, hidden, rebuilt, (), undone=True)
        raise NotFound(f"Withdrawal {request.id} not found.")

    answer = _with_embeddings(app, write)
    _refresh(app)
    return answer


def _found(writing: Writing, request: Withdraw) -> dict[int, Memory]:
    times = (request.since, request.until)
    found = writing.from_origin(request.source, request.session_id, request.author, times)
    source = request.source
    return {one.id: one for one in found if source is None or is_from(one.came_from or "", source)}


def is_from(came_from: str, source: str) -> bool:
    """Say whether an address is a source, lies below it, or has it as its host."""
    starts = (0, came_from.find("://") + 3)
    for start in starts:
        rest = came_from[start:]
        if rest.lower().startswith(source.lower()):
            behind = rest[len(source) : len(source) + 1]
            if not behind or behind in _BEHIND or source[-1] in _BEHIND:
                return True
    return came_from == source


def _undone(
    app: App, writing: Writing, undo: dict[str, list[Any]], caller: Caller, made: Embeddings
) -> tuple[list[int], list[int]]:
    """Write everything back as the withdrawal found it; return what is in sight again, and what has its old text."""
    rebuilt, hidden = [], []
    for whole_id, copy_id in undo["copies"]:
        whole, copy = writing.by_id(whole_id), writing.by_id(copy_id)
        if whole is None or copy is None:
            continue
        one = prepare(app, clear(draft_of(copy), OnSecret.REDACT), whole, made)
        if expired(whole, app.clock()) or whole.merged_into is not None:
            one = PreparedDraft(one.cleared, one.content_hash, ())
        entry = entry_for(app, one, whole, caller.user)
        stamp = copy.stamp
        entry = replace(entry, said_by=stamp.said_by, came_from=stamp.came_from or None, review=copy.review)
        writing.update(whole, entry, "restore", revive=False)
        writing.delete(copy_id)
        rebuilt.append(whole_id)
    for memory_id, whole_id in undo["parts"]:
        if (one_part := writing.by_id(memory_id)) is not None:
            writing.set_part_of(one_part, whole_id)
    for memory_id in undo["hidden"]:
        if (old := writing.by_id(memory_id)) is not None and old.deleted_at is not None:
            back = prepare(app, clear(draft_of(old), OnSecret.REDACT), old, made)
            writing.update(old, entry_for(app, back, old, caller.user), "restore")
            hidden.append(memory_id)
    for memory_id, by in undo["links"]:
        if (old := writing.by_id(memory_id)) is not None:
            writing.set_link(old, by)
    for fact_id, at in undo.get("ends", ()):
        writing.set_end(fact_id, datetime.fromisoformat(at))
    return hidden, rebuilt


def _draft_of(members: Sequence[Memory]) -> Draft:
    """Return the draft that says what is left of a memory, with every field of theirs and none of another's."""
    first = members[0]
    names = MemoryFields.model_fields.keys() - {"key", "ttl_days", "scope"}
    fields: dict[str, Any] = {name: getattr(first, name) for name in names}
    if len(members) > 1:
        joined = duplicates.joined(members)
        fields |= {name: getattr(joined, name) for name in (*duplicates.LABELS, "content", "confidence")}
        fields |= {"abstract": "", "overview": ""}
    return Draft(scope=first.scope, **fields)


def _answer(works: Iterable[_Work], numbers: Sequence[int], *, applied: bool) -> Withdrawn:
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


def _with_embeddings(app: App, write: Callable[[Embeddings], T]) -> T:
    """Run `write`; where it lacks an embedding, embed that text outside of its transaction and run it again."""
    made: Embeddings = {}
    while True:
        try:
            return write(made)
        except EmbeddingNeeded as needed:
            long = is_long(app.embedder, needed.content)
            made[needed.content_hash] = None if long else chunks_of(app.embedder, needed.content)


def _refresh(app: App) -> None:
    app.records.request_sync()
    app.run_later(app.vectors.sync)
    app.run_later(app.text.purge_deleted)


def _quotes(line: str, said: Sequence[str]) -> bool:
    quoted = line.removeprefix("- ").partition(": ")[2] if line[:2] == "- " and line[2:6].isdigit() else line[2:]
    quoted = quoted.rstrip("…").strip()
    return line[:2] == "- " and bool(quoted) and any(quoted in one for one in said)


def _of_all(members: Sequence[Memory], category: str) -> bool:
    return all(one.category == category for one in members)
