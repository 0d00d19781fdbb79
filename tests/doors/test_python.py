"""What becomes of a connection of a Python program in threads, event loops, forks and after mistakes."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import recollect
from recollect import Connection, Settings
from recollect.client.connection import DaemonConnection, ServerConnection
from recollect.errors import InvalidInput, ServerUnreachable, StoreOwned


@pytest.fixture
def memory(settings: Settings) -> Iterator[Connection]:
    """Return a connection to a new store in this process."""
    with recollect.connect(settings) as memory:
        yield memory


def test_an_unknown_option_is_named() -> None:
    """An option that is not there is named with the nearest and all there are; a bad value names its setting."""
    with pytest.raises(InvalidInput) as told:
        recollect.connect(projct="shop")  # type: ignore[call-arg]
    assert str(told.value).startswith("Unknown option: `projct`. Did you mean `project`? Allowed: `home`, ")
    assert told.value.field == "projct"
    with pytest.raises(InvalidInput, match="RECOLLECT_URL"):
        recollect.connect(url="nonsense")


def test_a_folder_that_is_named_wins_over_a_server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """`home` means that folder although `RECOLLECT_URL` names a server; without it the server is asked."""
    monkeypatch.setenv("RECOLLECT_URL", "http://127.0.0.1:9")
    assert isinstance(recollect.connect(home=settings.home), DaemonConnection)
    assert isinstance(recollect.connect(project="shop"), ServerConnection)


def test_threads_share_one_store(memory: Connection) -> None:
    """Threads that begin at once open the store once, and each gets its own answer."""
    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(lambda number: memory.remember(f"Berth {number} is free"), range(8)))
    assert len({one.id for one in stored}) == memory.stats().memories == 8


def test_a_second_owner_is_told_who_has_the_store(memory: Connection, settings: Settings) -> None:
    """While one connection has the store open in its process, another one is told so; after its end that one works."""
    memory.stats()
    with recollect.connect(settings) as other:
        with pytest.raises(StoreOwned):
            other.stats()
        memory.close()
        assert other.stats().memories == 0


def test_two_event_loops_share_one_store(settings: Settings) -> None:
    """A connection made outside any event loop serves one loop after the other, and several calls at once."""
    memory = recollect.connect_async(settings)

    async def many() -> int:
        await asyncio.gather(*(memory.remember(f"Berth {number} is free") for number in range(4)))
        return (await memory.stats()).memories

    assert (asyncio.run(many()), asyncio.run(many())) == (4, 4)
    asyncio.run(memory.close())


def test_a_copy_of_the_process_leaves_the_store_alone(memory: Connection) -> None:
    """After a fork the copy is told to open its own connection, and its end does not end that of the first process."""
    memory.remember("The pier is long")
    if (child := os.fork()) == 0:
        code = 1
        try:
            memory.stats()
        except InvalidInput as error:
            code = 0 if "before a fork" in str(error) else 2
            memory.close()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert memory.stats().memories == 1


def test_who_stops_waiting_goes_on_at_once(settings: Settings) -> None:
    """A call to a server that takes it and says nothing can be given up; it is unreachable when it leaves for good."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        memory = recollect.connect_async(url=f"http://127.0.0.1:{server.getsockname()[1]}", project="shop")

        async def give_up() -> None:
            asked = asyncio.ensure_future(memory.stats())
            link, _ = await asyncio.to_thread(server.accept)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            server.close()
            link.close()
            with pytest.raises(ServerUnreachable, match="cannot be reached"):
                await memory.stats()

        asyncio.run(give_up())
