"""The form of a memory: it writes what was changed and nothing else, and loses nothing that was typed."""

from __future__ import annotations

from typing import Any

import pytest

from page_visitor import Visitor
from recollect import App
from recollect.domain.requests import Caller
from recollect.doors.handlers import perform
from recollect.doors.web import PAGE

ADA = Caller(user="ada", team="crew", project="engine")


@pytest.fixture
def mast(app: App) -> str:
    """Return the id of a memory with many labels."""
    fields = {"content": "The mast is pine.", "tags": ["wood", "rig"], "type": "discovery", "category": "ship"}
    return str(perform(app, "remember", fields, ADA).id)


def form_of(ada: Visitor, made: str) -> dict[str, Any]:
    """Return what a browser would send of the form as it stands."""
    memory = ada.json(f"memory/{made}/edit")["memory"]
    names = ("content", "title", "abstract", "fact_type", "sensitivity", "importance", "confidence", "trust")
    fields = {name: memory[name] for name in names}
    return fields | {"tags": ", ".join(memory["tags"]), "type": memory["type"], "category": memory["category"]}


def said(app: App, made: str) -> Any:
    """Return the memory as it is stored."""
    return perform(app, "get_memory", {"id": made}, ADA)


def test_nothing_changed_writes_nothing(app: App, ada: Visitor, mast: str) -> None:
    """The form sent as it was shown leaves no line in the journal."""
    lines = len(perform(app, "history", {"id": mast}, ADA))
    assert "Nothing was changed." in ada.post(f"memory/{mast}/edit", form_of(ada, mast)).text
    assert len(perform(app, "history", {"id": mast}, ADA)) == lines


def test_only_what_changed_is_written(app: App, ada: Visitor, mast: str) -> None:
    """The journal names those fields; one click brings back what was there, labels that were taken away too."""
    before = said(app, mast)
    changed = form_of(ada, mast) | {"tags": "rig, new", "type": "", "category": "", "importance": "0.9"}
    page = ada.post(f"memory/{mast}/edit", changed).text
    after = said(app, mast)
    assert (after.tags, after.type, after.category, after.importance) == (("rig", "new"), None, None, 0.9)
    fields = perform(app, "history", {"id": mast}, ADA)[-1].changes["fields"]
    assert set(fields) == {"tags", "type", "category", "importance"}
    code = page.partition('name="change" value="')[2].partition('"')[0]
    ada.post("undo", {"change": code})
    back = said(app, mast)
    for name in ("content", "tags", "type", "category", "importance", "title"):
        assert getattr(back, name) == getattr(before, name)
    assert ada.post("undo", {"change": code}).status_code == 404


@pytest.mark.parametrize(
    ("field", "value", "told"), [("importance", "9", "0.0–1.0"), ("fact_type", "rumour", "fact_type")]
)
def test_what_was_typed_stays_where_it_is_refused(
    app: App, ada: Visitor, mast: str, field: str, value: str, told: str
) -> None:
    """The form comes again with the error above it, and what was typed in it; nothing was written."""
    typed = form_of(ada, mast) | {"content": "The mast is oak, says the carpenter.", field: value}
    answer = ada.post(f"memory/{mast}/edit", typed)
    assert answer.status_code == 422
    assert told in answer.text
    assert "The mast is oak, says the carpenter." in answer.text
    assert said(app, mast).content == "The mast is pine."
    body = {"token": ada.form_token} | typed
    program = ada.client.post(f"{PAGE}/memory/{mast}/edit", data=body, params=ada.place | {"format": "json"})
    assert program.json()["field"] == field


def test_a_secret_is_refused_and_not_shown_twice(app: App, ada: Visitor, mast: str) -> None:
    """The error names the field and the kind of secret, and nothing is stored."""
    secret = "-".join(("sk", "ant", "api03", "a1B2" * 22))
    answer = ada.post(f"memory/{mast}/edit", form_of(ada, mast) | {"content": f"The key is {secret}."})
    assert answer.status_code == 422
    assert answer.text.count(secret) == 1, "only in the field where it was typed"
    assert said(app, mast).content == "The mast is pine."


