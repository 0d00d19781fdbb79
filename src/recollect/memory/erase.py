"""Delete what a person who leaves has, or hand it over: each namespace in transactions that count what they removed.

So whoever is interrupted goes on where they were: what is done is no longer there, and its count stands beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final

from recollect.app import App
from recollect.domain.enums import Scope, Sensitivity, own_levels
from recollect.domain.leaving import Choice
from recollect.domain.requests import Caller, WritableNamespace
from recollect.domain.review import Withdraw
from recollect.errors import Conflict
from recollect.memory.prepare_write import Embeddings, with_embeddings
from recollect.memory.withdraw import take_out
from recollect.store.sql.departures import DepartureState, add_done
from recollect.store.sql.handing_over import HandingOver
from recollect.store.sql.withdrawals import ids_hidden_by
from recollect.text.traces import Traces

if TYPE_CHECKING:
    from recollect.store.sql.writing import Writing

ERASE: Final = "erase"
"""The action of the lines of the journal about what is deleted with a user."""
_AT_ONCE: Final = 200  # memories of a transaction that nothing else is rebuilt in
_NOWHERE: Final = "-"


def hand_over(app: App, departure: DepartureState) -> None:
    """Move the personal memories of a person to a colleague or a team, a few in each transaction.

    What is private or secret, hidden or expired is none of them.
    """
    scope = Scope.PERSONAL if departure.choice is Choice.HAND_TO else Scope.TEAM
    target = Caller(user=departure.target, team=departure.target if scope is Scope.TEAM else _NOWHERE, project=_NOWHERE)
    source = _caller_in(f"user:{departure.user}", departure.user)
    spaces: list[WritableNamespace] = [
        source.writable(f"user:{departure.user}"),
        target.writable(target.namespace(scope)),
    ]
    for step in count():
        with app.records.importing(spaces, departure.actor) as writings:
            transactions = [writings[space].transaction for space in spaces]
            moving = HandingOver(*transactions)
            ids = moving.waiting(_AT_ONCE)
            if ids:
                moving.move(ids)
            stated = 0 if step else moving.move_facts()
            counts = {"handed_over": len(ids), "facts_handed_over": stated}
            add_done(transactions[0].connection, departure.id, counts)
        if not ids:
            return


def erase_in(app: App, departure: DepartureState, namespace: str, traces: Traces) -> None:
    """Delete what a person has in a namespace, and rebuild without it what was made of it; add its texts to `traces`.

    In the namespace of a team or project that is what is theirs alone, and where the choice is to erase, all of it.
    """
    if namespace == f"user:{departure.user}":
        while _erase_some(app, departure, namespace, traces):
            pass
    else:
        with_embeddings(app, lambda made: _erase_shared(app, departure, namespace, traces, made))


def _erase_some(app: App, departure: DepartureState, namespace: str, traces: Traces) -> bool:
    """Delete some of what is in a personal namespace; say whether there was anything."""
    with _writing(app, departure, namespace, (Sensitivity.PUBLIC, *own_levels(departure.user))) as writing:
        ids = writing.person.memories(departure.user)[:_AT_ONCE]
        done = _delete_memories(writing, ids, traces)
        if not ids:
            done += _delete_rest(writing, departure, all_of_them=True)
        add_done(writing.transaction.connection, departure.id, done)
    return bool(ids)


def _erase_shared(app: App, departure: DepartureState, namespace: str, traces: Traces, made: Embeddings) -> None:
    """Delete what a person has in a namespace that others share, in a single transaction."""
    erasing = departure.choice is Choice.ERASE
    levels = (Sensitivity.PUBLIC, *own_levels(departure.user)) if erasing else own_levels(departure.user)
    with _writing(app, departure, namespace, levels) as writing:
        traces.add(writing.person.texts(writing.person.memories(departure.user)))
        undo = take_out(app, writing, _caller_in(namespace, departure.actor), made, Withdraw(author=departure.user))
        done = Counter[str]()
        for number in undo["facts"]:
            done["fact"] += writing.facts.delete(number)
        for number in writing.person.summaries_of_others(departure.user) if erasing else ():
            writing.person.take_over(number)
        ids = dict.fromkeys((*ids_hidden_by(undo), *writing.person.memories(departure.user)))
        done += _delete_memories(writing, list(ids), traces)
        done += _delete_rest(writing, departure, all_of_them=False)
        add_done(writing.transaction.connection, departure.id, done)


def _delete_memories(writing: Writing, ids: list[int], traces: Traces) -> Counter[str]:
    """Delete these memories with what was merged into them; count the rows of each table.

    Raises `Conflict` where a legal hold keeps any: hidden in place of deleted, it would be found again and again.
    """
    for number in ids:
        if (hold := writing.memories.hold_on(number)) is not None:
            kept = hold.called_by(writing.transaction.actor)
            raise Conflict(f"Not all is deleted: {kept} keeps memory {number}. Ask for the same once it is released.")
    whole = writing.person.whole(ids)
    traces.add(writing.person.texts(whole))
    counts = writing.person.count_rows(whole)
    for number in ids:
        writing.memories.delete(number, ERASE)
    counts["request_outcome"] = writing.person.drop_outcomes(whole)
    return counts


def _delete_rest(writing: Writing, departure: DepartureState, *, all_of_them: bool) -> Counter[str]:
    """Delete a person's facts, decisions and levels in a namespace; count the rows of each table."""
    counts = Counter(fact=writing.person.drop_facts(departure.user))
    if all_of_them or departure.choice is Choice.ERASE:
        counts += writing.person.drop_decisions(departure.user, all_of_them=all_of_them)
    counts["held"] = writing.person.drop_levels(departure.user)
    return counts


@contextmanager
def _writing(app: App, departure: DepartureState, namespace: str, levels: tuple[str, ...]) -> Iterator[Writing]:
    """Open a transaction of whoever deletes the person on what is theirs in a namespace."""
    space = _caller_in(namespace, departure.user).writable(namespace)
    with app.records.importing([space], departure.actor, levels, owner=departure.user) as writings:
        yield writings[space]


def _caller_in(namespace: str, user: str) -> Caller:
    """Return a caller whose scopes are those of a namespace."""
    scope, _, place = namespace.partition(":")
    team, _, project = place.partition("/") if scope == "project" else (place, "", "")
    return Caller(user=user, team=team if scope != "user" else _NOWHERE, project=project or _NOWHERE)
