"""Markdown files that agents keep, such as CLAUDE.md, AGENTS.md and MEMORY.md: a section becomes a memory.

A section's key is its file and the headings above it, so that importing a changed file updates its memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, Final

from recollect.domain import MAX_CONTENT, Carried, FactType, Load, Problem, Sensitivity
from recollect.gate import masked
from recollect.operations.exchange.lines import decoded, names, said
from recollect.operations.exchange.sections import Section, cut, front_matter, sections
from recollect.policy import layers

_ARROW: Final = " › "
_KEY: Final = 400
_TITLE: Final = 500
_TAG: Final = 100
_HIDDEN: Final = re.compile(r"<!--.*?-->|[*_`~]|\[([^\]]*)\]\([^)]*\)", re.DOTALL)
_WORD: Final = re.compile(r"[^\W_]+")


def read(source: BinaryIO, name: str) -> Iterator[Carried | Problem]:
    """Yield a memory for each section that says something, and last which sections there are; raise `Unreadable`."""
    text = decoded(source.read()).replace("\r\n", "\n").replace("\r", "\n")
    head, body, first = front_matter(text)
    prefix = f"{masked(name).lower()[-_KEY:]}#"
    keys: dict[str, int] = {}
    for section in sections(body, first):
        parts = cut(section.text, MAX_CONTENT - len(section.heading) - 2) if section.text.strip() else []
        for number, part in enumerate(parts):
            key = _own(f"{prefix}{'/'.join(map(_slug, section.path))[:_KEY]}", keys)
            fields = _fields(section, part if number else _headed(section, part), part, PurePath(name).name, head)
            yield Carried(load=Load.MEMORY, where=f"{name}:{section.line}", fields=said(fields | {"key": key}))
    yield Carried(load=Load.SECTIONS, where=name, fields={"prefix": prefix, "keys": sorted(keys)})


def _fields(section: Section, content: str, body: str, file: str, head: dict[str, str | list[str]]) -> dict[str, Any]:
    plain = [_plain(one) for one in section.path]
    path = [file, *plain]
    about = f"{plain[-1]}: " if plain else ""
    body = masked(body)  # what the layers cut off in the middle would be no secret any more
    return {
        "content": content,
        "title": layers.shortened(_ARROW.join(path), _TITLE),
        "abstract": layers.one_line(about + layers.abstract(body)),
        "overview": layers.overview(body),
        "tags": names([*names(head.get("tags")), *(_slug(one)[:_TAG] for one in section.path)]),
        **_of_head(head),
    }


def _of_head(head: dict[str, str | list[str]]) -> dict[str, Any]:
    """Take from the front matter what a memory has a field for."""
    found: dict[str, Any] = {}
    for name, fields in (("category", ("category",)), ("fact_type", ("fact_type", "type")), ("sensitivity", ())):
        value = next((head[one] for one in (*fields, name) if head.get(one)), None)
        if isinstance(value, str):
            found[name] = value.strip()
    if str(found.get("fact_type", "")).lower() not in set(FactType):
        found["fact_type"] = str(FactType.CONTEXT)
    if "sensitivity" in found and found["sensitivity"].lower() not in set(Sensitivity):
        found["sensitivity"] = str(Sensitivity.SECRET)  # a level nobody knows is no reason to show it
    return found


def _headed(section: Section, part: str) -> str:
    return f"{section.heading}\n\n{part}" if section.heading else part


def _own(key: str, taken: dict[str, int]) -> str:
    """Return the key, with a number where another section of the file has it already."""
    own, number = key, 1
    while own in taken:
        number += 1
        own = f"{key}~{number}"
    taken[own] = number
    return own


def _slug(heading: str) -> str:
    return "-".join(_WORD.findall(_plain(heading).lower())) or "-"


def _plain(heading: str) -> str:
    """Return a heading without its marks; without them no detector would know a secret again, so that goes first."""
    heading = masked(heading)
    return _HIDDEN.sub(lambda found: found[1] or "", heading).strip() or heading
