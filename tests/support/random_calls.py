"""Random calls of every operation by random callers, and an independent model of what each may see and change.

The rules are those of the design, read off the rows by hand: a caller sees their own namespaces, and of these what is
public or of a level of sensitivity that the call lets in or names. What was told outranks what was seen in the project,
and that what comes from outside. The model knows none of the code that it judges.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from pydantic import BaseModel

from clock import Clock
from recollect import App, Caller
from recollect.domain import verbs
from recollect.domain.origin import SaidBy
from recollect.domain.results import Fact, IndexLine, JournalEntry, Memory, Outcome
from recollect.doors import toolsets
from recollect.doors.handlers import perform
from recollect.errors import RecollectError
from run_operations import call_tool

CALLERS = [
    Caller(user=user, team=team, project=project)
    for user, team, project in (
        ("ada", "crew", "engine"),
        ("bob", "crew", "engine"),
        ("ada", "crew", "hull"),
        ("eve", "other", "engine"),
    )
]
LEVELS = ("public", "private", "secret")
NOUNS = "ledger mascot kernel teapot harbour violin comet budget glacier anchor".split()
VERBS = "holds finds paints moves lifts".split()
SOURCES = ("https://a.example.org/x", "https://b.example.org/y", "make test", "docs/a.md")
KEYS = ("anchor", "ledger", "mast")
PROJECTS = ("engine", "hull", "vault", "elsewhere")
FACTS = {"store_fact", "query_facts", "forget_fact"}
_MARK = re.compile(r"qx[a-z]{6}")
_NUMBER = re.compile(r"\d+")
_ONCE = "once "
"""Before a kind of id that a line of the journal names, which has the level that it had when it was written."""


RANKS = {"person": 2, "assistant": 2, "report": 1, "file": 1, "command": 1}
"""What each speaker may do unasked; all others nothing."""
MOST = {"person": 0.9, "assistant": 0.9, "report": 0.5, "file": 0.7, "command": 0.6, "tool": 0.4, "import": 0.5}
MOST |= {"foreign_file": 0.3, "web": 0.3, "model": 0.4}
SAYING = ("web", "web", "tool", "file", "command", "report", "model")
WORDS = {"remember", "store_memory", "memory_store", "memory_remember", "update_memory", "import_batch"}
"""The operations that bring words."""
Places = Mapping[str, str]
"""The namespaces that somebody has a right to, by scope."""
Others = Callable[[str, bool], bool]
"""Says of the namespace of a project whether somebody may read there, or write."""
_SESSIONS = ("s1", "s2")
_TELL_ELSEWHERE = {"recall", "recall_compact", "search_memories", "memory_recall", "get_memory", "count_projects"}
"""The operations that name another project where they find nothing in this one."""
_READS = {name for name, operation in verbs.BY_NAME.items() if not operation.writes}


@dataclass(frozen=True)
class Row:
    """A memory or a fact as it is stored; `row` is all of it but for the link to what replaced it."""

    namespace: str
    level: str
    deleted: bool
    merged: bool
    superseded: int | None
    expires: str | None
    of: int | None
    text: str
    row: tuple[Any, ...]
    said_by: str | None = None
    trust: float = 0.0
    review: str | None = None
    withdrawn: bool = False

    @property
    def rank(self) -> int:
        """Return what it may do unasked."""
        return RANKS.get(self.said_by or "", 0)


@dataclass(frozen=True)
class State:
    """All memories and facts by their ids."""

    memories: dict[int, Row]
    facts: dict[int, Row]


@dataclass(frozen=True)
class RandomCall:
    """One call: who asks what, through which door, and which levels it lets in or names.

    Where `reads` and `writes` are not given, the caller has a right to all of their own namespaces; where `others`
    is not, they may read and write every project of their team.
    """

    caller: Caller
    name: str
    fields: dict[str, Any]
    levels: frozenset[str]
    tool: bool = False
    reads: Places | None = None
    writes: Places | None = None
    others: Others | None = None

    @property
    def seen(self) -> frozenset[str]:
        """Return the levels as the tables have them: what is not public is the caller's own."""
        return frozenset(_own(level, self.caller) for level in self.levels)

    @property
    def readable(self) -> Places:
        """Return where it may look."""
        return _places_of(self.caller) if self.reads is None else self.reads

    @property
    def writable(self) -> Places:
        """Return where it may write."""
        return _places_of(self.caller) if self.writes is None else self.writes

    def reaches(self, namespace: str, *, writes: bool = False) -> bool:
        """Say whether the caller has a right in another project of their team."""
        if self.others is not None:
            return self.others(namespace, writes)
        return namespace.startswith(f"project:{self.caller.team}/")


