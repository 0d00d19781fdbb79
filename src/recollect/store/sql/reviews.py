"""What waits for a person's decision, what was decided of sources, and what was withdrawn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, delete, func, insert, or_, select, true, union_all, update

from recollect.domain.enums import OF_SESSION, ObservationType, Sensitivity, strictest
from recollect.domain.origin import APPROVED, Origin, SaidBy, places_of
from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.store.sql import mapping
from recollect.store.sql.column_types import QUARANTINED, WITHDRAWN
from recollect.store.sql.database import Database
from recollect.store.sql.overview import CountedViews, space_walked
from recollect.store.sql.tables import journal, label, memory, namespace, observation, session, source_rule, withdrawal
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import inside, namespace_ids, of_levels, visible

_IN_FILE: Final = re.compile(r"(?:[:#][ ]?\d{1,12}){1,4}$")
"""What says where in a file something stood."""
_MEMBER: Final = "member"
"""The kind of a label of a summary that keeps what it says of a member that was removed by rule."""
_RULE: Final = select(source_rule.c.approved).join(namespace, namespace.c.id == source_rule.c.namespace_id)
_MADE: Final = sorted(str(one) for one in (*OF_SESSION, ObservationType.COMPRESSED_SUMMARY))
"""The types of what is made of other memories."""
_ARRIVED: Final = select(func.min(journal.c.at)).where(journal.c.memory_id == memory.c.id).scalar_subquery()
"""When a memory came into the store: what is imported keeps the date on which it was made."""


class NotedText(NamedTuple):
    """What a session keeps of something that became no memory: which observation, of which session, and its texts."""

    session: int
    number: int
    session_id: str
    owner: str
    at: datetime
    summary: str
    draft: dict[str, Any] | None


def waits() -> ColumnElement[bool]:
    """Select what waits for a decision: two ranges of the index, which holds all that is approved between them."""
    return or_(memory.c.review < APPROVED, memory.c.review > APPROVED)


class StoredRule(NamedTuple):
    """The rule for everything from a source in a namespace."""

    namespace: str
    source: str
    approved: bool
    author: str
    at: datetime


class Queue(NamedTuple):
    """A page of what waits and since when, the longest first; how much there is, since when, and how much is late."""

    page: dict[int, datetime]
    total: int
    since: datetime | None
    late: int


def _away(view: View) -> ColumnElement[bool]:
    """Select what is in quarantine, of the levels of a view."""
    return memory.c.sensitivity.in_([QUARANTINED + level for level in view.sensitivities])


@dataclass(frozen=True, slots=True)
class Reviews:
    """Reads what waits for a decision, and what was decided of sources."""

    _database: Database
    _counted: CountedViews

    def source_rule(self, name: str, source: str) -> bool | None:
        """Return whether everything from a source is approved in a namespace; None where nobody has decided."""
        query = _RULE.where(namespace.c.name == name, source_rule.c.source == source)
        with self._database.reading() as connection:
            return connection.execute(query).scalar()

    def source_rules(self, view: View, user: str) -> list[StoredRule]:
        """Return the rules for sources in the namespaces of a view, the newest first.

        What somebody else decided is shown to whom the view shows a memory of that source, deleted or not: a source
        that only private memories of others came from does not exist for anybody else.
        """
        rules = select(source_rule, namespace.c.name).join(namespace, namespace.c.id == source_rule.c.namespace_id)
        rules = rules.where(namespace.c.name.in_(view.namespaces))
        rules = rules.order_by(source_rule.c.at.desc(), source_rule.c.source)
        with self._database.reading() as connection:
            found = connection.execute(rules).all()
            seen = [one for one in found if one.author == user or _named(connection, one, view.sensitivities)]
        return [StoredRule(one.name, one.source, one.approved, one.author, one.at) for one in seen]

    def waiting(self, view: View, limit: int, offset: int, late: datetime) -> Queue:
        """Return a page of what waits for a decision, and how much there is; what is in quarantine waits too."""
        with self._database.reading() as connection:
            walked = space_walked.in_(namespace_ids(connection, view.namespaces).values())
            open_ones = select(memory.c.id, func.coalesce(_ARRIVED, memory.c.created_at).label("since"))
            away = select(memory.c.id, func.coalesce(memory.c.deleted_at, memory.c.updated_at).label("since"))
            each = union_all(
                open_ones.where(waits() & visible(connection, view) & walked),
                away.where(_away(view) & inside(connection, view.namespaces)),
            ).subquery()
            page = select(each.c.id, each.c.since).order_by(each.c.since, each.c.id).limit(limit).offset(offset)
            counts = select(func.count(), func.min(each.c.since), func.count(case((each.c.since < late, 1))))
            total, since, overdue = connection.execute(counts.select_from(each)).one()
            return Queue(dict(map(tuple, connection.execute(page))), int(total), since, int(overdue))

    def in_quarantine(self, ids: Iterable[int], view: View) -> dict[int, Memory]:
        """Read those memories of `ids` that are in quarantine, of the namespaces and levels of a view."""
        with self._database.reading() as connection:
            mine = memory.c.id.in_(list(ids)) & _away(view) & inside(connection, view.namespaces)
            return {one.id: one for one in mapping.load(connection, mine, view.sensitivities)}

    def count_waiting(self, view: View, most: int) -> int:
        """Count what waits for a decision, up to `most`."""

        def counted(connection: Connection) -> int:
            mine = (waits() & visible(connection, view), _away(view) & inside(connection, view.namespaces))
            parts = (select(memory.c.id).where(one).limit(most).subquery() for one in mine)
            counts = (connection.execute(select(func.count()).select_from(one)).scalar_one() for one in parts)
            return min(sum(counts), most)

        with self._database.reading() as connection:
            return self._counted.get(connection, "waiting", view, lambda: counted(connection))


def _named(connection: Connection, rule: Any, levels: Iterable[str]) -> bool:
    """Say whether a memory of these levels came from the source of a row of `source_rule`."""
    said_by, _, place = rule.source.partition(":")
    mine = (memory.c.namespace_id == rule.namespace_id) & of_levels(memory.c.sensitivity, levels)
    there = func.lower(memory.c.came_from).contains(places_of(place)[0].lower(), autoescape=True)
    named = select(memory.c.came_from).where(mine, memory.c.said_by == said_by, there if place else true()).distinct()
    origins = (Origin(said_by=SaidBy(said_by), came_from=one or "") for one in connection.execute(named).scalars())
    return any(rule.source in (one.source, *one.sources) for one in origins)


def taken_by(undo: Mapping[str, list[Any]]) -> list[int]:
    """Return the ids of what a withdrawal put away: what it hid, parts, and what is kept of texts written over."""
    parts, copies = ([one for one, _ in undo["parts"]], [copy for _, copy in undo["copies"]])
    return [*undo["hidden"], *undo.get("forgotten", ()), *undo.get("quarantined", ()), *parts, *copies]


class ReviewWriting(Transaction):
    """Writes decisions and withdrawals in one open transaction."""

    def decide(self, old: Memory, review: str | None) -> None:
        """Write what was decided of a memory that waits."""
        self._connection.execute(update(memory).where(memory.c.id == old.id).values(review=review))
        self._journal("review", (old.id, old.sensitivity, {"review": review or ""}))

    def decide_source(self, source: str, level: str, *, approved: bool) -> None:
        """Write what was decided of everything from a source, from now on; `level` is that of what it came with."""
        mine = (source_rule.c.namespace_id == self._namespace_id) & (source_rule.c.source == source)
        self._connection.execute(delete(source_rule).where(mine))
        row = {"namespace_id": self._namespace_id, "source": source, "approved": approved}
        self._connection.execute(insert(source_rule).values(row | {"author": self._actor, "at": self._now}))
        self._journal("review", (None, level, {"source": source, "approved": approved}))

    def drop_source_rule(self, source: str) -> None:
        """Remove the rule for a source, if there is one."""
        mine = (source_rule.c.namespace_id == self._known_id) & (source_rule.c.source == source)
        row = self._connection.execute(select(source_rule).where(mine)).first()
        if row is not None:
            level = Sensitivity.PUBLIC if _named(self._connection, row, [Sensitivity.PUBLIC]) else Sensitivity.PRIVATE
            self._connection.execute(delete(source_rule).where(mine))
            self._journal("review", (None, level, {"source": source, "approved": None}))

    def all_waiting(self) -> list[Memory]:
        """Return all that waits for a decision here and is in sight."""
        return self._reviewed(waits() & memory.c.deleted_at.is_(None) & memory.c.merged_into.is_(None))

    def sources(self) -> list[str]:
        """Return where what this transaction finds came from: each file, address, page and command once."""
        here = (memory.c.namespace_id == self._known_id) & of_levels(memory.c.sensitivity, self._levels, away=True)
        named = select(memory.c.came_from).where(here, memory.c.came_from.is_not(None)).distinct()
        found = self._connection.execute(named).scalars().all()
        return list(dict.fromkeys(_IN_FILE.sub("", place) for one in found for place in places_of(one) if place))

    def from_origin(
        self,
        source: str | None,
        session_id: str | None,
        author: str | None,
        times: Sequence[datetime | None],
        *,
        quarantined: bool = False,
        forgotten: bool = False,
    ) -> list[Memory]:
        """Return what came from there, but for what is made of other memories.

        Of a `source` the address is, begins with, or has the host `source`; the caller checks that. What was softly
        deleted is among it with `forgotten`. With `quarantined` it is what is in quarantine instead.
        """
        away = QUARANTINED if quarantined else ""
        asked = [or_(memory.c.type.is_(None), memory.c.type.not_in(_MADE))]
        if quarantined:
            asked.append(memory.c.merged_into.is_(None))
        elif not forgotten:
            asked.append(memory.c.deleted_at.is_(None))
        if source is not None:
            asked.append(memory.c.came_from.contains(source, autoescape=True))
        if session_id is not None:
            asked.append(memory.c.session_id == session_id)
        if author is not None:
            asked.append(memory.c.author == author)
        since, until = times
        asked += [memory.c.created_at >= since] if since else []
        asked += [memory.c.created_at <= until] if until else []
        condition = asked[0]
        for one in asked[1:]:
            condition &= one
        return self._reviewed(condition, away)

    def replaced_by(self, ids: Iterable[int]) -> list[Memory]:
        """Return what gave way to one of these memories."""
        return self._reviewed(memory.c.superseded_by.in_(list(ids)))

    def put_away(self, old: Memory) -> None:
        """Hide a memory where only the undoing of its withdrawal looks, a part of nothing any more."""
        values = {
            "deleted_at": self._now,
            "merged_into": None,
            "sensitivity": WITHDRAWN + self._stored(old.sensitivity),
        }
        self._connection.execute(update(memory).where(memory.c.id == old.id).values(values))
        self._journal("withdraw", (old.id, old.sensitivity, {"soft": True}))

    def set_link(self, old: Memory, by: int | None) -> None:
        """Let a memory be replaced by another one, or be current again."""
        self._connection.execute(update(memory).where(memory.c.id == old.id).values(superseded_by=by))
        self._journal("withdraw", (old.id, old.sensitivity, {"superseded_by": by}))

    def set_part_of(self, old: Memory, whole: int | None) -> None:
        """Let a memory be a part of another one again, out of sight."""
        values = {"deleted_at": None, "merged_into": whole, "sensitivity": self._stored(old.sensitivity)}
        self._connection.execute(update(memory).where(memory.c.id == old.id).values(values))
        self._journal("restore", (old.id, old.sensitivity, {"merged_into": whole}))

    def leave_forgotten(self, old: Memory) -> None:
        """Let a memory that was withdrawn after it was softly deleted be only that again."""
        level = self._stored(old.sensitivity)
        self._connection.execute(update(memory).where(memory.c.id == old.id).values(sensitivity=level))
        self._journal("restore", (old.id, old.sensitivity, {"soft": True}))

    def note_member(self, memory_id: int, note: dict[str, Any]) -> None:
        """Keep with a summary what it says of a member that is to be removed by rule, and where that came from."""
        mine = (label.c.memory_id == memory_id) & (label.c.kind == _MEMBER)
        last = self._connection.execute(select(func.max(label.c.position)).where(mine)).scalar()
        place = 0 if last is None else last + 1
        row = {
            "memory_id": memory_id,
            "kind": _MEMBER,
            "position": place,
            "value": json.dumps(note, ensure_ascii=False),
        }
        self._connection.execute(insert(label).values(row))

    def members_gone(self) -> list[tuple[int, int, dict[str, Any]]]:
        """Return what summaries keep of members that were removed by rule: the summary, a number, and what is kept."""
        let_in = of_levels(memory.c.sensitivity, self._levels) & memory.c.deleted_at.is_(None)
        here = (memory.c.namespace_id == self._known_id) & memory.c.merged_into.is_(None) & let_in
        kept = select(label).join(memory, memory.c.id == label.c.memory_id).where(label.c.kind == _MEMBER, here)
        found = self._connection.execute(kept.order_by(label.c.memory_id, label.c.position))
        return [(row.memory_id, row.position, json.loads(row.value)) for row in found]

    def drop_member(self, memory_id: int, number: int) -> None:
        """Forget what a summary keeps of a member."""
        mine = (label.c.memory_id == memory_id) & (label.c.kind == _MEMBER) & (label.c.position == number)
        self._connection.execute(delete(label).where(mine))

    def noted_texts(self) -> list[NotedText]:
        """Return the texts that sessions of this project keep of what became no memory, with where they came from."""
        texts = (observation.c.draft.is_not(None)) | (observation.c.summary != "")
        query = select(observation, session.c.session_id, session.c.owner)
        query = query.join(session, session.c.id == observation.c.session_row)
        rows = self._connection.execute(query.where(session.c.project == self._namespace, texts))
        return [
            NotedText(row.session_row, row.number, row.session_id, row.owner, row.at, row.summary, row.draft)
            for row in rows
        ]

    def write_texts(self, session_row: int, number: int, summary: str, draft: dict[str, Any] | None) -> None:
        """Write the texts of an observation."""
        mine = (observation.c.session_row == session_row) & (observation.c.number == number)
        self._connection.execute(update(observation).where(mine).values(summary=summary, draft=draft))

    def note_withdrawal(self, undo: dict[str, Any], levels: Sequence[str]) -> int:
        """Keep how to undo a withdrawal, and return its id."""
        (new,) = self._claim_ids(withdrawal, [None])
        row = {"id": new, "namespace_id": self._namespace_id, "at": self._now, "actor": self._actor, "undo": undo}
        self._connection.execute(insert(withdrawal).values(row | {"sensitivity": strictest("public", *levels)}))
        self._journal("withdraw", (None, strictest("public", *levels), {"withdrawal": new}))
        return new

    def undo_of(self, number: int) -> dict[str, Any] | None:
        """Return how to undo a withdrawal of this namespace, None where there is none of it."""
        mine = (withdrawal.c.id == number) & (withdrawal.c.namespace_id == self._known_id)
        found: dict[str, Any] | None = self._connection.execute(select(withdrawal.c.undo).where(mine)).scalar()
        return found

    def withdrawn_by(self, memory_id: int) -> int | None:
        """Return the withdrawal that hides a memory, None where none does."""
        away = memory.c.sensitivity.in_([WITHDRAWN + level for level in self._levels])
        mine = (memory.c.id == memory_id) & (memory.c.namespace_id == self._known_id) & away
        if self._connection.execute(select(memory.c.id).where(mine)).first() is None:
            return None
        here = select(withdrawal.c.id, withdrawal.c.undo).where(withdrawal.c.namespace_id == self._known_id)
        for row in self._connection.execute(here.order_by(withdrawal.c.id.desc())):
            if memory_id in taken_by(row.undo):
                return int(row.id)
        return None

    def note_undone(self, number: int, back: dict[str, Any]) -> None:
        """Keep what came back with a withdrawal in the place of how to undo it."""
        self._connection.execute(update(withdrawal).where(withdrawal.c.id == number).values(undo=back))
        self._journal("restore", (None, "public", {"withdrawal": number}))

    def drop_withdrawal(self, number: int) -> None:
        """Forget a withdrawal."""
        self._connection.execute(delete(withdrawal).where(withdrawal.c.id == number))
        self._journal("purge", (None, "public", {"withdrawal": number}))

    def old_withdrawals(self, days: int) -> list[tuple[int, dict[str, Any]]]:
        """Return the withdrawals of this namespace that are older than so many days."""
        mine = (withdrawal.c.at < self._now - timedelta(days=days)) & (withdrawal.c.namespace_id == self._known_id)
        return [(row.id, row.undo) for row in self._connection.execute(select(withdrawal).where(mine))]

    def _reviewed(self, condition: ColumnElement[bool], away: str = "") -> list[Memory]:
        if not self._known_id:
            return []
        let_in = memory.c.sensitivity.in_([away + level for level in self._levels])
        here = (memory.c.namespace_id == self._known_id) & let_in
        found = mapping.load(self._connection, condition & here, self._levels)
        return sorted(found, key=lambda one: one.id)
