"""Facts: triples that hold for a time, replaced and never overwritten, and seen only where their memory is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from recollect import App, Settings
from recollect.domain.results import WriteStatus
from recollect.errors import InvalidInput, NotFound
from run_operations import OTHER, add, by_hand, do, rows

if TYPE_CHECKING:
    from conftest import Clock

EVERY = {"allow_private": True, "allow_secret": True}


def fact(app: App, object_: str, **fields: Any) -> int:
    """Store that the release is owned by somebody, and by nobody else from then on."""
    told = {"subject": "release", "predicate": "owned by", "object": object_, "replaces": True}
    return int(do(app, "store_fact", **told | fields).id)


def found(app: App, **fields: Any) -> list[str]:
    """Return the objects that are found, newest first."""
    return [one.object for one in do(app, "query_facts", **fields).facts]


def day(year: int) -> datetime:
    """Return the first day of a year."""
    return datetime(year, 1, 1, tzinfo=UTC)


def test_a_newer_fact_ends_the_older(app: App, clock: Clock) -> None:
    """Another object of the same subject and predicate holds from now; what held before is kept with its end."""
    old = fact(app, "Ada")
    began = clock.now
    clock.pass_days(10)
    outcome = do(app, "store_fact", subject=" Release ", predicate="OWNED  by", object="Grace", replaces=True)
    assert outcome.message == f"Fact stored successfully with ID: {outcome.id}"
    assert outcome.notes == (f"Fact {old} is no longer valid.",)
    assert found(app) == ["Grace"]
    assert found(app, as_of=began) == ["Ada"]
    assert found(app, as_of=clock.now) == ["Grace"]
    assert found(app, as_of=began - timedelta(seconds=1)) == []
    both = do(app, "query_facts", history=True).facts
    assert [(one.object, one.valid_from, one.valid_to) for one in both] == [
        ("Grace", clock.now, None),
        ("Ada", began, clock.now),
    ]


def test_the_same_fact_is_confirmed(app: App) -> None:
    """Told again, letter case aside, a fact is the same one and surer; a confidence that is given is taken."""
    one = fact(app, "Ada")
    assert fact(app, "  ADA ") == one
    assert do(app, "query_facts").facts[0].confidence == pytest.approx(0.6)
    assert (
        do(app, "store_fact", subject="release", predicate="owned by", object="Ada", confidence=0.9).status
        == WriteStatus.UPDATED
    )
    assert do(app, "query_facts").facts[0].confidence == 0.9


def test_facts_hold_side_by_side(app: App) -> None:
    """Two boundaries of a session both hold, as do two owners; only a fact that says so replaces the others."""
    for at in ("turn 3", "turn 9"):
        do(app, "store_fact", subject="session:7", predicate="boundary_at", object=at)
    assert set(found(app, subject="session:7")) == {"turn 3", "turn 9"}
    fact(app, "Ada", replaces=False)
    fact(app, "Grace", replaces=False)
    assert set(found(app, subject="release")) == {"Ada", "Grace"}
    fact(app, "Linus")
    assert found(app, subject="release") == ["Linus"]


def test_what_was_before_does_not_hold_now(app: App) -> None:
    """A fact of an earlier time ends where the one that is known begins."""
    fact(app, "Ada", valid_from=day(2020))
    fact(app, "Grace", valid_from=day(2010))
    assert found(app) == ["Ada"]
    assert found(app, as_of=day(2015)) == ["Grace"]
    fact(app, "Linus", valid_from=day(2005), valid_to=day(2007))
    assert [found(app, as_of=day(year)) for year in (2004, 2006, 2008, 2021)] == [[], ["Linus"], [], ["Ada"]]


def test_what_will_hold_does_not_yet(app: App, clock: Clock) -> None:
    """A fact of the future ends the present one then; what is told meanwhile holds until then."""
    fact(app, "Ada")
    soon = clock.now + timedelta(days=10)
    fact(app, "Grace", valid_from=soon)
    assert found(app) == ["Ada"]
    clock.pass_days(1)
    fact(app, "Linus")
    assert found(app) == ["Linus"]
    assert found(app, as_of=soon) == ["Grace"]
    clock.pass_days(20)
    assert found(app) == ["Grace"]


def test_a_time_must_run_forwards(app: App) -> None:
    """A fact cannot end before it begins."""
    with pytest.raises(InvalidInput, match="Invalid valid_to"):
        fact(app, "Ada", valid_from=day(2020), valid_to=day(2020))
    assert found(app, history=True) == []


def test_every_part_filters(app: App) -> None:
    """Subject, predicate, object, memory, confidence, and scope each narrow the answer; pages follow one another."""
    memory = add(app, "Ada owns the release.")
    fact(app, "Ada", memory_id=str(memory), confidence=0.9)
    do(app, "store_fact", subject="build", predicate="owned by", object="Grace")
    do(app, "store_fact", subject="build", predicate="takes", object="four minutes", scope="team")
    assert found(app, subject="BUILD", predicate="Owned By") == ["Grace"]
    assert found(app, object="ada") == found(app, memory_id=str(memory)) == found(app, min_confidence=0.8) == ["Ada"]
    assert found(app, scope="team") == ["four minutes"]
    assert found(app, memory_id="9999999999") == found(app, memory_id="no") == []
    everything = found(app)
    pages = [found(app, limit=1, offset=place) for place in range(4)]
    assert [one for page in pages for one in page] == everything
    assert do(app, "query_facts", limit=1).total == 3


def test_facts_stay_in_their_namespace(app: App) -> None:
    """Nobody reads, confirms or ends a fact of another tenant."""
    fact(app, "Ada")
    assert do(app, "query_facts", OTHER).total == 0
    do(app, "store_fact", OTHER, subject="release", predicate="owned by", object="Bob")
    assert found(app) == ["Ada"]
    foreign = add(app, "Bob owns it.", OTHER)
    with pytest.raises(NotFound):
        fact(app, "Bob", memory_id=str(foreign))


def test_a_fact_is_as_strict_as_its_memory(app: App) -> None:
    """A fact of a private memory is private, whatever it says of itself, and becomes so with its memory."""
    private = add(app, "Ada owns the release.", sensitivity="private")
    fact(app, "Ada", memory_id=str(private), sensitivity="public", allow_private=True)
    public = add(app, "Grace owns the build.")
    do(app, "store_fact", subject="build", predicate="owned by", object="Grace", memory_id=str(public))
    assert found(app) == ["Grace"]
    assert set(found(app, allow_private=True)) == {"Ada", "Grace"}
    do(app, "update_memory", id=str(public), sensitivity="secret")
    assert found(app, allow_private=True) == ["Ada"]


def test_a_stricter_level_is_not_a_confirmation(app: App) -> None:
    """The same fact told as secret is secret from then on; told as public again it is public."""
    fact(app, "Ada")
    fact(app, "Ada", sensitivity="secret")
    assert found(app) == []
    assert found(app, **EVERY) == ["Ada"]
    fact(app, "Ada")
    assert found(app) == ["Ada"]


@pytest.mark.parametrize("how", ["memory_forget", "expired", "superseded", "quarantined"])
def test_facts_go_out_of_sight_with_their_memory(app: App, settings: Settings, clock: Clock, how: str) -> None:
    """Where the memory is not seen its facts are not; told again without it the fact is seen, and nothing names it."""
    memory = add(app, "Ada owns the release.", ttl_days=5)
    fact(app, "Ada", memory_id=str(memory))
    if how == "expired":
        clock.pass_days(6)
    elif how == "superseded":
        by_hand(settings, "UPDATE memory SET superseded_by = 77 WHERE id = ?", memory)
    elif how == "quarantined":
        by_hand(settings, "UPDATE memory SET sensitivity = 'cosmic' WHERE id = ?", memory)
    else:
        do(app, how, id=str(memory))
    assert found(app, **EVERY) == []
    again = do(app, "store_fact", subject="release", predicate="owned by", object="ada")
    assert again.status is WriteStatus.STORED
    assert found(app) == ["ada"]
    assert "Ada" not in repr(again)


def test_facts_outlive_a_summary(app: App, clock: Clock) -> None:
    """Condensing memories takes none of their facts away."""
    ids = [add(app, f"The {name} of the ship is oak.", category="ship") for name in ("mast", "keel", "rudder")]
    fact(app, "Ada", memory_id=str(ids[0]))
    clock.pass_days(60)
    assert do(app, "summarize_old").condensed == 3
    assert found(app) == ["Ada"]


def test_facts_go_with_their_memory(app: App, settings: Settings) -> None:
    """Deleting a memory for good deletes its facts."""
    memory = add(app, "Ada owns the release.")
    fact(app, "Ada", memory_id=str(memory))
    do(app, "forget", id=str(memory))
    assert rows(settings, "SELECT * FROM fact") == []


def test_the_journal_tells_of_facts(app: App, settings: Settings) -> None:
    """Each fact that was stored, confirmed or ended has a line, which names no part of it."""
    fact(app, "Ada")
    fact(app, "Ada")
    fact(app, "Grace")
    lines = rows(settings, "SELECT action, changes FROM journal ORDER BY id")
    assert [action for action, _ in lines] == ["insert", "refresh", "insert", "update"]
    assert not any("Ada" in str(changes) or "release" in str(changes) for _, changes in lines)


def test_a_fact_can_be_forgotten(app: App) -> None:
    """It is gone for good and the journal says so; an unknown one, and another tenant's, is not found."""
    one = do(app, "store_fact", subject="pier", predicate="is", object="long")
    assert do(app, "forget_fact", OTHER, id=one.id).message == f"Fact {one.id} not found."
    assert do(app, "forget_fact", id=one.id).message == f"Fact {one.id} deleted."
    assert do(app, "query_facts", history=True).total == 0
    assert do(app, "forget_fact", id=one.id).message == f"Fact {one.id} not found."
