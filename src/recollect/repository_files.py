"""Reads the small files that a repository brings: as much as one has reason to hold, and anew only once it changed.

A stranger wrote them, and a hook reads them at each event: none of it takes more than time in proportion to its length.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

LARGEST: Final = 256 * 1024
"""Bytes of a file that is read whole."""
_MOST_PARTS: Final = 32  # of a dotted key: the parser takes the square of their number
_STRING_OR_COMMENT: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)|\'\'\'(?:[^\']|\'(?!\'\'))*+(?:\'\'\'|\Z)|"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\'|#[^\n]*+',
    re.DOTALL,
)
_LONG_KEY: Final = re.compile(rf'(?<![\w"-])(?:[\w"-]++[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}')


def beginning(file: Path, most: int) -> bytes:
    """Return at most so many bytes of a file; raise `OSError` for what cannot be read or is no regular file."""
    if not file.is_file():  # a pipe would be waited for, a device has no end
        raise FileNotFoundError(f"{file} is no file")
    with file.open("rb") as source:
        return source.read(most)


def text(file: Path) -> str:
    """Return a file's text; raise `ValueError` where it is no UTF-8 or too large, `OSError` where it cannot be read."""
    data = beginning(file, LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST:,} bytes")
    return data.decode()


def toml(file: Path) -> dict[str, Any]:
    """Return what a TOML file holds, to be read only, as it is kept until the file changes.

    Raises `ValueError` where it is no TOML or more than is read, `OSError` where it cannot be read.
    """
    there = file.stat()
    found = _cached_toml(str(file), (there.st_mtime_ns, there.st_ctime_ns, there.st_size, there.st_ino))
    if isinstance(found, str):
        raise ValueError(found)
    return found


def parse_toml(content: str) -> dict[str, Any]:
    """Read TOML; raise `ValueError` where it is none, is nested too deeply or has a key of too many parts."""
    plain = _STRING_OR_COMMENT.sub(lambda one: "" if one[0].startswith("#") else '""', content)
    if _LONG_KEY.search(plain):
        raise ValueError(f"it has a key of more than {_MOST_PARTS} parts")
    try:
        return tomllib.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


@lru_cache(maxsize=256)
def _cached_toml(file: str, stamp: tuple[int, ...]) -> dict[str, Any] | str:
    """Return the content of a TOML file with this time stamp, or the reason why it cannot be read."""
    del stamp
    try:
        return parse_toml(text(Path(file)))
    except ValueError as error:
        return str(error)
