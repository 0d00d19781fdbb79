"""Sessions in SQL: each is its user's own, numbers its observations, and goes after its time, on every database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from callers import ADA
from recollect import Caller
from recollect.domain.lifecycle import Decision, Observation, Session
from recollect.sessions.observations.trail import Trail
from recollect.sessions.session_state import SessionState, rebased, state_of
from recollect.store.sql.sessions import Sessions

pytestmark = pytest.mark.pooled

BOB = Caller(user="bob", team="crew", project="engine")
ELSEWHERE = Caller(user="ada", team="crew", project="hull")
KEEL = ("make keel", "the keel is iron")
"""A failure that a trail tells of."""


@pytest.fixture
def sessions(store: Any) -> Sessions:
    """Return the sessions on each kind of database."""
    return Sessions(store.database)


def seen(store: Any, decision: Decision = Decision.DROPPED, **fields: Any) -> Observation:
    """Return an observation of now."""
    return Observation(at=store.clock(), event="tool:post", tool="Bash", decision=decision, **fields)


def begun(sessions: Sessions, store: Any, name: str = "s1", caller: Caller = ADA) -> Session:
    """Begin a session now."""
    return sessions.begin(caller, name, "claude-code", store.clock())


def test_a_session_goes_on_with_its_state(sessions: Sessions, store: Any) -> None:
    """A session of the same name is the same one, with what was known of it; one that ended is open again."""
    first = begun(sessions, store)
    later = store.clock() + timedelta(hours=1)
    changed = {"state": {"seen": ["a", "ü"]}, "last_at": later, "ended_at": later}
    sessions.save(first.model_copy(update=changed))
    found = sessions.find(ADA, "s1")
    assert found is not None
    assert (found.id, found.state, found.ended_at) == (first.id, {"seen": ["a", "ü"]}, later)
    again = begun(sessions, store)
    assert (again.id, again.ended_at, again.last_at) == (first.id, None, later)


def test_observations_are_numbered_and_counted(sessions: Sessions, store: Any) -> None:
    """Observations come back in order with every field, and the session counts what was kept and dropped."""
    one = begun(sessions, store)
    sessions.save(one, [seen(store, summary="ls", reason="a listing", draft={"content": "x"})])
    made = store.add("The keel is iron.")
    sessions.save(one, [seen(store, Decision.KEPT, score=0.5, memory_id=made), seen(store, Decision.REFUSED)])
    found = sessions.observations(one)
    assert [each.number for each in found] == [1, 2, 3]
    assert found[0] == seen(store, summary="ls", reason="a listing", draft={"content": "x"}, number=1)
    assert (found[1].score, found[1].memory_id) == (0.5, made)
    known = sessions.find(ADA, "s1")
    assert known is not None
    assert (known.kept, known.dropped) == (1, 2)


def test_a_decision_is_put_right(sessions: Sessions, store: Any) -> None:
    """What was dropped is kept and its draft is gone, and the counts follow; deciding the same twice counts once."""
    one = begun(sessions, store)
    sessions.save(one, [seen(store, summary="x", draft={"content": "x"})])
    for _ in range(2):
        sessions.decide(one, 1, Decision.KEPT, "by you", 9)
    (found,), known = sessions.observations(one), sessions.find(ADA, "s1")
    assert (found.decision, found.reason, found.memory_id, found.draft, found.summary) == (
        Decision.KEPT,
        "by you",
        9,
        None,
        "",
    )
    assert known is not None
    assert (known.kept, known.dropped) == (1, 0)


def test_a_session_is_its_users_own(sessions: Sessions, store: Any) -> None:
    """Nobody else sees it, and its user sees it in its project alone; the same name elsewhere is another one."""
    mine = begun(sessions, store)
    for other in (BOB, ELSEWHERE):
        assert sessions.find(other, "s1") is None
        assert sessions.listed(other, 10, 0) == ([], 0)
        assert begun(sessions, store, caller=other).id != mine.id


def test_the_latest_comes_first(sessions: Sessions, store: Any) -> None:
    """Sessions are listed by when they were last heard of, a page at a time; a beginning finds the latest."""
    for number, name in enumerate(("abc-1", "abc-2", "x%_")):
        one = begun(sessions, store, name)
        sessions.save(one.model_copy(update={"last_at": store.clock() + timedelta(minutes=number)}))
    page, total = sessions.listed(ADA, 2, 1)
    assert ([one.session_id for one in page], total) == (["abc-2", "abc-1"], 3)
    found = [sessions.find(ADA, beginning) for beginning in (None, "abc", "abc-1", "x%", "%")]
    assert [one and one.session_id for one in found] == ["x%_", "abc-2", "abc-1", "x%_", None]


def test_old_sessions_go_with_their_observations(sessions: Sessions, store: Any) -> None:
    """What was last heard of before a time is removed, and nothing of it stays."""
    old = begun(sessions, store, "old")
    sessions.save(old, [seen(store, summary="ls")])
    new = begun(sessions, store, "new", BOB)
    sessions.save(new.model_copy(update={"last_at": store.clock() + timedelta(days=2)}))
    assert sessions.remove_before(store.clock() + timedelta(days=1)) == 1
    assert sessions.find(ADA, None) is None
    assert sessions.find(BOB, None) is not None
    assert store.rows("SELECT * FROM observation") == []
    sessions.save(old, [seen(store)])
    assert store.rows("SELECT * FROM observation") == []


def test_texts_are_rewritten(sessions: Sessions, store: Any) -> None:
    """Other texts stand in the place of an observation's own; its decision and its neighbours stay."""
    one = begun(sessions, store)
    sessions.save(one, [seen(store, summary="a"), seen(store, summary="b", reason="r", draft={"content": "b"})])
    sessions.rewrite(one, 2, lambda found: found.model_copy(update={"summary": "c", "draft": {"content": "c"}}))
    first, second = sessions.observations(one)
    assert (first.summary, second.summary, second.reason, second.draft) == ("a", "c", "r", {"content": "c"})


