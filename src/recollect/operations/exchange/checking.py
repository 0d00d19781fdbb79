"""What a file carries becomes something to write, or a problem: every string passes the gate before anything else."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from recollect.domain import (
    Caller,
    Carried,
    Draft,
    ImportBatch,
    Imported,
    Kept,
    KeptFact,
    KeptLine,
    Link,
    OnSecret,
    Problem,
    Request,
    Source,
    StoreFact,
)
from recollect.errors import InvalidInput, SecretFound
from recollect.gate import Cleared, clear

T = TypeVar("T", bound=Request)

COUNTS: Final = ("new", "updated", "unchanged", "refused", "failed", "facts", "journal")
"""The fields of a report that are counts."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A memory out of a file that the gate let pass, and the namespace it goes to."""

    where: str
    namespace: str
    cleared: Cleared[Draft]
    kept: Cleared[Kept]
    content_hash: str

    @property
    def draft(self) -> Draft:
        """Return the draft."""
        return self.cleared.value

    @property
    def hidden(self) -> bool:
        """Say whether no index is to hold it: it was softly deleted, or merged into another."""
        return self.kept.value.deleted_at is not None or self.kept.value.merged_into is not None

    @property
    def ours(self) -> bool:
        """Say whether it comes out of an export of ours, which tells all that there was to tell."""
        return self.kept.value.id is not None


@dataclass(frozen=True, slots=True)
class CheckedFact:
    """A fact out of a file that the gate let pass."""

    where: str
    namespace: str
    stored: Cleared[StoreFact]
    kept: Cleared[KeptFact]


@dataclass(slots=True)
class Tally:
    """What has become of a batch so far."""

    new: int = 0
    updated: int = 0
    unchanged: int = 0
    refused: int = 0
    failed: int = 0
    facts: int = 0
    journal: int = 0
    tip: str = ""
    problems: list[Problem] = field(default_factory=list)
    ids: list[tuple[int, int]] = field(default_factory=list)
    refusals: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def fail(self, where: str, why: str) -> None:
        """Note that something cannot be written."""
        self.failed += 1
        self.problems.append(Problem(where, why))

    def answer(self) -> Imported:
        """Return it as the noun that doors show."""
        counts = {name: int(getattr(self, name)) for name in COUNTS}
        return Imported(**counts, tip=self.tip, problems=tuple(self.problems), ids=tuple(self.ids))


class Checking:
    """Checks the things of one batch for one caller and notes in `tally` what did not pass."""

    def __init__(self, request: ImportBatch, caller: Caller, on_secret: OnSecret, tally: Tally) -> None:
        self._request = request
        self._caller = caller
        self._on_secret = on_secret
        self._tally = tally

    def memory(self, one: Carried) -> Checked | None:
        """Return a memory to be written, or note why there is none."""
        request = self._request
        fields = {"source": Source.IMPORT} | one.fields
        if request.category is not None:
            fields.setdefault("category", request.category)
        chosen = {"scope": request.scope, "fact_type": request.fact_type}
        fields |= {name: value for name, value in chosen.items() if value is not None}
        draft = self._built(one, lambda: Draft(**fields))
        kept = self._built(one, lambda: Kept(**one.kept, origin=one.where)) if draft else None
        if draft is None or kept is None:
            return None
        namespace = self._caller.namespace(draft.scope)
        cleared = self._cleared(one, draft, namespace)
        beside = self._cleared(one, kept, namespace) if cleared else None
        if cleared is None or beside is None:
            return None
        content_hash = hashlib.sha256(cleared.value.content.encode()).hexdigest()
        return Checked(one.where, namespace, cleared, beside, content_hash)

    def fact(self, one: Carried) -> CheckedFact | None:
        """Return a fact to be written, or note why there is none."""
        fields: dict[str, Any] = one.fields | one.kept | {"origin": one.where}
        if self._request.scope is not None:
            fields["scope"] = self._request.scope
        kept = self._built(one, lambda: KeptFact(**fields))
        if kept is None:
            return None
        namespace = self._caller.namespace(kept.scope)
        cleared = self._cleared(one, kept, namespace)
        if cleared is None:
            return None
        names = ("subject", "predicate", "object", "confidence", "valid_from", "valid_to", "sensitivity", "scope")
        fact = cleared.value
        told = self._built(one, lambda: StoreFact(**{name: getattr(fact, name) for name in names}, several=True))
        stored = None if told is None else self._cleared(one, told, namespace)
        return None if stored is None else CheckedFact(one.where, namespace, stored, cleared)

    def line(self, one: Carried) -> Cleared[KeptLine] | None:
        """Return a line of the journal as it stands in the file, or note why there is none; none is ever changed."""
        line = self._built(one, lambda: KeptLine(**one.fields))
        if line is None:
            return None
        if line.namespace not in self._caller.namespaces():
            self._tally.fail(one.where, "The line is of a namespace that is not yours here.")
            return None
        return self._cleared(one, line, line.namespace, OnSecret.BLOCK)

    def link(self, one: Carried) -> Link | None:
        """Return which memory gave way to which, or note why there is none."""
        return self._built(one, lambda: Link(**one.fields))

    def _built(self, one: Carried, build: Callable[[], T]) -> T | None:
        try:
            return build()
        except InvalidInput as error:
            self._tally.fail(one.where, str(error))
        except TypeError:
            self._tally.fail(one.where, "It has a field that has no name here.")
        return None

    def _cleared(self, one: Carried, noun: T, namespace: str, on_secret: OnSecret | None = None) -> Cleared[T] | None:
        try:
            return clear(noun, on_secret or self._on_secret)
        except SecretFound as error:
            self._tally.refused += 1
            self._tally.refusals.append((namespace, error.field, error.kinds))
            why = f"Secret detection: found in `{error.field}`: {', '.join(error.kinds)}."
            self._tally.problems.append(Problem(one.where, why))
        except InvalidInput as error:
            self._tally.fail(one.where, str(error))
        return None
