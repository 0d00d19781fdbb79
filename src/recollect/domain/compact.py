"""What a query found, a page at a time, in the form that costs an agent the fewest tokens: what is set, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Required

from pydantic import Field
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from recollect.domain.answer import LAZY, Answer, DescribedBy
from recollect.domain.enums import Layer
from recollect.domain.results import NOTHING, Hit, Memory, found_message

WHOLE: Final = "`recall` with an `id` shows that memory whole."

_LABELS: Final = ("fact_type", "category", "key", "tags", "scope", "confidence", "trust", "source", "origin", "project")
_TEXT: Final = {"type": "string"}
_CompactHit = Annotated[
    dict[str, Any],
    DescribedBy(
        Memory,
        {"id", "content"},
        {*_LABELS, "author", "date", "older_than", "contradicts", "part"},
        similarity={"type": "number", "description": "How well it matches the query, 0–1"},
        certainty={"type": "string", "description": "How sure the match is: `strong`, `likely` or `weak`"},
        found_by={"type": "string", "description": "`words`, `meaning`, `both`, or `spelling`"},
        date={"type": "string", "description": "The day it happened, else that of its last change"},
        older_than={"type": "string", "description": "A newer hit about the same subject"},
        contradicts={"type": "string", "description": "A hit on the same subject that this may deny"},
        part={"type": "string", "description": "How much of a long memory `content` shows: its best passage"},
        confidence={"type": "number"},
        trust={"type": "number"},
        author=_TEXT,
    ),
]


class CompactJson(TypedDict, total=False):
    """The answer as agents get it: memories, best first, and in the message how to read on."""

    message: Required[str]
    memories: Required[list[_CompactHit]]
    notes: Annotated[list[str], Field(description="What this is, what could not be searched, or was corrected")]


@dataclass(frozen=True, config=LAZY)
class CompactRecalled(Answer):
    """One page of what a query found, best first; `found` counts all of it, `offset` what came before this page.

    `user` asked, so that what he wrote himself names no author. A `bare` page leaves labels out, which had no room.
    """

    hits: tuple[Hit, ...]
    found: int
    offset: int
    user: str
    notes: tuple[str, ...] = ()
    bare: bool = False

    @property
    def message(self) -> str:
        """Return how much was found, what of it this page shows, and how to read on."""
        last = self.offset + len(self.hits)
        if not self.hits:
            return f"Nothing at `offset` {self.offset}: {found_message(self.found)}" if self.found else NOTHING
        if len(self.hits) == self.found:
            count = found_message(self.found)
        else:
            count = f"{self.offset + 1}–{last} of {self.found} memories found."
        further = f"`offset` {last} shows the next." if last < self.found else ""
        cut = any(hit.layer is not Layer.CONTENT for hit in self.hits)
        return " ".join(filter(None, (count, further, WHOLE if cut else "")))

    @property
    def is_all(self) -> bool:
        """Say whether the page is all that was found, every memory whole."""
        return 0 < self.found == len(self.hits) and all(hit.layer is Layer.CONTENT for hit in self.hits)

    def public(self) -> Annotated[dict[str, Any], DescribedBy(CompactJson)]:
        """Return the message, the hits with what is set of them, and the notes."""
        body: dict[str, Any] = {"message": self.message, "memories": [self._compact(hit) for hit in self.hits]}
        return body | ({"notes": list(self.notes)} if self.notes else {})

    def _compact(self, hit: Hit) -> _CompactHit:
        memory = hit.memory
        body: dict[str, Any] = {"id": str(memory.id), "content": quoted_text(hit), "similarity": round(hit.match, 2)}
        if hit.layer is not Layer.CONTENT:
            body["part"] = f"{len(hit.text)} of {len(memory.content)} characters"
        if self.bare:
            return body
        body |= {"certainty": str(hit.certainty), "found_by": found_by(hit)}
        body["date"] = (memory.observed_at or memory.updated_at).date().isoformat()
        if hit.older_than is not None:
            body["older_than"] = str(hit.older_than)
        if hit.contradicts is not None:
            body["contradicts"] = str(hit.contradicts)
        labels = memory.model_dump(mode="json", include=set(_LABELS), exclude_defaults=True)
        labels = memory.without_plain_origin(labels)
        body |= {name: _rounded(labels[name]) for name in _LABELS if name in labels}
        return body | ({"author": memory.author} if memory.author != self.user else {})


def quoted_text(hit: Hit) -> str:
    """Return the text of a hit, with an ellipsis at each end where the memory goes on."""
    text, whole = hit.text, hit.memory.content
    before, after = "" if whole.startswith(text) else "… ", "" if whole.endswith(text) else " …"
    return f"{before}{text}{after}" if hit.layer is not Layer.CONTENT else text


def found_by(hit: Hit) -> str:
    """Return a word that says how a memory was found."""
    ways: Sequence[str] = hit.why["found_by"]
    if "words" in ways:
        return "both" if "meaning" in ways else "words"
    return "spelling" if "fuzzy" in ways else "meaning"


def _rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value