def test_a_deleted_memory_takes_its_words_out_of_sessions(sessions: Sessions, store: Any) -> None:
    """The texts of observations that name it go, and what the state says of the session; digests and counts stay."""
    kept, other = store.add("The keel is iron."), store.add("The mast is oak.")
    one, apart = begun(sessions, store), begun(sessions, store, "s2")
    state = {"seen": ["d"], "trail": {"open": ["keel"]}, "boundaries": [{"at": "2026-03-01", "keywords": ["keel"]}]}
    sessions.save(one.model_copy(update={"state": state}), [seen(store, summary="keel", memory_id=kept)])
    sessions.save(apart.model_copy(update={"state": state}), [seen(store, summary="mast", memory_id=other)])
    with store.records.writing("project:crew/engine", "ada") as transaction:
        transaction.memories.delete(kept)
    first, second = (sessions.find(ADA, name) for name in ("s1", "s2"))
    assert first is not None
    assert second is not None
    assert first.state == {"seen": ["d"], "boundaries": [{"at": "2026-03-01", "keywords": []}], "erased": 1}
    assert second.state == state
    assert [each.summary for one in (first, second) for each in sessions.observations(one)] == ["", "mast"]


def test_what_is_forgotten_while_an_event_is_handled_stays_forgotten(sessions: Sessions, store: Any) -> None:
    """Neither the state that an event began with nor what it notes of the memory brings the words back."""
    made = store.add("The keel is iron.")
    state = SessionState(trail=Trail(failure=KEEL), seen=("d",)).model_dump(mode="json")
    sessions.save(begun(sessions, store).model_copy(update={"state": state}), [seen(store, memory_id=made)])
    one, (after, change) = (
        begun(sessions, store),
        an_event(state, trail=Trail(failure=KEEL, open=("mast",)), seen=("e",)),
    )
    store.delete(made)
    said = seen(store, summary="keel", draft={"content": "The keel is iron, said again."}, memory_id=made)
    sessions.save(one, [said, seen(store, summary="a listing")], change)
    found = sessions.find(ADA, "s1")
    assert found is not None
    assert found.state["seen"] == list(after.seen)
    texts = [(each.summary, each.draft) for each in sessions.observations(one)]
    assert texts == [("", None), ("", None), ("a listing", None)]
    assert "keel" not in repr((found, store.rows("SELECT * FROM session"), store.rows("SELECT * FROM observation")))


