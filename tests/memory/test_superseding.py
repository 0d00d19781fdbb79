"""Replacing: by `supersedes` and by `id` the caller says what a memory takes the place of, and all of it is undone."""

from __future__ import annotations

from typing import Any

import pytest

from callers import ADA
from recollect import App, Settings
from recollect.domain.results import Memory, WriteStatus
from recollect.errors import InvalidInput, NotFound, SecretFound
from run_operations import OTHER, actions, add, by_hand, do, ill, listed, recalled, rows, shown, token

OLD = "We use MySQL for the orders."
NEW = "We switched from MySQL to Postgres for the orders."


def superseded(app: App, **fields: Any) -> tuple[int, int]:
    """Say something and replace it by a memory of its own."""
    old = add(app, OLD)
    return old, add(app, NEW, supersedes=str(old), **fields)


def kept_by(app: App, settings: Settings, memory_id: int) -> Memory:
    """Return the one hidden memory that keeps what another said before."""
    ((kept,),) = rows(settings, f"SELECT id FROM memory WHERE merged_into = {memory_id}")
    do(app, "restore", id=str(kept))
    return shown(app, int(kept))


@pytest.mark.parametrize("text", [NEW, "Correction: we do not use MySQL.", "We no longer use MySQL for the orders."])
def test_no_wording_hides_a_memory(app: App, text: str) -> None:
    """However plainly a text contradicts an older one, both stay, and the answer names the older one."""
    old = add(app, OLD)
    outcome = do(app, "remember", content=text)
    assert (outcome.status, outcome.notes) == (WriteStatus.STORED, ())
    assert [near.id for near in outcome.near] == [str(old)]
    assert set(listed(app)) == {old, int(outcome.id)}


def test_what_is_superseded_is_hidden(app: App) -> None:
    """The older memory leaves every list and recall; by id it still says what replaced it; the journal knows."""
    old = add(app, OLD)
    outcome = do(app, "remember", content=NEW, supersedes=str(old))
    assert (outcome.status, outcome.message) == (
        WriteStatus.STORED,
        f"Memory stored successfully with ID: {outcome.id}",
    )
    assert outcome.notes == (f"Replaces memory {old}, which is now hidden.",)
    assert recalled(app, "MySQL orders") == {int(outcome.id)}
    assert listed(app) == [int(outcome.id)]
    assert recalled(app, "MySQL orders", superseded=True) == {old, int(outcome.id)}
    assert shown(app, old).superseded_by == int(outcome.id)
    assert actions(app, old) == ["insert", "update"]
    assert do(app, "stats").superseded == 1
    assert ill(app) == []


def test_a_new_version_keeps_its_id(app: App, settings: Settings) -> None:
    """With an id the text changes and what is not given stays; the earlier text is kept, and restored by its own id."""
    old = add(app, OLD, tags=("db",), importance=0.9)
    outcome = do(app, "remember", content=NEW, id=str(old), category="storage")
    assert (outcome.status, outcome.message) == (WriteStatus.UPDATED, f"Memory updated successfully (ID: {old})")
    memory = shown(app, old)
    assert (memory.content, memory.tags, memory.importance, memory.category) == (NEW, ("db",), 0.9, "storage")
    assert listed(app) == [old]
    assert recalled(app, "orders") == {old}
    assert actions(app, old) == ["insert", "update"]
    earlier = kept_by(app, settings, old)
    assert outcome.notes == (f"The earlier text is kept as memory {earlier.id}, which is hidden.",)
    assert (earlier.content, earlier.tags, shown(app, old).content) == (OLD, ("db",), NEW)
    assert set(listed(app)) == {old, earlier.id}
    assert ill(app) == []


def test_the_same_text_is_no_new_version(app: App, settings: Settings) -> None:
    """With an id the very same text only confirms the memory: there is no earlier text to be kept."""
    old = add(app, OLD)
    outcome = do(app, "remember", content=OLD, id=str(old))
    assert (outcome.status, outcome.id, outcome.notes) == (WriteStatus.UPDATED, str(old), ())
    assert shown(app, old).confidence == pytest.approx(0.6)
    assert rows(settings, "SELECT count(*) FROM memory") == [(1,)]


