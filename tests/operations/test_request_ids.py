"""Request ids: a client that did not hear the answer asks again, gets it, and nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from recollect import App, Caller, Settings, open_app
from recollect.domain import Outcome
from recollect.operations.table import BY_NAME, TABLE
from told import by_hand, do, rows, tell, token

if TYPE_CHECKING:
    from conftest import Clock

TABLES = ("memory", "label", "word", "memory_words", "vector", "fact", "journal", "outbox", "namespace")


def _hidden(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    one = tell(app, "The mascot is a quokka.")
    do(app, "memory_forget", id=str(one))
    return {"id": str(one)}


def _old(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    for part in ("mast", "keel", "rudder"):
        tell(app, f"The {part} of the ship is oak.", category="ship")
    clock.pass_days(60)
    return {}


def _expired(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    tell(app, "The fair is on.", ttl_days=1)
    clock.pass_days(2)
    return {}


def _there(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    return {"id": str(tell(app, "The mascot is a quokka."))}


def _told(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    return {"id": do(app, "store_fact", subject="pier", predicate="is", object="long").id}


def _exposed(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    one = tell(app, "The deploy key is kept elsewhere.")
    by_hand(settings, "UPDATE memory SET content = ? WHERE id = ?", f"The deploy key is {token()}", one)
    return {"on_found": "redact"}


def _file(app: App, clock: Clock, settings: Settings) -> dict[str, Any]:
    item = {"load": "memory", "where": "line 1", "fields": {"content": "The pier is long."}}
    return {"items": (item,), "last": True}


SAY = {"content": "The pier is long."}
CASES: dict[str, Callable[[App, Clock, Settings], dict[str, Any]]] = {
    "remember": lambda app, clock, settings: SAY,
    "store_memory": lambda app, clock, settings: SAY,
    "memory_store": lambda app, clock, settings: SAY,
    "memory_remember": lambda app, clock, settings: SAY | {"category": "event"},
    "update_memory": lambda app, clock, settings: _there(app, clock, settings) | {"content": "The mascot is a heron."},
    "forget": _there,
    "delete_memory": _there,
    "forget_fact": _told,
    "memory_forget": _there,
    "restore": _hidden,
    "store_fact": lambda app, clock, settings: {"subject": "mast", "predicate": "is", "object": "oak"},
    "purge_expired": _expired,
    "summarize_old": _old,
    "rescan": _exposed,
    "import_batch": _file,
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
    assert CASES.keys() == {operation.name for operation in TABLE if operation.writes}


@pytest.mark.parametrize("operation", CASES)
def test_a_retry_changes_nothing(quiet: App, settings: Settings, clock: Clock, operation: str) -> None:
    """The same request under the same id gives the first answer again; every row of the store stays as it is."""
    asked = CASES[operation](quiet, clock, settings)
    first = do(quiet, operation, None, "request-1", **asked)
    before = dump(settings)
    clock.pass_days(0.5)
    second = do(quiet, operation, None, "request-1", **asked)
    assert dump(settings) == before
    if isinstance(first, Outcome):
        assert (second.done, second.id, second.message) == (first.done, first.id, first.message)
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
    asked = {"content": "It happened again.", "fact_type": "event", "position": 1}
    one = do(quiet, "remember", None, "request-1", **asked)
    grace = Caller(user="grace", team="crew", project="engine")
    others = [do(quiet, "remember", None, "request-2", **asked), do(quiet, "remember", grace, "request-1", **asked)]
    assert [other.done for other in others] == ["updated", "updated"]
    assert {one.id, *(other.id for other in others)} == {one.id}
