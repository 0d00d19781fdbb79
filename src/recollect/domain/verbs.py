"""What may be asked beside remembering and recalling: one request for each further verb, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, field_validator

from recollect.domain.fields import (
    MAX_LIMIT,
    Budget,
    Concepts,
    Cosine,
    Count,
    Days,
    File,
    Files,
    Kind,
    Label,
    Level,
    Limit,
    Line,
    Moment,
    Name,
    Paragraph,
    Question,
    Request,
    Since,
    Tags,
    Tenth,
    Text,
    Type,
    Unit,
    Where,
    blank_to_none,
    lower,
    one_of,
)
from recollect.domain.kinds import Concept, FactType, OnFound, Order, Profile, Scope
from recollect.domain.requests import Filters, Query, Seen
from recollect.errors import InvalidInput

SIX = (
    FactType.PROFILE,
    FactType.PREFERENCE,
    FactType.ENTITY,
    FactType.EVENT,
    FactType.CASE,
    FactType.PATTERN,
)
"""The categories of `memory_remember`; their plurals are accepted."""

FOUR = (FactType.FACT, FactType.ENTITY, FactType.RELATIONSHIP, FactType.SELF)
"""The types of `memory_store`."""


class Forget(Request):
    """Which memory to forget for good; without a scope, wherever among the caller's namespaces it lies."""

    id: Name
    scope: Where | None = None


class SoftForget(Forget):
    """Which memory to hide until it is restored, or with `hard` to forget for good."""

    hard: bool = False


class Restore(Forget):
    """Which memory to bring back that was softly forgotten, merged into another, superseded or quarantined."""


class Get(Request):
    """Which memory to read whole."""

    id: Name
    allow_private: bool = False
    allow_secret: bool = False


class Inspect(Request):
    """A look at the whole store."""


class Update(Request):
    """New values for fields of one memory; what is absent stays as it is."""

    id: Name
    content: Text | None = None
    key: Label = None
    fact_type: Kind | None = None
    type: Type = None
    concepts: Concepts | None = None
    category: Label = None
    tags: Tags | None = None
    importance: Unit | None = None
    confidence: Unit | None = None
    trust: Unit | None = None
    sensitivity: Annotated[Level | None, BeforeValidator(blank_to_none)] = None
    title: Line | None = None
    subtitle: Line | None = None
    abstract: Line | None = None
    overview: Paragraph | None = None
    files_read: Files | None = None
    files_modified: Files | None = None
    session_id: Label = None
    project: Label = None
    discovery_tokens: Count | None = None
    observed_at: Moment | None = None
    ttl_days: Days | None = None
    speaker: Label = None
    position: Count | None = None

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if self.model_fields_set == {"id"}:
            raise InvalidInput("id", "Nothing to change: Must name a field beside `id`, such as `content` or `tags`")


class Listing(Filters):
    """Which memories to list, in which order; `offset` skips what an earlier page has shown."""

    limit: Limit = 20
    offset: Count = 0
    order: Annotated[Order, BeforeValidator(lower)] = Order.UPDATED


class ByFile(Listing):
    """Which file, folder or end of a path the memories read or modified."""

    file: File = Field()

    @field_validator("file")
    @classmethod
    def _given(cls, file: str | None) -> str:
        if file is None:
            raise ValueError("must name a file or a folder")
        return file


class ByConcept(Listing):
    """Which concept the memories are about."""

    concept: Annotated[Concept, BeforeValidator(lower)]


class Timeline(Listing):
    """Which memories to list in the order in which they were created."""

    allowed: ClassVar[Mapping[str, str]] = {"order": "Must be `newest` or `oldest`"}

    order: Annotated[Order, BeforeValidator(lower)] = Order.NEWEST

    @field_validator("order")
    @classmethod
    def _by_time(cls, order: Order) -> Order:
        if order not in (Order.NEWEST, Order.OLDEST):
            raise ValueError("must be `newest` or `oldest`")
        return order


class StoreFact(Request):
    """A triple to store: it holds from `valid_from` (default: now) to `valid_to` (default: until it is replaced).

    Another object of the same subject and predicate is invalidated, unless `several` may hold at once.
    """

    subject: Name
    predicate: Name
    object: Text
    confidence: Unit = 0.5
    memory_id: Label = None
    valid_from: Since = None
    valid_to: Since = None
    several: bool = False
    sensitivity: Level | None = None
    scope: Where = Scope.PROJECT


class FactQuery(Seen):
    """Which facts to read: by any part (letter case aside), as they held at a time; `history` shows invalid ones."""

    subject: Label = None
    predicate: Label = None
    object: Label = None
    memory_id: Label = None
    as_of: Since = None
    history: bool = False
    min_confidence: Unit = 0.0
    limit: Limit = 50
    offset: Count = 0


class Purge(Request):
    """Remove for good what has passed its time, in the namespaces of the caller or in that of one scope."""

    scope: Where | None = None


class Rescan(Request):
    """Look for secrets in what is stored, with today's detectors, and what to do when there are any."""

    on_found: Annotated[OnFound, BeforeValidator(lower)] = OnFound.REPORT
    scope: Where | None = None


class Summarize(Request):
    """Condense what was not touched for so long into one summary per category; the originals are kept aside."""

    older_than_days: Days = 30.0
    category: Label = None
    at_least: Annotated[int, Field(ge=2, le=MAX_LIMIT)] = 3
    scope: Where = Scope.PROJECT


class FindSimilar(Filters):
    """Which memories say nearly the same as a text or as another memory: cosine of the best chunk ≥ `threshold`."""

    content: Text | None = None
    id: Label = None
    threshold: Cosine | None = None
    limit: Limit = 10


class ForPrompt(Filters):
    """What to put before a model: the most worthwhile memories as fenced Markdown, within a budget."""

    query: Annotated[Question | None, BeforeValidator(blank_to_none)] = None
    max_entries: Limit = 20
    max_tokens: Budget = 1_000


class MemoryStore(Request):
    """Create a memory (no `id`) or update one; `importance` is 0–10."""

    allowed: ClassVar[Mapping[str, str]] = {"importance": "Must be 0–10", "type": one_of(FOUR)}

    content: Text | None = None
    id: Label = None
    summary: Line | None = None
    type: Kind | None = None
    importance: Tenth | None = None
    tags: Tags | None = None
    ttl_days: Days | None = None
    scope: Where | None = None


class MemoryRecall(Query):
    """A query whose whole answer has at most `max_tokens`: a line for each match, then details; habit ranks them."""

    max_tokens: Budget = 2_000
    profile: Profile = Profile.HABIT
    min_score: Unit = 0.0


class MemoryRemember(Request):
    """One of six kinds of knowledge in three layers; what resembles it decides what becomes of it."""

    allowed: ClassVar[Mapping[str, str]] = {"category": one_of(SIX)}

    content: Text
    category: Kind
    abstract: Line | None = None
    overview: Paragraph | None = None
    scope: Where = Scope.PROJECT

    @field_validator("category")
    @classmethod
    def _one_of_six(cls, kind: FactType) -> FactType:
        if kind not in SIX:
            raise ValueError(one_of(SIX))
        return kind
