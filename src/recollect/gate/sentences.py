"""Finds secrets in sentences that have no word for a password beside them: logins, PINs, the words of a wallet.

"creds for staging: deploy / x", "log in as root with x", "the door PIN is 1234", "my seed phrase: …".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from recollect.gate import heuristics
from recollect.gate.keyword_context import PASSWORD, read_value, sentence_around
from recollect.gate.labels import Label
from recollect.gate.tables import pattern, table
from recollect.gate.time_limit import check_time

PIN: Final = "PIN"
SEED: Final = "seed phrase"
_SEED_LENGTHS: Final = frozenset({12, 15, 18, 21, 24})
Found: TypeAlias = Iterator[tuple[str, int, int]]


def sentence_secrets(text: str, names: list[Label]) -> Found:
    """Yield kind, start and end of each secret that a sentence states."""
    for name in names:
        check_time()
        if name.kind in _READERS:
            yield from _READERS[name.kind](text, name)
    if any(name.kind == "password" for name in names):
        for match in pattern("my_password").finditer(text):
            known = match["s"].lower() in table("words")["descriptions"].split()
            if not known and not pattern("description").match(match["s"]):
                yield PASSWORD, *match.span("s")


def _read_credentials(text: str, name: Label) -> Found:
    """Yield the password of "user / password" or "user: password" after a word for credentials."""
    if alone := pattern("alone").match(text, name.end):
        value = read_value(text, alone.end())
        if value and value.last and heuristics.is_adjacent_password(value.text):
            yield PASSWORD, value.start, value.end
            return
    for pair in pattern("pair").finditer(text, name.end, sentence_around(text, name)[1]):
        value = read_value(text, pair.end())
        verb = pattern("told").search(text, name.end, pair.start())
        if value and (
            heuristics.is_adjacent_password(value.text)
            or (verb and heuristics.is_stated_password(value.text) and not heuristics.is_expression(value.text))
        ):
            yield PASSWORD, value.start, value.end
            return


def _read_login(text: str, name: Label) -> Found:
    """Yield the password that the sentence states beside a login."""
    for match in pattern("with_value").finditer(text, *sentence_around(text, name)):
        value = read_value(text, match.start("s" if match["s"] else "t"))
        if value and heuristics.is_adjacent_password(value.text):
            yield PASSWORD, value.start, value.end
            return


def _read_pin(text: str, name: Label) -> Found:
    """Yield the PIN that follows the label."""
    if not pattern("no_pin").search(text, max(0, name.start - 12), name.start):
        pin = pattern("pin_value").match(text, name.end)
        if pin:
            yield PIN, *pin.span("s")


def _read_seed_phrase(text: str, name: Label) -> Found:
    """Yield the seed phrase that follows the label: 12, 15, 18, 21 or 24 words."""
    match = pattern("seed_words").match(text, name.end)
    if match:
        words = match["s"].lower().replace(",", " ").split()
        if len(words) in _SEED_LENGTHS and not set(words) & set(table("words")["small"].split()):
            yield SEED, *match.span("s")


_READERS: Final = {"credentials": _read_credentials, "login": _read_login, "pin": _read_pin, "seed": _read_seed_phrase}
