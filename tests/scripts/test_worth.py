"""`scripts/worth`: workspaces, what an agent has in each arm, and scores that were worked out by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from places import TESTS
from recollect import Settings
from recollect.engines.embedder import Embedder
from recollect.engines.embedding import open_embedder
from recollect.errors import InvalidInput

EXAMPLE = TESTS / "scripts" / "worth_example"
MODULES = ("answers", "arms", "notes", "report", "scores", "stores", "use", "validation", "workspaces")
PLAIN = "make deploy"
IN_WINDOW = 'make deploy ARGS="--window wed"'
RULE = "Roll out only in the Wednesday window"
RECALL = '{"action": "recall", "query": "when do we roll out?"}'
ARMS = ("none", "markdown", "recall", "recollect")


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    """Return the default embedding model."""
    settings = Settings()
    return open_embedder(settings.model, settings.models_dir)


@pytest.fixture
def worth(module: Callable[[str], ModuleType]) -> SimpleNamespace:
    """Return the modules of the package by their names."""
    return SimpleNamespace(**{name: module(f"evaluation.worth.{name}") for name in MODULES})


@pytest.fixture
def example(worth: SimpleNamespace) -> Any:
    """Return the workspace of these tests."""
    return worth.workspaces.load_workspace(EXAMPLE / "tidepool")


@pytest.fixture
def whole(worth: SimpleNamespace, example: Any) -> Any:
    """Return the same with as many sessions as a workspace must have."""
    return with_noise(worth, example)


def with_noise(worth: SimpleNamespace, workspace: Any) -> Any:
    """Return a workspace with sessions that no task needs, each long enough."""
    pad = "The tide at the north pier was as expected, and the log of the gauge shows no gap. " * 6
    sessions = []
    for number in range(1, worth.validation.MIN_SESSIONS + 1):
        own = workspace.sessions[number - 1] if number <= len(workspace.sessions) else None
        events = own.events if own else workspace.sessions[-1].events
        told = worth.workspaces.Event(agent=f"{number}: {pad}")
        at = workspace.sessions[0].at + timedelta(days=number)
        project = (own and own.project) or ("seawall" if number == 5 else "")
        sessions.append(worth.workspaces.Session(id=f"s{number:02}", at=at, project=project, events=(*events, told)))
    return replace(workspace, sessions=tuple(sessions))


def changed_task(workspace: Any, number: int, **changes: Any) -> Any:
    """Return a workspace with another task in this place."""
    tasks = list(workspace.tasks)
    if "kind" in changes:
        changes["kind"] = type(tasks[number].kind)(changes["kind"])
    tasks[number] = tasks[number].model_copy(update=changes)
    return replace(workspace, tasks=tuple(tasks))


def changed_session(workspace: Any, number: int, **changes: Any) -> Any:
    """Return a workspace with another session in this place."""
    sessions = list(workspace.sessions)
    sessions[number] = sessions[number].model_copy(update=changes)
    return replace(workspace, sessions=tuple(sessions))


def changed_files(workspace: Any, **files: str) -> Any:
    """Return a workspace with further files."""
    names = {name.replace("__", "."): text for name, text in files.items()}
    repository = workspace.repository.model_copy(update={"files": workspace.repository.files | names})
    return replace(workspace, repository=repository)


PROBLEMS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "few sessions": (lambda w: replace(w, sessions=w.sessions[:19]), "there are 19 sessions; at least 20"),
    "no other project": (lambda w: changed_session(w, 4, project=""), "1 sessions lie in another project; 2 to 4"),
    "a gap in the names": (lambda w: changed_session(w, 6, id="s99"), "session 7 is called 's99', not 's07'"),
    "a short session": (lambda w: changed_session(w, 7, events=w.sessions[7].events[:1]), "s08 has 1 events; 3 to 14"),
    "no person": (lambda w: changed_session(w, 8, events=w.sessions[8].events[1:]), "s09 does not begin with what"),
    "a wrong order": (lambda w: changed_session(w, 9, at=w.sessions[0].at), "s10 does not begin later than s09"),
    "a long file": (lambda w: changed_files(w, a__md="x\n" * 151), "a.md has 151 lines; 150 at most"),
    "broken Python": (lambda w: changed_files(w, a__py="def\n"), "a.py is no Python: line 1"),
    "something unfinished": (lambda w: changed_files(w, a__md="TO" + "DO"), "a.md: TO" + "DO marks something"),
    "a secret": (
        lambda w: changed_files(w, a__md="pass" + "word = 'hT7" + "kQ9zLw2xV'"),
        "a.md: something looks like a",
    ),
    "a known clue": (lambda w: changed_files(w, a__md="On Wednesdays."), "t1: the clue stands in a.md"),
    "a hint in the request": (lambda w: changed_task(w, 0, request="On a Wednesday?"), "t1: the clue stands in the"),
    "a clue that is not there": (lambda w: changed_task(w, 0, clue="friday"), "t1: the clue does not stand in s01"),
    "an unknown session": (lambda w: changed_task(w, 0, needs=("s77",)), "t1: `needs` names s77, which is no session"),
    "no need": (lambda w: changed_task(w, 0, needs=()), "t1: `needs` and `clue` are missing"),
    "a need of nothing": (lambda w: changed_task(w, 2, needs=("s01",)), "t3: a task of the kind `nothing` has neither"),
    "an early task": (lambda w: changed_task(w, 1, at=w.sessions[3].at), "t2: `at` is not later than the last"),
    "two of a name": (lambda w: changed_task(w, 1, id="t1"), "two tasks have the same id"),
    "too few idle tasks": (lambda w: replace(w, tasks=w.tasks[:2]), "0 of 2 tasks need nothing; exactly a third"),
    "late knowledge": (
        lambda w: changed_task(changed_task(w, 0, needs=("s19",)), 1, needs=("s20",)),
        "all that tasks need lies in the last 3",
    ),
    "one half of a change": (lambda w: changed_task(w, 0, kind="changed"), "t1: a changed decision needs two sessions"),
    "no other project's way": (lambda w: changed_task(w, 0, kind="elsewhere"), "t1: this kind needs a session of an"),
    "no wrong sample": (lambda w: changed_task(w, 2, samples=w.tasks[2].samples[:1]), "t3: there is no sample that is"),
    "no repeats": (
        lambda w: changed_task(w, 1, check="def right(answer):\n    return bool(answer.added)\n"),
        "t2: a task of the kind `failed-approach` needs a function `repeats",
    ),
    "a generous check": (
        lambda w: changed_task(w, 2, check="def right(answer):\n    return True\n"),
        "t3: an answer that does nothing is judged as",
    ),
    "a check that is no Python": (
        lambda w: changed_task(w, 2, check="def right(:"),
        "t3: The check of t3 does not run",
    ),
    "no check": (lambda w: changed_task(w, 2, check="x = 1"), "t3: The check of t3 defines no function"),
}


def test_a_whole_workspace_is_in_order(worth: SimpleNamespace, whole: Any) -> None:
    """Nothing is said of a workspace that has all it must have; its samples are judged as they say."""
    assert list(worth.validation.problems(whole)) == []


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_problem_of_a_workspace_is_named(worth: SimpleNamespace, whole: Any, name: str) -> None:
    """A workspace with one thing wrong is refused in a sentence that says what."""
    change, sentence = PROBLEMS[name]
    assert any(sentence in problem for problem in worth.validation.problems(change(whole)))


def test_a_sample_that_is_judged_otherwise_is_named(worth: SimpleNamespace, whole: Any) -> None:
    """A check that takes a wrong sample for right is refused, with the number of the sample."""
    wrong = whole.tasks[2].samples[1].model_copy(update={"expect": worth.workspaces.Expected.RIGHT})
    found = list(worth.validation.problems(changed_task(whole, 2, samples=(*whole.tasks[2].samples, wrong))))
    assert len(found) == 1
    assert found[0].startswith("t3: sample 3 is to be right, and is judged as Judgement(right=False")


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("tasks.toml", 'kind = "rule"', 'kind = "law"', "tasks.0.kind: Input should be 'rule', 'failed-approach'"),
        ("tasks.toml", "clue = 'wednesday'", "clue = '('", "tasks.0.clue: Value error, is no regular expression"),
        ("tasks.toml", 'kind = "rule"', 'kind = "rule"\ncolour = 1', "tasks.0.colour: Extra inputs are not permitted"),
        ("repository.toml", '"README.md"', '"../README.md"', "must be a relative path inside the repository"),
        ("repository.toml", '"README.md"', '"/README.md"', "must be a relative path inside the repository"),
        (
            "sessions.toml",
            "failed = true",
            'edit = "a"',
            "exactly one of person, agent, command, edit, read, not",
        ),
        ("sessions.toml", "2026-02-03T09:10:00Z", "2026-02-03T09:10:00", "sessions.0.at: Input should have timezone"),
        ("sessions.toml", "[[sessions]]", "[[sessions", "is not valid TOML"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    worth: SimpleNamespace, tmp_path: Path, file: str, old: str, new: str, sentence: str
) -> None:
    """The error names the file and the field, and what is allowed there."""
    shutil.copytree(EXAMPLE / "tidepool", tmp_path / "tidepool")
    target = tmp_path / "tidepool" / file
    target.write_text(target.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidInput) as raised:
        worth.workspaces.load_workspace(tmp_path / "tidepool")
    assert file in str(raised.value)
    assert sentence in str(raised.value)


def test_a_folder_without_workspaces_is_refused(worth: SimpleNamespace, tmp_path: Path) -> None:
    """A wrong folder is no measurement without tasks."""
    with pytest.raises(InvalidInput, match="holds no workspace"):
        worth.workspaces.load_workspaces(tmp_path)
    with pytest.raises(InvalidInput, match=r"repository\.toml cannot be read: No such file"):
        worth.workspaces.load_workspace(tmp_path)


def test_an_answer_is_seen_as_what_it_changes(worth: SimpleNamespace) -> None:
    """New, changed and deleted files, added lines and commands are what a check sees, and programs run on them."""
    before = {"a.py": "x = 1\ny = 2\n", "b.txt": "old\n", "c.txt": "same\n"}
    changes = {"a.py": "x = 1\ny = 3\n", "b.txt": None, "c.txt": "same\n", "d/e.py": "z = 4\n"}
    answer = worth.answers.Answer(before, changes, ("Make Deploy",), reply="done")
    assert answer.changed == {"a.py": "x = 1\ny = 3\n", "d/e.py": "z = 4\n"}
    assert (answer.deleted, answer.added) == ({"b.txt"}, "y = 3\nz = 4")
    assert answer.everything == "Make Deploy\ny = 3\nz = 4\ndone"
    assert (answer.ran("make +deploy"), answer.ran("destroy")) == (True, False)
    assert (answer.text("a.py"), answer.text("b.txt")) == ("x = 1\ny = 3\n", "")
    assert answer.python("from a import y; from d.e import z; print(y + z)").output == "7\n"
    assert not answer.python("import missing").ok


def test_a_program_that_hangs_did_not_end_well(worth: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of an answer that does not end is stopped."""
    monkeypatch.setattr(worth.answers, "_SECONDS", 0.5)
    found = worth.answers.Answer({}).python("while True: pass")
    assert (found.ok, found.output) == (False, "It did not end within 0.5 seconds.")


