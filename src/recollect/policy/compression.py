"""Compression: which old memories are about the same and may rank below one summary, and what that says.

Nothing is destroyed: the members stay findable below their summary until somebody purges them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from recollect.domain.results import Memory
from recollect.policy.condense import MOST, beginning, condensed, day, may_condense
from recollect.text.layers import sentences, shortened, title
from recollect.text.terms import jaccard, spellings, topic_words

FEWEST: Final = 3
"""Memories that make a cluster."""

MIN_AGE: Final = timedelta(days=7)
ALIKE: Final = 0.3
"""Jaccard similarity of topic words from which on two memories are about the same."""

_SENTENCES: Final = 30  # of one memory that are compared
_TOPIC: Final = 4  # words that name what a cluster is about
_FILES: Final = 2  # files that do
_LONGEST: Final = 300  # characters of a sentence in a summary


def clusters(memories: Iterable[Memory], now: datetime, min_age: timedelta = MIN_AGE) -> list[list[Memory]]:
    """Return the groups of three or more old memories that are about the same, the oldest first in each.

    A memory joins a group when it is like any one of its members (single linkage). Groups never mix namespaces or
    levels of sensitivity, and have at most 40 members.

    Cosines of vectors instead of words were tried and not kept: of 45 memories captured from three labelled sessions
    they put 29 into groups (cosine 0.55), where 64 % of the pairs were of one topic; words put 6, and 100 % were.
    """
    groups: dict[tuple[str, str], list[Memory]] = defaultdict(list)
    for memory in sorted(memories, key=lambda one: (one.created_at, one.id)):
        if _is_ripe(memory, now - min_age):
            groups[memory.namespace, memory.sensitivity].append(memory)
    linked = (group for members in groups.values() for group in _linked(members))
    parts = (group[start : start + MOST] for group in linked for start in range(0, len(group), MOST))
    return [part for part in parts if len(part) >= FEWEST]


def summary(members: Sequence[Memory]) -> str:
    """Return one text of a cluster: for each member its day, and its title, where somebody gave it one.

    Of others it is the sentence that is nearest to what the members say.
    A later line may put an earlier one right, so whoever reads them must see which is later. What several say has the
    last of their days.
    """
    words = {one.id: topic_words(one.content) for one in members}
    given = {one.id: one.title for one in members if one.title != title(one.content)}
    said = {one.id: given.get(one.id) or _central(one, words) for one in members}
    days = {said[one.id]: day(one) for one in members}
    categories = {one.category for one in members}
    category = categories.pop() if len(categories) == 1 else None
    return condensed(category, members, lambda one: f"{days[said[one.id]]}: {said[one.id]}")


def topic(members: Sequence[Memory]) -> str:
    """Return the names of the files that most members of a cluster are about; without any, the words they share."""
    files = Counter(
        name for one in members for name in {_name(path) for path in (*one.files_modified, *one.files_read)}
    )
    if shared := _shared(files, len(members)):
        return ", ".join(shared[:_FILES])
    spelt = spellings(one.content for one in members)
    words = _shared(Counter(word for one in members for word in topic_words(one.content)), len(members))
    return ", ".join(spelt.get(one, one) for one in words[:_TOPIC])


def _shared(counts: Counter[str], members: int) -> list[str]:
    """Return what at least half of the members have, and more than one, the most frequent first."""
    shared = [one for one, count in counts.items() if 2 * count >= members and count > 1]
    return sorted(shared, key=lambda one: (-counts[one], one))


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _is_ripe(memory: Memory, before: datetime) -> bool:
    hidden = (memory.deleted_at, memory.merged_into, memory.superseded_by)
    return may_condense(memory) and memory.updated_at < before and all(one is None for one in hidden)


def _linked(memories: Sequence[Memory]) -> list[list[Memory]]:
    """Return the groups that chains of like memories make; each is compared with those it shares a word with."""
    words = [topic_words(one.content) for one in memories]
    group_of = list(range(len(memories)))
    holders: dict[str, list[int]] = defaultdict(list)
    for place, ours in enumerate(words):
        shared = Counter(chain.from_iterable(holders[word] for word in ours))
        like = {group_of[one] for one, n in shared.items() if n / (len(ours) + len(words[one]) - n) >= ALIKE}
        if like:
            group_of = [place if group in like else group for group in group_of]
        for word in ours:
            holders[word].append(place)
    found: dict[int, list[Memory]] = defaultdict(list)
    for memory, group in zip(memories, group_of, strict=True):
        found[group].append(memory)
    return list(found.values())


def _central(memory: Memory, words: Mapping[int, frozenset[str]]) -> str:
    """Return the sentence of a memory that has most in common with the other members; of equal ones the first."""
    others = [theirs for one, theirs in words.items() if one != memory.id]
    said = sentences(memory.content)[:_SENTENCES]
    best = max(said, key=lambda one: sum(jaccard(topic_words(one), theirs) for theirs in others), default="")
    return shortened(" ".join(best.split()), _LONGEST) or beginning(memory)
