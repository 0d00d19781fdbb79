"""What a Python program may do on the server of a team is what its token has a right to."""

from __future__ import annotations

import asyncio

import pytest

import recollect
from recollect.errors import Forbidden, Unauthorized
from team_server import TeamServer, listening


def test_rights_are_those_of_the_token(team: TeamServer) -> None:
    """Who may only read gets answers and is refused a write, and an unknown token is refused; awaited or not."""
    with listening(team) as served:
        place = {"url": served.url, "team": "crew", "project": "engine"}

        async def awaited() -> None:
            async with recollect.connect_async(**place, token=team.tokens["bob"]) as memory:
                assert (await memory.recall("anything")).hits == ()
                with pytest.raises(Forbidden, match="You have no right to write"):
                    await memory.remember("Not for Bob to say")

        asyncio.run(awaited())
        with recollect.connect(**place, token=team.tokens["bob"]) as memory:
            assert memory.list_memories().total == 0
            with pytest.raises(PermissionError, match="You have no right to write"):
                memory.remember("Not for Bob to say")
        stranger = recollect.connect(**place, token=team.tokens["bob"][:-1] + "x")
        with pytest.raises(Unauthorized, match="Invalid token"):
            stranger.stats()
