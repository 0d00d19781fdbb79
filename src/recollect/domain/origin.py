"""Where a memory came from, and what that gives it the authority to do.

The door stamps the origin and the way in; nothing that a text or a request says changes them. Authority follows from
who said it, and from nothing else: neither trust that was claimed, nor how often something is repeated, summarised or
confirmed by a model raises it. Trust is at most what the origin is trusted. A file of a project may ask for more care,
never for less: it weakens no filter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ConfigDict

from recollect.domain.enums import OF_SESSION, RULES, FactType, ObservationType, Source

_HOST: Final = re.compile(r"https?://(?:[^/@\s]{0,200}@)?([^/:?#\s]+)", re.IGNORECASE)

_LINE: Final = re.compile(r"(?:, line |:)\d+$")  # of a file
_NEXT_ADDRESS: Final = ", then "
_MAX_PLACES: Final = 2_000  # characters of all of them
_MAX_NAMED: Final = 3  # of several places

APPROVED: Final = "approved"
"""The review of what a person decided to trust."""


class SaidBy(StrEnum):
    """Who or what said a memory."""

    PERSON = "person"
    ASSISTANT = "assistant"
    REPORT = "report"
    FILE = "file"
    COMMAND = "command"
    FOREIGN_FILE = "foreign_file"
    TOOL = "tool"
    WEB = "web"
    IMPORT = "import"
    MODEL = "model"


class Authority(IntEnum):
    """What a memory may do unasked; the greater outranks the lesser on the same subject."""

    OUTSIDE = 0
    """Found when asked for. Never put before a prompt until a person approves it."""
    OBSERVED = 1
    """Seen in this project. Put before a prompt where nobody has told anything of the subject."""
    TOLD = 2
    """Said by a person, or stored by a call. Only what was told replaces it."""


AUTHORITY: Final[Mapping[SaidBy, Authority]] = MappingProxyType(
    {
        SaidBy.PERSON: Authority.TOLD,
        SaidBy.ASSISTANT: Authority.TOLD,
        SaidBy.REPORT: Authority.OBSERVED,
        SaidBy.FILE: Authority.OBSERVED,
        SaidBy.COMMAND: Authority.OBSERVED,
    }
)
"""All others are from outside."""

TOLD: Final = tuple(speaker for speaker, rank in AUTHORITY.items() if rank is Authority.TOLD)

MOST_TRUST: Final[Mapping[SaidBy, float]] = MappingProxyType(
    {
        SaidBy.PERSON: 0.9,
        SaidBy.ASSISTANT: 0.9,
        SaidBy.REPORT: 0.5,
        SaidBy.FILE: 0.7,
        SaidBy.COMMAND: 0.6,
        SaidBy.FOREIGN_FILE: 0.3,
        SaidBy.TOOL: 0.4,
        SaidBy.WEB: 0.3,
        SaidBy.IMPORT: 0.5,
        SaidBy.MODEL: 0.4,
    }
)
"""How far a memory is trusted at most (0–1), whatever a request claims."""

_WORDS: Final[Mapping[SaidBy, str]] = MappingProxyType(
    {
        SaidBy.PERSON: "a person",
        SaidBy.ASSISTANT: "the assistant",
        SaidBy.REPORT: "a report of the assistant",
        SaidBy.FILE: "a file of this project",
        SaidBy.COMMAND: "the output of a command",
        SaidBy.FOREIGN_FILE: "a file from outside this project",
        SaidBy.TOOL: "another tool",
        SaidBy.WEB: "a web page",
        SaidBy.IMPORT: "an import",
        SaidBy.MODEL: "a language model",
    }
)

_BY_TRUST: Final = (
    (0.85, SaidBy.PERSON),
    (0.65, SaidBy.FILE),
    (0.55, SaidBy.COMMAND),
    (0.45, SaidBy.REPORT),
    (0.35, SaidBy.TOOL),
    (0.0, SaidBy.WEB),
)
_BY_SOURCE: Final[Mapping[Source, SaidBy]] = MappingProxyType(
    {
        Source.TOOL: SaidBy.PERSON,
        Source.IMPORT: SaidBy.IMPORT,
        Source.EXTRACTION: SaidBy.MODEL,
        Source.COMPRESSION: SaidBy.COMMAND,
    }
)


class Origin(BaseModel):
    """Who said something, and its address: of a web page its URL, of a file its path, of an output its command.

    What was concluded from several has the addresses of all of them, as `read_also` joins them.
    """

    model_config = ConfigDict(frozen=True)

    said_by: SaidBy = SaidBy.PERSON
    came_from: str = ""

    @property
    def authority(self) -> Authority:
        """Return the authority that this origin gives a memory."""
        return authority(self.said_by)

    @property
    def source(self) -> str:
        """Return the name under which decisions about a whole source are kept: the host of an address, or a path.

        What was concluded from several is a source of its own.
        """
        return f"{self.said_by}:{_NEXT_ADDRESS.join(dict.fromkeys(map(self._named, places_of(self.came_from))))}"

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the source of each of its addresses."""
        return tuple(dict.fromkeys(f"{self.said_by}:{self._named(place)}" for place in places_of(self.came_from)))

    def _named(self, place: str) -> str:
        return host_of(place).lower() if self.said_by is SaidBy.WEB else _LINE.sub("", place)

    @property
    def words(self) -> str:
        """Return the origin as a sentence names it, such as `a web page: https://example.com/a`."""
        return origin_words(self.said_by, self.came_from)


