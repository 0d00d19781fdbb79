"""What is answered: memories, facts, hits, outcomes, lists and journal lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, NotRequired, Required

from pydantic import ConfigDict, Field, WithJsonSchema, WrapSerializer, computed_field
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from recollect.domain.answer import LAZY, Answer, DescribedBy, Id, Share, without_checks
from recollect.domain.enums import Certainty, EntityType, Layer, Scope, Sensitivity, Standing
from recollect.domain.origin import Authority, SaidBy, Stamped, StampedFact
from recollect.domain.requests import MemoryFields
from recollect.domain.search import Signals

_PREVIEW: Final = 200  # characters
_LAYERS: Final = frozenset({"content", "abstract", "overview"})
_LABELS: Final = frozenset(
    {"fact_type", "scope", "key", "category", "tags", "author", "source", "origin", "trust", "project"}
)
_HIT: Final = (
    *("id", "content", "fact_type", "key", "category", "tags", "scope"),
    *("confidence", "trust", "source", "origin", "author", "updated_at", "project"),
)
_BEGINNING: Final = {"type": "string", "description": "The beginning of the content"}
_COSINE: Final = {"type": "number", "description": "Cosine of its best chunk, -1–1"}
_MATCH: Final = {"type": "number", "description": "How well it matches the query, 0–1"}
_CERTAINTY: Final = {"type": "string", "description": "How sure the match is: `strong`, `likely` or `weak`"}
_OLDER: Final = {"type": "string", "description": "A newer hit about the same subject"}
_TOLD: Final = {
    "type": "string",
    "description": "A hit about the same subject, told or of another source, that this one may deny",
}
_PASSAGE: Final = {"type": "string", "description": "The stretch of the content that is nearest to the query"}
_SCORE: Final = {"type": "number", "description": "What ranks it: the match weighed with age, importance and trust"}
_DAY: Final = {"type": "string"}
_WHY: Final = {"type": "object", "description": "The score part by part, and which searchers found it"}

NOTHING: Final = "Nothing relevant found."
ELSEWHERE: Final = "in your other projects: "
"""What a note holds that names them."""

KEPT_AS: Final = "kept_as"
"""In the changes of a line of the journal: the id of the hidden memory that keeps the text before the change."""


@dataclass(frozen=True, config=LAZY)
class Entity(Answer):
    """Something that a memory names, as it is written there."""

    name: Annotated[str, Field(serialization_alias="entity")]
    type: Annotated[EntityType, Field(serialization_alias="entity_type")]


@without_checks(MemoryFields)
class Memory(Answer, MemoryFields, Stamped):
    """One remembered thing as it is stored."""

    internal: ClassVar[frozenset[str]] = frozenset({"namespace", "content_hash", "deleted_at", "said_by", "came_from"})

    id: Id
    namespace: str
    said_by: SaidBy | None = None
    came_from: str | None = None
    review: str | None = Field(default=None, description="Why it waits for a decision, or that it is approved")
    author: str = Field(description="Whose process or token wrote it")
    content_hash: str
    accessed_count: int = Field(default=0, description="How often it was read by its id")
    recalled_count: int = Field(default=0, description="How often it was recalled")
    created_at: datetime
    updated_at: datetime
    last_accessed_at: datetime | None = None
    expires_at: datetime | None = None
    deleted_at: datetime | None = None
    superseded_by: Id | None = Field(default=None, description="The memory that replaces this one")
    merged_into: Id | None = Field(default=None, description="The memory whose earlier or other text this is")
    merged_from: tuple[Id, ...] = Field(default=(), description="The memories that keep its earlier texts and parts")
    entities: tuple[Entity, ...] = Field(default=(), description="People, files, addresses and other things it names")
    standing: Standing | None = Field(default=None, description="Whether somebody pinned or buried it")

    @computed_field(description="Who said it, and where that stood")  # type: ignore[prop-decorator]
    @property
    def origin(self) -> str:
        """Return in plain words where it came from."""
        return self.stamp.words

    @property
    def is_hidden(self) -> bool:
        """Say whether it was forgotten softly, merged into another memory, or replaced by a newer one."""
        return any(mark is not None for mark in (self.deleted_at, self.merged_into, self.superseded_by))

    def without_plain_origin(self, labels: dict[str, Any]) -> dict[str, Any]:
        """Return labels without the origin of what was told, which is the rule and says nothing."""
        plain = self.authority is Authority.TOLD
        return {name: value for name, value in labels.items() if not (plain and name == "origin")}

    def preview(self) -> dict[str, Any]:
        """Return its labels, and the beginning of its content in place of its layers, as doors show them."""
        body = self.model_dump(mode="json", by_alias=True)
        first = {"id": body["id"], "title": body.get("title", ""), "preview": preview_of(self.content)}
        return first | {name: value for name, value in body.items() if name not in _LAYERS}


def preview_of(text: str) -> str:
    """Return the beginning of a text, at most 200 characters of it."""
    return text if len(text) <= _PREVIEW else text[: _PREVIEW - 1].rstrip() + "…"


_PREVIEWED: Final = (Memory.model_fields.keys() | {"origin"}) - Memory.internal - _LAYERS
_Preview = Annotated[Any, DescribedBy(Memory, _PREVIEWED, preview=_BEGINNING)]
_Similar = Annotated[dict[str, Any], DescribedBy(Memory, _PREVIEWED, preview=_BEGINNING, cosine=_COSINE)]
_Hit = Annotated[
    dict[str, Any],
    DescribedBy(
        Memory,
        [name for name in _HIT if name != "project"],
        {"older_than", "contradicts", "project"},
        similarity=_MATCH,
        certainty=_CERTAINTY,
        older_than=_OLDER,
        contradicts=_TOLD,
        score=_SCORE,
        why=_WHY,
    ),
]
_Detail = Annotated[
    dict[str, Any],
    DescribedBy(
        Memory,
        (_LABELS - {"origin"}) | {"id"},
        _LAYERS | {"origin", "older_than", "contradicts", "passage"},
        passage=_PASSAGE,
        certainty=_CERTAINTY,
        older_than=_OLDER,
        contradicts=_TOLD,
        updated_at=_DAY,
    ),
]
MemoryPreview = Annotated[
    Memory,
    WrapSerializer(
        lambda memory, fields, info: fields(memory) if info.round_trip else memory.preview(), return_type=_Preview
    ),
]


@dataclass(frozen=True, config=LAZY)
class Hit(Answer):
    """One recalled memory: its calibrated match and ranked score (0–1), and what each part gave.

    `certainty` is the match in a word. `layer` is how deep the answer shows it: all of it, unless a budget was given.
    `older_than` is a newer hit about the same subject, `contradicts` one that was told, or is of another source, that
    this one may deny; `passage` is the part of a long memory nearest to the query.
    """

    memory: Memory
    match: float
    score: float
    parts: dict[str, float]
    signals: Signals
    certainty: Certainty = Certainty.WEAK
    layer: Layer = Layer.CONTENT
    older_than: Id | None = None
    contradicts: Id | None = None
    passage: str = ""

    @property
    def text(self) -> str:
        """Return the memory as deep as the answer shows it."""
        return self.passage if self.layer is Layer.PASSAGE else str(getattr(self.memory, self.layer))

    @property
    def why(self) -> dict[str, Any]:
        """Return the score part by part (the parts sum to it) and which searchers found the memory."""
        part = self.signals
        searchers = {"meaning": part.cosine > 0.2, "words": part.bm25 > 0, "fuzzy": part.fuzzy > part.coverage}
        parts = {name: round(value, 3) for name, value in self.parts.items()}
        return parts | {"found_by": [name for name, did in searchers.items() if did]}

    def public(self) -> _Hit:
        """Return the memory's text and labels, its scores, and why it was found."""
        fields = self.memory.model_dump(mode="json", include=set(_HIT))
        first = {"id": fields["id"], "content": fields["content"], "similarity": round(self.match, 3)}
        first |= self._standing()
        scores = {"score": round(self.score, 3), "why": self.why}
        rest = {name: fields[name] for name in _HIT if name in fields and name not in first}
        return first | scores | rest | {"confidence": round(self.memory.confidence, 3)}

    def detail(self) -> _Detail:
        """Return its text under the name of its layer, the labels that are not at their defaults, and its day."""
        labels = self.memory.model_dump(mode="json", include=set(_LABELS), exclude_defaults=True)
        labels = self.memory.without_plain_origin(labels)
        day = self.memory.updated_at.date().isoformat()
        first = {"id": str(self.memory.id), str(self.layer): self.text, **self._standing()}
        return {**first, **labels, "updated_at": day}

    def _standing(self) -> dict[str, str]:
        older = {"older_than": str(self.older_than)} if self.older_than is not None else {}
        contradicted = {"contradicts": str(self.contradicts)} if self.contradicts is not None else {}
        return {"certainty": str(self.certainty), **older, **contradicted}


