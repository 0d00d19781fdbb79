"""Real stores with what the earlier sessions of a workspace left, and sessions that go on in them.

With hooks, each event of a session goes through the operations that the hooks of an agent run; without, a store holds
only what the agent stored with the tool `memory`. The clock is that of the sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import recollect
from evaluation.worth.notes import Notes, SessionNotes, with_ids
from evaluation.worth.workspaces import Event, Session, Task, Workspace
from recollect import App, Caller, Settings
from recollect.domain.lifecycle import Injection
from recollect.doors import hook_texts, memory_tool
from recollect.doors.handlers import perform
from recollect.engines.embedder import Embedder
from recollect.engines.embedding import open_embedder
from recollect.errors import InvalidInput

AGENT: Final = "claude-code"
_OWN_TOOL: Final = "recollect"  # as the hook names the tool `memory`
_STEP: Final = timedelta(minutes=1)  # between two events of a session


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now


@dataclass
class AgentSession:
    """A session of an agent in a store; each event takes a minute.

    What an event brings before the agent is returned as a text, empty where that is nothing.
    """

    app: App
    caller: Caller
    clock: Clock
    name: str

    @property
    def folder(self) -> str:
        """Return the folder of the checkout, as hooks name it."""
        return f"/src/{self.caller.project}"

    def start(self) -> str:
        """Begin the session."""
        text = self._answer("answer_start", source="startup")
        self._perform("session_start", source="startup")
        return text

    def prompt(self, prompt: str) -> str:
        """Hand a prompt to the agent."""
        text = self._answer("answer_prompt", prompt=prompt)
        self._perform("note_prompt", prompt=prompt)
        return text

    def before(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Use a tool: what is known before it runs."""
        return self._answer("answer_before_tool", tool=tool, input=arguments)

    def after(self, tool: str, arguments: Mapping[str, Any], output: str, *, failed: bool) -> str:
        """Use a tool: what is known once it has run."""
        fields = {"tool": tool, "input": arguments, "output": hook_texts.cut(output), "failed": failed}
        text = self._answer("answer_tool", **fields)
        self._perform("tool_post", **fields)
        return text

    def play(self, event: Event) -> None:
        """Let an event of an earlier session happen."""
        if event.person:
            self.prompt(event.person)
        elif event.agent:
            self._perform("note_turn", output=hook_texts.cut(event.agent))
        else:
            tool, arguments = self._use_of(event)
            if not event.read:
                self.before(tool, arguments)
            self.after(tool, arguments, event.output, failed=event.failed)

    def call(self, arguments: dict[str, Any]) -> memory_tool.ToolAnswer:
        """Call the tool `memory`, as an agent does."""
        self.clock.now += _STEP
        return memory_tool.answered(lambda: memory_tool.run(self.app, arguments, self.caller))

    def note_call(self, answer: memory_tool.ToolAnswer) -> None:
        """Report a call that stored a memory, as the hook does."""
        output = hook_texts.stored(" ".join(answer.texts))
        self._perform("tool_post", tool=_OWN_TOOL, input={"action": "remember"}, output=output)

    def end_turn(self) -> None:
        """End the last turn, at which an agent may be asked for what it learnt."""
        self._answer("answer_turn")

    def end(self) -> None:
        """End the session."""
        self._perform("session_end")

    def _use_of(self, event: Event) -> tuple[str, dict[str, Any]]:
        if event.command:
            return "Bash", {"command": event.command}
        path = f"{self.folder}/{event.edit or event.read}"
        return (
            ("Edit", {"file_path": path, "new_string": event.change}) if event.edit else ("Read", {"file_path": path})
        )

    def _perform(self, name: str, **fields: Any) -> Any:
        about = {"session_id": self.name, "agent": AGENT, "folder": self.folder, "at": self.clock().isoformat()}
        return perform(self.app, name, about | fields, self.caller)

    def _answer(self, name: str, **fields: Any) -> str:
        self.clock.now += _STEP
        found: Injection = self._perform(name, **fields)
        if found.shown:
            self._perform("note_shown", **found.shown)
        return found.text


def open_model(*, load: bool = True) -> Embedder:
    """Return the default embedding model; without `load` it only counts tokens until somebody needs more."""
    settings = Settings()
    embedder = open_embedder(settings.model, settings.models_dir)
    if load:
        embedder.warm()
    return embedder


@contextmanager
def open_store(
    home: Path, workspace: Workspace, embedder: Embedder, at: datetime
) -> Iterator[Callable[..., AgentSession]]:
    """Open the store in a folder, and yield a function that makes a session in it, by its name and project."""
    person, own = workspace.repository.person.lower(), workspace.repository.project
    settings = Settings(home=home, user=person, team="worth", project=own, daemon=False)
    settings = settings.model_copy(update={"models_dir": Settings().models_dir})
    clock = Clock()
    clock.now = at
    with recollect.open_app(settings, background=False, clock=clock, embedder=embedder) as app:

        def session(name: str, project: str = own) -> AgentSession:
            caller = settings.caller.model_copy(update={"project": project})
            return AgentSession(app, caller, clock, f"{workspace.name}-{name}")

        yield session


def fill(home: Path, workspace: Workspace, notes: Notes, embedder: Embedder, *, hooks: bool) -> list[str]:
    """Fill the store in a folder with what the earlier sessions left; return a sentence for each call that failed."""
    refusals: list[str] = []
    ids: dict[str, str] = {}
    with open_store(home, workspace, embedder, workspace.sessions[0].at) as new_session:
        for session in workspace.sessions:
            live = new_session(session.id, workspace.project_of(session))
            live.clock.now = session.at
            if hooks:
                live.start()
                for event in session.events:
                    live.play(event)
                live.end_turn()
            refusals += _store_notes(live, session, notes.get(session.id, SessionNotes()), ids, hooks=hooks)
            if hooks:
                live.end()
    return refusals


def _store_notes(
    live: AgentSession, session: Session, entry: SessionNotes, ids: dict[str, str], *, hooks: bool
) -> list[str]:
    """Run the calls of a session's notes, and add the ids of what they stored; return what was refused."""
    refusals = []
    for number, call in enumerate(entry.calls, 1):
        place = f"{session.id}#{number}"
        try:
            answer = live.call(with_ids(call, ids))
        except InvalidInput as error:
            refusals.append(f"{place}: {error}")
            continue
        if answer.failed:
            refusals.append(f"{place}: {' '.join(answer.texts)}")
        elif call["action"] == "remember":
            ids[place] = str(answer.structured["id"])
            if hooks:
                live.note_call(answer)
    return refusals


def begin(live: AgentSession, task: Task) -> list[str]:
    """Begin the session of a later task with its request; return the texts that come before the agent, in order."""
    live.clock.now = task.at
    return [text for text in (live.start(), live.prompt(task.request.strip())) if text]
