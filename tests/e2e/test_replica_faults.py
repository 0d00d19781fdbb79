"""Two replicas over one PostgreSQL and one Chroma server, each of which is killed while clients write."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from recollect import Settings
from replica_faults import Load, check, deployed
from stdio_client import until


@pytest.mark.full
def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, unused_settings: Settings) -> None:
    """A replica, Chroma and PostgreSQL are killed in turn while clients write, and each write is there, once."""
    with deployed(tmp_path) as deployment:
        load = Load(deployment)
        first, second = deployment.replicas
        with load.running(4):
            load.wait(20)
            deployment.chroma.kill()
            until(lambda: httpx2.get(f"{second.url}/readyz").json()["vector_index"] == "away")
            load.recall()
            deployment.chroma.start()
            load.wait(10)
            deployment.postgres.kill()
            load.refusing()
            deployment.postgres.start()
            load.wait(5, 0)
            load.wait(5, 1)
            first.kill()
            load.wait(10)
            first.start()
            load.wait(5, 0)
        check(load, unused_settings)


@pytest.mark.full
def test_a_replica_that_ends_answers_what_was_begun(tmp_path: Path, unused_settings: Settings) -> None:
    """SIGTERM under load breaks off no answer: the other replica takes what comes later, and nothing is lost."""
    with deployed(tmp_path) as deployment:
        load = Load(deployment)
        with load.running(4):
            load.wait(20)
            assert deployment.replicas[1].stop() == 0
            load.wait(10)
        check(load, unused_settings)
        assert not any(one.startswith(("Read", "50")) for one in load.refused), load.refused
