"""Legal holds and rules of retention: what stays, what goes, who may set them, and what a stranger learns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clock import Clock
from leaver import ADA, BILLING, BOB, HERS, KEYS, MAST, Leaving
from recollect import Settings
from recollect.auth.principal import Principal
from recollect.domain.enums import Role
from recollect.domain.results import WriteStatus
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound
from recollect.memory import outlive
from recollect.memory.outlive import RetentionRound
from stores import open_app

pytestmark = pytest.mark.slow

ADMIN = Principal(user="bob", teams={"crew": Role.ADMIN})
MEMBER = Principal(user="bob", teams={"crew": Role.WRITER})


@pytest.fixture(params=["folder", "servers"])
def leaving(request: pytest.FixtureRequest, settings: Settings, clock: Clock) -> Iterator[Leaving]:
    """Return a deployment in a folder, and one on PostgreSQL and a Chroma server."""
    place: Settings = settings if request.param == "folder" else request.getfixturevalue("deployed")
    with open_app(place, clock=clock) as app:
        yield Leaving(app)


def kept(leaving: Leaving) -> dict[str, Any]:
    """Return the receipt's counts of a store that would lose nothing by a deletion, or raise what refuses it."""
    counts: dict[str, Any] = leaving.delete(erase=True, dry_run=True).counts
    return counts


@pytest.mark.parametrize("cover", [{"user": "ada"}, {"team": "crew"}, {"team": "crew", "project": "engine"}])
def test_a_hold_lets_nothing_be_deleted(leaving: Leaving, clock: Clock, cover: dict[str, str]) -> None:
    """What it covers is hidden and not deleted, expires and is not purged, and no deletion of its author begins."""
    ids = leaving.fill()
    short = int(
        leaving.do("remember", content="The ferry to the island leaves at nine from the old pier.", ttl_days=1).id
    )
    leaving.administer("set_hold", hold="case-7", reason="litigation", **cover)
    forgotten = leaving.do("forget", id=str(ids[BILLING]))
    assert (forgotten.status, "It is hidden and not deleted" in str(forgotten.notes)) == (WriteStatus.DELETED, True)
    assert BILLING not in leaving.listed(BOB)
    assert BILLING in leaving.written()
    with pytest.raises(Conflict, match="the legal hold `case-7` keeps it"):
        leaving.do("forget", id=str(ids[BILLING]))
    clock.pass_days(2)
    purged = leaving.do("purge_expired")
    assert (purged.ids, purged.kept, "a legal hold keeps them" in purged.message) == ((), 1, True)
    with pytest.raises(Conflict, match="the legal hold `case-7` keeps what would be deleted"):
        kept(leaving)
    with pytest.raises(Conflict):
        leaving.do("forget_fact", id="1")
    clock.pass_days(60)
    leaving.app.sessions.remove_before(clock())
    assert leaving.app.sessions.of_person("ada", 0, 10) != []
    leaving.administer("release_hold", hold="case-7")
    assert leaving.do("purge_expired").ids == (short,)
    assert leaving.do("forget", id=str(ids[BILLING])).status is WriteStatus.DELETED
    assert BILLING not in leaving.written()
    assert kept(leaving)["erased"] == len(HERS) - 1
    assert leaving.ill() == []


def test_a_hold_on_somebody_else_keeps_nothing_of_this_person(leaving: Leaving) -> None:
    """What Bob wrote is deleted while Ada is on hold, also beside hers, and of his own merges nothing of hers."""
    ids = leaving.fill()
    leaving.administer("set_hold", hold="case-7", user="ada")
    assert leaving.do("forget", BOB, id=str(ids[MAST])).notes == ()
    assert MAST not in leaving.written()
    first = int(leaving.do("remember", ADA, content=MAST, key="mast").id)
    leaving.do("remember", BOB, content="The mast is made of steel now, ordered at the yard in Bremen.", key="mast")
    said = leaving.do("forget", BOB, id=str(first))
    assert said.notes == ("It is hidden and not deleted: a legal hold keeps it.",)
    assert MAST in leaving.written()


def test_who_may_set_and_see_holds(leaving: Leaving) -> None:
    """An admin of a team sets holds there, only the deployment's on people; who may not see a hold learns nothing."""
    leaving.administer("set_hold", ADMIN, hold="team-case", team="crew")
    leaving.administer("set_hold", hold="ada-case", user="ada")
    for who, cover in ((MEMBER, {"team": "crew"}), (ADMIN, {"user": "ada"}), (ADMIN, {"team": "dock"})):
        with pytest.raises(Forbidden):
            leaving.administer("set_hold", who, hold="other", **cover)
    seen = {
        who.user + ("+" if who is ADMIN else ""): [hold.name for hold in leaving.administer("list_holds", who).holds]
        for who in (ADMIN, MEMBER, Principal(user="ada"), Principal(user="eve"))
    }
    assert seen == {"bob+": ["team-case"], "bob": ["team-case"], "ada": ["ada-case"], "eve": []}
    for who, error in ((MEMBER, Forbidden), (Principal(user="eve"), NotFound)):
        with pytest.raises(error):
            leaving.administer("release_hold", who, hold="team-case")
    with pytest.raises(InvalidInput, match="already"):
        leaving.administer("set_hold", hold="team-case", team="crew")
    for cover in ({}, {"project": "engine"}, {"user": "ada", "team": "crew"}):
        with pytest.raises(InvalidInput):
            leaving.administer("set_hold", hold="odd", **cover)
    leaving.administer("release_hold", ADMIN, hold="team-case")
    assert [hold.name for hold in leaving.administer("list_holds").holds] == ["ada-case"]
    released = leaving.administer("list_holds", released=True).holds
    assert [(hold.name, hold.released_by) for hold in released] == [("team-case", "bob"), ("ada-case", None)]
    actions = [line.action for line in leaving.administer("audit", limit=10).lines]
    assert (actions.count("set_hold"), actions.count("release_hold")) == (2, 1)


