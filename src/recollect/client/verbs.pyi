"""The methods of a connection for type checkers, written by `scripts/python_verbs.py`."""

from collections.abc import Sequence
from datetime import date, datetime
from inspect import Parameter
from typing import Any, Literal, TypeAlias

from recollect.domain import accounts, compact, enums, lifecycle, results, review, transfer
from recollect.domain.verbs import Verb

ScopeWord: TypeAlias = Literal["personal", "project", "team"]
FactTypeWord: TypeAlias = Literal[
    "general",
    "preference",
    "decision",
    "context",
    "fact",
    "entity",
    "relationship",
    "self",
    "profile",
    "event",
    "case",
    "pattern",
]
ObservationTypeWord: TypeAlias = Literal[
    "bugfix",
    "feature",
    "refactor",
    "change",
    "discovery",
    "decision",
    "session_summary",
    "checkpoint",
    "compressed_summary",
]
ConceptWord: TypeAlias = Literal[
    "how-it-works", "why-it-exists", "what-changed", "problem-solution", "gotcha", "pattern", "trade-off"
]
SensitivityWord: TypeAlias = Literal["public", "private", "secret"]
SourceWord: TypeAlias = Literal["tool", "hook", "import", "extraction", "compression"]
ProfileWord: TypeAlias = Literal["balanced", "weighted", "habit", "relevance"]
OrderWord: TypeAlias = Literal["newest", "oldest", "updated", "used", "important"]
OnFoundWord: TypeAlias = Literal["report", "redact", "quarantine"]
DecisionWord: TypeAlias = Literal["approve", "reject", "always", "never"]
OnSecretWord: TypeAlias = Literal["block", "redact"]

def parameters(verb: Verb) -> list[Parameter]: ...

