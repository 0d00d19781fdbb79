"""What may be asked: who asks, and one request for each verb."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Annotated, Any, Literal, NewType

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from recollect.domain import calendar, fields
from recollect.domain.enums import Concept, FactType, OnFound, Order, Profile, Role, Scope, Sensitivity, Source
from recollect.domain.fields import Allowed, Request, blank_to_none, lower, singular, with_optional_fields
from recollect.domain.origin import Origin, SaidBy
from recollect.errors import Forbidden, InvalidInput

RememberCategory = Literal[
    FactType.PROFILE, FactType.PREFERENCE, FactType.ENTITY, FactType.EVENT, FactType.CASE, FactType.PATTERN
]
"""What `memory_remember` calls a category; plurals are accepted."""

StoreType = Literal[FactType.FACT, FactType.ENTITY, FactType.RELATIONSHIP, FactType.SELF]
"""What `memory_store` calls a type."""

Team = Annotated[
    fields.CallerName,
    StringConstraints(pattern=r"^[^/]+$"),
    Allowed(f"Must be 1–{fields.MAX_CALLER} characters without `/`"),
]


WritableNamespace = NewType("WritableNamespace", str)
"""A namespace that a caller may write. Only `Caller.writable` makes one, and the store writes no other."""


class Elsewhere(Request):
    """What a caller may do in the other projects of their team: the role in those `named`, and in all others."""

    role: Role | None = Role.WRITER
    named: Mapping[str, Role | None] = {}

    def role_in(self, project: str) -> Role | None:
        """Return the role in a project, None where there is none."""
        return self.named.get(project, self.role)


class Caller(Request):
    """Who speaks and what of: the door decides it, and every namespace follows from it.

    `reads` and `writes` are the scopes that the caller has a right to, `elsewhere` what they may do in the other
    projects of the team; on one's own machine that is all. `origin` is what the door knows of whose words a write
    brings. `zone` names the time zone in which a day of theirs begins; without a name it is that of this machine.
    """

    user: fields.CallerName
    team: Team = "local"
    project: fields.CallerName
    reads: tuple[Scope, ...] = tuple(Scope)
    writes: tuple[Scope, ...] = tuple(Scope)
    elsewhere: Elsewhere = Elsewhere()
    origin: Origin = Origin()
    zone: fields.ZoneName = ""

    @property
    def calendar_zone(self) -> tzinfo:
        """Return the time zone in which their days begin."""
        return calendar.zone_named(self.zone)

    def saying(self, said_by: SaidBy, came_from: str = "") -> Caller:
        """Return the same caller with words of another origin."""
        return self.model_copy(update={"origin": Origin(said_by=said_by, came_from=came_from)})

    def in_project(self, project: str) -> Caller:
        """Return the same caller in another project of the team, with the rights that they have there.

        Raises `Forbidden` for a project in which they have none, whether it exists or not.
        """
        if project == self.project:
            return self
        role = self.elsewhere.role_in(project)
        if role is None:
            raise Forbidden(f"You have no role in the project `{project}` of the team `{self.team}`, or there is none.")
        rights = {"reads": (self.reads, True), "writes": (self.writes, role.covers(Role.WRITER))}
        there = {
            name: tuple(scope for scope in Scope if (may if scope is Scope.PROJECT else scope in here))
            for name, (here, may) in rights.items()
        }
        return self.model_copy(update={"project": project, **there})

    def namespace(self, scope: Scope) -> str:
        """Return the one namespace of `scope`: `user:U`, `project:T/P` or `team:T`."""
        match scope:
            case Scope.PERSONAL:
                return f"user:{self.user}"
            case Scope.TEAM:
                return f"team:{self.team}"
            case _:
                return f"project:{self.team}/{self.project}"

    def namespaces(self, scope: Scope | None = None) -> tuple[str, ...]:
        """Return the namespaces a read sees: all that may be read, or the one of `scope`, else raise `Forbidden`."""
        return self._allowed(scope, self.reads, "read")

    def writable_namespaces(self, scope: Scope | None = None) -> tuple[WritableNamespace, ...]:
        """Return the namespaces that may be written, or the one of `scope`, else raise `Forbidden`."""
        return tuple(WritableNamespace(namespace) for namespace in self._allowed(scope, self.writes, "write"))

    def writable(self, namespace: str) -> WritableNamespace:
        """Return a namespace as one that may be written; raise `Forbidden` where the caller has no right to."""
        if all(namespace != self.namespace(scope) for scope in self.writes):
            raise Forbidden(f"You have no right to write to `{namespace}`: an admin of the team can give it.")
        return WritableNamespace(namespace)

    def _allowed(self, scope: Scope | None, rights: tuple[Scope, ...], verb: str) -> tuple[str, ...]:
        if not rights or (scope is not None and scope not in rights):
            what = f"in the scope `{scope}`" if scope else "anything"
            raise Forbidden(
                f"You have no right to {verb} {what}: a request names its team and project, and an admin of the team "
                "gives the right."
            )
        return tuple(self.namespace(name) for name in ([scope] if scope else rights))


class MemoryFields(BaseModel):
    """The fields of a memory that a caller may set, declared once for drafts, updates and memories."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    content: fields.Text = Field(description="Self-contained text")
    key: fields.Label = Field(default=None, description="Unique name: `remember` with it again updates this memory")
    scope: fields.WriteScope = Field(default=Scope.PROJECT, description="Who shares it")
    fact_type: fields.Kind = Field(
        default=FactType.GENERAL, description="Kind of knowledge, such as decision or preference"
    )
    type: fields.Type = Field(default=None, description="Kind of work it was observed in, such as bugfix")
    concepts: fields.Concepts = Field(default=(), description="What it is about, such as gotcha")
    category: fields.Label = Field(default=None, description="Free-form group")
    tags: fields.Tags = Field(default=(), description="Free-form labels")
    importance: fields.Unit = Field(default=0.5, description="How much it matters, 0–1")
    confidence: fields.Unit = Field(default=0.5, description="How sure it is, 0–1; saying the same again raises it")
    trust: fields.Unit = Field(default=0.5, description="How far its source is trusted, 0–1")
    sensitivity: fields.Level = Field(default=Sensitivity.PUBLIC, description="private, secret: only you can read it")
    title: fields.Heading = Field(default="", description="Heading of one line; made from the content when absent")
    subtitle: fields.Heading = Field(default="", description="Second heading of one line")
    abstract: fields.Heading = Field(
        default="", description="One line. At most 20 words; made from the content when absent"
    )
    overview: fields.Overview = Field(default="", description="One paragraph. Made from the content when absent")
    files_read: fields.Files = Field(default=(), description="Files that were read for it")
    files_modified: fields.Files = Field(default=(), description="Files that were modified with it")
    when: fields.When = Field(
        default=(),
        description="Moments to show it, such as `run git push --force`. `run` is before a command, `edit` before a "
        "file is written, `fail` after a tool failed, each with words that must stand there; `!word` must not; `done` "
        "is the command after which it is not shown any more",
    )
    session_id: fields.Label = Field(default=None, description="Session it comes from")
    project: fields.Label = Field(default=None, description="A label: the project it is about, not where it is stored")
    discovery_tokens: fields.Count | None = Field(default=None, description="How many tokens it took to find out")
    observed_at: fields.Since = Field(default=None, description="When it happened: day or ISO time")
    ttl_days: fields.Days | None = Field(default=None, description="Days until it expires")
    speaker: fields.Label = Field(default=None, description="Who said or did it: a name, or user or assistant")
    position: fields.Count | None = Field(default=None, description="Place in its session")
    source: Source = Field(default=Source.TOOL, description="Which way it came in")


