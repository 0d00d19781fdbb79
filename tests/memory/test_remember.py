"""Remember: what is stored, what is kept, what is said again, and what never gets in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from callers import ADA
from recollect import App, Caller, Draft, Get, Memory, Query, get_memory, recall, remember
from recollect.domain.enums import FactType, ObservationType, Scope, Sensitivity, Source
from recollect.domain.requests import MemoryFields
from recollect.domain.results import WriteStatus
from recollect.errors import NotFound

if TYPE_CHECKING:
    from conftest import Clock

pytestmark = pytest.mark.slow

WHOLE = {
    "content": "The scheduler retries three times. Then it gives up.",
    "key": "scheduler_retries",
    "scope": Scope.TEAM,
    "fact_type": FactType.PATTERN,
    "type": ObservationType.DISCOVERY,
    "concepts": ("gotcha", "how-it-works"),
    "category": "reliability",
    "tags": ("scheduler", "retry"),
    "importance": 0.9,
    "confidence": 0.8,
    "trust": 0.7,
    "sensitivity": Sensitivity.PUBLIC,
    "title": "Retries",
    "subtitle": "of the scheduler",
    "abstract": "Three retries",
    "overview": "The scheduler tries three times",
    "files_read": ("src/scheduler.py", "docs/retries.md"),
    "files_modified": ("src/backoff.py",),
    "when": ("edit src/scheduler.py", "fail RetryError"),
    "session_id": "session-7",
    "project": "orchestra",
    "discovery_tokens": 1234,
    "observed_at": datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC),
    "ttl_days": 30.0,
    "speaker": "Grace",
    "position": 3,
    "source": Source.IMPORT,
}


def stored(app: App, **fields: object) -> Memory:
    """Remember a draft and read the memory back whole."""
    return get_memory(app, Get(id=remember(app, Draft(**fields), ADA).id, allow_private=True, allow_secret=True), ADA)


def test_every_field_comes_back(app: App, clock: Clock) -> None:
    """Whatever a draft can say is stored and read back as it was said."""
    assert set(WHOLE) == set(MemoryFields.model_fields)
    memory = stored(app, **WHOLE)
    for name, value in WHOLE.items():
        if name != "ttl_days":
            assert getattr(memory, name) == value, name
    assert memory.expires_at == clock.now + timedelta(days=30)
    assert (memory.author, memory.namespace) == ("ada", "team:crew")
    assert memory.created_at == memory.updated_at == clock.now


def test_a_plain_draft_gets_the_defaults(app: App) -> None:
    """What nobody said has its default, and lies in the caller's project."""
    memory = stored(app, content="The build takes four minutes")
    assert (memory.fact_type, memory.scope, memory.namespace) == ("general", "project", "project:crew/engine")
    assert (memory.confidence, memory.importance, memory.trust) == (0.5, 0.5, 0.5)
    assert (memory.key, memory.category, memory.tags, memory.expires_at) == (None, None, (), None)


def test_the_first_and_the_second_time(app: App) -> None:
    """A new memory is stored, the same key again updates it; both say so as the seed does."""
    first = remember(app, Draft(content="npm installs the packages", key="installer"), ADA)
    again = remember(app, Draft(content="pnpm installs the packages", key="installer"), ADA)
    assert first.message == f"Memory stored successfully with ID: {first.id}"
    assert again.message == f"Memory updated successfully (ID: {first.id})"


def test_an_update_keeps_what_was_not_given(app: App) -> None:
    """A known key keeps every field that the new draft leaves out, but for summaries of the content that is gone."""
    stored(app, **WHOLE)
    memory = stored(app, content="The scheduler retries five times.", key="scheduler_retries", scope=Scope.TEAM)
    assert memory.content == "The scheduler retries five times."
    changed = {"content", "ttl_days", "confidence", "abstract", "overview"}
    for name in set(WHOLE) - changed:
        assert getattr(memory, name) == WHOLE[name], name


def test_an_update_replaces_what_was_given(app: App) -> None:
    """A known key takes over every field that the new draft gives, empty lists included."""
    stored(app, **WHOLE)
    given = WHOLE | {
        "content": "The scheduler never retries.",
        "fact_type": FactType.DECISION,
        "type": ObservationType.CHANGE,
        "concepts": (),
        "category": "policy",
        "tags": ("never",),
        "importance": 0.1,
        "confidence": 0.2,
        "trust": 0.3,
        "title": "No retries",
        "subtitle": "at all",
        "abstract": "None",
        "overview": "Not one",
        "files_read": (),
        "files_modified": ("src/other.py",),
        "when": (),
        "session_id": "session-8",
        "project": "other",
        "discovery_tokens": 5,
        "observed_at": datetime(2026, 2, 4, tzinfo=UTC),
        "speaker": "Ada",
        "position": 9,
        "source": Source.HOOK,
    }
    memory = stored(app, **given)
    for name, value in given.items():
        if name != "ttl_days":
            assert getattr(memory, name) == value, name


