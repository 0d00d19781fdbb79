"""The text index on SQLite FTS5: words (porter), substrings (trigram), and words like a misspelt one.

What a user typed is always quoted: it is never FTS5 syntax. Every search stays inside the view's namespaces.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import BindParameter, Connection, TextClause, bindparam, column, delete, select, table, text

from recollect.domain.search import View
from recollect.store.sql.tables import memory, store_metadata
from recollect.store.sql.visibility import namespace_ids, run_visible, values_of
from recollect.store.text.bm25 import LONGEST, Holders, counted, numbers, stemmed
from recollect.store.text.fts5_schema import DELETED_TEXT, DROPPED, FILLED, INDEXES, SQLITE_SCHEMA, UNLISTED
from recollect.store.text.index import Term
from recollect.store.text.spelling import similar
from recollect.store.text.vocabulary import SqlVocabulary

_TRIGRAM = table("memory_trigram", column("rowid"))
_LIMIT: BindParameter[int] = bindparam("limit")
# What FTS5 counts by itself counts the words of all namespaces. One text for each word passes to Python in a tenth of
# the time that rows take. Words count as often as they stand, phrases once a memory.
_HOLDERS = text(
    """WITH asked AS (SELECT json_extract(value, '$[0]') AS term, json_extract(value, '$[1]') AS counted,
        key AS number FROM json_each(:terms))
    SELECT number, CASE WHEN counted THEN (
        SELECT group_concat(doc * :shift + min(length, :shift - 1))
        FROM memory_text_place AS place CROSS JOIN text_length ON memory_id = doc
        WHERE place.term = asked.term AND namespace_id IN (SELECT value FROM json_each(:here))
        AND sensitivity IN (SELECT value FROM json_each(:levels))
    ) ELSE (
        SELECT group_concat(memory_id * :shift + min(length, :shift - 1))
        FROM memory_text CROSS JOIN text_length ON memory_id = memory_text.rowid
        WHERE memory_text MATCH asked.term AND namespace_id IN (SELECT value FROM json_each(:here))
        AND sensitivity IN (SELECT value FROM json_each(:levels))
    ) END AS holders FROM asked"""
).bindparams(bindparam("shift", LONGEST))
_UNCOUNTED = re.compile(r"(?:logi|bli|^.{0,2})$")  # where the stemmer of FTS5 goes another way than ours
_EVERYTHING = memory.c.title + "\n" + memory.c.subtitle + "\n" + memory.c.content + "\n" + memory.c.keywords
_HELD = (
    select(_TRIGRAM.c.rowid)
    .join_from(_TRIGRAM, memory, memory.c.id == _TRIGRAM.c.rowid)
    .where(text("memory_trigram MATCH :match"), _EVERYTHING.like(bindparam("like"), escape="\\"))
    .limit(_LIMIT)
)
_MERGED_PAGES = 200
_MOST: Final = 300
_MANY: Final = 3_000
_LAST: Final = "\U0010ffff"

_NUMBERS: BindParameter[list[int]] = bindparam("numbers", expanding=True)
_LEVELS: BindParameter[list[str]] = bindparam("levels", expanding=True)
_SPELT = text(
    """SELECT text, sum(uses) AS uses FROM word
    WHERE namespace_id IN :numbers AND sensitivity IN :levels
    AND text IN (SELECT value FROM json_each(:spellings)) GROUP BY text"""
).bindparams(_NUMBERS, _LEVELS)
_STARTING = text(
    """SELECT word.text, sum(word.uses) AS uses FROM json_each(:heads) AS head CROSS JOIN word
    WHERE word.namespace_id IN :numbers AND word.sensitivity IN :levels
    AND word.text > head.value AND word.text < head.value || :last
    AND length(word.text) BETWEEN :shortest AND :longest
    GROUP BY word.text ORDER BY length(word.text), word.text LIMIT :most"""
).bindparams(_NUMBERS, _LEVELS, bindparam("last", _LAST), bindparam("most", _MOST))
_HOLDING = text(
    """SELECT word.text, sum(word.uses) AS uses
    FROM (SELECT rowid FROM word_trigram WHERE word_trigram MATCH :piece LIMIT :many) AS found
    CROSS JOIN word ON word.id = found.rowid
    WHERE word.namespace_id IN :numbers AND word.sensitivity IN :levels
    AND length(word.text) BETWEEN :shortest AND :longest
    GROUP BY word.text ORDER BY length(word.text), word.text LIMIT :most"""
).bindparams(_NUMBERS, _LEVELS, bindparam("many", _MANY), bindparam("most", _MOST))


class SqliteText(SqlVocabulary):
    """The text index over FTS5."""

    def _holders(self, connection: Connection, terms: Sequence[Term], view: View) -> Iterable[Holders]:
        values = values_of(connection, view)
        here = {"here": _json(values["here"]), "levels": _json(values["levels"])}
        asked = _index_terms(terms)
        rows = connection.execute(_HOLDERS, here | {"terms": _json(asked)}).all()
        groups = list(asked.values())
        return [Holders(groups[number], *counted(numbers(listed))) for number, listed in rows]

    def substring(self, piece: str, view: View, limit: int) -> list[int]:
        """Return memories in whose text `piece` (at least three characters) stands, letter case aside."""
        grams = dict.fromkeys(piece[start : start + 3] for start in range(len(piece) - 2))
        if not grams:
            return []
        like = "%" + re.sub(r"([%_\\])", r"\\\1", piece) + "%"
        match = " AND ".join(quoted(gram) for gram in grams)
        with self._database.reading() as connection:
            return list(run_visible(connection, _HELD, view, match=match, like=like, limit=limit).scalars())

    def similar(self, word: str, view: View, limit: int) -> list[Term]:
        """Return the stored words that `word` may be a misspelling or a part of, weighted 0–1, likeliest first."""
        with self._database.reading() as connection:
            numbers = list(namespace_ids(connection, view.namespaces).values())
            stored = _StoredWords(connection, numbers, [str(level) for level in view.sensitivities])
            return similar(stored, word, limit) if numbers and stored.levels else []

    def purge_deleted(self) -> None:
        """Rewrite the index until no trace of deleted text is left in it, in short steps so that writers get by.

        A deletion marks the store; the mark goes when this has ended, so that a crash only puts it off.
        """
        due = store_metadata.c.name == DELETED_TEXT
        with self._database.reading() as connection:
            token = connection.execute(select(store_metadata.c.value).where(due)).scalar()
        if token is None:
            return
        for name in INDEXES:
            pages = -_MERGED_PAGES
            while self._merge_segments(name, pages):
                pages = _MERGED_PAGES
        if not self._database.checkpoint():
            return  # the mark stays, and the next purge tries again
        with self._database.writing() as connection:
            connection.execute(delete(store_metadata).where(due, store_metadata.c.value == token))

    def _mend_index(self) -> None:
        """Make the index anew where it is damaged, since every write would fail."""
        with self._database.exclusive() as connection:
            if self._database.dialect.text_damage(connection):
                self._drop_index(connection)
                self._make_index(connection)

    def _drop_index(self, connection: Connection) -> None:
        for statement in (*UNLISTED, *DROPPED):
            connection.exec_driver_sql(statement)

    def _make_index(self, connection: Connection) -> None:
        for statement in (*SQLITE_SCHEMA, *FILLED):
            connection.exec_driver_sql(statement)

    def _merge_segments(self, name: str, pages: int) -> bool:
        """Merge up to `pages` pages of an FTS5 index; say whether there was anything to merge."""
        with self._database.writing() as connection:
            before = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
            connection.execute(text(f"INSERT INTO {name}({name}, rank) VALUES ('merge', :pages)"), {"pages": pages})  # noqa: S608 - our own names
            return bool(connection.exec_driver_sql("SELECT total_changes()").scalar_one() - before > 1)


@dataclass(frozen=True, slots=True)
class _StoredWords:
    """The `StoredWords` of some namespaces and levels: looked up, never scanned for, whatever the size of the store."""

    connection: Connection
    numbers: list[int]
    levels: list[str]

    def among(self, spellings: Iterable[str]) -> dict[str, int]:
        """Find the stored words that are one of these."""
        return self._look_up(_SPELT, spellings=_json(spellings))

    def starting(self, heads: Iterable[str], shortest: int, longest: int) -> dict[str, int]:
        """Find stored words that begin with one of `heads` and go on, the shortest first."""
        return self._look_up(_STARTING, heads=_json(heads), shortest=shortest, longest=longest)

    def containing(self, piece: str, shortest: int, longest: int) -> dict[str, int]:
        """Find stored words that `piece` stands in, the shortest first."""
        return self._look_up(_HOLDING, piece=quoted(piece), shortest=shortest, longest=longest)

    def _look_up(self, query: TextClause, **values: Any) -> dict[str, int]:
        """Return the words that a query finds, each with how many memories use it."""
        rows = self.connection.execute(query, values | {"numbers": self.numbers, "levels": self.levels})
        return {row.text: row.uses for row in rows}


def _index_terms(terms: Sequence[Term]) -> dict[tuple[str, bool], list[Term]]:
    """Return the terms by what the index is asked for: a word as it holds it, or else a phrase in its syntax."""
    found: dict[tuple[str, bool], list[Term]] = defaultdict(list)
    for term in terms:
        base = stemmed(term.text)
        is_word = bool(base) and not _UNCOUNTED.search(base)
        known = base if is_word else quoted(term.text)
        found[known, is_word].append(term)
    return found


def quoted(phrase: str) -> str:
    """Make any text one FTS5 string: inside the quotes nothing is syntax."""
    return '"' + phrase.replace('"', '""') + '"'


def _json(texts: Iterable[Any]) -> str:
    return json.dumps(list(texts), ensure_ascii=False)