class Levels(Request):
    """Which levels of sensitivity beside public a request may see; all else does not exist for it, nor for its writes.

    So a writer learns nothing of a memory above the levels that they name: no id, no "updated", no merge; and what they
    may not see stays as it is. A level that a draft names is the level it is written at, and lets in nothing but a key.
    """

    allow_private: bool = Field(default=False, description="Include your memories marked private")
    allow_secret: bool = Field(default=False, description="Include your memories marked secret")


class Draft(MemoryFields, Levels):
    """A memory to be stored. Absent headings and layers are filled from the content.

    With `id` it is the new version of that memory; with `supersedes` it is a new memory that replaces that one. Without
    a scope it then goes to the namespace of the other one. A key is unique in its namespace and level of sensitivity:
    it names the memory of the level that is given, without one the strictest that the request may see. With `if_hash`
    it is a version of exactly that memory, whatever else it resembles, and the earlier text is kept.
    """

    id: fields.SomeId = Field(default=None, description="Memory that this text is the new version of")
    supersedes: fields.SomeId = Field(default=None, description="Memory that this one replaces and hides")
    if_hash: fields.Expected = Field(
        default=None,
        description="Only if the memory of this key or id still has a content with this SHA-256; `none`: only if there "
        "is none",
    )

    @field_validator("supersedes")
    @classmethod
    def _not_beside_id(cls, supersedes: str | None, info: ValidationInfo) -> str | None:
        if supersedes is not None and info.data.get("id") is not None:
            raise ValueError("must not be given together with `id`")
        return supersedes

    @field_validator("if_hash")
    @classmethod
    def _of_a_named_one(cls, if_hash: str | None, info: ValidationInfo) -> str | None:
        if if_hash is not None and (info.data.get("supersedes") or not (info.data.get("key") or info.data.get("id"))):
            raise ValueError("needs the `key` or the `id` of the memory that it is about")
        return if_hash