class Verbs:
    """A method for each verb, which waits for its answer."""

    def remember(
        self,
        content: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        key: str | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
        fact_type: enums.FactType | FactTypeWord = enums.FactType.GENERAL,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        category: str | None = None,
        tags: Sequence[str] = (),
        importance: float = 0.5,
        confidence: float = 0.5,
        trust: float = 0.5,
        sensitivity: enums.Sensitivity | SensitivityWord = enums.Sensitivity.PUBLIC,
        title: str = "",
        subtitle: str = "",
        abstract: str = "",
        overview: str = "",
        files_read: Sequence[str] = (),
        files_modified: Sequence[str] = (),
        when: Sequence[str] = (),
        session_id: str | None = None,
        project: str | None = None,
        discovery_tokens: int | None = None,
        observed_at: datetime | date | str | None = None,
        ttl_days: float | None = None,
        speaker: str | None = None,
        position: int | None = None,
        id: str | int | None = None,
        supersedes: str | int | None = None,
        if_hash: str | None = None,
    ) -> results.Outcome:
        """Store a memory; when this returns it is durable, and the answer names similar memories."""

    def recall(
        self,
        query: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 10,
        max_tokens: int | None = None,
        profile: enums.Profile | ProfileWord = enums.Profile.BALANCED,
        min_score: float = 0.35,
    ) -> results.Recalled:
        """Return the memories that answer `query`, best first, each with its score explained part by part."""

    def recall_compact(
        self,
        query: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 10,
        max_tokens: int = 2000,
        profile: enums.Profile | ProfileWord = enums.Profile.BALANCED,
        min_score: float = 0.35,
        offset: int = 0,
    ) -> compact.CompactRecalled:
        """Return a page of the memories that answer `query`, within its budget; long ones are shown by their best
        passage."""

    def forget(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Delete a memory for good, with every copy of its text and the hidden memories merged into it."""

    def store_memory(
        self,
        content: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        key: str | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
        fact_type: enums.FactType | FactTypeWord = enums.FactType.GENERAL,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        category: str | None = None,
        tags: Sequence[str] = (),
        importance: float = 0.5,
        confidence: float = 0.5,
        trust: float = 0.5,
        sensitivity: enums.Sensitivity | SensitivityWord = enums.Sensitivity.PUBLIC,
        title: str = "",
        subtitle: str = "",
        abstract: str = "",
        overview: str = "",
        files_read: Sequence[str] = (),
        files_modified: Sequence[str] = (),
        when: Sequence[str] = (),
        session_id: str | None = None,
        project: str | None = None,
        discovery_tokens: int | None = None,
        observed_at: datetime | date | str | None = None,
        ttl_days: float | None = None,
        speaker: str | None = None,
        position: int | None = None,
        id: str | int | None = None,
        supersedes: str | int | None = None,
        if_hash: str | None = None,
    ) -> results.Outcome:
        """Store a memory; when this returns it is durable, and the answer names similar memories."""

    def search_memories(
        self,
        query: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 10,
        max_tokens: int | None = None,
        profile: enums.Profile | ProfileWord = enums.Profile.WEIGHTED,
        min_score: float = 0.35,
    ) -> results.Recalled:
        """Return the memories that answer `query`, ordered by their weighted scores alone."""

    def list_memories(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 20,
        offset: int = 0,
        after: str | None = None,
        order: enums.Order | OrderWord = enums.Order.UPDATED,
    ) -> results.Listed:
        """Return a page of the memories that pass the filters, and how many there are."""

    def get_memory(self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False) -> results.Memory:
        """Return a whole memory, and count the access."""

    def update_memory(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        content: str | None = None,
        key: str | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        concepts: Sequence[enums.Concept | ConceptWord] | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        confidence: float | None = None,
        trust: float | None = None,
        title: str | None = None,
        subtitle: str | None = None,
        abstract: str | None = None,
        overview: str | None = None,
        files_read: Sequence[str] | None = None,
        files_modified: Sequence[str] | None = None,
        when: Sequence[str] | None = None,
        session_id: str | None = None,
        project: str | None = None,
        discovery_tokens: int | None = None,
        observed_at: datetime | date | str | None = None,
        ttl_days: float | None = None,
        speaker: str | None = None,
        position: int | None = None,
    ) -> results.Outcome:
        """Change the given fields of a memory; the others stay, and an empty label is removed."""

    def delete_memory(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Delete a memory for good, with every copy of its text and the hidden memories merged into it."""

    def search_by_file(
        self,
        file: str | None,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 20,
        offset: int = 0,
        after: str | None = None,
        order: enums.Order | OrderWord = enums.Order.UPDATED,
    ) -> results.Listed:
        """Return the memories that read or modified a file: the path itself, the end of one, or a folder above it."""

    def search_by_concept(
        self,
        concept: enums.Concept | ConceptWord,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 20,
        offset: int = 0,
        after: str | None = None,
        order: enums.Order | OrderWord = enums.Order.UPDATED,
    ) -> results.Listed:
        """Return the memories about a concept."""

    def get_timeline(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 20,
        offset: int = 0,
        after: str | None = None,
        order: Literal[enums.Order.NEWEST, "newest", enums.Order.OLDEST, "oldest"] = enums.Order.OLDEST,
    ) -> results.Listed:
        """Return memories in the order of their creation; without an `order`, the latest page of them."""

    def store_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        confidence: float = 0.5,
        memory_id: str | int | None = None,
        valid_from: datetime | date | str | None = None,
        valid_to: datetime | date | str | None = None,
        replaces: bool = False,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
    ) -> results.Outcome:
        """Store a fact; the same one again gains confidence."""

    def query_facts(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        memory_id: str | int | None = None,
        as_of: datetime | date | str | None = None,
        history: bool = False,
        min_confidence: float = 0.0,
        limit: int = 50,
        offset: int = 0,
    ) -> results.FactsFound:
        """Return the facts valid now, or at `as_of`, with the parts asked for; `history` shows ended ones too."""

    def forget_fact(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Delete a fact for good; facts that it had ended stay ended."""

    def purge_expired(
        self, *, allow_private: bool = False, allow_secret: bool = False, scope: enums.Scope | ScopeWord | None = None
    ) -> results.Purged:
        """Delete for good what has expired; private and secret memories only if the request includes them."""

    def summarize_old(
        self,
        *,
        older_than_days: float = 30.0,
        category: str | None = None,
        at_least: int = 3,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
    ) -> results.Summarized:
        """Summarise old public memories, one summary for each category; the originals then rank below it."""

    def memory_store(
        self,
        *,
        content: str | None = None,
        id: str | int | None = None,
        summary: str | None = None,
        type: Literal[
            enums.FactType.FACT,
            "fact",
            enums.FactType.ENTITY,
            "entity",
            enums.FactType.RELATIONSHIP,
            "relationship",
            enums.FactType.SELF,
            "self",
        ]
        | None = None,
        importance: float | None = None,
        tags: Sequence[str] | None = None,
        ttl_days: float | None = None,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Create a memory, or with an `id` update that one."""

    def memory_recall(
        self,
        query: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 10,
        max_tokens: int = 2000,
        profile: enums.Profile | ProfileWord = enums.Profile.HABIT,
        min_score: float = 0.0,
    ) -> results.Recalled:
        """Return an index of all matches and the details that fit the budget, ranked with the profile `habit`."""

    def memory_forget(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        hard: bool = False,
    ) -> results.Outcome:
        """Hide a memory from every read until it is restored; with `hard`, delete it for good."""

    def memory_remember(
        self,
        content: str,
        category: Literal[
            enums.FactType.PROFILE,
            "profile",
            enums.FactType.PREFERENCE,
            "preference",
            enums.FactType.ENTITY,
            "entity",
            enums.FactType.EVENT,
            "event",
            enums.FactType.CASE,
            "case",
            enums.FactType.PATTERN,
            "pattern",
        ],
        *,
        abstract: str | None = None,
        overview: str | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
    ) -> results.Outcome:
        """Remember one of six kinds of knowledge; a profile always merges, events and cases are always new."""

    def restore(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Bring back a memory that was hidden, replaced, merged into another, expired or quarantined."""

    def pin(self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False) -> results.Outcome:
        """Pin a memory: keep it for good, and show it first at the start of a session."""

    def unpin(self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False) -> results.Outcome:
        """Unpin a memory."""

    def bury(self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False) -> results.Outcome:
        """Bury a memory: searches still find it, but nothing shows it unasked."""

    def unbury(self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False) -> results.Outcome:
        """Undo `bury`: the memory can be shown unasked again."""

    def move_memory(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
        to_project: str | None = None,
    ) -> results.Outcome:
        """Move a memory with its facts to another scope or project, where it gets another id."""

    def promote(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: Literal[enums.Scope.PERSONAL, "personal", enums.Scope.TEAM, "team"] = enums.Scope.PERSONAL,
    ) -> results.Outcome:
        """Move a memory of a project to your personal memories, or those of the team, which every project sees."""

    def find_similar(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        content: str | None = None,
        id: str | int | None = None,
        threshold: float | None = None,
        limit: int = 10,
    ) -> list[results.Similar]:
        """Return the memories whose best chunk is similar enough to a text or a memory, nearest first."""

    def format_for_prompt(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        query: str | None = None,
        max_entries: int = 20,
        max_tokens: int = 1000,
    ) -> results.Prompt:
        """Return the memories that answer `query`, or without one the most valuable, as fenced Markdown, a line for
        each."""

    def history(
        self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False
    ) -> list[results.JournalEntry]:
        """Return the journal of one memory, oldest first, also after it was forgotten; empty where the caller sees
        none."""

    def rescan(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        on_found: enums.OnFound | OnFoundWord = enums.OnFound.REPORT,
    ) -> review.Rescanned:
        """Search stored memories and sessions for secrets, and report, redact or quarantine what contains one."""

    def inbox(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> review.WaitingPage:
        """List what waits for approval, the longest waiting first; what waits is never added to a prompt."""

    def decide(
        self,
        decision: review.Decision | DecisionWord,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        id: str | int | None = None,
        sources: Sequence[str] = (),
        content: str | None = None,
    ) -> results.Outcome:
        """Approve or reject a memory that waits; with `always` or `never`, everything from its source, later too."""

    def source_rules(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> review.SourceRulePage:
        """Return the rules for sources, the newest first."""

    def drop_source_rule(
        self,
        source: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> review.SourceRuleDropped:
        """Remove the rule for a source, in one scope or in all: what comes from it waits again. Earlier decisions
        stay."""

    def withdraw(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        source: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        apply: bool = False,
    ) -> review.Withdrawn:
        """List what came from a source, a session, an author or a time; with `apply`, withdraw it."""

    def undo_withdrawal(
        self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False
    ) -> review.Withdrawn:
        """Bring back what a withdrawal took away, as it was."""

    def stats(
        self, *, allow_private: bool = False, allow_secret: bool = False, scope: enums.Scope | ScopeWord | None = None
    ) -> results.Stats:
        """Count the memories that the caller may see, by scope, kind and state."""

    def count_projects(self, *, allow_private: bool = False, allow_secret: bool = False) -> accounts.ProjectCounts:
        """Count the memories of each project that the caller may read; the current one is listed even if it is
        empty."""

    def doctor(self, *, deep: bool = False) -> list[results.Check]:
        """Check every part of the store, and whether its models can be loaded."""

    def import_batch(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        items: Sequence[transfer.ImportItem] = (),
        links: Sequence[transfer.MemoryLink] = (),
        sections: Sequence[transfer.FileSections] = (),
        last: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        category: str | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        on_secret: enums.OnSecret | OnSecretWord | None = None,
        own: bool = False,
        in_step: bool = False,
        dry_run: bool = False,
    ) -> transfer.Imported:
        """Import a batch of memories and facts; what cannot be written is counted and reported with its place."""

    def export_page(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        after: str = "memory:0",
    ) -> transfer.Page:
        """Return the next lines of an export; the first page begins with the header."""

    def extract_memories(
        self,
        messages: Sequence[transfer.Said],
        *,
        session_id: str | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
    ) -> transfer.Extracted:
        """Store what a language model finds worth a memory in messages; a part that was read is never read again."""

    def session_start(
        self,
        session_id: str,
        *,
        agent: str = "",
        folder: str = "",
        at: datetime | date | str | None = None,
        source: str = "",
        former_projects: Sequence[str] = (),
    ) -> lifecycle.Noted:
        """Begin a session, or resume one; sessions without an event for a month are deleted."""

    def prompt_submit(
        self,
        session_id: str,
        prompt: str,
        *,
        agent: str = "",
        folder: str = "",
        at: datetime | date | str | None = None,
        typed: bool | None = None,
    ) -> lifecycle.Injection:
        """Return the text to put before a prompt: its relevant memories, fenced as data, or an empty text."""

    def tool_post(
        self,
        session_id: str,
        tool: str,
        *,
        agent: str = "",
        folder: str = "",
        at: datetime | date | str | None = None,
        input: dict[str, Any] = {},
        output: str = "",
        failed: bool = False,
        also_before: bool = False,
    ) -> lifecycle.Noted:
        """Look at what a tool wrote, and store it if it is worth a memory."""

    def session_checkpoint(
        self, session_id: str, *, agent: str = "", folder: str = "", at: datetime | date | str | None = None
    ) -> lifecycle.Noted:
        """Write down what a session has learnt, before it loses its earlier messages."""

    def session_end(
        self,
        session_id: str,
        *,
        agent: str = "",
        folder: str = "",
        at: datetime | date | str | None = None,
        reason: str = "",
    ) -> lifecycle.Noted:
        """End a session: sum it up, let what is used gain and what is unused fade, and compress what is old."""

    def list_sessions(self, *, limit: int = 20, offset: int = 0) -> lifecycle.SessionList:
        """List the caller's sessions in this project, the latest first."""

    def show_session(
        self, *, session_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> lifecycle.ShownSession:
        """Show what was kept and dropped of a session, and why."""

    def correct_observation(self, session_id: str, number: int, keep: bool) -> lifecycle.Noted:
        """Keep an observation that was dropped or is a draft, or forget a kept observation."""

class AsyncVerbs:
    """A method for each verb, which is awaited."""

    async def remember(
        self,
        content: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        key: str | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
        fact_type: enums.FactType | FactTypeWord = enums.FactType.GENERAL,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        category: str | None = None,
        tags: Sequence[str] = (),
        importance: float = 0.5,
        confidence: float = 0.5,
        trust: float = 0.5,
        sensitivity: enums.Sensitivity | SensitivityWord = enums.Sensitivity.PUBLIC,
        title: str = "",
        subtitle: str = "",
        abstract: str = "",
        overview: str = "",
        files_read: Sequence[str] = (),
        files_modified: Sequence[str] = (),
        when: Sequence[str] = (),
        session_id: str | None = None,
        project: str | None = None,
        discovery_tokens: int | None = None,
        observed_at: datetime | date | str | None = None,
        ttl_days: float | None = None,
        speaker: str | None = None,
        position: int | None = None,
        id: str | int | None = None,
        supersedes: str | int | None = None,
        if_hash: str | None = None,
    ) -> results.Outcome:
        """Store a memory; when this returns it is durable, and the answer names similar memories."""

    async def recall(
        self,
        query: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 10,
        max_tokens: int | None = None,
        profile: enums.Profile | ProfileWord = enums.Profile.BALANCED,
        min_score: float = 0.35,
    ) -> results.Recalled:
        """Return the memories that answer `query`, best first, each with its score explained part by part."""

    async def recall_compact(
        self,
        query: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 10,
        max_tokens: int = 2000,
        profile: enums.Profile | ProfileWord = enums.Profile.BALANCED,
        min_score: float = 0.35,
        offset: int = 0,
    ) -> compact.CompactRecalled:
        """Return a page of the memories that answer `query`, within its budget; long ones are shown by their best
        passage."""

    async def forget(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Delete a memory for good, with every copy of its text and the hidden memories merged into it."""

    async def store_memory(
        self,
        content: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        key: str | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
        fact_type: enums.FactType | FactTypeWord = enums.FactType.GENERAL,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        category: str | None = None,
        tags: Sequence[str] = (),
        importance: float = 0.5,
        confidence: float = 0.5,
        trust: float = 0.5,
        sensitivity: enums.Sensitivity | SensitivityWord = enums.Sensitivity.PUBLIC,
        title: str = "",
        subtitle: str = "",
        abstract: str = "",
        overview: str = "",
        files_read: Sequence[str] = (),
        files_modified: Sequence[str] = (),
        when: Sequence[str] = (),
        session_id: str | None = None,
        project: str | None = None,
        discovery_tokens: int | None = None,
        observed_at: datetime | date | str | None = None,
        ttl_days: float | None = None,
        speaker: str | None = None,
        position: int | None = None,
        id: str | int | None = None,
        supersedes: str | int | None = None,
        if_hash: str | None = None,
    ) -> results.Outcome:
        """Store a memory; when this returns it is durable, and the answer names similar memories."""

    async def search_memories(
        self,
        query: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 10,
        max_tokens: int | None = None,
        profile: enums.Profile | ProfileWord = enums.Profile.WEIGHTED,
        min_score: float = 0.35,
    ) -> results.Recalled:
        """Return the memories that answer `query`, ordered by their weighted scores alone."""

    async def list_memories(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 20,
        offset: int = 0,
        after: str | None = None,
        order: enums.Order | OrderWord = enums.Order.UPDATED,
    ) -> results.Listed:
        """Return a page of the memories that pass the filters, and how many there are."""

    async def get_memory(
        self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False
    ) -> results.Memory:
        """Return a whole memory, and count the access."""

    async def update_memory(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        content: str | None = None,
        key: str | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        concepts: Sequence[enums.Concept | ConceptWord] | None = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        confidence: float | None = None,
        trust: float | None = None,
        title: str | None = None,
        subtitle: str | None = None,
        abstract: str | None = None,
        overview: str | None = None,
        files_read: Sequence[str] | None = None,
        files_modified: Sequence[str] | None = None,
        when: Sequence[str] | None = None,
        session_id: str | None = None,
        project: str | None = None,
        discovery_tokens: int | None = None,
        observed_at: datetime | date | str | None = None,
        ttl_days: float | None = None,
        speaker: str | None = None,
        position: int | None = None,
    ) -> results.Outcome:
        """Change the given fields of a memory; the others stay, and an empty label is removed."""

    async def delete_memory(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Delete a memory for good, with every copy of its text and the hidden memories merged into it."""

    async def search_by_file(
        self,
        file: str | None,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 20,
        offset: int = 0,
        after: str | None = None,
        order: enums.Order | OrderWord = enums.Order.UPDATED,
    ) -> results.Listed:
        """Return the memories that read or modified a file: the path itself, the end of one, or a folder above it."""

    async def search_by_concept(
        self,
        concept: enums.Concept | ConceptWord,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 20,
        offset: int = 0,
        after: str | None = None,
        order: enums.Order | OrderWord = enums.Order.UPDATED,
    ) -> results.Listed:
        """Return the memories about a concept."""

    async def get_timeline(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 20,
        offset: int = 0,
        after: str | None = None,
        order: Literal[enums.Order.NEWEST, "newest", enums.Order.OLDEST, "oldest"] = enums.Order.OLDEST,
    ) -> results.Listed:
        """Return memories in the order of their creation; without an `order`, the latest page of them."""

    async def store_fact(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        confidence: float = 0.5,
        memory_id: str | int | None = None,
        valid_from: datetime | date | str | None = None,
        valid_to: datetime | date | str | None = None,
        replaces: bool = False,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
    ) -> results.Outcome:
        """Store a fact; the same one again gains confidence."""

    async def query_facts(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        memory_id: str | int | None = None,
        as_of: datetime | date | str | None = None,
        history: bool = False,
        min_confidence: float = 0.0,
        limit: int = 50,
        offset: int = 0,
    ) -> results.FactsFound:
        """Return the facts valid now, or at `as_of`, with the parts asked for; `history` shows ended ones too."""

    async def forget_fact(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Delete a fact for good; facts that it had ended stay ended."""

    async def purge_expired(
        self, *, allow_private: bool = False, allow_secret: bool = False, scope: enums.Scope | ScopeWord | None = None
    ) -> results.Purged:
        """Delete for good what has expired; private and secret memories only if the request includes them."""

    async def summarize_old(
        self,
        *,
        older_than_days: float = 30.0,
        category: str | None = None,
        at_least: int = 3,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
    ) -> results.Summarized:
        """Summarise old public memories, one summary for each category; the originals then rank below it."""

    async def memory_store(
        self,
        *,
        content: str | None = None,
        id: str | int | None = None,
        summary: str | None = None,
        type: Literal[
            enums.FactType.FACT,
            "fact",
            enums.FactType.ENTITY,
            "entity",
            enums.FactType.RELATIONSHIP,
            "relationship",
            enums.FactType.SELF,
            "self",
        ]
        | None = None,
        importance: float | None = None,
        tags: Sequence[str] | None = None,
        ttl_days: float | None = None,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Create a memory, or with an `id` update that one."""

    async def memory_recall(
        self,
        query: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        everywhere: bool = False,
        limit: int = 10,
        max_tokens: int = 2000,
        profile: enums.Profile | ProfileWord = enums.Profile.HABIT,
        min_score: float = 0.0,
    ) -> results.Recalled:
        """Return an index of all matches and the details that fit the budget, ranked with the profile `habit`."""

    async def memory_forget(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        hard: bool = False,
    ) -> results.Outcome:
        """Hide a memory from every read until it is restored; with `hard`, delete it for good."""

    async def memory_remember(
        self,
        content: str,
        category: Literal[
            enums.FactType.PROFILE,
            "profile",
            enums.FactType.PREFERENCE,
            "preference",
            enums.FactType.ENTITY,
            "entity",
            enums.FactType.EVENT,
            "event",
            enums.FactType.CASE,
            "case",
            enums.FactType.PATTERN,
            "pattern",
        ],
        *,
        abstract: str | None = None,
        overview: str | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
    ) -> results.Outcome:
        """Remember one of six kinds of knowledge; a profile always merges, events and cases are always new."""

    async def restore(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> results.Outcome:
        """Bring back a memory that was hidden, replaced, merged into another, expired or quarantined."""

    async def pin(self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False) -> results.Outcome:
        """Pin a memory: keep it for good, and show it first at the start of a session."""

    async def unpin(self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False) -> results.Outcome:
        """Unpin a memory."""

    async def bury(self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False) -> results.Outcome:
        """Bury a memory: searches still find it, but nothing shows it unasked."""

    async def unbury(
        self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False
    ) -> results.Outcome:
        """Undo `bury`: the memory can be shown unasked again."""

    async def move_memory(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
        to_project: str | None = None,
    ) -> results.Outcome:
        """Move a memory with its facts to another scope or project, where it gets another id."""

    async def promote(
        self,
        id: str | int,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: Literal[enums.Scope.PERSONAL, "personal", enums.Scope.TEAM, "team"] = enums.Scope.PERSONAL,
    ) -> results.Outcome:
        """Move a memory of a project to your personal memories, or those of the team, which every project sees."""

    async def find_similar(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        content: str | None = None,
        id: str | int | None = None,
        threshold: float | None = None,
        limit: int = 10,
    ) -> list[results.Similar]:
        """Return the memories whose best chunk is similar enough to a text or a memory, nearest first."""

    async def format_for_prompt(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        category: str | None = None,
        type: enums.ObservationType | ObservationTypeWord | None = None,
        tags: Sequence[str] = (),
        concepts: Sequence[enums.Concept | ConceptWord] = (),
        entity: str | None = None,
        project: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        source: enums.Source | SourceWord | None = None,
        file: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        key: str | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        superseded: bool = False,
        query: str | None = None,
        max_entries: int = 20,
        max_tokens: int = 1000,
    ) -> results.Prompt:
        """Return the memories that answer `query`, or without one the most valuable, as fenced Markdown, a line for
        each."""

    async def history(
        self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False
    ) -> list[results.JournalEntry]:
        """Return the journal of one memory, oldest first, also after it was forgotten; empty where the caller sees
        none."""

    async def rescan(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        on_found: enums.OnFound | OnFoundWord = enums.OnFound.REPORT,
    ) -> review.Rescanned:
        """Search stored memories and sessions for secrets, and report, redact or quarantine what contains one."""

    async def inbox(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        limit: int = 20,
        offset: int = 0,
    ) -> review.WaitingPage:
        """List what waits for approval, the longest waiting first; what waits is never added to a prompt."""

    async def decide(
        self,
        decision: review.Decision | DecisionWord,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        id: str | int | None = None,
        sources: Sequence[str] = (),
        content: str | None = None,
    ) -> results.Outcome:
        """Approve or reject a memory that waits; with `always` or `never`, everything from its source, later too."""

    async def source_rules(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> review.SourceRulePage:
        """Return the rules for sources, the newest first."""

    async def drop_source_rule(
        self,
        source: str,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
    ) -> review.SourceRuleDropped:
        """Remove the rule for a source, in one scope or in all: what comes from it waits again. Earlier decisions
        stay."""

    async def withdraw(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        source: str | None = None,
        session_id: str | None = None,
        author: str | None = None,
        since: datetime | date | str | None = None,
        until: datetime | date | str | None = None,
        apply: bool = False,
    ) -> review.Withdrawn:
        """List what came from a source, a session, an author or a time; with `apply`, withdraw it."""

    async def undo_withdrawal(
        self, id: str | int, *, allow_private: bool = False, allow_secret: bool = False
    ) -> review.Withdrawn:
        """Bring back what a withdrawal took away, as it was."""

    async def stats(
        self, *, allow_private: bool = False, allow_secret: bool = False, scope: enums.Scope | ScopeWord | None = None
    ) -> results.Stats:
        """Count the memories that the caller may see, by scope, kind and state."""

    async def count_projects(
        self, *, allow_private: bool = False, allow_secret: bool = False
    ) -> accounts.ProjectCounts:
        """Count the memories of each project that the caller may read; the current one is listed even if it is
        empty."""

    async def doctor(self, *, deep: bool = False) -> list[results.Check]:
        """Check every part of the store, and whether its models can be loaded."""

    async def import_batch(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        items: Sequence[transfer.ImportItem] = (),
        links: Sequence[transfer.MemoryLink] = (),
        sections: Sequence[transfer.FileSections] = (),
        last: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        category: str | None = None,
        fact_type: enums.FactType | FactTypeWord | None = None,
        sensitivity: enums.Sensitivity | SensitivityWord | None = None,
        on_secret: enums.OnSecret | OnSecretWord | None = None,
        own: bool = False,
        in_step: bool = False,
        dry_run: bool = False,
    ) -> transfer.Imported:
        """Import a batch of memories and facts; what cannot be written is counted and reported with its place."""

    async def export_page(
        self,
        *,
        allow_private: bool = False,
        allow_secret: bool = False,
        scope: enums.Scope | ScopeWord | None = None,
        after: str = "memory:0",
    ) -> transfer.Page:
        """Return the next lines of an export; the first page begins with the header."""

    async def extract_memories(
        self,
        messages: Sequence[transfer.Said],
        *,
        session_id: str | None = None,
        scope: enums.Scope | ScopeWord = enums.Scope.PROJECT,
    ) -> transfer.Extracted:
        """Store what a language model finds worth a memory in messages; a part that was read is never read again."""

    async def session_start(
        self,
        session_id: str,
        *,
        agent: str = "",
        folder: str = "",
        at: datetime | date | str | None = None,
        source: str = "",
        former_projects: Sequence[str] = (),
    ) -> lifecycle.Noted:
        """Begin a session, or resume one; sessions without an event for a month are deleted."""

    async def prompt_submit(
        self,
        session_id: str,
        prompt: str,
        *,
        agent: str = "",
        folder: str = "",
        at: datetime | date | str | None = None,
        typed: bool | None = None,
    ) -> lifecycle.Injection:
        """Return the text to put before a prompt: its relevant memories, fenced as data, or an empty text."""

    async def tool_post(
        self,
        session_id: str,
        tool: str,
        *,
        agent: str = "",
        folder: str = "",
        at: datetime | date | str | None = None,
        input: dict[str, Any] = {},
        output: str = "",
        failed: bool = False,
        also_before: bool = False,
    ) -> lifecycle.Noted:
        """Look at what a tool wrote, and store it if it is worth a memory."""

    async def session_checkpoint(
        self, session_id: str, *, agent: str = "", folder: str = "", at: datetime | date | str | None = None
    ) -> lifecycle.Noted:
        """Write down what a session has learnt, before it loses its earlier messages."""

    async def session_end(
        self,
        session_id: str,
        *,
        agent: str = "",
        folder: str = "",
        at: datetime | date | str | None = None,
        reason: str = "",
    ) -> lifecycle.Noted:
        """End a session: sum it up, let what is used gain and what is unused fade, and compress what is old."""

    async def list_sessions(self, *, limit: int = 20, offset: int = 0) -> lifecycle.SessionList:
        """List the caller's sessions in this project, the latest first."""

    async def show_session(
        self, *, session_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> lifecycle.ShownSession:
        """Show what was kept and dropped of a session, and why."""

    async def correct_observation(self, session_id: str, number: int, keep: bool) -> lifecycle.Noted:
        """Keep an observation that was dropped or is a draft, or forget a kept observation."""
