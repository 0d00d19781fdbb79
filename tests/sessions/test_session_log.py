"""What a person sees of sessions, and how they put a decision right."""

from __future__ import annotations

from typing import Any

import pytest

from callers import ADA
from recollect import App, Caller, Settings, remember
from recollect.domain.lifecycle import CorrectObservation, Decision, Noted, Observation
from recollect.errors import InvalidInput, NotFound
from recollect.sessions.boundaries import Window
from recollect.sessions.observations.trail import Trail
from recollect.sessions.session_log import correct_observation
from recollect.sessions.session_state import SessionState
from recollect.sessions.session_summary import checkpoint, summary
from run_operations import OTHER, add, do, listed, rows

DRAFT = {"content": "The mast is oak.", "source": "hook", "session_id": "s1"}


def correct(app: App, caller: Caller = ADA, **fields: Any) -> Noted:
    """Put a decision right."""
    return correct_observation(app, CorrectObservation(**fields), caller)


@pytest.fixture
def memory(app: App) -> int:
    """Return a memory that the session `s1` has made; beside it two observations were dropped."""
    made = add(app, "The keel is iron.", source="hook")
    session = app.sessions.begin(ADA, "s1", "claude-code", app.clock())
    fields: dict[str, Any] = {"at": app.clock(), "event": "tool:post", "tool": "Bash"}
    app.sessions.save(
        session,
        [
            Observation(**fields, decision=Decision.KEPT, score=0.6, memory_id=made),
            Observation(**fields, decision=Decision.DROPPED, summary="the mast", reason="below 0.30", draft=DRAFT),
            Observation(**fields, decision=Decision.DROPPED, summary="ls", reason="a listing"),
        ],
    )
    return made


def test_a_session_is_shown_with_its_reasons(app: App, memory: int) -> None:
    """What was kept is shown as its memory says it, what was dropped with the reason, and the latest needs no name."""
    shown = do(app, "show_session")
    assert [(one.summary, one.decision, one.reason) for one in shown.observations] == [
        ("The keel is iron.", "kept", ""),
        ("the mast", "dropped", "below 0.30"),
        ("ls", "dropped", "a listing"),
    ]
    assert shown.observations[0].memory_id == str(memory)
    (one,) = do(app, "list_sessions").sessions
    assert (one.session_id, one.agent, one.kept, one.dropped) == ("s1", "claude-code", 1, 2)


def test_what_was_dropped_is_kept_after_all(app: App, memory: int) -> None:
    """The draft is remembered as a capture would have been; a second time changes nothing."""
    first = correct(app, session_id="s1", number=2, keep=True)
    assert (first.decision, first.reason) == ("kept", "by you")
    assert correct(app, session_id="s1", number=2, keep=True).memory_id == first.memory_id
    kept = do(app, "get_memory", id=first.memory_id)
    assert (kept.content, kept.source, kept.session_id) == ("The mast is oak.", "hook", "s1")


def test_what_was_kept_is_forgotten(app: App, memory: int) -> None:
    """The memory is deleted for good, and nothing of its text stays in the session."""
    correct(app, session_id="s", number=1, keep=False)
    assert listed(app) == []
    first = do(app, "show_session").observations[0]
    assert (first.decision, first.summary, first.memory_id) == ("dropped", "", None)


def test_a_memory_that_was_forgotten_elsewhere_says_so(app: App, memory: int) -> None:
    """The session keeps no copy of what a kept memory said."""
    do(app, "forget", id=str(memory))
    assert do(app, "show_session").observations[0].summary == "(forgotten since)"


def test_noise_cannot_be_kept(app: App, memory: int) -> None:
    """An observation without a text that could be stored is refused in a sentence."""
    with pytest.raises(InvalidInput, match="Observation 3 cannot be kept"):
        correct(app, session_id="s1", number=3, keep=True)


