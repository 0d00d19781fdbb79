"""The sessions of coding agents in SQL: each is seen by its user alone, in its project."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Text, cast, delete, func, insert, or_, select, update

from recollect.domain.enums import Scope
from recollect.domain.lifecycle import Decision, Observation, Session, SubmitPrompt
from recollect.domain.requests import Caller
from recollect.store.sql.database import Database
from recollect.store.sql.holds import active_holds, sessions_without_hold
from recollect.store.sql.statements import count, insert_all
from recollect.store.sql.tables import memory, observation, session

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
            found = connection.execute(
                select(session).where(_is_own(caller), session.c.session_id == session_id)
            ).first()
            if found is None:
                values: dict[str, Any] = {"session_id": session_id, "agent": agent, "started_at": at, "last_at": at}
                values |= _namespaces_of(caller) | {"kept": 0, "dropped": 0, "state": {}}
                if not new:
                    return Session(id=0, **values)
                found = connection.execute(insert(session).values(values).returning(*session.c)).one()
            elif found.ended_at is not None:
                connection.execute(update(session).where(session.c.id == found.id).values(ended_at=None))
        return _session_of(found).model_copy(update={"ended_at": None})

    def find(self, caller: Caller, beginning: str | None) -> Session | None:
        """Return the latest session whose name is or begins so, None where there is none; without one the latest."""
        name = session.c.session_id
        matches = [name == beginning, name.startswith(beginning, autoescape=True)] if beginning else [name == name]
        with self._database.reading() as connection:
            for one in matches:
                query = select(session).where(_is_own(caller), one).order_by(*_LATEST).limit(1)
                if (found := connection.execute(query).first()) is not None:
                    return _session_of(found)
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
            row = _lock_session(connection, session_)
            if row is None:
                return
            state = state_after(row.state) if state_after else session_.state
            if gone := _gone_memories(connection, named):
                state = _without_words(state)
                observations = [
                    one.model_copy(update=_NO_TEXTS) if one.memory_id in gone else one for one in observations
                ]
            kept = sum(one.decision is Decision.KEPT for one in observations)
            values = {"state": state, "last_at": max(row.last_at, session_.last_at)}
            values |= {"ended_at": session_.ended_at} if session_.ended_at else {}
            values |= {"kept": row.kept + kept, "dropped": row.dropped + len(observations) - kept}
            connection.execute(update(session).where(session.c.id == row.id).values(**values))
            insert_all(connection, observation, _numbered_rows(connection, row.id, observations))

    def mask(self, session_: Session, masked: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Write what `masked` makes of the state; an event that is under way takes up none of the words before it."""
        with self._database.writing() as connection:
            if (row := _lock_session(connection, session_)) is not None:
                _write_without_words(connection, row.id, row.state, masked(row.state))

    def listed(self, caller: Caller, limit: int, offset: int) -> tuple[list[Session], int]:
        """Return a page of the sessions, the latest first, and how many there are."""
        with self._database.reading() as connection:
            query = select(session).where(_is_own(caller)).order_by(*_LATEST).limit(limit).offset(offset)
            return [_session_of(one) for one in connection.execute(query)], count(connection, session, _is_own(caller))

    def listed_everywhere(self, caller: Caller, limit: int, offset: int) -> tuple[list[Session], int]:
        """Return a page of this user's sessions in all projects, the latest first, and how many there are."""
        mine = session.c.owner == caller.namespace(Scope.PERSONAL)
        with self._database.reading() as connection:
            query = select(session).where(mine).order_by(*_LATEST).limit(limit).offset(offset)
            return [_session_of(one) for one in connection.execute(query)], count(connection, session, mine)

    def of_person(self, user: str, after: int, limit: int) -> list[Session]:
        """Return the next sessions of a user in the order of their rows, in whichever project."""
        mine = (session.c.owner == f"user:{user}") & (session.c.id > after)
        with self._database.reading() as connection:
            query = select(session).where(mine).order_by(session.c.id).limit(limit)
            return [_session_of(row) for row in connection.execute(query)]

    def first_prompts(self, sessions: Sequence[Session]) -> dict[int, Observation]:
        """Return the first prompt that was noted of each of these sessions, by the number of the session's row."""
        row, number = observation.c.session_row, observation.c.number
        prompts = row.in_([one.id for one in sessions]) & (observation.c.event == SubmitPrompt.event)
        first = select(row, func.min(number).label("number")).where(prompts).group_by(row).subquery()
        here = (row == first.c.session_row) & (number == first.c.number)
        with self._database.reading() as connection:
            rows = connection.execute(select(observation).join(first, here))
            return {row.session_row: _observation_of(row) for row in rows}

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
            query = select(session).where(_is_own(caller), named).order_by(*_LATEST).limit(limit)
            return [_session_of(one) for one in connection.execute(query)]

    def observed_at(self, session_: Session, moments: Sequence[datetime]) -> dict[datetime, Observation]:
        """Return the observation that was made at each of these moments, if one was."""
        mine = (observation.c.session_row == session_.id) & observation.c.at.in_(moments)
        with self._database.reading() as connection:
            found = connection.execute(select(observation).where(mine).order_by(observation.c.number))
            return {row.at: _observation_of(row) for row in found}

    def observations(self, session_: Session) -> list[Observation]:
        """Return the observations of a session in order."""
        query = select(observation).where(observation.c.session_row == session_.id).order_by(observation.c.number)
        with self._database.reading() as connection:
            return [_observation_of(row) for row in connection.execute(query)]

    def decide(self, session_: Session, number: int, decision: Decision, reason: str, memory_id: int | None) -> None:
        """Write another decision over that of an observation; one that is kept keeps no draft."""
        kept = decision is Decision.KEPT
        values: dict[str, Any] = {"decision": decision, "reason": reason, "memory_id": memory_id}
        values |= {"draft": None, "summary": ""} if kept else {}
        this = (observation.c.session_row == session_.id) & (observation.c.number == number)
        change = 1 if kept else -1
        with self._database.writing() as connection:
            _lock_session(connection, session_)
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
            _lock_session(connection, session_)
            row = connection.execute(select(observation).where(this)).first()
            if row is not None:
                new = rewritten(_observation_of(row))
                values = {name: getattr(new, name) for name in ("tool", "summary", "reason", "draft")}
                connection.execute(update(observation).where(this).values(values))

    def remove_before(self, at: datetime) -> int:
        """Remove the sessions that were last heard of before `at`, whoever's they are; return how many.

        Those that somebody else removes or goes on with at this moment are left to them; a legal hold keeps others.
        """
        with self._database.writing() as connection:
            free = sessions_without_hold(active_holds(connection))
            old = select(session.c.id).where(session.c.last_at < at, free).with_for_update(skip_locked=True)
            return connection.execute(delete(session).where(session.c.id.in_(old))).rowcount


