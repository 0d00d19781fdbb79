"""The deletion of a user, in a folder and on servers: what becomes of each memory, and what the receipt says."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from sqlalchemy import update

from chroma_process import ChromaProcess
from clock import Clock
from leaver import ADA, BILLING, BOB, GRUDGE, HERS, KEYS, MAST, NOTED, PROMPT, SALARY, Leaving
from recollect import Settings
from recollect.auth import deletion
from recollect.auth.authenticate import authenticate
from recollect.auth.principal import Principal
from recollect.domain.enums import Role
from recollect.domain.limits import Holder, HolderKind, Resource
from recollect.domain.transfer import ItemKind, Problem
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound, QuotaFull, Unauthorized
from recollect.store.erasure import KEPT, conditions_of
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.departures import sha256_of
from recollect.store.sql.granted_rights import never_granted
from recollect.store.sql.person_rows import OF_MEMORY
from recollect.store.sql.request_rates import Allowance
from recollect.store.vectors.outbox import stale_namespaces
from recollect.transfer.recollect_jsonl import export_lines, read_export
from stores import open_app

pytestmark = pytest.mark.slow


@pytest.fixture(params=["folder", "servers"])
def place(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Return the settings of a store in a folder, and of one on PostgreSQL and a Chroma server."""
    chosen: Settings = settings if request.param == "folder" else request.getfixturevalue("deployed")
    return chosen


@pytest.fixture
def leaving(place: Settings, clock: Clock) -> Iterator[Leaving]:
    """Return a deployment in which Ada may be deleted."""
    with open_app(place, clock=clock) as app:
        yield Leaving(app)


@pytest.mark.parametrize("choice", ["erase", "keep", "hand_to", "to_team"])
def test_each_choice_leaves_what_it_says(leaving: Leaving, choice: str) -> None:
    """Personal memories go where it was chosen, private ones go for good, and the store is sound afterwards."""
    ids = leaving.fill()
    target = {"hand_to": "bob", "to_team": "crew"}.get(choice, True)
    before = leaving.delete(dry_run=True, **{choice: target})
    assert leaving.listed(ADA).keys() >= {KEYS, SALARY, BILLING, GRUDGE}, "a dry run changes nothing"
    done = leaving.delete(**{choice: target})
    seen = leaving.listed(BOB)
    wanted = {MAST: "project:crew/engine"}
    if choice != "erase":
        wanted |= {BILLING: "project:crew/engine", PROMPT: "project:crew/engine"}
    wanted |= {"hand_to": {KEYS: "user:bob"}, "to_team": {KEYS: "team:crew"}}.get(choice, {})
    assert seen == wanted
    assert leaving.listed(ADA, scope="personal") == {}
    gone = [text for text in (*HERS, NOTED) if text not in wanted]
    assert not [text for text in gone if text in leaving.written()]
    receipt = done.signed.receipt
    assert (receipt.complete, done.signed.proven, leaving.ill()) == (True, True, [])
    assert receipt.memories["erased"] == before.counts["erased"] == len(HERS) - len(wanted) + 1
    if choice in ("hand_to", "to_team"):
        assert receipt.memories["handed_over"] == 1
        moved = leaving.do("get_memory", BOB, id="keys")
        assert (moved.id, moved.author, moved.tags) == (ids[KEYS], "ada", ("office",))
        hits = leaving.do("recall", BOB, query="where are the harbour keys", min_score=0.0).hits
        assert hits[0].memory.content == KEYS
        assert {fact.object for fact in leaving.do("query_facts", BOB).facts} >= {"pine", "drawer"}