def test_a_question_alone_is_no_right_answer_unless_the_task_wants_it(worth: SimpleNamespace, example: Any) -> None:
    """Who asks and does nothing has asked, and is right only where asking is right; work with a question is judged."""
    task, asked = example.tasks[0], worth.answers.Answer({}, question="When?")
    judgement = worth.answers.Judgement
    assert worth.answers.judge(task, asked) == judgement(False, False, True)
    wanted = task.model_copy(update={"asking_is_right": True})
    assert worth.answers.judge(wanted, asked) == judgement(True, False, True)
    both = replace(asked, commands=(IN_WINDOW,))
    assert worth.answers.judge(task, both) == judgement(True, False, True)
    assert worth.answers.judge(wanted, replace(asked, commands=(PLAIN,))) == judgement(False, True, True)


def test_a_check_that_fails_on_an_answer_does_not_find_it_right(worth: SimpleNamespace, example: Any) -> None:
    """What a check did not foresee is named as a problem of the check."""
    task = example.tasks[0].model_copy(update={"check": "def right(answer):\n    return answer.changed['x'] == 1\n"})
    found = worth.answers.judge(task, worth.answers.Answer({}))
    assert (found.right, found.problem) == (False, "right fails: KeyError: 'x'")


def test_an_edit_of_a_sample_must_fit(worth: SimpleNamespace, example: Any) -> None:
    """An old text that stands in the file twice, or not at all, is an error."""
    edit = worth.workspaces.Edit(path="README.md", old="nowhere", new="x")
    sample = worth.workspaces.Sample(expect="right", edits=(edit,))
    with pytest.raises(InvalidInput, match=r"README\.md: the old text stands there 0 times, not once: 'nowhere'"):
        worth.answers.sample_answer(example.repository.files, sample)


