"""The commands that change many memories or a whole one: `tags`, `forget --where` and `edit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Settings, remember
from recollect.doors.cli.aliases import ALIASES
from recollect.doors.cli.main import whole
from recollect.errors import InvalidInput, NotFound, SecretFound
from stores import open_app

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]
MANY = 103
"""More than one page of a list."""
TOKEN = "gh" + "p_" + "".join(chr(97 + 7 * n % 26) + str(n % 10) for n in range(18))


@pytest.fixture
def stocked(settings: Settings) -> None:
    """Put four memories into the store, one of them private."""
    tags = (("ops", "Deploy"), ("Ops",), ("deploy", "notes"), ("ops",))
    with open_app(settings) as app:
        for number, some in enumerate(tags, 1):
            level = "private" if number == len(tags) else "public"
            draft = Draft(content=f"Release number {number}", key=f"r{number}", tags=some, sensitivity=level)
            remember(app, draft, ADA)


def tags_of(typed: Typed, number: int) -> list[str]:
    """Return the tags of a memory."""
    return list(typed("show", str(number), "--private", "--json").json.get("tags", []))


@pytest.mark.usefixtures("stocked")
def test_tags_are_counted(typed: Typed) -> None:
    """Each tag is listed as it is written with how many memories carry it; private memories count on request."""
    told = typed("tags")
    assert told.err == ""
    assert told.out.splitlines() == ["tag\tmemories", "Deploy\t1", "Ops\t1", "deploy\t1", "notes\t1", "ops\t1"]
    assert typed("--json", "tags", "--private").json["tags"][0] == {"tag": "ops", "count": 2}
    assert typed("tags", "--scope", "team").out == "No memory has a tag.\n"


@pytest.mark.usefixtures("stocked")
def test_many_are_forgotten_only_when_that_is_meant(typed: Typed) -> None:
    """`--where` needs a filter and `--yes` where nobody can be asked; a dry run only shows."""
    refused = {
        ("--where",): "Invalid where: Must come with a filter",
        ("--where", "--scope", "project"): "Invalid where: Must come with a filter",
        ("--where", "--tag", "ops"): "2 memories would be forgotten: add `--yes` to do it",
        ("--where", "--tag", "ops", "1"): "Must not be given together with an id",
        ("--tag", "ops"): "Missing id: Type the id of a memory, or `--where` and filters",
        ("1", "--tag", "ops"): "Missing where: Filters choose memories only with `--where`",
    }
    for arguments, said in refused.items():
        ended = typed("forget", *arguments)
        assert (ended.code, said in ended.err) == (InvalidInput.exit_code, True), arguments
    shown = typed("forget", "--where", "--tag", "ops", "--dry-run").out
    assert "Release number 1" in shown
    assert shown.endswith("2 memories would be forgotten.\n")
    done = typed("forget", "--where", "--tag", "ops", "--yes", "--json").json
    assert done == {"message": "2 memories deleted.", "ids": ["2", "1"], "dry_run": False}
    assert [one["id"] for one in typed("list", "--private", "--json").json["memories"]] == ["4", "3"]
    nothing = typed("forget", "--where", "--tag", "ops", "--yes")
    assert (nothing.code, nothing.out) == (NotFound.exit_code, "No memory passes these filters.\n")
    assert typed("forget", "--where", "--tag", "notes", "--soft", "--yes").code == 0
    assert typed("undo", "3").code == 0


def test_more_than_a_page_is_forgotten(typed: Typed, settings: Settings) -> None:
    """All that pass are forgotten, and a dry run shows the first of them and says how many more there are."""
    with open_app(settings) as app:
        for number in range(MANY):
            remember(app, Draft(content=f"Line {number}", category="log", fact_type="event"), ADA)
    shown = typed("forget", "--where", "--category", "log", "--dry-run").out.splitlines()
    assert shown[-2:] == [f"and {MANY - 5} more", f"{MANY} memories would be forgotten."]
    assert len(typed("forget", "--where", "--category", "log", "--yes", "--json").json["ids"]) == MANY


def editing(folder: Path, script: str) -> dict[str, str]:
    """Return the variable that names an editor which runs this line of `sed` over the file."""
    return {"VISUAL": "", "EDITOR": f"sed -i -e '{script}'", "PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}


@pytest.mark.usefixtures("stocked")
def test_a_memory_is_edited(typed: Typed, tmp_path: Path) -> None:
    """What was changed in the editor is written, labels and content; a label without a value is taken away."""
    told = typed("edit", "1", **editing(tmp_path, 's/number 1/one/; s/^key:.*/key:/; s/^tags:.*/tags: [a, "b: c"]/'))
    assert (told.code, told.out.splitlines()[0]) == (0, "Memory updated successfully (ID: 1)")
    assert "The earlier text is kept as memory" in told.out
    body = typed("show", "1", "--json").json
    assert (body["content"], body["tags"], body.get("key")) == ("Release one", ["a", "b: c"], None)
    assert typed("edit", "1", **editing(tmp_path, "s/b: c/d/")).code == 0
    assert tags_of(typed, 1) == ["a", "d"]
    lines = len(body["history"]) + 1
    same = typed("edit", "1", "--json", **editing(tmp_path, "s/nothing/x/"))
    assert (same.code, same.json) == (0, {"message": "Nothing changed.", "id": "1", "outcome": "unchanged"})
    assert len(typed("show", "1", "--json").json["history"]) == lines
    assert typed("edit", "4").code == NotFound.exit_code


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (
            "s/number 1/" + "gh" + "p_" + "".join(chr(97 + 7 * n % 26) + str(n % 10) for n in range(18)) + "/",
            3,
            "Secret",
        ),
        ("s/^importance:.*/importance: 8/", 2, "Invalid importance: Must be 0.0–1.0. Your text"),
        ("s/^key:.*/colour: red/", 2, "Unknown parameter: `colour`"),
    ],
)
def test_what_the_editor_may_not_write_is_kept(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, code: int, said: str
) -> None:
    """A secret or a wrong label is refused as by `update`; the text stays in a file that only its owner reads."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    refused = typed("edit", "1", **editing(tmp_path, script))
    assert refused.code == code
    assert said in refused.err
    kept = Path(refused.err.rpartition(" kept in ")[2].strip().rstrip("."))
    assert "Release " in kept.read_text(encoding="utf-8") or code == SecretFound.exit_code
    assert kept.stat().st_mode & 0o777 == 0o600
    assert typed("show", "1", "--json").json["content"] == "Release number 1"


