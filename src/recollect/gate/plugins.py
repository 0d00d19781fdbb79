"""Asks detect-secrets' own plugins, called directly: no settings, no filters, no pragma comments, no network.

The library is imported once, on the first scan; nothing else in Recollect imports it. `tokens.toml` names the plugins.
Entropy, keywords, public addresses and basic auth raise alarms on ordinary notes; OpenAI's and npm's patterns are
quadratic: the gate has stricter or linear ones of its own for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any, Final

from recollect.gate import heuristics
from recollect.gate.tables import table
from recollect.gate.time_limit import check_time

_LOADING: Final = Lock()  # its modules import each other in a circle: a second thread would meet half of one
_WINDOW: Final = 1_024
_OVERLAP: Final = 256
_TOKEN_LIMIT: Final = 4_096
_GAP: Final = re.compile(r"(?<=[ \t]{3})[ \t]+")
_TOKEN_AFTER: Final = re.compile(r"[\w+/=.~\-]*")
_BEFORE_END: Final = re.compile(r"[^\w+/.~\-]")


def plugin_secrets(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each secret that the plugins of detect-secrets find."""
    for offset, window in _text_windows(text):
        check_time()
        piece = _shortened_gaps(window)
        lowered = piece.lower()
        with _LOADING:
            plugins = _hinted_plugins()
        for kind, hints, loose, plugin in plugins:
            values = list(plugin.analyze_string(piece)) if any(hint in lowered for hint in hints) else []
            if not values or (loose and not any(heuristics.looks_like_key(value.strip(' "=:')) for value in values)):
                continue
            last = 0
            for match in (match for denied in plugin.denylist for match in denied.finditer(piece)):
                if offset + match.end() > last:
                    first, last = _widen_to_token(text, offset + match.start(), offset + match.end())
                    if heuristics.is_real_token(text[first:last]):
                        yield kind, first, last


def _shortened_gaps(window: str) -> str:
    """Return the text with a NUL for each blank after three in a row; some patterns are cubic in a run of blanks."""
    return _GAP.sub(lambda gap: "\0" * len(gap[0]), window)


@cache
def _hinted_plugins() -> tuple[tuple[str, tuple[str, ...], bool, Any], ...]:
    """Return each plugin with its kind, its hints, and whether its findings must look like a key."""
    found = []
    for kind, hints, path, *loose in table("tokens")["plugins"]:
        module, _, name = path.partition(".")
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        found.append((kind, tuple(hints.split(" ")), bool(loose), plugin))
    return tuple(found)


def _text_windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield the offset and the text of each window, cut at white space; a plugin's pattern sees a window at a time."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _WINDOW)
        space = max(text.rfind("\n", start + _OVERLAP, end), text.rfind(" ", end - _OVERLAP, end))
        if end < len(text) and space > 0:
            yield start, text[start:space]
            start = space
            continue
        yield start, text[start:end]
        if end == len(text):
            return
        start = end - _OVERLAP


def _widen_to_token(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of the whole token, because several plugins report only its first part."""
    reversed_before = text[max(0, start - _OVERLAP) : start][::-1]
    stopped = _BEFORE_END.search(reversed_before)
    after = _TOKEN_AFTER.match(text, end, end + _TOKEN_LIMIT)
    stop = end + len(after[0].rstrip(".")) if after else end
    return start - (stopped.start() if stopped else len(reversed_before)), stop
