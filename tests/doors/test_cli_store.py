"""The commands that list, change, condense and connect: each answers people and machines, and ends with its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Settings, StoreFact, Update, remember, store_fact
from recollect.doors.cli.main import whole
from recollect.errors import InvalidInput, NotFound
from stores import open_app

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]
LABELS = {
    "--title": "Lexer guard",
    "--subtitle": "None from the tokenizer",
    "--type": "bugfix",
    "--importance": "0.8",
    "--trust": "0.9",
    "--sensitivity": "private",
    "--session": "s1",
    "--project-field": "compiler",
    "--discovery-tokens": "1200",
    "--observed-at": "2026-01-02",
    "--speaker": "Ada",
    "--ttl-days": "5",
}
LISTS = {
    "--tag": ["lexer", "crash"],
    "--concept": ["gotcha", "trade-off"],
    "--file-read": ["src/parser.py"],
    "--file-modified": ["src/lexer.py"],
}


@pytest.fixture
def stocked(settings: Settings) -> None:
    """Put three memories and two facts into the store."""
    with open_app(settings) as app:
        remember(
            app, Draft(content="The parser trips over empty input", type="bugfix", files_read=["src/parse/lex.py"]), ADA
        )
        remember(
            app, Draft(content="The mascot is a quokka", category="brand", tags=["animal"], concepts=["gotcha"]), ADA
        )
        remember(app, Draft(content="Ada moves house in May", sensitivity="private"), ADA)
        store_fact(app, StoreFact(subject="release", predicate="day", object="Friday", valid_from="2026-01-01"), ADA)
        store_fact(
            app,
            StoreFact(subject="release", predicate="day", object="Monday", valid_from="2026-02-01", replaces=True),
            ADA,
        )


def ids(body: dict[str, Any]) -> list[str]:
    """Return the ids of a list."""
    return [one["id"] for one in body["memories"]]


def test_everything_can_be_remembered(typed: Typed) -> None:
    """Every label of a memory can be given, and those that are lists more than once."""
    options = [word for pair in LABELS.items() for word in pair]
    options += [word for name, values in LISTS.items() for value in values for word in (name, value)]
    assert typed("remember", "The parser trips over empty input", *options).code == 0
    body = typed("show", "1", "--private", "--json").json
    assert {name: body[name] for name in ("title", "subtitle", "type", "importance", "trust", "speaker")} == {
        "title": "Lexer guard",
        "subtitle": "None from the tokenizer",
        "type": "bugfix",
        "importance": 0.8,
        "trust": 0.9,
        "speaker": "Ada",
    }
    assert [body[name] for name in ("tags", "concepts", "files_read", "files_modified")] == list(LISTS.values())
    assert (body["session_id"], body["project"], body["discovery_tokens"]) == ("s1", "compiler", 1200)
    assert body["observed_at"].startswith("2026-01-02")
    assert (body["ttl_days"], body["sensitivity"]) == (5, "private")


@pytest.mark.parametrize("command", ["remember", "update"])
def test_every_field_of_a_memory_has_its_option(typed: Typed, command: str) -> None:
    """Whatever a caller may set of a memory can be typed; only the door says which way a memory came in."""
    fields = {one.name for one in whole().commands[command].params}
    request = {"remember": Draft, "update": Update}[command]
    assert set(request.model_fields) - fields == ({"source"} if command == "remember" else set())
    options = ["--abstract", "One line", "--overview", "More of it", "--position", "0", "--importance", "0"]
    assert typed("remember", "The parser trips over empty input", *options).code == 0
    body = typed("show", "1", "--json").json
    assert {name: body[name] for name in ("abstract", "overview", "position", "importance")} == {
        "abstract": "One line",
        "overview": "More of it",
        "position": 0,
        "importance": 0,
    }


@pytest.mark.usefixtures("stocked")
def test_list(typed: Typed) -> None:
    """Memories are listed for people with their labels, for machines with previews; private ones on request."""
    shown = typed("list").out
    for part in ("The mascot is a quokka", "brand", "animal", "The parser trips", "bugfix", "1–2 of 2."):
        assert part in shown
    assert "Ada moves house" not in shown
    body = typed("list", "--json", "--private", "--order", "oldest").json
    assert (body["total"], ids(body)) == (3, ["1", "2", "3"])
    assert body["memories"][1]["preview"] == "The mascot is a quokka"
    assert body["memories"][1]["content"] == "The mascot is a quokka"


@pytest.mark.usefixtures("stocked")
def test_the_options_of_list_filter(typed: Typed) -> None:
    """Each filter leaves what passes it, and a page begins where it is told to."""
    expected: list[tuple[list[str], list[str]]] = [
        (["--limit", "1", "--offset", "1", "--order", "oldest"], ["2"]),
        (["--type", "bugfix"], ["1"]),
        (["--category", "brand", "--tag", "animal", "--concept", "gotcha"], ["2"]),
        (["--file", "lex.py"], ["1"]),
        (["--private", "--sensitivity", "private"], ["3"]),
        (["--scope", "team"], []),
        (["--since", "2126-01-01"], []),
    ]
    for options, found in expected:
        assert ids(typed("list", "--json", *options).json) == found, options


@pytest.mark.usefixtures("stocked")
def test_timeline_by_file_and_by_concept(typed: Typed) -> None:
    """The timeline goes forwards or from the end; a file and a concept find what carries them."""
    assert ids(typed("timeline", "--json").json) == ["1", "2"]
    assert ids(typed("timeline", "--order", "newest", "--json").json) == ["2", "1"]
    assert ids(typed("by-file", "src/parse", "--json").json) == ["1"]
    assert ids(typed("by-concept", "gotcha", "--json").json) == ["2"]
    assert "quokka" in typed("by-concept", "gotcha").out
    empty = typed("by-file", "nowhere.py")
    assert (empty.code, empty.out.strip()) == (0, "Nothing found.")


@pytest.mark.usefixtures("stocked")
def test_update(typed: Typed) -> None:
    """What is given is changed, the rest stays, an empty text takes a label away; `-` reads the content."""
    done = typed("update", "2", "--content", "-", "--category", "", "--tag", "", "--title", "Okapi", stdin=b"An okapi")
    kept = "The earlier text is kept as memory 4, which is hidden."
    assert (done.code, done.out.splitlines()) == (0, ["Memory updated successfully (ID: 2)", kept])
    body = typed("show", "2", "--json").json
    assert (body["content"], body["title"], body["concepts"]) == ("An okapi", "Okapi", ["gotcha"])
    assert not {"category", "tags"} & set(body)
    missing = typed("update", "99", "--title", "x")
    assert (missing.code, missing.err.strip()) == (NotFound.exit_code, "recollect: Memory 99 not found.")


@pytest.mark.usefixtures("stocked")
def test_several_are_forgotten_at_once(typed: Typed) -> None:
    """Each id is answered for itself; one that is unknown makes the exit code, and keeps none of the others."""
    ended = typed("forget", "1", "77", "2")
    assert ended.code == NotFound.exit_code
    for sentence in ("Memory 1 deleted.", "Memory 77 not found.", "Memory 2 deleted."):
        assert sentence in ended.out
    again = typed("forget", "1", "2", "--json")
    assert [one["outcome"] for one in again.json] == ["not_found", "not_found"]


@pytest.mark.usefixtures("stocked")
def test_a_list_may_be_whole(typed: Typed) -> None:
    """With `--all` a list has every memory that passes its filters, in its order, and no page."""
    for number in range(25):
        assert typed("remember", f"The tile number {number} is of clay", "--tag", "clay").code == 0
    listed = ids(typed("list", "--all", "--tag", "clay", "--order", "oldest", "--json").json)
    assert (len(listed), listed == sorted(listed, key=int)) == (25, True)
    assert typed("list", "--all", "--limit", "3").code == InvalidInput.exit_code


@pytest.mark.usefixtures("stocked")
def test_forgetting_softly_can_be_undone(typed: Typed) -> None:
    """A memory that is only hidden leaves every list and comes back; one forgotten for good does not."""
    hidden = typed("forget", "2", "--soft", "--json").json
    assert (hidden["outcome"], hidden["message"]) == ("deleted", "Memory 2 deleted.")
    assert hidden["notes"][-1] == "The memory is hidden; `recollect undo 2` brings it back."
    assert ids(typed("list", "--json").json) == ["1"]
    assert typed("undo", "2").out.strip() == "Memory 2 restored."
    assert typed("undo", "2").out.splitlines() == [
        "Memory 2 is unchanged.",
        "It is not hidden and has no earlier text: nothing to undo.",
    ]
    assert typed("forget", "2", "--soft").out.strip() == "Memory 2 hidden; `recollect undo 2` restores it."
    assert typed("undo", "2").code == 0
    assert set(ids(typed("list", "--json").json)) == {"1", "2"}
    assert typed("forget", "2").code == 0
    gone = typed("undo", "2", "--json")
    assert (gone.code, gone.json["outcome"]) == (NotFound.exit_code, "not_found")


@pytest.mark.usefixtures("stocked")
def test_facts(typed: Typed) -> None:
    """Facts are stored and listed as they hold, as they held, and with their history."""
    assert typed("fact", "team", "writes", "Rust", "--confidence", "0.9", "--memory", "1").out.startswith(
        "Fact stored successfully with ID: 3"
    )
    held = typed("facts", "--json").json
    assert {(fact["subject"], fact["object"]) for fact in held["facts"]} == {("release", "Monday"), ("team", "Rust")}
    [then] = typed("facts", "--subject", "release", "--as-of", "2026-01-15", "--json").json["facts"]
    assert then["object"] == "Friday"
    assert typed("facts", "--history", "--json").json["total"] == 3
    [sure] = typed("facts", "--min-confidence", "0.8", "--json").json["facts"]
    assert (sure["memory_id"], sure["confidence"]) == ("1", 0.9)
    shown = typed("facts", "--history").out
    assert "2026-01-01 – 2026-02-01" in shown
    assert "1–3 of 3." in shown
    assert typed("fact", "team", "writes", "C", "--memory", "99").code == NotFound.exit_code


@pytest.mark.usefixtures("stocked")
def test_similar(typed: Typed) -> None:
    """What says nearly the same is shown with its cosine; that there is none is said; one of both must be given."""
    [near] = typed("similar", "Our mascot is a quokka", "--json").json["memories"]
    assert (near["id"], near["cosine"] > 0.8) == ("2", True)
    assert "The mascot is a quokka" in typed("similar", "Our mascot is a quokka").out
    assert typed("similar", "--id", "2").out.strip() == "No similar memory found."
    assert ids(typed("similar", "2", "--threshold", "-1", "--json").json) == ["1"]
    assert ids(typed("similar", "--id", "2", "--threshold", "-1", "--json").json) == ["1"]
    assert typed("similar").code == InvalidInput.exit_code


@pytest.mark.usefixtures("stocked")
def test_prompt(typed: Typed) -> None:
    """The prompt is printed as it is, to be piped; nothing at all where nothing is remembered."""
    shown = typed("prompt", "which animal is our mascot?").out
    assert shown.startswith("<memories>\n")
    assert "- [2] (general, " in shown
    assert typed("prompt", "--category", "brand", "--json").json["ids"] == ["2"]
    assert typed("--project", "other", "prompt").out == ""


@pytest.mark.usefixtures("stocked")
def test_stats(typed: Typed) -> None:
    """What is stored is counted by scope, kind and state."""
    body = typed("stats", "--json").json
    assert (body["memories"], body["facts"]) == (2, 2)
    assert body["by_category"] == {"brand": 1}
    shown = typed("stats").out
    for part in ("memories", "general 2", "bugfix 1", "brand 1", "2, ended ones too", "0 superseded"):
        assert part in shown


def test_purge(typed: Typed) -> None:
    """What has passed its time is removed for good, and that is said."""
    typed("remember", "The lift is out of order", "--ttl-days", "0.0000001")
    assert typed("purge").out.strip() == "1 expired memory removed."
    assert typed("purge", "--json").json == {"message": "0 expired memories removed.", "ids": []}


def test_summarize(typed: Typed) -> None:
    """What nobody touched for so long comes after one summary per category, which tells what it was made of."""
    for text in ("The attic holds old maps", "The cellar floods in March", "The roof was tiled in slate"):
        typed("remember", text, "--category", "house")
    assert typed("summarize").out.strip() == "0 memories condensed into 0 summaries."
    done = typed("summarize", "--older-than-days", "0.0000001", "--category", "house", "--json").json
    assert done == {"message": "3 memories condensed into 1 summary.", "ids": ["4"], "condensed": 3, "left": 0}
    assert ids(typed("list", "--json").json)[0] == "4"
    assert len(ids(typed("list", "--json").json)) == 4
    assert "slate" in typed("show", "4").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--limit", "0"], "Invalid limit: Must be a whole number from 1 to 100"),
        (["list", "--type", "rumour"], "Invalid type: Must be `bugfix`, "),
        (["by-concept", "rumour"], "Invalid concept: Must be `how-it-works`, "),
        (["list", "--since", "soon"], "Invalid since: Must be a day or a time"),
        (["list", "--sensitivity", "private"], "Invalid sensitivity: `private` memories are let in only with "),
        (["remember", "x", "--importance", "8"], "Invalid importance: Must be 0.0–1.0"),
        (["facts", "--min-confidence", "7"], "Invalid min_confidence: Must be 0.0–1.0"),
        (["summarize", "--at-least", "1"], "Invalid at_least: Must be a whole number from 2 to 100"),
    ],
)
def test_what_is_typed_wrongly_ends_with_two(typed: Typed, arguments: list[str], said: str) -> None:
    """What is out of range is said on standard error with the field and what is allowed."""
    ended = typed(*arguments)
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")
    assert said in ended.err
