"""The canonical records in SQL, on SQLite and PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    select,
)

from recollect.domain.enums import Sensitivity, owned, strictest
from recollect.domain.requests import WritableNamespace
from recollect.domain.results import Memory
from recollect.domain.search import View
from recollect.errors import QuotaFull
from recollect.store.sql import mapping, store_metadata
from recollect.store.sql.candidate_rows import CandidateRows
from recollect.store.sql.consolidation import Consolidation
from recollect.store.sql.database import Database
from recollect.store.sql.departures import Departures
from recollect.store.sql.derived_rows import DerivedRows
from recollect.store.sql.embeddings import Embeddings
from recollect.store.sql.expressions import any_of
from recollect.store.sql.facts import Facts
from recollect.store.sql.holds import HoldRows
from recollect.store.sql.journal_lines import JournalLines
from recollect.store.sql.limits import Quotas, resources_set
from recollect.store.sql.list_queries import Lists
from recollect.store.sql.moments import Moments
from recollect.store.sql.namespaces import Namespaces
from recollect.store.sql.outcomes import Outcomes
from recollect.store.sql.overview import CountedViews, Overview
from recollect.store.sql.person_rows import PersonRows
from recollect.store.sql.query_facts import QueryFacts, query_facts
from recollect.store.sql.retention_rules import RetentionRuleRows
from recollect.store.sql.reviews import Reviews
from recollect.store.sql.statements import count, select_in
from recollect.store.sql.tables import memory
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.usage_rows import UsageRows
from recollect.store.sql.visibility import (
    inside,
    of_levels,
    passing,
    run_visible,
    values_of,
    visible,
)
from recollect.store.sql.writing import Writing

PUBLIC_ONLY = (str(Sensitivity.PUBLIC),)

_by_id = any_of(memory.c.id, mapping.IDS)
_MEMORIES = mapping.MEMORIES.where(_by_id)
_CONTENTS, _ABSTRACTS = (select(memory.c.id, one).where(_by_id) for one in (memory.c.content, memory.c.abstract))


@dataclass(eq=False)
class Records:
    """Reads memories and opens transactions that write them.

    `clock` dates what is written, `written` is called after each commit that left work.

    `model` is what the store must be stamped with for our vectors to be stored; without it that is not looked at.

    `quotas` keep what users and teams hold within their limits.

    Each other subject is read by a class of its own.
    """

    _database: Database
    _clock: Callable[[], datetime]
    _written: Callable[[], None]
    _model: Mapping[str, str] | None = None
    _quotas: Quotas = field(default_factory=lambda: Quotas({}))
    lists: Lists = field(init=False)
    overview: Overview = field(init=False)
    moments: Moments = field(init=False)
    facts: Facts = field(init=False)
    consolidation: Consolidation = field(init=False)
    reviews: Reviews = field(init=False)
    journal: JournalLines = field(init=False)
    outcomes: Outcomes = field(init=False)
    namespaces: Namespaces = field(init=False)
    embeddings: Embeddings = field(init=False)
    usage: UsageRows = field(init=False)
    derived: DerivedRows = field(init=False)
    stamps: store_metadata.Stamps = field(init=False)
    people: PersonRows = field(init=False)
    departures: Departures = field(init=False)
    holds: HoldRows = field(init=False)
    retention_rules: RetentionRuleRows = field(init=False)

    def __post_init__(self) -> None:
        counted = CountedViews()
        self.lists, self.moments, self.facts = Lists(self._database), Moments(self._database), Facts(self._database)
        self.consolidation = Consolidation(self._database)
        self.overview, self.reviews = Overview(self._database, counted), Reviews(self._database, counted)
        self.journal, self.outcomes = JournalLines(self._database), Outcomes(self._database)
        self.namespaces, self.usage = Namespaces(self._database), UsageRows(self._database)
        self.embeddings = Embeddings(self._database, self._written, self._model)
        self.people, self.departures = PersonRows(self._database), Departures(self._database)
        self.holds, self.retention_rules = HoldRows(self._database), RetentionRuleRows(self._database)
        self.derived, self.stamps = DerivedRows(self._database), store_metadata.Stamps(self._database)

    @contextmanager
    def writing(
        self, namespace: WritableNamespace, actor: str, levels: Sequence[str] = PUBLIC_ONLY
    ) -> Iterator[Writing]:
        """Open one write transaction on `namespace`; nothing of it exists before the block has ended well.

        What is of none of the `levels` of sensitivity does not exist for it. Raises `QuotaFull`, which is journalled,
        where a user or a team would hold more than they may.
        """
        with self._journalling_full([namespace], actor, levels), self._database.writing(namespace) as connection:
            stamps = store_metadata.read(connection)
            writing = self._open_writing(connection, namespace, actor, stamps, levels)
            with self._within_quotas(connection, [namespace], stamps):
                yield writing
        if writing.transaction.changed:
            self._written()

    @contextmanager
    def importing(
        self,
        namespaces: Sequence[WritableNamespace],
        actor: str,
        levels: Sequence[str] = PUBLIC_ONLY,
        *,
        dry: bool = False,
        owner: str = "",
    ) -> Iterator[dict[str, Writing]]:
        """Open one write transaction on several namespaces, by their names; a `dry` one leaves nothing behind.

        What is not public is that of the `owner`, who is the actor unless they act for somebody else.
        Raises `QuotaFull` as `writing` does, also in a dry run, of which the journal says nothing.
        """
        with (
            self._journalling_full([] if dry else namespaces, actor, levels),
            self._database.writing(*namespaces) as connection,
            connection.begin_nested() as inner,
        ):
            stamps = store_metadata.read(connection)
            with self._within_quotas(connection, namespaces, stamps):
                yield {name: self._open_writing(connection, name, actor, stamps, levels, owner) for name in namespaces}
            if dry:
                inner.rollback()

    def request_sync(self) -> None:
        """Have embeddings, vector index and journal file follow what was imported, soon and in the background."""
        self._written()

    def _within_quotas(
        self, connection: Connection, namespaces: Sequence[str], stamps: Mapping[str, str]
    ) -> AbstractContextManager[None]:
        """Raise `QuotaFull` at the end of a block in which a user or a team comes to hold more than they may."""
        resources = resources_set(stamps)
        return self._quotas.kept(connection, self._database.dialect, namespaces, self._clock(), resources)

    @contextmanager
    def _journalling_full(
        self, namespaces: Sequence[WritableNamespace], actor: str, levels: Sequence[str]
    ) -> Iterator[None]:
        """Journal that a limit kept the block from writing, after its transaction, at its strictest level."""
        try:
            yield
        except QuotaFull as full:
            for name in namespaces:
                self.refuse(name, actor, full.limit, ("limit",), strictest(*levels))
            raise

    def _open_writing(
        self,
        connection: Connection,
        namespace: str,
        actor: str,
        stamps: Mapping[str, str],
        levels: Sequence[str] = (),
        owner: str = "",
    ) -> Writing:
        """Return the subjects of a write in an open transaction on a namespace, in a store with these stamps."""
        embeds = store_metadata.is_model(stamps, self._model)
        own = [owned(level, owner or actor) for level in levels]
        dialect, now = self._database.dialect, self._clock()
        return Writing(Transaction(connection, dialect, namespace, actor, own, now, embeds, owner))

    def snapshot(self) -> AbstractContextManager[object]:
        """Let all reads of this thread, share one transaction until the block ends."""
        return self._database.reading()

    def refuse(
        self,
        namespace: WritableNamespace,
        actor: str,
        field: str,
        kinds: Sequence[str],
        level: str = Sensitivity.PUBLIC,
    ) -> None:
        """Journal that a write of this level was refused: the field or limit and the kinds, never a value."""
        with self._database.writing(namespace) as connection:
            self._open_writing(connection, namespace, actor, {}).journal.refuse(field, kinds, level)
        self._written()

    def known_hashes(self, namespace: str, hashes: Iterable[str], levels: Sequence[str] = PUBLIC_ONLY) -> set[str]:
        """Return those of `hashes` that are the content of a memory of this namespace and of these levels."""
        with self._database.reading() as connection:
            let_in = of_levels(memory.c.sensitivity, levels, away=True)
            query = select(memory.c.content_hash).where(inside(connection, [namespace]), let_in)
            return {row.content_hash for row in select_in(connection, query, memory.c.content_hash, hashes)}

    def load(self, ids: Iterable[int], view: View) -> dict[int, Memory]:
        """Read those memories of `ids` that `view` may see; this is the authority on what leaves the store."""
        with self._database.reading() as connection:
            found = self._visible_rows(_MEMORIES, ids, view)
            return {one.id: one for one in mapping.memories(connection, found, view.sensitivities)}

    def query_facts(self, words: Collection[str], names: Collection[str], view: View) -> QueryFacts:
        """Read what a view may know of the words of a query, and of the speakers who have one of the folded `names`."""
        with self._database.reading() as connection:
            return query_facts(connection, words, names, view)

    def candidates(self, view: View) -> CandidateRows:
        """Return no rows yet of what a recall ranks, and `view` may see."""
        return CandidateRows(view)

    def read_candidates(self, rows: CandidateRows, ids: Collection[int], far: Collection[int]) -> None:
        """Add to `rows` these memories and what stands beside them, up to two places away from the `far`."""
        with self._database.reading() as connection:
            rows.read(connection, ids, far)

    def contents(self, ids: Iterable[int], view: View) -> dict[int, str]:
        """Read the content of those memories of `ids` that `view` may see, and nothing else of them."""
        return dict(map(tuple, self._visible_rows(_CONTENTS, ids, view)))

    def abstracts(self, ids: Iterable[int], view: View) -> dict[int, str]:
        """Read the one-line abstract of those memories of `ids` that `view` may see, and nothing else of them."""
        return dict(map(tuple, self._visible_rows(_ABSTRACTS, ids, view)))

    def merged_from(self, memory_id: int, view: View) -> tuple[int, ...]:
        """Return the ids of what was merged into a memory, as far as `view` may see that, oldest first."""
        parts = select(memory.c.id).where(memory.c.merged_into == memory_id).order_by(memory.c.id)
        with self._database.reading() as connection:
            return tuple(connection.execute(parts.where(visible(connection, view))).scalars())

    def _visible_rows(self, query: Select[Any], ids: Iterable[int], view: View) -> Sequence[Row[Any]]:
        """Return the rows of `query` for those memories of `ids` that `view` may see."""
        with self._database.reading() as connection:
            return run_visible(connection, query, view, ids=ids).all()

    def newest(self, view: View, limit: int) -> list[int]:
        """Return those `limit` memories that `view` may see and that were stored last."""
        with self._database.reading() as connection:
            query = passing(view).order_by(memory.c.id.desc()).limit(limit)
            return list(connection.execute(query, values_of(connection, view)).scalars())

    def count(self, view: View) -> int:
        """Count the memories that `view` may see."""
        with self._database.reading() as connection:
            return count(connection, memory, visible(connection, view), inside(connection, view.namespaces))
