"""The closed sets: scopes, kinds of knowledge and their policies, sensitivities, sources."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

_OWNER = "@"
_Level = TypeVar("_Level", bound=str)

IMPORTANCE_DAYS: Final = 300.0
"""Days that a memory of importance 1 is kept under `Retention.IMPORTANCE`: 30 for each of ten steps."""

IMPORTANT: Final = 0.4
"""From this importance on such a memory lives longer when it is used."""


class Scope(StrEnum):
    """Who shares a memory; with the caller it gives the namespace."""

    PERSONAL = "personal"
    PROJECT = "project"
    TEAM = "team"


class Role(StrEnum):
    """What a member of a team or a project may do there; each may do what those before it may."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    def covers(self, wanted: Role) -> bool:
        """Say whether this role may do what `wanted` may."""
        return list(Role).index(self) >= list(Role).index(wanted)


class FactType(StrEnum):
    """What kind of knowledge a memory is; `POLICIES` says how each kind merges and ages."""

    GENERAL = "general"
    PREFERENCE = "preference"
    DECISION = "decision"
    CONTEXT = "context"
    FACT = "fact"
    ENTITY = "entity"
    RELATIONSHIP = "relationship"
    SELF = "self"
    PROFILE = "profile"
    EVENT = "event"
    CASE = "case"
    PATTERN = "pattern"


class Merge(StrEnum):
    """What happens when a memory of this kind resembles one that is stored."""

    RECONCILE = "reconcile"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class KindPolicy:
    """How a kind of knowledge merges and ages, and how much it tells whoever begins to work.

    `half_life` is in days, `lasting` from 0, for what happened once, to 1, for what holds whatever is done. `decay` is
    how fast its importance fades while nobody uses it, as a share of the usual rate.
    """

    merge: Merge = Merge.RECONCILE
    half_life: float = 21.0
    lasting: float = 0.5
    decay: float = 1.0


POLICIES: Final[dict[FactType, KindPolicy]] = {kind: KindPolicy() for kind in FactType} | {
    FactType.DECISION: KindPolicy(half_life=42.0, lasting=1.0, decay=0.5),
    FactType.PREFERENCE: KindPolicy(lasting=1.0),
    FactType.SELF: KindPolicy(lasting=1.0),
    FactType.PROFILE: KindPolicy(merge=Merge.ALWAYS, lasting=1.0),
    FactType.PATTERN: KindPolicy(lasting=0.8),
    FactType.EVENT: KindPolicy(merge=Merge.NEVER, lasting=0.2),
    FactType.CASE: KindPolicy(merge=Merge.NEVER),
}


RULES: Final = frozenset({FactType.DECISION, FactType.PREFERENCE})
"""The kinds of knowledge that an agent has to follow."""


class ObservationType(StrEnum):
    """Observation type of a memory; the last three are written by the lifecycle pipeline only."""

    BUGFIX = "bugfix"
    FEATURE = "feature"
    REFACTOR = "refactor"
    CHANGE = "change"
    DISCOVERY = "discovery"
    DECISION = "decision"
    SESSION_SUMMARY = "session_summary"
    CHECKPOINT = "checkpoint"
    COMPRESSED_SUMMARY = "compressed_summary"


OF_SESSION: Final = frozenset({ObservationType.SESSION_SUMMARY, ObservationType.CHECKPOINT})
"""What only quotes the memories of its session: its words are no evidence of how rare a word is."""


class Concept(StrEnum):
    """Knowledge category of a memory."""

    HOW_IT_WORKS = "how-it-works"
    WHY_IT_EXISTS = "why-it-exists"
    WHAT_CHANGED = "what-changed"
    PROBLEM_SOLUTION = "problem-solution"
    GOTCHA = "gotcha"
    PATTERN = "pattern"
    TRADE_OFF = "trade-off"


class EntityType(StrEnum):
    """What an entity that a memory names is."""

    PERSON = "person"
    ORGANISATION = "organisation"
    PLACE = "place"
    THING = "thing"
    CONCEPT = "concept"
    FILE = "file"
    URL = "url"
    EMAIL = "email"
    VERSION = "version"
    IDENTIFIER = "identifier"
    TICKET = "ticket"
    HASHTAG = "hashtag"


