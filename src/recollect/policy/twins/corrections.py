"""Corrections: whether a text says that what an older one claims holds no longer.

From the wording of a correction follows the claim that it ends: "we moved from MySQL to Postgres" ends "we use MySQL".
An older text is corrected only when it makes that very claim, about the same subject, and little beside it: to be
wrong here hides a memory. English only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from recollect.policy.twins.details import Kind, Sentence, Token, read, tokens, uninflected
from recollect.policy.twins.sentences import Verdict, compare

_LONGEST = 300  # characters of a sentence that corrects
_BESIDE = 3  # words that an older claim may hold beside what is corrected

_DATE = (
    r"(?:the )?(?:\d{1,2}(?:st|nd|rd|th)? (?:of )?)?"
    r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]{0,6}\.?(?: \d{1,2}(?:st|nd|rd|th)?\b)?(?:,? \d{4})?"
    r"|\d{4}(?:-\d\d-\d\d)?|(?:last|this|next) [a-z]+|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|today|yesterday|now|v?\d+(?:\.\d+)+"
)
_LEAD = re.compile(
    rf"(?:(?:correction|update|edit)(?: *[:–—-] *|, )"
    rf"|(?:actually|in fact|from now on|recently|finally|yesterday|today|now|"
    rf"(?:as of|from|since|starting|starting in|in|on|effective) (?:{_DATE}))(?:, *| +))",
    re.IGNORECASE,
)
_WHEN = re.compile(
    rf",? (?:(?:as of|since|in|on|from|by) (?:{_DATE})|last [a-z]+|this [a-z]+|yesterday|today|recently|now)$", re.I
)
_STRONG = re.compile(r"(?:correction|update|edit)(?: *[:–—-] *|, )", re.IGNORECASE)
_WEAK = re.compile(r"\b(?:now|actually|as of|from now on|in fact|effective)\b", re.IGNORECASE)
_ALSO = re.compile(
    r"\b(?:also|too|additionally|another|as well|in addition|besides|both|again|second)\b", re.IGNORECASE
)
_REASON = re.compile(
    r"(?:;|[:,]? (?:because|since|so|due to|after|when|while|which|–|—|-)(?= )|, (?:and|but) )", re.IGNORECASE
)
_DECIDED = re.compile(r"\b(?:(?:has|have) )?(?:decided|agreed) to ", re.IGNORECASE)

_GONE = r"(?P<gone>[^,;:()]{1,60}?)"
_REST = r"(?P<rest>,? (?:for|in|on|at|with|by|during|across|within) .+)?$"
_HELP = r"(?:(?:have|has|had|was|were|is|are|been|just|recently|finally|now|since|got|completely|fully) )*"
_SWITCHED = "switched|moved|migrated|transitioned|converted|went|relocated|ported"
_CHANGED = "changed|upgraded|increased|decreased|raised|lowered|reduced|bumped|extended|shortened|updated|renamed"
_LEFT = "stopped using|quit using|ceased using|gave up on|dropped|ditched|abandoned|retired|got rid of|moved away from"

_INSTEAD = re.compile(
    rf"(?P<lead>.+?),? (?:instead of|rather than|in place of|and not|not) {_GONE}{_REST}", re.IGNORECASE
)
_INSTEAD_FIRST = re.compile(rf"(?:instead of|rather than|in place of) {_GONE}, (?P<lead>.+)", re.IGNORECASE)
_FROM = re.compile(
    rf"(?P<who>.+?) {_HELP}(?P<verb>{_SWITCHED}|{_CHANGED})(?P<what> .+?)?(?: over| away)? from {_GONE}"
    rf" (?:over )?to (?P<come>[^,;:()]+?){_REST}",
    re.IGNORECASE,
)
_SWAPPED = re.compile(
    rf"(?P<who>.+?) {_HELP}(?:replaced|swapped|swapped out) {_GONE} (?:with|by|for) (?P<come>.+)", re.IGNORECASE
)
_REPLACED = re.compile(rf"{_GONE} {_HELP}(?:replaced|superseded) (?:by|with) (?P<come>.+)", re.IGNORECASE)
_REPLACES = re.compile(
    rf"(?P<come>.+?) {_HELP}(?:replaces|replaced|supersedes|superseded|replacing) {_GONE}(?: as (?P<what>.+?))?{_REST}",
    re.IGNORECASE,
)
_NO_LONGER = re.compile(r"(?P<who>.+? )(?P<be>is |are )?no longer (?P<gone>.+)", re.IGNORECASE)
_ANY_MORE = re.compile(
    r"(?P<who>.+?)(?: do not| does not| don['’]t| doesn['’]t|(?P<be> is| are)(?: not|n['’]t)) "
    r"(?P<gone>.+?) any ?(?:more|longer)",
    re.IGNORECASE,
)
_STOPPED = re.compile(rf"(?P<who>.+?) {_HELP}(?:stopped|quit|ceased|gave up) (?P<gone>[a-z]+ing .+)", re.IGNORECASE)
_DROPPED = re.compile(rf"(?P<who>.+?) {_HELP}(?:{_LEFT}) {_GONE}{_REST}", re.IGNORECASE)
_NOT_BUT = re.compile(
    r"(?P<who>.+?) not (?!only\b|just\b)(?P<gone>[^,;:()]{1,60}?),? but (?:rather )?(?P<come>.+)", re.IGNORECASE
)
_CHANGED_TO = re.compile(rf"(?P<who>.+?) {_HELP}(?:{_CHANGED}|set) to (?P<come>[^,;:()]+)", re.IGNORECASE)
_TEAM = frozenset("team project company application product organization organisation".split())
_PEOPLE = frozenset("i we you he she they user team person everybody".split())
_PLACED = frozenset(
    map(uninflected, "be live work stay sit host deploy meet run store reside base locate report ship happen".split())
)


class Claim(NamedTuple):
    """What a correction ends, and the words of what holds instead, where it says so."""

    gone: Sentence
    come: frozenset[str]


def corrects(new: Sequence[str], old: Sequence[str]) -> bool:
    """Say whether the sentences of `new` end every claim of `old` that they do not themselves repeat."""
    claims = [claim for one in new for claim in _claims(one)]
    if not claims and not any(map(_owns, new)):
        return False
    ended = 0
    fresh = [read(one) for one in new]
    for sentence in old:
        known = _plain(sentence)
        if any(_makes(known, claim) for claim in claims) or any(_revalues(one, sentence) for one in new):
            ended += 1
        elif not any(compare(read(sentence), one) is Verdict.SAID for one in fresh):
            return False
    return ended > 0


def _makes(old: Sentence, claim: Claim) -> bool:
    """Say whether a sentence makes a claim, with little beside it, and does not know what came instead."""
    if compare(claim.gone, old) is not Verdict.SAID or (claim.come and claim.come <= set(old.texts)):
        return False
    if any(one.kind is Kind.POLAR for one in old.tokens):
        return False
    told = Counter(claim.gone.texts)
    beside = [one for one in old.tokens if not told[one.text]]
    named = any(one.kind in (Kind.NAME, Kind.NUMBER) or one.text in ("and", "but") for one in beside)
    return not named and sum(one.telling for one in beside) <= _BESIDE


def _claims(sentence: str) -> Iterator[Claim]:
    """Yield the claims that a sentence ends, each in the likely wordings of who once made it."""
    if len(sentence) > _LONGEST or sentence.rstrip().endswith("?"):
        return
    text = _DECIDED.sub("", _led(sentence).rstrip(" .!"))
    if place := _NOT_BUT.fullmatch(text):
        yield from _worded([f"{place['who']} {place['gone']}"], place["come"])
    text = _WHEN.sub("", _REASON.split(text, maxsplit=1)[0] if not _INSTEAD_FIRST.match(text) else text)
    for pattern in (_INSTEAD, _INSTEAD_FIRST):
        if place := pattern.fullmatch(text):
            yield from _instead(place)
    yield from _moved(text)
    yield from _left(text)


def _instead(place: re.Match[str]) -> Iterator[Claim]:
    """Yield what "we use X [for Z] instead of Y" ends: "we use Y [for Z]", whatever number of words X has."""
    lead, gone = tokens(place["lead"]), tokens(place["gone"])
    rest = tokens((place.groupdict().get("rest") or "").lstrip(" ,"))
    link = next((at for at, one in enumerate(lead) if at > 1 and one.kind is Kind.LINK), len(lead))
    for end in {link, len(lead)}:
        for begin in range(end - 1, max(end - 5, 1), -1):
            if lead[begin].kind in (Kind.LINK, Kind.POLAR):
                break
            come = frozenset(one.text for one in lead[begin:end])
            yield Claim(_subject(lead[:begin] + gone + lead[end:] + rest), come)


def _moved(text: str) -> Iterator[Claim]:
    if place := _FROM.fullmatch(text):
        who, gone, rest = place["who"], place["gone"], _lasting(place["rest"])
        subjects = [place["what"].strip()] if place["what"] else [who]
        made = [
            f"{one} {verb} {gone}{rest}"
            for one in subjects
            for verb in ("is", "is set to", "is in", "is on", "runs on")
        ]
        if place["verb"].lower() not in _CHANGED.split("|"):
            made += [f"{one} {verb} {gone}{rest}" for one in subjects for verb in ("uses", "lives in", "is hosted on")]
            made += [f"{who} uses {gone} for {place['what']}"] if place["what"] else []
        yield from _worded(made, place["come"])
    if place := _CHANGED_TO.fullmatch(text):
        return
    elif place := _SWAPPED.fullmatch(text):
        yield from _worded([f"{place['who']} uses {place['gone']}"], place["come"])
    elif place := _REPLACED.fullmatch(text):
        yield from _worded([f"{who} use {place['gone']}" for who in ("we", "I")], place["come"])
    elif place := _REPLACES.fullmatch(text):
        rest, what, gone = _lasting(place["rest"]), place["what"], place["gone"]
        made = [f"{who} use {gone}{f' as {what}' if what else ''}{rest}" for who in ("we", "I")]
        made += [f"{what} is {gone}{rest}", f"{gone} is {what}{rest}"] if what else []
        yield from _worded(made, place["come"])


def _left(text: str) -> Iterator[Claim]:
    if place := _NO_LONGER.fullmatch(text) or _ANY_MORE.fullmatch(text):
        yield from _worded([f"{place['who']} {(place['be'] or '').strip()} {place['gone']}"], "")
    if place := _STOPPED.fullmatch(text):
        yield from _worded([f"{place['who']} {place['gone']}"], "")
    if place := _DROPPED.fullmatch(text):
        yield from _worded([f"{place['who']} uses {place['gone']}{_lasting(place['rest'])}"], "")


def _worded(claims: Iterable[str], come: str) -> Iterator[Claim]:
    words = frozenset(one.text for one in tokens(_WHEN.sub("", come)) if one.kind is not Kind.LINK)
    for claim in claims:
        yield Claim(_plain(claim), words)


def _lasting(rest: str | None) -> str:
    """Return what follows, unless it only tells when."""
    return "" if rest is None or _WHEN.fullmatch(rest) else rest.lstrip(",")


def _led(sentence: str) -> str:
    """Return a sentence without what opens it: Correction:, Actually, As of May."""
    for _ in range(3):
        place = _LEAD.match(sentence)
        if place is None or place.end() >= len(sentence):
            break
        sentence = sentence[place.end() :]
    return sentence


def _plain(sentence: str) -> Sentence:
    return _subject(tokens(_led(sentence)))


def _subject(words: Sequence[Token]) -> Sentence:
    """Give the user and the team, whatever they are called, one name, and "run on" the name of use."""
    texts = [one.text for one in words]
    if texts[:1] == ["user"]:
        words = [Token("i", Kind.WORD), *words[1:]]
    elif texts[:1] and texts[0] in _TEAM:
        words = [Token("we", Kind.WORD), *words[1:]]
    elif texts[:1] == ["we"] and texts[1:2] and texts[1] in _TEAM:
        words = [Token("we", Kind.WORD), *words[2:]]
    found: list[Token] = []
    for one in words:
        if found and one.text == "on" and found[-1].text in ("rely", "run"):
            found[-1] = Token("use", Kind.WORD)
        else:
            found.append(one)
    return Sentence(tuple(found), english=True)


def _owns(sentence: str) -> bool:
    """Say whether a sentence owns to be a change: now, actually, was raised to."""
    return bool(_STRONG.match(sentence) or _WEAK.search(sentence) or " to " in sentence)


def _revalues(new: str, old: str) -> bool:
    """Say whether a sentence that owns to be a change gives another value to what an older one gives a value to."""
    strong = bool(_STRONG.match(new))
    if len(new) > _LONGEST or _ALSO.search(new):
        return False
    text = _led(new).rstrip(" .!")
    if place := _CHANGED_TO.fullmatch(_WHEN.sub("", text)):
        text, strong = f"{place['who']} is {place['come']}", True
    elif not (strong or _WEAK.search(new)):
        return False
    fresh, known = _plain(text), _plain(old)
    steps = SequenceMatcher(None, known.texts, fresh.texts, autojunk=False).get_opcodes()
    slots = [step for step in steps if step[0] != "equal"]
    if len(slots) != 1 or slots[0][0] != "replace" or slots[0][1] < 2:
        return False
    _, first, last, start, end = slots[0]
    return _is_value(fresh.tokens[:start], known.tokens[first:last], fresh.tokens[start:end], strong)


def _is_value(before: Sequence[Token], old: Sequence[Token], new: Sequence[Token], strong: bool) -> bool:
    """Say whether two stretches are values of one thing that has one value at a time."""
    if max(len(old), len(new)) > 3 or any(not one.telling for one in (*old, *new)):
        return False
    if any(one.kind is Kind.NUMBER for one in (*old, *new)):
        return [_sort(one) for one in old] == [_sort(one) for one in new]
    if strong:
        return True
    names = all(one.kind is Kind.NAME for one in (*old, *new))
    if before[-1].text == "be":
        return names and before[-2].text not in _PEOPLE
    placed = before[-1].kind is Kind.LINK and before[-2].text in _PLACED
    return placed and len(before) > 2


def _sort(one: Token) -> str:
    """Return what kind of number a token is: its unit, a weekday, a date, a month."""
    if one.kind is not Kind.NUMBER:
        return one.text
    return re.sub(r"[\d.,]+", "#", one.text) if not one.text.startswith("month") else "##-##"
