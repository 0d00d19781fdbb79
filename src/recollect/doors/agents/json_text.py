"""Edits one entry, or one element of a list, in JSON with comments, and leaves every other character as it is.

Comments and trailing commas become spaces in a copy of the same length. The standard library reads that copy and tells
where each value begins and ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_SINGLE: Final = re.compile(r'\[\n\s*("(?:\\.|[^"\\])*")\n\s*\]')  # a list of one text fits its line
_INDENT: Final = re.compile(r"\n([ \t]+)\S")


class _Element(NamedTuple):
    start: int
    end: int
    comma: int | None


class _Member(NamedTuple):
    name: str
    start: int
    value: int
    end: int
    comma: int | None


def parse(text: str) -> dict[str, Any]:
    """Read JSON with comments and trailing commas; nothing but these is an empty object. Raises `ValueError`."""
    plain = _plain_json(text)
    try:
        found = json.loads(plain) if plain.strip() else {}
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it holds no object")
    return found


def put(text: str, path: Sequence[str], name: str, value: object) -> str:
    """Return the text with `value` under `name` in the object at `path`, made where it is not there.

    Raises `ValueError` where the text cannot be read or something else stands in the way.
    """
    plain, unit = _plain_json(text), _indent_of(text)
    if not plain.strip():
        text += "\n" if text.strip() and not text.endswith("\n") else ""
        return (
            text + _render_value(_nested_object([*path, name], value), unit, 0, _newline_of(text)) + _newline_of(text)
        )
    parse(text)
    start, names = plain.index("{"), [*path, name]
    for depth, key in enumerate(names):
        found = _member_named(plain, start, key)
        if found is None:
            return _insert_first(text, plain, start, key, _nested_object(names[depth + 1 :], value), unit, depth)
        if depth == len(path):
            return text[: found.value] + _render_value(value, unit, depth + 1, _newline_of(text)) + text[found.end :]
        if plain[found.value] != "{":
            raise ValueError(f"`{key}` is no object")
        start = found.value
    return text


def drop(text: str, path: Sequence[str], name: str) -> str:
    """Return the text without `name` in the object at `path`, and without objects on the path that held nothing else.

    Raises `ValueError` where the text cannot be read or has no such name.
    """
    parse(text)
    plain = _plain_json(text)
    starts = [plain.index("{")]
    for key in path:
        found = _member_named(plain, starts[-1], key)
        if found is None or plain[found.value] != "{":
            raise ValueError(f"there is no `{key}`")
        starts.append(found.value)
    names, cut = [*path, name], len(path)
    while cut and len(_members_of(plain, starts[cut])) == 1 and _has_no_comment(text, plain, starts[cut]):
        cut -= 1
    return _without_member(text, plain, starts[cut], names[cut])


def append(text: str, path: Sequence[str], name: str, value: object) -> str:
    """Return the text with `value` as the last of the list `name` in the object at `path`, made where it is not there.

    Raises `ValueError` where the text cannot be read or something else stands in the way.
    """
    found = _list_elements(text, path, name)
    if not found:
        return put(text, path, name, [value])
    last, plain, newline = found[-1], _plain_json(text), _newline_of(text)
    at = last.end if last.comma is None else last.comma + 1
    comma = "," if last.comma is None else ""
    begin = text.rfind("\n", 0, last.start) + 1
    if text[begin : last.start].strip():  # the list stands on one line
        return f"{text[:at]}{comma} {json.dumps(value, ensure_ascii=False)}{text[at:]}"
    line = text.find(newline, at)
    end = line if line >= 0 and not plain[at:line].strip() else at  # a comment stays with what it is on
    item = text[begin : last.start] + _render_value(value, _indent_of(text), len(path) + 2, newline)
    return f"{text[:at]}{comma}{text[at:end]}{newline}{item}{text[end:]}"


def replace_element(text: str, path: Sequence[str], name: str, index: int, value: object) -> str:
    """Return the text with `value` in the place of an element of a list; raise `ValueError` where there is no list."""
    element = _existing_elements(text, path, name)[index]
    return (
        text[: element.start]
        + _render_value(value, _indent_of(text), len(path) + 2, _newline_of(text))
        + text[element.end :]
    )


def drop_element(text: str, path: Sequence[str], name: str, index: int) -> str:
    """Return the text without an element of a list, and without the list where it held nothing else.

    Raises `ValueError` where there is no list.
    """
    found = _existing_elements(text, path, name)
    if len(found) == 1:
        return drop(text, path, name)
    element = found[index]
    begin, stop = _whole_lines(text, element.start, element.end if element.comma is None else element.comma + 1)
    if element.comma is None:  # the comma before it would be left over
        comma = found[index - 1].comma or 0
        if not text[comma + 1 : element.start].strip(" "):
            return text[:comma] + text[element.end :]
        return text[:comma] + text[comma + 1 : begin] + text[stop:]
    return text[:begin] + text[stop:]


def _existing_elements(text: str, path: Sequence[str], name: str) -> list[_Element]:
    if not (found := _list_elements(text, path, name)):
        raise ValueError(f"there is no `{name}`")
    return found


def _list_elements(text: str, path: Sequence[str], name: str) -> list[_Element]:
    """Return the elements of a list, none where it is empty or absent; raise `ValueError` where it is no list."""
    parse(text)
    plain, bare = _plain_json(text), _without_comments(text)
    if not plain.strip():
        return []
    start = plain.index("{")
    for key in (*path, name):
        member = _member_named(plain, start, key) if plain[start] == "{" else None
        if member is None:
            return []
        start = member.value
    if plain[start] != "[":
        raise ValueError(f"`{name}` is no list")
    decoder, found, at = json.JSONDecoder(), list[_Element](), _skip_space(plain, start + 1)
    while plain[at] != "]":
        _, end = decoder.raw_decode(plain, at)
        comma = after if bare[after := _skip_space(bare, end)] == "," else None
        found.append(_Element(at, end, comma))
        at = _skip_space(plain, end if comma is None else comma + 1)
    return found


def _has_no_comment(text: str, plain: str, start: int) -> bool:
    """Return whether an object of a single member holds no comment beside that member."""
    [member] = _members_of(plain, start)
    beside = text[start + 1 : member.start] + text[member.end : _closing_brace(plain, start)]
    return not beside.replace(",", "").strip()


def _without_member(text: str, plain: str, start: int, name: str) -> str:
    """Return the text without the member `name` of the object at `start`, its comma and its comment lines."""
    members = _members_of(plain, start)
    index, member = next((i, member) for i, member in enumerate(members) if member.name == name)
    bare = _without_comments(text)
    after = _skip_space(bare, member.end)
    stop = after + 1 if bare[after] == "," else member.end
    if stop == member.end and index:  # the comma before it would be left over
        comma = members[index - 1].comma or 0
        begin, stop = _whole_lines(text, member.start, stop)
        return text[:comma] + text[comma + 1 : begin] + text[stop:]
    begin, stop = _whole_lines(text, member.start, stop)
    rest = text[:begin] + text[stop:]
    end = _closing_brace(_plain_json(rest), start) if len(members) == 1 else start
    return rest[: start + 1] + rest[end:] if end > start and not rest[start + 1 : end].strip() else rest


def _whole_lines(text: str, begin: int, stop: int) -> tuple[int, int]:
    """Return the span that goes: whole lines where nothing else stands on them."""
    line = text.rfind("\n", 0, begin) + 1
    end = text.find("\n", stop)
    if end >= 0 and not text[line:begin].strip() and not text[stop:end].strip():
        return line, end + 1
    while text[stop : stop + 1] in (" ", "\t"):
        stop += 1
    return begin, stop


def _insert_first(text: str, plain: str, start: int, name: str, value: object, unit: str, depth: int) -> str:
    """Insert a member as the first of the object at `start`; an object on a single line stays there."""
    newline, end, members = _newline_of(text), _closing_brace(plain, start), _members_of(plain, start)
    inner = text[start + 1 : end]
    key = f"{json.dumps(name, ensure_ascii=False)}: "
    if members and "\n" not in inner:
        return f"{text[: start + 1]}{key}{json.dumps(value, ensure_ascii=False)}, {text[start + 1 :].lstrip(' ')}"
    item = newline + unit * (depth + 1) + key + _render_value(value, unit, depth + 1, newline)
    if members:
        line = inner[: inner.index("\n")].rstrip("\r")
        if not plain[start + 1 : start + 1 + len(line)].strip():  # a comment after the brace stays there
            at = start + 1 + len(line)
            return text[:at] + item + "," + text[at:]
        return text[: start + 1] + item + "," + newline + unit * (depth + 1) + text[start + 1 :].lstrip(" \t")
    tail = inner if "\n" in inner else (inner if inner.strip() else "") + newline + unit * depth
    return text[: start + 1] + item + tail + text[end:]


def _members_of(plain: str, start: int) -> list[_Member]:
    """Return the members of the object that begins at `start`."""
    decoder, found, at = json.JSONDecoder(), list[_Member](), _skip_space(plain, start + 1)
    while plain[at] != "}":
        name, end = decoder.raw_decode(plain, at)
        value = _skip_space(plain, _skip_space(plain, end) + 1)
        _, stop = decoder.raw_decode(plain, value)
        after = _skip_space(plain, stop)
        comma = after if plain[after] == "," else None
        found.append(_Member(name, at, value, stop, comma))
        at = after if comma is None else _skip_space(plain, after + 1)
    return found


def _member_named(plain: str, start: int, name: str) -> _Member | None:
    found = [member for member in _members_of(plain, start) if member.name == name]
    if len(found) > 1:
        raise ValueError(f"`{name}` stands there twice")
    return found[0] if found else None


def _closing_brace(plain: str, start: int) -> int:
    """Return the offset of the brace that closes the object which begins at `start`."""
    members = _members_of(plain, start)
    return _skip_space(plain, members[-1].end if members else start + 1)


def _nested_object(names: Sequence[str], value: object) -> object:
    for name in reversed(names):
        value = {name: value}
    return value


def _render_value(value: object, unit: str, depth: int, newline: str) -> str:
    lines = _SINGLE.sub(r"[\1]", json.dumps(value, ensure_ascii=False, indent=unit)).split("\n")
    return (newline + unit * depth).join(lines)


def _indent_of(text: str) -> str:
    found = _INDENT.search(_without_comments(text))
    return found[1] if found else "  "


def _newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)


def _plain_json(text: str) -> str:
    return _LAST_COMMA.sub(lambda match: match[1] or " ", _without_comments(text))
