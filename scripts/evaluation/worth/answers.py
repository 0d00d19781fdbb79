"""Answers to tasks, and what the check of a task says of them.

A check is Python of the workspace and runs here. Files of an answer are somebody else's program: they run in a process
of their own, in a folder that goes afterwards.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from evaluation.worth.workspaces import Sample, Task
from recollect.errors import InvalidInput

_SECONDS: Final = 30  # until a program of an answer counts as one that hangs
_CHECK_ERRORS: Final = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(OSError, RuntimeError, SyntaxError, TypeError, ValueError),
)
"""What a check may raise on an answer that it did not foresee."""


@dataclass(frozen=True)
class ProgramResult:
    """What became of a program: whether it ended without an error, and all that it printed."""

    ok: bool
    output: str


@dataclass(frozen=True)
class Answer:
    """What an agent answers, as a check sees it; `changes` maps a path to its new text, or to None where it went."""

    before: Mapping[str, str]
    changes: Mapping[str, str | None] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    question: str = ""
    reply: str = ""

    @cached_property
    def files(self) -> dict[str, str]:
        """Return all files after the answer."""
        after = {**self.before, **self.changes}
        return {path: text for path, text in after.items() if text is not None}

    @cached_property
    def changed(self) -> dict[str, str]:
        """Return the files that are new or other than before."""
        return {path: text for path, text in self.files.items() if self.before.get(path) != text}

    @cached_property
    def deleted(self) -> set[str]:
        """Return the paths of the files that went."""
        return set(self.before) - set(self.files)

    @cached_property
    def added(self) -> str:
        """Return the lines of changed files that did not stand there before."""
        lines = []
        for path, text in self.changed.items():
            known = set(self.before.get(path, "").splitlines())
            lines += [line for line in text.splitlines() if line not in known]
        return "\n".join(lines)

    @cached_property
    def everything(self) -> str:
        """Return the commands, the added lines and the reply as a text."""
        return "\n".join((*self.commands, self.added, self.reply))

    @property
    def acts(self) -> bool:
        """Say whether it changes a file or runs a command."""
        return bool(self.changed or self.deleted or any(command.strip() for command in self.commands))

    @property
    def asks(self) -> bool:
        """Say whether it asks the person something."""
        return bool(self.question.strip())

    def text(self, path: str) -> str:
        """Return a file after the answer; an empty text where there is none."""
        return self.files.get(path, "")

    def ran(self, pattern: str) -> bool:
        """Say whether a command matches a regular expression, whatever the case of its letters."""
        return any(re.search(pattern, command, re.IGNORECASE) for command in self.commands)

    def python(self, code: str) -> ProgramResult:
        """Run Python in a folder with all files after the answer; a program that hangs did not end well."""
        with tempfile.TemporaryDirectory(prefix="worth-answer-") as folder:
            write_files(Path(folder), self.files)
            try:
                ended = subprocess.run(
                    [sys.executable, "-B", "-s", "-c", code],
                    cwd=folder,
                    env={"PYTHONUTF8": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    timeout=_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return ProgramResult(False, f"It did not end within {_SECONDS} seconds.")
        return ProgramResult(ended.returncode == 0, ended.stdout.decode(errors="replace"))


@dataclass(frozen=True)
class Judgement:
    """Whether an answer is right, repeats what was known to be wrong, and asks; `problem` is a failure of the check."""

    right: bool
    repeats: bool
    asks: bool
    problem: str = ""


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files of a repository below a folder."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def sample_answer(files: Mapping[str, str], sample: Sample) -> Answer:
    """Return a sample as an answer; raise `InvalidInput` for an edit whose old text does not stand there once."""
    changes: dict[str, str | None] = dict(sample.files)
    for edit in sample.edits:
        text = changes.get(edit.path, files.get(edit.path)) or ""
        if (count := text.count(edit.old)) != 1:
            raise InvalidInput("edits", f"{edit.path}: the old text stands there {count} times, not once: {edit.old!r}")
        changes[edit.path] = text.replace(edit.old, edit.new)
    return Answer(files, changes, sample.commands, sample.question, sample.reply)


def judge(task: Task, answer: Answer) -> Judgement:
    """Return what the check of a task says of an answer.

    An answer that only asks is right where the task wants that, and has repeated nothing. A check that fails on an
    answer does not find it right; `problem` then holds its error.
    """
    if answer.asks and not answer.acts and (task.asking_is_right or not answer.reply.strip()):
        return Judgement(task.asking_is_right, False, True)
    problems: list[str] = []
    functions = _functions_of(task)
    right = _asked(functions["right"], answer, problems)
    repeats = _asked(functions["repeats"], answer, problems) if "repeats" in functions else False
    return Judgement(right and not problems, repeats, answer.asks, "; ".join(problems))


def _functions_of(task: Task) -> dict[str, Callable[[Answer], object]]:
    """Return the functions of a check by name; raise `InvalidInput` where it is no Python or lacks `right`."""
    names: dict[str, Any] = {}
    try:
        exec(compile(task.check, f"the check of {task.id}", "exec"), names)
    except _CHECK_ERRORS as error:
        raise InvalidInput("check", f"The check of {task.id} does not run: {type(error).__name__}: {error}") from error
    found = {name: names[name] for name in ("right", "repeats") if callable(names.get(name))}
    if "right" not in found:
        raise InvalidInput("check", f"The check of {task.id} defines no function `right(answer)`.")
    return found


def _asked(function: Callable[[Answer], object], answer: Answer, problems: list[str]) -> bool:
    try:
        return bool(function(answer))
    except _CHECK_ERRORS as error:
        problems.append(f"{function.__name__} fails: {type(error).__name__}: {error}")
        return False
