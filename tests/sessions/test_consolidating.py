"""Consolidation at the end of a session: captured memories fade and go, whoever ends how many sessions."""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from callers import ADA
from recollect import App, Settings
from recollect.domain.lifecycle import EndSession, LifecycleSettings
from recollect.sessions.consolidation import Faded, consolidate
from recollect.sessions.pipeline import STAGES, passed
from run_operations import OTHER, actions, add, do, ill, listed, live, rows, shown

if TYPE_CHECKING:
    from conftest import Clock

CAPTURED = LifecycleSettings()
ALL = LifecycleSettings(consolidate="all")


def captured(app: App, content: str = "The staging database is reset at night.", **fields: Any) -> int:
    """Remember something as the pipeline does."""
    return add(app, content, **{"source": "hook"} | fields)


def end(app: App, name: str = "s1", **fields: Any) -> None:
    """End a session."""
    do(app, "session_end", session_id=name, **fields)


def worth(app: App, memory_id: int) -> float:
    """Return the importance of a memory, without reading it by its id."""
    (one,) = [each for each in do(app, "list_memories", limit=100).memories if each.id == memory_id]
    return float(one.importance)


def test_the_stage_runs_at_the_end_of_a_session() -> None:
    """It is the stage of priority 200 on `session:end`."""
    (stage,) = [one for one in STAGES if one.module == "consolidation"]
    assert (stage.event.event, stage.priority) == ("session:end", 200)


def test_what_is_captured_fades(app: App, clock: Clock) -> None:
    """Ten days without use take 0.2, half of that from a decision; what somebody stored does not fade."""
    plain, chosen = captured(app), captured(app, "Zod was chosen over Yup.", fact_type="decision")
    stored = add(app, "The office is closed on Mondays.")
    live(app, clock, 10)
    end(app)
    assert [worth(app, one) for one in (plain, chosen, stored)] == pytest.approx([0.3, 0.4, 0.5])
    assert ill(app) == []


@pytest.mark.parametrize("source", ["hook", "extraction"])
@pytest.mark.parametrize("text", ["The staging database is reset at night.", "the staging database is reset at night"])
def test_what_a_call_remembers_again_fades_no_more(app: App, clock: Clock, source: str, text: str) -> None:
    """A captured memory keeps its origin when a person or an agent stores it, and is theirs to keep from then on."""
    one, other = captured(app, source=source), captured(app, "Zod was chosen over Yup.")
    assert add(app, text) == one
    assert add(app, "Zod was chosen over Yup.", source="hook") == other
    live(app, clock, 10)
    end(app)
    assert [worth(app, one), worth(app, other)] == pytest.approx([0.5, 0.3])
    assert shown(app, one).source == source
    assert consolidate(app, ADA, ALL).looked_at == 2


def test_a_merge_keeps_the_origin(app: App, clock: Clock) -> None:
    """A profile that was extracted stays so when a call adds to it, and fades no more."""
    one = add(app, "Works as a data engineer.", fact_type="profile", source="extraction")
    assert add(app, "Lives in Lisbon.", fact_type="profile") == one
    assert shown(app, one).source == "extraction"
    live(app, clock, 10)
    end(app)
    assert worth(app, one) == 0.5


def test_fading_does_not_make_a_memory_new(app: App, clock: Clock) -> None:
    """Its date stays, by which recall ranks."""
    one = captured(app)
    before = shown(app, one).updated_at
    live(app, clock, 10)
    end(app)
    assert shown(app, one).updated_at == before


def test_five_sessions_of_a_day_are_one(app: App, clock: Clock) -> None:
    """Whoever ends sessions often has what one end gives, and accesses are counted once."""
    one = captured(app)
    for _ in range(3):
        shown(app, one)
    gain = 0.03 * math.log(4)
    for number in range(5):
        end(app, f"s{number}")
    assert worth(app, one) == pytest.approx(0.5 + gain)
    for _ in range(10):
        clock.pass_days(1)
        for number in range(5):
            end(app, f"s{number}")
    assert worth(app, one) == pytest.approx(0.5 + gain - 0.2, abs=0.041)
    live(app, clock, 2)
    end(app)
    assert worth(app, one) == pytest.approx(0.5 + gain - 0.24, abs=0.021)


