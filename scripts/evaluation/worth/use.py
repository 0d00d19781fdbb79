"""What an agent may do in the folder of a task: read its notes, call its tool, say what it does, and finish."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from evaluation.worth.arms import ANSWER, LATER, Arm, Place, counter_of, digest_of
from evaluation.worth.notes import PERSON, memory_files, read_notes
from evaluation.worth.stores import AgentSession, open_store
from evaluation.worth.workspaces import read_file
from recollect.engines.embedder import Embedder
from recollect.errors import InvalidInput

CAT, GREP, RECALL = "cat", "grep", "recall"
"""What an agent asks for."""
RUN, EDIT, FAILED = "run", "edit", "failed"
"""What an agent says that it does; an agent's hooks report that by themselves."""
FINISH: Final = "finish"
_NOT_OURS: Final = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules"})
_NOTHING: Final = "(nothing comes up)"


class Form(BaseModel):
    """The form of an answer, beside the files of the repository."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    commands: tuple[str, ...] = ()
    question: str = ""
    reply: str = ""


def use(place: Place, words: Sequence[str], embedder: Embedder) -> str:
    """Do what an agent asks for, note what came before it, and return that; raise `InvalidInput` for other words."""
    count = counter_of(embedder)
    if place.arm is Arm.MARKDOWN:
        text = _read_files(place, words)
        place.note(words[0], text, count, subject=" ".join(words[1:]))
        return text
    if place.arm.stores and len(words) == 1 and words[0].lstrip().startswith("{"):
        return _call(place, _arguments(words[0]), embedder, count)
    if place.arm is Arm.RECOLLECT and words and words[0] in (RUN, EDIT, FAILED):
        return _act(place, words, embedder, count) or _NOTHING
    raise InvalidInput("words", _usage(place.arm))


def finish(place: Place, embedder: Embedder) -> tuple[bool, str]:
    """Return whether an answer is finished, and what to tell the agent.

    Actions that the agent did not announce are announced for it: where something comes up, it looks again.
    """
    form = read_form(place)
    changed = changes_of(place)
    if not (changed or form.commands or form.question.strip() or form.reply.strip()):
        return False, f"There is no answer yet: no file is changed, and {ANSWER} is empty."
    if place.arm is Arm.RECOLLECT:
        count, done = counter_of(embedder), [(row.by, row.subject, row.digest) for row in place.log()]
        ran = {subject for by, subject, _ in done if by in (RUN, FAILED)}
        written = {(subject, digest) for by, subject, digest in done if by == EDIT}
        actions = [(RUN, command) for command in form.commands if command not in ran]
        paths = [path for path, text in changed.items() if text is not None and (path, digest_of(text)) not in written]
        found = [_act(place, (*action,), embedder, count) for action in (*actions, *((EDIT, path) for path in paths))]
        if came := [text for text in found if text]:
            return False, "\n".join((*came, "This came up with your commands and files. Look again, then `./finish`."))
    place.note(FINISH, "", len)
    return True, "ok"


def is_finished(place: Place) -> bool:
    """Say whether the agent has finished its answer."""
    return any(row.by == FINISH for row in place.log())


def read_form(place: Place) -> Form:
    """Read the form of an answer; raise `InvalidInput` that names the field which is wrong."""
    return read_file("answer", place.folder / ANSWER, Form.model_validate_json)


def changes_of(place: Place) -> dict[str, str | None]:
    """Return the files that the agent has changed: path and new text, or None for a file that went."""
    before = place.workspace.repository.files
    after: dict[str, str] = {}
    for file in sorted(place.checkout.rglob("*")):
        path = file.relative_to(place.checkout)
        if file.is_file() and not _NOT_OURS & set(path.parts):
            try:
                after[path.as_posix()] = file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # no text that anybody wrote
    changed: dict[str, str | None] = {path: text for path, text in after.items() if before.get(path) != text}
    return changed | dict.fromkeys((path for path in before if path not in after), None)


def _usage(arm: Arm) -> str:
    ways = {
        Arm.NONE: [],
        Arm.MARKDOWN: [CAT, f"{GREP} PATTERN"],
        Arm.RECALL: ['\'{"action": "recall", "query": "…"}\''],
    }
    ways[Arm.RECOLLECT] = [*ways[Arm.RECALL], f"{RUN} 'COMMAND'", f"{EDIT} PATH", f"{FAILED} 'COMMAND' 'OUTPUT'"]
    return f"Use one of: {'; '.join(f'./memory {way}' for way in ways[arm])}."


def _read_files(place: Place, words: Sequence[str]) -> str:
    if not (list(words) == [CAT] or (len(words) == 2 and words[0] == GREP)):
        raise InvalidInput("words", _usage(place.arm))
    files = memory_files(place.workspace, read_notes(place.workspace))
    lines = [*files.get(place.workspace.repository.project, ()), *files[PERSON]]
    if words[0] == GREP:
        try:
            pattern = re.compile(words[1], re.IGNORECASE)
        except re.error as error:
            raise InvalidInput("pattern", f"{words[1]!r} is no regular expression: {error}.") from error
        lines = [line for line in lines if pattern.search(line)]
    return "\n".join(lines)


def _arguments(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInput("arguments", f"The arguments are no JSON: {error}.") from error
    if not isinstance(found, dict) or found.get("action") != RECALL:
        raise InvalidInput("action", "In this session `memory` is only read: `action` must be `recall`.")
    return found


def _call(place: Place, arguments: dict[str, Any], embedder: Embedder, count: Callable[[str], int]) -> str:
    with open_store(place.home, place.workspace, embedder, place.task.at) as new_session:
        live = _later(place, new_session)
        text = "\n".join(live.call(arguments).texts)
    place.note(RECALL, text, count, subject=json.dumps(arguments, ensure_ascii=False))
    return text


def _act(place: Place, words: Sequence[str], embedder: Embedder, count: Callable[[str], int]) -> str:
    """Return what comes up at an action, and note it."""
    verb, *rest = words
    if len(rest) != (2 if verb == FAILED else 1):
        raise InvalidInput("words", _usage(place.arm))
    subject, digest = rest[0], ""
    with open_store(place.home, place.workspace, embedder, place.task.at) as new_session:
        live = _later(place, new_session)
        if verb == EDIT:
            subject = subject.removeprefix("./").removeprefix(f"{place.checkout.name}/")
            tool, arguments, digest = _edit(place, live, subject)
        else:
            tool, arguments = "Bash", {"command": subject}
        texts = [] if verb == FAILED else [live.before(tool, arguments)]
        texts.append(live.after(tool, arguments, rest[-1] if verb == FAILED else "", failed=verb == FAILED))
    text = "\n".join(filter(None, texts))
    place.note(verb, text, count, subject=subject, digest=digest)
    return text


def _edit(place: Place, live: AgentSession, path: str) -> tuple[str, dict[str, Any], str]:
    """Return the tool and its arguments that write a file as it stands now, and the digest of its text."""
    after, before = changes_of(place).get(path), place.workspace.repository.files.get(path)
    text = after if after is not None else before
    if text is None:
        raise InvalidInput("path", f"There is no file {path} in the repository.")
    target = {"file_path": f"{live.folder}/{path}"}
    if before is None:
        return "Write", target | {"content": text}, digest_of(text)
    known, kept = set(before.splitlines()), set(text.splitlines())
    went = "\n".join(line for line in before.splitlines() if line not in kept)
    new = "\n".join(line for line in text.splitlines() if line not in known)
    return "Edit", target | {"old_string": went, "new_string": new}, digest_of(text)


def _later(place: Place, new_session: Callable[..., AgentSession]) -> AgentSession:
    """Return the session in which the task is answered, a minute later for each thing that was done in it."""
    live = new_session(LATER)
    live.clock.now = place.task.at + timedelta(minutes=2 * len(place.log()))
    return live
