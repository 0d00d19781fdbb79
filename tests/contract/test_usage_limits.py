"""Limits on what users and teams hold, on each database: exact in the transaction that writes, whoever writes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from account_admin import Office
from entries import make_entry
from recollect.auth.principal import Principal
from recollect.domain.enums import Sensitivity
from recollect.domain.limits import Defaults, Holder, HolderKind, Resource
from recollect.errors import Forbidden, InvalidInput, NotFound, QuotaFull
from recollect.store.sql import limit_schema
from recollect.store.sql.database import Database
from recollect.store.sql.limits import Quotas, held
from recollect.store.sql.migrations import migrate
from recollect.store.sql.records import Records

CREW, ADA = Holder(HolderKind.TEAM, "crew"), Holder(HolderKind.USER, "ada")
ENGINE, MAST, SHARED, OWN = "project:crew/engine", "project:crew/mast", "team:crew", "user:ada"
LAST_PLACE: dict[str, tuple[Defaults, Callable[[int], str]]] = {
    "in one namespace": ({HolderKind.USER: {Resource.MEMORIES: 10}}, lambda _: OWN),
    "in projects of a team": ({HolderKind.TEAM: {Resource.MEMORIES: 10}}, lambda number: f"project:crew/{number % 4}"),
    "for new projects": ({HolderKind.TEAM: {Resource.PROJECTS: 10}}, lambda number: f"project:crew/{number}"),
}


def limited(store: Any, database: Database | None = None, **most: int) -> Records:
    """Return records of the store with limits, each named as `team_memories`."""
    limits: dict[HolderKind, dict[Resource, int]] = {HolderKind.USER: {}, HolderKind.TEAM: {}}
    for name, value in most.items():
        kind, _, resource = name.partition("_")
        limits[HolderKind(kind)][Resource(resource)] = value
    return Records(database or store.database, store.clock, lambda: None, None, Quotas(limits))


def write(records: Records, content: str, namespace: str = OWN, **fields: Any) -> int:
    """Insert one memory in a transaction of its own."""
    with records.writing(namespace, "ada") as writing:
        return writing.memories.insert(make_entry(content, **fields))


def counted(store: Any) -> dict[str, tuple[int, int]]:
    """Return memories and bytes by namespace, as they are counted."""
    query = "SELECT name, memories, bytes FROM live_size JOIN namespace ON namespace.id = namespace_id"
    return {row[0]: (row[1], row[2]) for row in store.rows(query) if row[1] or row[2]}


def in_use(store: Any, holder: Holder) -> dict[Resource, int]:
    """Return how much a holder holds."""
    with store.database.reading() as connection:
        return held(connection, holder)


def differs(store: Any) -> bool:
    """Say whether what is counted is not what is there."""
    with store.database.reading() as connection:
        return bool(connection.execute(text(limit_schema.DIFFERS[connection.dialect.name])).scalar())


def test_what_is_live_is_counted(store: Any) -> None:
    """A memory counts, with the bytes of its content as UTF-8, until it is hidden, replaced, merged or deleted."""
    first, second = store.add("Döner", OWN), store.add("plain", OWN)
    assert counted(store) == {OWN: (2, 11)}
    with store.records.writing(OWN, "ada") as writing:
        writing.memories.hide(first)
    assert counted(store) == {OWN: (1, 5)}
    with store.records.writing(OWN, "ada") as writing:
        old = writing.lookup.by_id(first)
        writing.memories.update(old, make_entry("Döner", at=store.clock()), "restore")
        writing.memories.insert(make_entry("a part of it"), merged_into=second)
        writing.memories.supersede(first, by=second)
    assert counted(store) == {OWN: (1, 5)}
    store.delete(second, OWN)
    assert (counted(store), differs(store)) == ({OWN: (1, 6)}, False), "what replaced the first is gone"


def test_the_counts_follow_any_sequence_of_writes(store: Any) -> None:
    """After random writes, changes and deletions in several namespaces the counts are those of the rows."""
    drawn, ids = random.Random(7), dict[int, str]()
    for number in range(60):
        namespace = drawn.choice([OWN, ENGINE, MAST])
        with store.records.writing(namespace, "ada") as writing:
            here = [one for one, place in ids.items() if place == namespace]
            known = writing.lookup.by_id(drawn.choice(here)) if here else None
            match drawn.randrange(5):
                case 0 if known is not None:
                    writing.memories.update(known, make_entry("ü" * drawn.randrange(1, 40)), "update")
                case 1 if known is not None:
                    writing.memories.hide(known.id)
                case 2 if known is not None:
                    writing.memories.delete(known.id)
                    del ids[known.id]
                case 3 if known is not None and len(here) > 1:
                    writing.memories.supersede(known.id, by=next(one for one in here if one != known.id))
                case _:
                    ids[writing.memories.insert(make_entry(f"note {number}"))] = namespace
        assert not differs(store)


def test_the_last_one_fits_and_the_next_is_refused(store: Any) -> None:
    """A write beyond the limit is refused with what is used and allowed; but for a line in the journal nothing is left.

    The line tells nothing of the text.
    """
    records = limited(store, user_memories=2)
    write(records, "one")
    write(records, "two")
    before = store.dump()
    with pytest.raises(QuotaFull, match=r"the user ada has 2 of 2 memories, and this adds 1\. Nothing was") as full:
        write(records, "three")
    assert full.value.public() | {"message": ""} == {
        "error": "QuotaFull",
        "message": "",
        "limit": "memories",
        "used": 2,
        "most": 2,
    }
    assert "recollect limit set user ada --memories N" in str(full.value)
    after = store.dump()
    own = {"sqlite_sequence", "journal"}  # of SQLite, the number of the last line
    assert {name for name in after if after[name] != before[name]} - own == set()
    (line,) = store.rows("SELECT action, actor, changes FROM journal ORDER BY id DESC LIMIT 1")
    assert (line[0], line[1], "three" in str(line[2])) == ("refuse", "ada", False)


def test_the_refusal_of_a_private_write_is_private(store: Any) -> None:
    """The line about a refused write in a team stands at the level of the write, so that no other member sees it."""
    records = limited(store, team_memories=1)
    write(records, "one", SHARED)
    with pytest.raises(QuotaFull), records.writing(SHARED, "ada", (Sensitivity.PUBLIC, Sensitivity.PRIVATE)) as writing:
        writing.memories.insert(make_entry("two", sensitivity="private"))
    assert store.rows("SELECT sensitivity FROM journal ORDER BY id DESC LIMIT 1")[0][0] == "private@ada"


def test_bytes_are_those_of_the_text(store: Any) -> None:
    """Bytes beyond the limit are refused for a new memory and for a longer text; a text as long or shorter is taken."""
    records = limited(store, user_bytes=10)
    number = write(records, "Döner")  # 6 bytes
    with pytest.raises(QuotaFull, match="has 6 of 10 bytes of content, and this adds 5"):
        write(records, "Brote")

    def change(content: str) -> None:
        with records.writing(OWN, "ada") as writing:
            writing.memories.update(writing.lookup.by_id(number), make_entry(content), "update")

    change("1234567890")
    with pytest.raises(QuotaFull, match="has 10 of 10 bytes of content, and this adds 1"):
        change("12345678901")
    change("1234567899")
    change("1")
    assert store.one(number, OWN).content == "1"


def test_at_the_limit_a_memory_can_be_replaced(store: Any) -> None:
    """A memory that takes the place of another adds none, nor does a memory that is confirmed."""
    records = limited(store, user_memories=1)
    old = write(records, "old")
    with records.writing(OWN, "ada") as writing:
        writing.memories.supersede(old, by=(new := writing.memories.insert(make_entry("new"))))
    with records.writing(OWN, "ada") as writing:
        writing.memories.update(writing.lookup.by_id(new), make_entry("new"), "refresh")
    assert counted(store) == {OWN: (1, 3)}


def test_what_is_forgotten_or_expired_leaves_room(store: Any, clock: Any) -> None:
    """A memory that is hidden, deleted or past its time counts no more."""
    records = limited(store, user_memories=1)
    first = write(records, "first")
    with records.writing(OWN, "ada") as writing:
        writing.memories.hide(first)
    second = write(records, "second")
    store.delete(second, OWN)
    write(records, "third", expires_at=clock() + timedelta(hours=1))
    with pytest.raises(QuotaFull):
        write(records, "fourth")
    clock.now += timedelta(hours=2)
    write(records, "fourth")
    with pytest.raises(QuotaFull, match="has 1 of 1 memories"):
        write(records, "fifth")


def test_a_team_is_the_sum_of_its_places(store: Any) -> None:
    """What its projects hold counts with what the team holds; another team of a similar name, and a user, do not."""
    records = limited(store, team_memories=3)
    for namespace in (ENGINE, MAST, SHARED):
        write(records, "here", namespace)
    for namespace in ("team:crews", "project:crews/engine", "project:Crew/engine", "project:cre_/x", "user:crew"):
        write(records, "elsewhere", namespace)
    for namespace in (ENGINE, "project:crew/new", SHARED):
        with pytest.raises(QuotaFull, match="the team crew has 3 of 3 memories"):
            write(records, "one more", namespace)
    assert in_use(store, CREW)[Resource.MEMORIES] == 3


def test_a_move_within_a_team_adds_nothing(store: Any) -> None:
    """In one transaction on two namespaces of a team a memory goes from one to the other, also at the limit."""
    records = limited(store, team_memories=1, user_memories=1)
    number = write(records, "here", ENGINE)
    with records.importing([ENGINE, SHARED], "ada") as writings:
        writings[SHARED].memories.insert(make_entry("here"))
        writings[ENGINE].memories.hide(number)
    write(records, "mine", OWN)

    def take_home() -> None:
        with records.importing([SHARED, OWN], "ada") as writings:
            writings[OWN].memories.insert(make_entry("there"))
            writings[SHARED].memories.hide(number + 1)

    with pytest.raises(QuotaFull, match="the user ada"):
        take_home()
    assert counted(store) == {SHARED: (1, 4), OWN: (1, 4)}


def test_a_dry_import_says_what_would_be_refused(store: Any) -> None:
    """A dry run beyond the limit is refused as the import would be, and leaves no line in the journal."""
    records = limited(store, user_memories=1)
    lines = store.rows("SELECT count(*) FROM journal")

    def run_dry() -> None:
        with records.importing([OWN], "ada", dry=True) as writings:
            for content in ("one", "two"):
                writings[OWN].memories.insert(make_entry(content))

    with pytest.raises(QuotaFull):
        run_dry()
    assert store.rows("SELECT count(*) FROM journal") == lines


def test_who_is_over_a_limit_may_hold_less(store: Any) -> None:
    """Beyond a limit that was lowered nothing can be added; what adds nothing, or takes something away, is written."""
    numbers = [store.add(f"note {number}", OWN) for number in range(3)]
    records = limited(store, user_memories=1)
    with records.writing(OWN, "ada") as writing:
        writing.memories.update(writing.lookup.by_id(numbers[0]), make_entry("another text"), "update")
    with records.writing(OWN, "ada") as writing:
        writing.memories.delete(numbers[1])
    with pytest.raises(QuotaFull, match="has 2 of 1 memories"):
        write(records, "one more")


def test_projects_are_those_with_memories_or_registered(store: Any, office: Office, root: Principal) -> None:
    """A project counts once, while it holds a live memory or is registered; neither way leads beyond the limit."""
    office.do("set_limits", root, kind="team", whose="crew", projects=2)
    office.do("add_project", root, team="crew", project="engine")
    write(limited(store), "here", ENGINE)
    number = write(limited(store), "there", MAST)
    assert in_use(store, CREW)[Resource.PROJECTS] == 2
    with pytest.raises(QuotaFull, match="the team crew has 2 of 2 projects"):
        write(limited(store), "elsewhere", "project:crew/hull")
    with pytest.raises(QuotaFull, match="projects"):
        office.do("add_project", root, team="crew", project="hull")
    office.do("add_project", root, team="crew", project="engine", private=True)
    write(limited(store), "shared by all", SHARED)
    store.delete(number, MAST)
    office.do("add_project", root, team="crew", project="hull")


def test_limits_of_one_holder_come_before_the_settings(store: Any, office: Office, root: Principal) -> None:
    """An admin gives more, less, or no limit; cleared, the settings count again."""
    office.join(root, "ada", team="crew")
    records = limited(store, user_memories=1)
    write(records, "first")
    for most, fits in ((2, True), (0, True), (2, False)):
        office.do("set_limits", root, kind="user", whose="ada", memories=most)
        if fits:
            write(records, f"with {most}")
        else:
            with pytest.raises(QuotaFull, match="has 3 of 2"):
                write(records, "beyond")
    office.do("clear_limits", root, kind="user", whose="ada")
    with pytest.raises(QuotaFull, match="has 3 of 1"):
        write(records, "beyond")
    assert store.rows("SELECT * FROM usage_limit") == []


def test_only_admins_of_the_deployment_set_limits(office: Office, root: Principal) -> None:
    """Who administers a team alone neither sets nor lists limits; unknown names and wrong fields change nothing."""
    lead = office.enter(office.join(root, "ada", team="crew", role="admin").token)
    for name, fields in (
        ("set_limits", {"kind": "team", "whose": "crew", "memories": 9}),
        ("clear_limits", {"kind": "team", "whose": "crew"}),
        ("list_limits", {}),
    ):
        with pytest.raises(Forbidden):
            office.do(name, lead, **fields)
    wrong: list[tuple[type[Exception], dict[str, Any], str]] = [
        (NotFound, {"kind": "user", "whose": "nobody", "memories": 1}, "no user `nobody`"),
        (NotFound, {"kind": "team", "whose": "nowhere", "memories": 1}, "no team `nowhere`"),
        (InvalidInput, {"kind": "user", "whose": "ada"}, "Missing limit"),
        (InvalidInput, {"kind": "user", "whose": "ada", "projects": 1}, "Invalid projects: A user has none"),
        (InvalidInput, {"kind": "user", "whose": "ada", "bytes": -1}, "Invalid bytes: Must be a whole number from 0"),
        (InvalidInput, {"kind": "crowd", "whose": "ada", "bytes": 1}, "Must be `user` or `team`"),
    ]
    for error, fields, message in wrong:
        with pytest.raises(error, match=message):
            office.do("set_limits", root, **fields)
    assert office.do("list_limits", root).limits == ()


def test_changes_of_limits_are_journalled(office: Office, root: Principal) -> None:
    """The audit log says who has set and cleared which limit."""
    office.do("set_limits", root, kind="team", whose="crew", memories=5, requests_day=9)
    office.do("clear_limits", root, kind="team", whose="crew", resource="memories")
    lines = office.do("audit", root, team="crew").lines[:2]
    assert [(line.actor, line.action, line.changes) for line in reversed(lines)] == [
        ("root", "set_limits", {"team": "crew", "memories": 5, "requests_day": 9}),
        ("root", "clear_limits", {"team": "crew", "limits": ["memories"]}),
    ]


@pytest.fixture
def sent(store: Any) -> Iterator[list[str]]:
    """Return the statements that are sent to the database, but for the beginnings of transactions."""
    found: list[str] = []

    def note(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        found.append(statement)

    event.listen(store.database.engine, "before_cursor_execute", note)
    yield found
    event.remove(store.database.engine, "before_cursor_execute", note)


def test_without_a_limit_a_write_reads_none(store: Any, office: Office, root: Principal, sent: list[str]) -> None:
    """A write costs no statement about limits where nobody has one on what is held, and few where somebody has."""

    def cost(records: Records) -> int:
        sent.clear()
        write(records, "a note", SHARED)
        return sum("live_size s" in one or "usage_limit" in one or "pg_advisory_xact_lock(" in one for one in sent) - (
            0 if store.sqlite else 1  # the lock of the namespace
        )

    assert cost(store.records) == 0
    office.do("set_limits", root, kind="team", whose="crew", requests_day=9)
    assert cost(store.records) == 0
    office.do("set_limits", root, kind="team", whose="crew", memories=9)
    assert cost(store.records) == (3 if store.sqlite else 4)


@pytest.mark.parametrize(("limits", "place"), LAST_PLACE.values(), ids=LAST_PLACE)
def test_many_writers_at_once_stop_at_the_limit(store: Any, limits: Defaults, place: Callable[[int], str]) -> None:
    """Threads of two replicas, each with connections of its own, write exactly as many memories as are allowed."""
    with closing(Database(store.database.url.render_as_string(hide_password=False))) as elsewhere:
        both = [Records(one, store.clock, lambda: None, None, Quotas(limits)) for one in (store.database, elsewhere)]

        def fits(number: int) -> bool:
            try:
                write(both[number % 2], f"note {number}", place(number))
            except QuotaFull:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            written = sum(pool.map(fits, range(24)))
    assert written == 10
    assert store.rows("SELECT count(*) FROM memory")[0][0] == 10
    assert not differs(store)


def test_a_store_of_the_first_schema_is_counted(store: Any) -> None:
    """A store that was written before there were limits comes to the newest schema with its memories counted."""
    store.add("before", OWN)
    store.delete(store.add("gone", ENGINE), ENGINE)
    triggers = [f"live_size_{name}" for name in ("insert", "delete", "leave", "enter")]
    store.by_hand(
        *([f"DROP TRIGGER {name}" for name in triggers] if store.sqlite else ["DROP FUNCTION memory_counted CASCADE"]),
        *(f"DROP TABLE {name}" for name in ("live_size", "request_rate", "usage_limit")),
        "UPDATE alembic_version SET version_num = '1'",
    )
    store.add("of an older replica", OWN)
    migrate(store.database)
    assert counted(store) == {OWN: (2, 25)}
    write(limited(store), "of a newer one")
    assert counted(store) == {OWN: (3, 39)}
