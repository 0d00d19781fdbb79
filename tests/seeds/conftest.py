"""What the proofs of the specifications may ask for: a door to one store that all of them share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recollect.domain.enums import Retention
from seed_doors import Door, House, Opening, open_house


@pytest.fixture(scope="session")
def opening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opening]:
    """Return a function that opens stores with settings of their own, which are closed when all is over."""
    opened: list[House] = []

    def one(**settings: object) -> House:
        opened.append(open_house(tmp_path_factory.mktemp("seeds"), **settings))
        return opened[-1]

    yield one
    for house in opened:
        house.app.close()


@pytest.fixture(scope="session")
def house(opening: Opening) -> House:
    """Return a store with the default settings."""
    return opening()


@pytest.fixture(scope="session")
def ageing_house(opening: Opening) -> House:
    """Return a store where importance says how long a memory is kept."""
    return opening(retention=Retention.IMPORTANCE)


@pytest.fixture
def door(house: House) -> Door:
    """Return a door of this test's own, behind which nothing is remembered yet."""
    return house.door()


@pytest.fixture
def ageing(ageing_house: House) -> Door:
    """Return a door to the store where memories age by their importance."""
    return ageing_house.door()