def test_without_a_terminal_an_editor_is_named(typed: Typed, settings: Settings) -> None:
    """Where there is neither a terminal nor an editor, that is said at once."""
    with open_app(settings) as app:
        remember(app, Draft(content="x"), ADA)
    refused = typed("edit", "1", VISUAL="", EDITOR="")
    assert (refused.code, "set EDITOR, or use `recollect update`" in refused.err) == (InvalidInput.exit_code, True)


def test_several_ids_are_shown_and_forgotten(typed: Callable[..., Any]) -> None:
    """Ids stand beside each other, between commas or behind a `#`; a name that newcomers guess does the same."""
    for content in ("The mast is oak", "The keel is iron", "The pier is long"):
        assert typed("add", content, "--tags", "ship,dock").code == 0
    assert [one["id"] for one in typed("show", "#1", "2,3", "--json").json] == ["1", "2", "3"]
    assert typed("get", "2", "--json").json["tags"] == ["ship", "dock"]
    assert typed("rm", "1,3").code == 0
    assert [one["id"] for one in typed("ls", "-n", "5", "--json").json["memories"]] == ["2"]


def test_every_alias_stands_for_a_command() -> None:
    """No alias hides a command, and what it stands for exists."""
    known = whole().commands
    assert not ALIASES.keys() & known.keys()
    assert {word.partition(" ")[0] for word in ALIASES} & known.keys() <= {"tag"}
    assert {words[0] for words in ALIASES.values()} <= known.keys()


@pytest.mark.usefixtures("stocked")
def test_memories_are_put_in_order(typed: Typed) -> None:
    """Pinning, burying, moving and promoting take several ids, say what holds now, and name an id that is none."""
    assert typed("pin", "1", "2").out.count("It is pinned") == 2
    mixed = typed("unpin", "#1", "77")
    assert (mixed.code, mixed.out.splitlines()) == (
        NotFound.exit_code,
        ["Memory updated successfully (ID: 1)", "It is no longer pinned.", "Memory 77 not found."],
    )
    assert [one["outcome"] for one in typed("bury", "1,3", "--json").json] == ["updated", "updated"]
    assert typed("move", "1", "--to", "mast").out.splitlines()[1].startswith("Moved to the project mast: ")
    assert "Moved to the team" in typed("promote", "2", "--scope", "team").out
    wrong = typed("pin", "every", "lamp")
    assert (wrong.code, wrong.err) == (
        InvalidInput.exit_code,
        "recollect: Invalid id: `every` is none; Must be a number, as `recall` and `list` show it\n",
    )
    assert typed("pin", "77").code == NotFound.exit_code


