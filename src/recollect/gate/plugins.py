"""Asks detect-secrets' own plugins, called directly: no settings, no filters, no pragma comments, no network.

The library is imported once, on the first scan; nothing else in Recollect imports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

from recollect.gate import heuristics

# Entropy, public addresses and basic auth raise alarms on ordinary notes; OpenAI's and npm's patterns are quadratic.
# `detectors.py` has stricter or linear ones for all of them.
# Each plugin with the kind it finds and the literals of which one must stand in what it reads.
_PLUGINS: Final = {
    "artifactory.ArtifactoryDetector": ("Artifactory credential", "akc ap"),
    "aws.AWSKeyDetector": ("AWS access key", "akia asia abia acca a3t aws"),
    "azure_storage_key.AzureStorageKeyDetector": ("Azure key", "accountkey"),
    "cloudant.CloudantDetector": ("Cloudant credential", "cloudant clou cl_ cl- clapi clkey clp cltoken"),
    "discord.DiscordBotTokenDetector": ("Discord bot token", "."),
    "github_token.GitHubTokenDetector": ("GitHub token", "gh"),
    "gitlab_token.GitLabTokenDetector": ("GitLab token", "gl gr1348941"),
    "ibm_cloud_iam.IbmCloudIamDetector": ("IBM Cloud key", "key pwd pass token"),
    "ibm_cos_hmac.IbmCosHmacDetector": ("IBM storage credential", "secret"),
    "jwt.JwtTokenDetector": ("JSON web token", "eyj"),
    "mailchimp.MailchimpDetector": ("Mailchimp key", "-us"),
    "private_key.PrivateKeyDetector": ("private key", "begin putty private"),
    "pypi_token.PypiTokenDetector": ("PyPI token", "pypi-"),
    "sendgrid.SendGridDetector": ("SendGrid key", "sg."),
    "slack.SlackDetector": ("Slack token", "xox slack"),
    "softlayer.SoftlayerDetector": ("SoftLayer credential", "softlayer sl_ sl- slapi slkey slp sltoken"),
    "square_oauth.SquareOAuthDetector": ("Square secret", "sq0"),
    "stripe.StripeDetector": ("Stripe key", "k_live"),
    "telegram_token.TelegramBotTokenDetector": ("Telegram bot token", ":"),
    "twilio.TwilioKeyDetector": ("Twilio key", "ac sk"),
}
_LOOSE: Final = frozenset({"Artifactory credential", "IBM Cloud key", "Cloudant credential", "SoftLayer credential"})
_KEYWORD: Final = "password or key"
_WINDOW: Final = 1_024
_OVERLAP: Final = 256
_LINE_LIMIT: Final = 256
_TOKEN_LIMIT: Final = 4_096
_GAP: Final = re.compile(r"(?<=[ \t]{3})[ \t]+")
_NAMED: Final = re.compile(r"(?i)key|pass|pwd|secret|contrase")
_SUFFIX: Final = re.compile(
    r"(?i)(?:key|pass|passw(?:or)?d|pwd|secret|contrase.a)s?(?:[_\-]?\d{0,2})[\"'`\])}]{0,3}\s*[:=>!]{1,3}[\s*]*[\"'`]?$"
)
_TOKEN_AFTER: Final = re.compile(r"[\w+/=.~\-]*")
_BEFORE_END: Final = re.compile(r"[^\w+/.~\-]")


@cache
def _plugins() -> tuple[tuple[str, tuple[str, ...], Any], ...]:
    found = []
    for path, (kind, hints) in _PLUGINS.items():
        module, _, name = path.partition(".")
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        found.append((kind, tuple(hints.split(" ")), plugin))
    return tuple(found)


@cache
def _keyword() -> tuple[Any, Any]:
    module = import_module("detect_secrets.plugins.keyword")
    wanted = {module.FOLLOWED_BY_COLON_REGEX: 4, module.FOLLOWED_BY_EQUAL_SIGNS_REGEX: 5}
    return module.KeywordDetector(), wanted


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Cut the text where white space allows, so that no plugin's pattern meets more than a window at a time."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _WINDOW)
        if end < len(text):
            space = max(text.rfind("\n", start + _OVERLAP, end), text.rfind(" ", end - _OVERLAP, end))
            if space > 0:
                yield start, text[start:space]
                start = space
                continue
        yield start, text[start:end]
        if end == len(text):
            return
        start = end - _OVERLAP


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Stretch a span over the whole token: several plugins report only the first part of what they found."""
    reversed_before = text[max(0, start - _OVERLAP) : start][::-1]
    stopped = _BEFORE_END.search(reversed_before)
    after = _TOKEN_AFTER.match(text, end, end + _TOKEN_LIMIT)
    stop = after.end() if after else end
    while stop > end and text[stop - 1] == ".":
        stop -= 1
    return start - (stopped.start() if stopped else len(reversed_before)), stop


def _spans(plugin: Any, piece: str) -> Iterator[tuple[int, int]]:
    for pattern in plugin.denylist:
        for match in pattern.finditer(piece):
            yield match.span()


def library(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of what the library's plugins find."""
    for offset, window in _windows(text):
        piece = _GAP.sub(lambda gap: "\0" * len(gap[0]), window)  # several patterns are cubic in a run of spaces
        lowered = piece.lower()
        for kind, hints, plugin in _plugins():
            if not any(hint in lowered for hint in hints):
                continue
            values = list(plugin.analyze_string(piece))
            if not values or (kind in _LOOSE and not any(heuristics.key(value.strip(' "=:')) for value in values)):
                continue
            last = 0
            for start, end in _spans(plugin, piece):
                if offset + end <= last:
                    continue
                first, last = _widened(text, offset + start, offset + end)
                if heuristics.real_token(text[first:last]):
                    yield kind, first, last
        if _NAMED.search(piece):
            yield from _keywords(text, offset, piece)


def _keywords(text: str, offset: int, piece: str) -> Iterator[tuple[str, int, int]]:
    plugin, wanted = _keyword()
    at = offset
    for line in piece.splitlines(keepends=True):
        for cut in range(0, len(line), _LINE_LIMIT):
            for value in plugin.analyze_string(line[cut : cut + _LINE_LIMIT], denylist_regex_to_group=wanted):
                place = text.find(value, at, at + len(line))
                if (
                    place >= 0
                    and heuristics.key(value)
                    and not heuristics.common(value)
                    and not set(value) & set(" \t,;")
                    and _SUFFIX.search(text, at, place)
                ):
                    yield _KEYWORD, place, place + len(value)
        at += len(line)
