"""Builds what the gate is tried with: secrets in many forms, made at run time, and ordinary text without any.

No realistic secret stands in this file; each is put together from pieces, the same way on every run.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

LETTERS = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
URLSAFE = LETTERS + "_-"
BASE64 = LETTERS + "+/"
_HASHES = (
    "fixed in commit {hex7}, see {hex40}",
    "image: registry.io/app@sha256:{hex64}",
    '"integrity": "sha512-{b64}=="',
    "trace {uuid} started 2024-05-0{d}T12:00:0{d}Z",
    "ULID {ulid} sorts by time",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{url43} bob@host",
    "the secret rotation landed in {hex40}",
    'etag W/"{hex32}" on page {d}',
)
_SENTENCES = (
    "the password reset flow is broken on {place}",
    "our secret is {quality} work",
    "the API key is rotated {often} by {who}",
    "password is required on {place}",
    "token is expired when {who} opens {place}",
    "{who} keeps the password in {store}",
    "the {tool} token lives in {store}, ask {who}",
    "{who} prefers {tool} over {other} for {place}",
    "secret: managed by {tool}, rotated {often}",
    "password: see {store}",
    "{who} said the passphrase policy is {quality}",
    "we decided that {tool} signs tokens with RS256 on {place}",
    "the API key for {tool} is kept in {store}",
    "tokens per minute on {place} are limited to 90000 {often}",
    "passwords are hashed with argon2id before {tool} sees them on {place}",
)
_CODE = (
    'token = os.environ["{NAME}"]',
    'password = os.getenv("{NAME}", "")',
    "const apiKey = process.env.{NAME}",
    "export API_KEY=${{{NAME}}}",
    "token = tokenizer.encode({name})",
    'secret = get_secret("{name}")',
    "api_key = settings.{name}",
    "if token == expected_{name}:",
    "password: str = Field(alias={name})",
    "def login(self, {name}: str, password: str) -> Token:",
    "client = Client(api_key=config.{name}, secret=load({name}))",
    "Authorization: Bearer <{name}>",
    "postgres://user:password@localhost:5432/{name}",
    "git clone git@github.com:org/{name}.git",
    "private readonly passwordEncoder{name}: PasswordEncoder;",
    "SECRET_{NAME}_PATH=/run/secrets/{name}",
    "password: changeme  # in {name}",
    "{name}_token: your_{name}_token_here",
    "--from-literal=password=<{name}>",
)
_VOCABULARY = {
    "place": "iOS, Android, the login page, staging, the admin panel, Safari, the checkout, the new gateway".split(
        ", "
    ),
    "quality": "hard, patient, honest, boring, steady, slow".split(", "),
    "often": "monthly, every 90 days, weekly, on Fridays, twice a year".split(", "),
    "who": "Alice, Bob, the platform team, Chandra, our vendor, QA".split(", "),
    "store": "the vault, 1Password, AWS Secrets Manager, the team's keychain, Bitwarden, the runbook".split(", "),
    "tool": "Vault, Okta, Terraform, GitHub Actions, Auth0, Kafka, Redis".split(", "),
    "other": "Jenkins, make, bash, Airflow".split(", "),
    "name": "db_name, stripe, oauth2_client, s3_bucket, user_id, cache_v2, webhook, billing, mailer, search".split(
        ", "
    ),
}
# Whole modules, with what they say of passwords, tokens, hashes and URLs; none was left out for an alarm.
_MODULES = (
    *("ast", "base64", "configparser", "difflib", "ftplib", "getpass", "hashlib", "hmac", "imaplib", "inspect"),
    *("netrc", "secrets", "shlex", "smtplib", "ssl", "tarfile", "telnetlib", "tokenize", "token", "uuid", "zipfile"),
    *("http/client", "http/cookiejar", "http/cookies", "urllib/parse", "urllib/request", "email/message"),
    *("asyncio/sslproto", "logging/config", "xmlrpc/client", "multiprocessing/connection", "test/test_netrc"),
)


@dataclass(frozen=True)
class Form:
    """One way a secret is written: `text` holds `value`, and one of `kinds` is what the gate calls it."""

    name: str
    text: str
    value: str
    kinds: tuple[str, ...]


def chars(seed: str, alphabet: str, length: int) -> str:
    """Return `length` characters of an alphabet, with at least two of each kind of letter it has."""
    random = Random(seed)
    while True:
        made = "".join(random.choice(alphabet) for _ in range(length))
        groups = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
        mixed = all(sum(c in group for c in made) >= 2 or not set(group) & set(alphabet) for group in groups)
        if mixed and made[0].isalnum() and made[-1].isalnum():
            return made


def human(seed: str) -> str:
    """Return a password as people choose them: a made-up word and a number."""
    random = Random(seed)
    return "".join(random.choice("bdfgklmnprst") + random.choice("aeiou") for _ in range(4)) + str(
        random.randint(12, 98)
    )


# name, kind, prefix, alphabet, length: the secret is the prefix and that many characters
_TOKENS: tuple[tuple[str, str, str, str, int], ...] = (
    ("anthropic", "Anthropic API key", "sk-" + "ant-api03-", URLSAFE, 95),
    ("openai-project", "OpenAI API key", "sk-" + "proj-", URLSAFE, 74),
    ("openai-service", "OpenAI API key", "sk-" + "svcacct-", URLSAFE, 74),
    ("openai-admin", "OpenAI API key", "sk-" + "admin-", URLSAFE, 74),
    ("openai-old", "OpenAI API key", "sk-", LETTERS, 48),
    ("openrouter", "OpenRouter API key", "sk-" + "or-v1-", HEX, 64),
    ("huggingface", "Hugging Face token", "hf" + "_", string.ascii_letters, 34),
    ("groq", "Groq API key", "gsk" + "_", LETTERS, 52),
    ("replicate", "Replicate API token", "r8" + "_", LETTERS, 37),
    ("xai", "xAI API key", "xai" + "-", LETTERS, 80),
    ("perplexity", "Perplexity API key", "pplx" + "-", LETTERS, 48),
    ("github-classic", "GitHub token", "gh" + "p_", LETTERS, 36),
    ("github-oauth", "GitHub token", "gh" + "o_", LETTERS, 36),
    ("github-server", "GitHub token", "gh" + "s_", LETTERS, 36),
    ("github-fine", "GitHub token", "github" + "_pat_" + chars("gh", LETTERS, 22) + "_", LETTERS, 59),
    ("gitlab", "GitLab token", "gl" + "pat-", URLSAFE, 20),
    ("gitlab-deploy", "GitLab token", "gl" + "dt-", URLSAFE, 20),
    ("gitlab-runner", "GitLab token", "gl" + "rt-", URLSAFE, 20),
    ("atlassian", "Atlassian API token", "ATA" + "TT3xFf", URLSAFE, 180),
    ("npm", "npm token", "npm" + "_", LETTERS, 36),
    ("pypi", "PyPI token", "pypi" + "-AgEIcHlwaS5vcmc", URLSAFE, 150),
    ("rubygems", "RubyGems key", "rubygems" + "_", HEX, 48),
    ("docker-hub", "Docker Hub token", "dckr" + "_pat_", URLSAFE, 27),
    ("aws-id", "AWS access key", "AK" + "IA", UPPER, 16),
    ("aws-session-id", "AWS access key", "AS" + "IA", UPPER, 16),
    ("google", "Google API key", "AI" + "za", URLSAFE, 35),
    ("google-oauth", "Google OAuth secret", "GOC" + "SPX-", URLSAFE, 28),
    ("google-access", "Google OAuth token", "ya" + "29.", URLSAFE, 120),
    ("digitalocean", "DigitalOcean token", "dop" + "_v1_", HEX, 64),
    ("vault", "Vault token", "hv" + "s.", URLSAFE, 90),
    ("databricks", "Databricks token", "da" + "pi", HEX, 32),
    ("supabase", "Supabase key", "sb" + "p_", HEX, 40),
    ("planetscale", "PlanetScale credential", "pscale" + "_tkn_", URLSAFE, 43),
    ("fly", "Fly.io token", "fo1" + "_", URLSAFE, 43),
    ("tailscale", "Tailscale key", "tskey" + "-auth-k", LETTERS, 32),
    ("doppler", "Doppler token", "dp" + ".st.", LETTERS, 43),
    ("1password", "1Password service token", "ops" + "_eyJ", URLSAFE, 250),
    ("grafana", "Grafana token", "glc" + "_", LETTERS, 60),
    ("sentry", "Sentry token", "sntry" + "u_", HEX, 64),
    ("age", "age secret key", "AGE-SECRET" + "-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    ("slack-bot", "Slack token", "xox" + "b-1234567890-1234567890-", LETTERS, 24),
    ("slack-app", "Slack token", "xa" + "pp-1-A0123456789-1234567890-", HEX, 64),
    ("slack-webhook", "Slack webhook", "https://hooks." + "slack.com/services/T01ABCDEF/B01ABCDEF/", LETTERS, 24),
    ("discord-webhook", "Discord webhook", "https://discord.com/api/" + "webhooks/123456789012345678/", URLSAFE, 68),
    (
        "discord-bot",
        "Discord bot token",
        "MT" + chars("d", LETTERS, 24) + "." + chars("e", LETTERS, 6) + ".",
        URLSAFE,
        38,
    ),
    ("telegram", "Telegram bot token", "123456789" + ":AA", URLSAFE, 33),
    ("stripe", "Stripe key", "sk" + "_live_", LETTERS, 24),
    ("stripe-restricted", "Stripe key", "rk" + "_live_", LETTERS, 24),
    ("stripe-webhook", "Webhook signing secret", "wh" + "sec_", LETTERS, 32),
    ("square", "Square secret", "sq0" + "csp-", URLSAFE, 43),
    ("twilio", "Twilio key", "S" + "K", HEX, 32),
    ("sendgrid", "SendGrid key", "S" + "G." + chars("sg", URLSAFE, 22) + ".", URLSAFE, 43),
    ("mailgun", "Mailgun key", "ke" + "y-", HEX, 32),
    ("linear", "Linear API key", "lin" + "_api_", LETTERS, 40),
    ("notion", "Notion token", "nt" + "n_", LETTERS, 46),
    ("notion-old", "Notion token", "secr" + "et_", LETTERS, 43),
    ("shopify", "Shopify token", "shp" + "at_", HEX, 32),
    ("dropbox", "Dropbox token", "s" + "l.", URLSAFE, 130),
    ("figma", "Figma token", "fig" + "d_", URLSAFE, 40),
)


def _jwt() -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "iat": 1516239022})
    body = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{body}.{chars('jwt', URLSAFE, 43)}"


def _block(name: str, seed: str) -> str:
    dashes = "-" * 5
    body = "\n".join([*(chars(f"{seed}{n}", BASE64, 64) for n in range(12)), chars(seed, BASE64, 22) + "=="])
    return f"{dashes}BEGIN {name}{dashes}\n{body}\n{dashes}END {name}{dashes}"


def _putty() -> str:
    head = "PuTTY-User-" + "Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\n"
    body = f"{chars('pu', BASE64, 64)}\nPrivate-Lines: 1\n{chars('pr', BASE64, 48)}\n"
    return f"{head}{body}Private-MAC: {chars('m', HEX, 64)}"


# name, kind, text around the value, how the value is made
_NAMED: tuple[tuple[str, str, str, Callable[[str], str]], ...] = (
    ("assigned", "password", "password = {}", human),
    ("yaml", "password", "PASSWORD: {}", human),
    ("json", "password", '{{"db_password": "{}"}}', human),
    ("flag", "password", "deploy --password {} --now", human),
    ("told", "password", "my password is {}", human),
    ("told-for", "password", "The password for the staging database is {}", human),
    ("told-quoted", "password", 'the admin password is "{}"', human),
    ("passphrase", "password", "passphrase: {}", human),
    ("changed", "password", "they changed the password to {}", human),
    ("markdown", "password", "**Password:** `{}`", human),
    ("xml", "password", "<password>{}</password>", human),
    ("element-shell", "password", "PGPASSWORD={} psql -h db", human),
    ("german", "password", "Das Passwort ist {}", human),
    ("next-line", "password", "Password:\n  {}\n", human),
    ("mysql", "password", "mysql -u root -p{}", human),
    ("login", "password", "credentials: admin / {}", human),
    ("exported", "API key or token", "export API_KEY={}", lambda s: chars(s, LETTERS, 24)),
    ("hex-key", "API key or token", "SECRET_KEY={}", lambda s: chars(s, HEX, 64)),
    ("told-key", "API key or token", "the api key is {}", lambda s: chars(s, LETTERS, 32)),
    ("token-header", "API key or token", "X-Api-Key: {}", lambda s: chars(s, HEX, 32)),
    ("client-secret", "API key or token", "client_secret={}", lambda s: chars(s, LETTERS, 32)),
    ("query", "API key or token", "GET /v1?access_token={}", lambda s: chars(s, LETTERS, 32)),
    ("letters", "API key or token", "client_secret: {}", lambda s: chars(s, string.ascii_letters, 24)),
    ("near", "API key or token", "here is the api key (prod) {}", lambda s: chars(s, LETTERS, 40)),
    ("pin", "PIN", "the door PIN is {}", lambda s: "48" + "21"),
    ("aws-secret", "AWS secret access key", "aws_secret_access_key = {}", lambda s: chars(s, BASE64, 40)),
    ("aws-told", "AWS secret access key", "the AWS one is {}", lambda s: chars(s, BASE64, 40)),
    ("bearer", "Bearer token", "Authorization: Bearer {}", lambda s: chars(s, URLSAFE, 40)),
    ("basic", "Authorization header", "Authorization: Basic {}", lambda s: chars(s, LETTERS, 24) + "=="),
    ("curl", "curl login", "curl -u bob:{} https://api.internal/v1", human),
    ("url", "URL with credentials", "postgres://app:{}@db.internal:5432/app", human),
    ("url-redis", "URL with credentials", "redis://:{}@cache.internal:6379/0", human),
    ("azure", "Azure key", "AccountName=x;AccountKey={};", lambda s: chars(s, BASE64, 86) + "=="),
    (
        "azure-sas",
        "Azure SAS signature",
        "https://x.blob.core.windows.net/y?sv=1&sig={}",
        lambda s: chars(s, LETTERS, 43),
    ),
    ("cloudflare", "Cloudflare token", "cloudflare: use {}", lambda s: chars(s, URLSAFE, 40)),
    ("netrc", "netrc password", "machine api.internal login bob password {}", human),
    ("npmrc", "npm registry credential", "//npm.internal/:_authToken={}", lambda s: chars(s, LETTERS, 36)),
    (
        "docker",
        "Docker registry login",
        '{{"auths": {{"r.io": {{"auth": "{}"}}}}}}',
        lambda s: base64.b64encode(f"bob:{human(s)}".encode()).decode(),
    ),
    ("mailchimp", "Mailchimp key", "use {}", lambda s: chars(s, HEX, 32) + "-us12"),
    ("jwt", "JSON web token", "session {}", lambda s: _jwt()),
    ("pem", "private key", "{}", lambda s: _block("RSA " + "PRIVATE KEY", s)),
    ("openssh", "private key", "{}", lambda s: _block("OPENSSH " + "PRIVATE KEY", s)),
    ("pkcs8", "private key", "{}", lambda s: _block("PRIVATE " + "KEY", s)),
    ("pgp", "private key", "{}", lambda s: _block("PGP PRIVATE " + "KEY BLOCK", s)),
    ("pem-escaped", "private key", '{{"pem": "{}"}}', lambda s: _block("PRIVATE " + "KEY", s).replace("\n", "\\n")),
    ("pem-cut", "private key", "{}", lambda s: _block("EC " + "PRIVATE KEY", s).rpartition("\n")[0]),
    ("putty", "private key", "{}", lambda s: _putty()),
)


def forms() -> list[Form]:
    """Return every form."""
    made = [
        Form(name, value, value, (kind,))
        for name, kind, prefix, alphabet, length in _TOKENS
        for value in [prefix + chars(name, alphabet, length)]
    ]
    for name, kind, text, make in _NAMED:
        value = make(name)
        made.append(Form(name, text.format(value), value, (kind,)))
    return made


def ordinary() -> list[str]:
    """Return distinct lines without a secret: sentences, code, hashes, and the standard library's own sources."""
    lines = dict.fromkeys([*_made(), *_library()])
    return [line for line in lines if line.strip()]


def _made() -> Iterator[str]:
    for sentence in _SENTENCES:
        names = [name for name in _VOCABULARY if f"{{{name}}}" in sentence]
        for words in itertools.product(*(_VOCABULARY[name] for name in names)):
            yield sentence.format(**dict(zip(names, words, strict=True)))
    for line in _CODE:
        for name in _VOCABULARY["name"]:
            yield line.format(name=name, NAME=name.upper())
    for number, line in itertools.product(range(20), _HASHES):
        digest = chars(f"{number}", HEX, 64)
        yield line.format(
            hex7=digest[:7],
            hex32=digest[:32],
            hex40=digest[:40],
            hex64=digest,
            uuid="-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32])),
            ulid="01" + chars(f"u{number}", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24),
            b64=chars(f"b{number}", BASE64, 86),
            url43=chars(f"s{number}", BASE64, 43),
            d=number % 9,
        )


def _library() -> Iterator[str]:
    root = Path(os.__file__).parent
    for module in _MODULES:
        path = root / f"{module}.py"
        if path.is_file():
            yield from path.read_text(encoding="utf-8").splitlines()
