"""The text index on PostgreSQL: words by their postings, pieces by trigrams where there are any, and words alike.

What a user typed is always a value or a pattern whose signs are escaped. Every search stays inside the view's
namespaces and levels, down to the counts that bm25 takes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, TextClause, bindparam, delete, literal_column, select, text
from sqlalchemy import table as named_table

from recollect.domain.search import View
from recollect.store.sql.tables import memory
from recollect.store.sql.visibility import namespace_ids, run_visible, values_of
from recollect.store.text.bm25 import LONGEST, Holders, numbers
from recollect.store.text.index import Term
from recollect.store.text.postgres_schema import EVERYTHING, FILLED, WORD_PIECES
from recollect.store.text.spelling import similar
from recollect.store.text.vocabulary import SqlVocabulary

_MOST: Final = 300
_LAST: Final = "\U0010ffff"

# The words of each term in their order; one word may stand at several places of a phrase.
_CUT = text(
    """SELECT asked.place, words.lexeme FROM unnest(CAST(:terms AS text[])) WITH ORDINALITY AS asked(term, place),
    unnest(recollect_vector(asked.term)) AS words, unnest(words.positions) AS spot ORDER BY asked.place, spot"""
)
_WORDS = text(
    """SELECT term, string_agg(times::text, ',') AS times,
    string_agg((CAST(memory_id AS bigint) * :shift + least(length, :shift - 1))::text, ',') AS places FROM posting
    WHERE namespace_id = ANY(:here) AND sensitivity = ANY(:levels) AND term = ANY(:terms) GROUP BY term"""
).bindparams(bindparam("shift", LONGEST))
_PHRASE = text(
    """SELECT string_agg((CAST(id AS bigint) * :shift + least(text_length, :shift - 1))::text, ',') FROM memory
    WHERE text_vector @@ phraseto_tsquery('recollect', recollect_words(:phrase)) AND id IN (
        SELECT memory_id FROM posting WHERE namespace_id = ANY(:here) AND sensitivity = ANY(:levels)
        AND term = ANY(:words) GROUP BY memory_id HAVING count(*) = cardinality(:words))"""
).bindparams(bindparam("shift", LONGEST))
_HELD = (
    select(memory.c.id)
    .where(literal_column(f"({EVERYTHING})").ilike(bindparam("like"), escape="\\"))
    .where(memory.c.namespace_id == text("ANY(:here)"))
    .limit(bindparam("limit"))
)
_SPELT = text(
    """SELECT text, sum(uses) AS uses FROM word
    WHERE namespace_id = ANY(:numbers) AND sensitivity = ANY(:levels) AND text = ANY(:spellings) GROUP BY text"""
)
_STARTING = text(
    """SELECT word.text, sum(word.uses) AS uses FROM unnest(CAST(:heads AS text[])) AS head(start)
    CROSS JOIN LATERAL (SELECT text, uses FROM word
        WHERE namespace_id = ANY(:numbers) AND sensitivity = ANY(:levels)
        AND text ~>~ head.start AND text ~<~ (head.start || :last)
        AND length(text) BETWEEN :shortest AND :longest) AS word
    GROUP BY word.text ORDER BY length(word.text), word.text LIMIT :most"""
).bindparams(bindparam("last", _LAST), bindparam("most", _MOST))
_HOLDING = text(
    f"""SELECT text, sum(uses) AS uses FROM word
    WHERE namespace_id = ANY(:numbers) AND sensitivity = ANY(:levels) AND {WORD_PIECES} LIKE :like ESCAPE '\\'
    AND length(text) BETWEEN :shortest AND :longest GROUP BY text ORDER BY length(text), text LIMIT :most"""  # noqa: S608 - our own text
).bindparams(bindparam("most", _MOST))


class PostgresText(SqlVocabulary):
    """The text index over PostgreSQL."""

    def _holders(self, connection: Connection, terms: Sequence[Term], view: View) -> Iterable[Holders]:
        values = values_of(connection, view)
        return _holders(connection, terms, {"here": list(values["here"]), "levels": values["levels"]})

    def substring(self, piece: str, view: View, limit: int) -> list[int]:
        """Return memories in whose text `piece` (at least three characters) stands, letter case aside."""
        if len(piece) < 3:
            return []
        with self._database.reading() as connection:
            return list(run_visible(connection, _HELD, view, like=_like_pattern(piece), limit=limit).scalars())

    def similar(self, word: str, view: View, limit: int) -> list[Term]:
        """Return the stored words that `word` may be a misspelling or a part of, weighted 0–1, likeliest first."""
        with self._database.reading() as connection:
            ids = list(namespace_ids(connection, view.namespaces).values())
            stored = _StoredWords(connection, ids, [str(level) for level in view.sensitivities])
            return similar(stored, word, limit) if ids and stored.levels else []

    def purge_deleted(self) -> None:
        """Do nothing: what is deleted is in no index, and its rows go when PostgreSQL vacuums."""

    def _mend_index(self) -> None:
        """Do nothing: a damaged index of PostgreSQL refuses no write."""

    def _drop_index(self, connection: Connection) -> None:
        """Do nothing: `_make_index` builds the indexes again in place."""

    def _make_index(self, connection: Connection) -> None:
        for name in ("posting", "text_size"):
            connection.execute(delete(named_table(name)))
        for statement in FILLED:
            connection.execute(text(statement))


@dataclass(frozen=True, slots=True)
class _StoredWords:
    """The `StoredWords` of some namespaces and levels."""

    connection: Connection
    numbers: list[int]
    levels: list[str]

    def among(self, spellings: Iterable[str]) -> dict[str, int]:
        """Find the stored words that are one of these."""
        return self._look_up(_SPELT, spellings=list(spellings))

    def starting(self, heads: Iterable[str], shortest: int, longest: int) -> dict[str, int]:
        """Find stored words that begin with one of `heads` and go on, the shortest first."""
        return self._look_up(_STARTING, heads=list(heads), shortest=shortest, longest=longest)

    def containing(self, piece: str, shortest: int, longest: int) -> dict[str, int]:
        """Find stored words that `piece` stands in, the shortest first."""
        return self._look_up(_HOLDING, like=_like_pattern(piece), shortest=shortest, longest=longest)

    def _look_up(self, query: TextClause, **values: Any) -> dict[str, int]:
        """Return the words that a query finds, each with how many memories use it."""
        rows = self.connection.execute(query, values | {"numbers": self.numbers, "levels": self.levels})
        return {row.text: int(row.uses) for row in rows}


def _holders(connection: Connection, terms: Sequence[Term], here: dict[str, Any]) -> list[Holders]:
    """Return what holds each distinct term. A term of several words is a phrase, and counts once a memory."""
    groups: dict[tuple[str, ...], list[Term]] = defaultdict(list)
    for term, words in _words_by_term(connection, terms):
        groups[words].append(term)
    single = [words[0] for words in groups if len(words) == 1]
    found = [
        Holders(groups[row.term,], numbers(row.places), numbers(row.times))
        for row in connection.execute(_WORDS, here | {"terms": single})
    ]
    for words, alike in groups.items():
        if len(words) == 1:
            continue
        asked = here | {"phrase": alike[0].text, "words": list(dict.fromkeys(words))}
        places = numbers(connection.execute(_PHRASE, asked).scalar())
        found.append(Holders(alike, places, places * 0 + 1))
    return found


def _words_by_term(connection: Connection, terms: Sequence[Term]) -> list[tuple[Term, tuple[str, ...]]]:
    """Return each term with its words as the index holds them; a term without words is left out."""
    words: dict[int, list[str]] = {}
    for place, lexeme in connection.execute(_CUT, {"terms": [term.text for term in terms]}):
        words.setdefault(place, []).append(lexeme)
    return [(term, tuple(words[place])) for place, term in enumerate(terms, 1) if place in words]


def _like_pattern(piece: str) -> str:
    """Return a pattern for what holds `piece`, in which no sign means anything else."""
    return "%" + re.sub(r"([%_\\])", r"\\\1", piece) + "%"
