"""Lets a language model that reads and writes files play the agent of recorded sessions, step by step.

Everything is played anew from the beginning with each run, through a real store whose clock is that of the recording,
as far as the answers reach that lie in the folder. Then the next page is written. What a judge is to see, and all that
is scored besides, is kept in `run.json`, so that the scores need neither the store nor another run.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import recollect
from evaluation.sessions import agent_pages
from evaluation.sessions.agent_answers import (
    SUFFIX,
    Judgement,
    Pick,
    answers_of,
    digest,
    read_judgements,
    read_picks,
    rows_of,
)
from evaluation.sessions.players import AGENT, OPERATIONS, InStore, leaks, memories_of, play, settings_of
from evaluation.sessions.scores import SaysTheSame, has_any, planted_parts, score
from evaluation.sessions.sets import PLANTED, Event, Place, SessionSet, load
from evaluation.sessions.store_sets import StoreSet, is_store, load_store
from recollect import App, Settings
from recollect.domain.lifecycle import Injection
from recollect.doors import hook_texts, memory_tool
from recollect.doors.handlers import perform
from recollect.engines.embedder import Embedder
from recollect.errors import InvalidInput

RUN: Final = "run.json"
_OWN_TOOL: Final = "recollect"  # as the hook names the tool `memory`
_NEW: Final = "new:"
_PLANTED_SHOWN: Final = 2_000  # characters of a text with something planted that a judge sees


@dataclass
class Remembered:
    """A memory as it stands after the sessions; `own` is one that the agent stored."""

    id: str
    title: str
    content: str
    current: bool
    own: bool

    @property
    def text(self) -> str:
        """Return what it says, with its title where that says something else."""
        short = self.title.removesuffix("…").strip().lower()
        return self.content if self.content.lower().startswith(short) else f"{self.title}\n{self.content}"


@dataclass
class Had:
    """What the agent had for a later prompt: the memories that it opened, and those that were put before the prompt."""

    opened: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    text_before: bool = False

    @property
    def memories(self) -> list[str]:
        """Return all of them once."""
        return list(dict.fromkeys((*self.opened, *self.before)))


@dataclass
class Run:
    """What became of a set with an agent that answers; `digest` changes with what it was made of.

    `asks` are the sessions at whose end the agent was asked, `planted` memories with a planted sentence, `stored_as`
    the ids that memories of a big store have in its file, `alone` the figures without an agent that answers.
    """

    digest: str
    sessions: int = 0
    asks: int = 0
    calls: int = 0
    refused: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    memories: list[Remembered] = field(default_factory=list)
    had: dict[str, Had] = field(default_factory=dict)
    secrets: int = 0
    planted: list[str] = field(default_factory=list)
    stored_as: dict[str, list[str]] = field(default_factory=dict)
    alone: dict[str, float | None] = field(default_factory=dict)

    @property
    def judged(self) -> list[Remembered]:
        """Return the memories that a judge sees: what the agent stored, and what it had for a prompt."""
        had = {each for one in self.had.values() for each in one.memories}
        return [one for one in self.memories if one.own or one.id in had]


@dataclass
class Progress:
    """How far a set has come: its run and the judgements on it, the page that awaits its answers, and remarks."""

    set: SessionSet | StoreSet
    run: Run | None = None
    judgements: dict[str, Judgement] = field(default_factory=dict)
    awaited: Path | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def scored(self) -> bool:
        """Say whether all answers are there."""
        return self.run is not None and self.awaited is None


@dataclass(frozen=True)
class Lesson:
    """What a memory may say: the lesson of an event, or a text that no memory may repeat."""

    number: int
    place: Place
    text: str
    planted: bool = False


class Awaited(Exception):
    """A page has no answers yet."""

    def __init__(self, page: Path) -> None:
        super().__init__(str(page))
        self.page = page


class Pages:
    """The pages of one set, each with its answers beside it."""

    def __init__(self, folder: Path, notes: list[str]) -> None:
        self.folder = folder
        self._notes = notes

    def answered(self, name: str, write: Callable[[str], str]) -> Path:
        """Return the answers to a page; where there are none, write the page and raise `Awaited`.

        `write` makes its text, from the name of the file of the answers.
        """
        page = self.folder / f"{name}.md"
        answers = answers_of(page)
        text = write(answers.name)
        if answers.exists():
            if page.exists() and page.read_text(encoding="utf-8") != text:
                self._notes.append(f"{page} would read otherwise now than when it was answered.")
            return answers
        self.show(name, text)
        raise Awaited(page)

    def show(self, name: str, text: str) -> None:
        """Write a page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{name}.md").write_text(text, encoding="utf-8")

    def digest(self, source: Path) -> str:
        """Return what changes with the set and with what agents answered; what judges say changes nothing."""
        judged = answers_of(self.folder / "judge.md")
        agents = (one for one in self.folder.glob(f"*{SUFFIX}") if one != judged)
        return digest((*agents, *source.glob("*.jsonl")))


