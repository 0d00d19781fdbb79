"""The dual response: which index lines and which details an answer of so many tokens holds.

What is counted is what a door prints. Nothing is loaded, and nothing is ranked anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final, TypeAlias

from recollect.domain.compact import CompactRecalled
from recollect.domain.enums import Layer
from recollect.domain.results import Hit, Index, IndexLine, Recalled
from recollect.prompt.neutral import neutral_json
from recollect.spans import spanned
from recollect.text.layers import shortened

Count: TypeAlias = Callable[[str], int]  # the tokens of a text

_DEEPEST_FIRST: Final = (Layer.CONTENT, Layer.PASSAGE, Layer.OVERVIEW, Layer.ABSTRACT)
_LINE: Final = 24  # tokens; twenty words have about as many, twenty words of Thai or twenty paths hundreds
_DETAILS: Final = 5  # a fifth of the room is kept for details
_FEWEST: Final = 80  # characters of a text that are shown however small the budget is
_WIDEST: Final = 24  # characters; hardly any token has more
_WORD: Final = 20  # letters; what has more is no word
_PIECE: Final = re.compile(r"[A-Za-z0-9]+|\S")


@spanned("search.budget")
def recalled_within(whole: Recalled, max_tokens: int, count: Count) -> Recalled:
    """Return `whole` cut so far that its printed answer has at most `max_tokens`.

    Matches get their index lines, best first, which leave a fifth of the room; then the hits get their details, best
    first, each at the deepest layer that fits; what is left goes to the lines of further matches. A hit that does not
    fit at all makes room for a later, smaller one. Notes may take half of what the bare answer leaves.
    """
    matches = whole.index.lines if whole.index else ()

    def cut(lines: Sequence[IndexLine], hits: Sequence[Hit], notes: Sequence[str]) -> Recalled:
        """Return the answer with these lines, hits and notes, which says how many of each it leaves out."""
        index = Index(tuple(lines), omitted=len(matches) - len(hits), unlisted=len(matches) - len(lines))
        return replace(whole, hits=tuple(hits), notes=tuple(notes), index=index)

    room = _Room(max_tokens - count(printed(cut((), (), ()).public())), count)
    reserve = room.left // 2
    notes = [note for note in whole.notes if room.take({"notes": [note]}, reserve)]
    lines = _lines_that_fit(matches, room, room.left // _DETAILS)
    listed = {line.id: line.abstract for line in lines}
    shown = (
        _deepest_layer_that_fits(hit, listed[hit.memory.id], room) for hit in whole.hits if hit.memory.id in listed
    )
    hits = [hit for hit in shown if hit]
    lines += _lines_that_fit(matches[len(lines) :], room, 0)
    while count(printed((answer := cut(lines, hits, notes)).public())) > max_tokens and (hits or lines or notes):
        (hits or lines or notes).pop()  # a tokenizer may find more tokens in the whole than in its pieces
    return answer


@spanned("search.budget")
def page_within(page: CompactRecalled, max_tokens: int, count: Count) -> CompactRecalled:
    """Return the page with as many of its first hits as fit into `max_tokens` when it is printed.

    The first hit is shown whatever its length: where its labels leave no room, without them and with its text
    shortened.
    """

    def cost(hits: Sequence[Hit]) -> int:
        """Return how many tokens the answer with these hits takes."""
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
    return sum(map(_most_tokens, _PIECE.findall(text)))


def printed(body: Any) -> str:
    """Return a JSON value as text on one line, without spaces between its parts: so answers with a budget print it."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _most_tokens(piece: str) -> int:
    """Return the most tokens that a tokenizer makes of a word, a number or a mark: letters mostly go two to a token."""
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


def _lines_that_fit(matches: Sequence[IndexLine], room: _Room, reserve: int) -> list[IndexLine]:
    """Return the first lines that leave the `reserve` of the room untouched, up to the first that does not."""
    brief = (_with_short_abstract(line, room.count) for line in matches)
    return list(takewhile(lambda line: room.take(line.text, reserve), brief))


def _with_short_abstract(line: IndexLine, count: Count) -> IndexLine:
    """Return the line with an abstract of at most 24 tokens, so that no line takes the room of many."""
    abstract, columns = line.abstract, 2 * len(line.abstract)
    while (used := count(abstract)) > _LINE and columns > 1:
        columns = columns * _LINE // used
        abstract = shortened(abstract, columns)
    return replace(line, abstract=abstract)


def _deepest_layer_that_fits(hit: Hit, line: str, room: _Room) -> Hit | None:
    """Return the hit at its deepest layer that fits; None where none fits or it would only repeat its index `line`."""
    known = {"", line}
    for layer in _DEEPEST_FIRST:
        shown = replace(hit, layer=layer)
        if layer is not Layer.CONTENT and shown.text in known:
            continue
        if room.take(shown.detail()):
            return shown
        known.add(shown.text)
    return None