def test_a_personal_namespace_that_is_handed_over_whole_is_empty(leaving: Leaving) -> None:
    """Nothing is deleted, and still no vector stays where it was; a key that is taken there gives way."""
    theirs = int(leaving.do("remember", BOB, content=MAST, scope="personal", key="keys").id)
    ids = [int(leaving.do("remember", content=KEYS, scope="personal", key="keys").id)]
    ids.append(int(leaving.do("remember", content=BILLING, scope="personal", key="billing").id))
    leaving.app.vectors.sync()
    done = leaving.delete(hand_to="bob")
    assert (done.signed.proven, done.signed.receipt.memories) == (True, {"handed_over": 2, "kept": 0, "erased": 0})
    keys = {each: leaving.do("get_memory", BOB, id=str(each)).key for each in (theirs, *ids)}
    assert keys == {theirs: "keys", ids[0]: None, ids[1]: "billing"}
    index = leaving.app.places.index
    assert index.ids("user:ada") == set()
    assert {int(chunk.partition(".")[0]) for chunk in index.ids("user:bob")} == {theirs, *ids}
    assert leaving.ill() == []


def test_the_account_ends_with_all_that_opens_it(leaving: Leaving) -> None:
    """Tokens, invitations and persons of the provider are gone, and no right is left that nobody granted."""
    leaving.administer("link_user", user="ada", issuer="https://login.example.com", subject="7f2c")
    assert authenticate(leaving.app, leaving.tokens["ada"]).user == "ada"
    leaving.delete(erase=True)
    with pytest.raises(Unauthorized):
        authenticate(leaving.app, leaving.tokens["ada"])
    assert "ada" not in [user.user for user in leaving.administer("list_users").users]
    assert leaving.app.accounts.user_of("https://login.example.com", "7f2c") is None
    leaving.administer("add_user", user="ada")
    with leaving.app.places.database.reading() as connection:
        assert never_granted(connection) == []


def test_who_may_delete_whom(leaving: Leaving) -> None:
    """Only an admin of the deployment deletes, never themselves, never the last admin, and only with one choice."""
    root = Principal(user="root", admin=True)
    for who in (Principal(user="bob", teams={"crew": Role.ADMIN}), Principal(user="ada")):
        with pytest.raises(Forbidden):
            leaving.administer("delete_user", who, user="ada", erase=True)
    with pytest.raises(InvalidInput, match="Another admin"):
        leaving.administer("delete_user", root, user="root", erase=True)
    with pytest.raises(InvalidInput, match="the last admin"):
        leaving.administer("delete_user", user="root", erase=True)
    for fields in ({}, {"erase": True, "keep": True}, {"hand_to": "ada"}):
        with pytest.raises(InvalidInput):
            leaving.delete(**fields)
    for fields in ({"hand_to": "nobody"}, {"to_team": "nowhere"}):
        with pytest.raises(NotFound):
            leaving.delete(**fields)
    with pytest.raises(NotFound):
        leaving.administer("delete_user", user="nobody", erase=True)
    assert "ada" in [user.user for user in leaving.administer("list_users").users]


def test_what_was_made_of_it_is_rebuilt(leaving: Leaving) -> None:
    """A text that Ada wrote over Bob's, and what replaced one of his, go; his own words are there again."""
    first = int(leaving.do("remember", BOB, content=MAST, key="mast").id)
    newer = "The mast is made of steel now, which Ada ordered at the yard in Bremen."
    assert int(leaving.do("remember", ADA, content=newer, key="mast").id) == first
    old = int(leaving.do("remember", BOB, content="The pier of the harbour is forty metres long at low tide.").id)
    leaving.do("remember", ADA, content="The pier of the harbour is sixty metres long since May.", supersedes=str(old))
    assert leaving.delete(erase=True).signed.proven
    seen = leaving.listed(BOB)
    assert seen.keys() == {MAST, "The pier of the harbour is forty metres long at low tide."}
    assert newer not in leaving.written()
    assert leaving.ill() == []


def test_a_person_of_a_similar_name_keeps_what_is_theirs(leaving: Leaving) -> None:
    """Whose name ends with the name of the leaver loses nothing, private memories neither."""
    other = BOB.model_copy(update={"user": "x@ada"})
    leaving.administer("add_user", user="x@ada", team="crew")
    leaving.do("remember", other, content=SALARY, sensitivity="private")
    leaving.do("remember", other, content=KEYS, scope="personal")
    leaving.fill()
    assert leaving.delete(erase=True).signed.proven
    assert leaving.listed(other).keys() == {SALARY, KEYS, MAST}