def test_a_memory_that_an_event_made_and_that_is_gone_leaves_no_words(sessions: Sessions, store: Any) -> None:
    """A memory can be forgotten before the event that made it is written down."""
    one, (_, change) = begun(sessions, store), an_event({}, trail=Trail(failure=KEEL))
    made = store.add("The keel is iron.")
    store.delete(made)
    sessions.save(one, [seen(store, Decision.KEPT, summary="keel", memory_id=made)], change)
    assert "keel" not in repr((store.rows("SELECT * FROM session"), store.rows("SELECT * FROM observation")))


def test_what_is_masked_while_an_event_is_handled_stays_masked(sessions: Sessions, store: Any) -> None:
    """An event that began with words that are masked meanwhile does not write them again."""
    state = SessionState(trail=Trail(failure=KEEL)).model_dump(mode="json")
    sessions.save(begun(sessions, store).model_copy(update={"state": state}))
    one, (_, change) = begun(sessions, store), an_event(state, trail=Trail(failure=KEEL, open=("mast",)))
    sessions.mask(one, lambda known: known | {"trail": {"failure": ["make keel", "[redacted]"]}})
    sessions.save(one, (), change)
    found = sessions.find(ADA, "s1")
    assert found is not None
    assert found.state["trail"]["failure"] == ["make keel", "[redacted]"]


def test_a_memory_is_forgotten_while_it_is_noted(sessions: Sessions, store: Any) -> None:
    """Whichever comes first, the forgetting or the writing down, no word of the memory is left."""
    for turn in range(8):
        made, one = store.add(f"The keel {turn} is iron."), begun(sessions, store, f"s{turn}")
        said = seen(store, summary="keel", memory_id=made)
        _, change = an_event({}, trail=Trail(failure=KEEL))
        workers = [
            threading.Thread(target=store.delete, args=(made,)),
            threading.Thread(target=sessions.save, args=(one, [said], change)),
        ]
        for each in workers if turn % 2 else reversed(workers):
            each.start()
        for each in workers:
            each.join()
    assert "keel" not in repr((store.rows("SELECT * FROM session"), store.rows("SELECT * FROM observation")))


def an_event(before: dict[str, Any], **changes: Any) -> tuple[SessionState, Callable[[dict[str, Any]], dict[str, Any]]]:
    """Return the state that an event makes of `before`, and how it is brought onto what is stored by then."""
    first = state_of(before)
    after = first.model_copy(update=changes)
    return after, lambda stored: rebased(first, after, state_of(stored)).model_dump(mode="json")


def test_a_session_is_told_by_its_first_prompt(sessions: Sessions, store: Any) -> None:
    """The first prompt and the memories that were kept come for many sessions at once, each for its own."""
    one, two, bare = (begun(sessions, store, name) for name in ("s1", "s2", "s3"))
    prompt = {"event": "prompt:submit", "tool": ""}
    kept = [store.add(f"Keel {number} is iron.") for number in range(3)]
    sessions.save(one, [seen(store), seen(store, summary="first").model_copy(update=prompt)])
    sessions.save(one, [seen(store, summary="second").model_copy(update=prompt)])
    sessions.save(one, [seen(store, Decision.KEPT, memory_id=number) for number in (kept[1], kept[0], kept[1])])
    sessions.save(two, [seen(store, Decision.KEPT, memory_id=kept[2]).model_copy(update=prompt)])
    prompts = sessions.first_prompts([one, two, bare])
    assert {row: (each.number, each.summary) for row, each in prompts.items()} == {
        one.id: (2, "first"),
        two.id: (1, ""),
    }
    assert sessions.kept_ids([one, two, bare]) == {one.id: [kept[1], kept[0]], two.id: [kept[2]]}
    assert sessions.first_prompts([]) == sessions.kept_ids([]) == {}


def test_the_agents_of_sessions_are_their_users_own(sessions: Sessions, store: Any) -> None:
    """Whoever asks learns the agents of their own sessions, in every project, and of nobody else's."""
    begun(sessions, store, "s1")
    sessions.begin(ELSEWHERE, "s2", "codex", store.clock())
    sessions.begin(BOB, "s3", "cursor", store.clock())
    assert sessions.agents_of(ADA, {"s1", "s2", "s3"}) == {"s1": "claude-code", "s2": "codex"}
    found, total = sessions.listed_everywhere(ADA, 1, 0)
    assert (len(found), total) == (1, 2)
    assert {one.session_id for one in sessions.listed_everywhere(ADA, 9, 0)[0]} == {"s1", "s2"}
