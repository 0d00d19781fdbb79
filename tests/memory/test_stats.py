"""Stats: how many there are of what the caller may see, and how many there are beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect import App
from recollect.domain.enums import Choice
from run_operations import OTHER, add, always, do, judged_by

if TYPE_CHECKING:
    from conftest import Clock


def test_everything_is_counted_once(app: App, clock: Clock) -> None:
    """What lives is counted by scope and kind; what is hidden, expired, merged, replaced or private by that alone."""
    began = clock.now
    add(app, "The mast is oak.", category="ship", type="discovery")
    add(app, "The team has a boat.", scope="team", fact_type="decision")
    clock.pass_days(1)
    add(app, "The user prefers dark mode in the editor.", fact_type="preference")
    merging = judged_by(app, always(Choice.MERGE))
    add(merging, "The user prefers dark mode in the editor. The font is Fira Code.", fact_type="preference")
    old = add(app, "We use MySQL for the orders.", category="gone")
    add(app, "We switched from MySQL to Postgres for the orders.", supersedes=str(old))
    add(app, "The fair is on.", ttl_days=1, category="gone")
    add(app, "Ada is moving.", sensitivity="private", category="gone")
    hidden = add(app, "The heron is hidden.", category="gone")
    do(app, "memory_forget", id=str(hidden))
    add(app, "Bob sails.", OTHER, category="gone")
    do(app, "store_fact", subject="mast", predicate="is", object="oak")
    last = clock.now
    clock.pass_days(1)
    stats = do(app, "stats")
    assert (stats.memories, sum(stats.by_fact_type.values())) == (4, 4)
    assert stats.by_scope == {"personal": 0, "project": 3, "team": 1}
    assert stats.by_fact_type == {"general": 2, "decision": 1, "preference": 1}
    assert (stats.by_type, stats.by_category) == ({"discovery": 1}, {"ship": 1})
    assert (stats.facts, stats.expired, stats.deleted, stats.superseded, stats.merged) == (1, 1, 1, 1, 2)
    assert (stats.oldest_at, stats.newest_at) == (began, last)
    assert do(app, "stats", allow_private=True).memories == 5


def test_a_scope_is_counted_alone(app: App) -> None:
    """With a scope only that namespace is counted."""
    add(app, "The mast is oak.")
    add(app, "The team has a boat.", scope="team")
    assert do(app, "stats", scope="team").memories == 1
    assert do(app, "stats", scope="personal").memories == 0


def test_an_empty_store_has_nothing(app: App) -> None:
    """Where nothing was ever stored everything is zero, and nothing is oldest."""
    stats = do(app, "stats", OTHER)
    assert (stats.memories, stats.facts, stats.oldest_at, stats.newest_at) == (0, 0, None, None)
