"""Inside a read: the view it is limited to, what the searchers found, and what is known of the embedding model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from recollect.domain.enums import FactType, ObservationType, Sensitivity, Source
from recollect.domain.origin import SaidBy, Stamped
from recollect.domain.requests import MemoryFilters

FILTERS: Final = tuple(MemoryFilters.model_fields)
"""What a query may ask of memories beside their match; a view carries each under the same name."""

_NOTHING: Final = (None, ())
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RankingRow(Stamped):
    """What ranking needs to know of a memory; `words` are its distinct words, folded, with spaces between them."""

    id: int
    fact_type: FactType
    importance: float
    trust: float
    updated_at: datetime
    accessed_count: int
    recalled_count: int
    speaker: str | None
    session_id: str | None
    position: int | None
    observed_at: datetime | None
    superseded_by: int | None = None
    content: str = ""
    words: str = ""
    type: ObservationType | None = None
    source: Source = Source.TOOL
    said_by: SaidBy | None = None
    came_from: str | None = None
    review: str | None = None

    @property
    def dated_at(self) -> datetime:
        """Return when it was true: when it was observed, else when it was written."""
        return self.observed_at or self.updated_at


class View(MemoryFilters):
    """What one read may see, turned into SQL: only `sensitivities`, and what was replaced only when `superseded`.

    Levels of sensitivity stand as they are stored, with their owner. What was `condensed` was
    replaced by a summary only; `merged` lets in what was merged into another memory, and `hidden` shows what was softly
    forgotten in the place of what is in sight. With `told` it leaves out what surely nobody told, with `pinned` what
    nobody pinned, and with `speaking` drafts but for rules that were told.
    """

    namespaces: tuple[str, ...]
    now: datetime
    sensitivities: tuple[str, ...] = (str(Sensitivity.PUBLIC),)
    superseded: bool = False
    condensed: bool = False
    merged: bool = False
    hidden: bool = False
    told: bool = False
    pinned: bool = False
    speaking: bool = False

    @property
    def filtered(self) -> bool:
        """Say whether this view asks for less than everything the caller may see."""
        if self.told or self.pinned or self.speaking:
            return True
        fields = self.__dict__
        return not all(map(_NOTHING.__contains__, map(fields.__getitem__, FILTERS)))

    @property
    def labelled(self) -> bool:
        """Say whether this view asks for tags, concepts, entities, files or what is pinned."""
        return bool(self.tags or self.concepts or self.entity or self.file or self.pinned)

    @property
    def shape(self) -> View:
        """Return the view without caller and time, so that equal questions of different callers compare equal."""
        return self.model_copy(update={"namespaces": (), "now": _NEVER})


@dataclass(frozen=True, slots=True)
class NeighbourSignals:
    """What the indexes found for a memory's neighbour in its session; zeros where there is none."""

    bm25: float = 0.0
    cosine: float = 0.0
    late: float = 0.0


@dataclass(frozen=True, slots=True)
class Signals:
    """What the searchers found for one memory: best-chunk cosine (-1–1), bm25 (≥ 0), shares of the query (0–1).

    `late` and `rare` are the late interaction of its best chunk, plain and by the rarity of the query's words, None
    where it was not searched. `passage` and `phrase` are the greatest shares within a few sentences and within a
    clause, `around` is the coverage with its neighbours, `before` and `after` are those. `speaker_named` says
    whether the query names its speaker, `questions` and `questions_before` which share of it, and of what came before
    it, are questions. `length` is in characters. `rarest` (0–1) is how rare the rarest of its words is beside a word
    that one memory holds, `identifier` the same of a name with digits or punctuation that it holds as the query writes
    it.
    """

    cosine: float = 0.0
    bm25: float = 0.0
    coverage: float = 0.0
    fuzzy: float = 0.0
    speaker_named: bool = False
    late: float | None = None
    rare: float | None = None
    passage: float = 0.0
    phrase: float = 0.0
    around: float = 0.0
    before: NeighbourSignals = NeighbourSignals()
    after: NeighbourSignals = NeighbourSignals()
    in_session: bool = False
    questions: float = 0.0
    questions_before: float = 0.0
    length: int = 0
    rarest: float = 0.0
    identifier: float = 0.0


@dataclass(frozen=True, slots=True)
class QuerySignals:
    """What ranking needs to know of a query: how many words carry meaning, the idf of the rarest stored one.

    `unknown` is the share (0–1) of its weight in words that nobody stored; `semantic` says whether the vectors were
    searched. `weight` is the sum of the idf of its stored words, `size` how many memories the view's namespaces hold.
    `asks` are the log-odds that such a text asks for something remembered, 0 where that is not known.
    """

    words: int
    rarest: float
    unknown: float
    semantic: bool
    weight: float = 0.0
    size: int = 0
    asks: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What is known of an embedding model; `floor` is on the calibrated match, the other three are on the cosine.

    `subject` is where two answers to a query are about one subject, so that one can contradict the other; `near` is
    where the answer of a write begins to name a memory, `similar` where two texts may say the same. `served_as` is the
    name that a server of embeddings has for the model, where that is not its id. A model that lies beside its card as
    `model.onnx` and `tokenizer.json` has their SHA-256 in `sha256` and `tokenizer_sha256`; of any other `revision` is
    the commit on the Hugging Face hub.
    """

    id: str
    revision: str
    dimensions: int
    max_tokens: int
    pooling: str
    licence: str
    sha256: str = ""
    tokenizer_sha256: str = ""
    query_prompt: str = ""
    document_prompt: str = ""
    served_as: str = ""
    multilingual: bool = True
    floor: float = 0.06
    subject: float = 0.48
    near: float = 0.55
    similar: float = 0.7

    @property
    def name(self) -> str:
        """Return the last part of the id, by which its folder is called."""
        return self.id.rsplit("/", 1)[-1]

    @property
    def version(self) -> str:
        """Return the hash or the commit that tells the model's vectors from those of other weights."""
        return self.sha256 or self.revision
