"""Update: what is given is written, what is not stays, and nobody updates what they do not see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from recollect import App, Settings
from recollect.domain.enums import OnSecret, Sensitivity
from recollect.domain.requests import MemoryFields
from recollect.errors import InvalidInput, NotFound, SecretFound
from run_operations import OTHER, actions, add, by_hand, do, ill, recalled, rows, shown, token

if TYPE_CHECKING:
    from conftest import Clock


def test_only_what_is_given_changes(app: App, clock: Clock) -> None:
    """Each field that is given is written, and every other one stays as it was."""
    one = add(app, "The mast is oak.", key="mast", category="ship", tags=("wood",), importance=0.9, trust=0.8)
    before = shown(app, one)
    clock.pass_days(1)
    do(app, "update_memory", id=str(one), category="hull", type="change", concepts=("gotcha",))
    after = shown(app, one)
    assert (after.category, after.type, after.concepts) == ("hull", "change", ("gotcha",))
    for name in ("content", "key", "tags", "importance", "trust", "confidence", "sensitivity", "title", "created_at"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.updated_at == clock.now
    assert actions(app, one) == ["insert", "update"]


def test_a_new_content_is_found_and_the_old_one_is_not(app: App) -> None:
    """Words, meaning, entities and headings that were made follow the content; a heading somebody wrote stays."""
    made = add(app, "The trombone hangs in the cellar.")
    written = add(app, "The viola lies in the attic.", title="Strings")
    for one, content in ((made, "A wombat sleeps in the cabin."), (written, "A heron stands on the pier.")):
        do(app, "update_memory", id=str(one), content=content)
    assert recalled(app, "trombone") == set()
    assert made in recalled(app, "wombat")
    assert (shown(app, made).title, shown(app, written).title) == ("A wombat sleeps in the cabin.", "Strings")
    assert ill(app) == []


def test_an_empty_label_is_taken_away(app: App) -> None:
    """A label given as empty goes; a content or a list given as nothing stays."""
    one = add(app, "The keel is lead.", key="keel", category="ship", tags=("heavy",), speaker="Grace")
    do(app, "update_memory", id=str(one), key="", category=" ", speaker=None, content=None, tags=None)
    memory = shown(app, one)
    assert (memory.key, memory.category, memory.speaker) == (None, None, None)
    assert (memory.content, memory.tags) == ("The keel is lead.", ("heavy",))
    do(app, "update_memory", id=str(one), tags=())
    assert shown(app, one).tags == ()


@pytest.mark.parametrize(
    "name", [name for name, field in MemoryFields.model_fields.items() if field.default in (None, "")]
)
def test_every_optional_field_can_be_cleared(app: App, name: str) -> None:
    """What a memory can be without is taken away by an empty value; headings are made from the content again."""
    plain, value = add(app, "The keel is lead."), {"type": "bugfix", "observed_at": "2026-01-02"}.get(name, "3")
    one = add(app, "The keel is lead.", scope="personal", **{name: value})
    assert getattr(shown(app, one), name) != getattr(shown(app, plain), name)
    do(app, "update_memory", id=str(one), **{name: None})
    assert getattr(shown(app, one), name) == getattr(shown(app, plain), name)


def test_no_two_memories_have_one_key(app: App) -> None:
    """The key of another memory is refused, the memory's own is not."""
    add(app, "The anchor is iron.", key="anchor")
    one = add(app, "The rope is hemp.", key="rope")
    with pytest.raises(InvalidInput, match="`anchor` is the key of memory"):
        do(app, "update_memory", id=str(one), key="anchor")
    assert do(app, "update_memory", id=str(one), key="rope").status == "updated"


def test_what_is_not_seen_cannot_be_updated(app: App, clock: Clock) -> None:
    """An unknown, a foreign, a deleted, and an expired id are not found, and nothing of them changes."""
    foreign = add(app, "Bob sails on Monday.", OTHER)
    deleted = add(app, "The sail is torn.")
    expired = add(app, "The tide is low.", ttl_days=1)
    do(app, "memory_forget", id=str(deleted))
    clock.pass_days(2)
    for one in (foreign, deleted, expired, 999, "abc", "-1"):
        with pytest.raises(NotFound):
            do(app, "update_memory", id=str(one), content="Mine now.")
    assert shown(app, foreign, OTHER).content == "Bob sails on Monday."
    do(app, "restore", id=str(deleted))
    assert shown(app, deleted).content == "The sail is torn."


def test_a_level_changes_only_when_it_is_named(app: App) -> None:
    """A private memory stays private through updates, until another level is given."""
    one = add(app, "Ada is moving.", sensitivity=Sensitivity.PRIVATE)
    do(app, "update_memory", id=str(one), content="Ada is moving in May.", sensitivity="", allow_private=True)
    with pytest.raises(NotFound):
        do(app, "get_memory", id=str(one))
    do(app, "update_memory", id=str(one), sensitivity="public", allow_private=True)
    assert do(app, "get_memory", id=str(one)).content == "Ada is moving in May."