def test_ends_at_the_same_time_count_once(app: App, clock: Clock) -> None:
    """Of sessions that end together none takes a day or adds an access that another has."""
    ids = [captured(app, f"Berth {number} is let to boat {number}.", fact_type="case") for number in range(30)]
    app.records.usage.add(ids[:10], clock(), accessed=1)
    live(app, clock, 10)
    workers = [threading.Thread(target=consolidate, args=(app, ADA, CAPTURED)) for _ in range(6)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    gain = 0.03 * math.log(2)
    assert [worth(app, one) for one in ids] == pytest.approx([0.3 + gain] * 10 + [0.3] * 20)
    assert {actions(app, one).count("consolidate") for one in ids} == {1}


def test_slight_changes_leave_no_line(app: App, clock: Clock) -> None:
    """A day's fading alone writes nothing, and is not lost: the third day writes all three."""
    one = captured(app)
    for _ in range(3):
        clock.pass_days(1)
        end(app)
    assert worth(app, one) == pytest.approx(0.44)
    assert actions(app, one) == ["insert", "consolidate"]


def test_what_nobody_used_for_long_goes_and_comes_back(app: App, clock: Clock) -> None:
    """After ninety days it is hidden, with a line in the journal, and `restore` gives it its importance again."""
    one = captured(app, importance=0.8)
    live(app, clock, 89)
    end(app)
    assert listed(app) == [one]
    clock.pass_days(1)
    end(app)
    assert listed(app) == []
    assert actions(app, one) == ["insert", "consolidate", "evict"]
    do(app, "restore", id=str(one))
    assert worth(app, one) == 0.8
    end(app)
    assert listed(app) == [one]
    assert ill(app) == []


def test_history_tells_both_importances(app: App, clock: Clock) -> None:
    """The line says what a memory was worth before and after."""
    one = captured(app)
    live(app, clock, 10)
    end(app)
    (line,) = [each for each in do(app, "history", id=str(one)) if each.action == "consolidate"]
    assert line.changes["importance"] == pytest.approx([0.5, 0.3])


def test_restoring_takes_the_fading_back(app: App, clock: Clock) -> None:
    """It undoes what consolidation did since somebody set the importance, and days before it do not count again."""
    one = captured(app)
    live(app, clock, 10)
    end(app)
    do(app, "update_memory", id=str(one), importance=0.9)
    for _ in range(2):
        live(app, clock, 5)
        end(app)
    do(app, "restore", id=str(one))
    end(app)
    assert worth(app, one) == 0.9


def test_everything_fades_where_it_is_asked_for(app: App, clock: Clock) -> None:
    """With `consolidate = all` also what people store; the namespaces of others, and what is private, never do."""
    mine, other = add(app, "The mast is oak."), add(app, "The mast is pine.", OTHER)
    hidden = add(app, "The keel is lead.", sensitivity="private")
    team = add(app, "The crew meets on Mondays.", scope="team")
    live(app, clock, 10)
    assert consolidate(app, ADA, ALL) == Faded(1, 1, 0)
    kept = [do(app, "get_memory", OTHER, id=str(other)), shown(app, hidden), shown(app, team)]
    assert worth(app, mine) == pytest.approx(0.3)
    assert [one.importance for one in kept] == [0.5, 0.5, 0.5]


def test_a_wrong_clock_takes_nothing(app: App, clock: Clock) -> None:
    """A session that ends a year ahead counts one day, and so does the first one after a pause of a year."""
    one = captured(app)
    clock.pass_days(365)
    for _ in range(2):
        end(app)
    clock.pass_days(-365)
    assert worth(app, one) == 0.5  # a day's fading is too slight to be written
    live(app, clock, 10)
    end(app)
    assert worth(app, one) == pytest.approx(0.3)
    assert listed(app) == [one]


def test_what_is_captured_ends_unless_it_is_used(app: App, clock: Clock) -> None:
    """Its term of 90 days begins anew when a prompt or a question meets it, and a call's memory has none."""
    used, other, kept = captured(app), captured(app, "Zod was chosen over Yup."), captured(app, "The mast is oak.")
    by_call = add(app, "The office is closed on Mondays.")
    assert shown(app, other).expires_at == clock() + timedelta(days=90)
    assert add(app, "The mast is oak.") == kept
    assert [shown(app, one).expires_at for one in (kept, by_call)] == [None, None]
    clock.pass_days(60)
    do(app, "recall", query="When is the staging database reset?")
    clock.pass_days(31)
    assert sorted(listed(app)) == [used, kept, by_call]
    assert shown(app, used).expires_at == clock() + timedelta(days=59)
    object.__setattr__(app, "lifecycle", LifecycleSettings(default_ttl_days=0))
    assert shown(app, captured(app, "The keel is lead.")).expires_at is None


def test_of_too_many_the_least_used_go(app: App, clock: Clock) -> None:
    """Beyond `max_captured` a session's end hides the least used, oldest; what a call stored does not count."""
    by_call = add(app, "The office is closed on Mondays.")
    ids = [captured(app, f"Berth {number} is let to boat {number}.", fact_type="case") for number in range(5)]
    app.records.usage.add(ids[:2], clock(), accessed=1)
    for settings in (CAPTURED, ALL, LifecycleSettings(max_captured=3)):
        assert consolidate(app, ADA, settings).hidden == (2 if settings.max_captured == 3 else 0)
    assert sorted(listed(app)) == [by_call, *ids[:2], ids[4]]
    do(app, "restore", id=str(ids[2]))
    assert ids[2] in listed(app)


def test_the_rate_is_a_setting(app: App, clock: Clock) -> None:
    """A rate of nothing lets nothing fade."""
    one = captured(app)
    live(app, clock, 80)
    consolidate(app, ADA, LifecycleSettings(consolidation_decay_rate=0.0))
    assert worth(app, one) == 0.5


def test_a_module_that_is_off_changes_nothing(app: App, clock: Clock) -> None:
    """Its stage does not run then."""
    one = captured(app)
    live(app, clock, 50)
    off = LifecycleSettings(modules_off="consolidation")
    object.__setattr__(app, "lifecycle", off)
    passed(app, EndSession(session_id="s1"), ADA)
    assert worth(app, one) == 0.5


@pytest.mark.full
def test_many_memories_are_several_transactions(app: App, clock: Clock, settings: Settings) -> None:
    """No transaction changes more than a hundred memories, so that other writers get by; nothing is left out."""
    texts = [f"Berth {number} is let to boat {number}." for number in range(230)]
    for text in texts:
        captured(app, text, fact_type="case")
    live(app, clock, 10)
    opened = 0
    writing = app.records.writing

    def counted(*given: Any) -> Any:
        nonlocal opened
        opened += 1
        return writing(*given)

    object.__setattr__(app.records, "writing", counted)
    assert consolidate(app, ADA, CAPTURED).changed == 230
    assert opened == 3
    assert rows(settings, "SELECT count(*) FROM memory WHERE importance < 0.31") == [(230,)]