def test_notes_make_the_files_that_the_agent_has(worth: SimpleNamespace, example: Any) -> None:
    """Each project has its file, and the person another; a line that was taken out is gone."""
    files = worth.notes.memory_files(example, worth.notes.read_notes(example))
    assert [len(files[name]) for name in ("tidepool", "seawall", "person")] == [2, 1, 1]
    assert files["person"] == ["- Mara likes short answers."]
    text = worth.notes.transcript(example, example.sessions[0])
    assert "You ran `make deploy`, which failed:\nrsync: connection to gauge closed" in text
    assert f's01#1: {{"action": "remember", "title": "{RULE}' in worth.notes.notes_so_far(
        example, worth.notes.read_notes(example)
    )


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"s04": {', '"s05": {', "has notes of s05, which is no session"),
        ('"action": "forget"', '"action": "recall"', "s04#2: `action` must be remember or forget"),
        ('"project_md"', '"md"', "s01.md: Extra inputs are not permitted"),
    ],
)
def test_wrong_notes_are_refused(worth: SimpleNamespace, tmp_path: Path, old: str, new: str, sentence: str) -> None:
    """The error names the session and the field."""
    shutil.copytree(EXAMPLE / "tidepool", tmp_path / "tidepool")
    file = tmp_path / "tidepool" / "notes.json"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidInput) as raised:
        worth.notes.read_notes(worth.workspaces.load_workspace(tmp_path / "tidepool"))
    assert sentence in str(raised.value)


