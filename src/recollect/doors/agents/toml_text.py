"""Edits one table in TOML, and leaves comments, order and every other line as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recollect.repository_files import parse_toml


def parse(text: str) -> dict[str, Any]:
    """Read TOML; raise `ValueError` where it is damaged."""
    return parse_toml(text)


def put(text: str, path: Sequence[str], name: str, value: Mapping[str, Any]) -> str:
    """Return the text with `value` as the table `name` below `path`: at the end, or in place of the table there.

    Raises `ValueError` where the text cannot be read or something else stands in the way.
    """
    here = parse(text)
    for key in path:
        here = here.get(key, {})
        if not isinstance(here, dict):
            raise ValueError(f"`{key}` is no table")
    if name not in here:
        lines = _table_text([*path, name], value)
        newline = "\r\n" if "\r\n" in text else "\n"
        ended = text if not text or text.endswith("\n") else text + newline
        added = ended + (newline if ended else "") + lines.replace("\n", newline)
        if _is_toml(added):
            return added
    return _with_changed_keys(text, path, name, value, here.get(name))


def drop(text: str, path: Sequence[str], name: str) -> str:
    """Return the text without the table `name` below `path`; raise `ValueError` where there is none."""
    import tomlkit

    here: Any = parse(text)
    for key in [*path, name]:
        if not isinstance(here, dict) or key not in here:
            raise ValueError(f"there is no `{key}`")
        here = here[key]
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = _table_text([*path, name], here).replace("\n", newline)
    for known in (newline + lines, lines):
        if known in text:
            return text.replace(known, "", 1)
    document = tomlkit.parse(text)
    table: Any = document
    for key in path:
        table = table[key]
    del table[name]
    return tomlkit.dumps(document)


def _table_text(names: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return a table as TOML, with each nested table on a single line."""
    import tomlkit

    rows = [f"{tomlkit.key(key).as_string()} = {_inline_value(element)}" for key, element in value.items()]
    header = ".".join(tomlkit.key(name).as_string() for name in names)
    return "\n".join([f"[{header}]", *rows]) + "\n"


def _inline_value(value: object) -> str:
    """Return a value as TOML on a single line."""
    import tomlkit

    if isinstance(value, Mapping):
        table = tomlkit.inline_table()
        table.update(value)
        return table.as_string()
    return tomlkit.item(value).as_string()


def _with_changed_keys(text: str, path: Sequence[str], name: str, value: Mapping[str, Any], old: Any) -> str:
    """Return the text with only those keys of the table replaced whose values differ."""
    import tomlkit

    document = tomlkit.parse(text)
    table: Any = document
    for key in path:
        table = table[key]
    if not isinstance(old, dict):
        table[name] = value
        return tomlkit.dumps(document)
    for key, new in value.items():
        if old.get(key) != new:
            table[name][key] = new
    return tomlkit.dumps(document)


def _is_toml(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True
