"""A deployment on servers: replicas see each other's writes, a server that is away costs no answer and no write."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from callers import ADA
from chroma_process import ChromaProcess
from recollect import App, Caller, Settings
from recollect.domain.lifecycle import Decision, Observation, UseTool
from recollect.doors.http.application import Application
from recollect.doors.http.team import TeamAccess
from recollect.errors import InvalidInput, StoreUnusable
from recollect.memory import embed
from recollect.sessions import pipeline
from recollect.sessions.observations.trail import Trail
from recollect.sessions.pipeline import Stage
from recollect.sessions.session_state import Context
from recollect.store import integrity
from recollect.store.sql.database import Database, open_server
from recollect.store.sql.embeddings import Embeddings
from recollect.store.vectors import chroma, outbox, vector_search
from recollect.store.vectors.chroma import ChromaServer
from recollect.store.vectors.index import IndexAway, IndexBroken
from run_operations import OTHER, add, do, ill, recalled
from stores import open_app

pytestmark = pytest.mark.slow

SAID = "The quokka of the harbour deploys the billing service on Fridays."


@pytest.fixture
def replica(deployed: Settings, clock: Any) -> Iterator[Callable[[], App]]:
    """Return a function that opens one more replica of the deployment."""
    opened: list[App] = []

    def opening() -> App:
        opened.append(open_app(deployed, clock=clock))
        opened[-1].vectors.sync()
        return opened[-1]

    yield opening
    for one in opened:
        one.close()


def test_vectors_are_sent_as_bytes(migrated_postgres_url: str) -> None:
    """No row is sent as text, in which a vector is twice as long: neither all at once nor by pages."""
    chosen = text("SELECT embedding FROM vector UNION ALL SELECT CAST('ab' AS bytea)")
    with closing(open_server(migrated_postgres_url, 1)) as database, database.reading() as connection:
        for paged in ({}, {"yield_per": 10}):
            result: Any = connection.execute(chosen, execution_options=paged)
            assert result.cursor.format == 1
            assert result.scalars().all() == [b"ab"]


def test_replicas_read_each_others_writes(replica: Callable[[], App]) -> None:
    """What one has stored, changed or forgotten is so for the other at once, by meaning, word, typo and id."""
    one, two = replica(), replica()
    written = add(one, SAID, key="mascot")
    for query in ("who ships invoices before the weekend?", "quokka", "quoka", "harbour billing"):
        assert written in recalled(two, query), query
    do(two, "update_memory", id=str(written), content="The mascot is a heron now.")
    assert written in recalled(one, "heron")
    assert written not in recalled(one, "quokka")
    do(one, "forget", id=str(written))
    assert recalled(two, "heron mascot") == set()
    assert [ill(app) for app in (one, two)] == [[], []]


@pytest.mark.full
def test_many_memories_are_found_through_the_server(
    replica: Callable[[], App], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond what is looked at one by one the server's index answers, for each caller with what they may see."""
    monkeypatch.setattr(vector_search, "_SCANNED", 20)
    app = replica()
    for number, word in enumerate(("steam", "diesel", "rocket", "petrol") * 15):
        add(app, f"Note {number} on the {word} engine.")
    wanted = add(app, SAID)
    add(app, "The quokka of the harbour deploys for somebody else.", OTHER)
    again = replica()
    assert again.vectors.state == "ready"
    asked: list[str] = []
    query = ChromaServer.query
    monkeypatch.setattr(ChromaServer, "query", lambda *given: asked.append(given[1]) or query(*given))
    found = do(again, "recall", query="quokka deploys on fridays", limit=3)
    assert found.hits[0].memory.id == wanted
    assert all("somebody else" not in hit.memory.content for hit in found.hits)
    assert set(asked) == {"project:crew/engine"}


