"""Finds tokens with a known format, by the rows of `tokens.toml`, and long values that the text before them gives away.

Each pattern is linear in the text. Values that only a label gives away are found in `keyword_context.py`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from recollect.gate import heuristics
from recollect.gate.tables import Hinted, Lowered, compiled, either, table

_BEFORE: Final = r"[A-Za-z0-9_\-]"
_LEFT: Final = rf"(?:(?<!{_BEFORE})|(?<=\\[nrt]))"
_RIGHT: Final = r"(?![A-Za-z0-9])"
_LITERAL: Final = re.compile(r"⟨((?:[\w/\-](?![?*+{]))+)")
_KEY_NEAR: Final = re.compile(
    r"(?i)(?:api|access|secret|auth|private|signing|encryption|service|licen[cs]e|master|bot|admin)[\s_-]?key"
    r"|token(?![a-z]{2})|secret|passw|passphrase|credential"
)
_AWS_NEAR: Final = re.compile(r"(?i)aws|amazon|secret|\bs3\b|\biam\b")
_HASH_NEAR: Final = re.compile(
    r"(?i)public|sha\d|integrity|digest|hash|checksum|commit|ssh-|fingerprint|certificate|://"
)
_DEV_WORDS: Final = re.compile(
    r"(?i)(?:pass|password|passwd|pwd|pw|passphrase|secret|admin|root|guest|test|postgres|mysql|redis|mongo|example|dev"
    r"|token|key|credentials?|tiger|.)\d?"
)
_PORT: Final = re.compile(r"(?:\d{1,5}|port|PORT)(?:[/?,]|$)")
_DEV_USERS: Final = re.compile(r"(?i)(?:user(?:name)?|usr|me|you|someone|login|name|example|foo|test|scott|u|\W.*)?")
_DEV_HOSTS: Final = re.compile(
    r"(?i)(?:localhost|127\.|0\.0\.0\.0|\[?::1|host|server|example|domain|your|db\b|database\b|redis\b|postgres\b"
    r"|mysql\b|mongo(?:db)?\b|rabbitmq\b|cache\b|[<${\[])"
)
_RUN: Final = re.compile(r"(?<![\w/+.\-@%])(?:0x)?[A-Za-z0-9_\-+/]{20,}={0,2}(?![\w/])")
_PREFIXED: Final = re.compile(
    r"[a-z][a-z0-9]{1,11}(?:[_\-](?:live|prod|test|api|pat|sk|key|tok|token|secret|sec|adm|v\d)){0,2}[_\-](?P<s>[A-Za-z0-9]{32,80})"
)
_NAMED_KEY: Final = re.compile(r"(?i)key|token|secret|\bpat\b|license|bearer|appid|api")
_DIRECT: Final = re.compile(r"[\w\s\-]{0,12}[\"'`]?\s?(?:[:=]|=>)\s?[\"'`]?")
_PUBLIC: Final = re.compile(
    r"(?:pk|pub|public|pubkey|npub|id|ref|req|msg|evt|cus|sub|txn?|run|job|sha|md5|sha256|sha512)[_\-]"
)
_IDENTIFIED: Final = re.compile(r"(?i)(?:[a-f0-9]{24,}|[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12})")


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of token: its pattern, and a check of what matched."""

    kind: str
    source: str
    check: Callable[[re.Match[str]], bool]

    def find(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield kind, start and end of each token of this format."""
        for match in compiled(self.source).finditer(text):
            if self.check(match):
                yield self.kind, *match.span("s" if "s" in match.re.groupindex else 0)


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


def _aws_secret(run: str, before: str) -> bool:
    return (
        len(run) == 40
        and bool(_AWS_NEAR.search(before))
        and heuristics.high_entropy(run)
        and not re.search("[_-]", run)
    )


def _cloudflare(run: str, before: str) -> bool:
    near = before.lower()
    return 37 <= len(run) <= 45 and ("cloudflare" in near or "cf_" in near) and heuristics.high_entropy(run)


def _near_a_name(run: str, before: str) -> bool:
    near = before[-48:].rpartition("\n")[2]
    return bool(_KEY_NEAR.search(near)) and heuristics.high_entropy(run)


def _prefixed(run: str, _before: str) -> bool:
    """Say whether a run is a prefix and a long random body, as most vendors build their tokens today."""
    prefixed = _PREFIXED.fullmatch(run)
    return bool(prefixed and not _PUBLIC.match(run) and heuristics.high_entropy(prefixed["s"]))


def _near_a_vendor(run: str, before: str) -> bool:
    """Say whether a long value follows a vendor's name and a word for a key, or the name directly."""
    near = before[-64:].rpartition("\n")[2]
    vendor = next(iter(_vendors().finditer(near)), None)
    if vendor is None or heuristics.placeholder(run):
        return False
    between = near[vendor.end() :]
    named = _NAMED_KEY.search(between) or _DIRECT.fullmatch(between)
    return bool(named) and bool(_IDENTIFIED.fullmatch(run) or heuristics.key(run))


@cache
def _vendors() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<![a-z])(?:{either(table('labels')['vendors']['words'])})(?![a-z])")