def test_notes_of_all_sessions_are_wanted(worth: SimpleNamespace, whole: Any) -> None:
    """A session without an entry was forgotten, unless the notes are still in the making."""
    with pytest.raises(InvalidInput, match="has no entry of s05, s06"):
        worth.notes.read_notes(whole)
    assert len(worth.notes.read_notes(whole, whole=False)) == 4


def test_a_line_that_is_not_there_cannot_be_taken_out(worth: SimpleNamespace, example: Any) -> None:
    """The error names the session and the file."""
    change = worth.notes.FileChange(remove=("- Nobody wrote this.",))
    with pytest.raises(InvalidInput, match=r"s02: no such line stands in the file of tidepool: '- Nobody wrote"):
        worth.notes.memory_files(example, {"s02": worth.notes.SessionNotes(project_md=change)})


def test_what_the_tool_refuses_is_named_by_its_place(
    worth: SimpleNamespace, example: Any, embedder: Embedder, tmp_path: Path
) -> None:
    """A refused call, and a call that names one that was never taken, are told with their session and number."""
    calls = [
        {"action": "remember", "content": "The token is gh" + "p_" + "a1B2c3D4e5" * 3 + "F6g7h8"},
        {"action": "remember", "content": "Tides are in centimetres.", "supersedes": "s01#1"},
    ]
    notes = {"s01": worth.notes.SessionNotes(calls=tuple(calls))}
    first, second = worth.stores.fill(tmp_path, example, notes, embedder, hooks=False)
    assert first.startswith("s01#1: ")
    assert "secret" in first.lower()
    assert "`supersedes` names s01#1, which is no earlier `remember` that was taken" in second