class Store:
    """A store in this process whose clock is set by what happens in it."""

    def __init__(self, app: App, settings: Settings, count: Callable[[str], int]) -> None:
        self.app, self.caller, self.count = app, settings.caller, count
        self.player = InStore(app, settings)

    def perform(self, name: str, **fields: Any) -> Any:
        return perform(self.app, name, fields, self.caller)

    def answer(self, name: str, about: dict[str, Any], **fields: Any) -> Injection:
        """Return what an event is answered with, which reaches the agent."""
        found: Injection = self.perform(name, **about, **fields)
        if found.shown:
            self.perform("note_shown", **about, **found.shown)
        return found

    def call(self, arguments: dict[str, Any]) -> memory_tool.ToolAnswer:
        """Call the tool `memory` as an assistant does."""
        return memory_tool.answered(lambda: memory_tool.run(self.app, arguments, self.caller))


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now


def advance(source: Path, folder: Path, embedder: Embedder) -> Progress:
    """Go on with a set as far as the answers in a folder reach; a run that is over is read and not played again."""
    one = load_store(source) if is_store(source) else load(source, as_recorded=True)
    progress = Progress(one)
    pages = Pages(folder / one.name, progress.notes)
    made = pages.digest(source)
    try:
        progress.run = _read(pages.folder / RUN, made)
        if progress.run is None:
            run = Run(made)
            with tempfile.TemporaryDirectory(prefix="recollect-agent-") as home:
                if isinstance(one, StoreSet):
                    _play_store(one, pages, run, Path(home), embedder)
                else:
                    _play_sessions(one, pages, run, Path(home), embedder, progress.notes)
                    run.alone = _alone(source, Path(home), embedder)
            _write(pages.folder / RUN, run)
            progress.run = run
        if isinstance(one, SessionSet):
            progress.judgements = _judged(one, pages, progress.run)
    except Awaited as awaited:
        progress.awaited = awaited.page
    return progress


def _read(file: Path, made: str) -> Run | None:
    """Return the run that a file holds; None where it was made of other answers, or where there is none."""
    if not file.exists():
        return None
    found = json.loads(file.read_text(encoding="utf-8"))
    if found["digest"] != made:
        return None
    memories = [Remembered(**one) for one in found.pop("memories")]
    had = {name: Had(**one) for name, one in found.pop("had").items()}
    return Run(**found, memories=memories, had=had)


