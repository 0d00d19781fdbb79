"""What tests of whole processes may ask for: a place whose clients share one daemon, cleared when it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from daemon_place import Place, open_place
from stores import lay


@pytest.fixture
def make_place(tmp_path: Path, migrated: Path) -> Iterator[Callable[..., Place]]:
    """Return a function that makes places, each where nobody has been; tables are made unless a `home` is given."""
    with ExitStack() as undo:

        def making(home: Path | None = None, **changes: object) -> Place:
            if home is None:
                lay(migrated, tmp_path / "home")
            return open_place(home or tmp_path / "home", undo, **changes)

        yield making


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """Return a place nobody has used."""
    return make_place()


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Place]:
    """Return a place with one daemon for all tests of a module that leave it as it was."""
    home = tmp_path_factory.mktemp("common") / "home"
    lay(migrated, home)
    with ExitStack() as undo:
        place = open_place(home, undo)
        place.pid()
        yield place


@pytest.fixture
def shared(common: Place, request: pytest.FixtureRequest) -> Iterator[Place]:
    """Return the common place as somebody sees it who has a project of this test's own."""
    pid = common.pid()
    yield common.changed(project=request.node.name.translate({ord(sign): "-" for sign in "[]/"}))
    assert common.pid() == pid, "the test did not leave the daemon as it was"
