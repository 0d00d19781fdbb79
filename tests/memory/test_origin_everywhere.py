"""Origin over every way to write: what a page said stays that page's, whatever verb, stage or merge it goes through.

Each text of a page holds a word of its own, and so does each of a person: by that it is told what a memory was made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callers import ADA, EVERY_LEVEL
from clock import Clock
from recollect import App, Memory
from recollect.domain.enums import Choice
from recollect.domain.origin import Authority, SaidBy
from recollect.domain.search import View
from recollect.domain.verbs import PARTS, VERBS
from run_operations import add, always, do, judged_by

URL = "https://docs.example.com/deploys"
PAGE = ADA.saying(SaidBy.WEB, URL)
OF_PAGE, OF_PERSON = "zephyr", "maple"
CLAIM = f"The {OF_PAGE} gateway listens on port 7001 of the harbour host."
TOLD = f"The {OF_PERSON} gateway listens on port 9001 of the harbour host."
ITEM = {"kind": "memory", "where": "notes.md:3", "fields": {"content": f"The {OF_PAGE} crane is red.", "trust": 1.0}}
SESSION = {"session_id": "s1", "folder": "/home/ada/ship"}

Do = Callable[[App, dict[str, int]], object]
EVENTS = (
    ("Bash", {"command": "make test"}, "the output of a command: make test"),
    ("Bash", {"command": f"curl -s {URL}"}, f"a web page: {URL}"),
    ("Bash", {"command": "gh issue view 3"}, "a web page: gh issue view 3"),
    ("WebFetch", {"url": URL}, f"a web page: {URL}"),
    ("WebSearch", {"query": "harbour lamps"}, "a web page: harbour lamps"),
    ("Read", {"file_path": "/home/ada/ship/lamps.md"}, "a file of this project: /home/ada/ship/lamps.md"),
    ("Read", {"file_path": "/usr/share/doc/lamps.md"}, "a file from outside this project: /usr/share/doc/lamps.md"),
    ("mcp__wiki__page", {"title": "lamps"}, "another tool: mcp__wiki__page"),
    ("Task", {"prompt": "look"}, f"a web page: {URL}, then gh issue view 3, then harbour lamps and 2 more"),
)
"""The use of a tool, and the origin of what is kept of it; the report comes after other tools of the same turn."""


def verb(name: str, **fields: Any) -> Do:
    """Return what performs a verb; `page` and `told` stand for the ids of those memories."""

    def perform(app: App, ids: dict[str, int]) -> object:
        named = {key: str(ids[value]) if value in ("page", "told") else value for key, value in fields.items()}
        return do(app, name, **named)

    return perform


WAYS: dict[str, Do] = {
    "summarize_old": verb("summarize_old", older_than_days=7),
    "remember": verb("remember", content=f"A call tells of the {OF_PERSON} mast."),
    "store_memory": verb("store_memory", content=f"A call tells of the {OF_PERSON} mast."),
    "memory_store": verb("memory_store", content=f"A call tells of the {OF_PERSON} mast."),
    "memory_remember": verb("memory_remember", content=f"I sail with the {OF_PERSON} crew.", category="profile"),
    "update_memory": verb("update_memory", id="page", title="Ports"),
    "restore": verb("restore", id="page"),
    **{name: verb(name, id="page") for name in ("pin", "unpin", "bury", "unbury")},
    "decide": verb("decide", id="page", decision="approve"),
    "drop_source_rule": lambda app, _: drop_rule(app),
    "memory_forget": verb("memory_forget", id="told"),
    "forget": verb("forget", id="told"),
    "delete_memory": verb("delete_memory", id="told"),
    "withdraw": verb("withdraw", author="bob", apply=True),
    "undo_withdrawal": lambda app, _: do(app, "undo_withdrawal", id=do(app, "withdraw", source=URL, apply=True).id),
    "move_memory": lambda app, _: do(app, "move_memory", id=str(add_page(app, "sluice")), scope="team"),
    "promote": lambda app, _: do(app, "promote", id=str(add_page(app, "weir"))),
    "rescan": verb("rescan", on_found="redact"),
    "purge_expired": verb("purge_expired"),
    "import_batch": verb("import_batch", items=[ITEM], last=True),
    "extract_memories": verb("extract_memories", messages=[{"speaker": "user", "content": "The pier is long."}]),
    "store_fact": verb("store_fact", subject="pier", predicate="is", object="long", memory_id="page"),
    "forget_fact": verb("forget_fact", id="1"),
    "session_start": verb("session_start", **SESSION, source="startup"),
    "prompt_submit": verb("prompt_submit", **SESSION, prompt=f"We always paint the {OF_PERSON} boat in May."),
    "note_prompt": verb("note_prompt", **SESSION, prompt=f"We always paint the {OF_PERSON} boat in May."),
    "note_turn": verb("note_turn", **SESSION, output=f"It works, because the {OF_PERSON} lamp was changed in May."),
    "note_shown": verb("note_shown", **SESSION, memory_ids=["1"], whole_ids=["1"], ask=True),
    "tool_post": verb("tool_post", **SESSION, tool="WebFetch", input={"url": URL}, output=CLAIM),
    "correct_observation": lambda app, _: keep_dropped(app),
    "session_checkpoint": verb("session_checkpoint", **SESSION),
    "session_end": verb("session_end", **SESSION, reason="exit"),
}
"""Every verb that writes, and the part of an event that does, in an order in which each has something to write."""


def keep_dropped(app: App) -> object:
    """Keep an observation of a page that was dropped."""
    do(app, "tool_post", **SESSION, tool="WebFetch", input={"url": URL}, output=f"{OF_PAGE} ok")
    shown = do(app, "show_session", session_id="s1")
    return do(app, "correct_observation", session_id="s1", number=shown.observations[-1].number, keep=True)


def drop_rule(app: App) -> object:
    """Approve a source for good, and take that back."""
    do(app, "decide", id=str(add_page(app, "buoy")), decision="always")
    return do(app, "drop_source_rule", source=do(app, "source_rules").rules[0].source)


def add_page(app: App, what: str) -> int:
    """Store a page's words on something."""
    return add(app, f"The {OF_PAGE} {what} is shut at night.", PAGE)


