"""The dual response: which index lines and which details an answer of so many tokens holds.

What is counted is what a door prints. Nothing is loaded, and nothing is ranked anew.

Passages: how close together a query's words stand in a text, and which stretch of a long memory answers it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final, TypeAlias

from recollect.domain.compact import CompactRecalled
from recollect.domain.enums import Layer
from recollect.domain.results import Hit, Index, IndexLine, Recalled
from recollect.prompt.neutral import neutral_json
from recollect.text.chunk import chunk
from recollect.text.layers import shortened
from recollect.text.normalization import fold

Count: TypeAlias = Callable[[str], int]  # the tokens of a text

_DEEPEST_FIRST: Final = (Layer.CONTENT, Layer.PASSAGE, Layer.OVERVIEW, Layer.ABSTRACT)
_LINE: Final = 24  # tokens; twenty words have about as many, twenty words of Thai or twenty paths hundreds
_DETAILS: Final = 5  # a fifth of the room is kept for details
_FEWEST: Final = 80  # characters of a text that are shown however small the budget is
_WIDEST: Final = 24  # characters; hardly any token has more
_WORD: Final = 20  # letters; what has more is no word
_PIECE: Final = re.compile(r"[A-Za-z0-9]+|\S")


def within(whole: Recalled, max_tokens: int, count: Count) -> Recalled:
    """Return `whole` as far as its printed answer has at most `max_tokens`.

    Matches get their index lines, best first, which leave a fifth of the room; then the hits get their details, best
    first, each at the deepest layer that fits; what is left goes to the lines of further matches. A hit that does not
    fit at all makes room for a later, smaller one. Notes may take half of what the bare answer leaves.
    """
    matches = whole.index.lines if whole.index else ()

    def cut(lines: Sequence[IndexLine], hits: Sequence[Hit], notes: Sequence[str]) -> Recalled:
        index = Index(tuple(lines), omitted=len(matches) - len(hits), unlisted=len(matches) - len(lines))
        return replace(whole, hits=tuple(hits), notes=tuple(notes), index=index)

    room = _Room(max_tokens - count(printed(cut((), (), ()).public())), count)
    reserve = room.left // 2
    notes = [note for note in whole.notes if room.take({"notes": [note]}, reserve)]
    lines = _listed(matches, room, room.left // _DETAILS)
    listed = {line.id: line.abstract for line in lines}
    shown = (_deepest(hit, listed[hit.memory.id], room) for hit in whole.hits if hit.memory.id in listed)
    hits = [hit for hit in shown if hit]
    lines += _listed(matches[len(lines) :], room, 0)
    while count(printed((answer := cut(lines, hits, notes)).public())) > max_tokens and (hits or lines or notes):
        (hits or lines or notes).pop()  # a tokenizer may find more tokens in the whole than in its pieces
    return answer


def page_within(page: CompactRecalled, max_tokens: int, count: Count) -> CompactRecalled:
    """Return as many of the page's hits, from its first on, as `max_tokens` hold when it is printed.

    The first is shown whatever its length: without its labels where those leave no room, and its text shortened.
    """

    def cost(hits: Sequence[Hit]) -> int:
        return count(printed(neutral_json(replace(page, hits=tuple(hits)).public())))

    if cost(page.hits) <= max_tokens:
        return page
    shown: list[Hit] = []
    room = _Room(max_tokens - cost(()), count)
    one = replace(page, found=0, notes=())
    for hit in page.hits:
        [body] = replace(one, hits=(hit,)).public()["memories"]
        if not room.take(neutral_json(body)):
            break
        shown.append(hit)
    while len(shown) > 1 and cost(shown) > max_tokens:
        shown.pop()
    if shown and cost(shown) <= max_tokens:
        return replace(page, hits=tuple(shown))
    page = replace(page, hits=page.hits[:1], bare=True)
    while cost(page.hits) > max_tokens and len(text := page.hits[0].text) > _FEWEST:
        hit = replace(page.hits[0], layer=Layer.PASSAGE, passage=text[: len(text) // 2].rstrip())
        page = replace(page, hits=(hit,))
    return page


def estimate(text: str) -> int:
    """Return about how many tokens `text` has, on the safe side, where no tokenizer is at hand."""
    return sum(map(_most, _PIECE.findall(text)))


def printed(body: Any) -> str:
    """Return a JSON value as an answer with a budget prints it: on one line, without a space too many."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _most(piece: str) -> int:
    """Return what a tokenizer may make of a word, a number or a mark: letters mostly go by two or more."""
    usual = piece.isascii() and piece.isalpha() and len(piece) <= _WORD
    return (len(piece) + 1) // 2 if usual else len(piece.encode())


class _Room:
    """The tokens that are left."""

    def __init__(self, tokens: int, count: Count) -> None:
        self.left = tokens
        self.count = count

    def take(self, body: Any, reserve: int = 0) -> bool:
        """Take the tokens of `body` and its comma, when that leaves the reserve; say whether it did."""
        most = self.left - reserve
        text = printed(body) + ","
        beginning = text[: _WIDEST * max(most, 1)]
        whole_words = beginning.rpartition(" ")[0] or beginning
        if len(beginning) < len(text) and self.count(whole_words) > most:
            return False  # a megabyte is not counted to its end to learn that it does not fit
        if (cost := self.count(text)) > most:
            return False
        self.left -= cost
        return True


