"""The filters of recall through the doors: every option arrives, and a wrong one is one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Query, Recalled, Settings, remember
from recollect.client.connection import DaemonConnection
from recollect.domain.results import found_message
from recollect.domain.search import FILTERS
from recollect.doors.serializers import wire_json
from recollect.errors import InvalidInput
from stores import open_app

Typed = Callable[..., Any]
DAY = datetime(2025, 5, 7, tzinfo=UTC)
LABELS: dict[str, Any] = {
    "type": "bugfix",
    "tags": ("Outage", "payments"),
    "concepts": ("gotcha", "pattern"),
    "project": "atlas",
    "session_id": "night",
    "files_read": ("ops/restart.md",),
    "observed_at": DAY + timedelta(hours=20),
}
OPTIONS = {
    "type": ["--type", "bugfix"],
    "tags": ["--tag", "OUTAGE", "--tag", "payments"],
    "concepts": ["--concept", "pattern", "--concept", "gotcha"],
    "project": ["--project-field", "atlas"],
    "session_id": ["--session", "night"],
    "file": ["--file", "restart.md"],
    "since": ["--since", "2025-05-07", "--until", "2026-01-01"],
    "until": ["--until", "2025-05-07"],
    "sensitivity": ["--private", "--sensitivity", "private"],
    "key": ["--key", "meets"],
    "all": ["--type", "bugfix", "--tag", "outage", "--concept", "gotcha", "--file", "ops", "--session", "night"],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_filters(typed: Typed, settings: Settings, name: str) -> None:
    """Each option lets through what meets it and nothing else."""
    with open_app(settings) as app:
        more = {"sensitivity": "private"} if name == "sensitivity" else {}
        remember(app, Draft(content="The payment service is restarted by hand", key="meets", **LABELS | more), ADA)
        remember(app, Draft(content="The payment service is restarted at night", key="misses", tags=("payments",)), ADA)
    body = typed("recall", "restart the payment service", "--json", *OPTIONS[name]).json
    assert [hit["key"] for hit in body["memories"]] == ["meets"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--type", "rumour"], "Invalid type: Must be `bugfix`, `feature`, "),
        (["--concept", "magic"], "Invalid concepts: Must be `how-it-works`, "),
        (["--tag", " "], "Invalid tags: Must be a list of names"),
        (["--file", "."], "Invalid file: Must name a file or a folder"),
        (["--since", "soon"], "Invalid since: Must be a day or a time, such as `2026-05-07`"),
        (["--since", "2026-05-08", "--until", "2026-05-07"], "Invalid until: Must not be before `since`"),
        (["--sensitivity", "private"], "Invalid sensitivity: `private` memories are let in only with `--private`"),
    ],
)
def test_a_wrong_option_ends_with_two(typed: Typed, options: list[str], said: str) -> None:
    """A filter that cannot be meant is said on standard error, with exit code 2."""
    ended = typed("recall", "x", *options)
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")
    assert said in ended.err


def test_filters_travel_to_the_daemon(settings: Settings) -> None:
    """Whatever Python types a filter is given in, it reaches the daemon as the same query."""
    sent: list[dict[str, Any]] = []

    class Recorded(DaemonConnection):
        """A link that keeps what it would send."""

        def operation(self, name: str, fields: dict[str, Any], said: Any = None) -> Any:
            sent.append(json.loads(json.dumps(fields)))
            return wire_json(Recalled, Recalled((), found_message(0)))

    given = {"query": "x", "type": "bugfix", "tags": ["a"], "since": DAY, "until": DAY.date(), "file": ".\\a\\"}
    assert Recorded(settings).perform("recall", **given) == Recalled((), found_message(0))
    assert Query(**sent[0]) == Query(**given)
    assert set(sent[0]) == set(given)
    assert set(sent[0]) - {"query"} < set(FILTERS)