def _url_password(match: re.Match[str]) -> bool:
    value = match["s"]
    if len(value) < 3 or heuristics.placeholder(value) or _PORT.match(value):
        return False
    if _DEV_WORDS.fullmatch(value) or value == match["user"]:
        return not (_DEV_USERS.fullmatch(match["user"]) or _DEV_HOSTS.match(match["host"]))
    return True


def _login_in_base64(match: re.Match[str]) -> bool:
    try:
        decoded = base64.b64decode(match["s"], validate=True)
    except (binascii.Error, ValueError):
        return False
    user, colon, value = decoded.partition(b":")
    return bool(user and colon and value) and decoded.isascii()


def _user_password(match: re.Match[str]) -> bool:
    return heuristics.given(match["s"])


def _header(match: re.Match[str]) -> bool:
    return _not_words(match) and not (":" in match["s"] or match["s"].startswith("base64"))


def _pgpass(match: re.Match[str]) -> bool:
    return heuristics.given(match["s"]) and not heuristics.common(match["s"])


def _key(match: re.Match[str]) -> bool:
    return heuristics.key(_secret(match))


def _opaque(match: re.Match[str]) -> bool:
    return heuristics.key(match["s"]) and not heuristics.common(match["s"])


# What a long run of characters is, by the text before it; the more precise come first.
_RUNS: Final[tuple[tuple[str, Callable[[str, str], bool]], ...]] = (
    ("AWS secret access key", _aws_secret),
    ("Cloudflare token", _cloudflare),
    ("API key or token", _near_a_name),
    ("API key or token", _near_a_vendor),
    ("API key or token", _prefixed),
)
_CHECKS: Final[dict[str, Callable[[re.Match[str]], bool]]] = {
    "token": _token,
    "mixed": _mixed,
    "random": _random,
    "words": _not_words,
    "key": _key,
    "url": _url_password,
    "opaque": _opaque,
    "login64": _login_in_base64,
    "user": _user_password,
    "header": _header,
    "pgpass": _pgpass,
}


def _source(pattern: str) -> str:
    """Write out ⟨ and ⟩; a literal that follows ⟨ goes before the look behind, so that it is searched for."""
    literal = _LITERAL.match(pattern)
    if literal:
        head = re.escape(literal[1])
        left = rf"{head}(?:(?<!{_BEFORE}{head})|(?<=\\[nrt]{head}))"
        pattern = left + pattern[literal.end() :]
    return pattern.replace("⟨", _LEFT).replace("⟩", _RIGHT)


@cache
def _formats() -> Hinted[Format]:
    return Hinted(
        (hints.split(" "), Format(kind, _source(pattern), _CHECKS[check[0] if check else "token"]))
        for kind, hints, pattern, *check in table("tokens")["tokens"]
    )


def tokens(text: str, lowered: Lowered) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each token with a known format; the most precise formats come first."""
    for one in _formats().within(lowered):
        yield from one.find(text)


def opaque(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each long run of characters that the text before it, or its build, gives away."""
    for run in _RUN.finditer(text):
        before = text[max(0, run.start() - 80) : run.start()]
        if not _HASH_NEAR.search(before[-64:]):
            kind = next((kind for kind, judge in _RUNS if judge(run[0].rstrip("="), before)), None)
            if kind is not None:
                yield kind, *run.span()