def _listed(matches: Sequence[IndexLine], room: _Room, reserve: int) -> list[IndexLine]:
    """Return the lines that fit without the reserve, up to the first that does not: who is listed is no worse."""
    brief = (_brief(line, room.count) for line in matches)
    return list(takewhile(lambda line: room.take(line.text, reserve), brief))


def _brief(line: IndexLine, count: Count) -> IndexLine:
    """Return the line with an abstract of at most 24 tokens, so that none takes the room of many."""
    abstract, columns = line.abstract, 2 * len(line.abstract)
    while (used := count(abstract)) > _LINE and columns > 1:
        columns = columns * _LINE // used
        abstract = shortened(abstract, columns)
    return replace(line, abstract=abstract)


def _deepest(hit: Hit, line: str, room: _Room) -> Hit | None:
    """Return the hit at the deepest layer that fits, unless that would say again what its `line` in the index says."""
    known = {"", line}
    for layer in _DEEPEST_FIRST:
        shown = replace(hit, layer=layer)
        if layer is not Layer.CONTENT and shown.text in known:
            continue
        if room.take(shown.detail()):
            return shown
        known.add(shown.text)
    return None


LONG: Final = 1_000
"""Characters: what is longer is quoted."""

_TOKEN = re.compile(r"\w{1,8}|[^\w\s]")
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")
_SIZE = 128  # pieces: about what one chunk of the embedding model holds
_MORE = 0.25  # of the query's weight: so much more in its words outweighs what the vectors say
_READ = 50_000  # characters of a book that are compared by words
_PASSAGE = 250  # characters: a few sentences
_PHRASE = 80  # characters: a clause


class Proximity:
    """Measures texts against the stems of one query's folded words, weighted by how rare each is."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = [weight for stem, weight in weights.items() if stem]
        self._total = sum(weights.values()) or 1.0
        starts: dict[str, int] = {}
        for number, stem in enumerate(filter(None, weights)):
            starts.setdefault(_start(stem), number)
        self._starts = sorted(starts.items(), key=lambda one: len(one[0]))

    def shares(self, text: str) -> tuple[float, float]:
        """Return the greatest shares (0–1) of the query's weight within one passage and within one clause."""
        places = self._places(fold(text))
        return (self._densest(places, _PASSAGE), self._densest(places, _PHRASE)) if places else (0.0, 0.0)

    def held(self, text: str) -> float:
        """Return the share (0–1) of the query's weight whose words stand anywhere in a text."""
        words = {word for _, word in self._places(fold(text))}
        return min(sum(self._weights[word] for word in words) / self._total, 1.0)

    def _places(self, text: str) -> list[tuple[int, int]]:
        """Return where words of the query stand and which; where several begin at one place, the longest."""
        found: dict[int, int] = {}
        for start, number in self._starts:
            place = text.find(start)
            while place >= 0:
                if _begins(text, place, start):
                    found[place] = number
                place = text.find(start, place + len(start))
        return sorted(found.items())

    def _densest(self, places: Sequence[tuple[int, int]], size: int) -> float:
        counts = [0] * len(self._weights)
        best = held = 0.0
        first = 0
        for place, word in places:
            held += 0.0 if counts[word] else self._weights[word]
            counts[word] += 1
            while places[first][0] < place - size:
                gone = places[first][1]
                counts[gone] -= 1
                held -= 0.0 if counts[gone] else self._weights[gone]
                first += 1
            best = max(best, held)
        return min(best / self._total, 1.0)


def _start(stem: str) -> str:
    """Return how every word of this stem begins: with the stem, less the i that Porter makes of y."""
    return stem[:-1] if stem.endswith("i") and len(stem) > 3 and stem.isascii() else stem


def _begins(text: str, place: int, word: str) -> bool:
    """Say whether a word begins at `place`; scripts without spaces have words anywhere."""
    return place == 0 or not word.isascii() or not (text[place - 1].isalnum() or text[place - 1] == "_")


def best_passage(content: str, proximity: Proximity, nearest: tuple[int, int] | None) -> str:
    """Return the stretch whose vector is `nearest`, unless another holds clearly more of the query's words.

    An identifier that was asked for is seen so, which vectors hardly know. Without vectors, words alone decide.
    """
    return _from_its_sentence(_best(content, proximity, content[slice(*nearest)] if nearest else ""), content)


def _best(content: str, proximity: Proximity, text: str) -> str:
    held = proximity.held(text) + _MORE if text else -1.0
    if held >= 1.0 or (text and proximity.held(content[:_READ]) < held):
        return text
    read = content[:_READ]
    spans = chunk(read, [piece.span() for piece in _TOKEN.finditer(read)], _SIZE, 0)
    shares = {span: proximity.held(content[slice(*span)]) for span in spans}
    best = max(spans, key=lambda span: shares[span])
    return content[slice(*best)] if shares[best] > held else text


def _from_its_sentence(text: str, content: str) -> str:
    """Leave out the end of a sentence with which a stretch inside a memory may begin."""
    end = None if content.startswith(text) else _BREAK.search(text, 0, len(text) // 4)
    return text[end.end() :] if end else text