@with_optional_fields(MemoryFields, without=("scope", "source"))
class Update(Levels):
    """New values for fields of one memory; what is absent stays as it is."""

    id: fields.Id
    sensitivity: fields.SomeLevel = Field(default=None, description="private, secret: only you can read it")

    def __init__(self, **data: Any) -> None:
        super().__init__(**data)
        if self.model_fields_set <= {"id", *Levels.model_fields}:
            raise InvalidInput("id", "Nothing to change: Must name a field beside `id`, such as `content` or `tags`")


class ReadAccess(Levels):
    """What a request may see beside public memories, and in which of the caller's namespaces it looks."""

    scope: fields.ReadScope = None


class MemoryFilters(BaseModel):
    """What may be asked of a memory beside its match, declared here and nowhere else. What is absent filters nothing.

    A memory carries every one of `tags` (letter case aside) and `concepts`, and names `entity`; `file` is a path that
    it read or modified, a folder above that, or the end of it; `since` and `until` (both inclusive) bound when the
    thing happened.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    fact_type: fields.Kind | None = Field(default=None, description="Only this kind of knowledge, such as decision")
    category: fields.Label = Field(default=None, description="Only this group")
    type: fields.Type = Field(default=None, description="Only from this kind of work, such as bugfix")
    tags: fields.AskedTags = Field(default=(), description="Only with this tag")
    concepts: fields.Concepts = Field(default=(), description="Only about this concept, such as gotcha")
    entity: fields.Label = Field(default=None, description="Only with this person, file, address or ticket in the text")
    project: fields.Label = Field(default=None, description="Only with this label in the field `project`")
    session_id: fields.Label = Field(default=None, description="Only from the session with this id")
    author: fields.Label = Field(default=None, description="Only what this user's process or token wrote")
    source: fields.Origin = Field(default=None, description="Only what came in this way, such as hook or import")
    file: fields.File = Field(
        default=None, description="Path, its end, or a folder. Only what read or modified that file"
    )
    since: fields.Since = Field(
        default=None, description="Day or ISO time. Only what happened then or later; your time zone unless it says"
    )
    until: fields.Until = Field(default=None, description="Only what happened then or earlier; a day counts to its end")
    key: fields.Label = Field(default=None, description="Only with this key; with `/` at its end, all keys below it")
    sensitivity: fields.SomeLevel = Field(
        default=None, description="Only this level, if `allow_private` or `allow_secret` lets it in"
    )


class Filters(MemoryFilters, ReadAccess):
    """What a read asks of memories: all that is given. `superseded` also shows what a later memory has replaced."""

    superseded: bool = Field(default=False, description="Also what a later memory has replaced")

    @field_validator("until")
    @classmethod
    def _not_before_since(cls, until: datetime | None, info: ValidationInfo) -> datetime | None:
        since = info.data.get("since")
        if since is not None and until is not None and until < since:
            raise ValueError("must not be before `since`")
        return until

    @field_validator("sensitivity")
    @classmethod
    def _let_in(cls, level: Sensitivity | None, info: ValidationInfo) -> Sensitivity | None:
        if level not in (None, Sensitivity.PUBLIC) and not info.data.get(f"allow_{level}"):
            raise ValueError(f"`{level}` memories are let in only with `allow_{level}`")
        return level


class Wide(Filters):
    """A read that may look into all projects of a store of one's own."""

    everywhere: bool = Field(default=False, description="Also in your other projects")


class Query(Wide):
    """A search. With `max_tokens` each match has a line in an index, and `limit` bounds the details."""

    query: fields.Question = Field(description="Question or key words. Typos are forgiven")
    limit: fields.Limit = 10
    max_tokens: fields.Budget | None = Field(
        default=None,
        description="Maximum tokens. A line for each match, then details as they fit",
    )
    profile: Profile = Field(default=Profile.BALANCED, description="How hits are ranked")
    min_score: fields.Unit = Field(default=0.35, description="Least score, 0–1; 0 shows the best, relevant or not")


