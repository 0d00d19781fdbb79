"""Two sentences word by word: one says the other, adds to it, clashes with it or has nothing to do with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from enum import IntEnum

from recollect.policy.twins.details import Kind, Sentence, Token

_LONGEST = 120  # words
_SHARED = 0.5  # of the shorter one's words, below which two sentences are not about the same thing
_MOSTLY = 0.75
_BINDING = frozenset(("of", "to", "or", "than", "as", "between", "from"))  # what follows changes who or what
_OPPOSITE = [{"before", "after"}, {"in", "out"}, {"on", "off"}, {"up", "down"}, {"over", "under"}, {"above", "below"}]
_OPPOSITE += [{"inside", "outside"}, {"into", "from"}, {"to", "from"}, {"with", "without"}]


class Verdict(IntEnum):
    """What a sentence is to an older one; the greater outweighs the smaller."""

    APART = 0
    CLASH = 1
    ADDS = 2
    SAID = 3


def compare(new: Sentence, old: Sentence) -> Verdict:
    """Say whether `old` says what `new` says (SAID), both fit together (ADDS), contradict (CLASH), or are APART."""
    fresh, known = new.texts, old.texts
    if not fresh or not known:
        return Verdict.APART
    if fresh == known:
        return Verdict.SAID
    smaller = min(_told(new.tokens), _told(old.tokens))
    if max(len(fresh), len(known)) > _LONGEST or not smaller or _common(new, old) < _SHARED * smaller:
        return Verdict.APART
    if _polar(new.tokens) != _polar(old.tokens):
        return Verdict.CLASH
    if Counter(fresh) == Counter(known):
        return Verdict.SAID if _turned(new.tokens, known) else Verdict.CLASH
    return _aligned(new, old, smaller)


def _aligned(new: Sentence, old: Sentence, smaller: int) -> Verdict:
    """Lay the sentences side by side: what stands in another's place clashes, what is only inserted adds."""
    steps = SequenceMatcher(None, old.texts, new.texts, autojunk=False).get_opcodes()
    shared = sum(_told(old.tokens[first:last]) for step, first, last, _, _ in steps if step == "equal")
    gone, come = [], []
    for step, first, last, start, end in steps:
        lost, won = old.tokens[first:last], new.tokens[start:end]
        if step == "replace" and not (last == len(old.tokens) and end == len(new.tokens) and _besides(lost, won)):
            return Verdict.CLASH if shared >= _SHARED * smaller else Verdict.APART
        if step != "equal":
            gone += [(first, last)] if lost else []
            come += [(start, end)] if won else []
    if shared < max(_MOSTLY * smaller, min(2, smaller)):
        return Verdict.CLASH
    if _rivals(old.tokens, gone) & _rivals(new.tokens, come) or _one_and_many(new, old, steps):
        return Verdict.CLASH
    english = new.english and old.english
    mild = all(_harmless(one.tokens, *run) for one, runs in ((old, gone), (new, come)) for run in runs)
    if not (english and mild):
        return Verdict.CLASH
    return Verdict.ADDS if come else Verdict.SAID


def _harmless(tokens: Sequence[Token], first: int, last: int) -> bool:
    """Say whether a sentence keeps its sense without a stretch: an adjective, an adverb, a clause of its own."""
    run = tokens[first:last]
    after = tokens[last] if last < len(tokens) else None
    hangs_on = run[-1].kind is Kind.LINK and run[-1].text != "and"
    if first == 0:
        alone = len(run) == 1 and run[0].kind is Kind.WORD and (after is None or after.kind is not Kind.NAME)
        linked = any(one.kind is Kind.LINK for one in run) or (after is not None and after.cut)
        return alone or (linked and not hangs_on)
    opens = (run[0].kind is Kind.LINK and run[0].text not in _BINDING) or run[0].cut
    if after is None:
        return opens or (len(run) == 1 and _is_adverb(run[0]))
    word = len(run) == 1 and run[0].kind in (Kind.WORD, Kind.NUMBER)
    return (opens and not hangs_on) or (word and not (run[0].kind is Kind.NUMBER and after.kind is not Kind.WORD))


def _is_adverb(token: Token) -> bool:
    if token.kind is Kind.NUMBER:
        return token.text.startswith(("weekday", "month")) or token.text.endswith((" pm", " am"))
    return token.kind is Kind.WORD and (token.text.endswith("ly") or token.text in ("today", "yesterday", "tomorrow"))


def _besides(lost: Sequence[Token], won: Sequence[Token]) -> bool:
    """Say whether two endings stand beside each other: for caching, in production."""
    heads = {lost[0].text, won[0].text}
    linked = lost[0].kind is won[0].kind is Kind.LINK and min(len(lost), len(won)) > 1
    return linked and len(heads) == 2 and not heads & _BINDING and heads not in _OPPOSITE


def _rivals(tokens: Sequence[Token], runs: Sequence[tuple[int, int]]) -> frozenset[Kind]:
    """Return which kinds of detail the stretches hold, of which two sentences may not each have their own."""
    kinds = (one.kind for first, last in runs for one in tokens[first:last])
    return frozenset(kinds) & {Kind.NUMBER, Kind.NAME}


def _one_and_many(new: Sentence, old: Sentence, steps: Sequence[tuple[str, int, int, int, int]]) -> bool:
    """Say whether a number stands in the one where the other says a or an: a server, three servers."""
    for step, first, last, start, end in steps:
        ours, theirs = (new.tokens, old.tokens) if step == "insert" else (old.tokens, new.tokens)
        begin, stop, there = (start, end, first) if step == "insert" else (first, last, start)
        number = step in ("insert", "delete") and any(one.kind is Kind.NUMBER for one in ours[begin:stop])
        if number and there < len(theirs) and theirs[there].single:
            return True
    return False


def _turned(new: Sequence[Token], old: tuple[str, ...]) -> bool:
    """Say whether two sentences of the same words differ only in a clause put first: for caching we use Redis."""
    texts = tuple(one.text for one in new)
    turns = (turn for turn in range(1, len(texts)) if texts[turn:] + texts[:turn] == old)
    return any(Kind.LINK in (new[0].kind, new[turn].kind) for turn in turns)


def _told(tokens: Sequence[Token]) -> int:
    return sum(one.telling for one in tokens)


def _common(new: Sentence, old: Sentence) -> int:
    fresh, known = (Counter(token.text for token in one.tokens if token.telling) for one in (new, old))
    return (fresh & known).total()


def _polar(tokens: Sequence[Token]) -> Counter[str]:
    return Counter(one.text for one in tokens if one.kind is Kind.POLAR)
