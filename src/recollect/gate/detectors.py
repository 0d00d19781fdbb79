"""The table of tokens with a known format: one row a kind, with literals of which one must stand in the text.

Each pattern is linear in the text. Values that only a label gives away are found in `keyword_context.py`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from recollect.gate import heuristics

_LEFT: Final = r"(?:(?<![A-Za-z0-9_\-])|(?<=\\[nrt]))"
_RIGHT: Final = r"(?![A-Za-z0-9])"


@dataclass(frozen=True, slots=True)
class Detector:
    """One kind of secret: lower-case literals of which one must be present, the pattern, and a check of the match."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[re.Match[str]], bool]


def secret_of(match: re.Match[str]) -> str:
    """Return the part of a match that is the secret: its group `s`, or all of it."""
    return match["s"] if "s" in match.re.groupindex else match[0]


def _real_token(match: re.Match[str]) -> bool:
    return heuristics.real_token(secret_of(match))


def _mixed(match: re.Match[str]) -> bool:
    value = secret_of(match)
    return heuristics.real_token(value) and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _not_words(match: re.Match[str]) -> bool:
    value = secret_of(match)
    return not heuristics.placeholder(value) and not heuristics.made_of_words(value)


def _row(kind: str, hints: str, pattern: str, check: Callable[[re.Match[str]], bool] = _real_token) -> Detector:
    return Detector(kind, tuple(hints.split()), re.compile(pattern), check)


_AWS_NEAR: Final = re.compile(r"(?i)aws|amazon|secret|\bs3\b|\biam\b")
_KEY_NEAR: Final = re.compile(
    r"(?i)(?:api|access|secret|auth|private|signing|encryption|service|licen[cs]e|master|bot|admin)[\s_-]?key"
    r"|token|secret|passw|passphrase|credential"
)
_HASH_NEAR: Final = re.compile(
    r"(?i)public|sha\d|integrity|digest|hash|checksum|commit|ssh-|fingerprint|certificate|://"
)


def _aws_secret(match: re.Match[str]) -> bool:
    near = match.string[max(0, match.start() - 80) : match.start()]
    return heuristics.high_entropy(match[0]) and bool(_AWS_NEAR.search(near)) and not _HASH_NEAR.search(near)


def _near_a_name(match: re.Match[str]) -> bool:
    near = match.string[max(0, match.start() - 48) : match.start()].rpartition("\n")[2]
    return bool(_KEY_NEAR.search(near)) and not _HASH_NEAR.search(near) and heuristics.high_entropy(match[0])


def _cloudflare(match: re.Match[str]) -> bool:
    near = match.string[max(0, match.start() - 80) : match.start()].lower()
    return ("cloudflare" in near or "cf_" in near) and heuristics.high_entropy(match[0])


_DEV_WORDS: Final = re.compile(
    r"(?i)(?:pass|password|passwd|pwd|pw|passphrase|secret|admin|root|guest|test|postgres|mysql|redis|mongo|example|dev"
    r"|token|key|credentials?|tiger|.)\d?"
)
_PORT: Final = re.compile(r"(?:\d{1,5}|port|PORT)(?:[/?#,]|$)")
_DEV_USERS: Final = re.compile(r"(?i)(?:user(?:name)?|usr|me|you|someone|login|name|example|foo|test|scott|u|\W.*)?")
_DEV_HOSTS: Final = re.compile(
    r"(?i)(?:localhost|127\.|0\.0\.0\.0|\[?::1|host|server|example|domain|your|db\b|database\b|redis\b|postgres\b"
    r"|mysql\b|mongo(?:db)?\b|rabbitmq\b|cache\b|[<${\[])"
)


def _url_password(match: re.Match[str]) -> bool:
    value = match["s"]
    if heuristics.placeholder(value) or _PORT.match(value):
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
    value = match["s"]
    return not heuristics.placeholder(value) and not _DEV_WORDS.fullmatch(value)


