"""Finds values by their label: `password = x`, `--token x`, "the password for the wiki is x", "use x as the password".

The labels of `labels.toml` are searched first, and then a value on either side, so that a harmless value hides nothing
behind it. How a value must look depends on how clearly the words between say that it is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from recollect.gate import heuristics
from recollect.gate.tables import Hinted, Lowered, compiled, either, lower, table

PASSWORD: Final = "password"  # noqa: S105 - a kind, not a password
KEY: Final = "API key or token"
PIN: Final = "PIN"

_SUFFIX: Final = r"(?:[_\-.]?(?:prod(?:uction)?|dev|stag(?:e|ing)|live|value|plain(?:text)?|raw|b64|base64|\d{1,2}))?"
_LOOSE: Final = re.compile(r"(?i)pw|p/w|clave|κωδικ.*|wifi.*|wlan.*|code secret|パス.*")
_NOT_A_SECRET: Final = re.compile(
    r"(?i)(?:page|next|cancell?ation|continuation|public|partition|primary|foreign|prompt|context|forgot"
    r"|(?<![a-z])(?:max|min|num|pad|eos|bos|sep|cls|unk|mask|sort|stop|start|end|special|cache|sync|input|output|per"
    r"|reset|no|idempotency|existing|publickey))[ _\-]?$|(?<![a-z])(?:sha\d{0,3}|md5|hash|checksum|digest)(?:sum)?\b[^\n]{0,24}$|\barn:[^\s\"']{0,70}$|::\w{0,40}$|\.svg\?$"
)
_OPERATOR: Final = r"(?:!==?|={1,3}|:=|=>|->|→|::?|\|\||\?\?|\+=)(?![=>])"
_CLOSING: Final = r"[\"'`\])}*]{0,4}(?:\[\d{0,4}\])?"
_ASSIGN: Final = re.compile(rf"{_CLOSING}[ \t]{{0,40}}{_OPERATOR}[ \t*>]{{0,40}}\(?(?:[rbfu@]{{1,2}}(?=[\"']))?")
_TYPED: Final = re.compile(r"[ \t]{0,8}:[ \t]{0,8}[A-Za-z_][\w.\[\], |]{0,40}?[ \t]{0,8}=(?!=)[ \t]{0,8}")
_ELEMENT: Final = re.compile(r"[^<>\n]{0,40}>[ \t]{0,8}(?=[^<>\s]{4,200}[ \t]{0,8}</)")
_PAIRED: Final = re.compile(
    r"[\w.\-]{0,20}[\"'`]?[^\w<>{}=:\n]{0,8}(?:\{[ \t]{0,8})?(?:\s{0,16}(?!(?:value|default|val|content)\b)[\w\-]{1,20}"
    r"[\"']?[ \t]{0,16}[:=][ \t]{0,8}(?:\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|[\w.\-]{1,40}),?){0,4}"
    r"[\s,]{1,24}[\"']?(?i:value|default|val|content|data|text|secret)[\"']?[ \t]{0,16}[:=][ \t]{0,8}"
)
_ARGUMENT: Final = re.compile(r"[\w\-]{0,20}[\"'`][ \t]?\)?[ \t]?(?:,|\.\w{2,16}\()[ \t]?[bru]?(?=[\"'`])")
_QUOTE_NEXT: Final = re.compile(
    r"[ \t]{1,8}[bru]?(?=[\"'][^\"'\n]{1,200}[\"'])|[ \t]?\((?=[\"'][^\"'\n]{1,200}[\"']\))"
)
_BELOW: Final = re.compile(
    r"[*:_ ]{0,4}\r?\n(?:[ \t>]{0,8}\r?\n)?[ \t>]{0,8}[`*]{0,2}(?P<s>\S{8,128})[ \t]{0,8}(?=\r?\n|$)"
)
_NEXT_LINE: Final = re.compile(
    r"[*\"'`]{0,4}[ \t]{0,8}[:=][ \t*]{0,8}\r?\n[ \t>]{0,16}(?:- )?(?P<s>\S{6,128})[ \t]{0,8}(?=\r?\n|$)"
)
_BESIDE: Final = re.compile(
    r"[\"'`*)\]]{0,4}(?:[ ]{0,4}(?:[\t|,(\[→]|[–—-]{1,2}>?[ ]|[\"'`“„«])|[ ])[ \t]{0,8}[\"'`“„«]{0,2}(?=[^\s|\"'`”»])"
)
_FLAG: Final = re.compile(r"[ \t]{1,8}(?=[^\s\-])")
_KEY_JUDGES: Final = (heuristics.high_entropy, heuristics.long_key, heuristics.key, heuristics.key)
_JOINED: Final = re.compile(r"[/\-_.:]")
_LONGER_NAME: Final = re.compile(r"[_\-.]?[A-Za-z0-9]")
_WINDOW: Final = 120
_STOP: Final = re.compile(r"(?:\.|(?<!\d)[!?])(?=\s|$)|[\n;。！？]")
_WORDS: Final = re.compile(r"(?:[a-z]{3,12} ){3,6}[a-z]{3,12}(?=[\"'`.]?[ \t]*(?:\n|$))")
_OWN: Final = re.compile(r"[ ]?[:=/][ ]")  # "passwords: NAS: x", "password: bob / x"
_QUOTED: Final = re.compile(
    r"""(?:[rbfu@]{0,2})(?:"((?:\\.|[^"\\\n]){1,512}+)"|'((?:\\.|[^'\\\n]){1,512}+)'|`([^`\n]{1,512})`)"""
)
_BARE: Final = re.compile(r"[^\s]{1,512}")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w{1,30}=(?![=\s]|$)")
_INNER: Final = re.compile(r"[\"'`,;<>|”»“„]|\\[nrt\"']")
_UNSPACED: Final = re.compile(r"[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uff5e。、「」『』]")
_OPEN: Final = {")": "(", "]": "[", "}": "{"}
_JUDGED: Final = 160


