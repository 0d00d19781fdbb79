"""Files as other programs write them, put together by the tests and read as an import reads them."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from recollect.domain.transfer import FileSections, ImportFormat, ImportItem, ItemKind, Problem
from recollect.transfer.formats import FORMATS


class Found:
    """What a file holds, sorted."""

    def __init__(self, things: list[ImportItem | Problem | FileSections]) -> None:
        self.things = things
        self.memories = [one for one in things if isinstance(one, ImportItem) and one.kind is ItemKind.MEMORY]
        self.facts = [one for one in things if isinstance(one, ImportItem) and one.kind is ItemKind.FACT]
        self.problems = [one for one in things if isinstance(one, Problem)]

    @property
    def contents(self) -> list[str]:
        """Return the contents of the memories."""
        return [one.fields["content"] for one in self.memories]


@pytest.fixture
def read() -> Callable[..., Found]:
    """Return a function that reads text or bytes as a file of a format."""

    def reading(format: ImportFormat, text: str | bytes, name: str = "file") -> Found:
        data = text if isinstance(text, bytes) else text.encode()
        return Found(list(FORMATS[format].read(io.BytesIO(data), name)))

    return reading