@pytest.fixture(scope="module")
def prepared_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which the arms are prepared once, and copied for each test."""
    return tmp_path_factory.mktemp("worth")


@pytest.fixture
def place_of(
    worth: SimpleNamespace, example: Any, embedder: Embedder, prepared_folders: Path, tmp_path: Path
) -> Callable[[str, str], Any]:
    """Return a function that makes the folder of a task in an arm."""

    def prepared(arm: str, task: str) -> Any:
        source = prepared_folders / arm
        if not source.exists():
            worth.arms.prepare(worth.arms.Arm(arm), [example], source, embedder)
        if not (tmp_path / arm).exists():
            shutil.copytree(source, tmp_path / arm)
        return worth.arms.open_place(tmp_path / arm / worth.arms.STATE / f"tidepool-{task}")

    return prepared


def test_each_arm_shows_what_it_is(worth: SimpleNamespace, place_of: Callable[[str, str], Any]) -> None:
    """All arms show the same request and files; only the index of one shows what was stored, and no other project's."""
    starts = {}
    for arm in ARMS:
        place = place_of(arm, "t1")
        starts[arm] = (place.folder / "START.md").read_text(encoding="utf-8")
        assert "> 1.5 is reviewed. Give me the command" in starts[arm]
        assert (place.checkout / "Makefile").read_text(encoding="utf-8") == place.workspace.repository.files["Makefile"]
        assert (place.folder / "memory").exists() is (arm != "none")
    assert not [arm for arm in ARMS if "seawall" in starts[arm]]
    assert [arm for arm in ARMS if "Wednesday" in starts[arm]] == ["recollect"]
    assert [arm for arm in ARMS if '"supersedes"' in starts[arm]] == ["recall", "recollect"]
    assert "2 lines about this\nproject, 1 about the person" in starts["markdown"]
    assert "memory" not in starts["none"].lower()
    assert "Recollect keeps memories across sessions." in starts["recall"]
    assert [row.by for row in place_of("recollect", "t1").log()] == ["tool", "start"]


def test_a_folder_that_holds_something_is_not_prepared(
    worth: SimpleNamespace, example: Any, embedder: Embedder, tmp_path: Path
) -> None:
    """Answers that lie there are never mixed with others."""
    (tmp_path / "answer").touch()
    with pytest.raises(InvalidInput, match="is not empty; name a new folder"):
        worth.arms.prepare(worth.arms.Arm.NONE, [example], tmp_path, embedder)


def test_the_files_can_be_read_and_searched(
    worth: SimpleNamespace, embedder: Embedder, place_of: Callable[[str, str], Any]
) -> None:
    """`cat` prints the project's lines and the person's, `grep` those that match; the tokens are counted."""
    place = place_of("markdown", "t1")
    lines = worth.use.use(place, ["cat"], embedder).splitlines()
    assert len(lines) == 3
    assert worth.use.use(place, ["grep", "WEDNES"], embedder) == lines[0]
    assert worth.use.use(place, ["grep", "nothing like it"], embedder) == ""
    count = worth.arms.counter_of(embedder)
    assert [(row.by, row.tokens, row.has_clue) for row in place.log()] == [
        ("cat", count("\n".join(lines)), True),
        ("grep", count(lines[0]), True),
        ("grep", 0, False),
    ]
    with pytest.raises(InvalidInput, match=r"'\(' is no regular expression"):
        worth.use.use(place, ["grep", "("], embedder)
    for words in ([], ["grep"], ["cat", "x"], ["run", PLAIN], [RECALL]):
        with pytest.raises(InvalidInput, match=r"Use one of: \./memory cat; \./memory grep PATTERN\."):
            worth.use.use(place, words, embedder)


@pytest.mark.parametrize("arm", ["recall", "recollect"])
def test_the_tool_answers_from_the_store(
    worth: SimpleNamespace, embedder: Embedder, place_of: Callable[[str, str], Any], arm: str
) -> None:
    """`recall` gives what the real tool gives; in this session nothing is written, and JSON is wanted."""
    place = place_of(arm, "t1")
    found = worth.use.use(place, [RECALL], embedder)
    assert RULE in found
    assert "seawall" not in found
    assert place.log()[-1].has_clue
    for words, sentence in (
        (['{"action": "remember", "content": "x"}'], "`action` must be `recall`"),
        (["{"], "The arguments are no JSON"),
        (["cat"], 'Use one of: ./memory \'{"action"'),
    ):
        with pytest.raises(InvalidInput) as raised:
            worth.use.use(place, words, embedder)
        assert sentence in str(raised.value)


def test_what_belongs_to_an_action_comes_up_once(
    worth: SimpleNamespace, embedder: Embedder, place_of: Callable[[str, str], Any]
) -> None:
    """A command and a file bring what was stored for them, as the hooks do, and only the first time."""
    place = place_of("recollect", "t1")
    assert worth.use.use(place, ["run", IN_WINDOW], embedder) == "(nothing comes up)"
    assert RULE in worth.use.use(place, ["run", PLAIN], embedder)
    assert worth.use.use(place, ["run", PLAIN], embedder) == "(nothing comes up)"
    assert "one tidal cycle" in worth.use.use(place, ["edit", "./repository/app/readings.py"], embedder)
    assert worth.use.use(place, ["failed", "ls", "no such file"], embedder) == "(nothing comes up)"
    assert [(row.by, row.subject) for row in place.log()[-2:]] == [("edit", "app/readings.py"), ("failed", "ls")]
    with pytest.raises(InvalidInput, match=r"There is no file nowhere\.txt in the repository"):
        worth.use.use(place, ["edit", "nowhere.txt"], embedder)


