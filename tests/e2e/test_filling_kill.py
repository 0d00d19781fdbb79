"""Taking in what agents remembered, in a real daemon that is killed meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents_home import RULE, folder_name, furnish, transcript, written
from daemon_place import Place, until
from recollect.transfer.remembered import Plan

RULES = (
    "All invoices are kept in euros, because the bank refuses any other currency.",
    "Never rename a column of the ledger: the auditors read it by its old names.",
    "Pictures of the fleet are stored as WebP, since the tablets on board have little space.",
    "The crane software must stay on Java 17, as the vendor certifies nothing newer.",
)


@pytest.mark.full
def test_a_killed_daemon_goes_on(place: Place, tmp_path: Path) -> None:
    """`init` returns at once; whatever a killed daemon left waiting, the next one takes in, and nothing twice."""
    user, checkout = tmp_path / "user", tmp_path / "engine"
    written(checkout / ".git" / "HEAD", "")
    furnish(user, checkout)
    for number, more in enumerate(RULES):
        file = user / ".claude" / "projects" / folder_name(checkout) / f"m{number}.jsonl"
        written(file, transcript(checkout, f"m{number}", more))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "RECOLLECT_PROJECT"):
        place.environment.pop(name, None)
    place.environment["HOME"] = str(user)
    said = place.cli("init", "--take-in", cwd=checkout)
    assert "`recollect status` says how far it is." in said
    until(lambda: Plan(place.home).files[0].tries or not Plan(place.home).waiting)
    place.kill()
    before = Plan(place.home)
    if before.waiting:
        assert "the next start of the daemon goes on" in place.cli("status", cwd=checkout)
    place.cli("recall", "when do we deploy", cwd=checkout)
    until(lambda: not Plan(place.home).waiting)
    done = "9 files of what agents remembered are taken in"
    assert done in place.cli("status", cwd=checkout)
    stored = [text for (text,) in place.rows("select content from memory where deleted_at is null")]
    assert {RULE, *RULES} <= set(stored)
    assert len(stored) == len(set(stored))
