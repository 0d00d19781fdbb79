"""The command line: each command answers people and machines, and every error ends with its own code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Settings, remember
from recollect.domain.enums import Scope
from recollect.doors.cli.command_groups import DAILY
from recollect.doors.cli.main import whole
from recollect.doors.cli.options import FILTERS
from recollect.errors import InvalidInput, ModelUnusable, NotFound, SecretFound, StoreOwned, StoreUnusable
from recollect.store.store_lock import own
from stores import altered_model, open_app

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]
COMMANDS = sorted(whole().commands)


def secret() -> str:
    """Build what looks like a GitHub token, so that none stands in this file."""
    return "gh" + "p_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))


def test_remember_and_its_update(typed: Typed) -> None:
    """Remembering answers with the specification's sentences, `--json` with message, id and outcome."""
    first = typed("remember", "We deploy on Fridays", "--key", "deploys")
    assert (first.code, first.out.strip()) == (0, "Memory stored successfully with ID: 1")
    again = typed("remember", "We deploy on Mondays", "--key", "deploys", "--json")
    kept = ["The earlier text is kept as memory 2, which is hidden."]
    assert again.json == {
        "message": "Memory updated successfully (ID: 1)",
        "id": "1",
        "outcome": "updated",
        "notes": kept,
    }


def test_every_option_of_remember_arrives(typed: Typed) -> None:
    """Key, kind, category, confidence and scope are stored as they were given."""
    options = ["--key", "k", "--fact-type", "decisions", "--category", "ops", "--confidence", "0.9", "--scope", "team"]
    assert typed("remember", "We deploy on Fridays", *options).code == 0
    body = typed("show", "1", "--json").json
    assert {name: body[name] for name in ("key", "fact_type", "category", "confidence", "scope", "content")} == {
        "key": "k",
        "fact_type": "decision",
        "category": "ops",
        "confidence": 0.9,
        "scope": "team",
        "content": "We deploy on Fridays",
    }


def test_a_dash_reads_standard_input(typed: Typed) -> None:
    """With `-` the content comes from standard input, without the end of its last line."""
    text = "line one\nline two: größe ✓\n"
    assert typed("remember", "-", stdin=text.encode()).code == 0
    assert typed("show", "1", "--json").json["content"] == text.rstrip("\n")


def test_recall_for_people(typed: Typed, settings: Settings) -> None:
    """A hit is shown with its id, its labels, how sure it is and how it was found; `--why` adds the score's parts."""
    stock(settings)
    shown = typed("recall", "quokka").out
    for part in ("The mascot is a quokka", "%)", "found by", "1 memory found."):
        assert part in shown
    assert "score" not in shown
    whole = typed("recall", "quokka", "--why").out
    for part in ("score 0.", "match 0.", "recency 0."):
        assert part in whole


def test_recall_of_a_long_memory_shows_the_passage(typed: Typed) -> None:
    """Of a long memory people see the passage that answers, and how to see the rest; `--json` has all of it."""
    filler = "\n\n".join(f"Paragraph {number} is about curtains, carpets and cushions." for number in range(400))
    text = f"{filler}\n\nThe mascot is a quokka named Zephyrine.\n\n{filler}"
    assert typed("remember", "-", stdin=text.encode()).code == 0
    shown = typed("recall", "which quokka is the mascot?").out
    assert len(shown) < 3_000
    for part in ("… ", "quokka named Zephyrine", " …", "`recollect show ID` shows a memory whole."):
        assert part in shown
    [hit] = typed("recall", "which quokka is the mascot?", "--json").json["memories"]
    assert hit["content"] == text


def test_recall_for_machines(typed: Typed, settings: Settings) -> None:
    """`--json` gives message and memories; each has id, content, similarity, score, why and its labels."""
    stock(settings)
    body = typed("recall", "quokka", "--json").json
    assert body["message"] == "1 memory found."
    [hit] = body["memories"]
    names = {
        "id",
        "content",
        "similarity",
        "certainty",
        "score",
        "why",
        "fact_type",
        "scope",
        "confidence",
        "updated_at",
    }
    assert names <= set(hit)
    assert (hit["content"], hit["key"], hit["category"]) == ("The mascot is a quokka", "mascot", "brand")