def answered(place: Any, **form: Any) -> None:
    """Write the form of an answer."""
    (place.folder / "answer.json").write_text(json.dumps(form), encoding="utf-8")


def test_an_answer_is_finished_when_it_is_whole(
    worth: SimpleNamespace, embedder: Embedder, place_of: Callable[[str, str], Any]
) -> None:
    """An empty answer is none, a wrong field is named, and a deleted file is an answer."""
    place = place_of("none", "t1")
    assert worth.use.finish(place, embedder) == (
        False,
        "There is no answer yet: no file is changed, and answer.json is empty.",
    )
    answered(place, commands=PLAIN)
    with pytest.raises(InvalidInput, match=r"answer\.json: commands: Input should be a valid"):
        worth.use.finish(place, embedder)
    answered(place)
    (place.checkout / "Makefile").unlink()
    (place.checkout / "__pycache__").mkdir()
    (place.checkout / "__pycache__" / "x.py").touch()
    (place.checkout / "tide.bin").write_bytes(b"\xff\xfe")
    assert worth.use.changes_of(place) == {"Makefile": None}
    assert not worth.use.is_finished(place)
    assert worth.use.finish(place, embedder) == (True, "ok")
    assert worth.use.is_finished(place)


def test_actions_that_were_not_announced_come_up_at_the_end(
    worth: SimpleNamespace, embedder: Embedder, place_of: Callable[[str, str], Any]
) -> None:
    """The hooks of an agent miss no action: what comes up with the answer is shown once before it is finished."""
    place = place_of("recollect", "t2")
    file = place.checkout / "app" / "readings.py"
    file.write_text(file.read_text(encoding="utf-8").replace("missing", "gone"), encoding="utf-8")
    answered(place, commands=[PLAIN])
    done, text = worth.use.finish(place, embedder)
    assert not done
    assert RULE in text
    assert "one tidal cycle" in text
    before = len(place.log())
    assert worth.use.finish(place, embedder) == (True, "ok")
    assert len(place.log()) == before + 1