def authority(said_by: SaidBy) -> Authority:
    """Return the trust level of words of this speaker; it decides whether a memory is shown unasked."""
    return AUTHORITY.get(said_by, Authority.OUTSIDE)


def origin_words(said_by: SaidBy, came_from: str | None) -> str:
    """Return an origin in plain words; of more than three addresses it names three and counts the others."""
    if not came_from:
        return _WORDS[said_by]
    places = places_of(came_from)
    more = f" and {len(places) - _MAX_NAMED} more" if len(places) > _MAX_NAMED else ""
    return f"{_WORDS[said_by]}: {_NEXT_ADDRESS.join(places[:_MAX_NAMED])}{more}"


def places_of(came_from: str) -> list[str]:
    """Return each address in `came_from`."""
    return came_from.split(_NEXT_ADDRESS)


def host_of(place: str) -> str:
    """Return the host of an address, any other place as it is."""
    host = _HOST.match(place)
    return host[1] if host else place


def with_address(came_from: str, place: str) -> str:
    """Return the addresses in `came_from` followed by those of a further text.

    Where all are too long (2,000 characters), the first addresses become hosts, and then go.
    """
    places = list(dict.fromkeys(path for path in (*places_of(came_from), *places_of(place)) if path))
    for at, entry in enumerate(places):
        if len(_NEXT_ADDRESS.join(places)) > _MAX_PLACES:
            places[at] = host_of(entry)
    places = list(dict.fromkeys(places))
    while len(_NEXT_ADDRESS.join(places)) > _MAX_PLACES:
        del places[0]
    return _NEXT_ADDRESS.join(places)


def least_trusted(origins: Iterable[Origin]) -> Origin:
    """Return the origin with the least authority and trust; a text made from several origins has no more."""
    return min(origins, key=lambda origin: (origin.authority, MOST_TRUST[origin.said_by]))


def speaker_before_stamps(source: Source, trust: float) -> SaidBy:
    """Return the speaker of a memory from before origins were stored, derived from its source and trust."""
    if source is not Source.HOOK:
        return _BY_SOURCE[source]
    return next(stamp for least_trust, stamp in _BY_TRUST if trust >= least_trust)


class StampedFact:
    """What the store knows of a fact that tells its origin."""

    said_by: SaidBy | None
    came_from: str | None
    __slots__ = ()

    @property
    def stamp(self) -> Origin:
        """Return the origin that the store stamped on it; without a stamp a person is its speaker."""
        return Origin(said_by=self.said_by or SaidBy.PERSON, came_from=self.came_from or "")


class Stamped:
    """What the store knows of a memory that tells its origin, and what follows from that."""

    source: Source
    trust: float
    said_by: SaidBy | None
    came_from: str | None
    review: str | None
    type: ObservationType | None
    fact_type: FactType
    __slots__ = ()

    @property
    def stamp(self) -> Origin:
        """Return the origin that the store stamped on it, or what its way in tells."""
        return Origin(said_by=self._speaker, came_from=self.came_from or "")

    @property
    def authority(self) -> Authority:
        """Return its authority: how far it may be shown unasked."""
        return authority(self._speaker)

    @property
    def _speaker(self) -> SaidBy:
        return self.said_by or speaker_before_stamps(self.source, self.trust)

    @property
    def unapproved(self) -> bool:
        """Say whether it came from outside and nobody approved it."""
        return self.authority is Authority.OUTSIDE and self.review != APPROVED

    @property
    def is_draft(self) -> bool:
        """Say whether a hook noted it, or it sums such notes up, and nobody has decided that it is worth keeping."""
        if self.review == APPROVED or self.type in OF_SESSION:
            return False
        summed_up = self.source is Source.COMPRESSION and self.authority is not Authority.TOLD
        return summed_up or self.source is Source.HOOK

    @property
    def is_rule(self) -> bool:
        """Say whether it is a decision or a preference that somebody told."""
        return self.fact_type in RULES and self.authority is Authority.TOLD

    @property
    def speaks_unasked(self) -> bool:
        """Say whether it may be shown to an agent that did not ask for it.

        What waits for a decision may not, and of drafts only a rule in a person's own words may.
        """
        if self.is_draft:
            return self.is_rule
        if self.authority is Authority.OBSERVED:
            return self.review in (None, APPROVED)
        return self.authority is Authority.TOLD or self.review == APPROVED
