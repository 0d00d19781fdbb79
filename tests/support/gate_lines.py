"""Makes the lines of `gate_corpus/*.toml`: forms of secrets and harmless lines, filled from seeds at run time.

A fixed third of the templates was kept aside while the rules were written; `Line.kept` tells which.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

from places import TESTS
from secret_corpus import BASE64, HEX, LETTERS, LOWER, UPPER, URLSAFE, chars, human

FOLDER = TESTS / "gate" / "corpus"
ALPHABETS = {
    "hex": HEX,
    "HEX": HEX.upper(),
    "lower": LOWER,
    "upper": UPPER,
    "alnum": LETTERS,
    "let": string.ascii_letters,
    "dig": string.digits,
    "url": URLSAFE,
    "b64": BASE64,
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "b32": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    "bech": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
}
_NAMES = "pw|weak|uuid|CYR|first18|last18|spaced36"
SLOT = re.compile(rf"\{{(?:(?P<name>{_NAMES})|(?P<alphabet>{'|'.join(ALPHABETS)})(?P<length>\d+))\}}")
WORDS = (
    "velvet otter copper lamp harbor maple ticket ocean pepper window candle bishop rocket meadow silver tunnel pocket"
    " garden falcon marble walnut ribbon saddle thunder"
).split()
WEAK = (
    "letmein qwerty iloveyou dragon sunshine monkey football princess welcome1 trustno1 123456 12345678 abc123 hunter2"
    " superman batman starwars foobar"
).split()
STYLES = ("human", "mixed", "season", "letters", "phrase", "compound", "leet", "sign")
_SAFE_STYLES = 6  # the last two hold characters that end a value in configuration and code


@dataclass(frozen=True)
class Line:
    """A template with its group; `kept` lines were not looked at while the rules were written."""

    group: str
    template: Any

    @property
    def kept(self) -> bool:
        """Say whether the template belongs to the third that was kept aside."""
        return crc32(repr(self.template).encode()) % 3 == 0

    def cases(self) -> Iterator[tuple[Any, str]]:
        """Yield the template filled, and the secret in it, for each style of password."""
        styles = STYLES if self.group.startswith("prose") else STYLES[:_SAFE_STYLES]
        text = repr(self.template)
        variants = styles if "{pw}" in text else WEAK if "{weak}" in text else ("",)
        for variant in variants:
            yield _filled(self.template, f"{text} {variant}", variant)


def password(style: str, seed: str) -> str:
    """Return a password as people or programs make them."""
    random = Random(f"{style} {seed}")
    word = random.choice(WORDS)
    match style:
        case "human":
            return human(seed)
        case "mixed":
            return chars(seed, LETTERS + "!#*+-_^~" * 2, 14)
        case "season":
            return f"{word.title()}{random.randint(1990, 2029)}!"
        case "letters":
            return chars(seed, LETTERS, 12)
        case "phrase":
            return "-".join(random.sample(WORDS, 4))
        case "compound":  # words of talk about passwords, with a year or with digits for letters
            plain = random.choice(("secret", "server", "access", "office"))
            year = str(random.randint(2010, 2029))
            return random.choice((plain.translate(str.maketrans("aei", "431")) + "Pass", f"{plain.title()}Login{year}"))
        case "leet":
            return word.title().translate(str.maketrans("aeo", "430")) + random.choice(WORDS).title() + "9"
        case _:
            return f"{word[:2].title()}{random.randint(0, 9)}{word[2:]}&{random.randint(1, 9)}$x"


def _filled(template: Any, seed: str, variant: str) -> tuple[Any, str]:
    """Return a template with every slot filled, and the secret: what ⟦ and ⟧ enclose, or what the one slot became."""
    values: list[str] = []

    def fill(match: re.Match[str]) -> str:
        value = _value(match, f"{seed} {0 if match['name'] else len(values)}", variant)
        values.append(value)
        return value

    def walk(part: Any) -> Any:
        if isinstance(part, str):
            text = SLOT.sub(fill, part)
            if "⟦" in text:
                values[:] = [piece.partition("⟧")[0] for piece in text.split("⟦")[1:]]
            return text.replace("⟦", "").replace("⟧", "")
        if isinstance(part, dict):
            return {key: walk(value) for key, value in part.items()}
        return [walk(value) for value in part]

    filled = walk(template)
    return filled, max(values, key=len, default="")


def _value(match: re.Match[str], seed: str, variant: str) -> str:
    match match["name"]:
        case None:
            return _run(match["alphabet"], int(match["length"]), seed)
        case "pw":
            return password(variant, seed)
        case "weak":
            return variant
        case "uuid":
            digits = Random(seed).randbytes(16).hex()
            return "-".join((digits[:8], digits[8:12], f"4{digits[13:16]}", f"a{digits[17:20]}", digits[20:]))
        case "CYR":
            return "р"
        case "spaced36":
            return " ".join(_run("alnum", 36, seed))
        case half:
            whole = _run("alnum", 36, "halves")
            return whole[:18] if half == "first18" else whole[18:]


def _run(alphabet: str, length: int, seed: str) -> str:
    if length >= 12:
        return chars(f"{seed} {alphabet}", ALPHABETS[alphabet], length)
    random = Random(f"{seed} {alphabet}")
    return "".join(random.choice(ALPHABETS[alphabet]) for _ in range(length))


def _read(name: str) -> Iterator[Line]:
    tables = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    for group, table in tables.items():
        if isinstance(table, list):
            yield from (Line(f"{name} {group}", one) for one in table)
            continue
        for part, templates in table.items():
            for one in templates:
                yield Line(f"{group} {part}", "".join(one) if isinstance(one, list) else one)


def secret_lines() -> list[Line]:
    """Return every template that holds a secret."""
    return [line for name in ("prose", "formats", "tokens", "cross_field") for line in _read(name)]


def harmless_lines() -> list[Line]:
    """Return every template that holds none."""
    return list(_read("harmless"))
