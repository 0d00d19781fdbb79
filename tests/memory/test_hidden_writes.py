"""What a caller may not see does not exist for their writes either: not as a text, a key, an id, a count or a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from callers import ADA
from recollect import App, Caller, Settings
from recollect.domain.results import WriteStatus
from recollect.errors import InvalidInput, NotFound, SecretFound
from run_operations import actions, add, by_hand, do, ill, listed, rows, shown, token

if TYPE_CHECKING:
    from conftest import Clock

SAID = "The lighthouse is to be sold in autumn."
LEVELS = {"private": {"allow_private": True}, "secret": {"allow_secret": True}}
ALL = {"allow_private": True, "allow_secret": True}
levels = pytest.mark.parametrize("level", LEVELS)


def state(settings: Settings, memory_id: int) -> list[tuple[Any, ...]]:
    """Return the row of a memory as it is stored, and its labels."""
    labels = f"SELECT kind, position, value FROM label WHERE memory_id = {memory_id} ORDER BY kind, position"
    return rows(settings, f"SELECT * FROM memory WHERE id = {memory_id}") + rows(settings, labels)


@levels
def test_the_same_text_becomes_a_memory_of_its_own(app: App, settings: Settings, level: str) -> None:
    """A text that only a hidden memory holds is new, and the hidden one stays as it was."""
    hidden = add(app, SAID, sensitivity=level)
    before = state(settings, hidden)
    outcome = do(app, "remember", content=SAID)
    assert (outcome.status, outcome.notes, outcome.near) == (WriteStatus.STORED, (), ())
    assert state(settings, hidden) == before
    assert shown(app, int(outcome.id)).sensitivity == "public"


@levels
def test_a_key_that_a_hidden_memory_holds_is_free(app: App, settings: Settings, level: str) -> None:
    """The key of a hidden memory makes a memory of its own, or is given to one, and each level has its own."""
    hidden = add(app, SAID, key="light", sensitivity=level)
    other = add(app, "The pier is long.", key="pier", sensitivity=level)
    before = state(settings, hidden), state(settings, other)
    new = do(app, "remember", content="The lighthouse is white.", key="light")
    assert new.status is WriteStatus.STORED
    assert do(app, "update_memory", id=new.id, key="pier").status is WriteStatus.UPDATED
    assert (state(settings, hidden), state(settings, other)) == before
    assert {shown(app, one).key for one in (other, int(new.id))} == {"pier"}


def test_a_key_names_the_memory_of_the_level_that_is_given(app: App) -> None:
    """Where two levels hold a key, the given level decides; without one it is the strictest that is let in."""
    ids = {level: add(app, f"The {level} pier.", key="pier", sensitivity=level) for level in ("public", "secret")}
    for level, number in ids.items():
        assert add(app, f"The {level} pier is long.", key="pier", sensitivity=level) == number
    assert add(app, "The pier is old.", key="pier") == ids["public"]
    assert add(app, "The pier is older.", key="pier", **ALL) == ids["secret"]
    assert shown(app, ids["secret"]).sensitivity == "secret"
    assert add(app, "The pier is private.", key="pier", sensitivity="private") not in ids.values()


@levels
def test_a_hidden_memory_is_not_found_by_its_id(app: App, settings: Settings, level: str) -> None:
    """By id nobody updates, replaces, forgets, restores or reads the history of what they may not see."""
    hidden = add(app, SAID, sensitivity=level)
    before = state(settings, hidden), rows(settings, "SELECT count(*) FROM journal")
    more = next(allow for name, allow in LEVELS.items() if name != level)
    for let_in in ({}, more):
        for name, fields in {
            "update_memory": {"id": str(hidden), "content": "Mine."},
            "memory_store": {"id": str(hidden), "content": "Mine."},
            "remember": {"id": str(hidden), "content": "Mine."},
            "store_memory": {"supersedes": str(hidden), "content": "Mine."},
            "store_fact": {"memory_id": str(hidden), "subject": "a", "predicate": "b", "object": "c"},
        }.items():
            with pytest.raises(NotFound, match=f"^Memory {hidden} not found"):
                do(app, name, **fields, **({} if name == "memory_store" else let_in))
        for name in ("forget", "delete_memory", "memory_forget", "restore"):
            assert do(app, name, id=str(hidden), **let_in).status is WriteStatus.NOT_FOUND
    assert (state(settings, hidden), rows(settings, "SELECT count(*) FROM journal")) == before


@levels
def test_whoever_lets_a_level_in_may_change_it(app: App, level: str) -> None:
    """With its level let in, a memory is updated, replaced, hidden, restored and forgotten like any other."""
    one, let_in = add(app, SAID, sensitivity=level), LEVELS[level]
    assert do(app, "update_memory", id=str(one), category="coast", **let_in).status is WriteStatus.UPDATED
    assert add(app, f"{SAID} Soon.", id=str(one), **let_in) == one
    assert shown(app, one).sensitivity == level
    new = add(app, "The lighthouse was sold.", supersedes=str(one), sensitivity=level, **let_in)
    assert shown(app, one).superseded_by == new
    assert do(app, "restore", id=str(one), **let_in).status is WriteStatus.RESTORED
    assert do(app, "memory_forget", id=str(one), **let_in).status is WriteStatus.DELETED
    assert do(app, "restore", id=str(one), **let_in).status is WriteStatus.RESTORED
    assert do(app, "forget", id=str(one), **let_in).status is WriteStatus.DELETED


@levels
def test_declassifying_needs_the_level_it_comes_from(app: App, level: str) -> None:
    """Only whoever may see a memory makes it public; naming the level that it has does not let it in."""
    one = add(app, SAID, sensitivity=level)
    for target in ("public", level):
        with pytest.raises(NotFound):
            do(app, "update_memory", id=str(one), sensitivity=target)
    assert shown(app, one).sensitivity == level
    do(app, "update_memory", id=str(one), sensitivity="public", **LEVELS[level])
    assert listed(app) == [one]


def test_a_level_that_nobody_knows_is_denied_to_writers(app: App, settings: Settings) -> None:
    """No write finds, changes or removes a memory or a fact whose level is none of the three."""
    odd = add(app, SAID, key="light", ttl_days=1)
    do(app, "store_fact", subject="light", predicate="is", object="white", memory_id=str(odd))
    by_hand(settings, "UPDATE memory SET sensitivity = 'cosmic'")
    by_hand(settings, "UPDATE fact SET sensitivity = 'cosmic'")
    before = state(settings, odd), rows(settings, "SELECT * FROM fact")
    assert add(app, SAID, key="light", **ALL) != odd
    for name in ("forget", "memory_forget", "restore", "forget_fact"):
        assert do(app, name, id=str(odd), **ALL).status is WriteStatus.NOT_FOUND
    with pytest.raises(NotFound):
        do(app, "update_memory", id=str(odd), sensitivity="public", **ALL)
    do(app, "store_fact", subject="light", predicate="is", object="red", **ALL)
    assert do(app, "rescan", on_found="quarantine", **ALL).changed == 0
    assert do(app, "purge_expired", **ALL).ids == ()
    assert (state(settings, odd), rows(settings, "SELECT * FROM fact LIMIT 1")) == before


@levels
def test_a_purge_leaves_what_is_not_let_in(app: App, clock: Clock, level: str) -> None:
    """A purge removes and names only what its caller may see."""
    plain, hidden = add(app, "The pier is long.", ttl_days=1), add(app, SAID, sensitivity=level, ttl_days=1)
    clock.pass_days(2)
    assert do(app, "purge_expired").ids == (plain,)
    assert do(app, "purge_expired", **LEVELS[level]).ids == (hidden,)


@levels
def test_a_fact_of_another_level_is_neither_confirmed_nor_ended(app: App, level: str) -> None:
    """The same triple is a fact of its own beside a hidden one, and one that replaces it leaves that valid."""
    told = {"subject": "pier", "predicate": "belongs to"}
    hidden = do(app, "store_fact", **told, object="Ada", sensitivity=level)
    same = do(app, "store_fact", **told, object="Ada")
    newer = do(app, "store_fact", **told, object="Grace", replaces=True)
    assert [one.status for one in (hidden, same, newer)] == [WriteStatus.STORED] * 3
    assert newer.notes == (f"Fact {same.id} is no longer valid.",)
    found = do(app, "query_facts", **LEVELS[level]).facts
    assert {str(one.id) for one in found} == {hidden.id, newer.id}
    assert do(app, "forget_fact", id=hidden.id).status is WriteStatus.NOT_FOUND
    assert do(app, "forget_fact", id=hidden.id, **LEVELS[level]).status is WriteStatus.DELETED


@pytest.mark.parametrize("dry", [False, True])
@levels
def test_an_import_finds_nothing_hidden(app: App, settings: Settings, level: str, dry: bool) -> None:
    """A text or a key that only a hidden memory has counts as new, in a dry run too, unless its level is named."""
    hidden = add(app, SAID, key="light", sensitivity=level)
    before = state(settings, hidden)
    items = [
        {"kind": "memory", "where": "line 1", "fields": {"content": SAID}},
        {"kind": "memory", "where": "line 2", "fields": {"content": "The lighthouse is white.", "key": "light"}},
        {"kind": "fact", "where": "line 3", "fields": _fact(hidden)},
    ]
    done = do(app, "import_batch", items=items, dry_run=dry, last=True)
    assert (done.new, done.updated, done.unchanged, done.facts, done.failed) == (2, 0, 0, 0, 1)
    assert state(settings, hidden) == before
    own = [{"kind": "memory", "where": "line 1", "fields": {"content": SAID, "key": "light", "sensitivity": level}}]
    assert do(app, "import_batch", items=own, dry_run=dry).unchanged == 1


def _fact(memory_id: int) -> dict[str, str]:
    return {"subject": "light", "predicate": "is", "object": "white", "memory_id": str(memory_id)}


def test_two_levels_of_one_key_leave_and_come_back(app: App, settings: Settings) -> None:
    """An export with a key at two levels is imported as two memories, and twice does no more than once."""
    for level in ("public", "secret"):
        add(app, f"The {level} pier.", key="pier", sensitivity=level)
    page = do(app, "export_page", **ALL)
    items = [
        {"kind": "memory", "where": f"line {number}", "fields": line["memory"]}
        for number, line in enumerate(page.lines)
        if "memory" in line
    ]
    there = Caller(user="bob", team="else", project="hull")
    assert do(app, "import_batch", there, items=items, last=True).new == 2
    assert do(app, "import_batch", there, items=items, last=True).unchanged == 2
    assert {one.key for one in do(app, "list_memories", there, **ALL).memories} == {"pier"}


@levels
def test_history_ends_with_the_level(app: App, level: str) -> None:
    """The journal of a hidden memory stays hidden after it was forgotten, also in an export."""
    one = add(app, SAID, sensitivity=level)
    fact = do(app, "store_fact", subject="light", predicate="is", object="white", memory_id=str(one), **LEVELS[level])
    do(app, "store_fact", subject="pier", predicate="is", object="long", sensitivity=level)
    do(app, "forget_fact", id=fact.id, **LEVELS[level])
    do(app, "forget", id=str(one), **LEVELS[level])
    assert do(app, "history", id=str(one)) == []
    assert actions(app, one)[-1] == "delete"
    assert do(app, "export_page", after="journal:0").lines == ()
    assert [line["journal"]["action"] for line in do(app, "export_page", after="journal:0", **ALL).lines] == (
        ["insert", "insert", "insert", "delete", "delete"]
    )


@levels
def test_a_refusal_is_told_at_its_level(app: App, level: str) -> None:
    """What the gate refused of a hidden level stands in the journal at that level."""
    with pytest.raises(SecretFound):
        do(app, "remember", content=f"The key is {token()}", sensitivity=level)
    assert do(app, "export_page", after="journal:0").lines == ()
    assert len(do(app, "export_page", after="journal:0", **LEVELS[level]).lines) == 1


@levels
def test_a_rescan_names_and_masks_only_what_may_be_seen(app: App, settings: Settings, level: str) -> None:
    """A rescan neither counts nor changes what is not let in."""
    add(app, "The pier is long.")
    hidden = add(app, SAID, sensitivity=level)
    by_hand(settings, "UPDATE memory SET content = ? WHERE id = ?", f"The key is {token()}", hidden)
    before = state(settings, hidden)
    found = do(app, "rescan", on_found="redact")
    assert (found.scanned, found.exposed, found.changed) == (1, (), 0)
    assert state(settings, hidden) == before
    assert do(app, "rescan", on_found="redact", **LEVELS[level]).changed == 1


@levels
def test_quarantine_remembers_the_level(app: App, settings: Settings, level: str) -> None:
    """What comes out of quarantine has the level that it had, and only whoever may see that level takes it out."""
    one, other = add(app, SAID, key="light", sensitivity=level), add(app, "The pier is long.", key="light")
    for number in (one, other):
        by_hand(settings, "UPDATE memory SET content = ? WHERE id = ?", f"The key is {token()}", number)
    assert do(app, "rescan", on_found="quarantine", **LEVELS[level]).changed == 2
    assert listed(app, **ALL) == []
    by_hand(settings, "UPDATE memory SET content = 'The pier is long.'")
    assert do(app, "restore", id=str(one)).status is WriteStatus.NOT_FOUND
    assert do(app, "restore", id=str(one), **LEVELS[level]).status is WriteStatus.RESTORED
    assert do(app, "restore", id=str(other)).status is WriteStatus.RESTORED
    assert (shown(app, one).sensitivity, shown(app, other).sensitivity) == (level, "public")


@levels
def test_no_id_of_a_hidden_memory_shows(app: App, level: str) -> None:
    """A memory that a hidden one replaced does not say by which, nor does its history."""
    one = add(app, SAID)
    by = add(app, "The lighthouse was sold.", supersedes=str(one), sensitivity=level)
    plain = do(app, "get_memory", id=str(one))
    assert plain.superseded_by == 0
    assert [line.changes for line in do(app, "history", id=str(one))] == [{}]
    assert do(app, "get_memory", id=str(one), **LEVELS[level]).superseded_by == by
    assert do(app, "remember", content=SAID).notes == ("It is current again.",)


def test_raising_a_level_takes_the_earlier_texts_along(app: App) -> None:
    """What a memory said before it was made private is private too; making it public again leaves that private."""
    one = add(app, SAID)
    noted = do(app, "remember", id=str(one), content="The lighthouse stays.").notes[0]
    earlier = "".join(filter(str.isdigit, noted))
    do(app, "update_memory", id=str(one), sensitivity="private")
    assert do(app, "restore", id=earlier).status is WriteStatus.NOT_FOUND
    do(app, "update_memory", id=str(one), sensitivity="public", allow_private=True)
    assert do(app, "restore", id=earlier).status is WriteStatus.NOT_FOUND
    assert do(app, "restore", id=earlier, allow_private=True).status is WriteStatus.RESTORED


def test_no_line_tells_of_a_version_above_ones_level(app: App, settings: Settings) -> None:
    """Where a new version raises the level, its journal lines are of the new level, the earlier text too."""
    one = add(app, "The pier is long.")
    do(app, "remember", content="The pier was sold.", id=str(one), sensitivity="secret", allow_secret=True)
    assert rows(settings, "SELECT action, sensitivity FROM journal ORDER BY id") == [
        ("insert", "public"),
        ("insert", "secret@ada"),
        ("update", "secret@ada"),
    ]
    assert rows(settings, "SELECT sensitivity FROM memory") == [("secret@ada",)] * 2
    assert ill(app) == []


def test_a_request_id_is_tied_to_its_place_and_operation(app: App) -> None:
    """The same request id in another project, scope or operation is another request."""
    there = Caller(user=ADA.user, team=ADA.team, project="hull")
    asked = {"content": "The pier is long."}
    one = do(app, "remember", ADA, "r1", **asked)
    for caller, more in ((there, {}), (ADA, {"scope": "personal"}), (ADA, {"scope": "team"})):
        other = do(app, "remember", caller, "r1", **asked, **more)
        assert other.status is WriteStatus.STORED
        assert other.id != one.id
    assert do(app, "forget", ADA, "r1", id=one.id).status is WriteStatus.DELETED
    with pytest.raises(NotFound):
        do(app, "update_memory", ADA, "r1", id=one.id, content="x")
    assert do(app, "restore", ADA, "r1", id=one.id).status is WriteStatus.NOT_FOUND
    assert do(app, "remember", ADA, "r1", **asked) == one


def test_a_store_holds_as_many_of_each_level(open_store: Any) -> None:
    """How many memories of other levels there are does not decide which of one's own give way."""
    app = open_store(max_memories=2)
    for number in range(3):
        add(app, f"Number {number} of the secret list.", sensitivity="secret")
    ids = [add(app, f"Number {number} of the open list.") for number in range(3)]
    assert sorted(listed(app)) == ids[1:]
    assert do(app, "stats", **ALL).memories == 4


def test_a_taken_key_of_the_same_level_is_refused(app: App) -> None:
    """A key is refused where another memory of that level has it, which is named to whoever lets the level in."""
    one = add(app, SAID, key="light", sensitivity="private")
    two = add(app, "The pier is long.", key="light")
    for fields, whose in (({}, "another memory"), ({"allow_private": True}, f"memory {one}")):
        with pytest.raises(InvalidInput, match=f"`light` is the key of {whose}$"):
            do(app, "update_memory", id=str(two), sensitivity="private", **fields)
