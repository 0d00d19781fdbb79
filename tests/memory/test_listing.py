"""Lists: every memory once, in the order asked for, by any filter; by file, by concept, in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from recollect import App
from recollect.errors import InvalidInput
from run_operations import OTHER, add, do, listed

if TYPE_CHECKING:
    from conftest import Clock

ANIMALS = ("quokka", "heron", "wombat", "stork", "otter")


def add_over_days(app: App, clock: Clock) -> list[int]:
    """Remember one memory a day, each more important than the one before."""
    ids = []
    for place, animal in enumerate(ANIMALS):
        ids.append(add(app, f"The {animal} lives in enclosure {place}.", importance=place / 10))
        clock.pass_days(1)
    return ids


def test_every_order_holds(app: App, clock: Clock) -> None:
    """Lists come newest, oldest, last updated, most important, or most used first."""
    ids = add_over_days(app, clock)
    do(app, "update_memory", id=str(ids[1]), category="birds")
    clock.pass_days(1)
    for one in (ids[2], ids[2], ids[4]):
        app.records.usage.add([one], clock(), accessed=1)
    assert listed(app) == listed(app, order="updated") == [ids[1], *reversed([ids[0], *ids[2:]])]
    assert listed(app, order="newest") == ids[::-1]
    assert listed(app, order="Oldest ") == ids
    assert listed(app, order="important") == ids[::-1]
    assert listed(app, order="used")[:2] == [ids[2], ids[4]]


@pytest.mark.parametrize("operation", ["list_memories", "get_timeline"])
def test_pages_follow_one_another(app: App, clock: Clock, operation: str) -> None:
    """Pages show every memory exactly once, and each says how many there are."""
    ids = add_over_days(app, clock)
    pages = [do(app, operation, order="oldest", limit=2, offset=place) for place in (0, 2, 4, 6)]
    assert [[memory.id for memory in page.memories] for page in pages] == [ids[:2], ids[2:4], ids[4:], []]
    assert {page.total for page in pages} == {5}


def test_a_timeline_is_in_time_only(app: App, clock: Clock) -> None:
    """A timeline goes forwards, or from the end, of a type, a project and a session; no other order is taken."""
    ids = add_over_days(app, clock)
    one = add(app, "The gate was mended.", type="bugfix", project="zoo", session_id="s1")
    add(app, "The gate was painted.", type="change", project="zoo", session_id="s1")
    timeline = do(app, "get_timeline", type="bugfix", project="zoo", session_id="s1").memories
    assert [memory.id for memory in timeline] == [one]
    assert do(app, "get_timeline").memories[0].id == ids[0]
    with pytest.raises(InvalidInput, match="`newest` or `oldest`"):
        do(app, "get_timeline", order="used")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("src/a/parser.py", {"read", "both"}),
        ("parser.py", {"read", "both", "other"}),
        ("src/a", {"read", "both"}),
        ("src", {"read", "both", "other"}),
        ("./src/a/", {"read", "both"}),
        ("src\\a\\parser.py", {"read", "both"}),
        ("arser.py", set()),
        ("src/%", set()),
        ("tests/test_parser.py", {"both"}),
    ],
)
def test_files_are_found_by_path_end_and_folder(app: App, file: str, expected: set[str]) -> None:
    """A memory is found by a path it read or modified, by a folder above it, and by the end of it."""
    told = {
        "read": {"files_read": ("src/a/parser.py",)},
        "both": {"files_read": ("src/a/parser.py",), "files_modified": ("tests/test_parser.py",)},
        "other": {"files_modified": ("src/b/parser.py",)},
        "none": {},
    }
    ids = {add(app, f"The {name} one.", **fields): name for name, fields in told.items()}
    found = do(app, "search_by_file", file=file)
    assert {ids[memory.id] for memory in found.memories} == expected
    assert found.total == len(expected)


def test_concepts_are_found_alone_and_together(app: App) -> None:
    """A concept finds every memory about it; further concepts narrow that."""
    both = add(app, "The cache is cold at noon.", concepts=("gotcha", "how-it-works"))
    one = add(app, "The build caches nothing.", concepts=("gotcha",))
    add(app, "The tide is high.")
    by = "search_by_concept"
    assert {memory.id for memory in do(app, by, concept="Gotcha").memories} == {both, one}
    assert [memory.id for memory in do(app, by, concept="gotcha", concepts=("how-it-works",)).memories] == [both]
    with pytest.raises(InvalidInput, match="Invalid concept: Must be"):
        do(app, by, concept="no-such")


@pytest.mark.parametrize("filters", [{"entity": "parse_config"}, {"tags": ("Zoo",)}, {"category": "ops"}])
def test_filters_narrow_lists(app: App, filters: dict[str, Any]) -> None:
    """Entities, tags and categories narrow a list as they do recall; the total counts what is left."""
    one = add(app, "Call parse_config() before the start.", tags=("zoo",), category="ops")
    add(app, "The heron stands on the pier.")
    add(app, "Call parse_config() before the start.", OTHER, tags=("zoo",), category="ops")
    assert listed(app, **filters) == [one]
    assert do(app, "list_memories", **filters).total == 1
