"""Compression at the end of a session: old memories about the same rank below one summary, and lose nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callers import ADA
from recollect import App, Settings
from recollect.domain.enums import Source
from recollect.domain.lifecycle import EndSession, LifecycleSettings
from recollect.sessions.compression import Compressed, compress
from recollect.sessions.pipeline import STAGES, passed
from run_operations import actions, add, by_hand, do, ill, listed, live, shown, token

if TYPE_CHECKING:
    from conftest import Clock

CAPTURED = LifecycleSettings()
CACHE = (
    "The session cache of Redis expires after an hour.",
    "Redis holds the session cache; it expires early under load.",
    "An expired session cache in Redis made logins slow.",
)


def captured(app: App, **fields: Any) -> list[int]:
    """Remember three things about the same as the pipeline does, and one about something else."""
    given = {"source": "hook"} | fields
    ids = [
        add(app, text, files_read=(f"{place}.py",), tags=(f"t{place}",), importance=0.5 + place / 10, **given)
        for place, text in enumerate(CACHE)
    ]
    add(app, "Sails were mended in Brest by Ada Lovelace.", **given)
    return ids


def end(app: App) -> None:
    """End a session."""
    do(app, "session_end", session_id="s1")


def summary_of(app: App, ids: list[int]) -> int | None:
    """Return what all of these memories gave way to."""
    (found,) = {shown(app, one).superseded_by for one in ids}
    return found


def test_the_stage_runs_at_the_end_of_a_session() -> None:
    """It is the stage of priority 300 on `session:end`."""
    (stage,) = [one for one in STAGES if one.module == "compression"]
    assert (stage.event.event, stage.priority) == ("session:end", 300)


def test_old_memories_about_the_same_become_one(app: App, clock: Clock) -> None:
    """After a week a session's end writes a summary with everything of its members, which stay findable below it."""
    ids = captured(app)
    clock.pass_days(6.9)
    end(app)
    assert summary_of(app, ids) is None
    clock.pass_days(0.2)
    end(app)
    summary = summary_of(app, ids)
    assert summary is not None
    memory = shown(app, summary)
    assert (memory.type, memory.source) == ("compressed_summary", Source.COMPRESSION)
    assert all(text in memory.content for text in CACHE)
    assert (set(memory.files_read), set(memory.tags)) == ({"0.py", "1.py", "2.py"}, {"t0", "t1", "t2"})
    assert memory.importance == max(shown(app, one).importance for one in ids)
    assert memory.title == "3 memories about cache, expires, redis, session"
    first, *others = do(app, "recall", query="when does the session cache of Redis expire?").hits
    assert first.memory.id == summary
    assert {hit.memory.id for hit in others} >= set(ids)
    assert ill(app) == []


def test_a_second_end_writes_nothing(app: App, clock: Clock) -> None:
    """Neither members nor summaries are compressed again."""
    captured(app)
    clock.pass_days(8)
    end(app)
    before = listed(app)
    clock.pass_days(8)
    end(app)
    assert listed(app) == before


def test_what_people_store_stays_as_it_is(app: App, clock: Clock) -> None:
    """Only what the pipeline made is compressed, unless the setting says all."""
    ids = captured(app, source="tool")
    clock.pass_days(8)
    end(app)
    assert summary_of(app, ids) is None
    assert compress(app, ADA, LifecycleSettings(consolidate="all")).members == 3
    assert summary_of(app, ids) is not None


def test_facts_stay_with_members_and_outlive_their_eviction(app: App, clock: Clock) -> None:
    """The summary shows every member's facts once; what is evicted leaves them to it, what is forgotten takes them."""
    ids = captured(app)
    for place, one in enumerate(ids):
        do(app, "store_fact", subject="cache", predicate=f"p{place}", object="Redis", memory_id=str(one))
    clock.pass_days(8)
    end(app)
    summary = summary_of(app, ids)

    def predicates(**fields: Any) -> list[str]:
        return sorted(one.predicate for one in do(app, "query_facts", **fields).facts)

    assert predicates(subject="cache") == predicates(memory_id=str(summary)) == ["p0", "p1", "p2"]
    do(app, "forget", id=str(ids[0]))
    assert predicates(subject="cache") == ["p1", "p2"]
    with app.records.writing(ADA.namespaces("project")[0], "ada") as transaction:
        transaction.memories.delete(ids[1], "evict")
    assert predicates(subject="cache") == predicates(memory_id=str(summary)) == ["p1", "p2"]
    do(app, "forget", id=str(summary))
    assert predicates(subject="cache") == ["p2"]
    assert ill(app) == []
    assert not [one.seen for one in app.checks(deep=True) if not one.well]


