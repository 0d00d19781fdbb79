"""Filtered views: what each filter lets through is decided in SQL, the same on every database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import combinations
from typing import Any

import pytest

from callers import EVERY_LEVEL, own
from recollect.domain.enums import Concept, FactType, ObservationType, Sensitivity
from recollect.domain.fields import MAX_LABELS
from recollect.domain.search import View
from recollect.store.sql.visibility import passing, values_of

HERE = "project:crew/engine"
DAY = datetime(2026, 2, 10, tzinfo=UTC)
WANTED = {
    "fact_type": FactType.CASE,
    "category": "ops",
    "type": ObservationType.BUGFIX,
    "tags": ("urgent", "billing"),
    "concepts": (Concept.GOTCHA, Concept.TRADE_OFF),
    "project": "atlas",
    "session_id": "s-1",
    "file": "src/app",
    "since": DAY,
    "until": DAY + timedelta(days=2),
    "sensitivity": Sensitivity.PRIVATE,
}
WHOLE = {
    "fact_type": FactType.CASE,
    "category": "ops",
    "type": "bugfix",
    "tags": ("Urgent", "other", "BILLING"),
    "concepts": ("trade-off", "pattern", "gotcha"),
    "project": "atlas",
    "session_id": "s-1",
    "files_modified": ("README.md", "src/app/main.py"),
    "observed_at": DAY + timedelta(days=1),
    "sensitivity": "private",
}
OTHERWISE = {
    "fact_type": {"fact_type": FactType.FACT},
    "category": {"category": "Ops"},
    "type": {"type": None},
    "tags": {"tags": ("urgent", "billings")},
    "concepts": {"concepts": ("gotcha", "pattern")},
    "project": {"project": "atlas2"},
    "session_id": {"session_id": "S-1"},
    "file": {"files_modified": ("src/app2/main.py", "app")},
    "since": {"observed_at": DAY - timedelta(microseconds=1)},
    "until": {"observed_at": DAY + timedelta(days=2, microseconds=1)},
    "sensitivity": {"sensitivity": "public"},
}
SPELLED = [
    ("Ops", "oPS", True),
    ("Größe", "GRÖßE", True),
    ("МОСКВА", "москва", True),
    ("数据", "数据", True),
    ("operations", "operation", False),
    ("mill", "m%", False),
    ("mill", "m_ll", False),
    ("o%", "O%", True),
    ("Strasse", "strase", False),
    ("Grösse", "grosse", False),
    ('it\'s "x"', 'IT\'S "X"', True),
    ("-- ); DROP TABLE label", "-- ); drop table LABEL", True),
]
PATHS = ("src/app/b.py", "src/app/ab.py", "/home/ada/src/app/b.py", ".\\src\\app\\b.py", "./src/app/b.py", "x\\b.py")
FOUND: dict[str, set[int]] = {
    "src/app/b.py": {0, 2, 3, 4},
    "app/b.py": {0, 2, 3, 4},
    "b.py": {0, 2, 3, 4, 5, 6},
    "src": {0, 1, 3, 4, 9, 10},
    "src/app": {0, 1, 3, 4},
    "/home/ada": {2},
    "/": {2},
    "SRC": {10},
    "src/%": {9},
    "%": set(),
    "_.py": set(),
    "pp/b.py": set(),
    "src/ap": set(),
    "/src/app/b.py": {0, 3, 4, 6},
    "/home/bob/src/app/b.py": {0, 3, 4, 6},
    "C:/code/x/b.py": {5, 6},
}
KEYS = ("/a/b", "/a/B", "/A/b", "/a/bc", "/ab", "/a/b/c", "/a_b", "a/b")
BY_KEY: dict[str, set[int]] = {
    "/a/b": {0},
    "/a/B": {1},
    "/a/": {0, 1, 3, 5},
    "/a/b/": {5},
    "/": {0, 1, 2, 3, 4, 5, 6},
    "a/": {7},
    "/_/": set(),
    "/%": set(),
}


def listed(store: Any, view: View) -> list[int]:
    """Return what the database lists when it looks for all that passes, in order."""
    with store.database.reading() as connection:
        return sorted(connection.execute(passing(view), values_of(connection, view)).scalars())


def seen(store: Any, **wanted: Any) -> set[int]:
    """Return what a view with these filters sees, having made sure that look-up, list and count agree."""
    view = store.view(**{"sensitivities": EVERY_LEVEL} | wanted)
    found = store.sees(view)
    assert listed(store, view) == sorted(found)
    assert store.records.count(view) == len(found)
    assert store.records.newest(view, 100) == sorted(found, reverse=True)
    return found


@pytest.mark.parametrize("name", WANTED)
def test_each_filter_lets_through_what_meets_it(store: Any, name: str) -> None:
    """A filter alone shows what meets it, and nothing that misses it by a little."""
    meets = store.add("meets", **WHOLE)
    store.add("misses", **WHOLE | OTHERWISE[name])
    store.add("bare", observed_at=DAY + timedelta(days=9 if name == "until" else -9))
    store.add("elsewhere", "user:ada", **WHOLE)
    assert seen(store, **{name: WANTED[name]}) == {meets}


def test_filters_are_taken_together(store: Any) -> None:
    """Any two filters show what meets both, and all of them what meets them all."""
    ids = {name: store.add(f"all but {name}", **WHOLE | changed) for name, changed in OTHERWISE.items()}
    meets = store.add("meets all", **WHOLE)
    for one, other in combinations(WANTED, 2):
        expected = {meets, *(number for name, number in ids.items() if name not in (one, other))}
        assert seen(store, **{one: WANTED[one], other: WANTED[other]}) == expected
    assert seen(store, **WANTED) == {meets}


def test_a_view_says_whether_it_is_filtered(store: Any) -> None:
    """Every filter makes a view a filtered one; what the caller is let in on does not."""
    assert not store.view(sensitivities=EVERY_LEVEL).filtered
    assert all(store.view(**{name: value}).filtered for name, value in WANTED.items())


def test_tags_are_the_same_letter_case_aside(store: Any) -> None:
    """A tag is found in any letter case of any alphabet, whole, and nothing in it is a wildcard or SQL."""
    ids = [store.add(f"tagged {stored}", tags=("first", stored)) for stored, _, _ in SPELLED]
    for (_, asked, carried), memory_id in zip(SPELLED, ids, strict=True):
        expected = {memory_id} if carried else set()
        assert seen(store, tags=(asked,)) == expected, asked
        assert seen(store, tags=("FIRST", asked)) == expected, asked


def test_every_tag_must_be_carried(store: Any) -> None:
    """However many tags are asked for, each must be there; a tag is no concept and no file."""
    many = tuple(f"tag {number}" for number in range(MAX_LABELS))
    everything, most = store.add("all", tags=many), store.add("most", tags=many[:-1])
    store.add("others", concepts=("gotcha",), files_read=("tag 0",), category="tag 0")
    assert seen(store, tags=many) == {everything}
    assert seen(store, tags=many[:-1]) == seen(store, tags=("TAG 0", "Tag 1", "tag 0")) == {everything, most}
    assert seen(store, tags=("gotcha",)) == set()


PATHS += ("b.py", "ab.py", "srcs/app.py", "src/%/x", "SRC/src")


def test_a_file_is_a_path_a_folder_or_the_end_of_a_path(store: Any) -> None:
    """A file is found whole, by a folder above it, by its last names and by a whole path that ends in it."""
    fields = ("files_read", "files_modified")
    ids = {store.add(path, **{fields[at % 2]: ("zzz", path)}): at for at, path in enumerate(PATHS)}
    for asked, found in FOUND.items():
        assert {ids[one] for one in seen(store, file=asked)} == found, asked


def test_a_key_is_whole_or_the_beginning_of_others(store: Any) -> None:
    """A key is found as it is written; one that ends in `/` is the beginning of keys, with nothing in it a wildcard."""
    ids = {store.add(f"at {key}", key=key): at for at, key in enumerate(KEYS)}
    store.add("without a key")
    for asked, found in BY_KEY.items():
        assert {ids[one] for one in seen(store, key=asked)} == found, asked


def test_a_file_that_was_read_and_modified_is_one_memory(store: Any) -> None:
    """A memory that names a file twice passes once."""
    both = store.add("both", files_read=("a/b.py", "c/b.py"), files_modified=("a/b.py",))
    assert seen(store, file="b.py") == {both}


def test_since_and_until_are_inclusive(store: Any) -> None:
    """Both ends count to the microsecond, in any time zone."""
    ids = [store.add(f"at {offset}", observed_at=DAY + timedelta(microseconds=offset)) for offset in (-1, 0, 1)]
    elsewhere = DAY.astimezone(timezone(timedelta(hours=-9, minutes=-30)))
    assert seen(store, since=elsewhere) == set(ids[1:])
    assert seen(store, until=elsewhere) == set(ids[:2])
    assert seen(store, since=DAY, until=elsewhere) == {ids[1]}


def test_what_was_not_observed_happened_when_it_was_stored(store: Any) -> None:
    """When it happened counts, not when it was stored; where nobody said so, it is when it was stored."""
    stored = store.add("stored now")
    long_ago = store.add("of long ago", observed_at=DAY - timedelta(days=4000))
    to_come = store.add("to come", observed_at=DAY + timedelta(days=4000))
    now = store.clock()
    assert seen(store, since=now, until=now) == {stored}
    assert seen(store, until=DAY) == {long_ago}
    assert seen(store, since=now + timedelta(seconds=1)) == {to_come}


def test_a_sensitivity_that_is_not_let_in_shows_nothing(store: Any) -> None:
    """Asking for a level shows only that level, and nothing where the view is not let in on it."""
    ids = {level: store.add(f"A {level} one", sensitivity=level) for level in Sensitivity}
    for level in Sensitivity:
        assert seen(store, sensitivity=level) == {ids[level]}
        assert seen(store, sensitivity=level, sensitivities=()) == set()
        others = own(*(one for one in Sensitivity if one is not level))
        assert seen(store, sensitivity=level, sensitivities=others) == set()


def test_filters_show_nothing_hidden(store: Any) -> None:
    """Deleted and expired memories and those of other namespaces pass no filter."""
    store.add("deleted", **WHOLE)
    store.by_hand("UPDATE memory SET deleted_at = created_at")
    store.add("expired", expires_at=store.clock(), **WHOLE)
    store.add("elsewhere", "project:crew/engine2", **WHOLE)
    for name, value in WANTED.items():
        assert seen(store, **{name: value}) == set()
    assert store.sees(store.view("user:nobody", tags=("urgent",))) == set()


def test_the_newest_come_first(store: Any) -> None:
    """Of what passes, those that were stored last come first, as many as asked."""
    ids = [store.add(f"note {number}", tags=("odd",) * (number % 2)) for number in range(9)]
    assert store.records.newest(store.view(tags=("ODD",)), 3) == [ids[7], ids[5], ids[3]]
    assert store.records.newest(store.view("user:nobody", tags=("odd",)), 3) == []
