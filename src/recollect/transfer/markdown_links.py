"""What notes in Markdown say beside their text: `#tags`, `[[links]]`, and the statements of basic-memory's notes.

`- [category] observation` and `- relation_type [[Target]]` are facts about the note, any other `[[link]]` is the fact
that the note links there. Code is no part of it, quotes hold no observations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from recollect.transfer.markdown_sections import Part

LINKS_TO: Final = "links_to"
_CODE: Final = re.compile(r"(?<!`)(`{1,8})(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_HASHTAG: Final = re.compile(r"(?<![^\s(,;])#([\w/-]*[^\W\d][\w/-]*)")
_LINK: Final = re.compile(r"(?<!!)\[\[([^\[\]\n]{1,500})\]\]")
_RELATION: Final = re.compile(
    r"(?:\"([^\"]{1,200})\"|'([^']{1,200})'|(\w[\w:/-]{0,200}))\s+\[\[([^\[\]]+)\]\]\s*(?:\(.*\))?"
)
_OBSERVATION: Final = re.compile(r"\[([^\[\]()]{1,100})\]\s+(\S.*)", re.DOTALL)
_NO_CATEGORY: Final = re.compile(r"\s*|x|[^\W\d_]?\W|[\d:., -]+", re.IGNORECASE)


class Statement(NamedTuple):
    """A fact about a note, and the line that says it."""

    line: int
    predicate: str
    object: str


def tags_of(parts: Iterable[Part]) -> list[str]:
    """Return the `#tags` in a text, each once; numbers alone are none."""
    found = (tag.strip("/-") for part in parts for tag in _HASHTAG.findall(_CODE.sub(" ", part.text)))
    return list(dict.fromkeys(filter(None, found)))


def facts_in(parts: Iterable[Part], *, observations: bool) -> Iterator[Statement]:
    """Yield the facts that a text states; observations only where `observations` is set."""
    for part in parts:
        first, _, rest = _CODE.sub(" ", part.text.strip()).partition("\n")
        relation = _RELATION.fullmatch(first.strip()) if part.item else None
        if relation and (target := _link_target(relation[4])):
            yield Statement(part.line, relation[1] or relation[2] or relation[3], target)
            first = ""
        if observations and part.item and not part.quoted and (stated := _OBSERVATION.fullmatch(part.text.strip())):
            category = " ".join(stated[1].split())
            if not _NO_CATEGORY.fullmatch(category):
                yield Statement(part.line, category, " ".join(stated[2].split()))
        for link in _LINK.findall(f"{first}\n{rest}"):
            if target := _link_target(link):
                yield Statement(part.line, LINKS_TO, target)


def _link_target(link: str) -> str:
    """Return the note that a link names, without the heading in it and the words that are shown for it."""
    return link.partition("|")[0].partition("#")[0].strip()
