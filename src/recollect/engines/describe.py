"""The writer of layers and summaries that asks a language model; what it says is checked by `memory/grounding.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, Field

from recollect.domain.enums import EntityType
from recollect.domain.results import Entity
from recollect.engines.chat import PydanticAiChat

_MAX_CHARACTERS: Final = 12_000  # characters of all texts of a question
_MAX_NOTE: Final = 600  # characters of a note of a session
_MAX_NOTES: Final = 30
_TEXT_ANSWER: Final = 1_200  # tokens; models that think need more than the answer
_TOGETHER_ANSWER: Final = 800
_SESSION_ANSWER: Final = 2_500

_LAYERS: Final = (
    "`abstract` is one line of at most 20 words, `overview` one paragraph of at most 90 words. Write in the language "
    "of the text and in its words; every name, number, path and identifier as it stands there. Say nothing that it "
    "does not say, and address nobody."
)
_NAMED: Final = (
    "`facts` are statements of one sentence each: `subject` and `object` as they are written there, `predicate` in few "
    "words of it. `entities` are what it names: `name` as it is written there, `type` one of person, organisation, "
    "place, thing, concept. Empty lists are good answers."
)
_TEXT: Final = f"The user's text is a note that is kept. Say what it says. {_LAYERS} {_NAMED}"
_TOGETHER: Final = (
    "The user's text is a JSON list of old notes about the same, the oldest first, each with its day. Say what they "
    f"say together; where a later one contradicts an earlier one, the later is right. {_LAYERS}"
)
_SESSION: Final = (
    "The user's text is a JSON list of notes that were taken of one session of work. Say what the session decided, "
    f"changed, fixed and learnt. {_LAYERS} `notes` has for each note its `number` from 0 and a `title` of at most 10 "
    f"words, written as a sentence is, that says what is worth knowing of it. {_NAMED}"
)
_Line = Annotated[str, Field(max_length=500)]
_Paragraph = Annotated[str, Field(max_length=3_000)]

Triple: TypeAlias = tuple[str, str, str]
"""A fact: subject, predicate, object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What somebody says of a text: its heading, layers, and what it states and names. What is empty was not said."""

    title: str = ""
    abstract: str = ""
    overview: str = ""
    facts: tuple[Triple, ...] = ()
    entities: tuple[Entity, ...] = ()


class _Fact(BaseModel):
    subject: _Line
    predicate: _Line
    object: _Line


class _Entity(BaseModel):
    name: _Line
    type: _Line


class _Layers(BaseModel):
    abstract: _Line
    overview: _Paragraph


class _Text(_Layers):
    facts: list[_Fact] = []
    entities: list[_Entity] = []


class _Note(BaseModel):
    number: int
    title: _Line
    facts: list[_Fact] = []
    entities: list[_Entity] = []


class _Session(_Layers):
    notes: list[_Note]


class ChatDescribe:
    """Describes by a language model."""

    def __init__(self, chat: PydanticAiChat) -> None:
        self._chat = chat

    def text(self, content: str) -> Description:
        """Return the layers, facts and entities of a text; raise `ModelUnusable` when the model gives none."""
        found = self._chat.ask(_TEXT, content[:_MAX_CHARACTERS], _Text, most=_TEXT_ANSWER)
        triples, named = _as_triples(found.facts), _known_entities(found.entities)
        return Description(abstract=found.abstract, overview=found.overview, facts=triples, entities=named)

    def together(self, contents: Sequence[str]) -> Description:
        """Return the layers of a summary of texts about the same, each cut so that all are shown."""
        length = _MAX_CHARACTERS // max(len(contents), 1)
        found = self._chat.ask(_TOGETHER, _texts_cut_to(contents, length), _Layers, most=_TOGETHER_ANSWER)
        return Description(abstract=found.abstract, overview=found.overview)

    def session(self, contents: Sequence[str]) -> tuple[Description, dict[int, Description]]:
        """Return the layers of a summary of notes, and a description of each of the last thirty of them."""
        first = max(len(contents) - _MAX_NOTES, 0)
        found = self._chat.ask(_SESSION, _texts_cut_to(contents[first:], _MAX_NOTE), _Session, most=_SESSION_ANSWER)
        notes = {
            first + note.number: Description(
                title=note.title, facts=_as_triples(note.facts), entities=_known_entities(note.entities)
            )
            for note in found.notes
            if 0 <= note.number < len(contents) - first
        }
        return Description(abstract=found.abstract, overview=found.overview), notes


def _texts_cut_to(contents: Sequence[str], length: int) -> list[str]:
    return [content[:length] for content in contents]


def _as_triples(facts: Iterable[_Fact]) -> tuple[tuple[str, str, str], ...]:
    return tuple((fact.subject, fact.predicate, fact.object) for fact in facts)


def _known_entities(named: Iterable[_Entity]) -> tuple[Entity, ...]:
    """Return the named entities whose type is known."""
    found: list[Entity] = []
    for entity in named:
        with suppress(ValueError):
            found.append(Entity(name=entity.name, type=EntityType(entity.type.lower())))
    return tuple(found)
