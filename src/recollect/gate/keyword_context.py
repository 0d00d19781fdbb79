"""Finds values by their label: `password = x`, `--token x`, "my password is x".

The label is searched first and the value read from its end, so that a harmless value hides nothing behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from recollect.gate import heuristics

PASSWORD: Final = "password"  # noqa: S105 - a kind, not a password
KEY: Final = "API key or token"
PIN: Final = "PIN"
SEED: Final = "seed phrase"

HINTS: Final = (
    *("pass", "pwd", "secret", "key", "token", "cred", "login", "pin", "contrase", "senha", "kennwort", "mysql", "pw"),
    *("seed", "recovery", "mnemonic"),
    *("парол", "密码", "密碼", "パスワード"),
)
_PASSWORDS: Final = (
    r"(?:pass(?:word|wd|phrase|code)|passwort|kennwort|mot\ de\ passe|contrase(?:ñ|n)a|senha"
    r"|парол[ья]|密[码碼]|パスワード|(?<![a-z])(?:pwd|passw?|psw|pw(?=[ \t]{0,2}[:=])))"
)
_KEYS: Final = (
    r"(?:(?:api|access|auth|account|service|client|private|priv|signing|encryption|master|license|deploy|db|database|admin"
    r"|storage|shared)[ _\-.]?key|secret(?:[ _\-.]?(?:access[ _\-]?)?key(?:[_\-]?base)?)?|token|credential)"
)
_SUFFIX: Final = r"(?:[_\-.]?(?:prod(?:uction)?|dev|stag(?:e|ing)|live|value|plain(?:text)?|raw|b64|base64|\d{1,2}))?"
_NAME: Final = re.compile(
    rf"(?i)(?:(?P<password>{_PASSWORDS})|(?P<key>{_KEYS}))s?{_SUFFIX}(?![a-z])".replace(r"\ ", "[ ]")
)
_ASSIGN: Final = re.compile(
    r"(?i)[\"'`\])}*]{0,4}(?:\[\d{0,4}\])?[ \t]{0,40}(?:!==?|={1,3}|:=|=>|->|::?|=)(?![=>])[ \t*]{0,40}"
)
_TYPED: Final = re.compile(r"[ \t]{0,8}:[ \t]{0,8}[A-Za-z_][\w.\[\], |]{0,40}?[ \t]{0,8}=(?!=)[ \t]{0,8}")
_NEXT_LINE: Final = re.compile(
    r"[*\"'`]{0,4}[ \t]{0,8}[:=][ \t*]{0,8}\r?\n[ \t>]{0,16}(?P<s>\S{6,128})[ \t]{0,8}(?=\r?\n|$)"
)
_ELEMENT: Final = re.compile(r"[^<>\n]{0,40}>[ \t]{0,8}(?=[^<>\s]{6,200}[ \t]{0,8}</)")
_PROSE: Final = re.compile(
    r"(?ix)[\"'`*]{0,4}(?:[ ](?:for|of|to|on|at|in)[ ][^\n.;:!?]{1,60}?)?"
    r"(?:[ ](?:ist|is|was|are|est|es|é|will[ ]be|has[ ]been|became)"
    r"(?:[ ](?:now|currently|still|just|set[ ]to|changed[ ]to))?"
    r"|[ ](?:changed|set|reset|updated|rotated)?[ ]?to|[是は为為]|'s)[ ]?[:=]?[ ]{0,4}"
)
_NEXT_TO: Final = re.compile(
    r"[\"'`*]{0,4}(?:[ ]{0,4}(?:[\t|,(\[→]|[–—-]{1,2}>?[ ]|[\"'`“„«])|[ ])[ \t]{0,8}"
    r"[\"'`“„«]{0,2}(?P<s>[^\s|\"'`”»]{8,128})"
)
_BELOW: Final = re.compile(
    r"[*:_ ]{0,4}\r?\n(?:[ \t>]{0,8}\r?\n)?[ \t>]{0,8}[`*]{0,2}(?P<s>\S{8,128})[ \t]{0,8}(?=\r?\n|$)"
)
_FLAG: Final = re.compile(r"[ \t]{1,8}(?=[^\s\-])")
_USED: Final = re.compile(r"(?i)(?:with|us(?:e|ing)|enter|type|the|my|our|and)\s{1,4}$")
_LOGIN: Final = re.compile(
    r"(?i)\b(?:login|log in|sign in|credentials?|creds)(?: (?:is|are|with|as))?[ ]?[:=]?"
    r"[ ]{1,4}[^\s/:]{1,100}[ ]?[/:][ ]?"
)
_SHELL: Final = re.compile(r"(?:\bmysql(?:dump|admin)?\b[^\n]{0,200}? -p|\bsshpass -p[ ]?)")
_PIN: Final = re.compile(
    r"(?i)(?<![a-z])pin(?: ?(?:code|number))?(?: for [^\n.;:]{1,40}?)?(?: is| was|[ ]?[:=])"
    r"[ ]{0,4}(?P<s>\d{4,8})(?!\w|\.\d)"
)
_SEED: Final = re.compile(
    r"(?i)\b(?:(?:seed|recovery|backup|wallet)[ _-](?:phrase|words|seed|mnemonic)|mnemonic)\b[^\n:=]{0,40}(?:[:=]| is)"
    r"[ \t\r\n]{0,4}[\"'`]?(?P<s>[a-z]{3,8}(?:(?:[ ,]{1,3}|[ \t]{0,4}\n)[a-z]{3,8}){11,23})(?![a-z])"
)
_WORDS: Final = re.compile(r"[a-z]+")
_SEED_LENGTHS: Final = frozenset({12, 15, 18, 21, 24})
_SMALL: Final = frozenset(
    "the and your are for with from not was has our should its but into who why how than their them these those been"
    " were had did does".split()
)
_MY_PASSWORD: Final = re.compile(
    r"(?i)\b(?:my|mine|meine?|mon)\b(?: [\w\-]{1,20}){0,2} "
    r"(?:password|passwd|passphrase|passcode|passwort|pwd)(?: for [^\n.;:!?]{1,40}?)?(?: is|:| ist| =)[ ]{1,4}"
    r"(?P<s>[a-z]{4,40})(?=[.,;!)\"']*(?:\s*$|[.,;!)\"']\s|\n))"
)
_DESCRIPTIONS: Final = re.compile(
    r"(?i).*(?:ed|ing|able|ible|ely|ally)$|(?:wrong|right|correct|incorrect|valid|invalid|strong|weak|secure|insecure|unsafe"
    r"|safe|okay|fine|secret|unknown|missing|empty|blank|long|short|gone|lost|broken|unique|different|same|there|here"
    r"|mine|yours|private|public|everywhere|somewhere|nowhere|old|outdated|obsolete|good|great|simple|complex|random"
    r"|hidden|known|written|shown|given|taken|sent|kept|none|null|nothing|confidential|sensitive|optional)$"
)
_QUOTED: Final = re.compile(
    r"""(?:[rbfu@]{0,2})(?:"((?:\\.|[^"\\\n]){1,512}+)"|'((?:\\.|[^'\\\n]){1,512}+)'|`([^`\n]{1,512})`)"""
)
_BARE: Final = re.compile(r"[^\s]{1,512}")
_JUDGED: Final = 160
_INNER: Final = re.compile(r"[\"'`,;<>]|\\[nrt\"']")
_NOT_A_SECRET: Final = re.compile(
    r"(?i)(?:page|next|cancell?ation|continuation|public|partition|primary|foreign|prompt|context|forgot"
    r"|(?<![a-z])(?:max|min|num|pad|eos|bos|sep|cls|unk|mask|sort|stop|start|end|special|cache|sync|input|output|per"
    r"|reset|no))[ _\-]?$|\barn:[^\s\"']{0,70}$|::\w{0,40}$|\.svg\?$"
)


