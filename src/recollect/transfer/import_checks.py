"""What a file holds becomes something to write, or a problem: every string passes the gate before anything else."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from recollect.domain.enums import OnSecret, Sensitivity, Source, strictest
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
from recollect.errors import Forbidden, InvalidInput, SecretFound
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

    That may claim another author and any trust, what is written does not. `place` is its place in the batch.
    """

    place: int
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
    """What has become of a batch so far; `outcomes` are those of its items, by their places."""

    outcomes: dict[int, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    ids: list[tuple[int, int]] = field(default_factory=list)
    refusals: list[tuple[str, str, tuple[str, ...], Sensitivity]] = field(default_factory=list)

    def fail(self, place: int, where: str, why: str) -> None:
        """Note that an item cannot be written."""
        self.outcomes[place] = "failed"
        self.problems.append(Problem(where, why))

    def answer(self, size: int) -> Imported:
        """Return it, for a batch of so many items, as the noun that doors show."""
        found = Counter(self.outcomes.values())
        counts: dict[str, Any] = {name: found[name] for name in IMPORT_COUNTS}
        kinds = Counter(kind for _, _, several, _ in self.refusals for kind in several)
        outcomes = tuple(self.outcomes.get(place, "") for place in range(size))
        return Imported(
            **counts,
            problems=tuple(self.problems),
            refused_kinds=dict(kinds),
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
        """Return a memory to be written, or note why there is none; `place` is that of the item in the batch."""
        category = {"category": self.request.category} if self.request.category else {}
        fact_type = {"fact_type": self.request.fact_type} if self.request.fact_type else {}
        fields = {"source": Source.IMPORT} | category | item.fields | fact_type
        found = self._checked(MemoryRecord, fields, place, item.where)
        if found is None:
            return None
        namespace, cleared, said = found
        content_hash = hashlib.sha256(cleared.value.content.encode()).hexdigest()
        return CheckedMemory(place, namespace, cleared, content_hash, said)

    def fact(self, place: int, item: ImportItem) -> tuple[str, Cleared[FactRecord]] | None:
        """Return a fact to be written and its namespace, or note why there is none."""
        found = self._checked(FactRecord, item.fields, place, item.where)
        return None if found is None else found[:2]

    def _checked(
        self, record: type[R], fields: dict[str, Any], place: int, where: str
    ) -> tuple[str, Cleared[R], R] | None:
        chosen: dict[str, Any] = {"origin": where} | ({"scope": self.request.scope} if self.request.scope else {})
        namespace, level = "", Sensitivity.PUBLIC
        try:
            found = self._at_level(record(**fields | chosen))
            namespace, level = self.caller.writable(self.caller.namespace(found.scope)), found.sensitivity or level
            return namespace, clear(self._marked(found), self.on_secret), found
        except SecretFound as error:
            self.report.outcomes[place] = "refused"
            self.report.refusals.append((namespace, error.field, error.kinds, level))
            why = f"Secret detection: found in `{error.field}`: {', '.join(error.kinds)}."
            self.report.problems.append(Problem(where, why))
        except (InvalidInput, Forbidden) as error:
            self.report.fail(place, where, str(error))
        except TypeError:
            self.report.fail(place, where, "It has a field that has no name here.")
        return None

    def _at_level(self, record: R) -> R:
        """Store nothing at a lower level than the one that was chosen for all."""
        if self.request.sensitivity is None:
            return record
        level = strictest(record.sensitivity or Sensitivity.PUBLIC, self.request.sensitivity)
        return record.model_copy(update={"sensitivity": level})

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
