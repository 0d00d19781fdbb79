"""A few agents at once on one store while its daemon is killed under them."""

from __future__ import annotations

import pytest

from agent_crowd import Crowd, check_crowd
from daemon_place import Place


@pytest.mark.full
def test_a_crowd_and_two_kills(place: Place) -> None:
    """Nothing acknowledged is lost, nothing is doubled, nobody sees an error, and one daemon is left."""
    crowd = Crowd(clients=3, rounds=5, kills=2)
    check_crowd(place, crowd)
    assert len(crowd.acknowledged) == 15
    assert len(set(crowd.killed)) == 2