def test_others_have_no_such_session(app: App, memory: int) -> None:
    """Another caller neither sees nor changes it."""
    assert do(app, "list_sessions", OTHER).sessions == ()
    with pytest.raises(NotFound, match="There is no session that is or begins with s1"):
        do(app, "show_session", OTHER, session_id="s1")
    with pytest.raises(NotFound, match="There is no session that is or begins with s1"):
        correct(app, OTHER, session_id="s1", number=1, keep=False)
    with pytest.raises(NotFound, match="no observation 9"):
        correct(app, session_id="s1", number=9, keep=False)
    assert listed(app) == [memory]


def test_a_forgotten_memory_leaves_nothing_in_sessions(app: App, memory: int, settings: Settings) -> None:
    """No word of it stays in what the stages know, nor in what was dropped because it says nearly the same."""
    session = app.sessions.find(ADA, "s1")
    assert session is not None
    state = SessionState(window=Window(outputs=(frozenset({"keel", "iron"}),)), seen=("digest",))
    nearly = Observation(
        at=app.clock(),
        event="tool:post",
        decision=Decision.DROPPED,
        summary="The iron keel",
        draft={"content": "The keel is of iron."},
        memory_id=memory,
    )
    app.sessions.save(session.model_copy(update={"state": state.model_dump(mode="json")}), [nearly])
    assert do(app, "show_session").observations[3].summary == "The iron keel"
    do(app, "forget", id=str(memory))
    kept = rows(settings, "SELECT state FROM session") + rows(settings, "SELECT summary, draft FROM observation")
    assert "iron" not in repr(kept)
    assert "digest" in repr(kept)
    assert "The mast is oak." in repr(kept)


@pytest.mark.parametrize("kind", ["checkpoint", "summary"])
def test_a_forgotten_memory_leaves_the_summary_of_its_session(app: App, kind: str) -> None:
    """Its line goes from what sums up the session, with a heading that nothing stands under any more."""
    said = {"decision": "Locks are taken in order.", "bugfix": "The keel leaked.", "discovery": "Oak is slow."}
    fields: dict[str, Any] = {"source": "hook", "session_id": "s1"}
    ids = {kind: add(app, content, type=kind, title=content, **fields) for kind, content in said.items()}
    kept = [do(app, "get_memory", id=str(one)) for one in ids.values()]
    at = app.clock()
    whole = checkpoint("s1", at, kept) if kind == "checkpoint" else summary("s1", at, kept, Trail())
    one = remember(app, whole, ADA).id
    done = do(app, "forget", id=str(ids["bugfix"]))
    assert f"Memory {one} no longer quotes it." in done.notes
    content = do(app, "get_memory", id=one).content
    assert ("keel" in content, "Fixed:" in content, "Decided:\n- Locks are taken" in content) == (False, False, True)
    for other in ("decision", "discovery"):
        do(app, "forget", id=str(ids[other]))
    assert listed(app) == []


def test_a_prompt_that_came_twice_leaves_nothing_when_it_is_forgotten(app: App) -> None:
    """The observation of the repeat holds no word of what the first one was kept as."""
    said = "From now on we always lock the rows of stock in the order of warehouse and sku, because of the deadlocks."
    for _ in range(2):
        do(app, "prompt_submit", session_id="s1", prompt=said)
    for one in listed(app):
        do(app, "forget", id=str(one))
    assert "warehouse" not in str(do(app, "show_session", session_id="s1"))


def test_what_somebody_writes_over_a_captured_memory_is_theirs(app: App) -> None:
    """A new text by a person takes the source of a call, so that it does not fade; the same text again does not."""
    one = add(app, "The keel is iron.", source="hook")
    do(app, "remember", id=str(one), content="The keel is iron.", importance=0.9)
    assert do(app, "get_memory", id=str(one)).source == "hook"
    do(app, "remember", id=str(one), content="The keel is steel, as of the refit.")
    assert do(app, "get_memory", id=str(one)).source == "tool"
