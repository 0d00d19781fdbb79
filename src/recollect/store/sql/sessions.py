"""The sessions of coding agents in SQL: each is seen by its user alone, in its project.

What consolidation reads and writes: importance, use and marks of memories, many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from recollect.domain.enums import ObservationType, Scope, Sensitivity, Source, Standing
from recollect.domain.lifecycle import CAPTURED, Decision, Observation, Session, SubmitPrompt
from recollect.domain.origin import APPROVED, Authority, SaidBy, authority, before_stamps
from recollect.domain.requests import Caller
from recollect.domain.results import Memory
from recollect.store.entries import AgingMemory, Mark
from recollect.store.sql import store_metadata
from recollect.store.sql.child_tables import standing_of
from recollect.store.sql.database import Database
from recollect.store.sql.statements import count, insert_all, select_in
from recollect.store.sql.tables import consolidation, label, level_of, memory, observation, session, usage
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.visibility import APART, STANDING, inside, namespace_ids, of_levels, shown

_SESSION: Final = tuple(Session.model_fields)
_OBSERVED: Final = tuple(Observation.model_fields)
_LATEST: Final = (session.c.last_at.desc(), session.c.id.desc())
_NO_TEXTS: Final[dict[str, Any]] = {"draft": None, "summary": ""}
_ERASED: Final = "erased"
"""The entry of a state that counts how often words were taken out of it behind the stages' back."""