def test_the_options_of_recall_filter(typed: Typed, settings: Settings) -> None:
    """Limit, scope, kind, category, profile and lowest score do what they say."""
    stock(settings)

    def keys(*options: str) -> list[str]:
        return [hit["key"] for hit in typed("recall", "the mascot or the office", "--json", *options).json["memories"]]

    assert set(keys("--min-score", "0")) == {"mascot", "office"}
    assert len(keys("--min-score", "0", "--limit", "1")) == 1
    assert keys("--min-score", "0", "--category", "brand") == ["mascot"]
    assert keys("--min-score", "0", "--fact-type", "decision") == ["office"]
    assert keys("--min-score", "0", "--scope", "team") == ["office"]
    assert keys("--min-score", "1") == []
    assert set(keys("--min-score", "0", "--profile", "relevance")) == {"mascot", "office"}


def stock(settings: Settings) -> None:
    """Put two memories into the store: one of the project, one of the team."""
    with open_app(settings) as app:
        remember(app, Draft(content="The mascot is a quokka", key="mascot", category="brand"), ADA)
        remember(
            app, Draft(content="The office is in Ghent", key="office", scope=Scope.TEAM, fact_type="decision"), ADA
        )


def test_recall_that_finds_nothing_is_no_failure(typed: Typed, settings: Settings) -> None:
    """Finding nothing is an answer: a person also sees what comes nearest, a program only that there is nothing."""
    stock(settings)
    found = typed("recall", "banana bread")
    said, nearest = found.out.strip().splitlines()
    assert (found.code, said) == (0, "Nothing relevant found.")
    assert re.fullmatch(
        r"Closest, but probably not relevant: #\d \(\d%\)  The (mascot is a quokka|office is in Ghent)", nearest
    )
    assert typed("recall", "banana bread", "--json").json == {"message": "Nothing relevant found.", "memories": []}


def test_weak_hits_are_a_line_each(typed: Typed, settings: Settings) -> None:
    """Hits below 20 % stand behind the others on a line of their own and are not counted; `--why` prints them whole."""
    stock(settings)
    some = typed("recall", "the mascot quokka", "--min-score", "0").out
    assert re.search(r"likely|strong", some.partition("1 memory found.")[0])
    assert re.search(r"\nClosest, but probably not relevant: #2 \(\d%\)  The office is in Ghent\n", some)
    none = typed("recall", "banana bread", "--min-score", "0").out.splitlines()
    assert none[:2] == ["Nothing relevant found.", "Closest, but probably not relevant:"]
    assert all(re.fullmatch(r"  #\d \(\d%\)  The .*", line) for line in none[2:4])
    whole_hit = typed("recall", "banana bread", "--min-score", "0", "--why").out
    assert (whole_hit.count("weak ("), whole_hit.count("score 0.")) == (2, 2)
    assert len(typed("recall", "banana bread", "--min-score", "0", "--json").json["memories"]) == 2


def test_forget(typed: Typed, settings: Settings) -> None:
    """Forgetting says so; where there is nothing to forget it says so with exit code 4."""
    stock(settings)
    gone = typed("forget", "1", "--json")
    body = {"message": "Memory 1 deleted.", "id": "1", "outcome": "deleted"}
    assert (gone.code, gone.json) == (0, body | {"said": "The mascot is a quokka"})
    again = typed("forget", "1")
    assert (again.code, again.out.strip()) == (NotFound.exit_code, "Memory 1 not found.")
    elsewhere = typed("forget", "2", "--scope", "personal", "--json")
    assert (elsewhere.code, elsewhere.json["outcome"]) == (NotFound.exit_code, "not_found")


def test_show(typed: Typed, settings: Settings) -> None:
    """A memory is shown whole with its history; a private one only on request; another's not at all."""
    with open_app(settings) as app:
        remember(app, Draft(content="Ada moves house", key="house", sensitivity="private"), ADA)
    denied = typed("show", "1")
    assert (denied.code, denied.err.strip()) == (NotFound.exit_code, "recollect: Memory 1 not found.")
    shown = typed("show", "1", "--private")
    assert "Ada moves house" in shown.out
    assert "insert" in shown.out
    body = typed("show", "1", "--private", "--json").json
    assert [line["action"] for line in body["history"]] == ["insert"]
    assert {"id", "content", "abstract", "overview", "created_at", "history"} <= set(body)
    assert typed("--user", "bob", "--project", "other", "show", "1", "--private").code == NotFound.exit_code


