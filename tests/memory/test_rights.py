"""Rights: what a caller may not read is in no answer, and what it may not write stays as it is, whatever the verb."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callers import ADA
from every_operation import REQUESTS
from recollect import App, Settings
from recollect.domain.enums import Scope
from recollect.domain.verbs import BY_NAME
from recollect.doors.handlers import perform
from recollect.doors.serializers import public_json
from recollect.errors import Forbidden, NotFound, RecollectError
from run_operations import do, rows

SAID = "The quokka of the harbour deploys src/ship.py on Fridays."
TABLES = ("memory", "fact", "label", "journal", "session", "observation")


def _stored(settings: Settings) -> dict[str, list[Any]]:
    """Return every row that a caller without rights may not change."""
    return {name: rows(settings, f"SELECT * FROM {name} ORDER BY 1") for name in TABLES}


@pytest.fixture
def harbour(app: App) -> App:
    """Return a store with a memory and a fact in each scope."""
    for scope in Scope:
        do(app, "remember", content=SAID, scope=scope, key=f"ship-{scope}", tags=["ship"], concepts=["gotcha"])
        do(app, "store_fact", subject="ship", predicate="sails", object=f"quokka {scope}", scope=scope)
    return app


def test_who_may_only_read_changes_nothing(harbour: App, settings: Settings) -> None:
    """Every operation that writes is refused for a caller who may only read, and every row stays as it is."""
    reader = ADA.model_copy(update={"writes": ()})
    before = _stored(settings)
    for name, fields in REQUESTS:
        if not BY_NAME[name].writes:
            continue
        with pytest.raises((Forbidden, NotFound)):
            perform(harbour, name, fields, reader)
        assert _stored(settings) == before, name


def test_who_may_only_read_still_reads(harbour: App) -> None:
    """Every operation that reads answers a caller who may only read as it answers one who may write."""
    reader = ADA.model_copy(update={"writes": ()})
    found = do(harbour, "recall", caller=reader, query="quokka of the harbour", min_score=0.0)
    assert len(found.hits) == 3


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_without_a_right_is_in_no_answer(harbour: App, scope: Scope) -> None:
    """No answer of any operation holds a memory or fact of a scope that the caller may not read."""
    rest = tuple(one for one in Scope if one is not scope)
    stranger = ADA.model_copy(update={"reads": rest, "writes": ()})
    for name, fields in REQUESTS:
        try:
            answer = public_json(BY_NAME[name].answer, perform(harbour, name, fields, stranger))
        except RecollectError as error:
            answer = str(error).replace(ADA.namespace(scope), "")  # which is what was asked for
        told = json.dumps(answer, default=str)
        for hidden in (f"quokka {scope}", f"ship-{scope}", ADA.namespace(scope)):
            assert hidden not in told, name


@pytest.mark.parametrize("scope", Scope)
def test_a_named_scope_without_a_right_is_refused(harbour: App, scope: Scope) -> None:
    """Whoever asks for a scope by name that they may not read or write gets an error, and not an empty answer."""
    rest = tuple(one for one in Scope if one is not scope)
    stranger = ADA.model_copy(update={"reads": rest, "writes": rest})
    with pytest.raises(Forbidden, match=f"no right to read in the scope `{scope}`"):
        do(harbour, "recall", caller=stranger, query="quokka", scope=scope)
    with pytest.raises(Forbidden, match="no right to write"):
        do(harbour, "remember", caller=stranger, content="The gull is white.", scope=scope)


def test_a_memory_that_may_only_be_read_stays(harbour: App) -> None:
    """A writer of personal memories reads the project's, and can neither change nor forget them."""
    mixed = ADA.model_copy(update={"writes": (Scope.PERSONAL,)})
    listed = do(harbour, "list_memories", caller=mixed, scope=Scope.PROJECT).memories
    assert [one.key for one in listed] == ["ship-project"]
    attempts: list[tuple[str, dict[str, Any]]] = [
        ("forget", {}),
        ("memory_forget", {}),
        ("update_memory", {"content": "The ship is sold."}),
        ("restore", {}),
    ]
    for name, more in attempts:
        with pytest.raises(Forbidden, match="no right to write to `project:crew/engine`"):
            do(harbour, name, caller=mixed, id=str(listed[0].id), **more)
    with pytest.raises(Forbidden):
        do(harbour, "remember", caller=mixed, content="The ship is sold.", supersedes=str(listed[0].id))
    assert do(harbour, "get_memory", caller=mixed, id=str(listed[0].id)).content == SAID
    assert do(harbour, "remember", caller=mixed, content="I like gulls.", scope=Scope.PERSONAL).id


def test_an_import_fills_what_may_be_written(harbour: App) -> None:
    """An import writes what the caller may, and names each item for which there is no right."""
    mixed = ADA.model_copy(update={"writes": (Scope.PERSONAL,)})
    items = [
        {"kind": "memory", "where": f"line {number}", "fields": {"content": f"The pier is {number}.", "scope": scope}}
        for number, scope in enumerate(Scope)
    ]
    answer = do(harbour, "import_batch", caller=mixed, items=items, last=True)
    assert answer.new == 1
    assert sorted(one.where for one in answer.problems) == ["line 1", "line 2"]
