"""How commands end: errors for machines, streams that are closed, full or broken off, and answers into a pipe."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from recollect import Draft, Settings, StoreFact, remember, store_fact
from recollect.errors import InvalidInput, NotFound, RecollectError, SecretFound, StoreOwned
from recollect.store.store_lock import own
from stores import open_app

pytestmark = pytest.mark.slow

Typed = Callable[..., Any]
EXECUTABLE = str(Path(sys.executable).with_name("recollect"))


@pytest.fixture
def stocked(settings: Settings) -> None:
    """Put two memories and a fact into the store."""
    with open_app(settings) as app:
        remember(
            app, Draft(content="The mascot\nis a quokka " * 6, title="Mascot", tags=["animal"], category="brand"), ADA
        )
        remember(app, Draft(content="The office is in Ghent"), ADA)
        store_fact(app, StoreFact(subject="office", predicate="is in", object="Ghent"), ADA)


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "said"),
    [
        (
            ["remember", "x", "--type", "zip", "--json"],
            InvalidInput.exit_code,
            "InvalidInput",
            "Invalid type: Must be `bugfix`",
        ),
        (["show", "--json", "99"], NotFound.exit_code, "NotFound", "Memory 99 not found."),
        (
            ["recall", "x", "--limit", "few", "--json"],
            InvalidInput.exit_code,
            "InvalidInput",
            "Invalid value for '--limit' / '-n': ",
        ),
        (
            ["recall", "--json"],
            InvalidInput.exit_code,
            "InvalidInput",
            "Missing query: Type the text, or pipe it in",
        ),
        (["recal", "x", "--json"], InvalidInput.exit_code, "InvalidInput", "No such command `recal`"),
    ],
)
def test_errors_are_json_too(typed: Typed, arguments: list[str], code: int, kind: str, said: str) -> None:
    """With `--json` an error is an object of its kind and sentence on standard output, and nothing else is said."""
    ended = typed(*arguments)
    assert (ended.code, ended.err) == (code, "")
    assert ended.json["error"] == kind
    assert ended.json["message"].startswith(said)


def test_a_refused_secret_and_a_held_store_are_json_too(typed: Typed, settings: Settings) -> None:
    """What the gate refuses and what another process holds is told to machines with the same codes."""
    secret = "gh" + "p_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    refused = typed("remember", f"deploy with {secret}", "--json")
    assert (refused.code, refused.json["error"], secret in refused.out) == (SecretFound.exit_code, "SecretFound", False)
    owner = own(settings.folder)
    try:
        held = typed("list", "--json")
    finally:
        owner.release()
    assert (held.code, held.json["error"]) == (StoreOwned.exit_code, "StoreOwned")


def test_a_text_that_reads_json_is_no_option(typed: Typed) -> None:
    """Behind `--` stands text alone: an error is for people then."""
    ended = typed("show", "--", "--json")
    assert (ended.code, ended.out, ended.err) == (NotFound.exit_code, "", "recollect: Memory --json not found.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["recall", "x", "--limit", "few"], "Invalid value for '--limit' / '-n': Must be a whole number."),
        (["recall", "x", "--scope", "galaxy"], "Invalid value for '--scope': 'galaxy' is not one of 'personal', "),
        (["list", "--colour"], "No such option: --colour"),
        (["fact", "a"], "Missing argument 'PREDICATE'."),
    ],
)
def test_misuse_is_one_sentence(typed: Typed, arguments: list[str], said: str) -> None:
    """What was typed wrongly is one line with a hint where to read on: no box, no words of any library."""
    ended = typed(*arguments)
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")
    assert ended.err.startswith(f"recollect: {said}")
    assert ended.err.endswith(f"Try `recollect {arguments[0]} --help`.\n")
    assert ended.err.count("\n") == 1


def test_the_version_is_told(typed: Typed) -> None:
    """`--version` says which version this is, and nothing else happens."""
    assert typed("--version").out == f"recollect {version('recollect')}\n"


@pytest.mark.parametrize(
    ("stdin", "said"), [(b"", "Must hold some text"), (b"caf\xe9", "It is not UTF-8: byte 4 is 0xe9.")]
)
def test_what_comes_in_is_checked(typed: Typed, stdin: bytes, said: str) -> None:
    """Standard input that is empty or no text is refused in a sentence, however strict its encoding is."""
    ended = typed("remember", "-", stdin=stdin, PYTHONIOENCODING="utf-8:strict")
    assert (ended.code, ended.out) == (InvalidInput.exit_code, "")
    assert "Invalid content: " in ended.err
    assert said in ended.err


def shell(line: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in which `$R` is the command; an error on the way fails the line."""
    command = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(command, env=environment | {"R": EXECUTABLE}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("line", ['"$R" remember - <&-', '"$R" update 1 --content - <&-'])
def test_a_closed_input_holds_nothing(alone: dict[str, str], line: str) -> None:
    """Where standard input is closed there is no text, and that is said."""
    done = shell(line, alone)
    assert (done.returncode, done.stderr) == (
        InvalidInput.exit_code,
        "recollect: Invalid content: Must hold some text\n",
    )


@pytest.mark.full_cases("list --json", "show 99 --json")
@pytest.mark.parametrize("command", ["list", "list --json", "show 99 --json", "export"])
def test_an_answer_that_cannot_be_written_is_said(alone: dict[str, str], command: str) -> None:
    """A full device is one sentence."""
    done = shell(f'"$R" {command} > /dev/full', alone)
    assert done.returncode == RecollectError.exit_code
    assert done.stderr == "recollect: The answer cannot be written: No space left on device.\n"


@pytest.mark.full_cases("list --json", "show 99 --json")
@pytest.mark.parametrize("command", ["list", "list --json", "show 99 --json"])
def test_a_reader_that_goes_is_no_error(alone: dict[str, str], command: str) -> None:
    """Nothing is said when whoever read the answer has seen enough, and nothing when nobody listens at all."""
    assert shell(f'"$R" {command} | true', alone).stderr == ""
    assert shell(f'"$R" {command} >&-', alone).stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quit"], "No such command `quit`. Did you mean `stop`? Try `recollect --help`."),
        (["clear", "all"], "Did you mean `forget --where`? Try"),
        (["dump", "x"], "Did you mean `export`? Try"),
        (["recal", "x"], "Did you mean `recall`, `rescan`? Try"),
    ],
)
def test_a_guessed_command_leads_to_the_right_one(typed: Typed, words: list[str], said: str) -> None:
    """What newcomers type is answered with the command that they mean."""
    ended = typed(*words)
    assert ended.code == InvalidInput.exit_code
    assert said in ended.err


