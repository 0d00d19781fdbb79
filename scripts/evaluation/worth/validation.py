"""What a workspace must be: its proportions, its clues, and the judgements of its samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from evaluation.worth.answers import Answer, judge, sample_answer
from evaluation.worth.workspaces import Expected, Kind, Task, Workspace
from recollect.errors import InvalidInput
from recollect.gate.scanner import scan

MIN_SESSIONS: Final = 20
MIN_NOISE: Final = 12
"""Sessions that no task needs."""
FOREIGN: Final = range(2, 5)
"""How many sessions may lie in another project."""
EVENTS: Final = range(3, 15)
CHARACTERS: Final = range(500, 4_001)
"""The size of a session."""
FILES: Final = range(4, 13)
MAX_FILE_LINES: Final = 150
WITH_REPEATS: Final = frozenset({Kind.RULE, Kind.FAILED_APPROACH, Kind.FLAKY, Kind.CHANGED, Kind.ELSEWHERE})
"""The kinds whose check must know the answers that repeat what is known to be wrong."""
_LAST: Final = 3  # sessions that must not hold all that is needed
_UNFINISHED: Final = re.compile("TO[D]O|FIXM[E]|X{3}")


def problems(workspace: Workspace) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with a workspace."""
    yield from _file_problems(workspace)
    yield from _session_problems(workspace)
    if workspace.repository.project != workspace.name:
        yield f"project is {workspace.repository.project!r}, but the folder is called {workspace.name!r}."
    names = [task.id for task in workspace.tasks]
    if len(set(names)) < len(names):
        yield "two tasks have the same id."
    idle = sum(not task.needs_memory for task in workspace.tasks)
    if idle * 3 != len(workspace.tasks):
        yield f"{idle} of {len(workspace.tasks)} tasks need nothing; exactly a third must."
    needed = {name for task in workspace.tasks for name in task.needs}
    if needed and needed <= {session.id for session in workspace.sessions[-_LAST:]}:
        yield f"all that tasks need lies in the last {_LAST} sessions; spread it."
    if (noise := len(workspace.sessions) - len(needed)) < MIN_NOISE:
        yield f"{noise} sessions are needed by no task; at least {MIN_NOISE} must be."
    for part in (_need_problems, _sample_problems):
        for task in workspace.tasks:
            yield from (f"{task.id}: {problem}" for problem in part(workspace, task))


def _file_problems(workspace: Workspace) -> Iterator[str]:
    files = workspace.repository.files
    if len(files) not in FILES:
        yield f"the repository has {len(files)} files; {FILES[0]} to {FILES[-1]} are wanted."
    for path, text in files.items():
        if (lines := len(text.splitlines())) > MAX_FILE_LINES:
            yield f"{path} has {lines} lines; {MAX_FILE_LINES} at most."
        yield from (f"{path}: {problem}" for problem in _text_problems(text))
        if path.endswith(".py"):
            try:
                ast.parse(text)
            except SyntaxError as error:
                yield f"{path} is no Python: line {error.lineno}: {error.msg}."


def _session_problems(workspace: Workspace) -> Iterator[str]:
    sessions = workspace.sessions
    if len(sessions) < MIN_SESSIONS:
        yield f"there are {len(sessions)} sessions; at least {MIN_SESSIONS} are wanted."
    foreign = sum(workspace.project_of(session) != workspace.repository.project for session in sessions)
    if foreign not in FOREIGN:
        yield f"{foreign} sessions lie in another project; {FOREIGN[0]} to {FOREIGN[-1]} are wanted."
    for number, session in enumerate(sessions, 1):
        if session.id != (wanted := f"s{number:02}"):
            yield f"session {number} is called {session.id!r}, not {wanted!r}."
        if len(session.events) not in EVENTS:
            yield f"{session.id} has {len(session.events)} events; {EVENTS[0]} to {EVENTS[-1]} are wanted."
        if len(session.text) not in CHARACTERS:
            yield f"{session.id} has {len(session.text)} characters; {CHARACTERS[0]} to {CHARACTERS[-1]} are wanted."
        if not session.events[0].person:
            yield f"{session.id} does not begin with what the person typed."
        yield from (f"{session.id}: {problem}" for problem in _text_problems(session.text))
    for before, after in pairwise(sessions):
        if after.at <= before.at:
            yield f"{after.id} does not begin later than {before.id}."


def _text_problems(text: str) -> Iterator[str]:
    """Yield what no text of a workspace may hold."""
    if word := _UNFINISHED.search(text):
        yield f"{word[0]} marks something unfinished; use other words."
    for finding in scan(text):
        yield f"something looks like a secret ({finding.kind}); a reader would take it for real."


def _need_problems(workspace: Workspace, task: Task) -> Iterator[str]:
    sessions = {session.id: session for session in workspace.sessions}
    if task.at <= workspace.sessions[-1].at:
        yield "`at` is not later than the last session."
    if unknown := set(task.needs) - sessions.keys():
        yield f"`needs` names {', '.join(sorted(unknown))}, which is no session."
        return
    if not task.needs_memory:
        if task.needs or task.clue:
            yield "a task of the kind `nothing` has neither `needs` nor a `clue`."
        return
    if not task.needs or not task.clue:
        yield "`needs` and `clue` are missing."
        return
    for name in task.needs:
        if not task.has_clue(sessions[name].text):
            yield f"the clue does not stand in {name}."
    for where, text in (("the request", task.request), *workspace.repository.files.items()):
        if task.has_clue(text):
            yield f"the clue stands in {where}, so that nobody needs a memory."
    projects = {workspace.project_of(sessions[name]) for name in task.needs}
    if task.kind is Kind.CHANGED and len(task.needs) < 2:
        yield "a changed decision needs two sessions: the older one, and the one that replaces it."
    if task.kind is Kind.ELSEWHERE and (workspace.repository.project not in projects or len(projects) < 2):
        yield "this kind needs a session of another project and one of this project."


def _sample_problems(workspace: Workspace, task: Task) -> Iterator[str]:
    files = workspace.repository.files
    expected = {sample.expect for sample in task.samples}
    wanted = {Expected.RIGHT, Expected.WRONG} | ({Expected.REPEATS} if task.detects_repeats else set())
    if missing := wanted - expected - ({Expected.WRONG} if Expected.REPEATS in expected else set()):
        yield f"there is no sample that is {', '.join(sorted(missing))}."
    if task.kind in WITH_REPEATS and not task.detects_repeats:
        yield f"a task of the kind `{task.kind}` needs a function `repeats(answer)`."
    try:
        nothing = judge(task, Answer(files))
        if nothing.right or nothing.repeats or nothing.problem:
            yield f"an answer that does nothing is judged as {nothing}."
        for number, sample in enumerate(task.samples, 1):
            found = judge(task, sample_answer(files, sample))
            right, repeats = sample.expect is Expected.RIGHT, sample.expect is Expected.REPEATS
            if (found.right, found.repeats) != (right, repeats) or found.problem:
                yield f"sample {number} is to be {sample.expect}, and is judged as {found}."
    except InvalidInput as error:
        yield str(error)
