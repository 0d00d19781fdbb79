"""The text index on SQLite FTS5: words (porter), substrings (trigram) and the vocabulary with its typos.

What a user typed is always quoted: it is never FTS5 syntax. Every search stays inside the view's namespaces.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, column, delete, func, select, table, text, update

from recollect.domain import Memory, View
from recollect.ports import Term
from recollect.store import rows, vocabulary
from recollect.store.database import Database
from recollect.store.vocabulary import quoted

_TEXT = table("memory_text", column("rowid"), column("rank"))
_TRIGRAM = table("memory_trigram", column("rowid"))
_INDEXES = ("memory_text", "memory_trigram", "word_trigram")
_STEP = 200


class SqliteText:
    """The `Text` port over FTS5."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def search(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]:
        """Return the best `limit` memories that hold any of `terms`, with the sum of weighted bm25 (> 0)."""
        groups: dict[float, list[str]] = defaultdict(list)
        for term in terms:
            groups[term.weight].append(term.text)
        scores: dict[int, float] = defaultdict(float)
        with self._database.reading() as connection:
            numbers = rows.namespace_ids(connection, view.namespaces).values()
            if not numbers:
                return {}
            for weight, texts in groups.items():
                phrases = " OR ".join(quoted(one) for one in texts)
                within = " OR ".join(f'"ns{number}"' for number in numbers)
                match = f"ns : ({within}) AND {{title subtitle content keywords}} : ({phrases})"
                query = (
                    select(_TEXT.c.rowid, _TEXT.c.rank)
                    .join_from(_TEXT, rows.memory, rows.memory.c.id == _TEXT.c.rowid)
                    .where(text("memory_text MATCH :match"), rows.visible(view, numbers))
                    .order_by(_TEXT.c.rank)
                    .limit(limit)
                )
                for memory_id, rank in connection.execute(query, {"match": match}):
                    scores[memory_id] += -rank * weight
        return dict(scores)

    def substring(self, piece: str, view: View, limit: int) -> list[int]:
        """Return memories in whose text `piece` (at least three characters) stands, letter case aside."""
        grams = _trigrams(piece)
        if not grams:
            return []
        like = "%" + re.sub(r"([%_\\])", r"\\\1", piece) + "%"
        row = rows.memory.c
        everything = row.title + "\n" + row.subtitle + "\n" + row.content + "\n" + row.keywords
        with self._database.reading() as connection:
            numbers = rows.namespace_ids(connection, view.namespaces).values()
            query = (
                select(_TRIGRAM.c.rowid)
                .join_from(_TRIGRAM, rows.memory, rows.memory.c.id == _TRIGRAM.c.rowid)
                .where(text("memory_trigram MATCH :match"), rows.visible(view, numbers))
                .where(everything.like(like, escape="\\"))
                .limit(limit)
            )
            match = " AND ".join(quoted(gram) for gram in grams)
            return list(connection.execute(query, {"match": match}).scalars())

    def words(self, ids: Sequence[int]) -> dict[int, frozenset[str]]:
        """Return the vocabulary of each memory: its distinct words, folded."""
        found: dict[int, frozenset[str]] = {}
        with self._database.reading() as connection:
            for batch in rows.in_batches(ids):
                query = select(rows.memory_words).where(rows.memory_words.c.memory_id.in_(batch))
                found |= {row.memory_id: frozenset(row.words.split()) for row in connection.execute(query)}
        return found

    def frequencies(self, words: Sequence[str], view: View) -> dict[str, int]:
        """Return in how many memories of the view's namespaces each word stands; unknown words are absent."""
        with self._database.reading() as connection:
            numbers = rows.namespace_ids(connection, view.namespaces).values()
            query = (
                select(rows.word.c.text, func.sum(rows.word.c.uses))
                .where(rows.word.c.namespace_id.in_(numbers), rows.word.c.text.in_(words))
                .group_by(rows.word.c.text)
            )
            return {word: int(uses) for word, uses in connection.execute(query)}

    def size(self, view: View) -> int:
        """Return how many memories the view's namespaces hold, whatever their state."""
        with self._database.reading() as connection:
            numbers = rows.namespace_ids(connection, view.namespaces).values()
            query = select(func.sum(rows.namespace.c.memories)).where(rows.namespace.c.id.in_(numbers))
            return int(connection.execute(query).scalar() or 0)

    def similar(self, word: str, view: View, limit: int) -> list[Term]:
        """Return the stored words that `word` may be a misspelling or a part of, weighted 0–1, likeliest first."""
        with self._database.reading() as connection:
            numbers = list(rows.namespace_ids(connection, view.namespaces).values())
            return vocabulary.similar(connection, word, numbers, limit) if numbers else []

    def scrub(self) -> None:
        """Rewrite the index until no trace of deleted text is left in it, in short steps so that writers get by.

        A deletion stamps the store; the stamp goes when this has ended, so that a crash only puts it off.
        """
        due = rows.stamp.c.name == "scrub"
        with self._database.reading() as connection:
            token = connection.execute(select(rows.stamp.c.value).where(due)).scalar()
        if token is None:
            return
        for name in _INDEXES:
            pages = -_STEP
            while self._merge(name, pages):
                pages = _STEP
        self._database.checkpoint()
        with self._database.writing() as connection:
            connection.execute(delete(rows.stamp).where(due, rows.stamp.c.value == token))

    def rebuild(self, worded: Callable[[Memory], tuple[str, frozenset[str]]] | None = None) -> None:
        """Build the whole index and the vocabulary again from the memories.

        `worded`, when given, says which keywords and words each memory has today; those it was stored with go.
        """
        if worded is not None:
            self._reword(worded)
        with self._database.writing() as connection:
            connection.execute(delete(rows.word))
            split = "INSERT INTO word (namespace_id, text, uses) VALUES (:namespace, :word, :uses)"
            for batch in _batches(_uses(connection)):
                connection.execute(text(split), batch)
            for name in _INDEXES:
                connection.execute(text(f"INSERT INTO {name}({name}) VALUES ('rebuild')"))  # noqa: S608 - our own names

    def _reword(self, worded: Callable[[Memory], tuple[str, frozenset[str]]]) -> None:
        """Give every memory its keywords and words anew, in short steps so that writers get by."""
        with self._database.reading() as connection:
            ids = connection.execute(select(rows.memory.c.id)).scalars().all()
        for batch in rows.in_batches(ids):
            with self._database.writing() as connection:
                for memory in rows.load(connection, rows.memory.c.id.in_(batch)):
                    labels, words = worded(memory)
                    old = rows.memory.c.id == memory.id
                    connection.execute(
                        update(rows.memory).where(old, rows.memory.c.keywords != labels).values(keywords=labels)
                    )
                    mine = rows.memory_words.c.memory_id == memory.id
                    shown = memory.deleted_at is None and memory.merged_into is None
                    kept = " ".join(sorted(frozenset(" ".join(words).split()))) if shown else ""
                    connection.execute(update(rows.memory_words).where(mine).values(words=kept))

    def _merge(self, name: str, pages: int) -> bool:
        with self._database.writing() as connection:
            before = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
            connection.execute(text(f"INSERT INTO {name}({name}, rank) VALUES ('merge', :pages)"), {"pages": pages})  # noqa: S608 - our own names
            return bool(connection.exec_driver_sql("SELECT total_changes()").scalar_one() - before > 1)


def _trigrams(piece: str) -> list[str]:
    return list(dict.fromkeys(piece[start : start + 3] for start in range(len(piece) - 2)))


def _uses(connection: Connection) -> list[dict[str, Any]]:
    """Count in how many memories of its namespace each word stands."""
    counted: Counter[tuple[int, str]] = Counter()
    query = select(rows.memory.c.namespace_id, rows.memory_words.c.words)
    for number, words in connection.execute(query.join(rows.memory, rows.memory.c.id == rows.memory_words.c.memory_id)):
        counted.update((number, word) for word in words.split())
    return [{"namespace": number, "word": word, "uses": uses} for (number, word), uses in counted.items()]


def _batches(values: list[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    return (values[start : start + 1000] for start in range(0, len(values), 1000))
