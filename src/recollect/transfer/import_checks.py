"""What a file holds becomes something to write, or a problem: every string passes the gate before anything else."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from recollect.domain.enums import OnSecret, Sensitivity, Source
from recollect.domain.fields import MAX_NAME
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

IMPORT_TRUST: Final = 0.5
"""How far an import is trusted at most, unless the importer wrote it."""
CLAIMED: Final = "claimed-author:"
"""What the tag begins with that tells who wrote a memory, as the file has it."""
_MOST_TAGS: Final = 199  # beside that one


@dataclass(frozen=True, slots=True)
class CheckedMemory:
    """A memory out of a file that the gate let pass, and the namespace it goes to; `said` is what the file says.

    That may claim another author and any trust, what is written does not.
    """

    namespace: str
    cleared: Cleared[MemoryRecord]
    content_hash: str
    said: MemoryRecord

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
    refusals: list[tuple[str, str, tuple[str, ...], Sensitivity]] = field(default_factory=list)

    def fail(self, where: str, why: str) -> None:
        """Note that something cannot be written."""
        self.counts["failed"] += 1
        self.problems.append(Problem(where, why))

    def answer(self) -> Imported:
        """Return it as the noun that doors show."""
        counts: dict[str, Any] = {name: self.counts[name] for name in IMPORT_COUNTS}
        return Imported(**counts, problems=tuple(self.problems), ids=tuple(self.ids))


@dataclass(frozen=True, slots=True)
class Checks:
    """Checks the items of one batch for one caller and notes in `report` what did not pass."""

    request: ImportBatch
    caller: Caller
    on_secret: OnSecret
    report: Report

    def memory(self, item: ImportItem) -> CheckedMemory | None:
        """Return a memory to be written, or note why there is none."""
        category = {"category": self.request.category} if self.request.category else {}
        fact_type = {"fact_type": self.request.fact_type} if self.request.fact_type else {}
        fields = {"source": Source.IMPORT} | category | item.fields | fact_type
        found = self._checked(MemoryRecord, fields, item.where)
        if found is None:
            return None
        namespace, cleared, said = found
        return CheckedMemory(namespace, cleared, hashlib.sha256(cleared.value.content.encode()).hexdigest(), said)

    def fact(self, item: ImportItem) -> tuple[str, Cleared[FactRecord]] | None:
        """Return a fact to be written and its namespace, or note why there is none."""
        found = self._checked(FactRecord, item.fields, item.where)
        return None if found is None else found[:2]

    def _checked(self, record: type[R], fields: dict[str, Any], where: str) -> tuple[str, Cleared[R], R] | None:
        chosen = {"origin": where} | ({"scope": self.request.scope} if self.request.scope else {})
        namespace, level = "", Sensitivity.PUBLIC
        try:
            found = record(**fields | chosen)
            namespace, level = self.caller.namespace(found.scope), found.sensitivity or level
            return namespace, clear(self._marked(found), self.on_secret), found
        except SecretFound as error:
            self.report.counts["refused"] += 1
            self.report.refusals.append((namespace, error.field, error.kinds, level))
            why = f"Secret detection: found in `{error.field}`: {', '.join(error.kinds)}."
            self.report.problems.append(Problem(where, why))
        except InvalidInput as error:
            self.report.fail(where, str(error))
        except TypeError:
            self.report.fail(where, "It has a field that has no name here.")
        return None

    def _marked(self, record: R) -> R:
        """Let nobody but the importer be the author; who else a file names stays as a tag, and is trusted no further.

        What names the importer is their own export, which comes back as it was.
        """
        if not isinstance(record, MemoryRecord) or record.author == self.caller.user:
            return record
        marked: dict[str, Any] = {"trust": min(record.trust, IMPORT_TRUST), "source": Source.IMPORT}
        if record.author is not None:
            marked |= {
                "author": self.caller.user,
                "tags": (*record.tags[:_MOST_TAGS], f"{CLAIMED}{record.author}"[:MAX_NAME]),
            }
        return record.model_copy(update={name: one for name, one in marked.items() if one != getattr(record, name)})