def test_entities_of_the_members_find_the_summary(app: App, clock: Clock) -> None:
    """What a member names in a sentence that the summary leaves out, the summary names too, also after a reindex."""
    for place, text in enumerate(CACHE):
        add(app, f"{text} It was {('Marie Curie', 'Ada Lovelace', 'Alan Turing')[place]}.", source="hook")
    clock.pass_days(8)
    end(app)

    def found() -> set[str]:
        listing = do(app, "list_memories", type="compressed_summary").memories
        return {entity.name for one in listing for entity in one.entities}

    assert found() >= {"Marie Curie", "Ada Lovelace", "Alan Turing"}
    app.records.derived.replace_entities(lambda text: ())
    assert found() >= {"Marie Curie", "Ada Lovelace", "Alan Turing"}


def test_a_forgotten_member_is_not_quoted_any_more(app: App, clock: Clock) -> None:
    """Its lines go from the summary, which goes with the last of them; recall finds no word of it."""
    ids = captured(app)
    clock.pass_days(8)
    end(app)
    summary = summary_of(app, ids) or 0
    done = do(app, "forget", id=str(ids[1]))
    assert done.notes[0] == f"Memory {summary} no longer quotes it."
    memory = shown(app, summary)
    assert ("under load" in f"{memory.content} {memory.overview}", CACHE[0] in memory.content) == (False, True)
    assert ids[1] not in {hit.memory.id for hit in do(app, "recall", query="expires early under load").hits}
    do(app, "forget", id=str(ids[0]))
    do(app, "forget", id=str(ids[2]))
    assert [one.id for one in do(app, "list_memories").memories] == [ids[2] + 1]
    assert ill(app) == []


def test_what_is_restored_stays_by_itself(app: App, clock: Clock) -> None:
    """A member that is made current again is never compressed again, nor are those whose summary is forgotten."""
    ids = captured(app)
    clock.pass_days(8)
    end(app)
    summary = summary_of(app, ids)
    do(app, "restore", id=str(ids[0]))
    assert shown(app, ids[0]).superseded_by is None
    do(app, "forget", id=str(summary))
    clock.pass_days(8)
    end(app)
    assert summary_of(app, ids) is None


def test_members_go_after_their_summary(app: App, clock: Clock) -> None:
    """Nobody uses either: first the summary is hidden, at the next end its members; `restore` brings each back."""
    object.__setattr__(app, "lifecycle", LifecycleSettings(default_ttl_days=0))
    ids = captured(app)
    clock.pass_days(8)
    end(app)
    summary = summary_of(app, ids)
    live(app, clock, 120)
    end(app)
    assert set(listed(app)) == set(ids)
    end(app)
    assert listed(app) == []
    do(app, "restore", id=str(ids[0]))
    assert listed(app) == [ids[0]]
    assert "evict" in actions(app, summary or 0)


def test_no_more_than_five_summaries_at_once(app: App, clock: Clock) -> None:
    """The work of one end is bounded; the next end goes on."""
    for number in range(7):
        words = [f"{chr(97 + number) * 4}{one}" for one in ("mast", "keel", "sail")]
        for part in ("oak", "pine", "teak"):
            add(app, f"{' '.join(words)} {part}", source="hook", fact_type="case")
    clock.pass_days(8)
    assert [len(compress(app, ADA, CAPTURED).ids) for _ in range(3)] == [5, 2, 0]


def test_a_secret_of_old_is_not_compressed(app: App, settings: Settings, clock: Clock) -> None:
    """Where the gate refuses the summary the members stay, and the refusal is on record."""
    ids = captured(app)
    clock.pass_days(8)
    by_hand(settings, "UPDATE memory SET content = content || ? WHERE id = ?", f" The key is {token()}", ids[0])
    assert compress(app, ADA, CAPTURED, lambda some: some[0].content).ids == ()
    assert summary_of(app, ids) is None


def test_another_text_may_be_said(app: App, clock: Clock) -> None:
    """Whoever knows a better text of a cluster than its central sentences gives it, and it passes the gate."""
    ids = captured(app)
    clock.pass_days(8)
    done = compress(app, ADA, CAPTURED, lambda some: f"{len(some)} notes on the cache")
    assert done == Compressed(4, done.ids, 3)
    assert shown(app, summary_of(app, ids) or 0).content == "3 notes on the cache"


def test_a_module_that_is_off_compresses_nothing(app: App, clock: Clock) -> None:
    """Its stage does not run then."""
    ids = captured(app)
    clock.pass_days(8)
    off = LifecycleSettings(modules_off="compression")
    object.__setattr__(app, "lifecycle", off)
    passed(app, EndSession(session_id="s1"), ADA)
    assert summary_of(app, ids) is None
