"""The first screen: what was stored today, and word by word what the next session starts with, to put right there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from sqlalchemy import event
from starlette.testclient import TestClient

from clock import Clock
from local_access import TOKEN, local_access
from page_visitor import ORIGIN, Visitor
from recollect import App, Settings
from recollect.domain.origin import SaidBy
from recollect.domain.requests import Caller
from recollect.doors.handlers import perform
from recollect.doors.http.application import Application

ADA = Caller(user="ada", team="crew", project="engine")
MAST = ADA.model_copy(update={"project": "mast"})


def stored(app: App, content: str, caller: Caller = ADA, **fields: Any) -> str:
    """Store a memory and return its id."""
    return str(perform(app, "remember", {"content": content} | fields, caller).id)


def start_of(app: App, caller: Caller = ADA, **fields: Any) -> str:
    """Return what a session that starts is answered."""
    return str(perform(app, "answer_start", {"session_id": "s1", "source": "startup"} | fields, caller).text)


def import_waiting(app: App) -> None:
    """Import a memory that waits for a decision."""
    item = {"kind": "memory", "where": "handbook.md:1", "fields": {"content": "The pilot comes aboard at buoy 4."}}
    perform(app, "import_batch", {"items": [item], "last": True}, ADA)


def fill(app: App, many: int) -> None:
    """Store so many memories, a third of them rules."""
    kinds = ("decision", "general", "fact")
    for number in range(many):
        stored(app, f"Winch {number} of dock {number % 7} lifts {number} tons.", fact_type=kinds[number % 3])


def test_the_text_is_the_one_a_session_gets(app: App, ada: Visitor) -> None:
    """Rules, lines, counts, what waits and what nobody stored: the screen has the same text from the same function."""
    fill(app, 90)
    pinned = stored(app, "Never weld on deck.", fact_type="preference")
    perform(app, "pin", {"id": pinned}, ADA)
    buried = stored(app, "The old crane was yellow.")
    perform(app, "bury", {"id": buried}, ADA)
    import_waiting(app)
    prompt = "Remember that we always test the horn before we cast off."
    perform(app, "prompt_submit", {"session_id": "s0", "prompt": prompt, "typed": True}, ADA)
    perform(app, "session_end", {"session_id": "s0"}, ADA)
    shown = ada.json("")["start"]
    assert shown["text"] == start_of(app)
    assert shown["text"].count("\n- [") == len(shown["memory_ids"])
    assert "1 memory waits" in shown["text"] or "waits" in shown["text"]
    assert "old crane" not in shown["text"]
    said = unescape(ada.get("").text)
    assert all(line in said for line in shown["text"].split("\n"))


def test_looking_begins_no_session(app: App, ada: Visitor) -> None:
    """Nothing is written by looking, and nothing counts as shown: a session gets the whole text afterwards."""
    stored(app, "Never weld on deck.", fact_type="decision")
    before = ada.json("changes")["newest"]
    first = ada.json("")["start"]["text"]
    ada.get("")
    assert perform(app, "list_sessions", {}, ADA).total == 0
    assert ada.json("changes")["newest"] == before
    assert start_of(app) == first


def test_an_empty_store_starts_with_nothing(ada: Visitor) -> None:
    """A person with an empty store is told so, and where the first steps are."""
    assert "text" not in ada.json("")["start"]
    page = ada.get("").text
    assert "Nothing is stored here yet" in page
    assert "First steps" in page


@pytest.mark.parametrize("setting", ["inject = false", "token_budget = 64", 'modules_off = "inject"'])
def test_the_settings_of_the_folder_count(app: App, daemon: TestClient, tmp_path: Any, setting: str) -> None:
    """A page opened in a folder shows what a session in that folder gets, as its project's file says."""
    fill(app, 40)
    (tmp_path / "recollect.toml").write_text(f"[sessions]\n{setting}\n", encoding="utf-8")
    body = {"user": "ada", "team": "crew", "project": "engine", "folder": str(tmp_path)}
    url = daemon.post("/page-address", json=body, headers={"Authorization": f"Bearer {TOKEN}"}).json()["url"]
    visitor = Visitor(daemon, project="engine")
    visitor.open(f"{ORIGIN}{url[url.index('/page/') :]}")
    assert visitor.json("")["start"]["text"] == start_of(app, folder=str(tmp_path))
    visitor.place = {"project": "mast"}
    stored(app, "The mast is pine.", MAST)
    assert visitor.json("")["start"]["text"] == start_of(app, MAST), "another project has another folder"


def test_another_project_is_chosen(app: App, ada: Visitor) -> None:
    """The choice of the header shows what a session of that project starts with, and what was stored there."""
    stored(app, "Never weld on deck.", fact_type="decision")
    stored(app, "The mast is pine.", MAST, fact_type="decision")
    ada.place = {}
    page = ada.get("", at="crew/mast").text
    assert "The mast is pine." in page
    assert "Never weld" not in page
    assert '<option value="crew/engine"' in page


