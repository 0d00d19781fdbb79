"""What a request may hold is bounded in number and length at every door, and a filter never costs more than that."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select

from recollect import App
from recollect.domain.fields import MAX_LABELS, Request
from recollect.domain.requests import Filters
from recollect.domain.search import View
from recollect.domain.verbs import ADMIN_BY_NAME, BY_NAME, PARTS
from recollect.errors import InvalidInput
from recollect.store.sql.tables import memory
from recollect.store.sql.visibility import passing
from run_operations import add, do

REQUESTS = {verb.request.__name__: verb.request for table in (BY_NAME, ADMIN_BY_NAME, PARTS) for verb in table.values()}
READS = [name for name, request in REQUESTS.items() if issubclass(request, Filters)]


def unbounded(schema: Any, place: str = "") -> Iterator[str]:
    """Yield the places in a JSON schema where a list may have any number of entries."""
    if isinstance(schema, dict):
        if schema.get("type") == "array" and "maxItems" not in schema:
            yield place
        for name, one in schema.items():
            yield from unbounded(one, f"{place}/{name}")
    elif isinstance(schema, list):
        for one in schema:
            yield from unbounded(one, place)


@pytest.mark.parametrize("name", REQUESTS)
def test_every_list_of_a_request_is_bounded(name: str) -> None:
    """A request of any verb, by any door, says how many entries each of its lists may have."""
    assert list(unbounded(REQUESTS[name].model_json_schema())) == []


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize(
    "labels",
    [
        {"tags": [f"t{number}" for number in range(MAX_LABELS + 1)]},
        {"tags": ",".join(f"t{number}" for number in range(200))},
        {"tags": str([*"abcdefghijklmnopqrstuvwxyz"]).replace("'", '"')},
        {"concepts": ["gotcha"] * (MAX_LABELS + 1)},
    ],
    ids=["a list", "one text", "JSON", "concepts"],
)
def test_a_read_names_the_limit_of_its_labels(name: str, labels: dict[str, Any]) -> None:
    """Who asks for too many tags or concepts learns which field, and how many there may be."""
    (field,) = labels
    with pytest.raises(InvalidInput, match=f"^Invalid {field}: Must have at most 20 entries$"):
        given(REQUESTS[name], **labels)


def given(request: type[Request], **labels: Any) -> Request:
    """Build a request of which only the labels matter."""
    needed = {"query": "a", "file": "a", "concept": "gotcha", "content": "a"}
    return request(**{one: text for one, text in needed.items() if one in request.model_fields}, **labels)


@pytest.mark.parametrize(("kind", "names"), [("tags", "abcdefghijklmnopqrst"), ("tags", "äbcdéfg")])
def test_any_number_of_tags_is_one_question(kind: str, names: str) -> None:
    """The statement for twenty tags asks no more often than that for two."""

    def asked(several: str) -> int:
        view = View(namespaces=("user:ada",), now=datetime(2026, 1, 1, tzinfo=UTC), tags=tuple(several))
        return str(select(memory.c.id).where(memory.c.id.in_(passing(view)))).count("SELECT")

    assert asked(names) == asked(names[:2])


def test_a_memory_has_all_the_labels_that_are_asked_for(app: App) -> None:
    """In any letter case and number, with and without repeats; what lacks one of them is not there."""
    both = add(app, "Blue paint dries in two hours.", tags=["Paint", "Ölfarbe", "x"], concepts=["gotcha", "pattern"])
    add(app, "Red paint dries in three hours.", tags=["paint"], concepts=["gotcha"])

    def found(**labels: Any) -> list[int]:
        return [one.id for one in do(app, "list_memories", **labels).memories]

    for tags in (["paint", "ÖLFARBE"], ["X", "PAINT", "paint", "ölfarbe"], ["x"]):
        assert found(tags=tags) == [both]
    assert found(concepts=["pattern", "gotcha"]) == found(tags=["paint", "x"], concepts=["gotcha"]) == [both]
    assert found(tags=["paint", "absent"]) == found(tags=["paint", "x"], concepts=["trade-off"]) == []
