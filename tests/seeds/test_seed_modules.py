"""The eight modules of a memory that learns by itself: their events, priorities, capabilities, defaults and limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from callers import ADA
from recollect import App, Settings
from recollect.domain.lifecycle import EndSession, LifecycleSettings
from recollect.sessions import boundaries, compression, consolidation, temporal_scales
from recollect.sessions.pipeline import STAGES, passed
from run_operations import add, do, listed, rows

if TYPE_CHECKING:
    from conftest import Clock

CHAIN = {
    "prompt:submit": [("inject", 50)],
    "tool:post": [("boundaries", 100), ("capture", 150)],
    "session:start": [("capture", 50)],
    "session:end": [("capture", 100), ("consolidation", 200), ("compression", 300)],
}
OUR_OWN = {
    ("inject", "session:start"),
    ("inject", "tool:post"),
    ("boundaries", "prompt:submit"),
    ("capture", "prompt:submit"),
}
"""What we run besides: a session that begins shows memories anew, and people state rules in their prompts."""
PROVIDED = ("store", "memorability", "boundaries", "temporal", "consolidation", "compression")
END = EndSession(session_id="s1")
FOUND = "Found it: the deadlock is caused by two workers that lock the rows of stock in another order."
RULE = "From now on we always lock the rows of stock in the order of their sku."


def play(app: App, name: str = "s1") -> tuple[str, ...]:
    """Let a session of one rule and one finding pass; return the stages that failed."""
    answers = [
        do(app, "session_start", session_id=name),
        do(app, "prompt_submit", session_id=name, prompt=RULE),
        do(app, "tool_post", session_id=name, tool="Task", output=FOUND),
        do(app, "session_end", session_id=name),
    ]
    return tuple(stage for one in answers for stage in one.failed)


def without(app: App, modules: str) -> App:
    """Return the same store with some modules off."""
    settings = LifecycleSettings(modules_off=modules)
    object.__setattr__(app, "lifecycle", settings)
    return app


@pytest.mark.parametrize(
    ("event", "module", "priority"),
    [(event, *one) for event, stages in CHAIN.items() for one in stages],
    ids=lambda one: str(one),
)
def test_a_module_runs_on_its_event(event: str, module: str, priority: int) -> None:
    """Each module is on its hook, with the priority of the specification."""
    assert [one.priority for one in STAGES if (one.module, one.event.event) == (module, event)] == [priority]


@pytest.mark.parametrize("event", CHAIN)
def test_the_chain_of_an_event(event: str) -> None:
    """The stages of an event run in the order of their priorities, and nobody else is among them but ours."""
    stages = sorted((one for one in STAGES if one.event.event == event), key=lambda one: one.priority)
    theirs = [(one.module, one.priority) for one in stages if (one.module, event) not in OUR_OWN]
    assert theirs == CHAIN[event]


@pytest.mark.parametrize("name", PROVIDED)
def test_a_capability_is_there_by_its_name(app: App, name: str) -> None:
    """Each capability is provided under the name of the specification, and absent where its module is off."""
    on, _ = passed(app, END, ADA, [])
    off, _ = passed(without(app, name), END, ADA, [])
    assert (on.has(f"memory.{name}"), off.has(f"memory.{name}")) == (True, False)


@pytest.mark.parametrize("module", [*PROVIDED, "capture", "inject"])
def test_every_dependency_is_optional(app: App, module: str) -> None:
    """With any one module off a whole session passes without a failing stage."""
    assert play(without(app, module)) == ()
    ran = [replace(one, run=lambda _, one=one: one.module) for one in STAGES]
    assert module not in passed(app, END, ADA, ran)[1].results


def test_with_everything_off_nothing_is_captured(app: App) -> None:
    """All modules off are no error either."""
    assert play(without(app, ",".join([*PROVIDED, "capture", "inject"]))) == ()
    assert listed(app) == []


def test_without_the_store_nothing_is_stored(app: App) -> None:
    """The store is what all modules rest on: without it nothing is kept, and the session says so."""
    play(without(app, "store"))
    assert listed(app) == []
    assert "there is no store" in {one.reason for one in do(app, "show_session").observations}


def test_without_boundaries_capture_goes_on(app: App) -> None:
    """What is captured is the same, without a word on topics."""
    play(without(app, "boundaries"))
    assert any("lock the rows" in one.content for one in do(app, "list_memories").memories)
    assert do(app, "query_facts", predicate="boundary_at").facts == ()


def test_without_temporal_the_store_alone_answers(app: App) -> None:
    """A prompt gets what recall ranks best, without places by age."""
    add(app, "The staging database is reset every night at two.")
    off = without(app, "temporal")
    asked = do(off, "prompt_submit", session_id="s1", prompt="When is the staging database reset?")
    assert "every night at two" in asked.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memorability_threshold", 0.30),
        ("compression_min_age_days", 7.0),
        ("consolidation_decay_rate", 0.02),
        ("token_budget", 2000),
        ("max_inject_count", 5),
        ("checkpoint_every", 10),
        ("default_ttl_days", 90.0),
        ("max_captured", 1000),
    ],
)
def test_a_setting_has_its_default(name: str, value: float) -> None:
    """The defaults are those of the specification."""
    assert getattr(LifecycleSettings(), name) == value


def test_the_formulas_have_their_numbers() -> None:
    """Window, threshold, boost, decay, eviction, cluster and age are as the specification says."""
    assert (boundaries.OUTPUTS, compression.FEWEST, compression.MIN_AGE.days) == (5, 3, 7)
    assert (0.03, LifecycleSettings().consolidation_decay_rate) == (consolidation.BOOST, consolidation.DECAY)
    assert (consolidation.EVICTED_BELOW, consolidation.UNUSED.days) == (0.05, 90)
    assert sum(temporal_scales.ALLOCATION.values()) == LifecycleSettings().max_inject_count


def test_a_lower_threshold_keeps_what_was_routine(app: App) -> None:
    """Where memories are not captured, the threshold can be lowered; the session says what each score was."""
    routine = {"tool": "Task", "output": "The page of the shop has a header, a list of articles and a footer below it."}
    object.__setattr__(app, "lifecycle", LifecycleSettings(memorability_threshold=1.0))
    do(app, "session_start", session_id="s1")
    strict = do(app, "tool_post", session_id="s1", **routine | {"output": FOUND})
    object.__setattr__(app, "lifecycle", LifecycleSettings(memorability_threshold=0.0))
    loose = do(app, "tool_post", session_id="s2", **routine | {"output": FOUND})
    assert (strict.decision, loose.decision) == ("dropped", "kept")
    assert do(app, "show_session", session_id="s1").observations[-1].score is not None


def test_what_is_similar_makes_separate_entries(app: App, clock: Clock) -> None:
    """Texts that differ are memories of their own, until compression sums up three that are alike."""
    texts = ("expires after an hour", "expires early under load", "expired and made logins slow")
    ids = [add(app, f"The session cache of Redis {text}.", source="hook") for text in texts]
    assert len(set(ids)) == 3
    clock.pass_days(8)
    do(app, "session_end", session_id="s1")
    assert len(listed(app, type="compressed_summary")) == 1


def test_the_database_lies_in_the_data_folder(app: App, settings: Settings) -> None:
    """One SQLite file holds everything that is canonical."""
    one = add(app, "The mast is oak.")
    assert (settings.folder / "memory.db").is_file()
    assert rows(settings, "SELECT id FROM memory") == [(one,)]