class Value(NamedTuple):
    """A value behind a label: its text, its offsets, and whether it was quoted."""

    text: str
    start: int
    end: int
    quoted: bool


def labelled(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each value whose label or sentence says that it is secret."""
    for match in _NAME.finditer(text):
        is_password = match["password"] is not None
        if _NOT_A_SECRET.search(text, max(0, match.start() - 80), match.start()):
            continue
        value = _assigned(text, match, is_password=is_password) or _in_sentence(text, match, is_password=is_password)
        if value is not None:
            yield (PASSWORD if is_password else KEY), value.start, value.end
    yield from _logins(text)
    for match in _MY_PASSWORD.finditer(text):
        if not _DESCRIPTIONS.match(match["s"]):
            yield PASSWORD, match.start("s"), match.end("s")
    yield from _phrases(text)
    for match in _PIN.finditer(text):
        yield PIN, match.start("s"), match.end("s")


def _read(text: str, at: int) -> Value | None:
    quoted = _QUOTED.match(text, at)
    if quoted:
        group = quoted.lastindex or 1
        return Value(quoted[group], quoted.start(group), quoted.end(group), True)
    bare = _BARE.match(text, at)
    name = _NAME.match(text, at)
    if bare is None or (name and text[name.end() : name.end() + 1] in ("=", ":")):  # its value is read in its own turn
        return None
    run = bare[0]
    inner = _INNER.search(run)
    end = at + len(run.rstrip(".,;:"))
    cut = run[: inner.start()] if inner and not heuristics.mixes_classes(run) else run
    return Value(cut, at, max(end, at + 1), False)


def _secret(value: Value | None, *, is_password: bool) -> Value | None:
    if value is None:
        return None
    judge = heuristics.password if is_password else heuristics.key
    words = value.text.split()
    if len(words) > 1:
        few = is_password and value.quoted and len(words) <= 8 and heuristics.passphrase(words)
        return value if few else None
    return value if judge(value.text[:_JUDGED].strip()) else None


def _assigned(text: str, name: re.Match[str], *, is_password: bool) -> Value | None:
    for pattern in (_ASSIGN, _TYPED, _ELEMENT):
        operator = pattern.match(text, name.end())
        value = _secret(_read(text, operator.end()), is_password=is_password) if operator else None
        if value is not None and (name[0].lower() != "pw" or heuristics.looks_random(value.text)):
            return value
    next_to = (_NEXT_TO.match(text, name.end()) or _BELOW.match(text, name.end())) if is_password else None
    if next_to and heuristics.looks_random(next_to["s"]):
        return Value(next_to["s"], next_to.start("s"), next_to.end("s"), False)
    below = _NEXT_LINE.match(text, name.end())
    if below and is_password and heuristics.password(below["s"]):
        return Value(below["s"], below.start("s"), below.end("s"), False)
    if text[max(0, name.start() - 40) : name.start()].rpartition(" ")[2].startswith("--"):
        flag = _FLAG.match(text, name.end())
        return _secret(_read(text, flag.end()), is_password=is_password) if flag else None
    return None


def _in_sentence(text: str, name: re.Match[str], *, is_password: bool) -> Value | None:
    verb = None if name[0].lower() == "pass" else _PROSE.match(text, name.end())
    if verb:
        value = _secret(_read(text, verb.end()), is_password=is_password)
        return value if value and len(value.text.split()) == 1 else None
    if not is_password or not _USED.search(text, max(0, name.start() - 12), name.start()):
        return None
    gap = _FLAG.match(text, name.end())
    value = _secret(_read(text, gap.end()), is_password=True) if gap else None
    return value if value and heuristics.key(value.text) else None


def _phrases(text: str) -> Iterator[tuple[str, int, int]]:
    """Find seed phrases of wallets: 12 to 24 words of a list that has no function words."""
    for match in _SEED.finditer(text):
        words = _WORDS.findall(match["s"].lower())
        if len(words) in _SEED_LENGTHS and _SMALL.isdisjoint(words):
            yield SEED, *match.span("s")


def _logins(text: str) -> Iterator[tuple[str, int, int]]:
    for pattern in (_LOGIN, _SHELL):
        for match in pattern.finditer(text):
            value = _secret(_read(text, match.end()), is_password=True)
            if value is not None:
                yield PASSWORD, value.start, value.end
