"""Finds what sentences say without a word for a password beside it: logins, PINs, the words of a wallet.

"creds for staging: deploy / x", "log in as root with x", "the door PIN is 1234", "my seed phrase: …".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from recollect.gate import heuristics
from recollect.gate.keyword_context import PASSWORD, PIN, Label, read
from recollect.gate.tables import either, table

SEED: Final = "seed phrase"
_WINDOW: Final = 120
_STOP: Final = re.compile(r"(?:\.|(?<!\d)[!?])(?=\s|$)|[\n;。！？]")
_PAIR: Final = re.compile(r"(?<![\w/.:\-])[\w.@+\-\\]{1,64}[\"'`]?[ ]?[/:|,][ ]?[\"'`]?(?=[^\s/])")
_NO_PIN: Final = re.compile(r"(?i)(?:gpio|led|header|board|chip|data|clock|arduino|esp\d*|signal|output|input)[ _\-]?$")
_PIN_VALUE: Final = re.compile(
    r"(?i)(?:[ ]?\([^()\n]{1,40}\))?(?:[ ](?:for|of|to|on|at|in|für|vom|zur|zum|de|del|du|la|le)\b[^\n.;:]{1,50}?)?"
    r"(?:[ ](?:is|was|ist|lautet|est|es|è|é|on|to|je)[ ]|[ ]?[:=—–-]|[ ]?[은는はが是])[ ]{0,4}(?P<s>\d{4,8})(?!\w|\.\d|-\d)"
)
_SEED: Final = re.compile(
    r"(?i)[^\n:=]{0,40}(?:[:=]| is)"
    r"[ \t\r\n]{0,4}[\"'`]?(?P<s>[a-z]{3,8}(?:(?:[ ,]{1,3}|[ \t]{0,4}\n)[a-z]{3,8}){11,23})(?![a-z])"
)
_LETTERS: Final = re.compile(r"[a-z]+")
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


def sentences(text: str, names: list[Label]) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each secret that a sentence tells."""
    for name in names:
        if name.kind == "credentials":
            yield from _credentials(text, name)
        elif name.kind == "login":
            yield from _login(text, name)
        elif name.kind == "pin" and not _NO_PIN.search(text, max(0, name.start - 12), name.start):
            pin = _PIN_VALUE.match(text, name.end)
            if pin:
                yield PIN, *pin.span("s")
        elif name.kind == "seed" and (match := _SEED.match(text, name.end)):
            words = _LETTERS.findall(match["s"].lower())
            if len(words) in _SEED_LENGTHS and _SMALL.isdisjoint(words):
                yield SEED, *match.span("s")
    for match in _MY_PASSWORD.finditer(text):
        if not _DESCRIPTIONS.match(match["s"]):
            yield PASSWORD, *match.span("s")


def _sentence(text: str, name: Label) -> tuple[int, int]:
    """Return where the sentence around a label starts and ends, as far as it is read."""
    start = max(0, name.start - _WINDOW)
    stops = [stop.end() for stop in _STOP.finditer(text, start, name.start)]
    stop = _STOP.search(text, name.end, name.end + _WINDOW)
    return (stops[-1] if stops else start), (stop.start() if stop else min(len(text), name.end + _WINDOW))


def _credentials(text: str, name: Label) -> Iterator[tuple[str, int, int]]:
    """Read "user / password" and "user: password" behind a word for credentials."""
    for pair in _PAIR.finditer(text, name.end, _sentence(text, name)[1]):
        value = read(text, pair.end())
        between = text[name.end : pair.start()]
        said = bool(re.search(r"[:=]\s*$|(?:\bis|\bare|\bist|\bsind|\bes|\best|\bsont|\bson)\s$", between))
        if value and (
            heuristics.stands_out(value.text)
            or (said and heuristics.told(value.text) and not heuristics.built(value.text))
        ):
            yield PASSWORD, value.start, value.end
            return


def _login(text: str, name: Label) -> Iterator[tuple[str, int, int]]:
    start, end = _sentence(text, name)
    for match in _with().finditer(text, start, end):
        value = read(text, match.start("s" if match["s"] else "t"))
        if value and heuristics.stands_out(value.text):
            yield PASSWORD, value.start, value.end
            return


@cache
def _with() -> re.Pattern[str]:
    words = table("labels")["with"]
    return re.compile(
        rf"(?i)(?<!\w)(?:{either(words['before'])})[ ](?:(?:the|das|le|la|el|il|o|het)[ ])?"
        r"(?:[\w.@\-]{1,40}[ ](?:and|und|et|y|e|en|i|a|och|ve|и|/)[ ])?[\"'`“„«]?(?P<s>[!-~]{6,128})"
        rf"|(?<![!-~])(?P<t>[!-~]{{6,128}})[ ]?(?:{either(words['after'])})"
    )
