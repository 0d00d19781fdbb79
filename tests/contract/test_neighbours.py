"""Neighbours: what stands beside a memory in its session, as far as a view may see it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import event

from callers import own
from recollect.domain.enums import Sensitivity
from recollect.domain.search import View

HERE = "project:crew/engine"
LAST = 2_147_483_647


def insert_turns(store: Any, positions: range, session: str = "s1", namespace: str = HERE) -> list[int]:
    """Store one memory for each position of a session and return their ids."""
    return [
        store.add(f"Turn {one} of {session} in {namespace}", namespace, session_id=session, position=one)
        for one in positions
    ]


def neighbours(store: Any, ids: Sequence[int], view: View, *, far: bool = False) -> dict[int, tuple[int, ...]]:
    """Read memories with what stands beside them, with `far` up to two places away; return who stands beside each."""
    rows = store.records.candidates(view)
    store.records.read_candidates(rows, ids, ids if far else ())
    return dict(rows.neighbours([one for one in ids if one in rows]))


def test_the_neighbours_of_a_memory_are_those_beside_it(store: Any) -> None:
    """One place before comes first, then one place after; at either end of the session there is only one."""
    first, second, third, fourth = insert_turns(store, range(1, 5))
    found = neighbours(store, [first, second, fourth], store.view())
    assert found == {first: (second,), second: (first, third), fourth: (third,)}


def test_far_ones_are_read_with_the_neighbours_of_their_neighbours(store: Any) -> None:
    """What stands two places away is read where that is asked for, so that those beside know both of their sides."""
    ids = insert_turns(store, range(7))
    for far, read in (((), ids[2:5]), ((ids[3],), ids[1:6])):
        rows = store.records.candidates(store.view())
        store.records.read_candidates(rows, [ids[3]], far)
        assert sorted(rows) == read
    assert rows.neighbours([ids[2], ids[4]]) == {ids[2]: (ids[1], ids[3]), ids[4]: (ids[3], ids[5])}


def test_a_gap_is_no_neighbour(store: Any) -> None:
    """What lies farther than the reach is no neighbour, though nothing stands between."""
    before, _ = insert_turns(store, range(1, 2)) + insert_turns(store, range(3, 4))
    assert neighbours(store, [before], store.view()) == {}


def test_two_memories_in_one_place_are_both_neighbours(store: Any) -> None:
    """A position that two memories share gives both, and each is the other's nearest neighbour."""
    one, other = (store.add(f"Said {word}", session_id="s1", position=1) for word in ("once", "twice"))
    after = store.add("Said then", session_id="s1", position=2)
    found = neighbours(store, [one, after], store.view())
    assert found == {one: (other, after), after: (one, other)}


def test_no_neighbours_without_session_or_position(store: Any) -> None:
    """Memories without a session, or without a place in it, stand beside nobody."""
    ids = [
        store.add("Neither"),
        store.add("No position one", session_id="s1"),
        store.add("No position two", session_id="s1"),
        store.add("No session one", position=1),
        store.add("No session two", position=2),
    ]
    (placed,) = insert_turns(store, range(1, 2))
    assert neighbours(store, [*ids, placed], store.view()) == {}


def test_the_ends_of_the_positions_there_can_be(store: Any) -> None:
    """The first and the last position there can be have neighbours on one side, and nothing overflows."""
    first, second = insert_turns(store, range(2))
    last, before = insert_turns(store, range(LAST, LAST - 2, -1), "s2")
    found = neighbours(store, [first, last], store.view(), far=True)
    assert found == {first: (second,), last: (before,)}


def test_sessions_and_namespaces_are_kept_apart(store: Any) -> None:
    """The same places in another session, or in a session of the same name elsewhere, are no neighbours."""
    mine = insert_turns(store, range(2))
    insert_turns(store, range(2), "S1")
    theirs = insert_turns(store, range(2), namespace="user:ada")
    view = store.view(HERE, "user:ada")
    assert neighbours(store, [mine[0], theirs[1]], view) == {mine[0]: (mine[1],), theirs[1]: (theirs[0],)}
    assert neighbours(store, theirs, store.view()) == {}
    assert neighbours(store, mine, store.view("user:nobody")) == {}


def test_neighbours_are_what_the_view_may_see(store: Any) -> None:
    """A private, expired or deleted neighbour is not shown; a view that may see private ones shows it."""
    now = store.clock()
    middle = store.add("Middle", session_id="s1", position=3)
    private = store.add("Private", session_id="s1", position=2, sensitivity=Sensitivity.PRIVATE)
    store.add("Expired", session_id="s1", position=4, expires_at=now)
    gone = store.add("Deleted", session_id="s1", position=4)
    late = store.add("Not yet expired", session_id="s1", position=4, expires_at=now + timedelta(seconds=1))
    store.by_hand("UPDATE memory SET deleted_at = created_at WHERE id = :id", id=gone)
    assert neighbours(store, [middle], store.view()) == {middle: (late,)}
    both = View(namespaces=(HERE,), now=now, sensitivities=own(Sensitivity.PUBLIC, Sensitivity.PRIVATE))
    assert neighbours(store, [middle], both) == {middle: (private, late)}


def test_nobody_asks_for_nobodys_neighbours(store: Any) -> None:
    """No ids and unknown ids have no neighbours."""
    insert_turns(store, range(2))
    assert neighbours(store, [], store.view()) == {}
    assert neighbours(store, [999_999], store.view()) == {}


def test_many_memories_cost_one_statement_through_the_index(store: Any) -> None:
    """The neighbours of 200 memories are read in one statement that walks no table."""
    ids = insert_turns(store, range(200))
    asked: list[tuple[str, Any]] = []
    view = store.view()
    neighbours(store, ids[:1], view)
    event.listen(store.database.engine, "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    found = neighbours(store, ids, view)
    assert len(found) == 200
    ((statement, values),) = [one for one in asked if "JOIN" in one[0]]
    if store.sqlite:
        with store.database.reading() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
        steps = [row[-1] for row in plan]
        assert any("ix_memory_namespace_id_session_id_position" in step for step in steps)
        assert [step for step in steps if step.startswith("SCAN") and "json_each" not in step] == []


def test_ranking_rows_tell_session_place_and_time(store: Any) -> None:
    """What ranking needs tells in which session and place a memory stands and when it happened, where that is known."""
    happened = store.clock() - timedelta(days=2)
    placed = store.add("Placed", session_id="s1", position=7, observed_at=happened)
    plain = store.add("Plain")
    rows = store.records.candidates(store.view())
    store.records.read_candidates(rows, [placed, plain], ())
    found = {one: (row.session_id, row.position, row.observed_at) for one, row in rows.items()}
    assert found == {placed: ("s1", 7, happened), plain: (None, None, None)}
