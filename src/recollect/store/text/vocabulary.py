"""The vocabulary of what is stored, which every database keeps in the same tables: counts of words, and their rebuild.

A text index adds what each database searches in its own way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from sqlalchemy import Connection, bindparam, delete, func, select, update

from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.store.sql import mapping
from recollect.store.sql.child_tables import put_words
from recollect.store.sql.database import Database
from recollect.store.sql.expressions import Listed, any_of
from recollect.store.sql.query_facts import texts
from recollect.store.sql.statements import in_batches, insert_all
from recollect.store.sql.tables import memory, memory_words, word
from recollect.store.sql.visibility import HERE, LEVELS, of_session, size, values_of
from recollect.store.text.bm25 import Holders, Ranked, best_visible, bm25, visibly_held
from recollect.store.text.index import Term

_FREQUENCIES = (
    select(word.c.text, func.sum(word.c.uses))
    .where(any_of(word.c.namespace_id, HERE), any_of(word.c.sensitivity, LEVELS))
    .where(any_of(word.c.text, bindparam("words", type_=Listed())))
    .group_by(word.c.text)
)


class SqlVocabulary(ABC):
    """The part of a text index that only reads and rebuilds the tables of words."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def frequencies(self, words: Sequence[str], view: View) -> dict[str, int]:
        """Return, by word, how many memories of the view's namespaces and levels have it; unknown words are absent."""
        with self._database.reading() as connection:
            values = values_of(connection, view) | {"words": words}
            return {text: int(uses) for text, uses in connection.execute(_FREQUENCIES, values)} if words else {}

    def search(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]:
        """Return the best `limit` memories that hold any of `terms`, with the sum of weighted bm25 (> 0)."""
        with self._database.reading() as connection:
            return best_visible(connection, view, self._ranked(connection, terms, view), limit)

    def held(self, phrases: Collection[str], view: View) -> frozenset[str]:
        """Return those of these words and phrases that stand in a memory which the view may see."""
        with self._database.reading() as connection:
            terms = [Term(one) for one in phrases]
            return visibly_held(connection, view, self._holders(connection, terms, view)) if terms else frozenset()

    def ranked(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]:
        """Return the best `limit` memories of the view's namespaces and levels, whatever its other filters."""
        with self._database.reading() as connection:
            parts = (part[:limit].tolist() for part in self._ranked(connection, terms, view))
            return dict(zip(*parts, strict=True))

    def _ranked(self, connection: Connection, terms: Sequence[Term], view: View) -> Ranked:
        memories, length = texts(connection, view)
        holders = self._holders(connection, terms, view) if memories else ()
        return bm25(holders, memories, length / max(memories, 1), of_session(connection, view))

    def size(self, view: View) -> int:
        """Return how many memories of its levels the view's namespaces hold, but for what sums up a session."""
        with self._database.reading() as connection:
            return size(connection, view)

    def rebuild(self, worded: Callable[[Memory], tuple[str, frozenset[str]]] | None = None) -> None:
        """Build the whole index and the vocabulary again from the memories.

        `worded`, when given, says which keywords and words each memory has today; those it was stored with go.
        """
        if worded is not None:
            self._mend_index()
            self._rewrite_words(worded)
        with self._database.exclusive() as connection:
            self._drop_index(connection)  # by its triggers a damaged index would refuse what follows
            connection.execute(delete(word))
            counted = word_uses(connection)
            names = ("namespace_id", "sensitivity", "text")
            rows = [dict(zip(names, place, strict=True)) | {"uses": uses} for place, uses in counted.items()]
            insert_all(connection, word, rows)
            self._make_index(connection)

    @abstractmethod
    def _holders(self, connection: Connection, terms: Sequence[Term], view: View) -> Iterable[Holders]:
        """Return, for each distinct term, the texts of the view's namespaces and levels that hold it."""

    @abstractmethod
    def _mend_index(self) -> None:
        """Make an index anew whose damage would refuse writes."""

    @abstractmethod
    def _drop_index(self, connection: Connection) -> None:
        """Take away what the database searches beside the tables of words."""

    @abstractmethod
    def _make_index(self, connection: Connection) -> None:
        """Make that anew from the memories."""

    def _rewrite_words(self, worded: Callable[[Memory], tuple[str, frozenset[str]]]) -> None:
        """Give every memory its keywords and words anew, in short steps so that writers get by."""
        with self._database.reading() as connection:
            ids = connection.execute(select(memory.c.id)).scalars().all()
        for batch in in_batches(ids):
            with self._database.exclusive() as connection:
                for one in mapping.load(connection, memory.c.id.in_(batch), ()):
                    keywords, words = worded(one)
                    changed = (memory.c.id == one.id) & (memory.c.keywords != keywords)
                    connection.execute(update(memory).where(changed).values(keywords=keywords))
                    shown = one.deleted_at is None and one.merged_into is None
                    kept = " ".join(sorted(frozenset(" ".join(words).split()))) if shown else ""
                    put_words(connection, one.id, kept)


def word_uses(connection: Connection) -> Counter[tuple[int, str, str]]:
    """Count in how many memories of a namespace and level each word stands, from the memories' own lists of words."""
    counted: Counter[tuple[int, str, str]] = Counter()
    query = select(memory.c.namespace_id, memory_words.c.sensitivity, memory_words.c.words)
    for number, level, words in connection.execute(query.join(memory, memory.c.id == memory_words.c.memory_id)):
        counted.update((number, level, text) for text in words.split())
    return counted