def forget_words(connection: Connection, memory_ids: Collection[int], sessions: Collection[int]) -> None:
    """Let these sessions, and those that met one of these memories, know no words of what was said; texts stay."""
    of = select(observation.c.session_row).where(observation.c.memory_id.in_(memory_ids))
    mine = or_(session.c.id.in_(of), session.c.id.in_(sessions))
    query = select(session.c.id, session.c.state).where(mine).order_by(session.c.id)
    for row in connection.execute(query.with_for_update()).all():
        _write_without_words(connection, row.id, row.state, _without_words(row.state))


def forget_texts(connection: Connection, memory_id: int) -> None:
    """Let the sessions that made a memory, or met what it says again, keep no words of it.

    Such an observation names the memory. Of the state what may hold words of it is dropped, and the stages begin anew.
    """
    forget_words(connection, [memory_id], [])
    connection.execute(update(observation).where(observation.c.memory_id == memory_id).values(_NO_TEXTS))


def _lock_session(connection: Connection, session_: Session) -> Row[Any] | None:
    """Return the row of a session, which nobody else changes before the transaction ends; None where it is gone."""
    return connection.execute(select(session).where(session.c.id == session_.id).with_for_update()).first()


def _gone_memories(connection: Connection, memories: set[int]) -> set[int]:
    """Return which of these memories are gone."""
    known = select(memory.c.id).where(memory.c.id.in_(memories))
    return memories - set(connection.execute(known).scalars()) if memories else set()


def _write_without_words(connection: Connection, row: int, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Write a state from which words were taken, and note that they were."""
    state = after | {_ERASED: before.get(_ERASED, 0) + 1}
    connection.execute(update(session).where(session.c.id == row).values(state=state))


def _without_words(state: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a state that hold no words from the session, and when topics began."""
    kept = {name: state[name] for name in _WITHOUT_TEXT if name in state}
    return kept | {"boundaries": [one | {"keywords": []} for one in state.get("boundaries", ())]}


def _namespaces_of(caller: Caller) -> dict[str, str]:
    """Return the namespaces of which a caller's session is kept, by column."""
    return {"owner": caller.namespace(Scope.PERSONAL), "project": caller.namespace(Scope.PROJECT)}


def _is_own(caller: Caller) -> ColumnElement[bool]:
    """Return the condition that a session is the caller's own, in the caller's project."""
    mine = _namespaces_of(caller)
    return (session.c.owner == mine["owner"]) & (session.c.project == mine["project"])


def _session_of(row: Row[Any]) -> Session:
    return Session.model_validate({name: getattr(row, name) for name in _SESSION})


def _observation_of(row: Row[Any]) -> Observation:
    return Observation.model_validate({name: getattr(row, name) for name in _OBSERVED})


def _numbered_rows(connection: Connection, row: int, observations: Sequence[Observation]) -> list[dict[str, Any]]:
    """Return the rows of new observations, numbered on from the last there is."""
    last = connection.execute(select(func.max(observation.c.number)).where(observation.c.session_row == row)).scalar()
    return [
        one.model_dump() | {"session_row": row, "number": number, "decision": str(one.decision)}
        for number, one in enumerate(observations, (last or 0) + 1)
    ]