def test_a_receipt_that_somebody_changed_is_not_proven(leaving: Leaving) -> None:
    """The journal holds the hash of the receipt, so that another receipt in its place shows."""
    leaving.fill()
    done = leaving.delete(erase=True)
    [shown] = leaving.administer("list_receipts", user="ada").receipts
    assert shown.sha256 == done.signed.sha256
    [state] = leaving.app.records.departures.of("ada")
    assert sha256_of(state.receipt) == done.signed.sha256
    lines = leaving.administer("audit", limit=5).lines
    assert [line.changes["sha256"] for line in lines if line.action == "receipt"] == [done.signed.sha256]
    forged = dict(state.receipt) | {"complete": False}
    with leaving.app.places.database.writing() as connection:
        connection.execute(update(tables.departure).values(receipt=forged))
    [shown] = leaving.administer("list_receipts").receipts
    assert not shown.proven
    with pytest.raises(NotFound):
        leaving.administer("list_receipts", user="bob")


def test_a_trace_that_is_left_keeps_the_receipt_back(leaving: Leaving, place: Settings) -> None:
    """A log that holds a deleted text is named, nothing is signed, and the same request goes on once it is gone."""
    leaving.fill()
    log = place.folder / "logs" / "daemon.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"2026-03-01 somebody printed: {BILLING}\n", encoding="utf-8")
    done = leaving.delete(erase=True)
    left = {one.place: one.note for one in done.signed.receipt.places if one.left}
    assert (left, done.signed.proven, done.signed.line) == ({"log files": "daemon.log"}, False, 0)
    with pytest.raises(Conflict, match="has begun with `--erase`"):
        leaving.delete(keep=True)
    with pytest.raises(Conflict, match="is being deleted"):
        leaving.administer("add_user", user="ada")
    assert leaving.administer("list_receipts").receipts[0].receipt is None
    log.unlink()
    again = leaving.delete(erase=True)
    assert (again.signed.proven, again.signed.receipt.memories["erased"]) == (True, len(HERS))


def test_the_files_of_vectors_are_rewritten_at_once(leaving: Leaving) -> None:
    """Of two deletions in a row the second one waits for no rest: no namespace is left to be purged later."""
    leaving.fill()
    leaving.do("remember", BOB, content="Bob keeps the lamp oil behind the door of the lighthouse.", scope="personal")
    for user in ("ada", "bob"):
        done = leaving.administer("delete_user", user=user, erase=True)
        assert done.signed.proven, done.message
        with leaving.app.places.database.reading() as connection:
            assert stale_namespaces(store_metadata.read(connection)) == {}


def test_an_index_that_is_away_keeps_the_receipt_back(
    deployed: Settings, chroma_process: ChromaProcess, clock: Clock
) -> None:
    """While Chroma does not answer nothing is signed, and once it is back the same request ends the work."""
    with open_app(deployed, clock=clock) as app:
        leaving = Leaving(app)
        leaving.fill()
        chroma_process.kill()
        try:
            done = leaving.delete(erase=True)
        finally:
            chroma_process.start()
        left = {one.place: one.left for one in done.signed.receipt.places if one.left != 0}
        assert (left["vector index"], done.signed.proven, "no answer" in done.message) == (None, False, True)
        again = leaving.delete(erase=True)
        assert (again.signed.proven, again.signed.receipt.memories["erased"]) == (True, len(HERS))
        assert leaving.ill() == []


