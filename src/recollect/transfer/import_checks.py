"""What a file holds becomes something to write, or a problem: every string passes the gate before anything else."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from recollect.domain.enums import OnSecret, Scope, Sensitivity, Source, strictest
from recollect.domain.fields import MAX_NAME
from recollect.domain.origin import APPROVED, MOST_TRUST, Origin, SaidBy, origin_words
from recollect.domain.requests import Caller
from recollect.domain.transfer import (
    IMPORT_COUNTS,
    FactRecord,
    ImportBatch,
    Imported,
    ImportItem,
    MemoryRecord,
    Problem,
)
from recollect.errors import Forbidden, InvalidInput, SecretFound
from recollect.gate import Cleared, clear
from recollect.transfer.conversations import USER

R = TypeVar("R", MemoryRecord, FactRecord)

CLAIMED: Final = "claimed-author:"
"""What the tag begins with that tells who wrote a memory, as the file has it."""
CLAIMED_ORIGIN: Final = "claimed-origin:"
"""The same for its origin."""
_MOST_TAGS: Final = 198  # beside those two


@dataclass(frozen=True, slots=True)
class CheckedMemory:
    """A memory out of a file that the gate let pass, and its namespace; `original` is the record as the file has it.

    That may claim another author and any trust, what is written does not. `place` is its place in the batch.
    """

    place: int
    namespace: str
    cleared: Cleared[MemoryRecord]
    content_hash: str
    original: MemoryRecord
    former_key: str | None = None
    former_hash: str | None = None

    @property
    def record(self) -> MemoryRecord:
        """Return the memory."""
        return self.cleared.value


@dataclass(slots=True)
class Report:
    """What has become of a batch so far; `outcomes` are those of its items, by their places.

    `waiting` are the places of those that wait for a decision.
    """

    outcomes: dict[int, str] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    ids: list[tuple[int, int]] = field(default_factory=list)
    refusals: list[tuple[str, str, tuple[str, ...], Sensitivity]] = field(default_factory=list)

    def fail(self, place: int, where: str, why: str) -> None:
        """Note that an item cannot be written."""
        self.outcomes[place] = "failed"
        self.problems.append(Problem(where, why))

    def answer(self, size: int) -> Imported:
        """Return the report on a batch of `size` items as the answer that doors show."""
        found = Counter(self.outcomes.values())
        counts: dict[str, Any] = {name: found[name] for name in IMPORT_COUNTS}
        kinds = Counter(kind for _, _, several, _ in self.refusals for kind in several)
        outcomes = tuple(self.outcomes.get(place, "") for place in range(size))
        return Imported(
            **counts,
            problems=tuple(self.problems),
            refused_kinds=dict(kinds),
            waiting=len(self.waiting),
            ids=tuple(self.ids),
            outcomes=outcomes,
        )


@dataclass(frozen=True, slots=True)
class Checks:
    """Checks the items of one batch for one caller and notes in `report` what did not pass."""

    request: ImportBatch
    caller: Caller
    on_secret: OnSecret
    report: Report

    def memory(self, place: int, item: ImportItem) -> CheckedMemory | None:
        """Return a memory to be written; None where it cannot be, with a note. `place` is its place in the batch."""
        category = {"category": self.request.category} if self.request.category else {}
        fact_type = {"fact_type": self.request.fact_type} if self.request.fact_type else {}
        fields = {"source": Source.IMPORT} | category | item.fields | fact_type
        found = self._checked_record(MemoryRecord, fields, place, item)
        if found is None:
            return None
        namespace, cleared, original = found
        content_hash = hashlib.sha256(cleared.value.content.encode()).hexdigest()
        return CheckedMemory(place, namespace, cleared, content_hash, original, item.former_key, item.former_hash)

    def fact(self, place: int, item: ImportItem) -> tuple[str, Cleared[FactRecord]] | None:
        """Return a fact to be written and its namespace; None with a note in the report where it cannot be."""
        found = self._checked_record(FactRecord, item.fields, place, item)
        return None if found is None else found[:2]

    def _checked_record(
        self, record: type[R], fields: dict[str, Any], place: int, item: ImportItem
    ) -> tuple[str, Cleared[R], R] | None:
        """Return an item's namespace, its record past the gate, and the record of the file; None if refused."""
        where = item.where
        chosen: dict[str, Any] = {"origin": where} | ({"scope": self.request.scope} if self.request.scope else {})
        namespace, level = "", Sensitivity.PUBLIC
        try:
            found = self._at_least_level(record(**fields | chosen))
            namespace, level = self.caller.writable(self.caller.namespace(found.scope)), found.sensitivity or level
            return namespace, clear(self._with_importer_as_author(found, item.said), self.on_secret), found
        except SecretFound as error:
            self.report.outcomes[place] = "refused"
            self.report.refusals.append((namespace, error.field, error.kinds, level))
            why = f"Secret detection: found in `{error.field}`: {', '.join(error.kinds)}."
            if self.on_secret is OnSecret.BLOCK:
                why += " With `on_secret` set to `redact` the rest of it is imported."
            self.report.problems.append(Problem(where, why))
        except (InvalidInput, Forbidden) as error:
            self.report.fail(place, where, str(error))
        except TypeError:
            self.report.fail(place, where, "It has a field that has no name here.")
        return None

    def _at_least_level(self, record: R) -> R:
        """Return a record at the level chosen for the import, unless its own is stricter."""
        if self.request.sensitivity is None:
            return record
        level = strictest(record.sensitivity or Sensitivity.PUBLIC, self.request.sensitivity)
        return record.model_copy(update={"sensitivity": level})

    def _with_importer_as_author(self, record: R, stated: Origin | None) -> R:
        """Return a record with the importer as its author; other claims of the file on author and origin become a tag.

        A name of the importer in the file stays as it was, where they say that it is their own export. A file of a
        project counts as that in the scope of the project alone.
        """
        if self.request.own and record.author == self.caller.user:
            return record
        stamp = stated or Origin(said_by=SaidBy.IMPORT, came_from=record.origin[:MAX_NAME])
        if stamp.said_by is SaidBy.FILE and record.scope is not Scope.PROJECT:
            stamp = Origin(said_by=SaidBy.IMPORT, came_from=stamp.came_from)
        origin: dict[str, Any] = {"said_by": stamp.said_by, "came_from": stamp.came_from or None}
        if not isinstance(record, MemoryRecord):
            return record.model_copy(update=origin)
        claims: list[str] = [] if record.author in (None, self.caller.user) else [f"{CLAIMED}{record.author}"]
        if record.said_by is not None:
            claims.append(f"{CLAIMED_ORIGIN}{origin_words(record.said_by, record.came_from)}")
        marked: dict[str, Any] = {
            "trust": min(record.trust, MOST_TRUST[stamp.said_by]),
            "source": Source.IMPORT,
            "review": APPROVED if self._is_vouched_for(record, stated) else None,
        } | origin
        if record.author is not None:
            marked["author"] = self.caller.user
        if claims:
            marked["tags"] = (*record.tags[:_MOST_TAGS], *(claim[:MAX_NAME] for claim in claims))
        return record.model_copy(
            update={name: value for name, value in marked.items() if value != getattr(record, name)}
        )

    def _is_vouched_for(self, record: MemoryRecord, stated: Origin | None) -> bool:
        """Return whether the importer calls the file their own, and the memory names nobody else as its speaker."""
        others = record.author is not None or record.said_by is not None or record.speaker not in (None, USER)
        return self.request.own and stated is None and not others