@dataclass(frozen=True, config=LAZY)
class IndexLine:
    """One match in the index of an answer: its abstract of at most 20 words, and how well it matches (0–1)."""

    id: Id
    abstract: str
    match: float

    @property
    def text(self) -> str:
        """Return the line as doors show it: as text, since the names of fields would take as many tokens as it has."""
        return f"{self.id}: {self.abstract}"


@dataclass(frozen=True, config=LAZY)
class Index:
    """A line for each match as the budget allows; matches without details are `omitted`, without a line `unlisted`."""

    lines: tuple[IndexLine, ...]
    omitted: int
    unlisted: int


class RecalledJson(TypedDict, total=False):
    """The answer to a query as doors show it: memories, or within a budget an index of all and details of the best."""

    message: Required[str]
    memories: list[Hit]
    index: Annotated[list[str], Field(description="A line for each match, best first: `ID: abstract`")]
    details: list[_Detail]
    omitted: Annotated[int, Field(description="Matches without details")]
    unlisted: Annotated[int, Field(description="Matches without a line in the index")]
    notes: Annotated[list[str], Field(description="What could not be searched, or was corrected")]


@dataclass(frozen=True, config=LAZY)
class Recalled(Answer):
    """The answer to a query, best first. With a budget it has an `index`, and its hits are those with details.

    Where nothing is relevant, `nearest` is what comes nearest, for people to see.
    """

    hits: tuple[Hit, ...]
    message: str
    notes: tuple[str, ...] = ()
    index: Index | None = None
    nearest: Hit | None = None

    def public(self) -> Annotated[dict[str, Any], DescribedBy(RecalledJson)]:
        """Return the hits whole, or with a budget the index and the hits in detail."""
        body: dict[str, Any] = {"message": self.message}
        if self.index is None:
            body["memories"] = [hit.public() for hit in self.hits]
        else:
            body["index"] = [line.text for line in self.index.lines]
            body["details"] = [hit.detail() for hit in self.hits]
            body["omitted"], body["unlisted"] = self.index.omitted, self.index.unlisted
        if self.notes:
            body["notes"] = list(self.notes)
        return body


