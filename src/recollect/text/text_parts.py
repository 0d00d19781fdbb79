"""What follows from the text of a memory: its headings, keywords, words and entities."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.domain.requests import Draft
from recollect.domain.results import Entity
from recollect.text import layers
from recollect.text.entities import entities
from recollect.text.speaker_names import words_of
from recollect.text.terms import keywords_and_words


@dataclass(frozen=True, slots=True)
class TextParts:
    """The headings of a draft, those it lacks made from its content, and what finds it by words."""

    title: str
    abstract: str
    overview: str
    keywords: str
    words: frozenset[str]
    speaker_words: frozenset[str]
    entities: tuple[Entity, ...]


def text_parts(draft: Draft) -> TextParts:
    """Return what follows from the text of a draft."""
    title = draft.title or layers.title(draft.content)
    abstract = draft.abstract or layers.abstract(draft.content)
    overview = draft.overview or layers.overview(draft.content)
    whole = draft.model_copy(update={"title": title, "abstract": abstract, "overview": overview})
    keywords, words = keywords_and_words(whole, title)
    named = tuple(dict.fromkeys(entities(draft.content)))
    return TextParts(title, abstract, overview, keywords, words, words_of(draft.speaker or ""), named)
