"""The user at the other end of a connection on the loopback is known, where the system tells."""

from __future__ import annotations

import os
import socket
from contextlib import closing

import pytest

from recollect.doors.http.peers import is_of_another_user, user_of
from unprivileged import unprivileged


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
@pytest.mark.parametrize("stranger", [False, True], ids=["oneself", "a user with fewer rights"])
def test_a_connection_is_of_who_opened_it(family: socket.AddressFamily, address: str, stranger: bool) -> None:
    """The number of the user is that of the process at the other end, not of the one that listens."""
    with closing(socket.socket(family)) as listening:
        listening.bind((address, 0))
        listening.listen()
        port = listening.getsockname()[1]
        if stranger:
            with unprivileged():
                wanted, connection = os.geteuid(), socket.create_connection((address, port), timeout=10)
        else:
            wanted, connection = os.geteuid(), socket.create_connection((address, port), timeout=10)
        with closing(connection):
            client = connection.getsockname()
            assert user_of(client[1], port) == wanted
            scope = {"type": "http", "client": client[:2], "server": (address, port)}
            assert is_of_another_user(scope) is (wanted != os.getuid())


def test_what_nothing_tells_is_nobody_else() -> None:
    """A request without an address, and ports that no connection joins, are not held to be of another user."""
    assert user_of(1, 2) is None
    assert not is_of_another_user({"type": "http"})
    assert not is_of_another_user({"type": "http", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)})
