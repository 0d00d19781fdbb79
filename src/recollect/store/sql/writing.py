"""One write: its subjects over one transaction on one namespace."""

from __future__ import annotations

from dataclasses import dataclass, field

from recollect.store.sql.consolidation import ConsolidationWriting
from recollect.store.sql.decisions import DecisionWriting
from recollect.store.sql.fact_writing import FactWriting
from recollect.store.sql.journal_lines import JournalWriting
from recollect.store.sql.memory_imports import MemoryImports
from recollect.store.sql.memory_lookup import MemoryLookup
from recollect.store.sql.memory_writing import MemoryWriting
from recollect.store.sql.outcomes import OutcomeWriting
from recollect.store.sql.person_rows import PersonWriting
from recollect.store.sql.retention import RetentionLookup
from recollect.store.sql.reviews import ReviewWriting
from recollect.store.sql.session_texts import SessionTexts
from recollect.store.sql.summary_members import SummaryMembers
from recollect.store.sql.transaction import Transaction
from recollect.store.sql.withdrawals import WithdrawalWriting


@dataclass(eq=False, slots=True)
class Writing:
    """What a verb writes in one transaction: `lookup` finds memories, each other subject writes its own rows."""

    transaction: Transaction
    lookup: MemoryLookup = field(init=False)
    memories: MemoryWriting = field(init=False)
    imports: MemoryImports = field(init=False)
    facts: FactWriting = field(init=False)
    journal: JournalWriting = field(init=False)
    outcomes: OutcomeWriting = field(init=False)
    retention: RetentionLookup = field(init=False)
    consolidation: ConsolidationWriting = field(init=False)
    decisions: DecisionWriting = field(init=False)
    reviews: ReviewWriting = field(init=False)
    withdrawals: WithdrawalWriting = field(init=False)
    summary_members: SummaryMembers = field(init=False)
    session_texts: SessionTexts = field(init=False)
    person: PersonWriting = field(init=False)

    def __post_init__(self) -> None:
        own = self.transaction
        self.lookup, self.facts = MemoryLookup(own), FactWriting(own)
        self.memories = MemoryWriting(own, self.lookup, self.facts)
        self.journal = JournalWriting(own, self.lookup)
        self.imports = MemoryImports(own, self.memories)
        self.outcomes, self.retention = OutcomeWriting(own), RetentionLookup(own)
        self.consolidation, self.decisions = ConsolidationWriting(own), DecisionWriting(own)
        self.reviews = ReviewWriting(own, self.lookup)
        self.withdrawals = WithdrawalWriting(own, self.lookup, self.memories)
        self.summary_members, self.session_texts = SummaryMembers(own), SessionTexts(own)
        self.person = PersonWriting(own)