def test_the_same_content_is_the_same_memory(app: App) -> None:
    """Saying the same again refreshes the memory and takes a fifth of the doubt."""
    first = stored(app, content="Ada owns the release", confidence=0.5)
    again = stored(app, content="Ada owns the release")
    third = stored(app, content="Ada owns the release")
    assert first.id == again.id == third.id
    assert [first.confidence, again.confidence, third.confidence] == pytest.approx([0.5, 0.6, 0.68])


def test_the_same_content_with_a_confidence_is_taken_at_its_word(app: App) -> None:
    """Who says how sure they are is believed, also the second time."""
    stored(app, content="Ada owns the release")
    assert stored(app, content="Ada owns the release", confidence=0.9).confidence == 0.9


def test_changed_content_keeps_the_confidence(app: App) -> None:
    """New content under a known key keeps the confidence, like all that was not given, unless it is given."""
    stored(app, content="port is 8080", key="port", confidence=0.9)
    assert stored(app, content="port is 9090", key="port").confidence == 0.9
    assert stored(app, content="port is 7070", key="port", confidence=0.3).confidence == 0.3


def test_a_memory_without_key_adopts_one(app: App) -> None:
    """The same content with a key gives its unnamed memory that key, which then updates it."""
    plain = stored(app, content="The database is called ledger")
    named = stored(app, content="The database is called ledger", key="database")
    assert (named.id, named.key) == (plain.id, "database")
    assert stored(app, content="The database is called journal", key="database").id == plain.id


def test_two_keys_are_two_memories(app: App) -> None:
    """The same content under two keys is two memories, and each key goes on alone."""
    one = stored(app, content="timeout 30 seconds", key="read_timeout")
    two = stored(app, content="timeout 30 seconds", key="write_timeout")
    assert one.id != two.id
    stored(app, content="timeout 60 seconds", key="write_timeout")
    assert get_memory(app, Get(id=str(one.id)), ADA).content == "timeout 30 seconds"


def test_a_key_is_unique_per_namespace(app: App) -> None:
    """The same key in another scope, project or team is another memory."""
    callers = [ADA, Caller(user="ada", team="crew", project="other"), Caller(user="bob", team="x", project="engine")]
    drafts = [Draft(content=f"{scope} speaks", key="same", scope=scope) for scope in Scope]
    done = [remember(app, draft, caller) for caller in callers for draft in drafts]
    ada_everywhere = [done[3], done[5]]  # her personal and her team's namespace are the same in another project
    assert [one.status for one in done].count(WriteStatus.UPDATED) == len(ada_everywhere)
    assert len({one.id for one in done}) == 7


def test_layers_are_made_from_the_content(app: App) -> None:
    """Headings that nobody wrote are taken from the content, and made anew when it changes."""
    memory = stored(app, content="Deploys go out on Tuesday. Never before a weekend.", key="deploys")
    assert memory.title == memory.abstract == "Deploys go out on Tuesday."
    assert memory.overview == "Deploys go out on Tuesday. Never before a weekend."
    changed = stored(app, content="Deploys go out on Monday. At noon.", key="deploys")
    assert changed.title == changed.abstract == "Deploys go out on Monday."
    assert changed.overview == "Deploys go out on Monday. At noon."


def test_written_layers_are_kept(app: App) -> None:
    """A heading that somebody wrote survives new content; the others follow it."""
    stored(app, content="Deploys go out on Tuesday.", key="deploys", title="Our deploys")
    changed = stored(app, content="Deploys go out on Monday.", key="deploys")
    assert (changed.title, changed.abstract) == ("Our deploys", "Deploys go out on Monday.")


def test_expired_memories_are_gone_at_once(app: App, clock: Clock) -> None:
    """After its time a memory is neither recalled nor shown."""
    memory = stored(app, content="The office is closed for the fair", ttl_days=2)
    clock.pass_days(1.99)
    assert recall(app, Query(query="office closed"), ADA).hits
    clock.pass_days(0.01)
    assert recall(app, Query(query="office closed"), ADA).hits == ()
    with pytest.raises(NotFound, match=f"Memory {memory.id} not found"):
        get_memory(app, Get(id=str(memory.id)), ADA)