DETECTORS: Final[tuple[Detector, ...]] = (
    # Language models and their neighbours
    _row("Anthropic API key", "sk-ant-", _LEFT + r"sk-ant-[A-Za-z0-9_\-]{16,}", _mixed),
    _row(
        "OpenAI API key",
        "sk-proj- sk-svcacct- sk-admin- sk-none-",
        _LEFT + r"sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_\-]{20,}",
        _mixed,
    ),
    _row("OpenRouter API key", "sk-or-", _LEFT + r"sk-or-(?:v\d-)?[A-Za-z0-9_\-]{24,}", _mixed),
    _row("Langfuse secret key", "sk-lf-", _LEFT + r"sk-lf-[a-f0-9\-]{30,}"),
    _row("OpenAI API key", "sk-", _LEFT + r"sk-[A-Za-z0-9]{20,}", _mixed),
    _row("OpenAI API key", "t3blbkfj", _LEFT + r"sk-[A-Za-z0-9_\-]{8,}+(?<=[A-Za-z0-9_\-])", _mixed),
    _row("Hugging Face token", "hf_ api_org_", _LEFT + r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _row("Groq API key", "gsk_", _LEFT + r"gsk_[A-Za-z0-9]{40,}"),
    _row("Replicate API token", "r8_", _LEFT + r"r8_[A-Za-z0-9]{30,}"),
    _row("xAI API key", "xai-", _LEFT + r"xai-[A-Za-z0-9]{40,}"),
    _row("Perplexity API key", "pplx-", _LEFT + r"pplx-[A-Za-z0-9]{40,}"),
    _row("Pinecone API key", "pcsk_", _LEFT + r"pcsk_[A-Za-z0-9_]{40,}"),
    _row("LangSmith API key", "lsv2_", _LEFT + r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    # Code hosts and package registries
    _row("GitHub token", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,}"),
    _row("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9_]{30,}"),
    _row(
        "GitLab token",
        "glpat- gldt- glft- glsoat- glrt- glrtr- glcbt- glimt- glptt- glagent- gloas- glffct-",
        _LEFT + r"gl(?:pat|dt|ft|soat|rtr?|cbt|imt|ptt|agent|oas|ffct)-[A-Za-z0-9_\-.]{20,}",
        _mixed,
    ),
    _row("GitLab runner token", "gr1348941", r"GR1348941[A-Za-z0-9_\-]{20,}"),
    _row("Bitbucket token", "atbb", _LEFT + r"ATBB[A-Za-z0-9]{28,}"),
    _row("Atlassian API token", "atatt3", _LEFT + r"ATATT3[A-Za-z0-9_\-=]{60,}"),
    _row("npm token", "npm_", _LEFT + r"npm_[A-Za-z0-9]{36,}"),
    _row(
        "npm registry credential",
        "_authtoken _auth _password",
        r"(?i)_(?:authToken|auth|password)[ \t]{0,8}=[ \t]{0,8}[\"']?(?P<s>[A-Za-z0-9_\-+/.=]{8,})",
        _not_words,
    ),
    _row("PyPI token", "pypi-", _LEFT + r"pypi-[A-Za-z0-9_\-]{50,}", _mixed),
    _row("RubyGems key", "rubygems_", _LEFT + r"rubygems_[a-f0-9]{48}"),
    _row("crates.io token", "cio", _LEFT + r"cio[A-Za-z0-9]{32}" + _RIGHT, _mixed),
    _row("NuGet key", "oy2", _LEFT + r"oy2[a-z0-9]{43}" + _RIGHT),
    _row("Docker Hub token", "dckr_", r"dckr_(?:pat|oat)_[A-Za-z0-9_\-]{24,}"),
    _row(
        "Docker registry login",
        '"auth"',
        r"\"auth\"\s{0,8}:\s{0,8}\"(?P<s>[A-Za-z0-9+/]{8,}={0,2})\"",
        _login_in_base64,
    ),
    # Clouds and infrastructure
    _row("AWS access key", "akia asia abia acca", r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Z])"),
    _row(
        "AWS secret access key",
        "aws amazon secret s3 iam",
        r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])|(?<==)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
        _aws_secret,
    ),
    _row("Google API key", "aiza", _LEFT + r"AIza[A-Za-z0-9_\-]{35}"),
    _row("Google OAuth secret", "gocspx-", r"GOCSPX-[A-Za-z0-9_\-]{20,}"),
    _row("Google OAuth token", "ya29.", _LEFT + r"ya29\.[A-Za-z0-9_\-.]{30,}"),
    _row("Google refresh token", "1//0", _LEFT + r"1//0[A-Za-z0-9_\-]{40,}"),
    _row(
        "Azure key",
        "accountkey sharedaccesskey",
        r"(?i)(?:Account|SharedAccess)Key[ ]{0,4}=[ ]{0,4}(?P<s>[A-Za-z0-9+/]{30,}={0,2})",
    ),
    _row("Azure SAS signature", "sig=", r"(?i)[?&;]sig=(?P<s>[A-Za-z0-9%+/_\-]{30,}={0,2})"),
    _row("Azure client secret", "q~", r"(?<![A-Za-z0-9_~.\-])[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.\-]{31,34}"),
    _row("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _row("Alibaba access key", "ltai", _LEFT + r"LTAI[A-Za-z0-9]{16,24}" + _RIGHT, _mixed),
    _row(
        "Cloudflare token",
        "cloudflare cf_",
        r"(?<![A-Za-z0-9_\-])[A-Za-z0-9_\-]{37,45}(?![A-Za-z0-9_\-])",
        _cloudflare,
    ),
    _row("Cloudflare origin key", "v1.0-", _LEFT + r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    _row("Vault token", "hvs. hvb. hvr.", _LEFT + r"hv[sbr]\.[A-Za-z0-9_\-]{20,}"),
    _row("Terraform Cloud token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_\-=]{40,}"),
    _row("Pulumi token", "pul-", _LEFT + r"pul-[a-f0-9]{40}"),
    _row("Databricks token", "dapi", _LEFT + r"dapi[a-f0-9]{32}"),
    _row("Supabase key", "sbp_ sb_secret_", _LEFT + r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_\-]{20,})"),
    _row("PlanetScale credential", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_\-.=]{30,}"),
    _row("Netlify token", "nfp_", _LEFT + r"nfp_[A-Za-z0-9]{36,}"),
    _row("Heroku key", "hrku-", _LEFT + r"HRKU-[A-Za-z0-9_\-]{30,}"),
    _row(
        "Fly.io token", "fo1_ fm1_ fm1r_ fm2_", _LEFT + r"(?:fo1_[A-Za-z0-9_\-]{40,}|fm[12]r?_[A-Za-z0-9+/=_\-]{60,})"
    ),
    _row("Tailscale key", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9\-]{16,}", _mixed),
    _row("Doppler token", "dp.", _LEFT + r"dp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9._\-]{30,}"),
    _row("1Password service token", "ops_ey", r"ops_ey[A-Za-z0-9_\-+/=.]{60,}"),
    _row("1Password secret key", "a3-", _LEFT + r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{6}|[A-Z0-9]{11})(?:-[A-Z0-9]{5}){3,5}"),
    _row("Grafana token", "glsa_ glc_", _LEFT + r"(?:glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|glc_[A-Za-z0-9+/=]{32,})"),
    _row("New Relic key", "nrak-", _LEFT + r"NRAK-[A-Z0-9]{27}"),
    _row("Sentry token", "sntrys_ sntryu_", r"sntry(?:s_[A-Za-z0-9+/=_\-]{40,}|u_[a-f0-9]{64})"),
    _row("age secret key", "age-secret-key-1", r"(?i)AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    # Messages, money and work
    _row("Slack token", "xox xapp-", r"(?i)(?:xox[abceoprs](?:\.xox[a-z])?|xapp)-[A-Za-z0-9\-]{10,}", _mixed),
    _row(
        "Slack webhook",
        "hooks.slack.com",
        r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9_/\-]{20,}",
    ),
    _row("Discord webhook", "/api/webhooks/", r"(?i)/api/webhooks/\d{15,22}/[A-Za-z0-9_\-]{40,}"),
    _row(
        "Discord bot token",
        ".",
        _LEFT + r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}",
        _mixed,
    ),
    _row("Telegram bot token", ":", r"(?<!\d)\d{8,10}:[A-Za-z0-9_\-]{35}" + _RIGHT, _mixed),
    _row("Stripe key", "k_live_ k_test_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _row("Webhook signing secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{20,}"),
    _row("Square secret", "sq0csp- sq0atp-", r"sq0(?:csp|atp)-[A-Za-z0-9_\-]{22,}"),
    _row("Braintree token", "access_token$", r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    _row("Twilio key", "ac sk", _LEFT + r"(?:AC|SK)[a-f0-9]{32}" + _RIGHT),
    _row("SendGrid key", "sg.", _LEFT + r"SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}"),
    _row("Mailgun key", "key-", _LEFT + r"key-[a-f0-9]{32}" + _RIGHT),
    _row("Linear API key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    _row("Notion token", "secret_ ntn_", _LEFT + r"(?:secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,})" + _RIGHT),
    _row("Shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _row("Dropbox token", "sl.", _LEFT + r"sl\.[A-Za-z0-9_\-.]{60,}", _mixed),
    _row("Figma token", "figd_", r"figd_[A-Za-z0-9_\-]{36,}"),
    _row("Airtable token", "pat", _LEFT + r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    _row("Postman key", "pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    # Whatever the provider
    _row(
        "JSON web token",
        "eyj",
        r"(?<![A-Za-z0-9_])eyJ[A-Za-z0-9_\-=]{8,}+\.(?:eyJ)?[A-Za-z0-9_\-=]{8,}+(?:\.[A-Za-z0-9_\-+/=]*+){0,3}",
    ),
    _row(
        "Bearer token",
        "bearer",
        r"(?i)\bbearer[ \t:]{1,8}[\"'`]?(?P<s>[A-Za-z0-9_\-.~+/]{12,}={0,2})",
        lambda match: heuristics.key(match["s"]),
    ),
    _row(
        "Session cookie",
        "cookie",
        r"(?i)\bcookie[\"']?[ \t]{0,4}[:=][^\n]{0,120}?(?:sess(?:ion)?(?:_?id)?|sid|auth|token)="
        r"(?P<s>[A-Za-z0-9%_\-.+/]{16,})",
        lambda match: heuristics.key(match["s"]),
    ),
    _row(
        "Authorization header",
        "authorization",
        r"(?i)authorization[\"'`]{0,2}[ \t]{0,8}[:=][ \t]{0,8}[\"'`]?(?:basic|bearer|token|apikey|digest)[ \t]{1,8}"
        r"(?P<s>[^\s\"'`,;]{8,})",
        _not_words,
    ),
    _row(
        "URL with credentials",
        "://",
        r"://(?P<user>[^\s:/?#@\[\"'<>]{0,128}):(?P<s>[^\s\"'`]{1,256})@(?P<host>[^\s/:@]{1,64})",
        _url_password,
    ),
    _row(
        "curl login",
        "curl",
        r"(?i)\bcurl\b[^\n]{0,300}?\s(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{1,100}:(?P<s>[^\s\"']{3,200})",
        _user_password,
    ),
    _row(
        "netrc password",
        "machine",
        r"(?i)\bmachine\s{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(?P<s>\S{3,200})",
        _user_password,
    ),
    _row(
        "API key or token",
        "key token secret passw passphrase credential",
        r"(?<![\w/+=.\-@%])[A-Za-z0-9_\-+/]{20,}={0,2}(?![\w/])",
        _near_a_name,
    ),
)