def everything(app: App) -> list[Memory]:
    """Return all that is stored, in whatever state."""
    seen = View(namespaces=ADA.namespaces(), now=app.clock(), sensitivities=EVERY_LEVEL, superseded=True, merged=True)
    ids = range(1, 500)
    hidden = seen.model_copy(update={"hidden": True})
    return [*app.records.load(ids, seen).values(), *app.records.load(ids, hidden).values()]


def check_origins(app: App, after: str = "") -> list[Memory]:
    """Make sure that every memory has an origin, and that no word of a page stands in one that is not from outside."""
    found = everything(app)
    for one in found:
        said = " ".join((one.content, one.title, one.subtitle, one.abstract, one.overview))
        assert one.said_by is not None, (after, one)
        if OF_PAGE in said:
            assert one.authority is Authority.OUTSIDE, (after, one)
            assert one.came_from in (URL, "notes.md:3"), (after, one)
            assert one.trust <= 0.5, (after, one)
        if OF_PAGE not in said and OF_PERSON in said:
            assert one.authority is not Authority.OUTSIDE or one.said_by is SaidBy.IMPORT, (after, one)
    return found


def test_every_way_to_write_is_walked() -> None:
    """A verb that is added here or there has its line in the table."""
    parts = {name for name in PARTS if name.startswith("note_")}
    assert set(WAYS) == {one.name for one in VERBS if one.writes} | parts


def test_no_way_to_write_changes_who_said_something(open_store: Callable[..., App], clock: Clock) -> None:
    """After each verb every memory has its origin, and a page's words are nowhere but in what is from outside."""
    app = open_store(modules_off="memorability")
    ids = {"told": add(app, TOLD, category="ports"), "page": add(app, CLAIM, PAGE, category="ports")}
    add(app, f"The {OF_PERSON} quay has two cranes.", category="ports")
    do(app, "tool_post", **SESSION, tool="WebFetch", input={"url": URL}, output=f"The {OF_PAGE} lock opens at nine.")
    do(app, "prompt_submit", **SESSION, prompt=f"We always moor the {OF_PERSON} boat at the quay.")
    clock.pass_days(30)
    for name, perform in WAYS.items():
        perform(app, ids)
        check_origins(app, name)
    made = [one for one in everything(app) if OF_PAGE in one.content and OF_PERSON in one.content]
    assert {one.type for one in made} >= {"session_summary", "compressed_summary"}


def test_what_a_session_keeps_has_the_origin_of_its_event(open_store: Callable[..., App]) -> None:
    """What is kept of a tool's use says who said it, and the address, path or command that it came from."""
    app = open_store(modules_off="memorability")
    known: set[int] = set()
    for number, (tool, given, origin) in enumerate(EVENTS):
        said = f"NOTE: lamp {number} of the {tool} harbour is switched on at dusk because ships come in late.\n"
        do(app, "tool_post", **SESSION, tool=tool, input=given, output=said)
        found = {one.id: one.origin for one in everything(app) if one.id not in known}
        assert list(found.values()) == [origin]
        known |= found.keys()


@pytest.mark.parametrize("choice", [Choice.MERGE, Choice.SUPERSEDE, Choice.SKIP])
def test_no_judgement_of_a_model_mixes_origins(app: App, choice: Choice) -> None:
    """A language model that would merge, replace or skip across origins leaves each with its own."""
    judged = judged_by(app, always(choice))
    add(judged, TOLD)
    add(judged, CLAIM, PAGE)
    add(judged, f"The {OF_PERSON} gateway listens on port 9001 of the harbour host and on 9002.")
    assert {one.said_by for one in check_origins(judged)} == {SaidBy.PERSON, SaidBy.WEB}