def test_remembering_again_revives(app: App, clock: Clock) -> None:
    """What expired comes back by key or by content, without an end unless one is given."""
    keyed = stored(app, content="The fair is on", key="fair", ttl_days=1)
    plain = stored(app, content="Parking is free", ttl_days=1)
    clock.pass_days(5)
    assert stored(app, content="The fair is back", key="fair").id == keyed.id
    revived = stored(app, content="Parking is free")
    assert (revived.id, revived.expires_at) == (plain.id, None)
    assert recall(app, Query(query="parking free"), ADA).hits


def test_a_living_expiry_is_kept(app: App, clock: Clock) -> None:
    """An update without a time to live keeps the one that runs; with one it starts from now."""
    first = stored(app, content="The fair is on", key="fair", ttl_days=10)
    clock.pass_days(5)
    assert stored(app, content="The fair goes on", key="fair").expires_at == first.expires_at
    assert stored(app, content="The fair stays", key="fair", ttl_days=10).expires_at == clock.now + timedelta(days=10)


@pytest.mark.parametrize(("said", "kind"), [("preferences", "preference"), ("Entities", "entity"), ("facts", "fact")])
def test_plurals_of_fact_types_are_taken(app: App, said: str, kind: str) -> None:
    """A fact type may come in the plural."""
    assert stored(app, content="something worth keeping", fact_type=said).fact_type == kind


def test_the_history_tells_what_happened(app: App) -> None:
    """Each write leaves a line: insert, refresh, update, with the fields that changed and who did it."""
    memory = stored(app, content="one", key="k")
    stored(app, content="one", key="k")
    stored(app, content="two", key="k", category="c")
    lines = app.records.journal.history(memory.id, ADA.namespaces())
    assert [line.action for line in lines] == ["insert", "refresh", "update"]
    assert [line.changes["fields"] for line in lines] == [["key"], ["confidence"], ["category", "content"]]
    assert {line.actor for line in lines} == {"ada"}
    assert app.records.journal.history(memory.id, ["team:other"]) == []


@pytest.mark.parametrize("level", [Sensitivity.PRIVATE, Sensitivity.SECRET])
def test_sensitive_memories_need_leave(app: App, level: Sensitivity) -> None:
    """What is private or secret is recalled and shown only when exactly that level is allowed."""
    remember(app, Draft(content="Ada is looking for another flat", key="flat", sensitivity=level), ADA)
    allowed = {f"allow_{level}": True}
    other = {"allow_secret" if level is Sensitivity.PRIVATE else "allow_private": True}
    assert recall(app, Query(query="looking for a flat", **allowed), ADA).hits[0].memory.key == "flat"
    assert get_memory(app, Get(id="1", **allowed), ADA).sensitivity is level
    for denied in ({}, other):
        assert recall(app, Query(query="looking for a flat", **denied), ADA).hits == ()
        with pytest.raises(NotFound):
            get_memory(app, Get(id="1", **denied), ADA)


def test_long_content_is_found_by_its_end(app: App) -> None:
    """Long content is stored whole, and what only its last paragraph means is found."""
    start = "The warehouse counts boxes and pallets every night. " * 250
    end = "\n\n" + "The chef prefers frying onions in butter, and bakes bread with it every morning. " * 3
    memory = stored(app, content=start + end, key="long")
    assert memory.content == start + end
    query = Query(query="culinary fat of choice in the kitchen", min_score=0.0)
    hit = recall(app, query, ADA).hits[0]
    assert hit.memory.id == memory.id
    stored(app, content=start, key="long")
    assert all(other.signals.cosine < hit.signals.cosine - 0.1 for other in recall(app, query, ADA).hits)


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Ünïcödé größe straße", "strasse"),
        ("Le café est fermé le lundi", "cafe"),
        ("Запуск назначен на вторник", "вторник"),
        ("The rocket 🚀 emoji means shipped", "🚀 rocket"),
        ("שלום עולם", "שלום"),
        ("line one\r\n\tline two  \n", "line two"),
        ("SELECT * FROM t WHERE a = 'b' OR \"NOT\" -- ; DROP", 'OR "NOT"'),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
def test_any_text_is_kept_as_it_is(app: App, content: str, query: str) -> None:
    """Content comes back character by character, and is found by its words without accents, in any script."""
    memory = stored(app, content=content)
    assert memory.content == content
    assert recall(app, Query(query=query), ADA).hits[0].memory.id == memory.id


def test_a_memory_outlives_its_process(open_store: Callable[..., App]) -> None:
    """What was written is there when the store is opened again."""
    first = open_store()
    memory = stored(first, content="The archive moved to the cellar")
    first.close()
    assert get_memory(open_store(), Get(id=str(memory.id)), ADA).content == "The archive moved to the cellar"
