"""What a person decides about a memory as a whole: it is pinned or buried, or belongs somewhere else."""

from __future__ import annotations

from typing import Any

import pytest

from clock import Clock
from recollect import App
from recollect.domain.enums import Role, Scope, Standing
from recollect.domain.requests import Caller, Elsewhere
from recollect.doors.web.verbs import perform
from recollect.errors import Forbidden, InvalidInput, NotFound, SecretFound

ADA = Caller(user="ada", team="crew", project="engine")
MAST = ADA.model_copy(update={"project": "mast"})
NOTHING_THERE = Elsewhere(named={"mast": None})


def stored(app: App, content: str, caller: Caller = ADA, **fields: Any) -> str:
    """Store a memory and return its id."""
    return str(perform(app, "remember", {"content": content} | fields, caller).id)


def found(app: App, query: str, caller: Caller = ADA) -> list[str]:
    """Return the ids of what a search finds."""
    return [str(one.memory.id) for one in perform(app, "recall", {"query": query}, caller).hits]


def test_what_is_pinned_comes_first_and_stays(app: App, clock: Clock) -> None:
    """It is shown unasked before what is worth more, and does not expire any more."""
    slight = stored(app, "The lamp of the pier is green.", importance=0.0, ttl_days=3)
    for number in range(5):
        stored(app, f"Anchor {number} weighs {number} tons.", importance=1.0)
    perform(app, "set_standing", {"id": slight, "standing": "pinned"}, ADA)
    assert str(perform(app, "format_for_prompt", {"max_entries": 1}, ADA).ids[0]) == slight
    clock.pass_days(30)
    memory = perform(app, "get_memory", {"id": slight}, ADA)
    assert (memory.standing, memory.expires_at) == (Standing.PINNED, None)


def test_what_is_buried_is_found_by_searches_alone(app: App) -> None:
    """Neither a list of the most worthwhile nor a prompt shows it, until it is as any other again."""
    one = stored(app, "The sluice of the harbour opens at nine o'clock each morning.", importance=1.0)
    event = {"session_id": "s1", "agent": "x", "prompt": "When does the sluice of the harbour open?"}
    perform(app, "set_standing", {"id": one, "standing": "buried"}, ADA)
    assert found(app, "when does the sluice open") == [one]
    assert perform(app, "format_for_prompt", {}, ADA).ids == ()
    assert perform(app, "prompt_submit", event, ADA).memory_ids == ()
    perform(app, "set_standing", {"id": one, "standing": ""}, ADA)
    assert perform(app, "prompt_submit", event, ADA).memory_ids == (one,)


def test_a_memory_moves_whole(app: App) -> None:
    """Text, labels, facts and its day go along; where it was it is hidden, and can be restored."""
    old = stored(app, "The winch of the quay is rated at nine tons.", key="winch", tags=["crane"], importance=0.9)
    perform(app, "store_fact", {"subject": "winch", "predicate": "lifts", "object": "9 t", "memory_id": old}, ADA)
    before = perform(app, "get_memory", {"id": old}, ADA)
    outcome = perform(app, "move_memory", {"id": old, "to_project": "mast"}, ADA)
    assert found(app, "what is the winch rated at") == []
    moved = perform(app, "get_memory", {"id": outcome.id}, MAST)
    for name in ("content", "key", "tags", "importance", "entities", "author"):
        assert getattr(moved, name) == getattr(before, name)
    assert moved.observed_at == before.created_at
    assert found(app, "what is the winch rated at", MAST) == [outcome.id]
    facts = perform(app, "query_facts", {"memory_id": outcome.id}, MAST).facts
    assert [(one.subject, one.object) for one in facts] == [("winch", "9 t")]
    perform(app, "restore", {"id": old}, ADA)
    assert found(app, "what is the winch rated at") == [old]
    assert [check.name for check in perform(app, "doctor", {}, ADA) if not check.well] == []


@pytest.mark.parametrize("scope", ["personal", "team"])
def test_a_memory_moves_to_another_scope(app: App, scope: str) -> None:
    """It is then seen wherever that scope is seen."""
    old = stored(app, "Gulls nest on the roof of the customs house.")
    perform(app, "move_memory", {"id": old, "scope": scope}, ADA)
    assert len(found(app, "where do gulls nest", MAST)) == 1


def test_a_move_that_cannot_be_leaves_all_as_it_was(app: App) -> None:
    """To where it is, over another's key, of what is not there, or without the right to write, nothing moves."""
    old = stored(app, "The bell rings twice in fog.", key="bell")
    stored(app, "The bell of the mast is brass.", MAST, key="bell")
    reader = ADA.model_copy(update={"writes": (Scope.PROJECT,)})
    for fields, caller, error in (
        ({"id": old}, ADA, InvalidInput),
        ({"id": old, "to_project": "mast"}, ADA, InvalidInput),
        ({"id": "99"}, ADA, NotFound),
        ({"id": old, "scope": "team"}, reader, Forbidden),
        ({"id": old, "scope": "team"}, MAST, NotFound),
    ):
        with pytest.raises(error):
            perform(app, "move_memory", fields, caller)
    assert found(app, "how often does the bell ring in fog") == [old]


