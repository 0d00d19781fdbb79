"""What a coding agent's session reports, what becomes of it, and what is shown of a session."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, ClassVar, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass

from recollect.domain import fields
from recollect.domain.answer import LAZY, Answer, Id
from recollect.domain.enums import Source
from recollect.domain.fields import Request, refuse_unstorable

MAX_OUTPUT: Final = 1_000_000
"""Characters of an output that are taken; a door cuts what is longer."""

OBSERVED: Final = (Source.HOOK, Source.EXTRACTION)
CAPTURED: Final = (*OBSERVED, Source.COMPRESSION)
"""How memories come in that the pipeline makes by itself."""

_DEEPEST: Final = 100  # levels of an input that are kept

_ToolName = Annotated[fields.Name, Field(description="Name of the tool")]

Shown = Annotated[tuple[fields.Name, ...], Field(max_length=fields.MAX_SHOWN)]


class Fading(StrEnum):
    """Which memories of a project fade, are compressed and may go while nobody uses them."""

    CAPTURED = "captured"
    ALL = "all"


class Ask(StrEnum):
    """When an agent is asked to store what its session learnt."""

    OFF = "off"
    COMPACT = "compact"
    ON = "on"


class LifecycleSettings(BaseModel):
    """How sessions are captured and memories injected: from the environment, or from the files of a project."""

    capture: bool = Field(default=True, description="Keep what is worth keeping of the sessions that hooks report.")
    inject: bool = Field(default=True, description="Add relevant memories to the prompts that hooks report.")
    ask: Ask = Field(
        default=Ask.ON,
        description="When an agent is asked to store what its session learnt: `on` is at the end of a turn, `compact` "
        "only at the start after, `off` never.",
    )
    memorability_threshold: float = Field(
        default=0.30, ge=0, le=1, description="Score from which an observation is kept, 0–1."
    )
    token_budget: int = Field(default=2_000, ge=64, le=100_000, description="Most tokens that injected memories take.")
    max_inject_count: int = Field(default=5, ge=0, le=50, description="Most memories that are added to a prompt.")
    checkpoint_every: int = Field(
        default=10, ge=1, le=1_000, description="Captured memories from one checkpoint to the next."
    )
    compression_min_age_days: float = Field(
        default=7.0, gt=0, le=fields.MAX_DAYS, description="Minimum age, in days, before memories are summarised."
    )
    consolidation_decay_rate: float = Field(
        default=0.02, ge=0, le=1, description="Importance that a captured memory loses in a day without use."
    )
    consolidate: Fading = Field(
        default=Fading.CAPTURED,
        description="What fades and is summarised: `captured` by hooks, or `all`; a project cannot change this.",
    )
    default_ttl_days: float = Field(
        default=90.0,
        ge=0,
        le=fields.MAX_DAYS,
        description="Days that a draft is kept after its last use, 0 for ever.",
    )
    max_captured: int = Field(
        default=1_000,
        ge=0,
        description="Most drafts of one project, 0 for any number; in a project's file also `max_memories`.",
    )
    modules_off: str = Field(
        default="",
        description="Modules that do not run, separated by commas: `inject`, `capture`, "
        "`boundaries`, `consolidation`, `compression`, `store`, `memorability`, `temporal`.",
    )

    @property
    def fading(self) -> tuple[Source, ...]:
        """Return the sources whose memories fade while nobody uses them."""
        return tuple(Source) if self.consolidate is Fading.ALL else CAPTURED

    @property
    def off(self) -> frozenset[str]:
        """Return the names of the modules that do not run."""
        return frozenset(part.strip().lower() for part in self.modules_off.split(",") if part.strip())


def _storable_json(value: Any, depth: int = 0) -> Any:
    """Return JSON without what databases refuse: lone surrogates, infinity, deep nesting; a NUL becomes a space."""
    match value:
        case str():
            return value.replace("\0", " ").encode("utf-8", "replace").decode()
        case dict() if depth < _DEEPEST:
            return {_storable_json(name): _storable_json(element, depth + 1) for name, element in value.items()}
        case list() if depth < _DEEPEST:
            return [_storable_json(element, depth + 1) for element in value]
        case dict() | list():
            return None
        case float() if not isfinite(value):
            return None
        case _:
            return value


class SessionEvent(Request):
    """Something that a coding agent reports of one of its sessions."""

    event: ClassVar[str]

    session_id: fields.Name = Field(description="Session, as the agent calls it")
    agent: Annotated[fields.Line, Field(max_length=100)] = Field(default="", description="Agent, such as claude-code")
    folder: fields.Line = Field(default="", description="Working folder of the session")
    at: fields.Since = Field(default=None, description="When it happened: day or ISO time; default now")


class StartSession(SessionEvent):
    """A session begins, is resumed, or goes on after a compaction."""

    event: ClassVar[str] = "session:start"

    source: Annotated[fields.Line, Field(max_length=100)] = Field(
        default="", description="What began it: startup, resume, clear or compact"
    )
    former_projects: fields.Names = Field(
        default=(), description="Names that the project of the folder had before, by another remote"
    )


class SubmitPrompt(SessionEvent):
    """A person sends a prompt."""

    event: ClassVar[str] = "prompt:submit"

    prompt: Annotated[str, Field(max_length=MAX_OUTPUT), AfterValidator(refuse_unstorable)] = Field(
        description="What the person wrote"
    )
    typed: bool | None = Field(
        default=None, description="Whether a person typed it, by the agent's transcript; null where that says nothing"
    )


_ToolInput = Annotated[
    dict[str, Any],
    AfterValidator(lambda value: _storable_json(value)),
    Field(default_factory=dict, description="What the tool was given"),
]


class BeforeTool(SessionEvent):
    """A tool is about to run."""

    event: ClassVar[str] = "tool:pre"

    tool: _ToolName
    input: _ToolInput


class UseTool(SessionEvent):
    """A tool has run; also what an assistant or a subagent reported, as the tools `Assistant` and `Task`."""

    event: ClassVar[str] = "tool:post"

    tool: _ToolName
    input: _ToolInput
    output: Annotated[str, Field(max_length=MAX_OUTPUT), AfterValidator(refuse_unstorable)] = Field(
        default="", description="What the tool wrote"
    )
    failed: bool = Field(default=False, description="Whether the agent says that the tool failed")
    also_before: bool = Field(
        default=False, description="Whether memories for the moment before it come now, as the agent took none then"
    )


class EndTurn(SessionEvent):
    """An agent ends its turn, with what it said last."""

    event: ClassVar[str] = "turn:end"

    output: Annotated[str, Field(max_length=MAX_OUTPUT), AfterValidator(refuse_unstorable)] = Field(
        default="", description="What the agent said last"
    )
    continued: bool = Field(default=False, description="Whether a hook let the agent go on in this turn already")


class CheckpointSession(SessionEvent):
    """A session is about to lose its earlier messages: what it learnt is written down."""

    event: ClassVar[str] = "session:checkpoint"


class EndSession(SessionEvent):
    """A session ends."""

    event: ClassVar[str] = "session:end"

    reason: Annotated[fields.Line, Field(max_length=100)] = Field(
        default="", description="Why it ends, in the agent's words"
    )


class NoteShown(SessionEvent):
    """What an answer to an event held has reached the agent."""

    event: ClassVar[str] = "session:shown"

    memory_ids: Shown = Field(default=(), description="Memories in the answer")
    whole_ids: Shown = Field(default=(), description="Those of them that stood there whole")
    reminded_ids: Shown = Field(default=(), description="Those whose moment it was")
    index: bool = Field(default=False, description="Whether the answer held the index")
    ask: bool = Field(default=False, description="Whether it asked the agent to store what was learnt")
    offered: str = Field(default="", max_length=200, description="Earlier session whose notes it offered")


class Decision(StrEnum):
    """What became of an observation."""

    KEPT = "kept"
    DROPPED = "dropped"
    REFUSED = "refused"


class Observation(BaseModel):
    """One event of a session and what became of it. Nothing here says what a kept memory says: that is the memory's.

    `draft` is what a dropped one would have been stored as, so that a person may keep it after all.
    """

    model_config = ConfigDict(frozen=True)

    number: int = 0
    at: datetime
    event: str
    tool: str = ""
    summary: str = ""
    decision: Decision
    reason: str = ""
    score: float | None = None
    memory_id: int | None = None
    draft: dict[str, Any] | None = None


class Injected(BaseModel):
    """Which memories were put before the prompt of a moment."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    memory_ids: tuple[Id, ...]