def test_the_programs_of_a_folder_work(place_of: Callable[[str, str], Any]) -> None:
    """`./memory` and `./finish` run by themselves; an error is a sentence."""
    place = place_of("markdown", "t1")

    def run(*words: str) -> tuple[int, str]:
        ended = subprocess.run(words, cwd=place.folder, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    assert run("./memory", "grep", "- [r]oll")[1].startswith("- Roll out only in the Wednesday")
    assert run("./finish") == (1, "There is no answer yet: no file is changed, and answer.json is empty.\n")
    code, text = run("./memory", "dance")
    assert (code, text.startswith("Error: Use one of:")) == (2, True)


def kept(worth: SimpleNamespace, workspace: Any, task: Any, **fields: Any) -> Any:
    """Return a kept answer to a task."""
    tokens = {"tool_tokens": 0, "start_tokens": 0, "later_tokens": 0} | fields
    return worth.scores.Kept(digest=worth.scores.task_digest(workspace, task), **tokens)


def test_finished_answers_are_kept_with_what_was_read(
    worth: SimpleNamespace, embedder: Embedder, place_of: Callable[[str, str], Any], tmp_path: Path
) -> None:
    """A kept answer holds the changed files and the tokens, by what brought them; unfinished tasks are named."""
    place = place_of("recollect", "t1")
    worth.use.use(place, [RECALL], embedder)
    answered(place, commands=[IN_WINDOW], reply="Here.")
    worth.use.finish(place, embedder)
    found, unfinished = worth.scores.gather(list(worth.arms.places_in(tmp_path / "recollect")))
    assert unfinished == ["tidepool-t2", "tidepool-t3"]
    answer = found["tidepool-t1"]
    assert (answer.files, answer.commands, answer.reply) == ({}, (IN_WINDOW,), "Here.")
    assert answer.requests == (f"recall {RECALL}",)
    tool, start, later = (row.tokens for row in place.log()[:3])
    assert (answer.tool_tokens, answer.start_tokens, answer.later_tokens) == (tool, start, later)
    assert min(tool, start, later) > 0
    assert answer.reached
    file = worth.scores.write_answers(tmp_path / "answers", place.arm, "1", found)
    worth.scores.write_answers(tmp_path / "answers", place.arm, "1", {"other-t1": answer})
    assert file == tmp_path / "answers" / "recollect" / "1.json"
    assert worth.scores.read_answers(tmp_path / "answers") == {
        place.arm: {"1": {"other-t1": answer, "tidepool-t1": answer}}
    }


@pytest.fixture
def judged(worth: SimpleNamespace, example: Any) -> tuple[list[Any], list[str]]:
    """Return the outcomes of two arms over the example, of which one has two players, and the remarks."""
    rule, gaps, idle = example.tasks

    def player(commands: list[str], gaps_sample: int, idle_sample: int, **fields: Any) -> dict[str, Any]:
        rows = {"tidepool-t1": kept(worth, example, rule, commands=commands, **fields)}
        for task, number in ((gaps, gaps_sample), (idle, idle_sample)):
            answer = worth.answers.sample_answer(example.repository.files, task.samples[number])
            rows[f"tidepool-{task.id}"] = kept(worth, example, task, files=answer.changed, **fields)
        return rows

    arm = worth.arms.Arm
    read = {"tool_tokens": 700, "start_tokens": 100, "later_tokens": 50, "requests": ("recall {}",), "reached": True}
    answers = {
        arm.NONE: {"1": player([PLAIN], 1, 0)},
        arm.RECOLLECT: {"1": player([IN_WINDOW], 0, 0, **read), "2": player([PLAIN], 0, 1, **read)},
    }
    answers[arm.NONE]["2"] = {
        "tidepool-t1": kept(worth, example, rule).model_copy(update={"digest": "old"}),
        "tidepool-t2": kept(worth, example, gaps, question="How?"),
    }
    return worth.scores.judge_all([example], answers)


def test_figures_are_shares_of_tasks(worth: SimpleNamespace, judged: tuple[list[Any], list[str]]) -> None:
    """Players of a task count as one task by their mean; a failure counts as repeated where the check knows it."""
    outcomes, remarks = judged
    assert remarks == ["none, 2: tidepool-t1 has an outdated answer.", "none, 2: tidepool-t3 has no answer."]
    none, recollect = worth.scores.figures(outcomes)
    values = {name: none[name].value for name in worth.report.SHARES}
    assert values == {
        "right": pytest.approx(1 / 3),
        "right_needing": 0.0,
        "right_nothing": 1.0,
        "repeated": pytest.approx((1 + 0.5) / 2),
        "asked": pytest.approx(0.5 / 3),
        "reached": 0.0,
    }
    assert recollect["right"].value == pytest.approx((0.5 + 1 + 0.5) / 3)
    assert recollect["right_needing"].value == pytest.approx(0.75)
    assert recollect["repeated"].value == pytest.approx(0.25)
    assert [recollect[name] for name in worth.report.AMOUNTS] == [150, 100, 700, 1.0]
    assert (recollect["players"], recollect["right"].count) == (2, 3)
    kinds = worth.scores.by_kind(outcomes)
    assert [*kinds] == ["failed-approach", "nothing", "rule"]
    assert kinds["rule"][worth.arms.Arm.RECOLLECT].value == 0.5


def test_a_difference_is_over_the_tasks_of_both(worth: SimpleNamespace, judged: tuple[list[Any], list[str]]) -> None:
    """It is in points; its interval comes from drawing workspaces, of which this has one."""
    arm, outcomes = worth.arms.Arm, judged[0]
    difference = worth.scores.Difference
    assert worth.scores.difference(outcomes, arm.RECOLLECT, arm.NONE, needing=True) == difference(75.0, 75.0, 75.0)
    assert worth.scores.difference(outcomes, arm.RECOLLECT, arm.NONE, needing=False) == difference(-50.0, -50.0, -50.0)
    assert worth.scores.difference(outcomes, arm.RECOLLECT, arm.MARKDOWN, needing=True) is None
    other = [replace(each, workspace="b", name=f"b{each.name}") for each in outcomes if each.arm is arm.NONE]
    same = [replace(each, arm=arm.RECOLLECT) for each in other]
    low_and_high = worth.scores.difference([*outcomes, *other, *same], arm.RECOLLECT, arm.NONE, needing=True)
    assert low_and_high == difference(37.5, 0.0, 75.0)


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (45, 45, 0.9213, 1.0)]
)
def test_intervals_are_wilsons(worth: SimpleNamespace, hits: int, count: int, low: float, high: float) -> None:
    """The ends are those of published tables."""
    assert worth.scores.wilson(hits, count) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