@pytest.mark.parametrize("field", ["id", "supersedes"])
def test_what_is_named_decides_alone(app: App, field: str) -> None:
    """A draft that names a memory is neither refreshed nor merged because of another one that it resembles."""
    same, named = add(app, "The user prefers dark mode.", fact_type="profile"), add(app, "The mast is oak.")
    outcome = do(app, "remember", content="the user prefers dark mode", fact_type="profile", **{field: str(named)})
    assert int(outcome.id) != same
    assert shown(app, int(outcome.id)).content == "the user prefers dark mode"
    assert shown(app, same).content == "The user prefers dark mode."


def test_the_same_text_again_can_supersede(app: App) -> None:
    """Whoever sees the near memory only in the answer says the same again, and which one it replaces."""
    old, new = add(app, OLD), add(app, NEW)
    outcome = do(app, "remember", content=NEW, supersedes=str(old))
    assert (outcome.status, outcome.id) == (WriteStatus.UPDATED, str(new))
    assert outcome.notes == (f"Replaces memory {old}, which is now hidden.",)
    assert outcome.near == ()
    assert listed(app) == [new]


def test_a_memory_does_not_replace_itself(app: App) -> None:
    """Where the key or the content leads to the named memory itself, that one is updated, and stays in sight."""
    old = add(app, OLD, key="orders")
    by_key = do(app, "remember", content=NEW, key="orders", supersedes=str(old))
    assert (by_key.status, by_key.id) == (WriteStatus.UPDATED, str(old))
    assert "The earlier text is kept as memory" in by_key.notes[0]
    by_text = do(app, "remember", content=NEW, supersedes=str(old))
    assert (by_text.id, by_text.notes) == (str(old), ())
    assert listed(app) == [old]
    assert shown(app, old).superseded_by is None


@pytest.mark.parametrize("field", ["id", "supersedes"])
@pytest.mark.parametrize("which", ["absent", "odd", "theirs", "private", "forgotten", "expired", "merged", "elsewhere"])
def test_what_the_caller_does_not_see_is_not_found(app: App, settings: Settings, field: str, which: str) -> None:
    """What is unknown, hidden, another's, not public or of another scope is not found; nothing is written."""
    one = add(app, OLD, OTHER if which == "theirs" else ADA, sensitivity="private" if which == "private" else "public")
    if which == "forgotten":
        do(app, "memory_forget", id=str(one))
    elif which == "expired":
        by_hand(settings, "UPDATE memory SET expires_at = '2020-01-01 00:00:00' WHERE id = ?", one)
    elif which == "merged":
        other = add(app, "The mast is oak.")
        by_hand(settings, "UPDATE memory SET merged_into = ? WHERE id = ?", other, one)
    named = {"absent": "77", "odd": "the first"}.get(which, str(one))
    asked = {"scope": "team"} if which == "elsewhere" else {}
    before = rows(settings, "SELECT * FROM memory"), rows(settings, "SELECT * FROM journal")
    with pytest.raises(NotFound, match=f"^Memory {named} not found.$"):
        do(app, "remember", content=NEW, **asked, **{field: named})
    assert (rows(settings, "SELECT * FROM memory"), rows(settings, "SELECT * FROM journal")) == before


@pytest.mark.parametrize("field", ["id", "supersedes"])
def test_a_replacement_lies_where_the_memory_lies(app: App, field: str) -> None:
    """Without a scope the new text is shared by those who shared the old one."""
    old = add(app, OLD, scope="team")
    new = int(do(app, "remember", content=NEW, **{field: str(old)}).id)
    assert (shown(app, new).scope, listed(app, scope="team")) == ("team", [new])