def _own(level: str, who: Caller) -> str:
    """Return a level as the tables have it: what is not public is one user's alone."""
    return level if level == "public" else f"{level}@{who.user}"


def _places_of(who: Caller) -> Places:
    return {"personal": f"user:{who.user}", "project": f"project:{who.team}/{who.project}", "team": f"team:{who.team}"}


@dataclass
class Maker:
    """Makes random calls; it aims at ids and texts that are stored, whoever they belong to."""

    chance: random.Random
    callers: list[Caller] = field(default_factory=lambda: list(CALLERS))
    allowed: tuple[str, ...] = LEVELS
    told: list[str] = field(default_factory=list)
    highest: int = 0
    speakers: tuple[str, ...] = SAYING

    def call(self, names: list[str] | None = None) -> RandomCall:
        """Make one call of a random operation, in Python or through its tool."""
        name = self.chance.choice(names or _WEIGHTED)
        asked = _FIELDS[name](self)
        levels = {"public"}
        if name not in _WITHOUT_LEVELS:
            for level in self.allowed[1:]:
                if self.chance.random() < 0.35:
                    asked[f"allow_{level}"] = True
                    levels.add(level)
        if name in ("remember", "store_memory", "store_fact", "update_memory") and self.chance.random() < 0.4:
            asked["sensitivity"] = self.chance.choice(self.allowed)
        tool = name in toolsets.TOOLS and self.chance.random() < 0.4
        if tool:
            known = toolsets.TOOLS[name].schema["properties"]
            asked = {one: value for one, value in asked.items() if one in known}
            levels &= {"public", *(level for level in LEVELS if asked.get(f"allow_{level}"))}
        levels |= {asked["sensitivity"]} if "sensitivity" in asked and name != "update_memory" else set()
        levels |= {one["fields"].get("sensitivity", "public") for one in asked.get("items", ())}
        caller = self.chance.choice(self.callers)
        if self.speakers and not tool and self.chance.random() < 0.4:
            caller = caller.saying(SaidBy(self.chance.choice(self.speakers)), self.chance.choice(SOURCES))
        return RandomCall(caller, name, asked, frozenset(levels), tool)

    def text(self) -> str:
        """Return a text: often one that was told before, else a new one with a mark that no other has."""
        if self.told and self.chance.random() < 0.45:
            return self.chance.choice(self.told)
        mark = "qx" + "".join(self.chance.choices("bcdfghklmnprst", k=6))
        said = f"The {self.chance.choice(NOUNS)} {self.chance.choice(VERBS)} the {self.chance.choice(NOUNS)} {mark}."
        self.told = [*self.told[-60:], said]
        return said

    def id(self) -> str:
        """Return an id, which may be anybody's or nobody's."""
        return str(self.chance.randint(max(1, self.highest - 60), self.highest + 2))

    def some(self, *pairs: tuple[str, Callable[[], Any]]) -> dict[str, Any]:
        """Return some of these fields."""
        return {name: make() for name, make in pairs if self.chance.random() < 0.35}

    def draft(self) -> dict[str, Any]:
        """Return the fields of a memory."""
        pick = self.chance.choice
        more = self.some(
            ("key", lambda: pick(KEYS)),
            ("scope", lambda: pick(("personal", "project", "team"))),
            ("category", lambda: pick(NOUNS)),
            ("ttl_days", lambda: pick((1, 3))),
            ("fact_type", lambda: pick(("general", "profile", "event", "decision"))),
            ("speaker", lambda: pick(("Grace", "Linus"))),
            ("tags", lambda: [pick(NOUNS)]),
            ("trust", lambda: pick((0.0, 0.7, 1.0))),
        )
        if self.chance.random() < 0.2:
            more[pick(("id", "supersedes"))] = self.id()
        return {"content": self.text()} | more


