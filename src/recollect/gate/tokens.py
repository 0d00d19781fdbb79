"""Finds tokens with a known format, by the rows of `tokens.toml`, and long values that the text before them gives away.

Values that only a label gives away are found in `keyword_context.py`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, TypeAlias

from recollect.gate import heuristics
from recollect.gate.tables import Hinted, Lowered, compiled, pattern, table
from recollect.gate.time_limit import check_time

Check: TypeAlias = Callable[[re.Match[str]], bool]
Found: TypeAlias = Iterator[tuple[str, int, int]]

_BEFORE: Final = r"[A-Za-z0-9_\-]"
_LEFT: Final = rf"(?:(?<!{_BEFORE})|(?<=\\[nrt]))"
_RIGHT: Final = r"(?![A-Za-z0-9])"
_LITERAL: Final = re.compile(r"⟨((?:[\w/\-](?![?*+{]))+)")


def tokens(text: str, lowered: Lowered) -> Found:
    """Yield kind, start and end of each token with a known format; the most precise formats come first."""
    for kind, source, check in _formats().within(lowered):
        check_time()
        for match in compiled(source).finditer(text):
            if check(match):
                yield kind, *match.span("s" if "s" in match.re.groupindex else 0)


def opaque(text: str) -> Found:
    """Yield kind, start and end of each long run of characters that the text before it, or its build, gives away."""
    for run in pattern("run").finditer(text):
        before = text[max(0, run.start() - 80) : run.start()]
        if not pattern("hash_near").search(before[-64:]):
            kind = next((kind for kind, judge in _RUNS if judge(run[0].rstrip("="), before)), None)
            if kind is not None:
                yield kind, *run.span()


@cache
def _formats() -> Hinted[tuple[str, str, Check]]:
    return Hinted(
        (hints.split(" "), (kind, _source(source), _CHECKS[check[0] if check else "token"]))
        for kind, hints, source, *check in table("tokens")["tokens"]
    )


def _source(source: str) -> str:
    """Write out ⟨ and ⟩; a literal that follows ⟨ goes before the look behind, so that it is searched for."""
    if literal := _LITERAL.match(source):
        head = re.escape(literal[1])
        source = rf"{head}(?:(?<!{_BEFORE}{head})|(?<=\\[nrt]{head}))" + source[literal.end() :]
    return source.replace("⟨", _LEFT).replace("⟩", _RIGHT)


def _secret(match: re.Match[str]) -> str:
    return match["s"] if "s" in match.re.groupindex else match[0]


def _token(match: re.Match[str]) -> bool:
    return heuristics.real_token(_secret(match))


def _mixed(match: re.Match[str]) -> bool:
    value = _secret(match)
    return heuristics.real_token(value) and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _random(match: re.Match[str]) -> bool:
    return heuristics.real_token(match[0]) and heuristics.high_entropy(match[0])


def _not_words(match: re.Match[str]) -> bool:
    value = _secret(match)
    return not heuristics.placeholder(value) and not heuristics.made_of_words(value)


def _header(match: re.Match[str]) -> bool:
    return _not_words(match) and ":" not in match["s"] and not match["s"].startswith("base64")


def _pgpass(match: re.Match[str]) -> bool:
    return heuristics.plausible_password(match["s"]) and not heuristics.named(match["s"])


def _opaque_user(match: re.Match[str]) -> bool:
    return heuristics.key(match["s"]) and not heuristics.common(match["s"])


def _url_password(match: re.Match[str]) -> bool:
    value = match["s"]
    if len(value) < 3 or heuristics.placeholder(value) or pattern("port").match(value):
        return False
    if pattern("dev_words").fullmatch(value) or value == match["user"]:
        return not (pattern("dev_users").fullmatch(match["user"]) or pattern("dev_hosts").match(match["host"]))
    return True


def _login_in_base64(match: re.Match[str]) -> bool:
    try:
        decoded = base64.b64decode(match["s"], validate=True)
    except (binascii.Error, ValueError):
        return False
    user, colon, value = decoded.strip(b"\0").replace(b"\0", b":").partition(b":")
    return bool(user and colon and value) and decoded.isascii()


_CHECKS: Final[dict[str, Check]] = {
    "token": _token,
    "mixed": _mixed,
    "random": _random,
    "words": _not_words,
    "key": lambda match: heuristics.key(_secret(match)),
    "outstanding": lambda match: heuristics.stands_out(match["s"]),
    "beside": lambda match: heuristics.adjacent_password(match["s"]),
    "told": lambda match: heuristics.stated_password(match["s"]) and not heuristics.built(match["s"]),
    "user": lambda match: heuristics.plausible_password(match["s"]),
    "url": _url_password,
    "opaque": _opaque_user,
    "login64": _login_in_base64,
    "header": _header,
    "pgpass": _pgpass,
}


def _aws_secret(run: str, before: str) -> bool:
    likely = len(run) == 40 and not re.search("[_-]", run)
    return likely and bool(pattern("aws_near").search(before)) and heuristics.high_entropy(run)


def _cloudflare(run: str, before: str) -> bool:
    near = before.lower()
    return 37 <= len(run) <= 45 and ("cloudflare" in near or "cf_" in near) and heuristics.high_entropy(run)


def _near_a_name(run: str, before: str) -> bool:
    near = before[-48:].rpartition("\n")[2]
    return bool(pattern("key_near").search(near)) and heuristics.high_entropy(run)


def _near_a_vendor(run: str, before: str) -> bool:
    """Say whether a long value follows a vendor's name and a word for a key, or the name directly."""
    near = before[-64:].rpartition("\n")[2]
    vendor = pattern("vendor").search(near)
    if vendor is None or heuristics.placeholder(run):
        return False
    between = near[vendor.end() :]
    if pattern("public_id").search(between):
        return False
    named = pattern("named_key").search(between) or pattern("direct").fullmatch(between)
    return bool(named) and bool(pattern("identified").fullmatch(run) or heuristics.key(run))


def _prefixed(run: str, _before: str) -> bool:
    """Say whether a run is a prefix and a long random body, as most vendors build their tokens today."""
    match = pattern("prefixed").fullmatch(run)
    return bool(match and not pattern("public").match(run) and heuristics.high_entropy(match["s"]))


# What a long run of characters is, by the text before it; the more precise come first.
_RUNS: Final[tuple[tuple[str, Callable[[str, str], bool]], ...]] = (
    ("AWS secret access key", _aws_secret),
    ("Cloudflare token", _cloudflare),
    ("API key or token", _near_a_name),
    ("API key or token", _near_a_vendor),
    ("API key or token", _prefixed),
)