_WITHOUT_TEXT: Final = (
    *("seen", "injected", "injections", "kept", "forgotten", "began_at", "owes_index"),
    *("events", "worked", "undecided", "asks", "since_checkpoint", "waits", "failures", _ERASED),
)
"""What of a state holds no words of what was said."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of one database."""

    _database: Database

    def begin(self, caller: Caller, session_id: str, agent: str, at: datetime, *, new: bool = True) -> Session:
        """Return the session of this name; one that had ended goes on. Where there is none it is made, if `new`."""
        with self._database.writing(caller.writable(caller.namespace(Scope.PERSONAL))) as connection:
            found = connection.execute(select(session).where(_own(caller), session.c.session_id == session_id)).first()
            if found is None:
                values: dict[str, Any] = {"session_id": session_id, "agent": agent, "started_at": at, "last_at": at}
                values |= _places(caller) | {"kept": 0, "dropped": 0, "state": {}}
                if not new:
                    return Session(id=0, **values)
                found = connection.execute(insert(session).values(values).returning(*session.c)).one()
            elif found.ended_at is not None:
                connection.execute(update(session).where(session.c.id == found.id).values(ended_at=None))
        return _session(found).model_copy(update={"ended_at": None})

    def find(self, caller: Caller, beginning: str | None) -> Session | None:
        """Return the latest session whose name is or begins so, None where there is none; without one the latest."""
        name = session.c.session_id
        matches = [name == beginning, name.startswith(beginning, autoescape=True)] if beginning else [name == name]
        with self._database.reading() as connection:
            for one in matches:
                query = select(session).where(_own(caller), one).order_by(*_LATEST).limit(1)
                if (found := connection.execute(query).first()) is not None:
                    return _session(found)
        return None

    def save(
        self,
        session_: Session,
        observations: Sequence[Observation] = (),
        state_after: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        """Write the state and times of a session and add observations, numbered on, in one transaction.

        `state_after` makes the state to be written of the one that is stored by now; it must be quick. What names a
        memory of the session's project that is gone by now is kept without words.
        """
        named = {one.memory_id for one in observations if one.memory_id is not None}
        with self._database.writing(*[session_.project] if named else []) as connection:
            row = _locked(connection, session_)
            if row is None:
                return
            state = state_after(row.state) if state_after else session_.state
            if gone := _gone(connection, named):
                state = _without_words(state)
                observations = [
                    one.model_copy(update=_NO_TEXTS) if one.memory_id in gone else one for one in observations
                ]
            kept = sum(one.decision is Decision.KEPT for one in observations)
            values = {"state": state, "last_at": max(row.last_at, session_.last_at)}
            values |= {"ended_at": session_.ended_at} if session_.ended_at else {}
            values |= {"kept": row.kept + kept, "dropped": row.dropped + len(observations) - kept}
            connection.execute(update(session).where(session.c.id == row.id).values(**values))
            insert_all(connection, observation, _numbered(connection, row.id, observations))

    def mask(self, session_: Session, masked: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Write what `masked` makes of the state; an event that is under way takes up none of the words before it."""
        with self._database.writing() as connection:
            if (row := _locked(connection, session_)) is not None:
                _erase(connection, row.id, row.state, masked(row.state))

    def listed(self, caller: Caller, limit: int, offset: int) -> tuple[list[Session], int]:
        """Return a page of the sessions, the latest first, and how many there are."""
        with self._database.reading() as connection:
            query = select(session).where(_own(caller)).order_by(*_LATEST).limit(limit).offset(offset)
            return [_session(one) for one in connection.execute(query)], count(connection, session, _own(caller))

    def listed_everywhere(self, caller: Caller, limit: int, offset: int) -> tuple[list[Session], int]:
        """Return a page of this user's sessions in all projects, the latest first, and how many there are."""
        mine = session.c.owner == caller.namespace(Scope.PERSONAL)
        with self._database.reading() as connection:
            query = select(session).where(mine).order_by(*_LATEST).limit(limit).offset(offset)
            return [_session(one) for one in connection.execute(query)], count(connection, session, mine)

    def first_prompts(self, sessions: Sequence[Session]) -> dict[int, Observation]:
        """Return the first prompt that was noted of each of these sessions, by the number of the session's row."""
        row, number = observation.c.session_row, observation.c.number
        prompts = row.in_([one.id for one in sessions]) & (observation.c.event == SubmitPrompt.event)
        first = select(row, func.min(number).label("number")).where(prompts).group_by(row).subquery()
        here = (row == first.c.session_row) & (number == first.c.number)
        with self._database.reading() as connection:
            rows = connection.execute(select(observation).join(first, here))
            return {row.session_row: _observed(row) for row in rows}

    def kept_ids(self, sessions: Sequence[Session]) -> dict[int, list[int]]:
        """Return the ids of the memories that each of these sessions made, in order, by the number of its row."""
        query = select(observation.c.session_row, observation.c.memory_id).where(
            observation.c.session_row.in_([one.id for one in sessions]),
            observation.c.decision == Decision.KEPT,
            observation.c.memory_id.is_not(None),
        )
        found: dict[int, list[int]] = {}
        with self._database.reading() as connection:
            for row, memory_id in connection.execute(query.order_by(observation.c.session_row, observation.c.number)):
                found.setdefault(row, []).append(memory_id)
        return {row: list(dict.fromkeys(ids)) for row, ids in found.items()}

    def agents_of(self, caller: Caller, session_ids: Collection[str]) -> dict[str, str]:
        """Return the agent of each of the caller's own sessions that has one of these names, in whichever project."""
        mine = (session.c.owner == caller.namespace(Scope.PERSONAL)) & session.c.session_id.in_(sorted(session_ids))
        with self._database.reading() as connection:
            return dict(map(tuple, connection.execute(select(session.c.session_id, session.c.agent).where(mine))))

    def naming(self, caller: Caller, memory_id: int, limit: int) -> list[Session]:
        """Return the latest sessions whose state may name a memory: its number stands there."""
        named = cast(session.c.state, Text).contains(str(memory_id))
        with self._database.reading() as connection:
            query = select(session).where(_own(caller), named).order_by(*_LATEST).limit(limit)
            return [_session(one) for one in connection.execute(query)]

    def observed_at(self, session_: Session, moments: Sequence[datetime]) -> dict[datetime, Observation]:
        """Return the observation that was made at each of these moments, if one was."""
        mine = (observation.c.session_row == session_.id) & observation.c.at.in_(moments)
        with self._database.reading() as connection:
            found = connection.execute(select(observation).where(mine).order_by(observation.c.number))
            return {row.at: _observed(row) for row in found}

    def observations(self, session_: Session) -> list[Observation]:
        """Return the observations of a session in order."""
        query = select(observation).where(observation.c.session_row == session_.id).order_by(observation.c.number)
        with self._database.reading() as connection:
            return [_observed(row) for row in connection.execute(query)]

    def decide(self, session_: Session, number: int, decision: Decision, reason: str, memory_id: int | None) -> None:
        """Write another decision over that of an observation; one that is kept keeps no draft."""
        kept = decision is Decision.KEPT
        values: dict[str, Any] = {"decision": decision, "reason": reason, "memory_id": memory_id}
        values |= {"draft": None, "summary": ""} if kept else {}
        this = (observation.c.session_row == session_.id) & (observation.c.number == number)
        change = 1 if kept else -1
        with self._database.writing() as connection:
            _locked(connection, session_)
            other = connection.execute(
                update(observation).where(this, observation.c.decision != decision).values(values)
            )
            if other.rowcount:
                counts = {"kept": session.c.kept + change, "dropped": session.c.dropped - change}
                connection.execute(update(session).where(session.c.id == session_.id).values(counts))

    def rewrite(self, session_: Session, number: int, rewritten: Callable[[Observation], Observation]) -> None:
        """Write over the texts of an observation what `rewritten` makes of those that it has by now."""
        this = (observation.c.session_row == session_.id) & (observation.c.number == number)
        with self._database.writing() as connection:
            _locked(connection, session_)
            row = connection.execute(select(observation).where(this)).first()
            if row is not None:
                new = rewritten(_observed(row))
                values = {name: getattr(new, name) for name in ("tool", "summary", "reason", "draft")}
                connection.execute(update(observation).where(this).values(values))

    def remove_before(self, at: datetime) -> int:
        """Remove the sessions that were last heard of before `at`, whoever's they are; return how many.

        Those that somebody else removes or goes on with at this moment are left to them.
        """
        old = select(session.c.id).where(session.c.last_at < at).with_for_update(skip_locked=True)
        with self._database.writing() as connection:
            return connection.execute(delete(session).where(session.c.id.in_(old))).rowcount


def forget_words(connection: Connection, memory_ids: Collection[int], sessions: Collection[int]) -> None:
    """Let these sessions, and those that met one of these memories, know no words of what was said; texts stay."""
    of = select(observation.c.session_row).where(observation.c.memory_id.in_(memory_ids))
    mine = or_(session.c.id.in_(of), session.c.id.in_(sessions))
    query = select(session.c.id, session.c.state).where(mine).order_by(session.c.id)
    for row in connection.execute(query.with_for_update()).all():
        _erase(connection, row.id, row.state, _without_words(row.state))


def forget_texts(connection: Connection, memory_id: int) -> None:
    """Let the sessions that made a memory, or met what it says again, keep no words of it.

    Such an observation names the memory. Of the state what may hold words of it is dropped, and the stages begin anew.
    """
    forget_words(connection, [memory_id], [])
    connection.execute(update(observation).where(observation.c.memory_id == memory_id).values(_NO_TEXTS))


def _locked(connection: Connection, session_: Session) -> Row[Any] | None:
    """Return the row of a session, which nobody else changes before the transaction ends; None where it is gone."""
    return connection.execute(select(session).where(session.c.id == session_.id).with_for_update()).first()


def _gone(connection: Connection, memories: set[int]) -> set[int]:
    """Return which of these memories are gone."""
    known = select(memory.c.id).where(memory.c.id.in_(memories))
    return memories - set(connection.execute(known).scalars()) if memories else set()


def _erase(connection: Connection, row: int, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Write a state out of which words were taken, and note that they were."""
    state = after | {_ERASED: before.get(_ERASED, 0) + 1}
    connection.execute(update(session).where(session.c.id == row).values(state=state))


def _without_words(state: dict[str, Any]) -> dict[str, Any]:
    """Return what of a state holds no words of what was said, and when topics began."""
    kept = {name: state[name] for name in _WITHOUT_TEXT if name in state}
    return kept | {"boundaries": [one | {"keywords": []} for one in state.get("boundaries", ())]}


def _places(caller: Caller) -> dict[str, str]:
    return {"owner": caller.namespace(Scope.PERSONAL), "project": caller.namespace(Scope.PROJECT)}


def _own(caller: Caller) -> ColumnElement[bool]:
    """Return the condition that a session is the caller's own, in the caller's project."""
    mine = _places(caller)
    return (session.c.owner == mine["owner"]) & (session.c.project == mine["project"])


def _session(row: Row[Any]) -> Session:
    return Session.model_validate({name: getattr(row, name) for name in _SESSION})


def _observed(row: Row[Any]) -> Observation:
    return Observation.model_validate({name: getattr(row, name) for name in _OBSERVED})


def _numbered(connection: Connection, row: int, observations: Sequence[Observation]) -> list[dict[str, Any]]:
    """Return the rows of new observations, numbered on from the last there is."""
    last = connection.execute(select(func.max(observation.c.number)).where(observation.c.session_row == row)).scalar()
    return [
        one.model_dump() | {"session_row": row, "number": number, "decision": str(one.decision)}
        for number, one in enumerate(observations, (last or 0) + 1)
    ]


_DAYS = "session_days."
_MOST_DAYS = 400
_KEPT = "kept"
"""The kind of a label that says that somebody stored by a call what was captured."""
_summary = memory.alias("compressed")
_successor_gone = exists().where(
    _summary.c.id == memory.c.superseded_by,
    _summary.c.type == str(ObservationType.COMPRESSED_SUMMARY),
    _summary.c.deleted_at.is_not(None),
)
_AGING: Select[Any] = (
    select(
        *(memory.c[name] for name in ("id", "fact_type", "type", "sensitivity", "importance", "updated_at")),
        usage.c.last_accessed_at,
        (func.coalesce(usage.c.accessed_count, 0) + func.coalesce(usage.c.recalled_count, 0)).label("accesses"),
        or_(memory.c.superseded_by.is_(None), _successor_gone.correlate(memory)).label("current"),
        consolidation.c.at,
        consolidation.c.accesses.label("counted"),
    )
    .select_from(memory)
    .outerjoin(usage, usage.c.memory_id == memory.c.id)
    .outerjoin(consolidation, consolidation.c.memory_id == memory.c.id)
    .where(shown())
    .order_by(memory.c.id)
)
_WEIGH = update(memory).where(memory.c.id == bindparam("this")).values(importance=bindparam("new"))


class SqlConsolidation:
    """The part of `Records` that reads what consolidation looks at."""

    _database: Database

    def aging(
        self, namespace: str, sources: Collection[Source], levels: Sequence[str] = (Sensitivity.PUBLIC,)
    ) -> list[AgingMemory]:
        """Return the memories in sight that came into the namespace in one of these ways, by their ids."""
        with self._database.reading() as connection:
            came: ColumnElement[bool] = memory.c.source.in_([str(one) for one in sources])
            if Source.TOOL not in sources:
                came &= ~_decided((_KEPT, STANDING))
            else:
                came &= ~_decided((STANDING,))
            here = inside(connection, [namespace]) & of_levels(memory.c.sensitivity, levels)
            return [_aging(row) for row in connection.execute(_AGING.where(came, here))]

    def session_days(self, namespace: str) -> tuple[date, ...]:
        """Return the days on which sessions of a project ended, the last four hundred of them, in order."""
        with self._database.reading() as connection:
            number = namespace_ids(connection, [namespace]).get(namespace, 0)
            return _days(connection, number)


def _decided(kinds: Sequence[str]) -> ColumnElement[bool]:
    """Select the memories about which somebody decided something of these kinds."""
    return exists().where(label.c.memory_id == memory.c.id, label.c.kind.in_(kinds)).correlate(memory)


class ConsolidationWriting(Transaction):
    """The part of `Writing` that writes importance and marks."""

    def aging(self, ids: Collection[int]) -> list[AgingMemory]:
        """Return those of these memories that are in sight, in the order of their ids."""
        here = (memory.c.namespace_id == self._known_id) & of_levels(memory.c.sensitivity, self._levels)
        return [_aging(row) for row in select_in(self._connection, _AGING.where(here), memory.c.id, sorted(ids))]

    def note_session_day(self, day: date) -> tuple[date, ...]:
        """Note that a session of the project ended on a day; return these days, in order."""
        days = tuple(sorted({*_days(self._connection, self._namespace_id), day}))[-_MOST_DAYS:]
        store_metadata.write(self._connection, {f"{_DAYS}{self._namespace_id}": ",".join(map(str, days))})
        return days

    def stop_fading(self, memory_id: int) -> None:
        """Note that somebody stored by a call what the pipeline had captured: it fades and ends by itself no more.

        It is no draft any more, either, unless it came from outside or waits for a decision of its own.
        """
        mine = (memory.c.id == memory_id) & memory.c.source.in_([str(one) for one in CAPTURED])
        row = select(memory.c.id, literal(_KEPT), literal(0), literal("")).where(mine)
        new = row.where(~exists().where(label.c.memory_id == memory_id, label.c.kind == _KEPT))
        self._connection.execute(insert(label).from_select(["memory_id", "kind", "position", "value"], new))
        self._connection.execute(update(memory).where(mine, memory.c.ttl_days.is_(None)).values(expires_at=None))
        found = select(memory.c.source, memory.c.trust, memory.c.said_by, memory.c.review, level_of(memory))
        old = self._connection.execute(found.where(mine)).first()
        if old is None or old.review is not None:
            return
        said_by = SaidBy(old.said_by) if old.said_by else before_stamps(Source(old.source), old.trust)
        if authority(said_by) is not Authority.OUTSIDE:
            self._connection.execute(update(memory).where(mine).values(review=APPROVED))
            self._journal("review", (memory_id, old[-1], {"review": APPROVED}))

    def set_standing(self, old: Memory, standing: Standing | None) -> None:
        """Note that somebody pinned or buried a memory, or neither any more; what is pinned has no end."""
        mine = (label.c.memory_id == old.id) & (label.c.kind == STANDING)
        self._connection.execute(delete(label).where(mine))
        if standing is not None:
            self._connection.execute(insert(label).values(standing_of(old.id, standing)))
        ends = [] if standing is not Standing.PINNED or old.expires_at is None else ["expires_at", "ttl_days"]
        if ends:
            self._connection.execute(update(memory).where(memory.c.id == old.id).values(dict.fromkeys(ends)))
        told = {"fields": [*ends, "standing"], "standing": str(standing or "")}
        self._journal("update", (old.id, old.sensitivity, told))

    def tell_apart(self, old: Memory, other: int, *, undo: bool) -> None:
        """Note that a memory is no duplicate of another one, or with `undo` that it may be."""
        mine = (label.c.memory_id == old.id) & (label.c.kind == APART) & (label.c.value == str(other))
        self._connection.execute(delete(label).where(mine))
        if not undo:
            row = {"memory_id": old.id, "kind": APART, "position": other, "value": str(other)}
            self._connection.execute(insert(label).values(row))
        told = {"fields": ["apart"], "apart": "" if undo else str(other)}
        self._journal("update", (old.id, old.sensitivity, told))

    def consolidate(self, changes: Sequence[tuple[AgingMemory, float, Mark]]) -> None:
        """Write another importance and mark of memories; their `updated_at` stays, or fading would make them new."""
        if not changes:
            return
        self._connection.execute(_WEIGH, [{"this": one.id, "new": importance} for one, importance, _ in changes])
        put = self._dialect.insert(consolidation)
        marks = {name: put.excluded[name] for name in ("at", "accesses")}
        rows = [{"memory_id": one.id, "at": mark.at, "accesses": mark.accesses} for one, _, mark in changes]
        self._connection.execute(put.on_conflict_do_update(index_elements=["memory_id"], set_=marks), rows)
        lines = (
            (one.id, one.sensitivity, {"fields": ["importance"], "importance": [one.importance, importance]})
            for one, importance, _ in changes
        )
        self._journal("consolidate", *lines)


def _days(connection: Connection, namespace_id: int) -> tuple[date, ...]:
    known = store_metadata.read(connection).get(f"{_DAYS}{namespace_id}", "")
    return tuple(map(date.fromisoformat, filter(None, known.split(","))))


def _aging(row: Row[Any]) -> AgingMemory:
    values = dict(row._mapping)
    at, counted, current = (values.pop(name) for name in ("at", "counted", "current"))
    return AgingMemory(**values, replaced=not current, mark=None if at is None else Mark(at, counted))