def _import(make: Maker) -> dict[str, Any]:
    items = []
    for number in range(make.chance.randint(1, 3)):
        told = {name: value for name, value in make.draft().items() if name not in ("id", "supersedes")}
        if make.chance.random() < 0.3:
            told["sensitivity"] = make.chance.choice(make.allowed)
        items.append({"kind": "memory", "where": f"line {number}", "fields": told})
    return {"items": items, "dry_run": make.chance.random() < 0.4, "last": True}


def _scoped(make: Maker) -> dict[str, Any]:
    return make.some(("scope", lambda: make.chance.choice(("personal", "project", "team"))))


def _query(make: Maker) -> dict[str, Any]:
    words = make.chance.choice((make.text(), make.chance.choice(NOUNS), make.text().split()[-1][:-2]))
    return {"query": words, "min_score": 0.0, "limit": 30} | _scoped(make) | _wide(make)


def _wide(make: Maker) -> dict[str, Any]:
    return make.some(("everywhere", lambda: True))


def _moved(make: Maker) -> dict[str, Any]:
    if make.chance.random() < 0.3:
        return _by_id(make) | {"scope": make.chance.choice(("personal", "team"))}
    return _by_id(make) | {"to_project": make.chance.choice(PROJECTS)}


def _fact(make: Maker) -> dict[str, Any]:
    pick = make.chance.choice
    more = make.some(("memory_id", make.id), ("replaces", lambda: True))
    return {"subject": pick(NOUNS), "predicate": pick(VERBS), "object": make.text()[-9:]} | _scoped(make) | more


def _by_id(make: Maker) -> dict[str, Any]:
    return {"id": make.id()}


def _changed(make: Maker) -> dict[str, Any]:
    changed = {name: value for name, value in make.draft().items() if name not in ("id", "supersedes", "scope")}
    return _by_id(make) | (changed if make.chance.random() < 0.5 else {"category": "moved"})


