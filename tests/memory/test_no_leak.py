"""No leak: what is hidden, merged, superseded, expired, quarantined, private or another's shows in no answer at all.

Every reading operation of the table is tried, so that a new one is too, or fails here until somebody has judged it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import pytest

from callers import ADA
from recollect import App, Settings
from recollect.domain.enums import Choice, Scope, Sensitivity
from recollect.domain.requests import Filters
from recollect.domain.results import Fact, IndexLine, Memory, Prompt
from recollect.domain.search import View
from recollect.domain.verbs import VERBS, Verb
from recollect.errors import InvalidInput, NotFound
from run_operations import OTHER, add, always, by_hand, do, judged_by, rows

if TYPE_CHECKING:
    from conftest import Clock

MARK = "vermilionite"
SAID = f"The {MARK} ledger lists what the harbour costs."
LABELS = {
    "title": f"{MARK} title",
    "category": f"{MARK} category",
    "tags": (f"{MARK}-tag",),
    "files_read": (f"src/{MARK}.py",),
    "concepts": ("gotcha",),
    "session_id": f"{MARK} session",
    "project": f"{MARK} project",
    "speaker": MARK.capitalize(),
    "position": 1,
    "type": "discovery",
}
LET_IN = {"allow_private": True, "allow_secret": True}
APART = {
    "history": "the journal of what is gone is what it is for; it names fields, never what they say",
    "export_page": "an export carries what is hidden, as hidden; that it carries nothing else is tested with it",
    "count_projects": "it names projects and counts, and no memory; random calls judge its counts",
    "inbox": "it loads what waits as lists do; random calls judge it with all others",
    "source_rules": "it names sources, and those of private memories to their owner alone; tested with the inbox",
    "doctor": "it counts, and reads no memory out",
    "list_sessions": "it shows the caller's own sessions and no memory",
    "show_session": "it loads memories as `get_memory` does; that nobody else has the session is tested with it",
}
ON_PURPOSE = {
    ("merged", "get_memory"): "by its id it is shown, and says what it is part of",
    ("superseded", "get_memory"): "by its id it is shown, and says what replaced it",
    ("superseded", "find_similar"): "by its id it may be compared with what stands",
}


def _hidden(app: App, settings: Settings, clock: Clock) -> list[int]:
    one = add_marked(app)
    do(app, "memory_forget", id=str(one))
    return [one]


def _merged(app: App, settings: Settings, clock: Clock) -> list[int]:
    whole = add(app, "The harbour ledger lists what the harbour costs.")
    assert add(judged_by(app, always(Choice.MERGE)), SAID, tags=LABELS["tags"]) == whole
    do(app, "update_memory", id=str(whole), content="The harbour keeps a ledger.", tags=())
    return [one for (one,) in rows(settings, "SELECT id FROM memory WHERE merged_into IS NOT NULL")]


def _superseded(app: App, settings: Settings, clock: Clock) -> list[int]:
    one, by = add_marked(app), add(app, "The harbour ledger was closed.")
    with app.records.writing(ADA.namespaces()[1], "ada") as transaction:
        transaction.memories.supersede(one, by=by)
    return [one]


def _expired(app: App, settings: Settings, clock: Clock) -> list[int]:
    one = add_marked(app, ttl_days=1)
    clock.pass_days(1)
    return [one]


def _quarantined(app: App, settings: Settings, clock: Clock) -> list[int]:
    one = add_marked(app)
    by_hand(settings, "UPDATE memory SET sensitivity = 'cosmic' WHERE id = ?", one)
    return [one]


def _private(app: App, settings: Settings, clock: Clock) -> list[int]:
    return [add_marked(app, sensitivity="private"), add_marked(app, content=f"{SAID} And more.", sensitivity="secret")]


def _foreign(app: App, settings: Settings, clock: Clock) -> list[int]:
    do(app, "store_fact", OTHER, subject=MARK, predicate=f"{MARK} costs", object=f"{MARK} money")
    return [add(app, SAID, OTHER, **LABELS)]


STATES: dict[str, Callable[[App, Settings, Clock], list[int]]] = {
    "hidden": _hidden,
    "merged": _merged,
    "superseded": _superseded,
    "expired": _expired,
    "quarantined": _quarantined,
    "private": _private,
    "foreign": _foreign,
}


def add_marked(app: App, content: str = SAID, **more: Any) -> int:
    """Remember what must not show, with a fact of it; it waits for a decision."""
    one = add(app, content, **LABELS | more)
    with app.records.writing(ADA.namespace(Scope.PROJECT), ADA.user, tuple(Sensitivity)) as transaction:
        if (stored := transaction.lookup.by_id(one)) is not None:
            transaction.reviews.decide(stored, "comes from a source that is new")
    do(app, "store_fact", subject=MARK, predicate=f"{MARK} costs", object=f"{MARK} money", memory_id=str(one), **LET_IN)
    return one


def _searches(ids: list[int]) -> list[dict[str, Any]]:
    asked = (SAID, MARK, MARK[:-2], f"{MARK[:-1]}s", "what the harbour costs", f"did {MARK.capitalize()} say so?")
    return [{"query": query, "min_score": 0.0, "limit": 100} for query in asked]


def _lists(ids: list[int]) -> list[dict[str, Any]]:
    labels = ({}, {"category": LABELS["category"]}, {"tags": LABELS["tags"]}, {"session_id": LABELS["session_id"]})
    more = (
        {"project": LABELS["project"]},
        {"type": "discovery"},
        {"entity": f"src/{MARK}.py"},
        {"fact_type": "general"},
    )
    return [*labels, *more]


def _by_id(ids: list[int]) -> list[dict[str, Any]]:
    return [{"id": str(one)} for one in ids]


def _asking(operation: Verb) -> Callable[[list[int]], list[dict[str, Any]]] | None:
    """Return how to ask for what must not show, from the fields of the request; None where they do not tell."""
    required = {name for name, field in operation.fields.items() if field.is_required()}
    if required == {"query"}:
        return _searches
    if required == {"id"}:
        return _by_id
    return _lists if not required and issubclass(operation.request, Filters) else None


READS: dict[str, Callable[[list[int]], list[dict[str, Any]]]] = {
    operation.name: asking
    for operation in VERBS
    if not operation.writes and operation.name not in APART and (asking := _asking(operation))
} | {
    "recall": lambda ids: [*_searches(ids), {"query": SAID, "max_tokens": 2_000}],
    "search_by_file": lambda ids: [{"file": file} for file in (f"src/{MARK}.py", "src", f"{MARK}.py")],
    "search_by_concept": lambda ids: [{"concept": "gotcha"}],
    "find_similar": lambda ids: [*_by_id(ids), {"content": SAID, "threshold": -1.0, "limit": 100}],
    "query_facts": lambda ids: [{}, {"subject": MARK}, {"object": f"{MARK} money"}, {"memory_id": str(ids[0])}],
    "format_for_prompt": lambda ids: [{"max_tokens": 5_000}, {"query": SAID}, {"query": MARK}],
    "stats": lambda ids: [{}],
}
"""How each reading operation is asked about what must not show; of most its fields tell."""


def test_every_operation_is_judged() -> None:
    """Each operation of the table writes, or is tried below, or has a reason why not."""
    assert {operation.name for operation in VERBS if not operation.writes} == READS.keys() | APART.keys()


def parts(answer: Any) -> Iterator[Any]:
    """Walk through an answer, itself and whatever is in it."""
    yield answer
    if is_dataclass(answer):
        for one in fields(answer):
            yield from parts(getattr(answer, one.name))
    elif isinstance(answer, list | tuple):
        for one in answer:
            yield from parts(one)
    elif isinstance(answer, dict):
        for pair in answer.items():
            yield from parts(pair)


def ids_in(answer: Any) -> set[int]:
    """Return every memory that an answer names."""
    found: set[int] = set()
    for part in parts(answer):
        if isinstance(part, Memory | IndexLine):
            found.add(part.id)
        elif isinstance(part, Prompt):
            found.update(part.ids)
        elif isinstance(part, Fact) and part.memory_id is not None:
            found.add(part.memory_id)
    return found


@pytest.mark.parametrize("state", STATES)
def test_nothing_shows(app: App, settings: Settings, clock: Clock, state: str) -> None:
    """Neither the memory nor one word of it, its labels or its facts shows, even where all levels are let in."""
    other = add(app, "A heron stands on the pier.")
    hidden = STATES[state](app, settings, clock)
    app.vectors.sync()
    let_in = {} if state == "private" else LET_IN
    for operation, asked in ((name, asked) for name, asking in READS.items() for asked in asking(hidden)):
        if (state, operation) in ON_PURPOSE and "id" in asked:
            continue
        if "id" in asked:
            with pytest.raises(NotFound, match=f"^Memory {asked['id']} not found.$"):
                do(app, operation, **asked | let_in)
            continue
        answer = do(app, operation, **asked | let_in)
        assert ids_in(answer).isdisjoint(hidden), (operation, asked)
        assert MARK not in repr(answer).lower(), (operation, asked)
    assert other not in hidden


@pytest.mark.parametrize("operation", READS)
def test_what_may_be_seen_does_show(app: App, operation: str) -> None:
    """The same questions find the same memory while nothing is wrong with it, so that not finding it says something."""
    one = add_marked(app)
    app.vectors.sync()
    answers = [do(app, operation, **asked | LET_IN) for asked in READS[operation]([one])]
    if operation == "find_similar":
        answers = answers[1:]  # none resembles itself
    assert any(MARK in repr(answer).lower() for answer in answers)


@pytest.mark.parametrize("state", [*STATES])
def test_the_journal_names_fields_only(app: App, settings: Settings, clock: Clock, state: str) -> None:
    """The history of what cannot be seen holds not one word of it; that of others is empty."""
    for one in STATES[state](app, settings, clock):
        lines = do(app, "history", id=str(one), **LET_IN)
        assert MARK not in repr(lines).lower()
        assert bool(lines) is (state != "foreign")


def test_a_level_that_is_not_let_in_has_no_history(app: App) -> None:
    """A private memory's journal looks like that of an id which nobody ever had, unless the level is let in."""
    private, secret = add(app, SAID, sensitivity="private"), add(app, f"{SAID} More.", sensitivity="secret")
    assert do(app, "history", id=str(private)) == do(app, "history", id="999") == []
    assert do(app, "history", id=str(secret), allow_private=True) == []
    assert [line.action for line in do(app, "history", id=str(secret), allow_secret=True)] == ["insert"]
    do(app, "forget", id=str(secret), allow_secret=True)
    assert do(app, "history", id=str(secret)) == []
    assert [line.action for line in do(app, "history", id=str(secret), allow_secret=True)] == ["insert", "delete"]


