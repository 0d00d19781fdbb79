"""Current facts first: the newer of two notes on one subject leads, the older one stays and says so."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from callers import ADA
from clock import Clock
from recollect import App, Draft, Query, recall, remember
from recollect.domain.enums import Profile

OLD = "PgBouncer runs in session mode because prepared statements fail under transaction pooling."
NEW = "PgBouncer was switched to transaction mode, which handles prepared statements since version 1.22."
OTHER = "The nightly backup of the ledger goes to a second data centre."


@pytest.fixture(autouse=True)
def notes(app: App) -> None:
    """Store the new note first, so that no id tells the order, and trust the old one more."""
    remember(app, Draft(content=NEW, observed_at="2025-11-13"), ADA)
    remember(app, Draft(content=OLD, observed_at="2025-03-04", importance=0.9), ADA)
    remember(app, Draft(content=OTHER, observed_at="2025-06-01"), ADA)


@pytest.mark.parametrize("profile", [Profile.BALANCED, Profile.RELEVANCE])
def test_the_newer_note_leads(app: App, profile: Profile) -> None:
    """It comes first at its own date in every profile, its parts sum to its score, and the older one names it."""
    found = recall(app, Query(query="Which pool mode does PgBouncer run in?", profile=profile), ADA).hits
    assert [hit.memory.content for hit in found[:2]] == [NEW, OLD]
    assert [hit.older_than for hit in found[:2]] == [None, found[0].memory.id]
    assert sum(found[0].parts.values()) == pytest.approx(found[0].score)


def test_asked_for_the_past_the_older_note_leads(app: App) -> None:
    """The order turns round; the older one still says that there is a newer one."""
    found = recall(app, Query(query="Which pool mode did PgBouncer run in before?"), ADA).hits
    assert [hit.memory.content for hit in found[:2]] == [OLD, NEW]
    assert found[0].older_than == found[1].memory.id


@pytest.mark.parametrize("when", ["in March 2025", "on 2025-03-04", "20 months ago"])
def test_the_note_of_the_named_time_leads(app: App, clock: Clock, when: str) -> None:
    """A query that names a time lifts what is of it, whichever is newer; nothing is hidden, and the score says why."""
    clock.now = datetime(2026, 11, 22, tzinfo=UTC)
    found = recall(app, Query(query=f"Which pool mode did PgBouncer run in {when}?"), ADA).hits
    assert [hit.memory.content for hit in found[:2]] == [OLD, NEW]
    assert found[0].parts["period"] == pytest.approx(0.1)
    assert "period" not in found[1].parts
    assert all(0.0 <= hit.score <= 1.0 and sum(hit.parts.values()) == pytest.approx(hit.score) for hit in found)


def test_the_answer_says_it(app: App) -> None:
    """The JSON of the older hit carries the id of the newer one, that of the newer one does not have the field."""
    first, second = (
        hit.public() for hit in recall(app, Query(query="Which pool mode does PgBouncer run in?"), ADA).hits[:2]
    )
    assert "older_than" not in first
    assert second["older_than"] == first["id"]
    assert json.dumps(second)


def test_turns_of_a_talk_keep_their_order(app: App) -> None:
    """What was said in a conversation is not replaced by what was said later."""
    for day, content in enumerate((OLD, NEW), 1):
        remember(
            app,
            Draft(
                content=f"I think {content}",
                session_id=f"s{day}",
                position=1,
                observed_at=datetime(2026, 1, day, tzinfo=UTC),
            ),
            ADA,
        )
    talks = [hit for hit in recall(app, Query(query="PgBouncer pool mode"), ADA).hits if hit.memory.session_id]
    assert len(talks) == 2
    assert [hit.older_than for hit in talks] == [None, None]
