"""What people type: words without quotes, pipes, dates in words, and `--json` wherever it comes to mind."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Settings, remember
from recollect.doors.cli import standard_input
from recollect.doors.cli import typed as words
from recollect.errors import InvalidInput
from stores import open_app

Typed = Callable[..., Any]


@pytest.fixture
def stocked(settings: Settings) -> None:
    """Put a memory of yesterday and one of last year into the store."""
    now = datetime.now(UTC)
    with open_app(settings) as app:
        for days in (1, 400):
            remember(app, Draft(content=f"Ghent, {days} days ago", observed_at=now - timedelta(days=days)), ADA)


def test_words_need_no_quotes(typed: Typed) -> None:
    """Several words are one text, with options anywhere among them; behind `--` a word may begin with a dash."""
    assert typed("remember", "We", "ship", "--key", "ship", "on", "Fridays").code == 0
    assert typed("remember", "--", "It", "was", "-5", "degrees").code == 0
    assert typed("show", "1", "--json").json["content"] == "We ship on Fridays"
    assert typed("show", "2", "--json").json["content"] == "It was -5 degrees"
    assert "We ship on Fridays" in typed("recall", "when", "do", "--limit", "1", "we", "ship").out
    refused = typed("remember", "It", "was", "-5", "degrees")
    assert "No such option: -5. Put `--` before words that begin with a dash." in refused.err


def test_what_is_piped_in_is_read(typed: Typed) -> None:
    """Without words the content is what comes through the pipe; words go before it, and nothing at all is refused."""
    assert typed("remember", "--key", "log", stdin=b"commit 1\nfix it\n").code == 0
    assert typed("show", "1", "--json").json["content"] == "commit 1\nfix it"
    assert typed("remember", "These", "words", stdin=b"not this").code == 0
    assert typed("show", "2", "--json").json["content"] == "These words"
    empty = typed("remember")
    assert (empty.code, empty.err) == (
        2,
        "recollect: Missing content: Type the text, or pipe it in; `--help` tells more\n",
    )


def test_nobody_waits_for_a_terminal_or_a_silent_pipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A terminal, a device and a pipe into which nobody writes hold nothing; a file and a pipe that ended are read."""
    monkeypatch.setattr(standard_input, "_WAIT", 0.01)
    main, terminal = pty.openpty()
    silent, writer = os.pipe()
    ended, other = os.pipe()
    os.write(other, b"piped")
    os.close(other)
    (tmp_path / "file").write_text("redirected", encoding="utf-8")
    file = os.open(tmp_path / "file", os.O_RDONLY)
    found = []
    for number in (terminal, os.open(os.devnull, os.O_RDONLY), silent, ended, file):
        with io.TextIOWrapper(io.FileIO(number), "utf-8") as stream:
            monkeypatch.setattr("sys.stdin", stream)
            try:
                found.append(words.typed_text("content", None, required=True))
            except InvalidInput:
                found.append(None)
    os.close(main)
    os.close(writer)
    assert found == [None, None, None, "piped", "redirected"]


@pytest.mark.usefixtures("stocked")
def test_dates_may_be_words(typed: Typed) -> None:
    """Words mean days by the local clock: from the beginning of the first to the end of the last."""

    def shown(*options: str) -> list[str]:
        return [one["id"] for one in typed("list", "--order", "oldest", "--json", *options).json["memories"]]

    assert shown("--since", "2 days ago") == shown("--since", "3 months ago") == ["1"]
    assert shown("--until", "yesterday") == ["1", "2"]
    assert shown("--until", "last month", "--since", "2 years ago") == ["2"]
    assert typed("facts", "--valid-at", "yesterday", "--json").json["total"] == 0
    two_days = typed("list", "--since", "5/7/2026").err
    assert two_days.startswith("recollect: Invalid since: `5/7/2026` may be 5 July 2026 or 7 May 2026: type ")
    refused = typed("list", "--since", "soonish")
    assert refused.err.startswith("recollect: Invalid since: Must be a day or a time, such as `2026-05-07` or ")
    assert "`last week`" in refused.err


def test_when_it_expires_may_be_said_in_words(typed: Typed) -> None:
    """`--expires` takes a day or words for a time to come; what has passed, or is no date, is refused."""
    assert typed("remember", "The lift is out of order", "--expires", "in 3 days").code == 0
    body = typed("show", "1", "--json").json
    assert body["ttl_days"] == pytest.approx(3, abs=0.1)
    assert typed("update", "1", "--expires", "2126-01-01").code == 0
    assert typed("show", "1", "--json").json["expires_at"][:16] in ("2126-01-01T23:59", "2126-01-02T00:00")
    for wrong in ("yesterday", "2020-01-01", "one fine day", "2026-13-01"):
        refused = typed("remember", "x", "--expires", wrong)
        assert (refused.code, "recollect: Invalid expires: Must be a day or a time to come" in refused.err) == (2, True)
    assert "together with `--ttl-days`" in typed("remember", "x", "--expires", "tomorrow", "--ttl-days", "1").err


@pytest.mark.parametrize("before", [("--json",), ("--user", "ada", "--json")])
def test_json_may_stand_before_the_command(typed: Typed, before: tuple[str, ...]) -> None:
    """Answers and errors are JSON wherever `--json` stands, but for behind `--`."""
    assert typed(*before, "stats").json["memories"] == 0
    assert typed(*before, "show", "99").json["error"] == "NotFound"
    assert typed(*before, "recal").json["error"] == "InvalidInput"
    assert typed(*before, "remember", "--", "use", "--json").json["id"] == "1"