def test_an_import_names_no_key_that_is_not_shown(app: App, clock: Clock) -> None:
    """Which sections a file has lost is told of public memories that live; the others' keys stay unknown."""
    one = add(app, "The pier is long.", key="notes.md#pier")
    add(app, "The pier is to be sold.", key=f"notes.md#{MARK}", sensitivity="secret")
    add(app, "The pier is let until noon.", key=f"notes.md#{MARK}-2", ttl_days=1)
    clock.pass_days(2)
    asked = {"where": "notes.md", "prefix": "", "keys": []}
    (problem,) = do(app, "import_batch", sections=(asked,)).problems
    assert f"`notes.md#pier` is not in the file any more; memory {one} stays" in problem.why


def test_a_taken_key_names_no_memory_that_is_not_shown(app: App) -> None:
    """Whoever asks for the key of a forgotten memory learns that it is taken, and not by which."""
    hidden, one = add(app, SAID, key="ledger"), add(app, "A heron stands on the pier.")
    do(app, "memory_forget", id=str(hidden))
    with pytest.raises(InvalidInput, match=r"^Invalid key: `ledger` is the key of another memory$"):
        do(app, "update_memory", id=str(one), key="ledger")
    do(app, "restore", id=str(hidden))
    with pytest.raises(InvalidInput, match=f"`ledger` is the key of memory {hidden}$"):
        do(app, "update_memory", id=str(one), key="ledger")


def test_what_waits_for_the_model_elsewhere_is_not_told(app: App, settings: Settings) -> None:
    """Recall says that memories wait to be embedded where they are the caller's, and nothing of another's."""
    one = add(app, "A heron stands on the pier.")
    queued = "INSERT INTO outbox (memory_id, namespace_id, chunks, embedded) SELECT id, namespace_id, 0, 0 FROM memory"
    by_hand(settings, f"{queued} WHERE id = ?", one)
    for caller, waits in ((ADA, True), (OTHER, False)):
        view = View(namespaces=caller.namespaces(), now=app.clock())
        assert bool(app.records.embeddings.unembedded(9, view)) is waits
    assert do(app, "recall", OTHER, query="heron").notes == ()


@pytest.mark.parametrize("state", ["expired", "quarantined", "private", "foreign"])
def test_an_export_leaves_it_here(app: App, settings: Settings, clock: Clock, state: str) -> None:
    """No page of an export carries what has expired, is of an unknown level, is not let in, or is another's."""
    STATES[state](app, settings, clock)
    after, pages = "journal:0", []
    while after:
        page = do(app, "export_page", after=after, **({} if state == "private" else LET_IN))
        after = page.after
        pages.append(page.lines)
    assert MARK not in repr(pages).lower()