def test_limits_and_counted_requests_go_with_the_account(leaving: Leaving) -> None:
    """Who gets the name later has the limits of everybody, and the receipt lists both tables."""
    leaving.administer("set_limits", kind="user", whose="ada", memories=100, requests_day=9)
    leaving.administer("set_limits", kind="user", whose="bob", requests_day=7)
    rates = leaving.app.limits.rates
    allowances = [Allowance(Holder(HolderKind.USER, user), {Resource.REQUESTS_DAY: 9}) for user in ("ada", "bob")]
    rates.take(allowances)
    done = leaving.delete(keep=True)
    removed = {place.place: place.removed for place in done.signed.receipt.places}
    assert (removed["usage_limit"], removed["request_rate"], done.signed.proven) == (2, 1, True)
    assert [(limit.name, limit.most) for limit in leaving.administer("list_limits").limits] == [("bob", 7)]
    assert [rate.used for rate in rates.read(allowances)] == [0, 1]


@pytest.mark.parametrize("limits", [{"memories": 2}, {"bytes": 80}])
@pytest.mark.parametrize(("choice", "kind", "heir"), [("hand_to", "user", "bob"), ("to_team", "team", "crew")])
def test_an_heir_without_room_is_found_before_anything_ends(
    leaving: Leaving, choice: str, kind: str, heir: str, limits: dict[str, int]
) -> None:
    """Where a limit of the heir has no room, the account stays as it is, in a preview too; more room helps."""
    scope = "personal" if kind == "user" else "team"
    leaving.do("remember", BOB, content=MAST, scope=scope)
    for text in (KEYS, BILLING):
        leaving.do("remember", content=text, scope="personal")
    leaving.administer("set_limits", kind=kind, whose=heir, **limits)
    for dry in (True, False):
        with pytest.raises(QuotaFull, match=f"the {kind} {heir} has 1 of 2" if "memories" in limits else "bytes"):
            leaving.delete(**{choice: heir, "dry_run": dry})
    assert "ada" in [user.user for user in leaving.administer("list_users").users]
    assert leaving.listed(ADA, scope="personal").keys() == {KEYS, BILLING}
    leaving.administer("set_limits", kind=kind, whose=heir, memories=3, bytes=1_000)
    assert leaving.delete(**{choice: heir}).signed.receipt.memories["handed_over"] == 2


@pytest.mark.parametrize("place", ["folder"], indirect=True)
def test_a_hold_keeps_facts_that_no_memory_states(leaving: Leaving) -> None:
    """Who wrote nothing but facts in a team that is on hold is not erased."""
    leaving.do("store_fact", subject="mast", predicate="is", object="pine")
    leaving.administer("set_hold", hold="audit", team="crew")
    with pytest.raises(Conflict, match="the legal hold `audit`"):
        leaving.delete(erase=True)
    assert [fact.object for fact in leaving.do("query_facts", BOB).facts] == ["pine"]
    assert "ada" in [user.user for user in leaving.administer("list_users").users]


@pytest.mark.parametrize("place", ["folder"], indirect=True)
def test_what_an_heir_got_of_a_person_on_hold_stays(leaving: Leaving) -> None:
    """Memories that were handed over are still what their author wrote: a hold on them keeps the heir's account too."""
    leaving.do("remember", content=KEYS, scope="personal")
    leaving.delete(hand_to="bob")
    leaving.administer("add_user", user="ada", team="crew")
    leaving.administer("set_hold", hold="audit", user="ada")
    for choice in ("keep", "erase"):
        with pytest.raises(Conflict, match="the legal hold `audit`"):
            leaving.administer("delete_user", user="bob", **{choice: True})
    assert leaving.listed(BOB).keys() == {KEYS}
    leaving.administer("release_hold", hold="audit")
    assert leaving.administer("delete_user", user="bob", erase=True).signed.proven