def test_recall_names_the_project_that_has_it(typed: Typed, settings: Settings) -> None:
    """Where this project has nothing, the project that has is named, with the option that looks there."""
    with open_app(settings) as app:
        remember(app, Draft(content="The release train leaves on Tuesday"), ADA.model_copy(update={"project": "shop"}))
    said = " ".join(typed("recall", "release train").out.split())
    told = (
        'Not in project engine, but in your other projects: 1 in shop, nearest: "The release train leaves on Tuesday".'
    )
    assert f"{told} `recall` and `list` look there with `--everywhere`." in said
    assert "The release train leaves" in typed("recall", "release train", "--everywhere").out
    assert "· shop" in typed("list", "--everywhere").out


@pytest.mark.usefixtures("stocked")
def test_a_memory_is_changed_as_people_type_it(typed: Typed) -> None:
    """A text behind the id of `update` or `edit` is the new content; `tag` adds tags and takes some away."""
    assert typed("update", "1", "Release", "one", "is", "out").code == 0
    assert typed("show", "1", "--json").json["content"] == "Release one is out"
    assert typed("edit", "1", "--content", "Release one is late", EDITOR="false").code == 0
    assert typed("show", "1", "--json").json["content"] == "Release one is late"
    assert "Must be given once" in typed("update", "1", "a", "text", "--content", "b").err
    assert typed("tag", "1", "quay,Night", "OPS").code == 0
    assert tags_of(typed, 1) == ["Deploy", "quay", "Night", "OPS"]
    assert typed("tag", "1", "ops", "night", "--remove").code == 0
    assert tags_of(typed, 1) == ["Deploy", "quay"]
    assert typed("tag", "99", "ops").code == NotFound.exit_code


@pytest.mark.usefixtures("stocked")
def test_forgetting_all_asks_first(typed: Typed) -> None:
    """`forget --all` means this project unless a scope is named, and does nothing unless somebody agrees."""
    assert typed("remember", "--scope", "personal", "I like tea").code == 0
    asked = typed("forget", "--all")
    assert (asked.code, asked.out) == (InvalidInput.exit_code, "")
    assert "3 memories would be forgotten: add `--yes` to do it" in asked.err
    assert typed("forget", "--all", "--dry-run", "--json").json["ids"] == ["3", "2", "1"]
    assert typed("forget", "1", "--all").code == InvalidInput.exit_code
    assert typed("forget", "--all", "--yes").out == "3 memories deleted.\n"
    assert [one["preview"] for one in typed("list", "--json").json["memories"]] == ["I like tea"]


@pytest.mark.usefixtures("stocked")
def test_what_newcomers_guess_is_understood(typed: Typed, tmp_path: Path) -> None:
    """Words and options that other programs have mean here what they mean there."""
    assert typed("recall", "release", "--verbose").out == typed("recall", "release", "--why").out
    assert typed("export", "-o", str(tmp_path / "all.jsonl")).err.startswith(f"Exported to {tmp_path / 'all.jsonl'}.\n")
    assert typed("export", "a.jsonl", "-o", "b.jsonl").code == InvalidInput.exit_code
    typed("hide", "2")
    assert typed("restore", "2").out == "Memory 2 restored.\n"
    assert "There is no backup nothing.zip" in typed("restore", "nothing.zip").err


def test_settings_are_shown_and_no_secret(typed: Typed) -> None:
    """Each setting has its value and whether it was set; of a key that alone is told."""
    key = "-".join(("sk", "a1B2" * 8))
    shown = typed("config", "--json", RECOLLECT_CHAT_KEY=key, RECOLLECT_TEAM="dock").json["settings"]
    told = {one["name"]: (one["value"], one["set_by"]) for one in shown}
    assert told["RECOLLECT_TEAM"] == ("dock", "environment")
    assert told["RECOLLECT_CHAT_KEY"] == ("(hidden)", "environment")
    assert told["RECOLLECT_TOKEN"] == ("", "")
    assert told["RECOLLECT_INSECURE"][0] == "False"
    assert "" in {set_by for _, set_by in told.values()}


def test_projects_are_listed_with_their_memories(typed: Typed, settings: Settings) -> None:
    """Each project that holds memories is there with its number, and the one of this folder though it holds none."""
    with open_app(settings) as app:
        for project in ("shop", "shop", "mast"):
            caller = ADA.model_copy(update={"project": project})
            remember(app, Draft(content=f"The {project} has {len(project)} floors"), caller)
        remember(app, Draft(content="The shop is closed on Mondays"), ADA.model_copy(update={"project": "shop"}))
    assert typed("project", "list", "--json").json == {
        "projects": [
            {"project": "shop", "memories": 2, "here": False},
            {"project": "mast", "memories": 1, "here": False},
            {"project": "engine", "memories": 0, "here": True},
        ]
    }
    assert typed("projects").out.splitlines()[1].startswith("shop\t2")
