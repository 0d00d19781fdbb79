"""Compression at the end of a session: old memories about the same rank below one summary of them.

It concerns what consolidation concerns. Nothing is destroyed: members stay findable below their summary, `restore`
makes each current again, and what somebody took out of a summary once is never put into another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from recollect.app import App
from recollect.domain.enums import ObservationType, Scope
from recollect.domain.lifecycle import EndSession, LifecycleSettings
from recollect.domain.requests import Caller
from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.memory.condense import MOST, condensed_text, day_of, first_words, may_condense
from recollect.memory.summaries import ids_that_replaced, write_summary
from recollect.sessions.session_state import Context
from recollect.text.layers import shortened, title
from recollect.text.sentences import sentences
from recollect.text.terms import jaccard, spellings, topic_words

FEWEST: Final = 3
"""Memories that make a cluster."""

MIN_AGE: Final = timedelta(days=7)
ALIKE: Final = 0.3
"""Jaccard similarity of topic words from which on two memories are about the same."""

_MAX_SENTENCES: Final = 30  # of one memory that are compared
_TOPIC_WORDS: Final = 4  # words that name what a cluster is about
_TOPIC_FILES: Final = 2  # files that do
_MAX_SENTENCE: Final = 300  # characters of a sentence in a summary
_SHORTER_SENTENCES: Final = (160, 100, 60)
_NEARLY_SAME: Final = 0.6  # Jaccard similarity of the topic words of two lines that say the same

_MAX_SUMMARIES: Final = 5
"""Summaries of one session's end; the next end writes the next."""

_MAX_COMPARED: Final = 1_000
"""Memories that are compared at one session's end: those that were written last of the old ones."""

Say = Callable[[Sequence[Memory]], str]
"""Makes one text of a cluster's members."""


def clusters(memories: Iterable[Memory], now: datetime, min_age: timedelta = MIN_AGE) -> list[list[Memory]]:
    """Return the groups of three or more old memories about the same subject, each with the oldest first.

    A memory joins a group when it is like any of its members (single linkage). Groups never mix namespaces or levels of
    sensitivity, and have at most 40 members. Cosines of vectors instead of words were tried and not kept: of 45
    memories captured from three labelled sessions they put 29 into groups (cosine 0.55), where 64 % of the pairs were
    of one topic; words put 6, and 100 % were.
    """
    groups: dict[tuple[str, str], list[Memory]] = defaultdict(list)
    for memory in sorted(memories, key=lambda memory: (memory.created_at, memory.id)):
        if _may_be_compressed(memory, now - min_age):
            groups[memory.namespace, memory.sensitivity].append(memory)
    linked = (group for members in groups.values() for group in _linked_groups(members))
    parts = (group[start : start + MOST] for group in linked for start in range(0, len(group), MOST))
    return [part for part in parts if len(part) >= FEWEST]


def summary(members: Sequence[Memory]) -> str:
    """Return one text of a cluster: for each member its day, and its title, where somebody gave it one.

    Of others it is the sentence that is nearest to what the members say.
    A later line may put an earlier one right, so whoever reads them must see which is later. What several say in nearly
    the same words is said once, by the last of them; and the lines are cut until they are shorter than what they stand
    for.
    """
    words = {memory.id: topic_words(memory.content) for memory in members}
    titles = {memory.id: memory.title for memory in members if memory.title != title(memory.content)}
    lines = {memory.id: titles.get(memory.id) or _central_sentence(memory, words) for memory in members}
    shown = [
        memory
        for place, memory in enumerate(members)
        if not _is_repeated_later(lines[memory.id], members[place + 1 :], lines)
    ]
    categories = {memory.category for memory in members}
    category = categories.pop() if len(categories) == 1 else None
    room = sum(len(memory.content) for memory in members)
    for longest in (_MAX_SENTENCE, *_SHORTER_SENTENCES):
        text = condensed_text(
            category,
            members,
            lambda memory: f"{day_of(memory)}: {shortened(lines[memory.id], longest)}",  # noqa: B023
            shown,
        )
        if len(text) < room:
            break
    return text


def _is_repeated_later(line: str, later: Sequence[Memory], texts: Mapping[int, str]) -> bool:
    """Return whether a later member says nearly the same as a line."""
    words = topic_words(line)
    return any(words and jaccard(words, topic_words(texts[memory.id])) >= _NEARLY_SAME for memory in later)


