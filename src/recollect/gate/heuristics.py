"""Tells a value that looks like a real secret from a placeholder, a reference, a piece of code or a plain word.

Pure decisions over one string. Nothing here searches a text or keeps what it was shown.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from hashlib import sha256
from itertools import pairwise
from math import log2
from typing import Final

from recollect.gate.tables import table

_STAND_IN: Final = re.compile(
    r"""(?ix)^(?:
      \$[({] | \$[a-z_]\w*(?:$|\[|->) | %\w{1,20}\( | %[a-z_]\w*%$ | %s$ | %\( | \{ | [\[()] | <[^>]*>? |
      &(?:[\[({] | mut\b | [a-z_]+$) | @?\w+\( | \\[nrt"'] |
      [\W_]*$ | \^[\[(\\.].* | [x.*_\-]+$ | \.\.\. | .*(?:x{6,}|\*{4,}|\.{3,}|…) |
      my_?(?:secret_?)?(?:password|passwd|pass|pwd?|token|key|secret)\d{0,3}$ |
      (?:your|my|some|the|insert|replace|enter|put|paste|add)[_\- ].* | .*[_\-](?:here|goes[_\-]here|placeholder)$ |
      (?:change|replace|fill)[_\- ]?(?:me|this|it|in)\d*!?$ | .*(?:placeholder|redacted|changeme).* |
      (?:test|foo|bar|baz|dummy|fake|example|sample|demo|mock|todo|tbd|n/a|abc|xyz)[_\-]?(?:1|12|123)?$ |
      (?:test|foo|dummy|fake|example|sample|demo|mock)[_\-].*(?:token|key|secret|passw|pwd|cred).* |
      (?:null|none|nil|true|false|undefined|empty|unset|required|optional|string|str|bytes|any|void|default)\b.*
    )"""
)
_REFERENCE: Final = re.compile(
    r"""(?ix)^(?:
      [a-z][a-z0-9+.\-]*:// | arn: | (?:vault|op|ssm|file|env|kms|ref|secret|secrets|keyring|keychain|sops): |
      ENC\[ | projects/ | !(?:ref|sub|vault|getatt|env\w*|secret|include)\b |
      @microsoft\. | (?:~|\.{1,2})?/[a-z.][\w.\-]*(?:/[\w.\-]+)*/?$ | [a-z]:\\ |
      [\w.+\-]+@[\w\-]+(?:\.[\w\-]+)*\.[a-z]{2,}$ |
      [\w.\-]+\.(?:py|js|ts|json|ya?ml|toml|txt|md|pem|key|crt|env|go|rs|sh)$ |
      \d{4}-\d\d-\d\d(?:T.*)?$ | v?\d+(?:\.\d+)+[\w.\-]*$ | sha\d{1,3}[-:] | ssh-\w+$ | AAAA[BCE][2-3]Nz
    )"""
)
_CODE: Final = re.compile(
    r"""(?x)^(?:
      _{0,2}[A-Za-z]?[a-z]{2,}[\w.:<>?]*[(\[][^!@\#$%^&*]*$ | [A-Za-z_]{2,}\w*(?:\??\.|::|->)[A-Za-z_][^!@\#$%^&*]*$ |
      [a-z]\.[a-z_]+[\[(].* |
      .*(?:::|->|=>|\(\)|[!=]==?[^=]|\|\||[ ]&&) |
      [A-Z]{0,8}\d{1,3}(?:[A-Z][a-z]{2,}){2,}$ |
      (?i:self|this|os|process|env|settings|config|request|response|ctx|context|args|params|options|secrets|var|local|data)
        (?:\.|\[|\?\.).* |
      (?i:u?int|float|bytes|string|n?varchar2?|char|[uif])\d{1,3}(?:$|[\s,;)\]|=].*)
    )"""
)
_NAMES_ITSELF: Final = re.compile(
    r"(?i)^[a-z_]\w*?(?:token|key|secret|passw(?:or)?d|pwd|pass|credential|auth|id|name|value|hash|digest)s?_?\d{0,2}$"
)
_TECHNICAL: Final = re.compile(
    r"""(?ix)^(?:
      sha\d{1,3} | md5 | base(?:16|32|36|58|62|64)(?:url)? | utf(?:8|16|32) | aes\d{0,3} | [rhep]s(?:256|384|512) |
      argon2(?:id?|d)? | [bs]?crypt\d* | pbkdf2 | hmac(?:sha\d+)? | oauth2?(?:\d)? | x509(?:v3)? | x?ed25519 | x25519 |
      curve25519 | secp\d+[kr]1 | p(?:256|384|521) | rsa\d{0,4} | k8s | i18n | l10n | a11y | https?[23]? | ipv[46] |
      1password | auth0 | [12m]fa | u2f | fido2 | webauthn2? | python\d* | es\d+ | web3 | log4j2? | neo4j | h2o |
      [a-z]{1,3}\d{1,3} | \d{1,4}(?:st|nd|rd|th|[dhmskxb]|ms|[kmgt]i?b|bits?|bytes?|chars?|digits?|days?|hours?|hrs?|
      min(?:ute)?s?|sec(?:ond)?s?|weeks?|months?|years?|times|px|pt|em|rem)
    )$"""
)
_SENTENCE: Final = re.compile(
    r"(?i)\b(?:a|an|the|your|my|our|this|that|is|are|was|must|should|to|for|of|in|on|at|by|with|from|not|no|and|or|if|when"
    r"|enter|choose|use|set|new|old|again|please|confirm|forgot|reset|change|password|passphrase|token|secret|key"
    r"|invalid|incorrect|wrong|missing|required)\b"
)
_SEPARATORS: Final = re.compile(r"[-_./:+#]+")
_HUMAN_TAIL: Final = re.compile(r"^[A-Za-z]{3,}(?:[-_.][A-Za-z]{3,})*[-_.]\d{2,4}[!?]?$")
_TEMPLATE: Final = re.compile(r"^[$%]?(?:\{.*\}|\(.*\)s?|<.*>|\[.*\])$|^\[redacted|^\^[\[(\\.]")
_RARE_SIGN: Final = re.compile(r"[!@#$%^*~]")
_SYMBOL: Final = re.compile(r"[!@#$%^&*?~|+=]")
_SIGN: Final = re.compile(r"[!@#$%^&~]")
_CALL: Final = re.compile(r"[({\[<]|::|://|\$[A-Z_]{3,}|@\w+\.\w")
_BUILT: Final = re.compile(r"[=(\[{<>/|,]|::|\)\.")
_CAMEL: Final = re.compile(r"[A-Z][a-z]{2,}")
_COMMIT: Final = re.compile(r"[a-f0-9]{7,40}")
_LONG_HEX: Final = re.compile(r"(?i)[a-f0-9]{32,128}")
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_HUMAN: Final = re.compile(r"[A-Z]?[a-z]{4,20}\d{1,4}[!?]?$")
_ENDS: Final = ".,;:!?*_`\"')]}"
_HEX_HASH: Final = re.compile(r"(?i)^(?:[a-f0-9]+|[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12})$")


def mixes_classes(value: str) -> bool:
    """Say whether upper case, lower case, digits and signs alternate as in no word, path or code."""
    if len(value) < 10 or _TEMPLATE.match(value) or _REFERENCE.match(value):
        return False
    classes = [0 if c.islower() else 1 if c.isupper() else 2 if c.isdigit() else 3 for c in value]
    if not {0, 1} <= set(classes) or (2 not in classes and not _RARE_SIGN.search(value)):
        return False
    return sum(a != b for a, b in pairwise(classes)) >= len(value) / 2


def placeholder(value: str) -> bool:
    """Say whether the value is a placeholder, a reference to somewhere else, or code that yields the value."""
    return not mixes_classes(value) and bool(_STAND_IN.match(value) or _REFERENCE.match(value) or _CODE.match(value))


def entropy(value: str) -> float:
    """Return Shannon's entropy of the characters, in bits per character."""
    return -sum(n / len(value) * log2(n / len(value)) for n in Counter(value).values())


def random_letters(value: str) -> bool:
    """Say whether 16 or more letters change case too often for words written in camelCase."""
    if len(value) < 16 or not value.isascii() or not value.isalpha():
        return False
    changes = sum(a.isupper() != b.isupper() for a, b in pairwise(value))
    return changes > len(value) / 3


def made_of_words(value: str) -> bool:
    """Say whether every part is a plain word, a short number or a well-known technical name such as `sha256`."""
    return not mixes_classes(value) and all(
        (part.isalpha() and not random_letters(part)) or (part.isdigit() and len(part) <= 4) or _TECHNICAL.match(part)
        for part in _SEPARATORS.split(value)
        if part
    )


def _mixes(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def password(value: str) -> bool:
    """Say whether a value given as a password looks like one: not a word, not a placeholder, not code."""
    core = value.strip("*_").rstrip(".,;:!?)]}=")
    if len(core) < 5 or len(value) < 6 or placeholder(value) or placeholder(core):
        return False
    if value.isdigit():
        return len(value) >= 6
    if _HUMAN_TAIL.match(value) and len(value) >= 9 and not _TECHNICAL.match(_SEPARATORS.split(value)[0]):
        return True
    if _NAMES_ITSELF.match(core) and "_" in core:
        return False
    symbols = bool(_SYMBOL.search(core)) and any(c.isalpha() for c in core)
    return not made_of_words(core) and (symbols or _mixes(core) or random_letters(core))


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(table("words")[name].split())


def common(value: str) -> bool:
    """Say whether the value is a name made of common words and short numbers, such as `db-credentials-v2`."""
    if _RARE_SIGN.search(value):
        return False
    known = _words("common")
    if value.lower().strip("0123456789_-./:") in known:
        return True
    parts = [part for part in _PARTS.findall(value) if not (part.isdigit() and len(part) <= 4)]
    short = sum(len(part) for part in parts if len(part) <= 2)
    return short * 2 <= sum(map(len, parts)) and all(len(part) <= 2 or part.lower() in known for part in parts)


def weak(value: str) -> bool:
    """Say whether lists of leaked passwords are full of this one."""
    return value.strip(_ENDS).lower() in _words("weak")


def phrase(value: str, least: int) -> bool:
    """Say whether the value is a passphrase: so many words or more that nobody uses to speak of passwords."""
    parts = re.split("[- ]", value.strip(_ENDS))
    return len(parts) >= least and all(
        3 <= len(part) <= 12 and part.isalpha() and part.isascii() and part.lower() not in _words("common")
        for part in parts
    )


def given(value: str) -> bool:
    """Say whether what stands where only a password can is one: no placeholder, no reference, no word for it."""
    return weak(value) or (len(value) >= 4 and not (placeholder(value) or common(value)))


def told(value: str) -> bool:
    """Say whether what a sentence or a call gives as the password is one."""
    return weak(value) or phrase(value, 3) or (password(value) and not common(value))


def built(value: str) -> bool:
    """Say whether a value is an expression or a path, as only code and links have them."""
    return bool(_BUILT.search(value.strip(_ENDS)))


def stands_out(value: str) -> bool:
    """Say whether a value would be taken for a password wherever it stands in a sentence about one."""
    core = value.strip(_ENDS)
    if len(core) < 6 or common(core) or placeholder(core) or _COMMIT.fullmatch(core) or built(core):
        return False
    if made_of_words(core):
        return phrase(core, 4)
    digits = [c.isdigit() for c in core]
    changes = sum(a != b for a, b in pairwise(digits)) if len(core) >= 8 and core.isalnum() else 0
    cased = len(core) >= 10 and any(c.isupper() for c in core) and any(c.islower() for c in core)
    mixed = cased and len(_PARTS.findall(core)) >= 5 and any(digits)
    return changes >= 4 - cased or mixed or bool(_HUMAN.match(core)) or looks_random(value)


def example(value: str) -> bool:
    """Say whether documentation shows this very value again and again."""
    known = table("tokens")["examples"]
    spellings = (value, value.partition("=")[2], value.partition(" ")[2])
    return "EXAMPLE" in value or any(sha256(one.encode()).hexdigest()[:16] in known for one in spellings)


def looks_random(value: str) -> bool:
    """Say whether a value beside the word "password" looks like one by itself: letters, digits and signs mixed."""
    core = value.strip("*_").rstrip(".,;:!?)]}=")
    if len(core) < 8 or placeholder(core) or made_of_words(core) or _CALL.search(core):
        return False
    return mixes_classes(core) or (_mixes(core) and bool(_SIGN.search(value.rstrip(".,;:?)]}="))))


def passphrase(words: list[str]) -> bool:
    """Say whether quoted words are a passphrase: four or more, or one that is a password, and no sentence."""
    if _SENTENCE.search(" ".join(words)):
        return False
    plain = all(re.fullmatch(r"[A-Za-z0-9]+[!?.]?", word) for word in words)
    return (len(words) >= 4 and plain) or any(password(word) for word in words)


def key(value: str) -> bool:
    """Say whether a value given as a key or token looks like one: long, letters mixed with digits, no name in code."""
    core = value.strip("*_").rstrip(".,;:!?)]}=")
    if len(core) < 8 or placeholder(value) or placeholder(core) or made_of_words(core) or _NAMES_ITSELF.match(core):
        return False
    if sum(map(len, _CAMEL.findall(core))) >= len(core) * 0.75:
        return False
    return _mixes(core) or random_letters(core) or mixes_classes(core)


def long_key(value: str) -> bool:
    """Say whether a value looks like a key by itself: long, and random or hexadecimal."""
    core = value.strip(_ENDS)
    if len(core) < 16 or not key(core):
        return False
    return high_entropy(core) or bool(_LONG_HEX.fullmatch(core)) or mixes_classes(core) or random_letters(core)


def high_entropy(value: str) -> bool:
    """Say whether 20 or more characters look random: all three classes, high entropy, and no plain hash."""
    body = value.rstrip("=")
    if len(body) < 20 or _HEX_HASH.match(body) or placeholder(value) or made_of_words(body):
        return False
    if body.count("/") > 4 or (len(body) < 40 and max(map(len, _SEPARATORS.split(body))) < 12):
        return False
    kinds = (any(c.islower() for c in body), any(c.isupper() for c in body), sum(c.isdigit() for c in body) >= 2)
    return all(kinds) and entropy(body) > min(4.2, log2(len(body)) * 0.82)


def real_token(value: str) -> bool:
    """Say whether a token with a known prefix is more than a documented shape such as `ghp_xxxxxxxx`, or than DNA."""
    return not _SHAPE.search(value) and not set(value) <= set("ACGTN")


_SHAPE: Final = re.compile(
    r"(?i)x{8,}|\*{4,}|\.{4,}|[-_](?:your|example|placeholder|dummy|redacted|insert|replace|changeme)(?:[-_]|$)"
)
