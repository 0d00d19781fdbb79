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

from sqlalchemy import BindParameter, Connection, TextClause, bindparam, column, delete, func, select, table, text

from recollect.domain.search import View
from recollect.ports.search import Term
from recollect.store.sql.dialect import any_of
from recollect.store.sql.tables import held, memory, store_metadata
from recollect.store.sql.visibility import HERE, namespace_ids, run_visible, values_of
from recollect.store.text import spelling
from recollect.store.text.fts5_schema import DELETED_TEXT, INDEXES
from recollect.store.text.vocabulary import SqlVocabulary

_TEXT = table("memory_text", column("rowid"), column("rank"))
_TRIGRAM = table("memory_trigram", column("rowid"))
_mine = func.sum(held.c.memories).filter(any_of(held.c.namespace_id, HERE))
_SHARE = select(_mine, func.coalesce(func.sum(held.c.memories), 0))
_LIMIT: BindParameter[int] = bindparam("limit")
_RANKED = (
    select(_TEXT.c.rowid, _TEXT.c.rank)
    .join_from(_TEXT, memory, memory.c.id == _TEXT.c.rowid)
    .where(text("memory_text MATCH :match"))
    .order_by(_TEXT.c.rank)
    .limit(_LIMIT)
)
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
    """The `Text` port over FTS5."""

    def search(self, terms: Sequence[Term], view: View, limit: int) -> dict[int, float]:
        """Return the best `limit` memories that hold any of `terms`, with the sum of weighted bm25 (> 0)."""
        groups: dict[float, list[str]] = defaultdict(list)
        for term in terms:
            groups[term.weight].append(term.text)
        scores: dict[int, float] = defaultdict(float)
        with self._database.reading() as connection:
            numbers = namespace_ids(connection, view.namespaces).values()
            if not numbers:
                return {}
            mine, every = connection.execute(_SHARE, values_of(connection, view)).one()
            within = " OR ".join(f'"ns{number}"' for number in numbers)
            # The index walks all of a namespace to keep to it; where we hold most of the store, that costs more.
            here = f"ns : ({within}) AND " if 2 * (mine or 0) < every else ""
            for weight, texts in groups.items():
                phrases = " OR ".join(quoted(one) for one in texts)
                match = f"{here}{{title subtitle content keywords}} : ({phrases})"
                for memory_id, rank in map(tuple, run_visible(connection, _RANKED, view, match=match, limit=limit)):
                    scores[memory_id] += -rank * weight
        return dict(scores)

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
            return spelling.similar(stored, word, limit) if numbers and stored.levels else []

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
            while self._merge(name, pages):
                pages = _MERGED_PAGES
        if not self._database.checkpoint():
            return  # the mark stays, and the next purge tries again
        with self._database.writing() as connection:
            connection.execute(delete(store_metadata).where(due, store_metadata.c.value == token))

    def _rebuild_index(self, connection: Connection) -> None:
        for name in INDEXES:
            connection.execute(text(f"INSERT INTO {name}({name}) VALUES ('rebuild')"))  # noqa: S608 - our own names

    def _merge(self, name: str, pages: int) -> bool:
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
        return self._found(_SPELT, spellings=_json(spellings))

    def starting(self, heads: Iterable[str], shortest: int, longest: int) -> dict[str, int]:
        """Find stored words that begin with one of `heads` and go on, the shortest first."""
        return self._found(_STARTING, heads=_json(heads), shortest=shortest, longest=longest)

    def containing(self, piece: str, shortest: int, longest: int) -> dict[str, int]:
        """Find stored words that `piece` stands in, the shortest first."""
        return self._found(_HOLDING, piece=quoted(piece), shortest=shortest, longest=longest)

    def _found(self, query: TextClause, **values: Any) -> dict[str, int]:
        rows = self.connection.execute(query, values | {"numbers": self.numbers, "levels": self.levels})
        return {row.text: row.uses for row in rows}


def quoted(phrase: str) -> str:
    """Make any text one FTS5 string: inside the quotes nothing is syntax."""
    return '"' + phrase.replace('"', '""') + '"'


def _json(texts: Iterable[str]) -> str:
    return json.dumps(list(texts), ensure_ascii=False)