class CompactQuery(Query):
    """A search whose answer is for an agent: a page of it, `offset` on, within `max_tokens`."""

    max_tokens: fields.Budget = Field(default=2_000, description="Maximum tokens. The whole answer counts")
    offset: fields.Offset = 0


class Forget(ReadAccess):
    """Which memory to forget for good; without a scope, wherever among the caller's namespaces it lies."""

    id: fields.Id


class SoftForget(Forget):
    """Which memory to hide until it is restored, or with `hard` to forget for good."""

    hard: bool = Field(default=False, description="Delete for good")


class Restore(Forget):
    """Which memory to bring back that was softly forgotten, merged into another, superseded or quarantined."""


class Get(Levels):
    """Which memory to read whole."""

    id: fields.Id


class Mark(Levels):
    """Which memory to pin or to bury, or to leave as any other again."""

    id: fields.Id


class Move(Levels):
    """Which memory to move to another scope, or to another project."""

    id: fields.Id
    scope: fields.WriteScope = Field(default=Scope.PROJECT, description="Who shares it from now on")
    to_project: Annotated[fields.CallerName | None, BeforeValidator(blank_to_none)] = Field(
        default=None, description="Project of your team that it moves to"
    )

    @field_validator("to_project")
    @classmethod
    def _to_a_project(cls, project: str | None, info: ValidationInfo) -> str | None:
        if project is not None and info.data.get("scope") is not Scope.PROJECT:
            raise ValueError("must not be given together with another `scope` than `project`")
        return project


class Promote(Levels):
    """Which memory of a project to move to where all your projects see it."""

    id: fields.Id
    scope: Annotated[Literal[Scope.PERSONAL, Scope.TEAM], BeforeValidator(lower)] = Field(
        default=Scope.PERSONAL, description="Who shares it from now on: you alone, or your team"
    )


class Inspect(Request):
    """A look at the whole store; a deep one reads everything."""

    deep: bool = Field(
        default=False, description="Read every journal line, row and vector, and embed every memory again to compare"
    )


class Listing(Wide):
    """Which memories to list, in which order; behind `after`, where the page before ended, none is missed.

    `offset` skips as many as an earlier page has shown, which may be others by now.
    """

    limit: fields.Limit = 20
    offset: fields.Offset = 0
    after: fields.Label = Field(default=None, description="Where the page before ended. Its answer says it")
    order: Annotated[Order, BeforeValidator(lower)] = Field(default=Order.UPDATED, description="Which ones come first")

    @field_validator("after")
    @classmethod
    def _not_beside_offset(cls, after: str | None, info: ValidationInfo) -> str | None:
        if after is not None and info.data.get("offset"):
            raise ValueError("must not be given together with `offset`")
        return after


class ByFile(Listing):
    """Which file, folder or end of a path the memories read or modified."""

    file: fields.File = Field()

    @field_validator("file")
    @classmethod
    def _given(cls, file: str | None) -> str:
        if file is None:
            raise ValueError("must name a file or a folder")
        return file


class ByConcept(Listing):
    """Which concept the memories are about."""

    concept: Annotated[Concept, BeforeValidator(lower)] = Field(description="A concept, such as gotcha or trade-off")


class Timeline(Listing):
    """Which memories to list in the order in which they were created: the latest, unless an `order` is given."""

    order: Annotated[Literal[Order.NEWEST, Order.OLDEST], BeforeValidator(lower)] = Field(
        default=Order.OLDEST,
        description="In which order. By default the latest memories, the oldest of them first",
    )


class StoreFact(Levels):
    """A triple to store. It holds beside others of its subject and predicate, unless it `replaces` those."""

    subject: fields.Name = Field(description="What it is about")
    predicate: fields.Name = Field(description="How the subject relates to the object")
    object: fields.Text = Field(description="The other end")
    confidence: fields.Unit = Field(default=0.5, description="How certain it is, 0–1")
    memory_id: fields.SomeId = Field(default=None, description="Id of the memory that states it")
    valid_from: fields.Since = Field(default=None, description="Since when, default now. Day or ISO time")
    valid_to: fields.Since = Field(default=None, description="Until when, default without end. Day or ISO time")
    replaces: bool = Field(default=False, description="Ends other facts of its subject and predicate")
    sensitivity: fields.Level | None = Field(
        default=None, description="Who may read it: everybody in its scope, or only on request"
    )
    scope: fields.WriteScope = Scope.PROJECT