def test_a_term_can_be_given_and_taken(app: App, clock: Clock) -> None:
    """A time to live counts from the update; given as nothing it ends; not given it goes on."""
    one = add(app, "The fair is on.", ttl_days=3)
    clock.pass_days(1)
    do(app, "update_memory", id=str(one), category="town")
    assert shown(app, one).expires_at == clock.now + timedelta(days=2)
    do(app, "update_memory", id=str(one), ttl_days=5)
    assert (shown(app, one).expires_at, shown(app, one).ttl_days) == (clock.now + timedelta(days=5), 5.0)
    do(app, "update_memory", id=str(one), ttl_days=None)
    assert (shown(app, one).expires_at, shown(app, one).ttl_days) == (None, None)


def test_an_update_brings_nothing_back(app: App) -> None:
    """A memory that a later one replaced is updated where it is, out of recall."""
    old, new = add(app, "We use MySQL for the orders."), add(app, "The harbour has a lighthouse.")
    with app.records.writing("project:crew/engine", "ada") as transaction:
        transaction.memories.supersede(old, by=new)
    do(app, "update_memory", id=str(old), content="We once used MySQL for the orders.")
    assert shown(app, old).superseded_by is not None
    assert old not in recalled(app, "MySQL orders")
    assert old in recalled(app, "MySQL orders", superseded=True)


@pytest.mark.parametrize("operation", ["update_memory", "restore"])
def test_an_old_secret_is_refused_today(app: App, settings: Settings, operation: str) -> None:
    """A secret that was stored before the gate knew it stops whatever would write it again, and the journal says so."""
    one = add(app, "The deploy key is kept elsewhere.")
    by_hand(settings, "UPDATE memory SET content = ? WHERE id = ?", f"The deploy key is {token()}", one)
    fields = {"category": "ops"} if operation == "update_memory" else {}
    hidden = [("delete",)] if operation == "restore" and do(app, "memory_forget", id=str(one)) else []
    with pytest.raises(SecretFound) as caught:
        do(app, operation, id=str(one), **fields)
    assert caught.value.field == "content"
    assert rows(settings, "SELECT action FROM journal ORDER BY id") == [("insert",), *hidden, ("refuse",)]
    assert rows(settings, "SELECT category FROM memory") == [(None,)]


def test_a_masked_update_says_so(open_store: Callable[..., App]) -> None:
    """Where secrets are masked, the update is stored without them and says that it was changed."""
    app = open_store(on_secret=OnSecret.REDACT)
    one = add(app, "The deploy key is kept elsewhere.")
    outcome = do(app, "update_memory", id=str(one), content=f"The deploy key is {token()}")
    assert "[redacted:" in shown(app, one).content
    assert outcome.notes[0] == "A secret was found and masked before storing."


def test_what_another_memory_says_is_told(app: App) -> None:
    """Who gives a memory the text of another hears of that one, unless it is none that everybody sees."""
    texts = ("The mascot is a quokka.", "The vault is behind the clock.")
    ids = add(app, texts[0]), add(app, texts[1], sensitivity="private"), add(app, "Lunch is at noon.")
    told = [do(app, "update_memory", id=str(ids[2]), content=text).notes for text in (texts[0], texts[0], texts[1])]
    same = [[note for note in notes if "has the same content" in note] for notes in told]
    assert same == [[f"Memory {ids[0]} has the same content."], [], []]
    do(app, "memory_forget", id=str(ids[0]))
    again = add(app, texts[0])
    assert do(app, "restore", id=str(ids[0])).notes == (f"Memory {again} has the same content.",)
    assert ill(app) == []


@pytest.mark.parametrize("how", [{"id": True}, {"key": "mast"}])
def test_a_summary_of_an_earlier_content_goes(app: App, how: dict[str, object]) -> None:
    """A given abstract and overview say nothing of another content, so they follow it; a given title is a name."""
    given = {"title": "The mast", "abstract": "About oak", "overview": "Oak it is."}
    one = add(app, "The mast is oak.", key="mast", **given)
    do(app, "remember", content="The mast is pine.", **({"id": str(one)} if "id" in how else how))
    memory = shown(app, one)
    assert (memory.title, memory.abstract, memory.overview) == ("The mast", "The mast is pine.", "The mast is pine.")
    do(app, "update_memory", id=str(one), abstract="About pine")
    do(app, "update_memory", id=str(one), category="ship")
    assert shown(app, one).abstract == "About pine"
    do(app, "update_memory", id=str(one), content="The mast is steel.")
    assert shown(app, one).abstract == "The mast is steel."
    assert do(app, "history", id=str(one))[-1].changes["fields"] == ["abstract", "content"]
