"""Cuts Markdown into sections by its headings. Code, comments and front matter are never taken for headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_ATX: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_SETEXT: Final = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_FENCE: Final = re.compile(r"[ \t]*(?:[-*+>]|\d{1,3}[.)])?[ \t]*(`{3,}|~{3,})(.*)$")
_PLAIN: Final = re.compile(r" {0,3}[^\s#>|<*+`~-]")
_PAIR: Final = re.compile(r"([A-Za-z_][\w-]*)\s*:\s*(.*)$")
_ENTRY: Final = re.compile(r"\s*-\s+(.*)$")


@dataclass(slots=True)
class Section:
    """A heading and what stands under it up to the next one; `path` are the headings down to it, its own last."""

    line: int
    path: tuple[str, ...]
    heading: str = ""
    body: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return what stands under the heading."""
        return "\n".join(self.body).strip("\n").rstrip()


def sections(text: str, first: int = 1) -> Iterator[Section]:
    """Yield the sections in their order, empty ones too; `first` is the number of the text's first line."""
    now = Section(first, ())
    levels: list[tuple[int, str]] = []
    fence, comment = "", False
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif comment:
            comment = "-->" not in line
        elif opening := _opens(line):
            fence = opening
        elif (heading := _heading(lines, number)) is not None:
            yield now
            level, title = heading
            levels = [*(one for one in levels if one[0] < level), (level, title)]
            now = Section(first + number, tuple(one for _, one in levels if one), line.strip())
            continue
        elif number and _underlines(lines, number) and _heading(lines, number - 1) is not None:
            continue  # the line under a heading belongs to it
        else:
            comment = "<!--" in line and "-->" not in line.partition("<!--")[2]
        now.body.append(line)
    yield now


def front_matter(text: str) -> tuple[dict[str, str | list[str]], str, int]:
    """Return the plain pairs of a YAML head, the text after it, and the number of that text's first line.

    Only names, texts and lists of texts are understood; whatever else stands there is passed over.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text, 1
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    head = lines[1:end]
    if end is None or not any(_PAIR.match(line) for line in head):
        return {}, text, 1
    found: dict[str, str | list[str]] = {}
    name = ""
    for line in head:
        if pair := _PAIR.match(line):
            name, value = pair[1].lower(), pair[2].strip()
            found[name] = _listed(value) if value.startswith("[") else _unquoted(value)
        elif (entry := _ENTRY.match(line)) and name and not (isinstance(found[name], str) and found[name]):
            held = found[name]
            found[name] = [*(held if isinstance(held, list) else []), _unquoted(entry[1].strip())]
    return found, "\n".join(lines[end + 1 :]), end + 2


def cut(text: str, most: int) -> list[str]:
    """Cut a text into parts of at most `most` characters: between paragraphs, else lines, else anywhere."""
    if len(text) <= most:
        return [text]
    for gap in ("\n\n", "\n"):
        at = text.rfind(gap, 1, most)
        if at > 0 and text[:at].strip():
            return [text[:at].rstrip(), *cut_rest(text[at:], most)]
    return [text[:most], *cut_rest(text[most:], most)]


def cut_rest(text: str, most: int) -> list[str]:
    """Cut what is left after a first part."""
    left = text.lstrip("\n")
    return cut(left, most) if left.strip() else []


def _opens(line: str) -> str:
    """Return the fence that opens on this line, or nothing."""
    found = _FENCE.match(line)
    if found is None or (found[1][0] == "`" and "`" in found[2]):
        return ""
    return found[1]


def _closes(line: str, fence: str) -> bool:
    plain = line.strip().lstrip("> ")
    return len(plain) >= len(fence) and set(plain) == {fence[0]}


def _heading(lines: list[str], number: int) -> tuple[int, str] | None:
    """Return the level and text of the heading on this line; one may be underlined instead of marked."""
    line = lines[number]
    if found := _ATX.match(line):
        return len(found[1]), (found[2] or "").strip()
    if number + 1 < len(lines) and _PLAIN.match(line) and _underlines(lines, number + 1):
        return (1 if "=" in lines[number + 1] else 2), line.strip()
    return None


def _underlines(lines: list[str], number: int) -> bool:
    """Say whether this line underlines the one before it: a paragraph of one line."""
    alone = number < 2 or not lines[number - 2].strip()
    return alone and bool(_SETEXT.match(lines[number])) and bool(_PLAIN.match(lines[number - 1]))


def _listed(value: str) -> list[str]:
    inner = value.strip("[]").split(",")
    return [one for one in (_unquoted(part.strip()) for part in inner) if one]


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value.partition(" #")[0].strip()
