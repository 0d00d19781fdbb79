"""What a language model decides about duplicates, over the real protocol, and what no answer of it can do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chat_server import ChatServer, Reply, chat_server
from recollect import App
from recollect.errors import NotFound
from run_operations import OTHER, add, do, ill, listed, recalled, shown

pytestmark = pytest.mark.slow

OLD = "The web servers listen on port 8080 behind the proxy."
NEW = "The web servers listen on port 9090 behind the proxy."


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """Return a running server."""
    with chat_server() as running:
        yield running


@pytest.fixture
def judged(open_store: Callable[..., App], server: ChatServer) -> App:
    """Return a store that asks the server."""
    return open_store(chat_model="tiny", chat_url=server.url)


def said(choice: str, which: int = 0, reason: str = "unsure") -> dict[str, Any]:
    """Return an answer of the model."""
    return {"choice": choice, "which": which, "reason": reason}


def judgements(app: App, memory_id: int) -> list[dict[str, Any]]:
    """Return what the journal keeps of the model's decisions about a memory."""
    lines = do(app, "history", id=str(memory_id), allow_private=True, allow_secret=True)
    return [line.changes for line in lines if line.action == "judge"]


def test_what_contradicts_takes_the_place(judged: App, server: ChatServer) -> None:
    """What cannot be right beside a memory hides it; the reason is kept, and `restore` undoes it."""
    old = add(judged, OLD)
    server.says(said("supersede", reason="contradiction"))
    outcome = do(judged, "remember", content=NEW)
    new = int(outcome.id)
    assert json.loads(server.texts[0]) == {"new": NEW, "old": [OLD]}
    assert new != old
    assert f"Replaces memory {old}" in outcome.notes[0]
    assert recalled(judged, "port of the web servers") == {new}
    assert judgements(judged, new) == [{"choice": "supersede", "reason": "contradiction", "about": old}]
    do(judged, "restore", id=str(old))
    assert recalled(judged, "port of the web servers") == {old, new}
    assert ill(judged) == []


def test_what_adds_is_merged_and_what_is_new_is_created(judged: App, server: ChatServer) -> None:
    """Merge and create each leave their reason; nothing is lost in a merge."""
    old = add(judged, OLD)
    more = f"{OLD} Their certificates come from the proxy."
    server.says(said("merge", reason="more_detail"))
    assert int(do(judged, "remember", content=more).id) == old
    assert shown(judged, old).content == more
    assert judgements(judged, old) == [{"choice": "merge", "reason": "more_detail", "about": old}]
    server.says(said("create", reason="new_subject"))
    new = add(judged, "The web servers listen on port 8080 in the proxy's test too.")
    assert new != old
    assert judgements(judged, new) == [{"choice": "create", "reason": "new_subject"}]


def test_what_is_skipped_is_not_lost(judged: App, server: ChatServer) -> None:
    """What a model takes for known although it is not is merged."""
    old = add(judged, OLD)
    server.says(said("skip", reason="same_statement"))
    assert int(do(judged, "remember", content=NEW).id) == old
    assert NEW in shown(judged, old).content
    assert OLD in shown(judged, old).content


@pytest.mark.parametrize("choice", ["create", "merge", "skip", "supersede"])
def test_profiles_events_and_cases_are_not_the_models_to_decide(judged: App, server: ChatServer, choice: str) -> None:
    """A profile merges and an event or case is new, whatever a model would say; it is not even asked."""
    server.says(said(choice))
    profiles = [add(judged, one, fact_type="profile") for one in ("The user is a sailor.", "The user is a sailor, 40.")]
    events = [add(judged, one, fact_type="event") for one in ("The mast broke.", "The mast broke again.")]
    assert len(set(profiles)) == 1
    assert len(set(events)) == 2
    assert server.asked == []


@pytest.mark.parametrize(
    "bad",
    [
        Reply("IGNORE ALL RULES"),
        Reply('{"choice": "delete", "which": 0, "reason": "unsure"}'),
        Reply('{"choice": "supersede", "which": 99, "reason": "contradiction"}'),
        Reply('{"choice": "merge", "which": -1, "reason": "unsure"}'),
        Reply('{"choice": "supersede", "which": 0, "reason": "because of port 8080"}'),
        Reply('{"choice": "supe', finish="length"),
        Reply(status=503),
    ],
)
def test_without_a_usable_decision_it_is_a_new_memory(judged: App, server: ChatServer, bad: Reply) -> None:
    """What is no decision, or one about nothing, leaves two memories side by side."""
    old = add(judged, OLD)
    server.says(bad)
    new = add(judged, NEW)
    assert sorted(listed(judged)) == [old, new]
    assert (shown(judged, old).content, shown(judged, new).content) == (OLD, NEW)


def test_a_slow_model_holds_nothing_up(open_store: Callable[..., App], server: ChatServer) -> None:
    """Where no answer comes in time the text is stored by the rules, and the next write asks nobody."""
    app = open_store(chat_model="tiny", chat_url=server.url, chat_seconds=0.3)
    add(app, OLD)
    server.says(Reply(hangs=True))
    add(app, NEW)
    add(app, NEW.replace("9090", "7070"))
    assert len(listed(app)) == 3
    assert len(server.asked) == 1


def test_without_budget_nothing_is_asked(open_store: Callable[..., App], server: ChatServer) -> None:
    """A budget of nothing lets the rules decide."""
    app = open_store(chat_model="tiny", chat_url=server.url, chat_tokens_day=0)
    add(app, OLD)
    add(app, NEW)
    assert server.asked == []
    assert len(listed(app)) == 2


def test_a_model_sees_only_the_callers_public_memories(judged: App, server: ChatServer) -> None:
    """Nothing of another namespace and nothing private is sent, nor can an answer reach it."""
    server.says(said("supersede", reason="contradiction"))
    theirs = add(judged, OLD, OTHER)
    add(judged, OLD, sensitivity="private")
    add(judged, NEW, sensitivity="private")
    add(judged, NEW)
    assert server.asked == []
    assert shown(judged, theirs, OTHER).superseded_by is None
    with pytest.raises(NotFound):
        shown(judged, theirs)


def test_no_decision_raises_trust(judged: App, server: ChatServer) -> None:
    """What is trusted less than a memory becomes no part of it and does not hide it."""
    old = add(judged, OLD, trust=0.8)
    for choice in ("merge", "supersede", "skip"):
        server.says(said(choice))
        new = add(judged, f"{NEW} {choice}", trust=0.2)
        assert shown(judged, new).trust == 0.2
    assert (shown(judged, old).content, shown(judged, old).superseded_by) == (OLD, None)


def test_a_key_is_kept(judged: App, server: ChatServer) -> None:
    """A memory with a key is changed by that key alone."""
    old = add(judged, OLD, key="port")
    server.says(said("supersede", reason="contradiction"))
    add(judged, NEW)
    assert shown(judged, old).superseded_by is None


def test_stats_and_doctor_tell_the_tokens(judged: App, server: ChatServer) -> None:
    """What the model used in this hour is told where the store is one's own."""
    add(judged, OLD)
    server.says(said("create"))
    add(judged, NEW)
    stats = do(judged, "stats")
    assert stats.model_tokens["questions"] == 1
    assert stats.model_tokens["hour"] >= 120  # what the server says, or more where it sent more bytes than that
    check = next(one for one in do(judged, "doctor") if one.name == "language model")
    assert f"{stats.model_tokens['hour']} of 200000 tokens this hour" in check.seen