def test_help_may_be_asked_for_in_any_way(typed: Typed) -> None:
    """`-h`, `help` and `help COMMAND` are as good as `--help`, and no line of the list of commands is cut off."""
    whole = typed("--help", COLUMNS="80").out
    assert typed("-h", COLUMNS="80").out == typed("help", COLUMNS="80").out == whole
    assert typed("recall", "-h").out == typed("help", "recall").out == typed("recall", "--help").out
    assert typed("version").out == typed("--version").out
    assert "..." not in whole.partition("Every day:")[2]


@pytest.mark.usefixtures("stocked")
def test_lists_into_a_pipe(typed: Typed) -> None:
    """Into a pipe a list has one line for each row, tabs between its cells, however narrow a terminal would be."""
    lines = typed("list", COLUMNS="40").out.splitlines()
    assert [len(line.split("\t")) for line in lines] == [4, 4, 4, 1]
    assert lines[0] == "id\tmemory\tlabels\tchanged"
    assert lines[1].startswith("2\tThe office is in Ghent\tgeneral\t")
    assert lines[2].startswith("1\tMascot The mascot is a quokka ")
    assert lines[2].split("\t")[2] == "general · brand · animal"
    assert typed("facts").out.splitlines()[1].split("\t")[1:4] == ["office", "is in", "Ghent"]


@pytest.mark.usefixtures("stocked")
def test_hits_into_a_pipe(typed: Typed) -> None:
    """Into a pipe a hit has no box: its id and labels, the text with its own lines, and why it was found."""
    shown = typed("recall", "where is the office?", COLUMNS="40").out
    head, text, why, blank, count = shown.splitlines()[-5:]
    assert (head, text, blank, count) == ("2  general · project", "The office is in Ghent", "", "1 memory found.")
    assert re.match(r"(strong|likely|weak) \(\d+%\)   found by ", why)
    assert not set("╭│╰─") & set(shown)
    assert "content\tThe mascot\nis a quokka " in typed("show", "1").out


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_terminal_gets_what_fits(typed: Typed, columns: int) -> None:
    """In a terminal nothing is wider than it is, hits have a frame, and lists their columns."""
    terminal = {"COLUMNS": str(columns), "TTY_COMPATIBLE": "1", "TERM": "xterm"}
    for command in (["recall", "office"], ["list"], ["show", "1"], ["facts"], ["stats"], ["doctor"]):
        shown = typed(*command, **terminal).out
        assert max(len(line) for line in plain(shown).splitlines()) <= columns, command
        assert "\t" not in shown
    assert "╭─ 2  general · project ─" in plain(typed("recall", "office", **terminal).out)


def plain(text: str) -> str:
    """Leave out what makes letters bold or dim."""
    for code in ("0", "1", "2", "3"):
        text = text.replace(f"\x1b[{code}m", "")
    return text


def test_json_is_the_same_for_every_error_of_a_tool(typed: Typed) -> None:
    """The object is the one that MCP clients find beside the sentence: `message` and `error`."""
    assert json.loads(typed("show", "99", "--json").out) == {"message": "Memory 99 not found.", "error": "NotFound"}


def test_a_home_with_no_text_for_a_name_is_used(typed: Typed, tmp_path: Path) -> None:
    """A folder whose name is no text works as any other."""
    odd = str(tmp_path / "h\udce9")
    assert typed("--home", odd, "remember", "The mast is oak.").code == 0
    assert "The mast is oak." in typed("--home", odd, "list").out
