"""Commands that the daemon runs for a client that only prints: the same answers as the command line's own."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from command_line import Ended
from local_access import local_access
from recollect import App, Settings
from recollect.doors import entry, handlers
from recollect.doors.cli import dispatch, main, pager, thin
from recollect.doors.cli.served import run as run_command
from recollect.doors.http import local
from recollect.errors import StoreUnusable
from recollect.projects import set_project

ANSI = re.compile(r"\x1b\[[0-9;]*m")
Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs words as the daemon does for a client in a folder of its own."""
    monkeypatch.delenv("TZ", raising=False)

    def serving(chosen: Settings) -> Callable[..., Any]:
        return lambda name, **fields: handlers.perform(app, name, fields, chosen.caller, "one request")

    def running(*words: str, serve: Callable[[Settings], Any] = serving, **changes: Any) -> dict[str, Any]:
        terminal = {"tty": [False, False], "size": None, "encoding": "utf-8", "variables": {}}
        variables = {"RECOLLECT_TEAM": "crew", "RECOLLECT_PROJECT": "engine", "RECOLLECT_USER": "ada"}
        body = {
            "words": words,
            "stdin": None,
            "stdin_read": False,
            "variables": variables,
            "folder": str(tmp_path),
            "user": "ada",
        }
        body |= {"terminal": terminal | changes.pop("terminal", {})} | changes
        return run_command(body, serve, command_line=lambda: get_command(main.cli))

    return running


def test_what_runs_in_the_daemon_is_what_the_command_line_has() -> None:
    """The commands for which the daemon is started are those that only run operations; others ask one that runs."""
    options = {"completion", "help", "version"}  # which stand for options of the command line itself
    assert set(main.whole().commands) >= dispatch.IN_DAEMON | dispatch.HERE - options
    assert not dispatch.IN_DAEMON & dispatch.HERE


