"""The dual response: which index lines and which details an answer of so many tokens holds.

Here is also the one shape of such an answer, because what is counted must be what a door prints. Nothing is
loaded, and nothing is ranked anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from recollect.domain import FactType, Hit, Index, IndexLine, Layer, Recalled, Scope
from recollect.policy.layers import shortened

Count: TypeAlias = Callable[[str], int]  # the tokens of a text

_DEEPEST_FIRST: Final = (Layer.CONTENT, Layer.OVERVIEW, Layer.ABSTRACT)
_LINE: Final = 48  # tokens; twenty words have about thirty, twenty words of Thai or twenty paths hundreds
_WIDEST: Final = 24  # characters; hardly any token has more
_WORD: Final = 20  # letters; what has more is no word
_PIECE: Final = re.compile(r"[A-Za-z0-9]+|\S")


def within(whole: Recalled, max_tokens: int, count: Count) -> Recalled:
    """Return `whole` as far as its printed answer has at most `max_tokens`.

    Every match gets its index line first, best first; then the hits get their details, best first, each at the
    deepest layer that fits. A hit that does not fit at all makes room for a later, smaller one. Notes may take
    half of what the bare answer leaves.
    """
    lines = whole.index.lines if whole.index else ()
    room = _Room(max_tokens - count(printed(answer_json(_cut(whole, (), (), ())))), count)
    reserve = room.left // 2
    notes = tuple(note for note in whole.notes if room.take({"notes": [note]}, reserve))
    listed = _listed((_brief(line, count) for line in lines), room)
    shown = [_deepest(hit, listed, room) for hit in whole.hits if hit.memory.id in listed]
    answer = _cut(whole, tuple(listed.values()), tuple(hit for hit in shown if hit), notes)
    while count(printed(answer_json(answer))) > max_tokens and (shorter := _shorter(whole, answer)) is not None:
        answer = shorter  # a tokenizer may find more tokens in the whole than in its pieces
    return answer


def estimate(text: str) -> int:
    """Return about how many tokens `text` has, on the safe side, where no tokenizer is at hand."""
    return sum(map(_most, _PIECE.findall(text)))


def printed(body: Any) -> str:
    """Return a JSON value as an answer with a budget prints it: on one line, without a space too many."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def answer_json(recalled: Recalled) -> dict[str, Any]:
    """Return the whole answer: message, index, details, how many matches have no details, how many no line either."""
    index = recalled.index or Index((), 0, 0)
    body: dict[str, Any] = {
        "message": recalled.message,
        "index": [line_json(line) for line in index.lines],
        "details": [detail_json(hit) for hit in recalled.hits],
        "omitted": index.omitted,
        "unlisted": index.unlisted,
    }
    return body | ({"notes": list(recalled.notes)} if recalled.notes else {})


def line_json(line: IndexLine) -> dict[str, Any]:
    """Return one line of the index."""
    return {"id": str(line.id), "score": round(line.score, 2), "abstract": line.abstract}


def detail_json(hit: Hit) -> dict[str, Any]:
    """Return one hit in detail: its text under the name of its layer, and the labels that say something."""
    memory = hit.memory
    optional = {
        "fact_type": "" if memory.fact_type is FactType.GENERAL else str(memory.fact_type),
        "scope": "" if memory.scope is Scope.PROJECT else str(memory.scope),
        "key": memory.key,
        "category": memory.category,
        "tags": list(memory.tags),
    }
    return {
        "id": str(memory.id),
        str(hit.layer): hit.text,
        **{name: value for name, value in optional.items() if value},
        "updated_at": memory.updated_at.date().isoformat(),
    }


def _most(piece: str) -> int:
    """Return what a tokenizer may make of a word, a number or a mark: letters mostly go by two or more."""
    usual = piece.isascii() and piece.isalpha() and len(piece) <= _WORD
    return (len(piece) + 1) // 2 if usual else len(piece.encode())


class _Room:
    """The tokens that are left."""

    def __init__(self, tokens: int, count: Count) -> None:
        self.left = tokens
        self._count = count

    def take(self, body: Any, reserve: int = 0) -> bool:
        """Take the tokens of `body` and its comma, when that leaves the reserve; say whether it did."""
        most = self.left - reserve
        text = printed(body) + ","
        beginning = text[: _WIDEST * max(most, 1)]
        whole_words = beginning.rpartition(" ")[0] or beginning
        if len(beginning) < len(text) and self._count(whole_words) > most:
            return False  # a megabyte is not counted to its end to learn that it does not fit
        if (cost := self._count(text)) > most:
            return False
        self.left -= cost
        return True


def _brief(line: IndexLine, count: Count) -> IndexLine:
    """Return the line with an abstract of at most 48 tokens, so that none takes the room of many."""
    abstract, columns = line.abstract, 2 * len(line.abstract)
    while (used := count(abstract)) > _LINE and columns > 1:
        columns = columns * _LINE // used
        abstract = shortened(abstract, columns)
    return replace(line, abstract=abstract)


def _listed(lines: Iterable[IndexLine], room: _Room) -> dict[int, IndexLine]:
    """Return the lines up to the first that does not fit: whoever is not listed is no better than who is."""
    listed: dict[int, IndexLine] = {}
    for line in lines:
        if not room.take(line_json(line)):
            break
        listed[line.id] = line
    return listed


def _deepest(hit: Hit, listed: dict[int, IndexLine], room: _Room) -> Hit | None:
    """Return the hit at the deepest layer that fits, unless that would say again what its index line says."""
    known = {"", listed[hit.memory.id].abstract}
    for layer in _DEEPEST_FIRST:
        shown = replace(hit, layer=layer)
        if layer is not Layer.CONTENT and shown.text in known:
            continue
        if room.take(detail_json(shown)):
            return shown
        known.add(shown.text)
    return None


def _cut(whole: Recalled, lines: tuple[IndexLine, ...], hits: tuple[Hit, ...], notes: tuple[str, ...]) -> Recalled:
    total = len(whole.index.lines) if whole.index else 0
    index = Index(lines, omitted=total - len(hits), unlisted=total - len(lines))
    return replace(whole, hits=hits, notes=notes, index=index)


def _shorter(whole: Recalled, answer: Recalled) -> Recalled | None:
    """Return the answer without its last detail, else its last line, else its last note; None when it is bare."""
    lines = answer.index.lines if answer.index else ()
    if answer.hits:
        return _cut(whole, lines, answer.hits[:-1], answer.notes)
    if lines:
        return _cut(whole, lines[:-1], (), answer.notes)
    return _cut(whole, (), (), answer.notes[:-1]) if answer.notes else None
