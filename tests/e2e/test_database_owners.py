"""`RECOLLECT_MEMORY_DB` with real daemons: each database has its own, and one database has one through any home."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon_place import Place, alive, until


@pytest.mark.full
def test_each_database_has_a_daemon_of_its_own(place: Place, tmp_path: Path) -> None:
    """Clients of one data folder with different databases never talk to one daemon, and each is stopped by its own."""
    apart = place.changed(memory_db=tmp_path / "data" / "notes.db")
    place.execute("remember", "the mast is of oak")
    apart.execute("remember", "the keel is of elm")
    first, second = place.pid(), apart.pid()
    assert first != second
    assert apart.json("status")["pid"] == second
    assert (place.recall("which wood?"), apart.recall("which wood?")) == (
        ["the mast is of oak"],
        ["the keel is of elm"],
    )
    assert apart.rows("SELECT content FROM memory") == [("the keel is of elm",)]
    assert (apart.home / "logs" / "daemon.log").is_file()
    apart.cli("stop")
    until(lambda: not alive(second))
    assert (alive(first), place.json("status")["pid"]) == (True, first)


@pytest.mark.full
def test_one_database_has_one_daemon_through_two_homes(place: Place, tmp_path: Path) -> None:
    """Whoever names the database of another data folder, by a link too, talks to its daemon, and may stop it."""
    place.remember("the mast is of oak")
    link = tmp_path / "link.db"
    link.symlink_to(place.settings.database)
    for database in (place.settings.database, link):
        other = place.changed(home=tmp_path / "other", memory_db=database)
        assert "the mast is of oak" in other.execute("recall", "which wood?", "--json")
        assert other.pid() == place.pid()
        assert f"process {place.pid()} (recollect serve" in " ".join(other.cli("--in-process", "stats", code=5).split())
    assert other.json("stop") == {"stopped": True}
    assert place.json("status") == {"running": False}