class Level(IntEnum):
    """How clearly the words around say that a value is the secret."""

    FAR = 0  # it stands somewhere in the label's sentence
    NEAR = 1  # it stands beside the label
    SAID = 2  # a sentence says so: "the password is x"
    STRONG = 3  # `password = x`


class Value(NamedTuple):
    """A value beside a label: its text, its offsets, and whether it was quoted."""

    text: str
    start: int
    end: int
    quoted: bool


class Label(NamedTuple):
    """Where a label stands, and what it announces: a kind of `labels.toml`."""

    start: int
    end: int
    kind: str
    text: str
    english: bool
    bare: bool  # it is the word "pass", which is a verb, too
    room: tuple[int, int] = (0, 0)  # from the label before to the label after: where its own value may stand


@cache
def _labels() -> Hinted[tuple[str, str, bool]]:
    """Return pattern and kind of each label by its hint; the patterns are for texts in lower case."""
    rows = []
    for kind in ("password", "key", "pin", "credentials", "login", "seed"):
        entries = ((lower(one), language == "en") for language, part in table("labels")[kind].items() for one in part)
        for entry, english in dict(entries).items():
            word = entry.removeprefix("|")
            latin = word[-1].isascii() or word[-1] in "łéèêàùçñöäüåøæíóáúýřěšžčůğşıěščřžýáíéőűăâîțşąęóśżźć"
            body = re.escape(word).replace(r"\ ", r"[ _\-.]{0,2}")
            rows.append(
                (
                    (word.partition(" ")[0],),
                    (
                        rf"{body}{rf's?{_SUFFIX}(?![a-zß-ÿ])' if latin else ''}",
                        kind + entry[: len(entry) - len(word)],
                        english,
                    ),
                )
            )
    return Hinted(rows)


def labels(text: str, lowered: Lowered) -> list[Label]:
    """Return the labels of a text in their order, of those that overlap the longest."""
    found = []
    for pattern, kind, english in _labels().within(lowered):
        for match in compiled(pattern).finditer(lowered):
            start, end = match.span()
            glued = start and text[start - 1].isalpha() and not (text[start].isupper() and text[start - 1].islower())
            if not (glued and kind.endswith("|")):
                bare = text[start:end] == "pass" and text[max(0, start - 1) : start] not in ("_", "-", ".")
                found.append(Label(start, end, kind.removesuffix("|"), match[0], english, bare))
    found.sort(key=lambda one: (one.start, -one.end, one.kind != "password"))
    kept: list[Label] = []
    for one in found:
        if not any(
            one.start < other.end and one.kind == other.kind or one[:2] == other[:2] and one.kind in ("pin", "key")
            for other in kept[-2:]
        ):
            kept.append(one)
    return list(_with_room(text, kept))


def _with_room(text: str, names: list[Label]) -> Iterator[Label]:
    announcing = [name for name in names if name.kind in ("password", "key")]
    edges = [(0, 0), *((name.start, name.end) for name in announcing), (len(text), len(text))]
    room = {name: (before[1], after[0]) for name, before, after in zip(announcing, edges, edges[2:], strict=False)}
    for name in names:
        first, last = room.get(name, (0, len(text)))
        yield name._replace(room=(max(first, name.start - _WINDOW), min(last, name.end + _WINDOW)))


