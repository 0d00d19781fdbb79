"""Import: what files carry is checked, embedded in large batches and written many memories at a time.

Whatever is there already stays as it is, so that doing it twice does it once. Nothing merges with what resembles it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Final

from recollect.domain import Caller, Carried, ImportBatch, Imported, Load, Problem, Scope
from recollect.errors import RecollectError
from recollect.operations.exchange.checking import Checked, CheckedFact, Checking, Tally
from recollect.operations.exchange.embedding import chunks_of_all
from recollect.operations.exchange.rooms import Room
from recollect.operations.remember import make_room
from recollect.ports import App, Chunk, FactEntry

TOGETHER: Final = 125
"""How many memories one transaction writes: few enough that others need not wait long for their turn."""
_LISTED: Final = 20

_Embedded = tuple[list[Checked], dict[str, tuple[Chunk, ...] | None]]


def import_batch(app: App, request: ImportBatch, caller: Caller | None = None, *, request_id: str = "") -> Imported:
    """Write what a batch carries into the caller's namespaces and return what became of it.

    What the gate refuses, or what is no memory, is counted and told with its place; the rest is written all the same.
    A batch that is asked for again changes nothing, so the first answer under a `request_id` is not kept.
    """
    del request_id
    return _Import(app, request, caller or app.caller).run()


class _Import:
    """One batch for one caller."""

    def __init__(self, app: App, request: ImportBatch, caller: Caller) -> None:
        self._app = app
        self._request = request
        self._caller = caller
        self._tally = Tally(tip=request.tip)
        self._checking = Checking(request, caller, request.on_secret or app.on_secret, self._tally)

    def run(self) -> Imported:
        """Do what each thing of the batch asks for, in its order."""
        doing = {
            Load.MEMORY: self._memories,
            Load.FACT: self._facts,
            Load.JOURNAL: self._journal,
            Load.LINK: self._links,
            Load.SECTIONS: self._sections,
        }
        for load, some in groupby(self._request.items, key=lambda one: one.load):
            doing[load](list(some))
        if not self._request.dry_run:
            self._refuse()
            if self._request.last:
                self._end()
        return self._tally.answer()

    def _memories(self, some: Sequence[Carried]) -> None:
        if self._request.dry_run:
            runs = list(self._runs(some))
            together = [one for run in runs for one in run]
            twice = len({one.content_hash for one in together}) < len(together)
            for run in [together] if twice else runs:  # what one transaction leaves behind, the next does not see
                self._write(run, {})
            return
        ready = self._warm()
        with ThreadPoolExecutor(1, thread_name_prefix="recollect-import") as ahead:
            for run, chunks in self._in_turn(ahead, self._runs(some), ready=ready):
                self._write(run, chunks)

    def _runs(self, some: Sequence[Carried]) -> Iterator[list[Checked]]:
        """Check as many at a time as are written together."""
        for start in range(0, len(some), TOGETHER):
            part = some[start : start + TOGETHER]
            yield [one for carried in part if (one := self._checking.memory(carried)) is not None]

    def _in_turn(self, ahead: ThreadPoolExecutor, runs: Iterable[list[Checked]], *, ready: bool) -> Iterator[_Embedded]:
        """Yield each run with its vectors; the model reads it while the one before is written and the next checked."""
        waiting = None
        for run in runs:
            following = ahead.submit(self._embedded, run, ready=ready)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()

    def _warm(self) -> bool:
        """Wait for the model; where there is none, what is written is embedded as soon as there is one."""
        try:
            self._app.embedder.warm()
        except RecollectError:
            return False
        return True

    def _embedded(self, run: list[Checked], *, ready: bool) -> _Embedded:
        """Embed what is neither here yet nor kept out of sight."""
        fresh: dict[str, str] = {}
        for namespace in {one.namespace for one in run}:
            mine = [one for one in run if one.namespace == namespace and not one.hidden]
            known = self._app.imports.known(namespace, {one.content_hash for one in mine})
            fresh |= {one.content_hash: one.draft.content for one in mine if one.content_hash not in known}
        if not ready:
            return run, dict.fromkeys(fresh)
        found = chunks_of_all(self._app.embedder, list(fresh.values()))
        return run, dict(zip(fresh, found, strict=True))

    def _write(self, run: Sequence[Checked], chunks: dict[str, tuple[Chunk, ...] | None]) -> None:
        """Write a run in one transaction and in its order, so that memories can keep their numbers."""
        dry = self._request.dry_run
        with self._app.imports.bringing(self._caller.user, dry=dry) as bringing:
            for namespace, some in groupby(run, key=lambda one: one.namespace):
                Room(self._app, self._caller, self._tally, bringing, namespace, chunks, dry=dry).take(list(some))

    def _facts(self, some: Sequence[Carried]) -> None:
        checked = [one for carried in some if (one := self._checking.fact(carried)) is not None]
        with self._app.imports.bringing(self._caller.user, dry=self._request.dry_run) as bringing:
            for one in checked:
                memory_id = one.kept.value.memory_id
                if memory_id is not None and not bringing.owns(memory_id, [one.namespace]):
                    self._tally.fail(one.where, "The memory that told this fact is not there.")
                else:
                    self._tally.facts += bringing.put_fact(one.namespace, self._fact_entry(one), one.kept)

    def _fact_entry(self, one: CheckedFact) -> FactEntry:
        kept, now = one.kept.value, self._app.clock()
        return FactEntry(
            cleared=one.stored,
            memory_id=kept.memory_id,
            sensitivity=kept.sensitivity,
            valid_from=kept.valid_from or kept.created_at or now,
            at=now,
            author=kept.author or self._caller.user,
        )

    def _journal(self, some: Sequence[Carried]) -> None:
        """Restore lines of the file's journal where this store has none of its own, or has these."""
        if self._request.dry_run:
            return
        failed = self._tally.failed + self._tally.refused
        lines = [one for carried in some if (one := self._checking.line(carried)) is not None]
        restored = None
        if self._tally.failed + self._tally.refused == failed:
            with self._app.imports.bringing(self._caller.user) as bringing:
                restored = bringing.restore(lines, self._tally.tip, rechained=self._request.rechained)
        if restored is None:
            why = "The journal is not restored from here on: this store has its own, or a line was changed."
            self._tally.problems.append(Problem(some[0].where, why))
        self._tally.tip, written = restored or ("", 0)
        self._tally.journal += written

    def _links(self, some: Sequence[Carried]) -> None:
        """Let memories give way to those that they gave way to where they come from."""
        links = [(carried.where, one) for carried in some if (one := self._checking.link(carried)) is not None]
        if self._request.dry_run:
            return  # the memories are not there
        with self._app.imports.bringing(self._caller.user) as bringing:
            ours = self._caller.namespaces()
            foreign = [one for _, one in links if not all(bringing.owns(to, ours) for to in (one.id, *one.targets))]
            refused = [*foreign, *bringing.link([one for _, one in links if one not in foreign], ours)]
        why = "It cannot give way to the memory that the file names; it stays out of recall until it is restored."
        self._tally.problems += [Problem(where, why) for where, one in links if one in refused]

    def _sections(self, some: Sequence[Carried]) -> None:
        """Tell which sections of a file were there once and are not any more."""
        namespace = self._caller.namespace(self._request.scope or Scope.PROJECT)
        for one in some:
            with self._app.imports.bringing(self._caller.user, dry=True) as bringing:
                known = bringing.keyed(namespace, str(one.fields["prefix"]))
            gone = sorted(set(known) - set(one.fields["keys"]))
            for key in gone[:_LISTED]:
                why = f"The section `{key}` is not in the file any more; memory {known[key]} stays."
                self._tally.problems.append(Problem(one.where, why))
            if len(gone) > _LISTED:
                why = f"{len(gone) - _LISTED} more sections are not in the file any more; their memories stay."
                self._tally.problems.append(Problem(one.where, why))

    def _refuse(self) -> None:
        if self._tally.refusals:
            with self._app.imports.bringing(self._caller.user) as bringing:
                for namespace, field, kinds in self._tally.refusals:
                    bringing.refuse(namespace, field, kinds)

    def _end(self) -> None:
        """Keep to the store's size, and let the vector index know."""
        with self._app.imports.bringing(self._caller.user) as bringing:
            bringing.close(self._caller.namespaces())
        if self._app.keeping.max_memories:
            for namespace in self._app.records.existing(self._caller.namespaces()):
                with self._app.records.writing(namespace, self._caller.user) as transaction:
                    make_room(self._app, transaction, 0)
        self._app.imports.over()
