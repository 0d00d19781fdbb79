"""What a Python program may call: the same methods, answers and errors in a process, over the daemon and a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from pydantic import TypeAdapter

import recollect
from chroma_process import ChromaProcess
from daemon_place import open_place
from every_operation import REQUESTS
from postgres import Postgres
from recollect import AsyncConnection, Settings
from recollect.domain.verbs import BY_NAME
from recollect.errors import InvalidInput, NotFound, SecretFound
from stores import lay, open_app
from team_server import TeamServer, listening

KEY = "AKIA" + "QWERTYUIOPASDF12"


class Refusal(NamedTuple):
    """A call that is refused: how its error begins, the field that this names, its class, and its kinds of secrets."""

    name: str
    given: tuple[Any, ...]
    named: dict[str, Any]
    sentence: str
    field: str = ""
    kind: type[Exception] = InvalidInput
    kinds: tuple[str, ...] = ()


class Both:
    """A connection whose methods wait and one whose methods are awaited, to the same store one after the other."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = {"user": "ada", "team": "crew", "project": "engine"} | options

    def refusals(self, calls: Sequence[Refusal]) -> Iterator[tuple[Refusal, BaseException]]:
        """Make each call by both, and yield it with each error."""
        with recollect.connect(**self.options) as memory:
            for one in calls:
                with pytest.raises(one.kind) as caught:
                    getattr(memory, one.name)(*one.given, **one.named)
                yield one, caught.value
        for one, error in asyncio.run(self._refusals(calls)):
            yield one, error

    async def _refusals(self, calls: Sequence[Refusal]) -> list[tuple[Refusal, BaseException]]:
        async with recollect.connect_async(**self.options) as memory:
            errors = [await self._refusal(memory, one) for one in calls]
        return list(zip(calls, errors, strict=True))

    async def _refusal(self, memory: AsyncConnection, one: Refusal) -> BaseException:
        with pytest.raises(one.kind) as caught:
            await getattr(memory, one.name)(*one.given, **one.named)
        return caught.value


def _in_process(home: Path, made: Made) -> dict[str, Any]:
    lay(made.migrated, home)
    return {"home": home, "daemon": False}


def _over_daemon(home: Path, made: Made) -> dict[str, Any]:
    lay(made.migrated, home)
    open_place(home, made.undo).pid()
    return {"home": str(home), "daemon": True}


def _over_server(home: Path, made: Made) -> dict[str, Any]:
    """Serve a store in PostgreSQL and a Chroma server, where root may do everything."""
    database_url = made.undo.enter_context(made.postgres.migrated())
    names = {"user": "ada", "team": "crew", "project": "engine"}
    settings = Settings(home=home, database_url=database_url, chroma_url=made.chroma_process.url, **names)
    team = TeamServer(made.undo.enter_context(open_app(settings, background=True)), settings)
    team.administer("grant_team", team="crew", user="root", role="admin")
    served = made.undo.enter_context(listening(team))
    return {"url": served.url, "token": team.tokens["root"]}


PLACES = {"process": _in_process, "daemon": _over_daemon, "server": _over_server}


class Made(NamedTuple):
    """What stores are made of, and what ends them."""

    migrated: Path
    postgres: Postgres
    chroma_process: ChromaProcess
    undo: ExitStack


@pytest.fixture(scope="module", params=PLACES)
def both(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    migrated: Path,
    postgres: Postgres,
    chroma_process: ChromaProcess,
) -> Iterator[Both]:
    """Return connections to a new store in one of the places."""
    with ExitStack() as undo:
        made = Made(migrated, postgres, chroma_process, undo)
        yield Both(PLACES[request.param](tmp_path_factory.mktemp(request.param) / "home", made))


def times(value: Any) -> Iterator[datetime]:
    """Yield every time in an answer that was taken apart."""
    match value:
        case datetime():
            yield value
        case dict():
            yield from times(list(value.values()))
        case list() | tuple():
            for one in value:
                yield from times(one)


def test_every_verb_answers_with_its_type(both: Both) -> None:
    """Each verb of the table is a method that returns the type of the table, with times that know their zone."""
    assert {name for name, _ in REQUESTS} == BY_NAME.keys()

    async def walk() -> int:
        seen = 0
        async with recollect.connect_async(**both.options) as awaited:
            for number, (name, fields) in enumerate(REQUESTS):
                waiting = awaited.waiting if number % 2 else None
                answer = getattr(waiting, name)(**fields) if waiting else await getattr(awaited, name)(**fields)
                kind = TypeAdapter(BY_NAME[name].answer)
                assert kind.validate_python(answer, strict=True) == answer, name
                found = list(times(kind.dump_python(answer, round_trip=True)))
                assert all(one.tzinfo is not None for one in found), name
                seen += len(found)
        return seen

    assert asyncio.run(walk()) > 20


REFUSED: Final = (
    Refusal(
        "remember", (), {"contnt": "x"}, "Unknown parameter: `contnt`. Did you mean `content`? Allowed: `", "contnt"
    ),
    Refusal("remember", (5,), {}, "Invalid content: Must be a string", "content"),
    Refusal("remember", ("x",), {"fact_type": "rumour"}, "Invalid fact_type: Must be `general`, ", "fact_type"),
    Refusal("remember", ("x",), {"source": "hook"}, "Invalid source: It cannot be given; ", "source"),
    Refusal("remember", (), {}, "Missing content: `content` is required", "content"),
    Refusal("recall", ("a", 5), {}, "Too many arguments: `recall` takes `query` without a name", "arguments"),
    Refusal("recall", ("a",), {"query": "b"}, "Invalid query: It is given twice", "query"),
    Refusal("recall", ("a",), {"limit": 0}, "Invalid limit: Must be a whole number from 1 to 100", "limit"),
    Refusal("tool_post", ("s", "T"), {"input": {"a": object()}}, "Invalid tool_post: It holds what is no", "tool_post"),
    Refusal("perform", ("recal",), {}, "Unknown operation: `recal`. Did you mean `recall` or ", "operation"),
    Refusal("get_memory", (404_404,), {}, "Memory 404404 not found.", kind=NotFound),
    Refusal("find_similar", (), {"id": "404404"}, "Memory 404404 not found.", kind=NotFound),
    Refusal("remember", (f"It is {KEY}",), {}, "Secret detection: Blocks", "content", SecretFound, ("AWS access key",)),
    Refusal("remembr", (), {}, "Unknown method: `remembr`. Did you mean `remember` or ", kind=AttributeError),
)
"""What is refused, and what the error says."""


def test_errors_are_the_same_everywhere(both: Both) -> None:
    """A wrong name, a wrong value, a secret and what is not there give the same class, sentence and details."""
    seen = 0
    for call, error in both.refusals(REFUSED):
        assert (type(error), str(error)[: len(call.sentence)]) == (call.kind, call.sentence)
        assert (getattr(error, "field", ""), getattr(error, "kinds", ())) == (call.field, call.kinds)
        seen += 1
    assert seen == 2 * len(REFUSED)


def test_a_closed_memory_says_so(both: Both) -> None:
    """After the end of its block a connection refuses every call, and names what opens another one."""
    with recollect.connect(**both.options) as memory:
        memory.stats()
    with pytest.raises(InvalidInput, match=r"This memory is closed: Open another one with `recollect\.connect`"):
        memory.stats()
