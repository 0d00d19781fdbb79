"""What tests of whole processes may ask for: a place whose clients share one daemon, cleared when the test ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from daemons import Place

from recollect import Settings


@pytest.fixture
def make_place(tmp_path: Path, cache_dir: Path) -> Iterator[Callable[..., Place]]:
    """Return a function that makes places; whatever still runs in one is ended when the test ends."""
    made: list[Place] = []

    def making(home: Path | None = None, **changes: object) -> Place:
        names = {"user": "ada", "team": "crew", "project": "engine"}
        paths = {"home": home or tmp_path / "home", "cache_dir": cache_dir}
        settings = Settings(**(paths | names | {"daemon": True} | changes))
        ours = settings.model_dump(mode="json", exclude_none=True)
        theirs = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
        place = Place(settings, theirs | {f"RECOLLECT_{name.upper()}": str(value) for name, value in ours.items()})
        made.append(place)
        return place

    yield making
    for place in made:
        place.clear()


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """Return a place nobody has used."""
    return make_place()
