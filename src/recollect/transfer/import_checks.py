"""What a file holds becomes something to write, or a problem: every string passes the gate before anything else."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recollect.domain.enums import OnSecret, Source
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
from recollect.errors import InvalidInput, SecretFound
from recollect.gate import Cleared, clear

R = TypeVar("R", MemoryRecord, FactRecord)


@dataclass(frozen=True, slots=True)
class CheckedMemory:
    """A memory out of a file that the gate let pass, and the namespace it goes to."""

    namespace: str
    cleared: Cleared[MemoryRecord]
    content_hash: str

    @property
    def record(self) -> MemoryRecord:
        """Return the memory."""
        return self.cleared.value


@dataclass(slots=True)
class Report:
    """What has become of a batch so far."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    ids: list[tuple[int, int]] = field(default_factory=list)
    refusals: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def fail(self, where: str, why: str) -> None:
        """Note that something cannot be written."""
        self.counts["failed"] += 1
        self.problems.append(Problem(where, why))

    def answer(self) -> Imported:
        """Return it as the noun that doors show."""
        counts: dict[str, Any] = {name: self.counts[name] for name in IMPORT_COUNTS}
        return Imported(**counts, problems=tuple(self.problems), ids=tuple(self.ids))


class Checks:
    """Checks the items of one batch for one caller and notes in `report` what did not pass."""

    def __init__(self, request: ImportBatch, caller: Caller, on_secret: OnSecret, report: Report) -> None:
        self._request = request
        self._caller = caller
        self._on_secret = on_secret
        self._report = report

    def memory(self, item: ImportItem) -> CheckedMemory | None:
        """Return a memory to be written, or note why there is none."""
        request = self._request
        fields = {"source": Source.IMPORT} | item.fields
        if request.category is not None:
            fields.setdefault("category", request.category)
        if request.fact_type is not None:
            fields["fact_type"] = request.fact_type
        found = self._checked(MemoryRecord, fields, item.where)
        if found is None:
            return None
        namespace, cleared = found
        return CheckedMemory(namespace, cleared, hashlib.sha256(cleared.value.content.encode()).hexdigest())

    def fact(self, item: ImportItem) -> tuple[str, Cleared[FactRecord]] | None:
        """Return a fact to be written and its namespace, or note why there is none."""
        return self._checked(FactRecord, item.fields, item.where)

    def _checked(self, record: type[R], fields: dict[str, Any], where: str) -> tuple[str, Cleared[R]] | None:
        chosen = {"origin": where} | ({"scope": self._request.scope} if self._request.scope else {})
        namespace = ""
        try:
            found = record(**fields | chosen)
            namespace = self._caller.namespace(found.scope)
            return namespace, clear(found, self._on_secret)
        except SecretFound as error:
            self._report.counts["refused"] += 1
            self._report.refusals.append((namespace, error.field, error.kinds))
            why = f"Secret detection: found in `{error.field}`: {', '.join(error.kinds)}."
            self._report.problems.append(Problem(where, why))
        except InvalidInput as error:
            self._report.fail(where, str(error))
        except TypeError:
            self._report.fail(where, "It has a field that has no name here.")
        return None