_FIELDS: dict[str, Callable[[Maker], dict[str, Any]]] = {
    **dict.fromkeys(("remember", "store_memory"), Maker.draft),
    "memory_store": lambda make: {"content": make.text()} | make.some(("id", make.id)),
    "memory_remember": lambda make: {"content": make.text(), "category": make.chance.choice(("profile", "case"))},
    **dict.fromkeys(("recall", "recall_compact", "search_memories", "memory_recall"), _query),
    **dict.fromkeys(("forget", "delete_memory", "get_memory", "restore", "history", "forget_fact"), _by_id),
    "memory_forget": lambda make: _by_id(make) | {"hard": make.chance.random() < 0.3},
    "update_memory": _changed,
    **dict.fromkeys(("pin", "unpin", "bury", "unbury"), _by_id),
    "move_memory": _moved,
    "promote": lambda make: _by_id(make) | make.some(("scope", lambda: "team")),
    **dict.fromkeys(("list_memories", "get_timeline"), lambda make: {"limit": 100} | _scoped(make) | _wide(make)),
    "search_by_file": lambda make: {"file": "src/a.py"},
    "search_by_concept": lambda make: {"concept": "gotcha"},
    "store_fact": _fact,
    "query_facts": lambda make: {"history": make.chance.random() < 0.5, "limit": 100},
    "purge_expired": _scoped,
    "summarize_old": lambda make: {"older_than_days": 20, "at_least": 2},
    "find_similar": lambda make: (
        {"content": make.text(), "threshold": 0.3} if make.chance.random() < 0.7 else _by_id(make)
    ),
    "format_for_prompt": lambda make: {"max_tokens": 2_000} | make.some(("query", make.text)),
    "rescan": lambda make: {"on_found": make.chance.choice(("report", "quarantine"))},
    "stats": _scoped,
    "count_projects": lambda make: {},
    "doctor": lambda make: {},
    "import_batch": _import,
    "inbox": _scoped,
    "decide": lambda make: _by_id(make) | {"decision": make.chance.choice(("approve", "reject", "always", "never"))},
    "source_rules": _scoped,
    "drop_source_rule": lambda make: {"source": f"web:{make.chance.choice(SOURCES)}"},
    "withdraw": lambda make: {"source": make.chance.choice(SOURCES), "apply": make.chance.random() < 0.3},
    "undo_withdrawal": lambda make: {"id": str(make.chance.randint(1, 6))},
    "export_page": lambda make: {"after": make.chance.choice(("memory:0", "fact:0", "journal:0"))} | _scoped(make),
}
_FIELDS["extract_memories"] = lambda make: {"messages": [{"speaker": "user", "content": make.text()}]}
_FIELDS |= {
    **dict.fromkeys(
        ("session_start", "session_checkpoint", "session_end", "show_session"),
        lambda make: {"session_id": make.chance.choice(_SESSIONS)},
    ),
    "prompt_submit": lambda make: {"session_id": make.chance.choice(_SESSIONS), "prompt": make.text()},
    "tool_post": lambda make: {"session_id": make.chance.choice(_SESSIONS), "tool": "Task", "output": make.text()},
    "list_sessions": lambda make: {},
    "correct_observation": lambda make: {
        "session_id": make.chance.choice(_SESSIONS),
        "number": make.chance.randint(1, 9),
        "keep": make.chance.random() < 0.5,
    },
}
_OF_SESSIONS = {name for name in _FIELDS if "session" in name} | {"prompt_submit", "tool_post", "correct_observation"}
_WITHOUT_LEVELS = {"doctor", "summarize_old", "memory_store", "memory_remember", "extract_memories"} | _OF_SESSIONS
_RARE = _OF_SESSIONS | {"doctor", "rescan", "summarize_old", "search_by_file", "search_by_concept", "purge_expired"}
_RARE |= {"extract_memories", "withdraw", "undo_withdrawal"}
_WEIGHTED = [name for name in _FIELDS for _ in range(1 if name in _RARE else 3)]
assert _FIELDS.keys() == {operation.name for operation in verbs.VERBS}, "each operation is called"


def answer_of(app: App, call: RandomCall) -> Any:
    """Run a call; an error of ours is an answer like any other."""
    if call.tool:
        return call_tool(app, call.name, call.fields, call.caller)
    try:
        return perform(app, call.name, call.fields, call.caller)
    except RecollectError as error:
        return error


def state_of(store: Path | str) -> State:
    """Read every memory and fact from the file in a data folder, or from the PostgreSQL at an address."""
    connect: Callable[[], Any] = partial(psycopg.connect, store) if isinstance(store, str) else partial(_open, store)
    with closing(connect()) as database:
        names = dict(database.execute("SELECT id, name FROM namespace").fetchall())
        tables = {}
        for table in ("memory", "fact"):
            cursor = database.execute(f"SELECT * FROM {table}")
            columns = [one[0] for one in cursor.description]
            tables[table] = {row[0]: _row(names, dict(zip(columns, row, strict=True))) for row in cursor}
        return State(tables["memory"], tables["fact"])


