"""Files as other programs write them, put together by the tests and read as an import reads them."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from recollect.domain import Carried, Format, Load, Problem
from recollect.operations.exchange.formats import READERS


class Found:
    """What a file carries, sorted."""

    def __init__(self, things: list[Carried | Problem]) -> None:
        self.things = things
        self.memories = [one for one in things if isinstance(one, Carried) and one.load is Load.MEMORY]
        self.facts = [one for one in things if isinstance(one, Carried) and one.load is Load.FACT]
        self.problems = [one for one in things if isinstance(one, Problem)]

    @property
    def contents(self) -> list[str]:
        """Return the contents of the memories."""
        return [one.fields["content"] for one in self.memories]


@pytest.fixture
def read() -> Callable[..., Found]:
    """Return a function that reads text or bytes as a file of a format."""

    def reading(format: Format, text: str | bytes, name: str = "file") -> Found:
        data = text if isinstance(text, bytes) else text.encode()
        return Found(list(READERS[format](io.BytesIO(data), name)))

    return reading
