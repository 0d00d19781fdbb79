"""Request ids: a client that did not hear the answer asks again, gets it, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from callers import ADA
from recollect import App, Caller, Settings
from recollect.domain.enums import OnSecret
from recollect.domain.lifecycle import Decision, Observation
from recollect.domain.origin import SaidBy
from recollect.domain.results import Outcome
from recollect.domain.verbs import BY_NAME, VERBS
from run_operations import add, by_hand, do, rows, token
from stores import open_app

if TYPE_CHECKING:
    from conftest import Clock

TABLES = ("memory", "label", "word", "memory_words", "vector", "fact", "journal", "outbox", "namespace")
PAGE = ADA.saying(SaidBy.WEB, "https://news.example.org/a")
SAY = {"content": "The pier is long."}
SESSION = {"session_id": "s1"}
FOUND = "Found it: the deadlock is caused by two workers that lock the rows of stock in another order."


def _hidden(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    one = add(app, "The mascot is a quokka.")
    do(app, "memory_forget", id=str(one))
    return {"id": str(one)}


def _old(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    for part in ("mast", "keel", "rudder"):
        add(app, f"The {part} of the ship is oak.", category="ship")
    clock.pass_days(60)
    return {}


def _expired(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    add(app, "The fair is on.", ttl_days=1)
    clock.pass_days(2)
    return {}


def _there(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    return {"id": str(add(app, "The mascot is a quokka."))}


def _fact(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    return {"id": do(app, "store_fact", subject="pier", predicate="is", object="long").id}


def _exposed(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    one = add(app, "The deploy key is kept elsewhere.")
    by_hand(settings, "UPDATE memory SET content = ? WHERE id = ?", f"The deploy key is {token()}", one)
    return {"on_found": "redact"}


def _file(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    item = {"kind": "memory", "where": "line 1", "fields": {"content": "The pier is long."}}
    return {"items": (item,), "last": True}


def _observed(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    """Have an observation of a session that was dropped."""
    session = app.sessions.begin(ADA, "s1", "claude-code", clock())
    seen = Observation(at=clock(), event="tool:post", decision=Decision.DROPPED, draft={"content": "The pier is long."})
    app.sessions.save(session, [seen])
    return {"session_id": "s1", "number": 1, "keep": True}


def _waiting(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    return {"id": str(add(app, "The pier is closed.", PAGE)), "decision": "approve"}


def _from_outside(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    add(app, "The pier is closed.", PAGE)
    return {"source": "news.example.org", "apply": True}


def _withdrawn(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    return {"id": do(app, "withdraw", **_from_outside(app, clock, settings)).id}


def _ruled(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    do(app, "decide", **_waiting(app, clock, settings) | {"decision": "always"})
    return {"source": do(app, "source_rules").rules[0].source}


CASES: dict[str, Callable[[App, Clock, Settings], dict[str, Any]]] = {
    "remember": lambda app, clock, settings: SAY,
    "store_memory": lambda app, clock, settings: SAY,
    "memory_store": lambda app, clock, settings: SAY,
    "memory_remember": lambda app, clock, settings: SAY | {"category": "event"},
    "update_memory": lambda app, clock, settings: _there(app, clock, settings) | {"content": "The mascot is a heron."},
    "forget": _there,
    "delete_memory": _there,
    "forget_fact": _fact,
    "memory_forget": _there,
    "restore": _hidden,
    **dict.fromkeys(("pin", "unpin", "bury", "unbury", "promote"), _there),
    "move_memory": lambda app, clock, settings: _there(app, clock, settings) | {"to_project": "mast"},
    "store_fact": lambda app, clock, settings: {"subject": "mast", "predicate": "is", "object": "oak"},
    "decide": _waiting,
    "withdraw": _from_outside,
    "undo_withdrawal": _withdrawn,
    "drop_source_rule": _ruled,
    "purge_expired": _expired,
    "summarize_old": _old,
    "rescan": _exposed,
    "import_batch": _file,
    "extract_memories": lambda app, clock, settings: {
        "messages": [{"speaker": "user", "content": "The pier is long."}]
    },
    "session_start": lambda app, clock, settings: SESSION,
    "prompt_submit": lambda app, clock, settings: SESSION | {"prompt": "From now on we deploy on Fridays only."},
    "tool_post": lambda app, clock, settings: SESSION | {"tool": "Task", "output": FOUND},
    "session_checkpoint": lambda app, clock, settings: SESSION,
    "session_end": lambda app, clock, settings: SESSION,
    "correct_observation": _observed,
}


@pytest.fixture
def quiet(settings: Settings, clock: Clock) -> Iterator[App]:
    """Return an open store in which nothing happens beside what the test does."""
    with open_app(settings, background=False, clock=clock) as app:
        yield app


def dump(settings: Settings) -> dict[str, list[Any]]:
    """Read whatever a write could have changed."""
    return {name: rows(settings, f"SELECT * FROM {name}") for name in TABLES}


def test_every_write_is_tried() -> None:
    """Each writing operation of the table is tried below."""
    assert CASES.keys() == {operation.name for operation in VERBS if operation.writes}


@pytest.mark.parametrize("operation", CASES)
def test_a_retry_changes_nothing(quiet: App, settings: Settings, clock: Clock, operation: str) -> None:
    """The same request under the same id gives the first answer again; every row of the store stays as it is.

    Only what a forgotten memory said is not said again, since nothing of it is kept.
    """
    asked = CASES[operation](quiet, clock, settings)
    first = do(quiet, operation, ADA, "request-1", **asked)
    before = dump(settings)
    clock.pass_days(0.5)
    second = do(quiet, operation, ADA, "request-1", **asked)
    assert dump(settings) == before
    if isinstance(first, Outcome):
        assert second == replace(first, said="")
    else:
        assert BY_NAME[operation].idempotent


@pytest.mark.parametrize("operation", [name for name in CASES if BY_NAME[name].idempotent])
def test_what_is_idempotent_is(quiet: App, settings: Settings, clock: Clock, operation: str) -> None:
    """Without an id, too, a second time changes nothing that can be read but the time of the last update."""
    asked = CASES[operation](quiet, clock, settings)
    do(quiet, operation, **asked)
    query = "SELECT id, content, key, confidence, expires_at, deleted_at, superseded_by, merged_into FROM memory"
    before = rows(settings, query)
    do(quiet, operation, **asked)
    assert rows(settings, query) == before


def test_another_request_or_another_actor_is_no_retry(quiet: App) -> None:
    """Another id, or the same one of somebody else, is another request."""
    asked = {"content": "It happened again.", "position": 1}
    one = do(quiet, "remember", ADA, "request-1", **asked)
    grace = Caller(user="grace", team="crew", project="engine")
    others = [do(quiet, "remember", ADA, "request-2", **asked), do(quiet, "remember", grace, "request-1", **asked)]
    assert [other.status for other in others] == ["updated", "updated"]
    assert {one.id, *(other.id for other in others)} == {one.id}


def _merge(app: App) -> dict[str, Any]:
    add(app, "The user prefers dark mode in the editor.", fact_type="profile")
    return {"content": "The user prefers dark mode. The font is Fira Code.", "fact_type": "profile"}


def _supersede(app: App) -> dict[str, Any]:
    old = add(app, "We use MySQL for the orders.")
    return {"content": "We switched from MySQL to Postgres for the orders.", "supersedes": str(old)}


def _change(app: App) -> dict[str, Any]:
    old = add(app, "We use MySQL for the orders.")
    return {"content": "We switched from MySQL to Postgres for the orders.", "id": str(old)}


def _name(app: App) -> dict[str, Any]:
    add(app, "We use MySQL for the orders.")
    return {"content": "We switched from MySQL to Postgres for the orders."}


@pytest.mark.parametrize("prepare", [_merge, _supersede, _change, _name])
def test_a_retry_tells_what_was_done_to_another_memory(quiet: App, prepare: Callable[[App], dict[str, Any]]) -> None:
    """The notes of the first answer, and the near memories that it named, come with every later one."""
    asked = prepare(quiet)
    first = do(quiet, "remember", ADA, "request-1", **asked)
    assert first.notes or first.near
    assert do(quiet, "remember", ADA, "request-1", **asked) == first


def test_a_retry_tells_that_a_secret_was_masked(open_store: Callable[..., App]) -> None:
    """Where secrets are masked, every answer to the request says so once."""
    app = open_store(on_secret=OnSecret.REDACT)
    asked = {"content": f"The deploy key is {token()}"}
    first = do(app, "remember", ADA, "request-1", **asked)
    assert len(first.notes) == 1
    assert do(app, "remember", ADA, "request-1", **asked) == first
    fact = {"subject": "bot", "predicate": "uses", "object": token()}
    told = do(app, "store_fact", ADA, "request-2", **fact)
    assert do(app, "store_fact", ADA, "request-2", **fact) == told


@pytest.mark.parametrize("operation", ["update_memory", "restore"])
def test_a_retry_is_answered_when_the_memory_is_gone(
    quiet: App, settings: Settings, clock: Clock, operation: str
) -> None:
    """Whoever did not hear the answer gets it, also when somebody has forgotten the memory for good since."""
    asked = CASES[operation](quiet, clock, settings)
    first = do(quiet, operation, ADA, "request-1", **asked)
    do(quiet, "forget", id=asked["id"])
    assert do(quiet, operation, ADA, "request-1", **asked) == first


@pytest.mark.parametrize("operation", ["forget", "memory_forget", "forget_fact"])
def test_what_was_not_found_is_not_found_again(quiet: App, operation: str) -> None:
    """A retry deletes nothing that got the number after the first answer was given."""
    assert do(quiet, operation, ADA, "request-1", id="1").status == "not_found"
    add(quiet, "The pier is long.")
    do(quiet, "store_fact", subject="pier", predicate="is", object="long")
    before = do(quiet, "stats")
    assert do(quiet, operation, ADA, "request-1", id="1").status == "not_found"
    assert do(quiet, "stats") == before


def test_an_import_is_counted_as_it_was_first(quiet: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is sent again, after its owner died midway or its answer was lost, counts what is new as new."""
    add(quiet, "The keel is oak.")
    contents = ("The pier is long.", "The keel is oak.", f"The deploy key is {token()}")
    memories = [{"kind": "memory", "where": text[:8], "fields": {"content": text}} for text in contents]
    triple = {"subject": "mast", "predicate": "is", "object": "oak"}
    batch = {"items": (*memories, {"kind": "fact", "where": "4", "fields": triple}), "last": True}
    with monkeypatch.context() as broken:
        broken.setattr("recollect.transfer.import_batch._Batch.facts", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            do(quiet, "import_batch", ADA, "request-1", **batch)
    for _ in range(2):
        told = do(quiet, "import_batch", ADA, "request-1", **batch)
        assert told.outcomes == ("new", "unchanged", "refused", "facts")
    assert do(quiet, "import_batch", ADA, "request-2", **batch).outcomes == ("unchanged", "unchanged", "refused", "")


def test_old_answers_are_forgotten(open_store: Callable[..., App], settings: Settings, clock: Clock) -> None:
    """A week later nobody retries any more, and the next owner drops the answer."""
    for days, kept in ((0, 0), (6, 1), (2, 0)):
        clock.pass_days(days)
        app = open_store(background=True)
        app.close()
        assert len(rows(settings, "SELECT * FROM request_outcome")) == kept
        if not days:
            app = open_store()
            do(app, "remember", ADA, "request-1", **SAY)
            app.close()