def test_a_line_is_edited_pinned_and_buried(app: App, ada: Visitor) -> None:
    """Each form leads back to the first screen, and one click takes each change back."""
    made = stored(app, "Never weld on deck.", fact_type="decision")
    other = stored(app, "The mast is pine.")
    back = "/page/?project=engine"

    def text() -> str:
        return str(ada.json("")["start"]["text"])

    def undone(page: str) -> None:
        ada.post("undo", {"change": page.partition('name="change" value="')[2].partition('"')[0], "back": back})

    before = text()
    changes: list[tuple[str, dict[str, str]]] = [
        (f"memory/{made}/edit", {"content": "Never weld below deck.", "keep": "1"}),
        ("act", {"do": "pin", "id": other}),
        ("act", {"do": "bury", "id": made}),
    ]
    for path, fields in changes:
        answer = ada.post(path, fields | {"back": back})
        assert "What the next session" in answer.text, answer.text
        assert text() != before
        undone(answer.text)
        assert text() == before, path


def test_a_form_leads_nowhere_else(app: App, ada: Visitor) -> None:
    """An edit that says to go on at another site goes on at the memory."""
    made = stored(app, "Never weld on deck.")
    fields = {"content": "Never weld.", "back": "https://example.com/page/"}
    answer = ada.post(f"memory/{made}/edit", fields, follow_redirects=False)
    assert answer.headers["location"].startswith(f"/page/memory/{made}")


def test_who_may_only_read_gets_no_forms(app: App, team: Any, browsing: Any) -> None:
    """A reader of a team sees the text, and no button that would change it."""
    stored(app, "Never weld on deck.", fact_type="decision")
    assert "Pin memory" in browsing("ada").get("").text
    page = browsing("bob").get("").text
    assert "Never weld on deck." in page
    assert "Pin memory" not in page
    assert "textarea" not in page


@pytest.mark.parametrize(
    ("zone", "day", "texts"),
    [
        ("UTC", "2026-03-02", 1),
        ("America/Los_Angeles", "2026-03-01", 2),
        ("Asia/Tokyo", "2026-03-02", 2),
        ("Pacific/Kiritimati", "2026-03-02", 2),
    ],
)
def test_today_is_that_of_the_person(app: App, clock: Clock, ada: Visitor, zone: str, day: str, texts: int) -> None:
    """At 00:30 in UTC what was stored two hours ago is of yesterday there, and of today elsewhere."""
    clock.now = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
    stored(app, "The evening tide was high.")
    clock.now += timedelta(hours=2)
    stored(app, "The night tide is low.")
    ada.post("zone", {"zone": zone})
    days = ada.json("")["days"]
    assert (days[0]["day"], len(days[0]["memories"]), len(days)) == (day, texts, 1)


def test_without_anything_of_today_the_last_days_are_shown(app: App, clock: Clock, ada: Visitor) -> None:
    """The last three days with something come, the latest first; drafts of hooks are counted apart."""
    ada.post("zone", {"zone": "UTC"})
    for number in range(5):
        stored(app, f"Lock {number} was painted.")
        stored(app, f"Lock {number} squeaks.", source="hook")
        clock.pass_days(2)
    shown = ada.json("")["days"]
    assert [one["day"] for one in shown] == ["2026-03-09", "2026-03-07", "2026-03-05"]
    assert [(len(one["memories"]), len(one["drafts"])) for one in shown] == [(1, 1)] * 3
    page = ada.get("").text
    assert "Nothing was stored today." in page
    assert "Monday, 9 March 2026" in page


def test_it_asks_the_database_a_bounded_number_of_times(app: App, settings: Settings) -> None:
    """How much is stored does not change how many statements the first screen takes."""
    asked: list[str] = []
    engine = app.records._database.engine
    listener = lambda *told: asked.append(told[2])  # noqa: E731
    counts = []
    with TestClient(Application(local_access(app, settings)), base_url=ORIGIN) as client:
        body = {"user": "ada", "team": "crew", "project": "engine"}
        url = client.post("/page-address", json=body, headers={"Authorization": f"Bearer {TOKEN}"}).json()["url"]
        client.get(url[url.index("/page/") :])
        for many in (30, 270):
            fill(app, many)
            client.get("/page/")
            event.listen(engine, "before_cursor_execute", listener)
            asked.clear()
            assert client.get("/page/").status_code == 200
            event.remove(engine, "before_cursor_execute", listener)
            counts.append(len(asked))
    assert counts[1] <= counts[0] + 5
    assert max(counts) <= 60


def test_the_words_of_an_agent_are_told_from_a_persons(app: App, ada: Visitor) -> None:
    """A row says who said it: nobody has to know what a tool or a hook is."""
    stored(app, "The mast is pine.")
    stored(app, "The keel is iron.", ADA.saying(SaidBy.ASSISTANT))
    page = ada.get("").text
    assert page.count(">you</bdi>") == 1
    assert page.count("an agent, with its memory tool</bdi>") == 1
    assert "through tool" not in page
