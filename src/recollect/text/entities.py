"""Entities: what a text names, found without a model by a small set of rules, precision before recall.

Names are found first by their shape (`entity_patterns`), and then by their capital letters (`proper_names`) in what is
left. A script without capital letters has only shapes.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.domain.enums import EntityType
from recollect.domain.results import Entity
from recollect.text.entity_patterns import fence_spans, shaped_entities
from recollect.text.normalization import fold
from recollect.text.proper_names import names

_OF_PROSE = (EntityType.HASHTAG, EntityType.PERSON)
_LONGEST = 512  # characters of a name


def entities(text: str, limit: int = 64) -> tuple[Entity, ...]:
    """Return the first `limit` things that `text` names, in order of appearance, each once by type and folded name.

    Names are as written, less the quotes and backticks around them, an @ before a person and the () of a call.
    """
    whole = text.replace("\0", " ")
    prose = _blanked(whole, fence_spans(whole))
    found = [shape for shape in shaped_entities(whole) if shape.type not in _OF_PROSE or prose[shape.start] != "\0"]
    found += names(_blanked(prose, ((shape.start, shape.end) for shape in found)))
    unique: dict[tuple[str, str], Entity] = {}
    for place in sorted(found, key=lambda place: place.start):
        name = text[place.start : place.end]
        if place.type is not None and len(name) <= _LONGEST:
            unique.setdefault((place.type, fold(name)), Entity(name=name, type=place.type))
    for _, name in [key for key in unique if key[0] == EntityType.PERSON]:
        for kind in (EntityType.THING, EntityType.CONCEPT):
            unique.pop((kind, name), None)
    return tuple(unique.values())[: max(limit, 0)]


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with NUL characters in place of the spans, which are in order."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += [text[at:start], "\0" * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])