def shared_topic(members: Sequence[Memory]) -> str:
    """Return the names of the files that most members of a cluster are about; else the words they share."""
    files = Counter(
        name
        for memory in members
        for name in {_file_name(path) for path in (*memory.files_modified, *memory.files_read)}
    )
    if shared := _common_names(files, len(members)):
        return ", ".join(shared[:_TOPIC_FILES])
    spelt = spellings(memory.content for memory in members)
    words = _common_names(Counter(word for memory in members for word in topic_words(memory.content)), len(members))
    return ", ".join(spelt.get(word, word) for word in words[:_TOPIC_WORDS])


def _common_names(counts: Counter[str], members: int) -> list[str]:
    """Return the names that at least half of the members share (at least two), the most frequent first."""
    shared = [word for word, count in counts.items() if 2 * count >= members and count > 1]
    return sorted(shared, key=lambda word: (-counts[word], word))


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _may_be_compressed(memory: Memory, before: datetime) -> bool:
    """Say whether a memory may be condensed, is in sight, and has not changed since `before`."""
    return may_condense(memory) and memory.updated_at < before and not memory.is_hidden


def _linked_groups(memories: Sequence[Memory]) -> list[list[Memory]]:
    """Return the groups that chains of like memories make; each is compared with those it shares a word with."""
    words = [topic_words(memory.content) for memory in memories]
    group_of = list(range(len(memories)))
    holders: dict[str, list[int]] = defaultdict(list)
    for place, ours in enumerate(words):
        shared = Counter(chain.from_iterable(holders[word] for word in ours))
        like = {group_of[index] for index, n in shared.items() if n / (len(ours) + len(words[index]) - n) >= ALIKE}
        if like:
            group_of = [place if group in like else group for group in group_of]
        for word in ours:
            holders[word].append(place)
    found: dict[int, list[Memory]] = defaultdict(list)
    for memory, group in zip(memories, group_of, strict=True):
        found[group].append(memory)
    return list(found.values())


def _central_sentence(memory: Memory, words: Mapping[int, frozenset[str]]) -> str:
    """Return the sentence of a memory that has most in common with the other members; of equal ones the first."""
    others = [theirs for memory_id, theirs in words.items() if memory_id != memory.id]
    first = sentences(memory.content)[:_MAX_SENTENCES]
    best = max(first, key=lambda sentence: sum(jaccard(topic_words(sentence), theirs) for theirs in others), default="")
    return shortened(" ".join(best.split()), _MAX_SENTENCE) or first_words(memory)


@dataclass(frozen=True, slots=True)
class Compressed:
    """How many memories were compared, and which summaries were written of how many."""

    looked_at: int
    ids: tuple[int, ...]
    members: int


def compress_at_session_end(context: Context[EndSession]) -> None:
    """Compress the memories of the session's project."""
    compress(context.app, context.caller, context.settings)


def compress(app: App, caller: Caller, settings: LifecycleSettings, say: Say = summary) -> Compressed:
    """Write a summary of each cluster of old memories about the same, at most five of them."""
    old = _old_memories(app, caller, settings)
    written: list[int] = []
    members = 0
    for cluster in clusters(old, app.clock(), timedelta(days=settings.compression_min_age_days)):
        some = [
            memory for memory in cluster if not ids_that_replaced(app, memory.id, memory.namespace)
        ]  # who brought it back wants it so
        if len(some) < FEWEST:
            continue
        new = _write_summary(app, some, say, caller)
        if new is not None:
            written.append(new)
            members += len(some)
        if len(written) == _MAX_SUMMARIES:
            break
    return Compressed(len(old), tuple(written), members)


def _old_memories(app: App, caller: Caller, settings: LifecycleSettings) -> list[Memory]:
    """Return the memories that are old enough and stand for themselves."""
    now, namespace = app.clock(), caller.writable(caller.namespace(Scope.PROJECT))
    before = now - timedelta(days=settings.compression_min_age_days)
    current = [memory for memory in app.records.consolidation.aging(namespace, settings.fading) if not memory.replaced]
    ripe = [
        memory
        for memory in current
        if memory.updated_at < before and memory.type is not ObservationType.COMPRESSED_SUMMARY
    ]
    ids = [memory.id for memory in sorted(ripe, key=lambda memory: (memory.updated_at, memory.id))[-_MAX_COMPARED:]]
    view = View(namespaces=app.records.namespaces.existing([namespace]), now=now)
    return list(app.records.load(ids, view).values())


def _write_summary(app: App, some: Sequence[Memory], say: Say, caller: Caller) -> int | None:
    """Write a summary of the members and return its id, None where the store refused it."""
    categories = {memory.category for memory in some}
    about = shared_topic(some)
    title = f"{len(some)} memories" + (f" about {about}" if about else "")
    category = categories.pop() if len(categories) == 1 else None
    return write_summary(app, Scope.PROJECT, say(some), title, category, some, caller)