def test_a_secret_is_refused_or_masked(typed: Typed) -> None:
    """A secret ends with code 3 and is not repeated; with `--redact` it is masked, and that is said."""
    refused = typed("remember", f"deploy with {secret()} please")
    assert refused.code == SecretFound.exit_code
    assert "Secret detection: Blocks storage of API keys, tokens, and passwords" in refused.err
    assert secret() not in refused.out + refused.err
    masked = typed("remember", f"deploy with {secret()} please", "--redact")
    assert (masked.code, "masked" in masked.out) == (0, True)
    content = typed("show", "1", "--json").json["content"]
    assert content.startswith("deploy with [redacted: ")
    assert secret() not in content


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["remember", "  "], "Invalid content: Must hold some text"),
        (["remember", "x", "--confidence", "1.5"], "Invalid confidence: Must be 0.0–1.0"),
        (["remember", "x", "--fact-type", "rumour"], "Invalid fact_type: Must be `general`, "),
        (["recall", ""], "Invalid query: Must hold some text"),
        (["recall", "x", "--limit", "0"], "Invalid limit: Must be a whole number from 1 to 100"),
        (["recall", "x", "--min-score", "7"], "Invalid min_score: Must be 0.0–1.0"),
        (["--team", "a/b", "recall", "x"], "Invalid team: Must be 1–200 characters without `/`"),
        (["remember", "x", "--scope", "galaxy"], "galaxy"),
        (["recall", "x", "--limit", "few"], "--limit"),
        (["recal", "x"], "recal"),
    ],
)
def test_invalid_input_ends_with_two(typed: Typed, arguments: list[str], said: str) -> None:
    """What was typed wrongly is said on standard error, with exit code 2."""
    ended = typed(*arguments)
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")
    assert said in ended.err


def test_an_invalid_setting_ends_with_two(typed: Typed) -> None:
    """A variable with a wrong value is named, with what is allowed."""
    ended = typed("recall", "x", RECOLLECT_ON_SECRET="shrug")
    assert ended.code == InvalidInput.exit_code
    assert "Invalid setting RECOLLECT_ON_SECRET: Must be 'block' or 'redact'" in ended.err


@pytest.mark.parametrize("arguments", [["remember", "x"], ["recall", "x"], ["forget", "1"], ["show", "1"], ["reindex"]])
def test_a_store_in_use_ends_with_five(typed: Typed, settings: Settings, arguments: list[str]) -> None:
    """While another process owns the store, every command names it in one sentence and ends with code 5."""
    owner = own(settings.folder)
    try:
        ended = typed(*arguments)
    finally:
        owner.release()
    assert (ended.code, ended.out) == (StoreOwned.exit_code, "")
    assert ended.err.startswith(f"recollect: The store in {settings.folder} is in use by process ")


@pytest.mark.parametrize("command", ["remember", "show", "reindex"])
@pytest.mark.parametrize("home", ["a file", "in a file", "read-only", "no database"])
def test_a_bad_home_ends_with_six(typed: Typed, tmp_path: Path, home: str, command: str) -> None:
    """A data folder that cannot be used is one sentence and exit code 6, whatever was asked."""
    folder = tmp_path / "bad"
    if home == "no database":
        folder.mkdir()
        (folder / "memory.db").write_text("these are not the pages of a database" * 200, encoding="utf-8")
    elif home == "read-only":
        folder = Path("/proc/recollect")
    else:
        folder.write_text("a file", encoding="utf-8")
        folder = folder / "deeper" if home == "in a file" else folder
    arguments = [] if command == "reindex" else ["1"]
    ended = typed(command, *arguments, RECOLLECT_HOME=str(folder))
    assert (ended.code, ended.out) == (StoreUnusable.exit_code, "")
    assert str(folder) in ended.err


def test_an_altered_model_ends_with_eight(typed: Typed, tmp_path: Path) -> None:
    """A model whose file is not the one of its card is not used, and the sentence says what to do."""
    ended = typed("remember", "x", RECOLLECT_MODELS_DIR=str(altered_model(tmp_path)))
    assert ended.code == ModelUnusable.exit_code
    assert "is not the one of its model card" in ended.err
    assert "Install Recollect again" in " ".join(ended.err.split())