def test_replicas_handle_events_of_one_session_at_once(
    replica: Callable[[], App], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither loses what the other notes, and what is forgotten meanwhile does not come back with the slower one."""
    monkeypatch.setattr(pipeline, "_LOCKS", [nullcontext()])  # one process stands for two
    one, two = replica(), replica()
    event = UseTool(session_id="s1", tool="Bash")
    made = add(one, SAID)

    def noting(seen: str, meanwhile: Callable[[], object] = lambda: None, memory_id: int | None = None) -> list[Stage]:
        def run(context: Context[Any]) -> None:
            meanwhile()
            state = context.state
            context.update(
                trail=Trail(open=(SAID,)), seen=(*state.seen, seen), since_checkpoint=state.since_checkpoint + 1
            )
            said = {"event": "tool:post", "decision": Decision.DROPPED, "summary": SAID, "memory_id": memory_id}
            context.note(Observation(at=context.at, **said))

        return [Stage("noting", UseTool, 1, run)]

    def other_replica() -> None:
        pipeline.passed(two, event, ADA, noting("b", memory_id=made))
        do(two, "forget", id=str(made))

    pipeline.passed(one, event, ADA, noting("a", other_replica, made))
    session = two.sessions.find(ADA, "s1")
    assert session is not None
    assert (session.state["seen"], session.state["since_checkpoint"], session.dropped) == (["b", "a"], 2, 2)
    assert "quokka" not in repr((session, two.sessions.observations(session)))


def test_replicas_share_what_waits_for_the_index(replica: Callable[[], App], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two replicas that drain at once each put other vectors, all of them, each one once."""
    monkeypatch.setattr(outbox, "_BATCH", 2)
    one, two = replica(), replica()
    for project in range(6):
        add(one, SAID, Caller(user="ada", team="crew", project=f"p{project}"))
    both, put, putting = threading.Barrier(2), ChromaServer.put, dict[int, list[str]]()

    def noted(index: ChromaServer, namespace: str, ids: Any, vectors: Any) -> None:
        if id(index) not in putting:
            putting[id(index)] = []
            both.wait(60)
        putting[id(index)].append(namespace)
        put(index, namespace, ids, vectors)

    monkeypatch.setattr(ChromaServer, "put", noted)
    workers = [threading.Thread(target=each.vectors.sync) for each in (one, two)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(putting) == 2
    assert sorted(chain(*putting.values())) == [f"project:crew/p{project}" for project in range(6)]
    assert one.vectors.waiting() == 0


def test_what_a_dead_replica_was_at_is_taken_up(replica: Callable[[], App], deployed: Settings) -> None:
    """What another replica has claimed of the index, or for the model, is left to it for as long as it lives."""
    app, other = replica(), open_server(str(deployed.database_url))
    made = add(replace(app, embedder=Cold(app.embedder)), SAID)
    with suppress(StoreUnusable), other.claiming("embedding", [str(made)]) as mine:
        assert mine == {str(made)}
        assert not embed.embed_pending(app.records, app.embedder)
        end(other)
    assert embed.embed_pending(app.records, app.embedder)
    with suppress(StoreUnusable), other.claiming("index", ["project:crew/engine"]):
        app.vectors.sync()
        assert (app.vectors.waiting(), app.vectors.resting > 0) == (1, True)
        end(other)
    app.vectors.sync()
    assert (app.vectors.waiting(), app.vectors.resting) == (0, 0)
    other.close()
    assert ill(app) == []


def test_replicas_share_what_waits_for_the_model(replica: Callable[[], App], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two replicas that embed at once each embed other memories, all of them, each one once."""
    monkeypatch.setattr(embed, "_BATCH", 2)
    one, two = replica(), replica()
    cold = replace(one, embedder=Cold(one.embedder))
    made = {add(cold, f"{SAID} {number}") for number in range(7)}
    both, done = threading.Barrier(2), dict[int, list[int]]()
    store = Embeddings.store

    def noted(embeddings: Embeddings, waiting: Any, chunks: Any) -> None:
        if id(embeddings) not in done:
            done[id(embeddings)] = []
            both.wait(60)
        done[id(embeddings)].append(waiting.id)
        store(embeddings, waiting, chunks)

    monkeypatch.setattr(Embeddings, "store", noted)
    workers = [threading.Thread(target=embed.embed_pending, args=(each.records, each.embedder)) for each in (one, two)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert len(done) == 2
    assert sorted(chain(*done.values())) == sorted(made)


class Cold:
    """The real model before it is loaded."""

    ready, failure = False, ""

    def __init__(self, model: Any) -> None:
        self.card = model.card

    def wait(self, _: float) -> bool:
        """Wait for nothing."""
        return False


def end(other: Database) -> None:
    """End every other connection of a database, as the death of its process would."""
    name = other.url.database
    ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name AND state = :state"
    with other.reading() as connection:
        connection.execute(text(ending), {"name": name, "state": "idle in transaction"})


@pytest.mark.parametrize("change", ["update_memory", "forget"])
def test_what_one_replica_read_does_not_undo_what_another_wrote(
    replica: Callable[[], App], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """A replica that is slow to put a vector into the index does not bring back one changed or forgotten meanwhile."""
    one, two = replica(), replica()
    written = add(one, SAID)
    fields = {"id": str(written)} | ({"content": "The mascot is a heron now."} if change == "update_memory" else {})

    def other_replica() -> None:
        do(two, change, **fields)
        two.vectors.sync()

    put, changing = ChromaServer.put, threading.Thread(target=other_replica)

    def slow(*given: Any) -> None:
        if not changing.ident:
            changing.start()
            changing.join(2)
        put(*given)

    monkeypatch.setattr(ChromaServer, "put", slow)
    one.vectors.sync()
    changing.join()
    assert [ill(app) for app in (one, two)] == [[], []]


def test_a_server_that_is_away_costs_nothing(
    replica: Callable[[], App], chroma_process: ChromaProcess, deployed: Settings
) -> None:
    """While Chroma is down writes are taken and recall answers; when it is back, its index agrees with SQL again."""
    app = replica()
    before = add(app, SAID)
    chroma_process.kill()
    try:
        meanwhile = add(app, "The heron keeps the keys of the release cupboard.")
        assert {before, meanwhile} <= recalled(app, "heron keys quokka")
        assert recalled(app, "which bird guards the deployment locker?") >= {meanwhile}
        app.vectors.sync()
        assert app.vectors.state == "away"
        ready = TestClient(Application(TeamAccess(app, deployed))).get("/readyz")
        assert (ready.status_code, ready.json()["vector_index"]) == (200, "away")
        do(app, "forget", id=str(before))
        assert before not in recalled(app, "quokka")
    finally:
        chroma_process.start()
    assert ill(app) == []
    assert app.vectors.state == "ready"
    assert ill(replica()) == []


def test_deployments_share_a_server_without_meeting(
    replica: Callable[[], App], deployed: Settings, clock: Any, request: pytest.FixtureRequest
) -> None:
    """Another deployment on the same Chroma server neither shows nor removes what this one has there."""
    app = replica()
    mine = add(app, SAID)
    app.vectors.sync()
    elsewhere = deployed.model_copy(update={"database_url": request.getfixturevalue("postgres_url")})
    with open_app(elsewhere, clock=clock) as other:
        add(other, SAID)
        other.vectors.repair()
        assert ill(other) == []
    assert ill(app) == []
    assert recalled(app, "quokka") == {mine}


def test_no_answer_is_away_and_nothing_else() -> None:
    """A server that is not there is told from an index that is broken, and the doctor's advice is to start it."""
    with pytest.raises(IndexAway) as away:
        ChromaServer("http://127.0.0.1:9", "m1", "ab").open()
    assert "Start Chroma" in integrity.unreadable("vector index", away.value).advice
    assert "reindex" in integrity.unreadable("vector index", IndexBroken("damaged")).advice


def test_a_server_that_takes_connections_and_answers_none_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening it ends, as those that wait for the index would hang with it."""
    monkeypatch.setattr(chroma, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = ChromaServer(f"http://127.0.0.1:{silent.getsockname()[1]}", "m1", "ab")
        with pytest.raises(IndexAway):
            server.open()


def test_opening_looks_at_no_collection_and_the_first_use_does(
    replica: Callable[[], App], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many namespaces there are, opening asks for none; one that lost a vector is built again once asked."""
    monkeypatch.setattr(vector_search, "_SCANNED", 0)
    first = replica()
    made = add(first, SAID)
    add(first, "The heron keeps the keys of the release cupboard.")
    add(first, SAID, OTHER)
    first.vectors.sync()
    index = first.vectors._index
    index.take("project:crew/engine", [f"{made}.0"])
    asked: list[str] = []
    collection = ChromaServer._get_collection
    monkeypatch.setattr(ChromaServer, "_get_collection", lambda *given: asked.append(given[1]) or collection(*given))
    app = replica()
    assert (asked, app.vectors.state) == ([], "ready")
    assert made in recalled(app, "which animal ships invoices?")
    assert (set(asked), app.vectors.state) == ({"project:crew/engine"}, "rebuilding")
    app.vectors.sync()
    assert index.count("project:crew/engine") == 2
    assert made in recalled(app, "which animal ships invoices?")
    add(app, "A memory that is queued is no reason to doubt.")
    assert replica().vectors._outbox.agrees("project:crew/engine")  # type: ignore[attr-defined]


def test_a_server_that_is_away_is_not_waited_for_twice(
    replica: Callable[[], App], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it did not answer, forgetting leaves the index to the queue."""
    app, asked = replica(), list[str]()
    written = [add(app, SAID), add(app, "The heron keeps the keys of the release cupboard.")]
    app.vectors.sync()

    def silent(_: ChromaServer, namespace: str, __: object) -> None:
        asked.append(namespace)
        raise IndexAway

    with monkeypatch.context() as patch:
        patch.setattr(ChromaServer, "take", silent)
        for one in written:
            do(app, "forget", id=str(one))
    assert len(asked) == 1
    assert ill(app) == []


def test_a_database_that_does_not_answer_is_told(unused_settings: Settings) -> None:
    """The error says so in a sentence, and names no password."""
    settings = unused_settings.model_copy(update={"database_url": "postgresql://ada:hush@127.0.0.1:9/none"})
    with pytest.raises(StoreUnusable) as caught:
        open_app(settings)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "url"),
    [("database_url", "mysql://x/y"), ("database_url", "postgresql:"), ("chroma_url", "ftp://x"), ("chroma_url", "[")],
)
def test_an_address_of_another_kind_is_refused(name: str, url: str) -> None:
    """The error names the setting and what it must begin with, and never repeats the address."""
    with pytest.raises(InvalidInput, match=f"RECOLLECT_{name.upper()}: must begin with"):
        Settings(**{name: url})


def test_everybody_sees_their_own(replica: Callable[[], App]) -> None:
    """On servers, too, what a caller may not see does not exist for them."""
    app = replica()
    secret = add(app, SAID, sensitivity="private")
    assert recalled(app, "quokka") == set()
    assert recalled(app, "quokka", allow_private=True) == {secret}
    assert do(app, "list_memories", OTHER, allow_private=True).memories == ()
    assert do(app, "stats", ADA, allow_private=True).memories == 1