def test_a_report_is_a_table_a_file_and_a_picture(
    worth: SimpleNamespace, judged: tuple[list[Any], list[str]], tmp_path: Path
) -> None:
    """The same figures stand in the tables for a page, in the JSON, and in a picture."""
    outcomes = judged[0]
    text = worth.report.as_markdown(outcomes)
    assert "|  | none | recollect |\n| --- | --- | --- |\n" in text
    assert "| of those that need a memory | 0 [0, 66] | 75 [20, 97] |" in text
    assert "| recollect − none | +75 [+75, +75] | −50 [−50, −50] |" in text
    found = worth.report.as_json(outcomes)
    assert json.loads(json.dumps(found))["arms"][1]["right_needing"]["value"] == 0.75
    assert len(found["answers"]) == len(outcomes)
    worth.report.draw(outcomes, tmp_path / "worth.png")
    assert (tmp_path / "worth.png").read_bytes().startswith(b"\x89PNG")


def test_the_commands_go_from_tasks_to_scores(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """A person prepares an arm, keeps the answers and scores them; each wrong input ends in a sentence."""
    app = module("evaluation.worth.__main__").app
    data, arm, answers = ("--data", str(EXAMPLE)), tmp_path / "none", ("--answers", str(tmp_path / "answers"))

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, words)

    assert "4 sessions; at least 20" in run("check", str(EXAMPLE / "tidepool")).stdout
    assert run("notes", str(EXAMPLE / "tidepool")).stdout == "tidepool: 4 lines, 6 calls, ok\n"
    assert "straight line cuts" in run("session", str(EXAMPLE / "tidepool"), "s02").stdout
    assert "There is no session s09" in str(run("session", str(EXAMPLE / "tidepool"), "s09").exception)
    assert run("prepare", "none", str(arm), *data).stdout.startswith("3 tasks are prepared")
    place = arm / "tidepool-t1"
    (place / "answer.json").write_text(json.dumps({"commands": [PLAIN]}), encoding="utf-8")
    assert run("finish", str(arm / ".state" / "tidepool-t1")).stdout == "ok\n"
    found = run("keep", str(arm), *answers)
    assert (found.exit_code, found.stdout.splitlines()[0]) == (1, "tidepool-t2 is not finished.")
    scored = run("score", *data, *answers, "--markdown", "--show", "--json", str(tmp_path / "figures.json"))
    assert "none, 1: tidepool-t1 (rule): repeats, lacked what it needs" in scored.stdout
    assert json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["answers"][0]["repeats"] is True
    refused = run("score", *data, *answers, "--plot", str(tmp_path / "missing" / "x.png"))
    assert "its folder does not exist" in str(refused.exception)


def test_all_that_is_committed_is_in_order(worth: SimpleNamespace) -> None:
    """Each workspace of the measurement keeps the proportions, its samples are judged as they say, its notes fit."""
    found = {}
    for file in sorted(worth.workspaces.DATA.glob("*/repository.toml")):
        workspace = worth.workspaces.load_workspace(file.parent)
        worth.notes.memory_files(workspace, worth.notes.read_notes(workspace))
        found[workspace.name] = list(worth.validation.problems(workspace))
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_each_kept_answer_is_to_a_task_as_it_stands(worth: SimpleNamespace) -> None:
    """No committed answer is of a task that has gone, or whose request or repository has changed since."""
    data = worth.workspaces.DATA
    digests = {
        workspace.task_name(task): worth.scores.task_digest(workspace, task)
        for file in data.glob("*/repository.toml")
        for workspace in [worth.workspaces.load_workspace(file.parent)]
        for task in workspace.tasks
    }
    kept_answers = worth.scores.read_answers(data / "answers") if (data / "answers").exists() else {}
    rows = [
        (name, row.digest)
        for players in kept_answers.values()
        for rows in players.values()
        for name, row in rows.items()
    ]
    assert [name for name, digest in rows if digests.get(name) != digest] == []
