"""What a query may ask of memories beside their match: how each filter is read, and what is said when it is wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.domain.enums import Concept, ObservationType, Sensitivity
from recollect.domain.fields import one_of
from recollect.domain.requests import Query
from recollect.domain.search import FILTERS, View
from recollect.errors import InvalidInput

DAY = datetime(2026, 5, 7, tzinfo=UTC)
MOMENT = "Must be a day or a time, such as `2026-05-07` or `2026-05-07T13:30:00+02:00`"
_LET_IN = (
    "namespaces",
    "now",
    "sensitivities",
    "superseded",
    "condensed",
    "merged",
    "hidden",
    "told",
    "pinned",
    "speaking",
)
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"type": "rumour"}, f"Invalid type: {one_of(ObservationType)}"),
    ({"concepts": ["gotcha", "magic"]}, f"Invalid concepts: {one_of(Concept)}"),
    ({"concepts": 7}, f"Invalid concepts: {one_of(Concept)}"),
    ({"tags": 7}, "Invalid tags: Must be a list of names of 1–500 characters each"),
    ({"tags": ["ops", " "]}, "Invalid tags: Must be a list of names of 1–500 characters each"),
    ({"tags": ["a\x00b"]}, "Invalid tags: Contains a NUL character"),
    ({"tags": [f"t{number}" for number in range(201)]}, "Invalid tags: "),
    ({"project": "p" * 501}, "Invalid project: "),
    ({"session_id": "s\udc80"}, "Invalid session_id: Contains a lone surrogate, which is not text"),
    ({"file": "./"}, "Invalid file: Must name a file or a folder"),
    ({"file": "a\x00b"}, "Invalid file: Contains a NUL character"),
    ({"since": "yesterday"}, f"Invalid since: {MOMENT}"),
    ({"since": True}, f"Invalid since: {MOMENT}"),
    ({"until": "soon"}, f"Invalid until: {MOMENT}"),
    ({"until": "2026-13-01"}, "Invalid until: Must be a day or a time, such as "),
    ({"since": "9999-12-31T23:59:59-05:00"}, "Invalid since: Lies outside the calendar"),
    ({"since": "2026-05-08", "until": "2026-05-07"}, "Invalid until: Must not be before `since`"),
    ({"since": DAY, "until": DAY - timedelta(microseconds=1)}, "Invalid until: Must not be before `since`"),
    ({"sensitivity": "hidden"}, f"Invalid sensitivity: {one_of(Sensitivity)}"),
    ({"sensitivity": "private"}, "Invalid sensitivity: `private` memories are let in only with `allow_private`"),
    (
        {"sensitivity": "secret", "allow_private": True},
        "Invalid sensitivity: `secret` memories are let in only with `allow_secret`",
    ),
]
anything = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.binary(max_size=4))


@pytest.mark.parametrize(("fields", "message"), REFUSED)
def test_a_wrong_filter_is_one_sentence(fields: dict[str, Any], message: str) -> None:
    """A filter that cannot be meant is named, with what is allowed."""
    with pytest.raises(InvalidInput) as caught:
        Query(query="x", **fields)
    assert str(caught.value).startswith(message)
    assert f"Invalid {caught.value.field}:" in message


def test_filters_are_absent_by_default() -> None:
    """Nothing is filtered unless asked, and what is blank counts as not asked."""
    bare = Query(query="x")
    assert all(getattr(bare, name) in (None, ()) for name in FILTERS)
    blank = {name: " " for name in FILTERS if name not in ("fact_type", "tags", "concepts")}
    assert Query(query="x", **blank) == bare
    assert set(FILTERS) == {name for name in View.model_fields if name not in _LET_IN}


def test_names_are_read_with_good_will() -> None:
    """Letter case of closed names, a lone name for a list, and names given twice are no errors."""
    query = Query(query="x", type=" BugFix ", tags="ops", concepts="gotcha", sensitivity="PUBLIC")
    assert (query.type, query.tags, query.concepts) == (ObservationType.BUGFIX, ("ops",), (Concept.GOTCHA,))
    assert query.sensitivity is Sensitivity.PUBLIC
    assert Query(query="x", tags=["b", " b ", "a"]).tags == ("b", "a")
    assert Query(query="x", sensitivity="secret", allow_secret=True).sensitivity is Sensitivity.SECRET


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("src/app/b.py", "src/app/b.py"),
        (" ./src/app/ ", "src/app"),
        (".\\src\\app\\b.py", "src/app/b.py"),
        ("C:\\app\\b.py", "C:/app/b.py"),
        ("src//app/./b.py", "src/app/b.py"),
        ("/etc/hosts", "/etc/hosts"),
        ("/", "/"),
        ("größe ✓.md", "größe ✓.md"),
    ],
)
def test_a_path_is_read_as_it_is_compared(typed: str, read: str) -> None:
    """Backslashes, a leading `./` and a closing `/` make no difference."""
    assert Query(query="x", file=typed).file == read


def test_times_are_read_as_moments() -> None:
    """A time without a zone is UTC; a day begins `since` at its first instant and ends `until` at its last."""
    end = datetime(2026, 5, 7, 23, 59, 59, 999999, tzinfo=UTC)
    for day in ("2026-05-07", " 2026-05-07 ", date(2026, 5, 7)):
        assert Query(query="x", until=day).until == end
    assert Query(query="x", since="2026-05-07").since == DAY
    assert Query(query="x", since=date(2026, 5, 7), until=date(2026, 5, 7)).until == end
    assert Query(query="x", until="2026-05-07T12:00").until == DAY.replace(hour=12)
    elsewhere = DAY.astimezone(timezone(timedelta(hours=-7)))
    query = Query(query="x", since=elsewhere, until=elsewhere)
    assert query.since == query.until == DAY
    assert query.since is not None
    assert query.since.utcoffset() == timedelta(0)


@hypothesis_settings(max_examples=300, deadline=None, database=None)
@given(st.sampled_from(FILTERS), st.one_of(anything, st.lists(anything, max_size=3), st.datetimes(), st.dates()))
def test_whatever_is_asked_is_read_or_refused(name: str, value: Any) -> None:
    """No value of any kind ends in anything but a query or a sentence about that field."""
    refusals: list[InvalidInput] = []
    try:
        query = Query(query="x", **{name: value})
        assert Query(**query.model_dump()) == query
    except InvalidInput as error:
        refusals.append(error)
    assert all(one.field == name and str(one).startswith(f"Invalid {name}: ") for one in refusals)