@pytest.mark.parametrize(
    ("elsewhere", "said"),
    [
        (NOTHING_THERE, "no role in the project `mast`"),
        (Elsewhere(role=None), "no role in the project `mast`"),
        (Elsewhere(role=None, named={"engine": Role.ADMIN}), "no role in the project `mast`"),
        (Elsewhere(role=Role.READER), "no right to write to `project:crew/mast`"),
        (Elsewhere(named={"mast": Role.READER}), "no right to write to `project:crew/mast`"),
    ],
)
def test_a_move_needs_the_right_of_its_target(app: App, elsewhere: Elsewhere, said: str) -> None:
    """Who may not write in the other project moves nothing there, whatever they may do in this one."""
    old = stored(app, "The bell rings twice in fog.")
    there = stored(app, "The bell of the mast is brass.", MAST, key="bell")
    caller = ADA.model_copy(update={"elsewhere": elsewhere})
    for memory_id in (old, there, "99"):  # nor do they hear which ids there are
        with pytest.raises((Forbidden, NotFound)):
            perform(app, "move_memory", {"id": memory_id, "to_project": "mast"}, caller)
    with pytest.raises(Forbidden, match=said):
        perform(app, "move_memory", {"id": old, "to_project": "mast"}, caller)
    assert found(app, "how often does the bell ring in fog") == [old]
    assert perform(app, "list_memories", {}, MAST).total == 1


def test_a_right_in_the_target_alone_is_enough_there(app: App) -> None:
    """A writer of one other project moves there what they may write here, and a reader of this one moves nothing."""
    old = stored(app, "The bell rings twice in fog.")
    only = Elsewhere(role=None, named={"mast": Role.WRITER})
    reader = ADA.model_copy(update={"writes": (Scope.PERSONAL,), "elsewhere": only})
    with pytest.raises(Forbidden, match="no right to write to `project:crew/engine`"):
        perform(app, "move_memory", {"id": old, "to_project": "mast"}, reader)
    writer = ADA.model_copy(update={"elsewhere": only})
    moved = perform(app, "move_memory", {"id": old, "to_project": "mast"}, writer)
    assert moved.notes == (f"Moved to the project mast: it has the ID {moved.id} now; memory {old} is hidden.",)


@pytest.mark.parametrize(("level", "allow"), [("private", "allow_private"), ("secret", "allow_secret")])
def test_a_level_moves_with_its_memory(app: App, level: str, allow: str) -> None:
    """What is one user's alone stays so in the target, and nobody moves what they do not see."""
    old = stored(app, "The bell rings twice in fog.", sensitivity=level)
    bob = ADA.model_copy(update={"user": "bob"})
    for caller, fields in ((ADA, {}), (bob, {allow: True})):
        for verb in ("move_memory", "promote", "pin", "bury"):
            more = {"to_project": "mast"} if verb == "move_memory" else {}
            with pytest.raises(NotFound):
                perform(app, verb, {"id": old} | fields | more, caller)
    new = perform(app, "move_memory", {"id": old, "scope": "team", allow: True}, ADA).id
    assert perform(app, "get_memory", {"id": new, allow: True}, ADA).sensitivity == level
    with pytest.raises(NotFound):
        perform(app, "get_memory", {"id": new, allow: True}, bob)


def test_a_promoted_memory_is_seen_in_every_project(app: App) -> None:
    """It is personal unless the team is named; a project is no place to promote it to."""
    old = stored(app, "Gulls nest on the roof of the customs house.")
    mine = perform(app, "promote", {"id": old}, ADA)
    assert mine.notes == (f"Moved to your personal memories: it has the ID {mine.id} now; memory {old} is hidden.",)
    assert found(app, "where do gulls nest", MAST) == [mine.id]
    ours = perform(app, "promote", {"id": mine.id, "scope": "team"}, MAST)
    assert perform(app, "get_memory", {"id": ours.id}, ADA).namespace == "team:crew"
    with pytest.raises(InvalidInput, match="scope"):
        perform(app, "promote", {"id": ours.id, "scope": "project"}, ADA)


def test_a_project_is_named_for_the_scope_of_projects_alone(app: App) -> None:
    """A personal memory has no project, so that naming both is refused, and so is a project of no name."""
    old = stored(app, "Gulls nest on the roof of the customs house.")
    for fields in ({"scope": "team", "to_project": "mast"}, {"to_project": "a\0b"}, {"to_project": "x" * 500}):
        with pytest.raises(InvalidInput, match="to_project"):
            perform(app, "move_memory", {"id": old} | fields, ADA)


def test_pinning_and_burying_by_their_own_verbs(app: App) -> None:
    """Each verb says what holds now; `unpin` leaves what is buried, and `unbury` what is pinned."""
    one = stored(app, "The pilot boat is painted orange.")

    def standing() -> Standing | None:
        return perform(app, "get_memory", {"id": one}, ADA).standing

    for verb, said, now in (
        ("pin", "It is pinned", Standing.PINNED),
        ("unbury", "no longer buried", Standing.PINNED),
        ("unpin", "no longer pinned", None),
        ("bury", "It is buried", Standing.BURIED),
        ("unpin", "no longer pinned", Standing.BURIED),
        ("unbury", "no longer buried", None),
    ):
        outcome = perform(app, verb, {"id": one}, ADA)
        assert said in outcome.notes[0]
        assert standing() is now
    perform(app, "memory_forget", {"id": one}, ADA)
    with pytest.raises(NotFound):
        perform(app, "pin", {"id": one}, ADA)


def test_the_gate_sees_what_moves(app: App) -> None:
    """A secret that today's detectors know goes nowhere."""
    old = stored(app, "The deploy key of the harbour is kept elsewhere.")
    secret = "-".join(("sk", "ant", "api03", "a1B2" * 22))
    with app.records._database.writing() as connection:
        connection.exec_driver_sql("UPDATE memory SET content = ?", (f"api key {secret}",))
    with pytest.raises(SecretFound):
        perform(app, "move_memory", {"id": old, "scope": "team"}, ADA)