class Session(BaseModel):
    """A session of a coding agent: whose it is, when it ran, and what the stages know of it.

    `state` is the stages' own, as JSON.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    session_id: str
    agent: str
    project: str
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = None
    kept: int = 0
    dropped: int = 0
    state: dict[str, Any] = Field(default_factory=dict)


class ListSessions(Request):
    """Which of your sessions in this project to list, the latest first."""

    limit: fields.Limit = 20
    offset: fields.Offset = 0


class ShowSession(Request):
    """Which of your sessions to show: its id or how it begins; the latest without one."""

    session_id: fields.Label = Field(default=None, description="Session, as the agent calls it, or how that begins")
    limit: fields.Limit = 100
    offset: fields.Offset = 0


class CorrectObservation(Request):
    """Keep an observation that was dropped, or forget one that was kept."""

    session_id: fields.Name = Field(description="Session, as the agent calls it, or how that begins")
    number: Annotated[fields.Whole, Field(ge=1, le=fields.MAX_COUNT)] = Field(description="Number of the observation")
    keep: bool = Field(description="Keep it, or forget what was kept")


@dataclass(frozen=True, config=LAZY)
class Noted(Answer):
    """What became of an event: the decision on it and why, the memory it made, and the stages that failed."""

    session_id: str
    decision: str = ""
    reason: str = ""
    memory_id: str | None = None
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, config=LAZY)
class Injection(Answer):
    """What to put before a prompt, empty where nothing is relevant; the memories in it, and the stages that failed.

    `whole_ids` are those of the memories that stand there whole, or as far as they are shown at all. With `index` the
    text holds the index, in which most memories have a title only. With `ask` the text asks the agent to go on once.
    `offered` is an earlier session whose notes nobody has stored, and which the text offers. `reminded_ids` are the
    memories whose moment it was.
    """

    text: str = ""
    memory_ids: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    whole_ids: tuple[str, ...] = ()
    index: bool = False
    ask: bool = False
    offered: str = ""
    reminded_ids: tuple[str, ...] = ()

    @property
    def shown(self) -> dict[str, Any]:
        """Return the fields of the note that this has reached the agent; empty where there is nothing to note."""
        names = ("memory_ids", "whole_ids", "reminded_ids", "index", "ask", "offered")
        found = {name: getattr(self, name) for name in names}
        return found if any(found.values()) else {}


@dataclass(frozen=True, config=LAZY)
class SessionSummary(Answer):
    """A session in a list."""

    session_id: str
    agent: str
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None
    kept: int
    dropped: int


@dataclass(frozen=True, config=LAZY)
class SessionList(Answer):
    """A page of sessions, the latest first, and how many there are."""

    sessions: tuple[SessionSummary, ...]
    total: int


@dataclass(frozen=True, config=LAZY)
class ShownObservation(Answer):
    """An observation as a person reads it: for a kept one `summary` is what its memory says first."""

    number: int
    at: datetime
    event: str
    tool: str
    summary: str
    decision: str
    reason: str
    score: float | None = None
    memory_id: str | None = None


@dataclass(frozen=True, config=LAZY)
class ShownSession(Answer):
    """A session with a page of its observations in order, where its topics changed, and how often stages failed.

    `injections` are the memories that were put before its prompts, `topics` when each topic began and its first words.
    `total` is how many observations there are.
    """

    internal: ClassVar[frozenset[str]] = frozenset({"topics"})

    session: SessionSummary
    observations: tuple[ShownObservation, ...]
    total: int
    boundaries: tuple[str, ...] = ()
    failures: dict[str, int] = Field(default_factory=dict)
    injections: tuple[Injected, ...] = ()
    topics: tuple[tuple[datetime, str], ...] = ()