def labelled(text: str, names: list[Label]) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each value whose label or sentence says that it is secret."""
    for name in names:
        if name.kind in ("password", "key") and not _NOT_A_SECRET.search(text, max(0, name.start - 80), name.start):
            kind = PASSWORD if name.kind == "password" else KEY
            seen = next((one for one, level in _candidates(text, name) if accepted(one, name, level)), None)
            if seen is not None:
                yield kind, seen.start, seen.end


def read(text: str, at: int) -> Value | None:
    """Return the value that begins at an offset: what is quoted, or all up to white space, without the punctuation."""
    quoted = _QUOTED.match(text, at)
    if quoted:
        group = quoted.lastindex or 1
        return Value(quoted[group], quoted.start(group), quoted.end(group), True)
    bare = _BARE.match(text, at)
    if bare is None:
        return None
    run = bare[0]
    if _ASSIGNMENT.match(run):
        return None  # its value is read in its own turn
    foreign = _UNSPACED.search(run)
    if foreign:
        run = run[: foreign.start()]
    run = run.partition("</")[0]
    end = at + len(run if run.endswith("...") else run.rstrip(".,;:"))
    inner = _INNER.search(run)
    cut = run[: inner.start()] if inner and not heuristics.mixes_classes(run) else run[: end - at]
    while cut[-1:] in _OPEN and _OPEN[cut[-1]] not in cut:
        cut = cut[:-1]
    if end - at - len(cut) == 1 or text[end - 1 : end] in _OPEN:
        end = at + len(cut)
    return Value(cut, at, max(end, at + 1), False) if cut else None


def accepted(value: Value | None, name: Label, level: Level) -> bool:
    """Say whether a value is the secret that its label announces."""
    if value is None:
        return False
    text = value.text[:_JUDGED].strip()
    if (name.bare and level < Level.SAID) or (not value.quoted and name.end <= value.start and "(" in value.text):
        return False
    if text.isalpha() and len(text) < 16:
        return name.kind == "password" and level >= Level.SAID and heuristics.weak(text)
    words = text.split()
    if len(words) > 1:
        if level is Level.STRONG and name.kind == "password" and _WORDS.fullmatch(text):
            return heuristics.phrase(text, 4)
        return (
            level is Level.STRONG
            and name.kind == "password"
            and value.quoted
            and len(words) <= 8
            and heuristics.passphrase(words)
        )
    if name.kind == "key":
        if level is Level.STRONG and value.quoted and heuristics.phrase(text, 4):
            return True
        return _KEY_JUDGES[level](text) and not (heuristics.common(text) and bool(_JOINED.search(text)))
    if level <= Level.NEAR or (_LOOSE.fullmatch(name.text) and name.text in ("pw", "p/w")):
        return heuristics.stands_out(text) or (level is Level.STRONG and heuristics.weak(text))
    if heuristics.weak(text) or heuristics.phrase(text, 3):
        return True
    named = heuristics.common(text) and (level is Level.SAID or bool(_JOINED.search(text.strip(".:"))))
    return heuristics.password(text) and not named


def _candidates(text: str, name: Label) -> Iterator[tuple[Value | None, Level]]:
    """Yield the values that a label may announce, and how clearly it does."""
    for pattern in (_ASSIGN, _TYPED, _ELEMENT, _PAIRED):
        operator = pattern.match(text, name.end)
        if operator:
            yield from _values(text, operator.end(), Level.STRONG)
    for pattern in (_ARGUMENT, _QUOTE_NEXT):
        operator = None if name.bare else pattern.match(text, name.end)
        if operator:
            yield read(text, operator.end()), Level.STRONG if pattern is _QUOTE_NEXT else Level.NEAR
    for pattern, level in ((_NEXT_LINE, Level.STRONG), (_BELOW, Level.NEAR)):
        below = pattern.match(text, name.end)
        if below:
            yield Value(below["s"], *below.span("s"), False), level
    if text[max(0, name.start - 40) : name.start].rpartition(" ")[2].startswith("-"):
        flag = _FLAG.match(text, name.end)
        if flag:
            yield read(text, flag.end()), Level.STRONG
    beside = _BESIDE.match(text, name.end)
    if beside:
        value = read(text, beside.end())
        yield value, Level.NEAR
        if value and accepted(value, name, Level.SAID) and _user_before(text, name):
            yield value, Level.SAID
    if not _LONGER_NAME.match(text, name.end):
        yield from _sentence_after(text, name)
        yield from _sentence_before(text, name)


def _values(text: str, at: int, level: Level) -> Iterator[tuple[Value | None, Level]]:
    """Yield what stands at an offset: several words, one value, or one behind a filler or a name of its own."""
    several = _WORDS.match(text, at)
    if several:
        yield Value(several[0], *several.span(), False), level
    filler = _filler().match(text, at)
    if filler:
        at = filler.end()
    value = read(text, at)
    own = _OWN.match(text, value.end) if value and not value.quoted and len(value.text) < 32 else None
    if own:
        yield read(text, own.end()), Level.NEAR
    yield value, level


def _sentence_after(text: str, name: Label) -> Iterator[tuple[Value | None, Level]]:
    tail = text[name.end : name.room[1]]
    stop = _STOP.search(tail)
    tail = tail[: stop.start() + 1] if stop else tail
    for count, connector in enumerate(_connectors().finditer(tail)):
        if count == 8:
            return
        changed = connector["to"] and _changed().search(text, max(0, name.start - 60), name.end + connector.end())
        if name.english and (connector["foreign"] or (connector["to"] and not changed)):
            continue
        gap = tail[: connector.start()].strip(" \t\"'`*)]")
        near = gap and not (
            _OF().match(gap) or gap.startswith("(") or (connector["after"] and not re.search("[a-zA-Z]", gap))
        )
        level = Level.FAR if near or connector["verb"] else Level.STRONG if connector["op"] else Level.SAID
        yield from _values(text, name.end + connector.end(), level)


def _sentence_before(text: str, name: Label) -> Iterator[tuple[Value | None, Level]]:
    """Read "use x as the password", "x is the password" and "enter x when asked for the password"."""
    start = name.room[0]
    head = text[start : name.start]
    stops = [stop.end() for stop in _STOP.finditer(head)]
    offset = start + (stops[-1] if stops else 0)
    head = text[offset : name.start]
    for pattern, level in ((_as_label(), Level.SAID), (_verb(), Level.FAR)):
        for match in pattern.finditer(head):
            value = read(text, offset + match.start("s"))
            if value and value.end <= name.start:
                yield value, Level.FAR if name.kind == "key" else level


def _user_before(text: str, name: Label) -> bool:
    return bool(_users().search(text, max(0, name.start - 60), name.start))


@cache
def _users() -> re.Pattern[str]:
    return re.compile(
        rf"(?i)(?<![a-z])(?:{either(table('labels')['user']['words'])})[ ]?[:=]?[ ]?[\w.@\-]{{1,40}},? ?(?:[a-z]{{1,4}} )?$"
    )


@cache
def _filler() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:(?:{either(table('labels')['is']['filler'])})[ ]){{1,3}}")


@cache
def _OF() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:{either(table('labels')['of']['words'])})(?![a-z])")


@cache
def _connectors() -> re.Pattern[str]:
    words = table("labels")
    before, after = either(words["is"]["before"]), either(words["is"]["after"])
    verbs = either([*words["verbs"]["words"], *words["with"]["before"]])
    return re.compile(
        rf"(?i)(?:(?P<op>[ ]?(?:[:=](?=[ \t\"'`]|$)|→|[–—-]>?[ ])[\"'`]{{0,2}})|(?<!\w)(?:{before})(?!\w)(?:[ ]?[:=])?|'s(?!\w)|(?P<after>{after})"
        rf"|(?<!\w)(?P<verb>{verbs})(?!\w)|(?<!\w)(?:(?P<foreign>{either(words['is']['foreign'])})|(?P<to>{either(words['is']['to'])}))(?!\w))[ \t*>]{{0,4}}"
    )


@cache
def _changed() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?<!\w)(?:{either(table('labels')['is']['changed'])})")


@cache
def _as_label() -> re.Pattern[str]:
    words = table("labels")["as"]
    return re.compile(
        rf"(?i)(?<![^\s\"'`“„«(])[\"'`“„«]{{0,2}}(?P<s>[^\s\"'`“„«]{{4,128}})(?:[\"'`”»]?,?[ ](?:{either(words['words'])})(?:[ ][^\s.,;:]{{1,20}}){{0,3}}"
        rf"|[ ]?(?:{either(words['attached'])})[^\s]{{0,6}})[ ]?$"
    )


@cache
def _verb() -> re.Pattern[str]:
    words = table("labels")["verbs"]["words"]
    spaced = either(word for word in words if word[-1].isalpha() and word[-1] < "ༀ")
    joined = either(word for word in words if word[-1] >= "ༀ")
    return re.compile(
        rf"(?i)(?<!\w)(?:(?:{spaced})[ ]{{1,2}}|(?:{joined})[ ]?)[\"'`“„«]{{0,2}}(?P<s>[^\s\"'`“„«]{{4,128}})"
    )
