"""The export of the journal, page by page: each line once, in its chain, and only for whoever may read it."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from account_admin import Office
from recollect.auth.principal import Principal
from recollect.domain.accounts import AuditRecord
from recollect.errors import Forbidden, InvalidInput
from recollect.store.journal import FIRST, SIGNED, chained
from recollect.store.sql.tables import journal


def exported(office: Office, who: Principal, *, limit: int = 3, after: Any = (), **fields: Any) -> list[AuditRecord]:
    """Return every line of an export, read in pages of so many lines."""
    found: list[AuditRecord] = []
    while True:
        page = office.do("export_audit", who, limit=limit, after=after, **fields)
        found += page.records
        after = page.after
        if not page.more:
            return found


def test_an_export_is_the_audit_from_its_beginning(office: Office, root: Principal) -> None:
    """Page by page come the lines that `audit` shows, each once; a later export goes on behind them."""
    office.do("add_project", root, team="crew", project="vault", private=True)
    for namespace in ("user:ada", "team:crew", "project:crew/engine", "project:crew/vault", "team:crew"):
        office.store.add("The mast is pine.", namespace)
    shown = office.do("audit", root, limit=500).lines
    whole = exported(office, root)
    assert sorted(record.number for record in whole) == sorted(line.number for line in shown)
    assert {record.namespace for record in whole} == {"accounts", "team:crew", "project:crew/engine"}
    assert "pine" not in str(whole)
    end = office.do("export_audit", root, limit=500).after
    assert exported(office, root, after=end) == []
    office.store.add("The keel is iron.", "project:crew/engine")
    office.store.add("The pier is long.", "project:crew/hull")
    assert [one.namespace for one in exported(office, root, after=end)] == ["project:crew/engine", "project:crew/hull"]


def test_each_line_proves_itself(office: Office, root: Principal) -> None:
    """An admin of the deployment gets what each hash is made of: a chain from its first line on, without gaps."""
    for content in ("The mast is pine.", "The keel is iron."):
        office.store.add(content, "team:crew")
    tips: dict[str, str] = {}
    for record in exported(office, root):
        assert record.previous == tips.get(record.namespace, FIRST)
        assert record.hash == chained(record.previous, {name: getattr(record, name) for name in SIGNED})
        tips[record.namespace] = record.hash
    assert set(tips) == {"accounts", "team:crew"}


def test_only_who_may_read_the_audit_exports_it(office: Office, root: Principal) -> None:
    """An admin of a team gets the lines of that team, without hashes of lines they may not see; a member gets none."""
    office.do("add_team", root, team="dock")
    ada = office.enter(office.join(root, "ada", team="crew", role="admin").token)
    bob = office.enter(office.join(root, "bob", team="crew").token)
    for namespace in ("team:crew", "project:crew/engine", "team:dock"):
        office.store.add("The mast is pine.", namespace)
    found = exported(office, ada)
    assert {one.namespace for one in found} == {"team:crew", "project:crew/engine"}
    assert {(one.state, one.previous, one.hash) for one in found} == {(None, None, None)}
    assert exported(office, ada, team="crew") == found
    for who, fields in ((bob, {}), (bob, {"team": "crew"}), (ada, {"team": "dock"})):
        with pytest.raises(Forbidden):
            office.do("export_audit", who, **fields)


def test_a_cursor_shows_nothing_more(office: Office, root: Principal) -> None:
    """Numbers of lines that somebody may not read, or that are none, change nothing in what their export shows."""
    ada = office.enter(office.join(root, "ada", team="crew", role="admin").token)
    office.store.add("The mast is pine.", "team:crew")
    office.store.add("The keel is iron.", "user:eve")
    with office.store.database.reading() as connection:
        foreign = connection.execute(select(journal.c.id).where(journal.c.namespace == "user:eve")).scalars().all()
    assert foreign
    assert exported(office, ada, after=[*foreign, 2_000_000_000]) == exported(office, ada)
    with pytest.raises(InvalidInput, match="after"):
        office.do("export_audit", ada, after=["first"])


def test_days_narrow_an_export(office: Office, root: Principal) -> None:
    """Only lines of the asked times are exported, and a cursor holds for other times too."""
    office.store.add("The mast is pine.", "team:crew")
    whole = exported(office, root)
    latest = max(record.at for record in whole)
    assert exported(office, root, since=latest + timedelta(seconds=1)) == []
    assert exported(office, root, until=latest) == whole
    end = office.do("export_audit", root, limit=500, until=latest).after
    assert exported(office, root, after=end) == []


def test_a_line_that_is_committed_late_is_not_lost(office: Office, root: Principal) -> None:
    """A writer whose lines have lower numbers, and who commits after an export has passed them, is exported later."""
    if office.store.sqlite:
        office.store.add("The keel is iron.", "project:crew/hull")
        assert exported(office, root)[-1].namespace == "team:crew"
        return
    begun, passed = threading.Event(), threading.Event()

    def write_slowly() -> None:
        with office.store.records.writing("project:crew/hull", "ada") as writing:
            writing.journal.refuse("content", ["token"])
            begun.set()
            passed.wait()

    slow = threading.Thread(target=write_slowly)
    slow.start()
    begun.wait()
    office.store.add("The mast is pine.", "project:crew/engine")
    first = office.do("export_audit", root, limit=500)
    passed.set()
    slow.join()
    late = exported(office, root, after=first.after)
    assert [record.namespace for record in late] == ["project:crew/hull"]
    assert late[0].number < max(record.number for record in first.records)
