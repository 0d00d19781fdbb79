"""The vocabulary of what is stored, which every database keeps in the same tables: counts of words, and their rebuild.

A text index adds what each database searches in its own way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, bindparam, delete, func, select, update

from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.store.sql import mapping
from recollect.store.sql.child_tables import put_words
from recollect.store.sql.database import Database
from recollect.store.sql.expressions import Listed, any_of
from recollect.store.sql.statements import in_batches, insert_all
from recollect.store.sql.tables import memory, memory_words, word
from recollect.store.sql.visibility import HERE, LEVELS, size, values_of

_FREQUENCIES = (
    select(word.c.text, func.sum(word.c.uses))
    .where(any_of(word.c.namespace_id, HERE), any_of(word.c.sensitivity, LEVELS))
    .where(any_of(word.c.text, bindparam("words", type_=Listed())))
    .group_by(word.c.text)
)


class SqlVocabulary:
    """The part of a text index that only reads and rebuilds the tables of words."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def frequencies(self, words: Sequence[str], view: View) -> dict[str, int]:
        """Return in how many memories of the view's namespaces and levels each word stands; unknown ones are absent."""
        with self._database.reading() as connection:
            values = values_of(connection, view) | {"words": words}
            return {text: int(uses) for text, uses in connection.execute(_FREQUENCIES, values)} if words else {}

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

    def _mend_index(self) -> None:
        """Make an index anew whose damage would refuse writes; nothing, unless a text index says so."""

    def _drop_index(self, connection: Connection) -> None:
        """Take away what the database searches beside the tables of words; nothing, unless a text index says so."""

    def _make_index(self, connection: Connection) -> None:
        """Make it anew from the memories; nothing, unless a text index says so."""

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