def test_a_replacement_passes_the_gate(app: App, settings: Settings) -> None:
    """A secret is refused, and what was to be replaced stays."""
    old = add(app, OLD)
    for field in ("id", "supersedes"):
        with pytest.raises(SecretFound):
            do(app, "remember", content=f"We use {token()}", **{field: str(old)})
    assert rows(settings, "SELECT id, content, superseded_by FROM memory") == [(old, OLD, None)]


def test_only_one_way_to_replace(app: App) -> None:
    """A draft is a new version or a memory of its own, not both; and no version takes another memory's key."""
    old, keyed = add(app, OLD), add(app, "The mast is oak.", key="mast")
    with pytest.raises(InvalidInput, match="Invalid supersedes: Must not be given together with `id`"):
        do(app, "remember", content=NEW, id=str(old), supersedes=str(keyed))
    with pytest.raises(InvalidInput, match=f"Invalid key: `mast` is the key of memory {keyed}"):
        do(app, "remember", content=NEW, id=str(old), key="mast")
    assert do(app, "remember", content=NEW, id=str(old), key="orders").id == str(old)
    assert shown(app, old).key == "orders"


def test_what_was_superseded_can_be_restored(app: App) -> None:
    """Restored, or said again, the older memory is current once more."""
    old, new = superseded(app)
    do(app, "restore", id=str(old))
    assert set(listed(app)) == {old, new}
    assert shown(app, old).superseded_by is None
    do(app, "remember", content=NEW, supersedes=str(old))
    again = do(app, "remember", content=OLD)
    assert (again.id, shown(app, old).superseded_by) == (str(old), None)
    assert again.notes == (f"It is current again; memory {new} had replaced it.",)


@pytest.mark.parametrize("key", [None, "database"])
def test_a_keyed_memory_can_be_superseded(app: App, key: str | None) -> None:
    """A memory with a key is hidden too, and whoever writes to its key makes it current."""
    old = add(app, OLD, key="orders")
    new = add(app, NEW, key=key, supersedes=str(old))
    assert shown(app, old).superseded_by == new
    assert add(app, "The orders live in SQLite.", key="orders") == old
    assert old in listed(app)


def test_forgetting_a_replacement_brings_back_what_it_hid(app: App) -> None:
    """Who forgets what was wrong wants what was said before; the journal tells of it."""
    old, new = superseded(app)
    assert recalled(app, "which database for orders?") == {new}
    do(app, "forget", id=str(new))
    assert recalled(app, "which database for orders?") == {old}
    assert actions(app, old) == ["insert", "update", "update"]


def test_what_was_replaced_twice_stays_hidden_when_the_first_replacement_goes(app: App) -> None:
    """Of a chain of replacements the newest holds on: without the middle one the oldest gives way to the newest."""
    old, new = superseded(app)
    newest = add(app, "The orders live in SQLite.", supersedes=str(new))
    do(app, "forget", id=str(new))
    assert listed(app) == [newest]
    assert shown(app, old).superseded_by == newest
    do(app, "forget", id=str(newest))
    assert listed(app) == [old]
    assert ill(app) == []


def test_a_version_can_be_given_to_what_is_superseded(app: App) -> None:
    """A superseded memory is seen by its id, and a new version of it is current again."""
    old, new = superseded(app)
    outcome = do(app, "remember", content="The orders are in SQLite again.", id=str(old))
    assert f"It is current again; memory {new} had replaced it." in outcome.notes
    assert set(listed(app)) == {old, new}


def test_a_retry_replaces_nothing_twice(app: App, settings: Settings) -> None:
    """The same request again gives the first answer, also where the memory is gone since."""
    old = add(app, OLD)
    first = do(app, "remember", request_id="r1", content=NEW, id=str(old))
    assert do(app, "remember", request_id="r1", content=NEW, id=str(old)) == first
    assert rows(settings, f"SELECT count(*) FROM memory WHERE merged_into = {old}") == [(1,)]
    do(app, "forget", id=str(old))
    assert do(app, "remember", request_id="r1", content=NEW, id=str(old)) == first
