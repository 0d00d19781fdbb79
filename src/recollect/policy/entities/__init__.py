"""Entities: what a text names, found without a model by a small set of rules, precision before recall.

In order of precedence, a later rule never looking inside what an earlier one took:
URLs (with a scheme, `www.`, or a well-known domain), e-mail addresses, files (paths, names with a known ending,
Dockerfile, .env), tickets (ABC-123, #123, owner/repo#12), versions (v1.2, 1.2.3, and 3.11 after a product's name;
never dates, times, amounts and addresses), hashtags (never headings and colours), identifiers (`in backticks`,
CamelCase, snake_case, dotted.names, calls(), --flags, commit hashes, RFC 9110), then organisations (a suffix such as
Ltd, or University of …) and people. A person needs evidence: a title, an @mention, a known given name, two or three
capitalised words within a sentence, or a capitalised word that said something. A script without capital letters
names neither people nor organisations, and code neither those nor hashtags.
"""

from __future__ import annotations

import re

from recollect.domain import Entity
from recollect.policy.entities.marks import MARKS, Found
from recollect.policy.entities.people import people
from recollect.policy.letters import fold

_CODE = re.compile(r"^[ \t]{0,8}(?:`{3}|~{3})", re.MULTILINE)
_LONGEST = 512  # characters of a name


def entities(text: str, limit: int = 64) -> tuple[Entity, ...]:
    """Return the first `limit` things that `text` names, in order of appearance, each once by type and folded name.

    Names are as written, less the quotes and backticks around them, an @ before a person and the () of a call.
    """
    rest = text.replace("\0", " ")
    prose = _without_code(rest)
    found: list[Found] = []
    for mark in MARKS:
        fresh = list(mark.find(prose if mark.prose else rest))
        found += [one for one in fresh if one.type is not None]
        rest, prose = (_without(one, fresh) for one in (rest, prose))
    found += people(prose)
    unique: dict[tuple[str, str], Entity] = {}
    for one in sorted(found, key=lambda one: one.start):
        name = text[one.start : one.end]
        if one.type is not None and len(name) <= _LONGEST:
            unique.setdefault((one.type, fold(name)), Entity(name, one.type))
    return tuple(unique.values())[: max(limit, 0)]


def _without(text: str, found: list[Found]) -> str:
    """Return `text` with NUL in place of what was found, so that nothing is found inside it again."""
    pieces: list[str] = []
    at = 0
    for one in found:
        start, end = max(one.cover[0], at), max(one.cover[1], at)
        pieces += [text[at:start], "\0" * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])


def _without_code(text: str) -> str:
    """Return `text` with NUL in place of its fenced blocks of code."""
    fences = [place.start() for place in _CODE.finditer(text)]
    pieces: list[str] = []
    at = 0
    for start, end in zip(fences[::2], [*fences[1::2], len(text)], strict=False):
        pieces += [text[at:start], "\0" * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])