def test_text_that_is_no_text_is_refused(typed: Typed) -> None:
    """Bytes that are no UTF-8 are refused in a sentence, on standard input as elsewhere."""
    ended = typed("remember", "-", stdin=b"caf\xe9")
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")


def test_a_terminal_without_unicode_is_no_failure(typed: Typed, settings: Settings) -> None:
    """Where standard output knows only ASCII, the answer is still given."""
    stock(settings)
    assert typed("remember", "Größe ✓ quokka").code == 0
    ended = typed("recall", "quokka", PYTHONIOENCODING="ascii")
    assert ended.code == 0
    assert "The mascot is a quokka" in ended.out
    body = typed("recall", "quokka", "--json", PYTHONIOENCODING="ascii").json
    assert {one["content"] for one in body["memories"]} == {"The mascot is a quokka", "Größe ✓ quokka"}
    assert typed("doctor", PYTHONIOENCODING="ascii").code == 0


def test_the_caller_can_be_told_per_call(typed: Typed, tmp_path: Path) -> None:
    """Home, user, team and project before the command win over the environment."""
    options = ["--home", str(tmp_path / "elsewhere"), "--user", "bob", "--team", "red", "--project", "x"]
    assert typed(*options, "remember", "Bob was here", "--scope", "personal").code == 0
    assert typed(*options, "show", "1", "--json").json["author"] == "bob"
    assert typed("recall", "Bob was here", "--json").json["memories"] == []


@pytest.mark.parametrize("words", [("recall", "quokka"), ("list",), ("forget", "1"), ("doctor",), ("export",)])
def test_a_misspelt_home_makes_no_store(typed: Typed, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Only what stores makes a store in a folder that is named; all else says that there is none, and what makes it."""
    misspelt = tmp_path / "misspelt"
    ended = typed("--home", str(misspelt), *words)
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")
    assert f"There is no store in {misspelt}. `recollect --home {misspelt} init` makes one there." in ended.err
    assert typed("--home", str(misspelt), *words, "--help").code == 0
    assert not misspelt.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_worth_reading(typed: Typed, command: str) -> None:
    """The help of every command says what it does, and explains its options and arguments or names what does."""
    described = whole().commands[command]
    shown = typed(command, "--help")
    assert shown.code == 0
    flat = " ".join(shown.out.replace("│", " ").split())
    assert described.help
    assert " ".join(described.help.replace("`", "").split()) in flat.replace("`", "")
    for one in (shown_one for shown_one in described.params if not getattr(shown_one, "hidden", False)):
        assert one.help, f"{command} {one.name} is not explained"
        elsewhere = getattr(one, "rich_help_panel", None) == FILTERS and one.name not in DAILY and command != "filters"
        assert (" ".join(one.help.replace("`", "").split()) in flat.replace("`", "")) != elsewhere
        assert not elsewhere or "see recollect filters" in flat.replace("`", "")
        assert all(name in flat for name in one.opts if name.startswith("--"))


def test_no_help_shows_a_type_of_python(typed: Typed) -> None:
    """The help of every command, at any depth, shows words that people type, and no type of the program's language."""
    pages = list(_command_names(whole()))
    assert ("backup", "create") in pages
    for words in pages:
        shown = typed(*words, "--help").out
        assert not re.search(r"<(str|path|Path|int|float)>|list\[", shown), words
    assert "[ID]..." in typed("forget", "--help").out


def _command_names(command: Any, *above: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a command and of all commands below it."""
    yield above
    for name, below in getattr(command, "commands", {}).items():
        yield from _command_names(below, *above, name)


def test_the_main_help_lists_every_command(typed: Typed) -> None:
    """Without a command, and with `--help`, every command is listed with what it is for."""
    shown = typed("--help").out
    assert {"remember", "recall", "forget", "show", "doctor", "reindex", "mcp"} <= set(COMMANDS)
    hidden = {name for name, one in whole().commands.items() if one.hidden}
    assert hidden == {"filters", "restore"}  # the help of others names it; what `backup restore` was called before
    assert {name for name in COMMANDS if f"\n  {name} " not in shown} == hidden
    bare = typed()
    assert (bare.out + bare.err).strip() == shown.strip()