def _open(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(home / "memory.db")


def _row(names: dict[int, str], row: dict[str, Any]) -> Row:
    kept = tuple(value for name, value in row.items() if name not in ("superseded_by", "expires_at"))
    return Row(
        namespace=names[row["namespace_id"]],
        level=row["sensitivity"].removeprefix("quarantined:").removeprefix("withdrawn:"),
        deleted=row.get("deleted_at") is not None or row["sensitivity"].partition("@")[0] not in LEVELS,
        merged=row.get("merged_into") is not None,
        superseded=row.get("superseded_by"),
        expires=_naive(row.get("expires_at")),
        of=row.get("memory_id"),
        text=" ".join(str(row.get(name)) for name in ("content", "title", "overview", "subject", "object")),
        row=kept,
        said_by=row.get("said_by"),
        trust=float(row.get("trust") or 0.0),
        review=row.get("review"),
        withdrawn=row["sensitivity"].startswith("withdrawn:"),
    )


def _naive(at: Any) -> str | None:
    """Return a time as SQLite keeps it."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat() if isinstance(at, datetime) else at


@dataclass
class Model:
    """Judges calls by the rows before and after; `breaches` are the rules that were broken."""

    home: Path | str
    now: Callable[[], datetime]
    breaches: list[str] = field(default_factory=list)
    once: dict[tuple[str, int], list[Row]] = field(default_factory=dict)
    told: dict[tuple[str, str | None], set[str]] = field(default_factory=dict)
    calls: int = 0
    changes: int = 0
    names: int = 0
    marks: int = 0
    counts: int = 0

    def judge(self, call: RandomCall, before: State, after: State, answer: Any) -> None:
        """Look at one call: what it changed, and every id, mark and count that its answer shows."""
        self.calls += 1
        for kind, some in (("memory", after.memories), ("fact", after.facts)):
            for one, row in some.items():
                known = self.once.setdefault((kind, one), [])
                if row.level not in [was.level for was in known]:
                    known.append(row)
        self._changed(call, before, after)
        self._outranked(call, before, after)
        self._spoke(call, before, after, answer)
        self._named(call, before, after, answer)
        self._marked(call, before, after, answer)
        self._counted(call, after, answer)

    def _breach(self, call: RandomCall, why: str) -> None:
        self.breaches.append(f"call {self.calls} {why}: {call}")

    def _knows(self, call: RandomCall, row: Row) -> bool:
        moved = call.name == "move_memory" and row.namespace.endswith(f"/{call.fields.get('to_project')}")
        wide = call.fields.get("everywhere") or call.name in _TELL_ELSEWHERE or moved
        here = row.namespace in call.readable.values() or (wide and call.reaches(row.namespace))
        return bool(here) and row.level in call.seen

    def _changed(self, call: RandomCall, before: State, after: State) -> None:
        levels = call.seen | {_own(str(call.fields.get("sensitivity") or "public"), call.caller)}
        for old, new in ((before.memories, after.memories), (before.facts, after.facts)):
            for one in old.keys() | new.keys():
                was, is_now = old.get(one), new.get(one)
                same = was is not None and is_now is not None and was.row == is_now.row
                used = call.name in _READS  # what is used may stay longer
                if was is not None and is_now is not None and same and (used or was.expires == is_now.expires):
                    if was.superseded != is_now.superseded and not self._knows(call, was):
                        gone = was.superseded in old and was.superseded not in new
                        self._changed_link(call, one, gone=gone)
                    continue
                self.changes += 1
                if was is not None and not self._knows(call, was) and not self._follows(was, before, after):
                    self._breach(call, f"changed {one}, which it may not see")
                if not all(self._writes(call, row) for row in (was, is_now) if row is not None):
                    self._breach(call, f"wrote {one} where it may not")
                if was is None and is_now is not None and is_now.level not in levels:
                    self._breach(call, f"wrote {one} at a level that it does not name")
                if call.name in _READS:
                    self._breach(call, f"changed {one}, although it only reads")

    def _writes(self, call: RandomCall, row: Row) -> bool:
        there = call.name == "move_memory" and row.namespace.endswith(f"/{call.fields.get('to_project')}")
        return row.namespace in call.writable.values() or (there and call.reaches(row.namespace, writes=True))

    def _outranked(self, call: RandomCall, before: State, after: State) -> None:
        """Look whether words took the place of what outranks them, gained authority, or were trusted too far."""
        said_by = "assistant" if call.tool else str(call.caller.origin.said_by)
        said_by = "person" if call.name == "prompt_submit" else said_by
        for one, now in after.memories.items():
            if now.trust > MOST.get(now.said_by or "", 0.0):
                self._breach(call, f"trusts {one} further than its origin is")
            was = before.memories.get(one)
            if was is None:
                continue
            if now.rank > was.rank and said_by != "person":
                self._breach(call, f"gave {one} more authority")
            if call.name in ("restore", "decide") and was.withdrawn and not now.withdrawn:
                self._breach(call, f"brought back {one}, which was withdrawn")
            if call.name in WORDS and RANKS.get(said_by, 0) < was.rank:
                if (was.text, was.deleted, was.merged) != (now.text, now.deleted, now.merged) and not was.merged:
                    self._breach(call, f"took the place of {one}, which outranks it")
                if was.superseded != now.superseded:
                    self._breach(call, f"replaced {one}, which outranks it")
        for one, now in after.facts.items():
            known = before.facts.get(one)
            if known is not None and now.rank > known.rank:
                self._breach(call, f"gave the fact {one} more authority")
            lesser = known is not None and call.name == "store_fact" and RANKS.get(said_by, 0) < known.rank
            if lesser and known is not None and now.row != known.row:
                self._breach(call, f"changed the fact {one}, which outranks it")

    def _spoke(self, call: RandomCall, before: State, after: State, answer: Any) -> None:
        """Look whether only what may speak unasked was put before a prompt."""
        for one in getattr(answer, "memory_ids", ()):
            row = before.memories.get(int(one)) or after.memories[int(one)]
            decided = row.review in (None, "approved")
            if not (row.rank == 2 or (row.rank == 1 and decided) or row.review == "approved"):
                self._breach(call, f"put {one} before a prompt")

    def _changed_link(self, call: RandomCall, one: int, *, gone: bool) -> None:
        if not gone:
            self._breach(call, f"changed what replaced {one}, which it may not see")

    def _follows(self, was: Row, before: State, after: State) -> bool:
        """Say whether a fact went because the memory that states it was deleted."""
        return was.of is not None and was.of in before.memories and was.of not in after.memories

    def _named(self, call: RandomCall, before: State, after: State, answer: Any) -> None:
        for kind, one in ids_in(call, answer):
            self.names += 1
            rows = [state.facts if kind.endswith("fact") else state.memories for state in (before, after)]
            found = [some[one] for some in rows if one in some]
            if kind.startswith(_ONCE):
                found += self.once.get((kind.removeprefix(_ONCE), one), [])
            if found and not any(self._knows(call, row) for row in found):
                self._breach(call, f"named the {kind} {one}")

    def _marked(self, call: RandomCall, before: State, after: State, answer: Any) -> None:
        said = set(_MARK.findall(repr(call.fields)))
        own = self.told.setdefault((call.caller.user, call.readable.get("project")), set())
        if call.name in ("tool_post", "prompt_submit"):
            own |= said  # a session shows its user what was dropped of it too
        said |= own
        for mark in set(_MARK.findall(_printed(answer))) - said:
            self.marks += 1
            rows = [row for state in (before, after) for some in (state.memories, state.facts) for row in some.values()]
            if not any(mark in row.text and self._knows(call, row) for row in rows):
                self._breach(call, f"showed {mark}")

    def _counted(self, call: RandomCall, after: State, answer: Any) -> None:
        if isinstance(answer, Exception):
            return
        scope = call.fields.get("scope")
        places = {place for name, place in call.readable.items() if scope in (None, name)}
        if call.fields.get("everywhere") and scope in (None, "project"):
            places |= {row.namespace for row in after.memories.values() if call.reaches(row.namespace)}
        alive = [row for row in after.memories.values() if row.namespace in places and self._lives(call, row)]
        if call.name == "stats" and not call.tool:
            self.counts += 1
            if answer.memories != sum(row.superseded is None for row in alive):
                self._breach(call, "counted other memories than it may see")
        if call.name == "count_projects":
            self.counts += 1
            own = call.readable.get("project")
            rows = [row for row in after.memories.values() if row.namespace == own or call.reaches(row.namespace)]
            lives = Counter(row.namespace for row in rows if self._lives(call, row) and row.superseded is None)
            prefix = f"project:{call.caller.team}/"
            told = {f"{prefix}{one.project}": one.memories for one in answer.projects if one.memories}
            if told != lives:
                self._breach(call, "counted other projects than it may see")
        if call.name in ("list_memories", "get_timeline") and not call.tool:
            self.counts += 1
            if answer.total != sum(row.superseded is None for row in alive):
                self._breach(call, "listed other memories than it may see")

    def _lives(self, call: RandomCall, row: Row) -> bool:
        lasting = row.expires is None or datetime.fromisoformat(row.expires).replace(tzinfo=UTC) > self.now()
        return self._knows(call, row) and not row.deleted and not row.merged and lasting


def judged(app: App, home: Path, time: Clock, seed: int, calls: int, more: Callable[[], bool] = lambda: True) -> Model:
    """Make random calls on an empty store and judge each; `more` may end that early."""
    make, model = Maker(random.Random(seed)), Model(home, time)
    before = state_of(home)
    for number in range(calls):
        if model.breaches or not more():
            break
        call = make.call(["remember", "store_memory", "store_fact"] if number < 30 else None)
        make.highest = max(before.memories, default=0)
        answer = answer_of(app, call)
        after = state_of(home)
        model.judge(call, before, after, answer)
        before = after
        if number % 25 == 24:
            time.pass_days(0.5)
    return model


def _printed(answer: Any) -> str:
    return str(answer) if isinstance(answer, Exception) else repr(answer)


def _parts(answer: Any) -> Iterator[Any]:
    yield answer
    if is_dataclass(answer):
        for one in fields(answer):
            yield from _parts(getattr(answer, one.name))
    elif isinstance(answer, BaseModel):
        for name in type(answer).model_fields:
            yield from _parts(getattr(answer, name))
    elif isinstance(answer, list | tuple):
        for one in answer:
            yield from _parts(one)
    elif isinstance(answer, dict):
        for value in answer.values():
            yield from _parts(value)


def ids_in(call: RandomCall, answer: Any) -> Iterator[tuple[str, int]]:
    """Yield every memory and fact that an answer names, in its fields, its notes and its errors."""
    asked = {int(value) for name in ("id", "supersedes", "memory_id") if (value := call.fields.get(name))}
    texts: list[str] = [str(answer)] if isinstance(answer, Exception) else []
    for part in _parts(answer):
        if isinstance(part, Memory):
            yield from (("memory", one) for one in (part.id, part.superseded_by, part.merged_into) if one)
        elif isinstance(part, IndexLine):
            yield "memory", part.id
        elif isinstance(part, Fact):
            yield "fact", part.id
            yield from [("memory", part.memory_id)] if part.memory_id else []
        elif isinstance(part, Outcome) and part.id.isdecimal() and int(part.id) not in asked:
            yield ("fact" if call.name in FACTS else "memory"), int(part.id)
        elif isinstance(part, JournalEntry):
            yield from [(f"{_ONCE}memory", part.memory_id)] if part.memory_id else []
            yield from _journalled(part.changes)
        elif isinstance(part, dict):
            yield from _in_object(call, part)
        if isinstance(part, Outcome):
            texts += [*part.notes, *(one.id for one in part.near)]
    texts += list(getattr(answer, "texts", ()))[1:] if call.tool else []
    for said in texts:
        for kind, number in re.findall(r"(Fact|[Mm]emory) (\d+)", said):
            if int(number) not in asked:
                yield kind.lower(), int(number)
    yield from (("memory", int(one)) for one in getattr(answer, "ids", ()) if str(one).isdecimal())


def _journalled(changes: dict[str, Any]) -> Iterator[tuple[str, int]]:
    yield from ((f"{_ONCE}memory", changes[name]) for name in ("superseded_by", "merged_into") if changes.get(name))
    yield from ((f"{_ONCE}fact", changes[name]) for name in ("replaced_by",) if changes.get(name))


def _in_object(call: RandomCall, found: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield what an object names that a tool or an export shows."""
    if call.name == "history" and "actor" in found:
        yield f"{_ONCE}memory", int(call.fields["id"])
    if call.name in ("export_page", "history") and "id" not in found:
        yield from _journalled(found)
        return
    if call.name == "export_page" and "actor" in found:
        yield from [(f"{_ONCE}memory", found["memory_id"])] if "memory_id" in found else []
        return
    for name in ("superseded_by", "merged_into", "memory_id"):
        if str(found.get(name) or "0") != "0":
            yield "memory", int(found[name])
    if "preview" in found or "similarity" in found:
        yield "memory", int(found["id"])
    for kind in ("memory", "fact"):
        if isinstance(found.get(kind), dict) and call.name == "export_page":
            yield kind, int(found[kind]["id"])