class FactQuery(ReadAccess):
    """Which facts to read: by any part (letter case aside), as they held at a time; `history` shows invalid ones."""

    subject: fields.Label = Field(default=None, description="Only about this")
    predicate: fields.Label = Field(default=None, description="Only with this predicate")
    object: fields.Label = Field(default=None, description="Only with this other end")
    memory_id: fields.SomeId = Field(default=None, description="Id of the memory that states it")
    as_of: fields.Since = Field(default=None, description="Day or ISO time. Facts as they were valid then")
    history: bool = Field(default=False, description="Also facts that have ended")
    min_confidence: fields.Unit = Field(default=0.0, description="Least confidence, 0–1")
    limit: fields.Limit = 50
    offset: fields.Offset = 0


class Purge(ReadAccess):
    """Remove for good what has passed its time, in the namespaces of the caller or in that of one scope."""


class Rescan(ReadAccess):
    """Look for secrets in what is stored, with today's detectors, and what to do when there are any."""

    on_found: Annotated[OnFound, BeforeValidator(lower)] = Field(
        default=OnFound.REPORT, description="Report secrets, mask them, or hide what contains one until it is restored"
    )


class Summarize(Request):
    """Condense what was not touched for so long into one summary per category; the originals rank below it."""

    older_than_days: fields.Days = Field(default=30.0, description="Days without a change or a use")
    category: fields.Label = Field(default=None, description="Only this group")
    at_least: Annotated[
        int, Field(ge=2, le=fields.MAX_LIMIT), Allowed(f"Must be a whole number from 2 to {fields.MAX_LIMIT}")
    ] = Field(default=3, description="Leave smaller groups as they are, 2–100")
    scope: fields.WriteScope = Field(default=Scope.PROJECT, description="Who shares them")


class FindSimilar(Filters):
    """Which memories say nearly the same as a text or as another memory: cosine of the best chunk ≥ `threshold`."""

    content: fields.Text | None = Field(default=None, description="Text to compare with")
    id: fields.SomeId = Field(default=None, description="Or id of a memory to compare with")
    threshold: fields.Cosine | None = Field(
        default=None, description="Least cosine similarity. -1–1; default: that of a duplicate"
    )
    limit: fields.Limit = 10


class ForPrompt(Filters):
    """What to put before a model: the most useful memories as fenced Markdown, within a budget."""

    query: Annotated[fields.Question | None, BeforeValidator(blank_to_none)] = Field(
        default=None, description="Default: the most useful. A question or key words"
    )
    max_entries: fields.Limit = Field(default=20, description="How many memories at most. 1–100")
    max_tokens: fields.Budget = Field(default=1_000, description="How many tokens at most")


class MemoryStore(Request):
    """Create a memory (no `id`) or update one; `importance` is 0–10."""

    content: fields.Text | None = Field(default=None, description="Required to create")
    id: fields.SomeId = Field(default=None, description="Memory to update")
    summary: fields.Line | None = Field(default=None, description="One line")
    type: Annotated[StoreType, BeforeValidator(singular)] | None = Field(default=None, description="Kind of knowledge")
    importance: fields.OutOfTen | None = Field(default=None, description="8-10 critical, 1-3 temporary; default 5")
    tags: fields.Tags | None = Field(default=None, description="Free-form labels")
    ttl_days: fields.Days | None = Field(default=None, description="Days until it expires")
    scope: fields.WriteScope | None = Field(default=None, description="Who shares it")


class SearchMemories(Query):
    """A query whose hits are ordered by their weighted score alone."""

    profile: Profile = Profile.WEIGHTED


class MemoryRecall(Query):
    """A query whose whole answer has at most `max_tokens`: a line for each match, then details; habit ranks them."""

    limit: fields.Limit = Field(default=10, description="Most details")
    max_tokens: fields.Budget = Field(default=2_000, description="Maximum tokens. The whole answer counts")
    profile: Profile = Profile.HABIT
    min_score: fields.Unit = 0.0


class MemoryRemember(Request):
    """One of six kinds of knowledge in three layers; what resembles it decides what becomes of it."""

    content: fields.Text = Field(description="Self-contained text")
    category: Annotated[RememberCategory, BeforeValidator(singular)] = Field(description="Kind of knowledge")
    abstract: fields.Line | None = Field(default=None, description="One line")
    overview: fields.Paragraph | None = Field(default=None, description="One paragraph")
    scope: fields.WriteScope = Scope.PROJECT