class Sensitivity(StrEnum):
    """Who may read a memory back; anything else in a row is denied."""

    PUBLIC = "public"
    PRIVATE = "private"
    SECRET = "secret"  # noqa: S105 - a level, not a password


def owned(level: str, user: str) -> str:
    """Return a level as it is stored: what is not public is its author's alone, as `private@ada`."""
    return str(level) if level == Sensitivity.PUBLIC or _OWNER in level else f"{level}{_OWNER}{user}"


def own_levels(user: str) -> tuple[str, ...]:
    """Return the levels, as they are stored, that are a user's alone."""
    return tuple(owned(level, user) for level in Sensitivity if level is not Sensitivity.PUBLIC)


def sensitivity_of(level: str) -> str:
    """Return the sensitivity of a stored level, without its owner."""
    return level.partition(_OWNER)[0]


def owner_of(level: str) -> str:
    """Return whose a stored level is, an empty text for what is public."""
    return level.partition(_OWNER)[2]


def strictest(*levels: _Level) -> _Level:
    """Return the level, as it is stored or not, that the fewest may see."""
    return max(levels, key=lambda level: list(Sensitivity).index(Sensitivity(sensitivity_of(level))))


class Source(StrEnum):
    """Which way a memory came in."""

    TOOL = "tool"
    HOOK = "hook"
    IMPORT = "import"
    EXTRACTION = "extraction"
    COMPRESSION = "compression"


class Standing(StrEnum):
    """What somebody decided about a memory: it is kept for good and shown first, or never shown unasked."""

    PINNED = "pinned"
    BURIED = "buried"


class OnSecret(StrEnum):
    """What the gate does with a secret: refuse the write, or put `[redacted: kind]` in its place."""

    BLOCK = "block"
    REDACT = "redact"


class IndexKind(StrEnum):
    """What searches the vectors: Chroma, or the extension pgvector of the database that keeps the memories."""

    CHROMA = "chroma"
    PGVECTOR = "pgvector"


class OnFound(StrEnum):
    """What a rescan does with a secret in what is stored: tell of it, mask it, or put its memory out of all sight."""

    REPORT = "report"
    REDACT = "redact"
    QUARANTINE = "quarantine"


class Layer(StrEnum):
    """How deep an answer shows a memory: one line, a paragraph, the passage nearest to the query, or all of it."""

    ABSTRACT = "abstract"
    OVERVIEW = "overview"
    PASSAGE = "passage"
    CONTENT = "content"


class Profile(StrEnum):
    """A named set of ranking weights.

    The match orders `balanced` and `relevance`. `weighted`, with the weights of `balanced`, and `habit` are ordered by
    their scores alone, as the tools `search_memories` and `memory_recall` ask.
    """

    BALANCED = "balanced"
    WEIGHTED = "weighted"
    HABIT = "habit"
    RELEVANCE = "relevance"


class Certainty(StrEnum):
    """How sure it is that a hit answers its query."""

    STRONG = "strong"
    LIKELY = "likely"
    WEAK = "weak"


class Choice(StrEnum):
    """What becomes of something new that resembles what is stored."""

    CREATE = "create"
    MERGE = "merge"
    SKIP = "skip"
    SUPERSEDE = "supersede"


class Reason(StrEnum):
    """Why it becomes that: a closed set, as the journal keeps it and no word of a memory may survive there."""

    NEW_SUBJECT = "new_subject"
    SAME_STATEMENT = "same_statement"
    MORE_DETAIL = "more_detail"
    CONTRADICTION = "contradiction"
    UNSURE = "unsure"


class Retention(StrEnum):
    """How long what was given no `ttl_days` is kept: for ever, or for importance × 300 days (importance 0–1)."""

    KEEP = "keep"
    IMPORTANCE = "importance"


class Order(StrEnum):
    """Which memories of a list come first."""

    NEWEST = "newest"
    OLDEST = "oldest"
    UPDATED = "updated"
    USED = "used"
    IMPORTANT = "important"
