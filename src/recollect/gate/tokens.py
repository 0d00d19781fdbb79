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
from recollect.gate.tables import Hinted, Lowered, compiled_pattern, pattern, table
from recollect.gate.time_limit import check_time

Check: TypeAlias = Callable[[re.Match[str]], bool]
Found: TypeAlias = Iterator[tuple[str, int, int]]

_BEFORE: Final = r"[A-Za-z0-9_\-]"
_LEFT: Final = rf"(?:(?<!{_BEFORE})|(?<=\\[nrt]))"
_RIGHT: Final = r"(?![A-Za-z0-9])"
_LITERAL: Final = re.compile(r"⟨((?:[\w/\-](?![?*+{]))+)")


def tokens(text: str, lowered: Lowered) -> Found:
    """Yield kind, start and end of each token with a known format; the most precise formats come first."""
    for kind, source, check in _token_formats().within(lowered):
        check_time()
        for match in compiled_pattern(source).finditer(text):
            if check(match):
                yield kind, *match.span("s" if "s" in match.re.groupindex else 0)


def opaque_tokens(text: str) -> Found:
    """Yield kind, start and end of each long run of characters that its form or the text before it marks as a token."""
    for run in pattern("run").finditer(text):
        before = text[max(0, run.start() - 80) : run.start()]
        if not pattern("hash_near").search(before[-64:]):
            kind = next((kind for kind, judge in _RUNS if judge(run[0].rstrip("="), before)), None)
            if kind is not None:
                yield kind, *run.span()


@cache
def _token_formats() -> Hinted[tuple[str, str, Check]]:
    return Hinted(
        (hints.split(" "), (kind, _pattern_source(source), _CHECKS[check[0] if check else "token"]))
        for kind, hints, source, *check in table("tokens")["tokens"]
    )


def _pattern_source(source: str) -> str:
    """Return the pattern with ⟨ and ⟩ written out; a literal after ⟨ goes before the look-behind, which is faster."""
    if literal := _LITERAL.match(source):
        head = re.escape(literal[1])
        source = rf"{head}(?:(?<!{_BEFORE}{head})|(?<=\\[nrt]{head}))" + source[literal.end() :]
    return source.replace("⟨", _LEFT).replace("⟩", _RIGHT)


def _secret_in(match: re.Match[str]) -> str:
    return match["s"] if "s" in match.re.groupindex else match[0]


def _is_real_token(match: re.Match[str]) -> bool:
    return heuristics.is_real_token(_secret_in(match))


def _is_mixed_token(match: re.Match[str]) -> bool:
    value = _secret_in(match)
    return heuristics.is_real_token(value) and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _is_random_token(match: re.Match[str]) -> bool:
    return heuristics.is_real_token(match[0]) and heuristics.has_high_entropy(match[0])


def _is_not_words(match: re.Match[str]) -> bool:
    """Return whether the secret in a match is neither a placeholder nor made of words."""
    value = _secret_in(match)
    return not heuristics.is_placeholder(value) and not heuristics.is_made_of_words(value)


def _is_header_secret(match: re.Match[str]) -> bool:
    return _is_not_words(match) and ":" not in match["s"] and not match["s"].startswith("base64")


def _is_pgpass_password(match: re.Match[str]) -> bool:
    return heuristics.is_plausible_password(match["s"]) and not heuristics.is_code_name(match["s"])


def _url_user_is_token(match: re.Match[str]) -> bool:
    """Return whether the user part of a matched URL looks like a token, not like a name."""
    return heuristics.looks_like_key(match["s"]) and not heuristics.is_common_name(match["s"])


def _is_url_password(match: re.Match[str]) -> bool:
    """Return whether the password of a matched URL is real, not a port, a placeholder or a development default."""
    value = match["s"]
    if len(value) < 3 or heuristics.is_placeholder(value) or pattern("port").match(value):
        return False
    if pattern("dev_words").fullmatch(value) or value == match["user"]:
        return not (pattern("dev_users").fullmatch(match["user"]) or pattern("dev_hosts").match(match["host"]))
    return True


def _decodes_to_login(match: re.Match[str]) -> bool:
    """Return whether the matched base64 decodes to `user:password`."""
    try:
        decoded = base64.b64decode(match["s"], validate=True)
    except (binascii.Error, ValueError):
        return False
    user, colon, value = decoded.strip(b"\0").replace(b"\0", b":").partition(b":")
    return bool(user and colon and value) and decoded.isascii()


_CHECKS: Final[dict[str, Check]] = {
    "token": _is_real_token,
    "mixed": _is_mixed_token,
    "random": _is_random_token,
    "words": _is_not_words,
    "key": lambda match: heuristics.looks_like_key(_secret_in(match)),
    "outstanding": lambda match: heuristics.stands_out_as_password(match["s"]),
    "beside": lambda match: heuristics.is_adjacent_password(match["s"]),
    "told": lambda match: heuristics.is_stated_password(match["s"]) and not heuristics.is_expression(match["s"]),
    "user": lambda match: heuristics.is_plausible_password(match["s"]),
    "url": _is_url_password,
    "opaque": _url_user_is_token,
    "login64": _decodes_to_login,
    "header": _is_header_secret,
    "pgpass": _is_pgpass_password,
}


def _is_aws_secret(run: str, before: str) -> bool:
    likely = len(run) == 40 and not re.search("[_-]", run)
    return likely and bool(pattern("aws_near").search(before)) and heuristics.has_high_entropy(run)


def _is_cloudflare_token(run: str, before: str) -> bool:
    near = before.lower()
    return 37 <= len(run) <= 45 and ("cloudflare" in near or "cf_" in near) and heuristics.has_high_entropy(run)


def _follows_key_name(run: str, before: str) -> bool:
    near = before[-48:].rpartition("\n")[2]
    return bool(pattern("key_near").search(near)) and heuristics.has_high_entropy(run)


def _follows_vendor_name(run: str, before: str) -> bool:
    """Return whether a long value follows a vendor's name and a word for a key, or the name directly."""
    near = before[-64:].rpartition("\n")[2]
    vendor = pattern("vendor").search(near)
    if vendor is None or heuristics.is_placeholder(run):
        return False
    between = near[vendor.end() :]
    if pattern("public_id").search(between):
        return False
    named = pattern("named_key").search(between) or pattern("direct").fullmatch(between)
    return bool(named) and bool(pattern("identified").fullmatch(run) or heuristics.looks_like_key(run))


def _has_token_prefix(run: str, _before: str) -> bool:
    """Return whether a run is a prefix and a long random body, as most vendors build their tokens today."""
    match = pattern("prefixed").fullmatch(run)
    return bool(match and not pattern("public").match(run) and heuristics.has_high_entropy(match["s"]))


# What a long run of characters is, by the text before it; the more precise come first.
_RUNS: Final[tuple[tuple[str, Callable[[str, str], bool]], ...]] = (
    ("AWS secret access key", _is_aws_secret),
    ("Cloudflare token", _is_cloudflare_token),
    ("API key or token", _follows_key_name),
    ("API key or token", _follows_vendor_name),
    ("API key or token", _has_token_prefix),
)