def test_a_rule_removes_what_is_old(leaving: Leaving, clock: Clock) -> None:
    """Old memories of the team go, but for pinned, private and held ones; a project's rule wins over the team's."""
    old = {
        "plain": leaving.do("remember", content=BILLING).id,
        "pinned": leaving.do("remember", content=MAST).id,
        "event": leaving.do(
            "remember", content="The rudder broke in the storm of March near the cape.", fact_type="event"
        ).id,
        "private": leaving.do("remember", content="My own note on the cook and his soup.", sensitivity="private").id,
        "personal": leaving.do("remember", content=KEYS, scope="personal").id,
    }
    leaving.do("pin", id=old["pinned"])
    other = ADA.model_copy(update={"project": "vault"})
    leaving.do("remember", other, content="The vault is opened with two keys and a long number.")
    clock.pass_days(40)
    fresh = leaving.do("remember", content="The new compass points north since this very morning.").id
    leaving.administer("set_retention", team="crew", project="vault", days=0)
    preview = leaving.administer("set_retention", team="crew", days=30, dry_run=True)
    assert (preview.memories, preview.dry_run) == (2, True)
    assert leaving.administer("list_retention").rules[0].project == "vault"
    leaving.administer("set_hold", hold="case-7", team="crew")
    assert leaving.administer("set_retention", team="crew", days=30, dry_run=True).memories == 0
    leaving.administer("release_hold", hold="case-7")
    leaving.administer("set_retention", team="crew", fact_type="events", days=365)
    done = leaving.administer("set_retention", ADMIN, team="crew", days=30)
    assert (done.memories, done.message) == (1, "It has removed 1 memory, and goes on each hour.")
    left = {str(memory.id) for memory in leaving.do("list_memories", limit=50, allow_private=True).memories}
    assert left == {old["pinned"], old["event"], old["private"], old["personal"], fresh}
    assert len(leaving.listed(other, scope="project")) == 1
    assert leaving.ill() == []
    with pytest.raises(Forbidden):
        leaving.administer("set_retention", MEMBER, team="crew", days=1)
    with pytest.raises(Forbidden):
        leaving.administer("list_retention", Principal(user="eve"), team="crew")
    leaving.administer("drop_retention", team="crew", fact_type="event")
    with pytest.raises(NotFound):
        leaving.administer("drop_retention", team="crew", fact_type="event")


def test_a_rule_passes_over_what_is_on_hold_inside_others(
    leaving: Leaving, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Bob wrote over words of Ada, who is on hold, stays in sight, and a rule goes on with what comes after it."""
    monkeypatch.setattr(outlive, "_AT_ONCE", 1)
    newer = ("The mast is made of steel now, ordered at the yard.", "The billing service is deployed on Mondays.")
    for key, old, new in zip(("mast", "billing"), (MAST, BILLING), newer, strict=True):
        leaving.do("remember", ADA, content=old, key=key)
        leaving.do("remember", BOB, content=new, key=key)
    leaving.do("remember", BOB, content=KEYS)
    leaving.administer("set_hold", hold="case-7", user="ada")
    clock.pass_days(40)
    assert leaving.administer("set_retention", team="crew", days=30, dry_run=True).memories == 1
    assert leaving.administer("set_retention", team="crew", days=30).memories == 1
    assert leaving.listed(BOB).keys() == {*newer}


def test_rules_are_applied_once_an_hour(leaving: Leaving, clock: Clock) -> None:
    """In the background a rule removes what has become old, and is looked at again only after an hour."""
    records = leaving.app.records
    rounds = RetentionRound(records, leaving.app.places.database.claiming)
    assert rounds.run(clock()) is None
    leaving.administer("set_retention", team="crew", days=30)
    leaving.do("remember", content=BILLING)
    clock.pass_days(31)
    assert (rounds.run(clock()) or 0) > 3_500
    assert BILLING not in leaving.written()
    leaving.do("remember", content=MAST)
    clock.pass_days(31)
    assert 0 < (rounds.run(clock()) or 0) <= 3_600
    assert MAST in leaving.written()