def found_message(count: int) -> str:
    """Say how many memories answer a query."""
    return f"{count} {'memory' if count == 1 else 'memories'} found." if count else NOTHING


class WriteStatus(StrEnum):
    """How a write ended."""

    STORED = "stored"
    UPDATED = "updated"
    MERGED = "merged"
    RESTORED = "restored"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    NOT_FOUND = "not_found"


_MESSAGES: Final = {
    WriteStatus.STORED: "{what} stored successfully with ID: {id}",
    WriteStatus.UPDATED: "{what} updated successfully (ID: {id})",
    WriteStatus.MERGED: "{what} updated successfully (ID: {id})",
    WriteStatus.RESTORED: "{what} {id} restored.",
    WriteStatus.DELETED: "{what} {id} deleted.",
    WriteStatus.UNCHANGED: "{what} {id} is unchanged.",
    WriteStatus.NOT_FOUND: "{what} {id} not found.",
}


@dataclass(frozen=True, config=LAZY)
class NearMemory(Answer):
    """A stored memory that resembles what was just remembered."""

    id: str
    line: Annotated[str, Field(description="The beginning of its content")]
    likeness: Annotated[Share, Field(description="Cosine of the best chunks of both")]


@dataclass(frozen=True, config=LAZY)
class Outcome(Answer):
    """How a write ended, what was forgotten (`said`: its first words), and which memories the caller may replace."""

    internal: ClassVar[frozenset[str]] = frozenset({"what"})

    status: Annotated[WriteStatus, Field(serialization_alias="outcome")]
    id: str
    notes: tuple[str, ...] = ()
    what: str = "Memory"
    near: tuple[NearMemory, ...] = ()
    said: str = ""

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated properties
    @property
    def message(self) -> str:
        """The sentence that every door gives back."""
        return _MESSAGES[self.status].format(what=self.what, id=self.id)

    def advice(self, supersedes: str) -> tuple[str, ...]:
        """Return how to replace a near memory; `supersedes` is what the door calls that field, empty if it has none."""
        return (f"To replace one, remember this again with its id as {supersedes}.",) * bool(self.near and supersedes)

    def sentences(self, supersedes: str = "") -> tuple[str, ...]:
        """Return the message, what was forgotten, the notes, the near memories, and how to replace one of them."""
        quote = (f'It said: "{self.said}"',) if self.said else ()
        near = "; ".join(f'{each.id} ({each.likeness:.2f}): "{each.line}"' for each in self.near)
        last = (" ".join((f"Near memories: {near}.", *self.advice(supersedes))),) if near else ()
        return (self.message, *quote, *self.notes, *last)


@dataclass(frozen=True, config=LAZY)
class Listed(Answer):
    """One page of memories in the order asked for, how many there are in all, and where the next page begins.

    The last page has no `after`.
    """

    memories: tuple[MemoryPreview, ...]
    total: int
    notes: tuple[str, ...] = ()
    after: str | None = None