def test_the_help_is_what_the_command_line_says(typed: Callable[..., Ended]) -> None:
    """The texts printed at once are up to date, and each command has one."""
    known = json.loads(dispatch.HELP.read_text(encoding="utf-8"))
    assert {name.partition(" ")[0] for name in known} - {""} == set(main.whole().commands)
    for name, text in known.items():
        assert typed(*name.split(), "--help", COLUMNS="80").out == text, name


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--help"], ""),
        (["help"], ""),
        (["help", "project", "set"], "project set"),
        (["search", "-h"], "recall"),
        (["recall", "--limit", "3", "--help"], "recall"),
        (["all", "--help"], "list"),
    ],
)
def test_help_is_printed_at_once(words: list[str], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However help is asked for, it comes out of a file, unless the terminal is too narrow for that."""
    printed = io.StringIO()
    monkeypatch.setattr(dispatch, "stdout", printed)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(thin, "run", lambda *_, **__: 77)
    assert dispatch.run(words) == 0
    assert printed.getvalue() == json.loads(dispatch.HELP.read_text(encoding="utf-8"))[name]
    assert dispatch.run([]) == 2  # help as well
    monkeypatch.setenv("COLUMNS", "60")
    assert dispatch.run(words) is None


@pytest.mark.parametrize("words", [["frob", "--help"], ["project", "frob", "-h"], ["recall", "--", "--help"]])
def test_what_asks_for_no_known_help_goes_to_the_command_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that does not exist, and `--help` as a word, are none of its business."""
    monkeypatch.setattr(thin, "run", lambda *_, **__: 77)
    assert dispatch.run(words) is None


def test_commands_print_what_they_print_alone(
    run: Run, app: App, typed: Callable[..., Ended], capfd: pytest.CaptureFixture[str]
) -> None:
    """Answers, exit codes and errors are those of a process that opens the store itself; none goes astray."""
    assert run("remember", "-") == {"wanted": "read"}
    assert run("remember") == {"wanted": "piped"}
    said = run("remember", "-", stdin="The mascot is a quokka", stdin_read=True)
    assert said == {"out": "Memory stored successfully with ID: 1\n", "err": "", "code": 0, "paged": True}
    asked = [
        *(
            ["list"],
            ["stats", "--json"],
            ["list", "--order", "asc"],
            ["stats"],
            ["show", "77"],
            ["show", "77", "--json"],
        ),
        *(["show"], ["recall", "x", "--limit", "few"], ["forget", "1", "--soft", "--fact"]),
    ]
    here = [run(*words) for words in asked]
    app.close()
    for words, found in zip(asked, here, strict=True):
        alone = typed(*words)
        assert (found["out"], found["err"], found["code"]) == (alone.out, alone.err, alone.code), words
    assert capfd.readouterr() == ("", "")


def test_a_client_has_its_own_surroundings(run: Run, tmp_path: Path) -> None:
    """Caller, project and rule for secrets are those of the client's words, variables and working folder."""
    set_project(tmp_path, "named here", tmp_path / "below")
    seen: list[Settings] = []

    def serve(settings: Settings) -> Callable[..., Any]:
        seen.append(settings)
        raise StoreUnusable("seen")

    variables = {"RECOLLECT_ON_SECRET": "redact", "RECOLLECT_HOME": "below"}
    assert run("--user", "bob", "list", serve=serve, variables=variables)["code"] == StoreUnusable.exit_code
    assert (seen[0].user, seen[0].project, str(seen[0].on_secret)) == ("bob", "named here", "redact")
    assert seen[0].folder == tmp_path / "below"
    assert "Invalid setting RECOLLECT_MAX_MEMORIES" in run("list", variables={"RECOLLECT_MAX_MEMORIES": "x"})["err"]


def test_a_client_has_its_own_terminal(run: Run) -> None:
    """Width, colours and encoding are those of the client's terminal."""
    run("remember", "Ein Känguru hüpft")
    wide = {"tty": [True, True], "size": [100, 30], "variables": {"TERM": "xterm-256color"}}
    narrow = {"size": [60, 30], "variables": {"TERM": "xterm-256color", "NO_COLOR": "1"}}
    for terminal, width, colour in ((wide, 100, True), (wide | narrow, 60, False)):
        shown = run("recall", "Känguru", terminal=terminal)["out"]
        assert max(len(ANSI.sub("", line)) for line in shown.splitlines()) == width
        assert ("\x1b[34m" in shown) is colour
    assert "\\u00fc" in run("list", "--json", terminal={"encoding": "ascii"})["out"]
    assert "hüpft" in run("list", "--json")["out"]


def test_a_client_of_another_clock_runs_its_command_itself(run: Run) -> None:
    """Where words such as `yesterday` mean another day than in the daemon, the daemon lets the client do it."""
    assert run("list", "--since", "yesterday", terminal={"variables": {"TZ": "Asia/Tokyo"}}) == {"wanted": "itself"}


def test_other_commands_ask_a_daemon_that_runs(run: Run, app: App, settings: Settings, tmp_path: Path) -> None:
    """It administers and names projects for its clients; whoever has to be asked something is asked by the client."""
    serve = local_access(app, settings).serving("one request")
    assert run("user", "add", "bob", serve=serve)["out"].startswith("rec_")
    assert "bob" in run("user", "list", serve=serve)["out"]
    assert "RECOLLECT_TEAM\tcrew\tenvironment" in run("settings")["out"]
    assert run("project", "--json", "list")["code"] == 0
    assert run("remember", "The kiosk opens at nine")["code"] == 0
    assert run("inbox", terminal={"tty": [True, True]})["out"].count("Nothing waits")
    assert run("page") == {"wanted": "itself"}
    here = {"RECOLLECT_HOME": str(settings.home), "RECOLLECT_TEAM": "crew", "RECOLLECT_PROJECT": "engine"}
    assert run("project", "set", "harbour", variables=here) == {"wanted": "itself"}
    assert not (tmp_path / ".recollect.toml").exists()
    assert (
        run("project", "move", "pier")
        == run("project", "set", "pier", "--move", variables=here)
        == {"wanted": "itself"}
    )
    told = run("project", "set", "harbour", "--no-move", variables=here)
    assert str(tmp_path / ".recollect.toml") in told["out"]
    assert "1 memory is filed under engine" in told["out"]


def test_whatever_goes_wrong_is_one_sentence(
    run: Run, app: App, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody foresaw is said without its values, which may be text of memories."""

    def broken(_: App, name: str, *__: Any) -> Any:
        raise ZeroDivisionError(f"{name} secret text")

    monkeypatch.setattr(local, "perform", broken)
    said = run("list", serve=local_access(app, settings).serving("one request"))
    assert said["err"] == "recollect: Internal error in the memory daemon: ZeroDivisionError; see its log.\n"
    assert said["code"] == 1


@pytest.mark.parametrize(
    ("words", "handed"),
    [
        (["recall", "x"], True),
        (["--home", "h", "--user=u", "list"], True),
        (["--in-process", "recall", "x"], False),
        (["doctor"], False),
        (["--nonsense"], False),
        (["--help", "--json"], False),
    ],
)
def test_only_what_only_runs_operations_is_handed_on(
    monkeypatch: pytest.MonkeyPatch, words: list[str], handed: bool
) -> None:
    """Every other command, and help, is run by the whole command line in the client's own process."""
    asked: list[str] = []
    monkeypatch.setattr(thin, "run", lambda *_, **__: asked.append("daemon") or 5)
    monkeypatch.setattr(main, "main", lambda: asked.append("here") or 6)
    monkeypatch.delenv("RECOLLECT_DAEMON", raising=False)
    monkeypatch.setattr(entry, "argv", ["recollect", *words])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert (asked, ended.value.code) == (["daemon"], 5) if handed else (["here"], 6)
    monkeypatch.setenv("RECOLLECT_DAEMON", "off")
    with pytest.raises(SystemExit):
        entry.main()
    assert asked[-1] == "here"


@pytest.mark.parametrize(
    ("rows", "lines", "paged"),
    [(0, 50, False), (1, 50, False), (4, 50, False), (5, 50, True), (5, 3, False), (30, 30, True), (30, 29, False)],
)
def test_a_terminal_without_room_opens_no_pager(rows: int, lines: int, paged: bool) -> None:
    """A pager opens where a text is longer than the screen, and never on one of no rows or next to none."""
    assert pager.needs_pager("line\n" * lines, rows) is paged
