"""Twins: whether a text says the same as one near it in meaning, more, something else, or the contrary.

Nearness (cosine) only opens the question, since a changed number or a negation hardly moves it; the words answer it.
Two sentences say the same when one stands in the other word for word, but for what carries no meaning. Whatever
stands in another's place, be it a number, a name or a noun, makes them two. In doubt two texts are two memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from recollect.policy.twins.corrections import corrects
from recollect.policy.twins.details import Sentence, key, read, sentences, units
from recollect.policy.twins.sentences import Verdict, compare

NEAR: Final = 0.7
NEAR_CORRECTION: Final = 0.5
NEAR_SHORTER: Final = 0.82  # from here on a text whose words all stand in a longer one says the same
_MOST_SENTENCES = 40
_ABOUT = 0.5  # share of one text's words that must stand in sentences which the other shares


class Relation(StrEnum):
    """What a new text is to an older one."""

    SAME = "same"
    MORE = "more"
    OTHER = "other"
    CORRECTION = "correction"


def relate(new: str, old: str, cosine: float) -> Relation:
    """Say what `new` is to `old`, whose vectors are as near as `cosine` (-1–1) says.

    `same`: it says nothing that the old one does not. `more`: it says that and more, or both add something to the
    same thing. `correction`: it says that what the old one claims, and nothing else of weight, holds no longer.
    `other`: everything else, and whatever is in doubt. Below `NEAR` only a correction is looked for, down to
    `NEAR_CORRECTION`; the same words are the same at any cosine.
    """
    fresh, known = sentences(new), sentences(old)
    if {key(one) for one in fresh} <= {key(one) for one in known}:
        return Relation.SAME
    if not known or cosine < NEAR_CORRECTION or max(len(fresh), len(known)) > _MOST_SENTENCES:
        return Relation.OTHER
    said = _relation([read(one) for one in fresh], [read(one) for one in known])
    if said is not Relation.SAME and corrects(fresh, known):
        return Relation.CORRECTION
    if said is Relation.SAME and cosine < NEAR_SHORTER and len(new) < len(old):
        said = Relation.MORE
    return said if cosine >= NEAR else Relation.OTHER


def _relation(new: Sequence[Sentence], old: Sequence[Sentence]) -> Relation:
    verdicts = [[compare(fresh, known) for known in old] for fresh in new]
    best = [max(row) for row in verdicts]
    if all(one is Verdict.SAID for one in best):
        return Relation.SAME
    if all(any(compare(known, fresh) is Verdict.SAID for fresh in new) for known in old):
        return Relation.MORE
    if Verdict.CLASH in best:
        return Relation.OTHER
    ours = [one >= Verdict.ADDS for one in best]
    theirs = [any(row[place] >= Verdict.ADDS for row in verdicts) for place in range(len(old))]
    return Relation.MORE if max(_share(new, ours), _share(old, theirs)) >= _ABOUT else Relation.OTHER


def _share(text: Sequence[Sentence], linked: Sequence[bool]) -> float:
    sizes = [len(one.tokens) for one in text]
    return sum(size for size, link in zip(sizes, linked, strict=True) if link) / max(sum(sizes), 1)


def merged(old: str, new: str) -> str:
    """Return `old` and, after it, whatever sentences of `new` do not read the same as one that is already there.

    Sentences read the same when every word and sign does, case and final marks aside, so no detail is lost.
    """
    known = {key(one) for one in sentences(old)}
    kept: list[tuple[int, int]] = []
    joined = False
    for start, end in units(new):
        if (reading := key(new[start:end])) in known:
            joined = False
            continue
        known.add(reading)
        kept = [*kept[:-1], (kept[-1][0], end)] if joined else [*kept, (start, end)]
        joined = True
    if not kept:
        return old
    added = [new[start:end] for start, end in kept]
    if not old.strip():
        return "\n".join(added)
    pieces = [old.rstrip(), *added]
    closed = [one for piece in pieces for one in sentences(piece)] == sentences(" ".join(pieces))
    return (" " if closed and "\n" not in old + new else "\n").join(pieces)