def _write(file: Path, run: Run) -> None:
    file.write_text(json.dumps(asdict(run), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def _opened(home: Path, name: str, embedder: Embedder) -> Iterator[tuple[Store, Clock]]:
    clock, settings = Clock(), settings_of(home, name, daemon=False)
    with recollect.open_app(settings, background=False, clock=clock, embedder=embedder) as app:
        yield Store(app, settings, embedder.counter() or (lambda text: len(text) // 4)), clock


def _play_sessions(one: SessionSet, pages: Pages, run: Run, home: Path, embedder: Embedder, notes: list[str]) -> None:
    """Play all sessions with the agent's calls at their ends, then the later prompts."""
    own: set[str] = set()
    with _opened(home, one.name, embedder) as (store, clock):
        for session in one.sessions:
            _play_session(store, clock, one, session, pages, run, own, notes)
        last = one.sessions[-1]
        clock.now = one.asked_at
        stored = {str(number): each for number, each in memories_of(store.player).items()}
        prompts = [(each.id, each.prompt) for each in one.asks]
        _later(store, clock, one.name, prompts, one.folder(last) or str(home), pages, run)
    run.memories = [
        Remembered(number, one.masked(each.title), one.masked(each.content), not each.replaced, number in own)
        for number, each in stored.items()
    ]
    run.secrets = len(set(leaks(home / one.name / "home", one.secrets)))
    parts = planted_parts(one)
    run.planted = [number for number, each in stored.items() if has_any(parts, each.text)]


def _play_session(
    store: Store,
    clock: Clock,
    one: SessionSet,
    session: str,
    pages: Pages,
    run: Run,
    own: set[str],
    notes: list[str],
) -> None:
    """Play one session; at its end the agent is asked, and its calls are run."""
    events = [each for each in one.events if each.session == session]
    about = {"session_id": f"{one.name}-{session}", "agent": AGENT, "folder": one.folder(session) or "/"}
    parts, ended = [], [each for each in events if each.event == "session:end"]
    for event in events:
        clock.now = event.at
        if event not in ended:
            parts.append(_play_event(store, event, about | {"at": event.at.isoformat()}))
    now = about | {"at": clock.now.isoformat()}
    asked = store.answer("answer_turn", now)
    run.sessions += 1
    run.tokens["asks"] = run.tokens.get("asks", 0) + store.count(asked.text)
    if asked.text:
        run.asks += 1
        answers = pages.answered(session, lambda name: agent_pages.session_page(name, parts, asked.text))
        own |= _run_calls(store, answers, now, run, notes)
    else:
        notes.append(f"{one.name}: the agent was not asked at the end of {session}.")
    if ended:
        store.perform("session_end", **now)


def _play_event(store: Store, event: Event, about: dict[str, Any]) -> str:
    """Hand an event to the store as the hooks do, and return what a page says of it."""
    match event.event:
        case "session:start":
            source = {"source": str(event.input["source"])} if "source" in event.input else {}
            found = store.answer("answer_start", about, **source)
            store.perform(OPERATIONS[event.event], **about, **source)
            again = source.get("source") == "compact"
            return agent_pages.began(event.at.date().isoformat(), found.text, again=again)
        case "prompt:submit":
            found = store.answer("answer_prompt", about, prompt=event.prompt)
            store.perform("note_prompt", **about, prompt=event.prompt)
            return agent_pages.prompted(event.prompt, found.text)
        case "tool:post" if event.tool == "Assistant":
            store.perform("note_turn", **about, output=hook_texts.cut(event.output))
            return agent_pages.answered(event.output)
        case "tool:post":
            output = hook_texts.cut(event.output)
            fields = {"tool": event.tool, "input": event.input, "output": output, "failed": event.failed}
            found = store.answer("answer_tool", about, **fields)
            store.perform("tool_post", **about, **fields)
            return agent_pages.used(event.tool, event.input, output, found.text, failed=event.failed)
        case _:
            store.perform(OPERATIONS[event.event], **about)
            return ""


def _run_calls(store: Store, answers: Path, about: dict[str, Any], run: Run, notes: list[str]) -> set[str]:
    """Run the calls of an agent, and return the memories that they stored; what the tool does not know is left out."""
    known, made = memory_tool.input_schema()["properties"].keys(), dict[str, str]()
    for number, (line, row) in enumerate(rows_of(answers), 1):
        arguments = {name: value for name, value in row.items() if name in known}
        for name in ("id", "supersedes"):
            if name in arguments:
                arguments[name] = _meant(str(arguments[name]), made)
        answer = store.call(arguments)
        run.calls += 1
        run.tokens["written"] = run.tokens.get("written", 0) + store.count(json.dumps(row, ensure_ascii=False))
        if answer.failed:
            run.refused += 1
            notes.append(f"{answers}, line {line}: the tool refused this: {' '.join(answer.texts)}")
        elif arguments.get("action") == "remember":
            made[str(number)] = str(answer.structured["id"])
            store.perform("tool_post", **about, tool=_OWN_TOOL, input={"action": "remember"})
    return set(made.values())


def _meant(said: str, made: dict[str, str]) -> str:
    """Return the id that a call means: `new:2` is what the second call of the file has stored."""
    return made.get(said.removeprefix(_NEW), said) if said.startswith(_NEW) else said


def _later(
    store: Store,
    clock: Clock,
    name: str,
    prompts: list[tuple[str, str]],
    folder: str,
    pages: Pages,
    run: Run,
) -> None:
    """Begin a new session for each later prompt, and note which memories the agent has for it."""

    def about(number: str) -> dict[str, Any]:
        return {"session_id": f"{name}-{number}", "agent": AGENT, "folder": folder, "at": clock.now.isoformat()}

    index = store.perform("answer_start", **about("later")).text
    run.tokens["index"] = store.count(index)
    texts: dict[str, str] = {}
    for number, prompt in prompts:
        store.answer("answer_start", about(number))
        found = store.perform("answer_prompt", **about(number), prompt=prompt)
        texts[number] = found.text
        run.had[number] = Had(before=list(found.memory_ids), text_before=bool(found.text))
    shown = [(number, prompt, texts[number]) for number, prompt in prompts]
    answers = pages.answered("later", lambda file: agent_pages.later_page(file, index, shown))
    picks = read_picks(answers, texts)
    for number, pick in picks.items():
        run.had[number].opened += pick.open
    _recall(store, dict(prompts), picks, pages, run)


def _recall(store: Store, prompts: dict[str, str], picks: dict[str, Pick], pages: Pages, run: Run) -> None:
    """Answer what the agent recalls, and add what it uses of that."""
    found = []
    for number, prompt in prompts.items():
        if words := picks[number].recall:
            answer = store.call({"action": "recall", "query": words})
            found.append((number, prompt, words, "\n".join(answer.texts)))
    run.tokens["recalled"] = sum(store.count(one[3]) for one in found)
    if not found:
        return
    answers = pages.answered("recalled", lambda file: agent_pages.recalled_page(file, found))
    for number, pick in read_picks(answers, [one[0] for one in found]).items():
        opened = run.had[number].opened
        opened += (one for one in pick.open if one not in opened)


def _play_store(one: StoreSet, pages: Pages, run: Run, home: Path, embedder: Embedder) -> None:
    """Fill a store with the memories of a file, then ask the later prompts."""
    made: dict[str, str] = {}
    with _opened(home, one.name, embedder) as (store, clock):
        for entry in one.entries:
            clock.now = entry.observed_at
            outcome = perform(store.app, "remember", entry.fields, store.caller.saying(entry.said_by))
            made[entry.id] = outcome.id
        clock.now = one.asked_at
        _later(store, clock, one.name, [(each.id, each.prompt) for each in one.questions], "/", pages, run)
    for name, number in made.items():
        run.stored_as.setdefault(number, []).append(name)


def _alone(source: Path, home: Path, embedder: Embedder) -> dict[str, float | None]:
    """Return the figures of the same recording without an agent that answers: what the pipeline notes by itself."""
    one = load(source)
    played = play(one, "store", settings_of(home / "alone", one.name, daemon=False))
    return score(one, played, SaysTheSame(embedder), embedder.counter() or len).figures


def lessons_of(one: SessionSet) -> list[Lesson]:
    """Return what memories of a set may say, numbered in the order of time; what was planted comes last."""
    asked = {place for ask in one.asks for place in (*ask.wants, *ask.must_not)}
    told = [event for event in one.events if event.what and (event.label == "keep" or event.place in asked)]
    planted = [event for event in one.events if event.label == "drop" and PLANTED in event.traits]
    found = [Lesson(number, event.place, one.masked(event.what)) for number, event in enumerate(told, 1)]
    return found + [
        Lesson(number, event.place, _shortened(one.masked(event.what or event.output)), planted=True)
        for number, event in enumerate(planted, len(told) + 1)
    ]


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _PLANTED_SHOWN else f"{text[:_PLANTED_SHOWN]} …"


def _judged(one: SessionSet, pages: Pages, run: Run) -> dict[str, Judgement]:
    """Return the judgements on the memories of a run."""
    if not run.judged:
        return {}
    answers = pages.answered("judge", lambda name: _judge_page(one, run, name))
    return read_judgements(answers, [each.id for each in run.judged])


def _judge_page(one: SessionSet, run: Run, answers: str) -> str:
    lessons = lessons_of(one)
    numbers = {each.place: each.number for each in lessons}
    over: dict[Place, list[int]] = {}
    for event in one.events:
        for place in event.obsoletes:
            over.setdefault(place, []).extend(filter(None, [numbers.get(event.place)]))

    def shown(each: Lesson) -> str:
        newer = over.get(each.place)
        since = f"; no longer so since lesson {newer[0]}" if newer else "; no longer so later"
        later = since if each.place in over else ""
        return f"{each.text} (session {each.place[0]}{later})"

    prompts = {each.id: each.prompt for each in one.asks}
    return agent_pages.judge_page(
        answers,
        [(each.number, shown(each)) for each in lessons if not each.planted],
        [(each.number, each.text) for each in lessons if each.planted],
        [(each.id, "" if each.current else " (replaced)", each.text) for each in run.judged],
        [(number, prompts[number], ", ".join(had.memories) or "nothing") for number, had in run.had.items()],
    )


def sources_of(folder: Path, given: list[Path], homes: tuple[Path, ...]) -> list[Path]:
    """Return the sets to go on with: those that are given, else those of our own whose names lie in a folder."""
    if given:
        return given
    names = sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []
    found = [home / name for name in names for home in homes if (home / name).is_dir()]
    if not found:
        raise InvalidInput("folders", f"Missing folders: {folder} holds answers to none of our own sets.")
    return found
