"""How values become words on the page: who said a memory, which words of a question stand out, and times of a zone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from page_store import HOSTILE
from page_visitor import Visitor
from recollect import App
from recollect.domain.origin import SaidBy
from recollect.domain.requests import Caller
from recollect.doors.handlers import perform
from recollect.doors.web.authors import who
from recollect.doors.web.words import day, first_words, marked
from recollect.doors.web.zones import local, zone_named, zone_words

ADA = Caller(user="ada", team="crew", project="engine")


def memory(app: App, said_by: SaidBy = SaidBy.PERSON, **fields: Any) -> Any:
    """Store a memory of this origin and return it."""
    told = {"content": f"The {said_by} said that the mast is pine."} | fields
    made = perform(app, "remember", told, ADA.saying(said_by)).id
    return perform(app, "get_memory", {"id": made, "allow_private": True}, ADA)


@pytest.mark.parametrize(
    ("said_by", "fields", "agent", "words"),
    [
        (SaidBy.PERSON, {}, "", "you"),
        (SaidBy.ASSISTANT, {}, "", "an agent, with its memory tool"),
        (SaidBy.ASSISTANT, {}, "claude-code", "Claude Code, with its memory tool"),
        (SaidBy.PERSON, {"source": "hook"}, "claude-code", "you, in a prompt to Claude Code"),
        (SaidBy.COMMAND, {"source": "hook"}, "codex", "Codex, from a command"),
        (SaidBy.WEB, {"source": "hook"}, "my-agent", "my-agent, from a web page"),
        (SaidBy.PERSON, {"source": "import"}, "", "you, by an import"),
        (
            SaidBy.REPORT,
            {"type": "session_summary", "source": "hook"},
            "claude-code",
            "Claude Code, at a session's end",
        ),
        (SaidBy.MODEL, {"source": "extraction"}, "", "an agent, in the words of a language model"),
    ],
)
def test_who_said_it_is_told_in_words(app: App, said_by: SaidBy, fields: Any, agent: str, words: str) -> None:
    """No row names a tool, a hook or a source: it says who spoke, and through what."""
    assert who(memory(app, said_by, **fields), "ada", agent) == words


def test_others_are_told_by_their_names(app: App) -> None:
    """What a colleague said, or their agent, is not yours."""
    assert who(memory(app), "bob") == "ada"
    assert who(memory(app, SaidBy.ASSISTANT), "bob") == "an agent of ada, with its memory tool"


@pytest.mark.parametrize(
    ("text", "query", "out"),
    [
        ("We deploy on Fridays.", "when do we deploy", "We <mark>deploy</mark> on Fridays."),
        ("Deploying takes an hour.", "deployed", "<mark>Deploying</mark> takes an hour."),
        ("The Größe of it.", "grosse größe", "The <mark>Größe</mark> of it."),
        ("pnpm installs packages", "pn inst", "pnpm <mark>installs</mark> packages"),
        ("snake_case_name and snake", "case", "snake_<mark>case</mark>_name and snake"),
        ("数据库的连接数", "连接", "数据库的<mark>连接</mark>数"),
        ("a < b & c > d", "b", "a &lt; <mark>b</mark> &amp; c &gt; d"),
        ("<b>bold</b>", "b bold", "&lt;<mark>b</mark>&gt;<mark>bold</mark>&lt;/<mark>b</mark>&gt;"),
        ("nothing of it", "", "nothing of it"),
        ("nothing of it", "the of (.*) [a-z]+ \\", "nothing of it"),
        ("a{0}b {} %s", "0 b", "a{<mark>0</mark>}<mark>b</mark> {} %s"),
    ],
)
def test_the_words_of_a_question_stand_out(text: str, query: str, out: str) -> None:
    """Each word in whatever form is marked, one that is being typed too; all else of both is text."""
    assert str(marked(text, query)) == out


def test_marking_names_what_nobody_sees() -> None:
    """Hidden characters keep their names beside the marks, and no markup comes out of a memory."""
    out = str(marked(HOSTILE, "script link hidden"))
    assert "<mark>script</mark>" in out
    assert "⟦U+202E⟧" in out
    assert "<script" not in out


def test_a_search_marks_what_it_found(app: App, ada: Visitor) -> None:
    """The hit shows the words that were asked for, and those of the memory that are markup as text."""
    memory(app, content="<i>Winches</i> are greased on Mondays.")
    page = ada.get("", q="when is the winch greased").text
    assert "&lt;i&gt;<mark>Winches</mark>&lt;/i&gt; are <mark>greased</mark> on Mondays." in page


def test_a_question_that_is_being_typed_counts_as_no_use(app: App, ada: Visitor) -> None:
    """Only a question that was sent counts its hits as recalled."""
    made = str(memory(app, content="Winches are greased on Mondays.").id)
    ada.get("", q="winches", typing="1")
    assert perform(app, "get_memory", {"id": made}, ADA).recalled_count == 0
    ada.get("", q="winches")
    assert perform(app, "get_memory", {"id": made}, ADA).recalled_count == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"content": "The mast is pine."}, "The mast is pine."),
        ({"content": "The mast\nis  pine."}, "The mast is pine."),
        ({"content": "The mast is pine.", "title": "Wood of the mast"}, "Wood of the mast"),
    ],
)
def test_a_row_has_a_title_or_the_text(app: App, fields: Any, words: str) -> None:
    """A title that somebody gave stands there, else the text on one line."""
    assert first_words(memory(app, **fields)) == words


def test_a_row_is_one_line(app: App, ada: Visitor) -> None:
    """A plain memory has no label in its row: neither the scope that is the rule, nor a kind that says nothing."""
    memory(app, content="The mast is pine.")
    page = ada.get("browse").text
    row = page.partition('<div class="line">')[2].partition("</div>")[0]
    assert row.count("badge") == 0
    assert "through" not in row
    assert ">project<" not in row


@pytest.mark.parametrize(
    ("at", "today", "words"),
    [
        (date(2026, 3, 2), date(2026, 3, 2), "Today"),
        (date(2026, 3, 1), date(2026, 3, 2), "Yesterday"),
        (date(2026, 2, 27), date(2026, 3, 2), "Friday, 27 February 2026"),
        (date(2026, 3, 3), date(2026, 3, 2), "Tuesday, 3 March 2026"),
    ],
)
def test_a_day_is_called_as_people_do(at: date, today: date, words: str) -> None:
    """Today and yesterday have their names, any other day its date."""
    assert day(at, today) == words


def test_a_time_has_the_offset_of_its_day() -> None:
    """A zone with summer time shows a day of July otherwise than one of January."""
    berlin = ZoneInfo("Europe/Berlin")
    assert local(datetime(2026, 1, 1, 12, tzinfo=UTC), berlin).hour == 13
    assert local(datetime(2026, 7, 1, 12, tzinfo=UTC), berlin).hour == 14


@pytest.mark.parametrize(
    "name", ["", "Mars/Phobos", "../../etc/passwd", "/etc/passwd", "Europe", "x" * 65, "a\0b", "Europe/Berlin\n", "é"]
)
def test_what_is_no_zone_is_none(name: str) -> None:
    """Neither a path, a folder, nor a name that nobody knows names a zone; nothing breaks."""
    assert zone_named(name) is None


def test_times_are_in_the_zone_of_the_browser(app: App, ada: Visitor) -> None:
    """Once a browser has told its zone all times are in it; before that the zone of the server is named."""
    memory(app, content="The mast is pine.")
    before = ada.get("journal").text
    assert "2026-03-01 12:00" in before
    assert f"times are in {zone_words(None, datetime.now(UTC))}" in before
    told = ada.post("zone", {"zone": "Asia/Kolkata"})
    assert told.status_code == 204
    assert {"HttpOnly", "Path=/page", "SameSite=lax"} <= set(told.headers["set-cookie"].split("; "))
    after = ada.get("journal").text
    assert "2026-03-01 17:30" in after
    assert "2026-03-01 12:00" not in after
    assert "times are in Asia/Kolkata" in after
    assert 'data-zone="Asia/Kolkata"' in after


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"zone": "Mars/Phobos"}, 422), ({"zone": ""}, 422), ({"zone": "UTC", "token": "x"}, 403)],
)
def test_only_a_browser_of_ours_tells_its_zone(ada: Visitor, fields: dict[str, str], status: int) -> None:
    """Another site's form, or a name that is no zone, changes nothing."""
    assert ada.post("zone", fields).status_code == status
    assert 'data-zone=""' in ada.get("journal").text


def test_a_cookie_that_is_no_zone_breaks_nothing(ada: Visitor) -> None:
    """Whatever the cookie holds, the screen comes, in the zone of the server."""
    ada.client.cookies.set("recollect_zone", "../../etc/passwd", path="/page")
    assert 'data-zone=""' in ada.get("journal").text