def test_what_somebody_else_wrote_is_not_lost(app: App, ada: Visitor, mast: str) -> None:
    """A form that was opened before another change is not saved, until the person has been told."""
    opened = form_of(ada, mast) | {"seen": said(app, mast).updated_at.isoformat()}
    clock: Any = app.clock
    clock.pass_days(1)
    perform(app, "update_memory", {"id": mast, "content": "The mast is larch."}, ADA)
    answer = ada.post(f"memory/{mast}/edit", opened | {"tags": "mine"})
    assert "changed meanwhile" in answer.text
    assert (said(app, mast).content, said(app, mast).tags) == ("The mast is larch.", ("wood", "rig"))


def test_a_move_is_taken_back(app: App, ada: Visitor, mast: str) -> None:
    """The memory is where it was with its own number, and the copy is gone."""
    page = ada.post(f"memory/{mast}/move", {"scope": "project", "to_project": "hull"})
    assert "The mast is pine." in page.text
    assert ada.json("browse")["browsed"]["memories"] == []
    code = page.text.partition('name="change" value="')[2].partition('"')[0]
    ada.post("undo", {"change": code})
    assert [one["id"] for one in ada.json("browse")["browsed"]["memories"]] == [mast]
    there = ADA.model_copy(update={"project": "hull"})
    assert perform(app, "list_memories", {}, there).total == 0


def test_many_are_named_before_they_go(ada: Visitor, app: App, mast: str) -> None:
    """The confirmation lists each; what is gone meanwhile is counted, and nothing selected is an error."""
    other = str(perform(app, "remember", {"content": "The keel is iron."}, ADA).id)
    page = ada.get("act", do="forget", id=[mast, other]).text
    assert "The mast is pine." in page
    assert "The keel is iron." in page
    perform(app, "forget", {"id": other}, ADA)
    done = ada.post("act", {"do": "forget", "id": [mast, other]}).text
    assert f"Memory {mast} is forgotten for good. 1 were gone already." in done
    for fields in (
        {"do": "forget"},
        {"do": "burn", "id": mast},
        {"do": "hide", "id": [str(one) for one in range(101)]},
    ):
        assert ada.post("act", fields).status_code == 422


def test_health_tells_sizes_and_times(ada: Visitor, mast: str) -> None:
    """What is stored has a size, what the page does a time; the doctor looks where no screen waits for it."""
    told = ada.json("health")
    assert told["sizes"]["memory.db"] > 0
    assert set(told["times"]) == {"search", "page of memories"}
    assert (told["counted"]["total"], told["facts"]) == (1, 0)
    assert (told["checkup"]["running"], told["checkup"]["checks"]) == (False, [])
    assert "Run the doctor" in ada.get("health").text
    assert ada.post("health", {}).status_code == 200
    while (checkup := ada.json("health")["checkup"])["running"]:
        assert "Look again" in ada.get("health").text or not ada.json("health")["checkup"]["running"]
    assert {"journal", "model"} <= {one["name"] for one in checkup["checks"]}
    assert all(one["well"] for one in checkup["checks"])
    assert "all well" in ada.get("health").text


def test_an_edit_keeps_the_text_before_it_where_that_is_asked(app: App, ada: Visitor, mast: str) -> None:
    """The memory shows what changed between the two; forgotten, both are gone. Without the tick nothing is kept."""
    typed = form_of(ada, mast) | {"content": "The mast is oak.", "tags": "rig", "type": "", "category": ""}
    ada.post(f"memory/{mast}/edit", typed | {"keep": "1"})
    after = said(app, mast)
    assert (after.content, after.tags, after.type, after.category) == ("The mast is oak.", ("rig",), None, None)
    page = ada.get(f"memory/{mast}").text
    assert "<del>pine.</del><ins>oak.</ins>" in page
    (earlier,) = ada.json(f"memory/{mast}")["versions"]
    assert (earlier["content"], earlier["merged_into"]) == ("The mast is pine.", mast)
    ada.post(f"memory/{mast}/edit", {"content": "The mast is ash."})
    assert [one["content"] for one in ada.json(f"memory/{mast}")["versions"]] == ["The mast is pine."]
    page = ada.post(f"memory/{mast}/edit", {"content": "The mast is elm.", "keep": "1"}).text
    ada.post("undo", {"change": page.partition('name="change" value="')[2].partition('"')[0]})
    assert said(app, mast).content == "The mast is ash."
    kept = [one["content"] for one in ada.json(f"memory/{mast}")["versions"]]
    assert kept == ["The mast is pine.", "The mast is elm."]  # what was undone is kept too
    ada.post("act", {"do": "forget", "id": mast})
    assert ada.get(f"memory/{earlier['id']}").status_code == 404