@dataclass(frozen=True, kw_only=True, config=LAZY)
class Fact(Answer, StampedFact):
    """A triple that held from `valid_from` until `valid_to` (None: still); `memory_id` is the memory that states it."""

    internal: ClassVar[frozenset[str]] = frozenset({"namespace", "said_by", "came_from"})

    id: Id
    namespace: str
    scope: Scope
    subject: str
    predicate: str
    object: str
    confidence: float
    memory_id: Id | None = None
    valid_from: datetime
    valid_to: datetime | None = None
    sensitivity: Sensitivity
    author: str
    created_at: datetime
    updated_at: datetime
    said_by: SaidBy | None = None
    came_from: str | None = None

    @computed_field(description="Who said it, and where that stood")  # type: ignore[prop-decorator]
    @property
    def origin(self) -> str:
        """Return in plain words where it came from."""
        return self.stamp.words


@dataclass(frozen=True, config=LAZY)
class FactsFound(Answer):
    """One page of facts, the newest first, and how many there are in all."""

    facts: tuple[Fact, ...]
    total: int


@dataclass(frozen=True, config=LAZY)
class Similar(Answer):
    """A memory that says nearly what was asked about, and the cosine of its best chunk (-1–1)."""

    plural: ClassVar[str] = "memories"

    memory: Memory
    cosine: float

    def public(self) -> _Similar:
        """Return the memory in short, and the cosine to three places."""
        return {"cosine": round(self.cosine, 3)} | self.memory.preview()


class PurgedJson(TypedDict):
    """Which memories were removed for good, and where a legal hold keeps some, how many."""

    message: str
    ids: list[str]
    kept: NotRequired[int]


@dataclass(frozen=True, config=LAZY)
class Purged(Answer):
    """Which memories were removed for good, and how many that have expired stay, as a legal hold keeps them."""

    ids: tuple[Id, ...]
    kept: int = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """Say how many they were."""
        kept = f" {self.kept} stay: a legal hold keeps them." if self.kept else ""
        return f"{len(self.ids)} expired {'memory' if len(self.ids) == 1 else 'memories'} removed.{kept}"

    def public(self) -> Annotated[dict[str, Any], DescribedBy(PurgedJson)]:
        """Return the message and the ids, and how many stay where some do."""
        body: dict[str, Any] = {"message": self.message, "ids": [str(found) for found in self.ids]}
        return body | ({"kept": self.kept} if self.kept else {})


@dataclass(frozen=True, config=LAZY)
class Summarized(Answer):
    """Which summaries were written, and of how many memories; the originals rank below them in recall.

    `left` counts the memories that are old enough and of too few in their category for a summary.
    """

    ids: tuple[Id, ...]
    condensed: int
    left: int = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def message(self) -> str:
        """Say how much was condensed into how little."""
        many = "summary" if len(self.ids) == 1 else "summaries"
        few = f" {self.left} left as they are: too few in their category." if self.left else ""
        return f"{self.condensed} memories condensed into {len(self.ids)} {many}.{few}"


@dataclass(frozen=True, config=LAZY)
class Prompt(Answer):
    """Markdown to put before a model, and which memories it shows."""

    text: str
    ids: tuple[Id, ...]


@dataclass(frozen=True, kw_only=True, config=LAZY)
class Stats(Answer):
    """What the caller's namespaces hold: memories that live, by several of their fields, and what is out of sight."""

    memories: int
    by_scope: dict[str, int]
    by_fact_type: dict[str, int]
    by_type: dict[str, int]
    by_category: dict[str, int]
    facts: int
    expired: int
    deleted: int
    superseded: int
    merged: int
    oldest_at: datetime | None
    newest_at: datetime | None
    model_tokens: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class JournalJson(TypedDict):
    """What happened to a memory, and beside it what changed."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    at: Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
    actor: str
    action: str


@dataclass(frozen=True, config=LAZY)
class JournalEntry(Answer):
    """One line of the append-only journal; `changes` never holds a secret's value or a forgotten text.

    Its hash stays in the store: it follows from the line before, which the reader may have no right to see.
    """

    plural: ClassVar[str] = "history"

    id: int
    at: datetime
    actor: str
    namespace: str
    action: str
    memory_id: int | None
    changes: dict[str, Any]

    def public(self) -> Annotated[dict[str, Any], DescribedBy(JournalJson)]:
        """Return what happened when, by whom, and what changed."""
        at = self.at.isoformat(timespec="seconds")
        return {"at": at, "actor": self.actor, "action": self.action} | self.changes


@dataclass(frozen=True, config=LAZY)
class Check(Answer):
    """One line of the doctor's report: what was looked at, what was seen, and what to do when it is not well."""

    plural: ClassVar[str] = "checks"

    name: str
    well: bool
    seen: str
    advice: str = ""

    def _public_fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        body = super()._public_fields(fields)
        return {name: value for name, value in body.items() if name != "advice" or not self.well}