@pytest.mark.parametrize("place", ["folder"], indirect=True)
def test_a_deletion_waits_for_a_hold_that_was_set_meanwhile(leaving: Leaving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a deletion that was killed, nothing more is deleted against a hold; once it is released, the rest goes."""
    leaving.do("store_fact", subject="mast", predicate="is", object="pine")
    leaving.do("remember", content=BILLING)
    with monkeypatch.context() as killed:
        killed.setattr(deletion, "erase_in", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            leaving.delete(erase=True)
    leaving.administer("set_hold", hold="audit", team="crew")
    with pytest.raises(Conflict, match="waits: the legal hold `audit`"):
        leaving.delete(erase=True)
    assert leaving.listed(BOB).keys() == {BILLING}
    leaving.administer("release_hold", hold="audit")
    assert leaving.delete(erase=True).signed.proven
    assert leaving.listed(BOB) == {}


@pytest.mark.parametrize("place", ["folder"], indirect=True)
def test_words_of_a_person_on_hold_outlive_who_wrote_over_them(leaving: Leaving) -> None:
    """Bob wrote over what Ada had written: while she is on hold he can be erased, and her words are there again."""
    leaving.do("remember", ADA, content=MAST, key="mast")
    leaving.do("remember", BOB, content="The mast is made of steel now, ordered at the yard.", key="mast")
    leaving.administer("set_hold", hold="audit", user="ada")
    assert leaving.administer("delete_user", user="bob", erase=True).signed.proven
    assert leaving.listed(ADA).keys() == {MAST}


def test_every_table_is_looked_at() -> None:
    """A table that may name a person or a memory has a condition, and any other says why nothing of it goes."""
    state: Any = type("State", (), {"user": "ada", "choice": "erase"})()
    for table in tables.metadata.sorted_tables:
        looked = conditions_of(table, state) or table in OF_MEMORY or table.name == "request_outcome"
        assert bool(looked) != (table.name in KEPT), table.name


def test_an_export_holds_all_that_is_theirs(leaving: Leaving) -> None:
    """Ada gets her private memories too, an admin does not and leaves a line, and nobody else gets anything."""
    leaving.fill()
    ada = Principal(user="ada", teams={"crew": Role.WRITER})
    own = leaving.export("ada", ada)
    kinds = {kind for line in own[1:] for kind in line}
    assert kinds == {"account", "token", "session", "observation", "namespace", "memory", "fact", "journal"}
    assert {line["memory"]["content"] for line in own if "memory" in line} == set(HERS)
    assert MAST not in str(own)
    foreign = leaving.export("ada")
    assert {line["memory"]["content"] for line in foreign if "memory" in line} == {KEYS, BILLING, PROMPT}
    assert [line.action for line in leaving.administer("audit", limit=1).lines] == ["export_user"]
    text = "".join(export_lines(own)).encode()
    items = list(read_export(BytesIO(text), "ada.jsonl"))
    assert [one for one in items if isinstance(one, Problem)] == []
    assert {one.fields["content"] for one in items if one.kind is ItemKind.MEMORY} == set(HERS)
    outside = leaving.export("ada", Principal(user="ada"))
    assert {line["memory"]["content"] for line in outside if "memory" in line} == {KEYS, SALARY}
    with pytest.raises(Forbidden):
        leaving.export("ada", Principal(user="bob", teams={"crew": Role.ADMIN}))


def test_a_backup_that_still_holds_it_is_named(settings: Settings, clock: Clock, tmp_path: Path) -> None:
    """The receipt names each backup in the folder, whether it holds something of the person, and until when."""
    from recollect import backup

    folder = tmp_path / "backups"
    folder.mkdir()
    placed = settings.model_copy(update={"backup_folder": folder, "backup_days": 30.0})
    with open_app(placed, clock=clock) as app:
        leaving = Leaving(app)
        backup(folder / "empty.zip", placed)
        leaving.fill()
        backup(folder / "full.zip", placed)
        (folder / "dump.sql").write_text("whatever", encoding="utf-8")
        receipt = leaving.delete(erase=True).signed.receipt
    assert {Path(copy.file).name: copy.holds for copy in receipt.copies} == {
        "empty.zip": False,
        "full.zip": True,
        "dump.sql": None,
    }
    assert all(copy.until is not None and (copy.until - copy.made_at).days == 30 for copy in receipt.copies)
    assert zipfile.is_zipfile(folder / "full.zip")
    assert json.dumps(receipt.memories) == json.dumps({"handed_over": 0, "kept": 0, "erased": len(HERS)})
