"""LangGraph's store: one suite over ours and the library's own in memory, then what only ours does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from clock import Clock
from recollect import App
from recollect.client.connection import Connection
from recollect.errors import InvalidInput, SecretFound
from recollect.frameworks.langgraph import RecollectStore
from run_operations import add, do, ill, token

ADA, BOB = ("users", "ada"), ("users", "bob")
FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"kind": "fruit"}, ["apple", "fig"]),
    ({"kind": "fruit", "ripe": True}, ["apple"]),
    ({"kind": {"$eq": "fruit"}}, ["apple", "fig"]),
    ({"kind": {"$ne": "fruit"}}, ["leek"]),
    ({"count": {"$gt": 3}}, ["leek"]),
    ({"count": {"$gte": 3}}, ["apple", "leek"]),
    ({"count": {"$lt": 3}}, ["fig"]),
    ({"count": {"$lte": 3}}, ["apple", "fig"]),
    ({"count": {"$gt": 1, "$lt": 7}}, ["apple"]),
    ({"count": {"$gt": 2.5}}, ["apple", "leek"]),
    ({"origin": {"country": "Peru"}}, ["apple"]),
    ({"tags": ["red", "sweet"]}, ["apple"]),
    ({"tags": ["red"]}, []),
    ({"ripe": None}, ["leek"]),
    ({"nothing": "x"}, []),
    ({}, ["apple", "fig", "leek"]),
]
PLACES = (("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "b", "f"), ("a", "c", "f"), ("z", "f"))
LISTED: list[tuple[dict[str, Any], list[tuple[str, ...]]]] = [
    ({}, [*PLACES]),
    ({"prefix": ("a", "b")}, [*PLACES[:4]]),
    ({"prefix": ("a", "*", "f")}, [PLACES[3], PLACES[4]]),
    ({"suffix": ("f",)}, [*PLACES[3:]]),
    ({"suffix": ("*", "f"), "prefix": ("a",)}, [PLACES[3], PLACES[4]]),
    ({"prefix": ("a", "b"), "max_depth": 3}, [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]),
    ({"max_depth": 1}, [("a",), ("z",)]),
    ({"limit": 2, "offset": 1}, [*PLACES[1:3]]),
    ({"prefix": ("q",)}, []),
]


@pytest.fixture(params=["recollect", "reference"])
def store(request: pytest.FixtureRequest, memory: Connection) -> BaseStore:
    """Return ours, and the library's own as the reference of what graphs expect."""
    return RecollectStore(memory) if request.param == "recollect" else InMemoryStore()


@pytest.fixture
def ours(memory: Connection) -> RecollectStore:
    """Return our store."""
    return RecollectStore(memory)


def keys(found: Any) -> list[str]:
    """Return the keys of items in the order of the alphabet."""
    return sorted(item.key for item in found)


def test_an_item_is_put_and_got(store: BaseStore) -> None:
    """An item comes back with its value, place and dates; an absent one is None."""
    value = {
        "text": "tea, größe ✓",
        "count": 3,
        "share": 0.5,
        "on": True,
        "none": None,
        "deep": {"list": [1, {"a": "b"}]},
    }
    store.put(ADA, "drink", value)
    item = store.get(ADA, "drink")
    assert isinstance(item, Item)
    assert (item.namespace, item.key, item.value) == (ADA, "drink", value)
    assert item.created_at <= item.updated_at
    assert item.created_at.tzinfo is not None
    assert store.get(ADA, "food") is None
    assert store.get(BOB, "drink") is None


def test_a_put_writes_over_the_item(store: BaseStore) -> None:
    """The whole value is replaced, and the item stays one."""
    store.put(ADA, "drink", {"text": "tea", "cups": 2})
    first = store.get(ADA, "drink")
    store.put(ADA, "drink", {"text": "coffee"})
    item = store.get(ADA, "drink")
    assert item is not None
    assert first is not None
    assert item.value == {"text": "coffee"}
    assert item.updated_at >= first.updated_at
    assert len(store.search(ADA)) == 1


def test_an_item_is_deleted(store: BaseStore) -> None:
    """A deleted item is gone, others stay, and deleting again is no error."""
    for key in ("a", "b"):
        store.put(ADA, key, {"text": key})
    store.delete(ADA, "a")
    store.delete(ADA, "a")
    assert (store.get(ADA, "a"), keys(store.search(ADA))) == (None, ["b"])


@pytest.mark.parametrize("key", ["a/b", "a b", " a ", "a%2Fb", "a.b", "ä✓", "a\nb", "", "/", "%", "key-1_2:3"])
def test_any_key_can_be_used(store: BaseStore, key: str) -> None:
    """Whatever stands in a key or a label is its own, and no other item is meant by it."""
    store.put(("a", "b"), "c", {"text": "another"})
    store.put(("a",), key, {"text": key})
    item = store.get(("a",), key)
    assert item is not None
    assert (item.key, item.namespace, item.value) == (key, ("a",), {"text": key})
    label = key.replace(".", "") or "x"
    store.put(("labels", label), "k", {"text": "k"})
    assert store.list_namespaces(prefix=("labels",)) == [("labels", label)]
    assert len(store.search(())) == 3


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("langgraph", "x"), (1,)])
def test_a_wrong_namespace_is_refused(store: BaseStore, namespace: Any) -> None:
    """What LangGraph refuses as a namespace is refused, and nothing is put."""
    with pytest.raises(InvalidNamespaceError):
        store.put(namespace, "key", {"text": "x"})
    assert store.search(()) == []


def test_a_search_goes_below_its_prefix(store: BaseStore) -> None:
    """A search sees a namespace and all below it, and none that only begins with the same letters."""
    for namespace in (("users",), ADA, ("users", "ada", "notes"), BOB, ("users2",), ("users", "ada2")):
        store.put(namespace, "/".join(namespace), {"text": "x"})
    assert keys(store.search(ADA)) == ["users/ada", "users/ada/notes"]
    assert len(store.search(("users",))) == 5
    assert len(store.search(())) == 6
    assert store.search(("nobody",)) == []


def test_a_search_filters_by_values(store: BaseStore) -> None:
    """Every filter and operator lets through the items whose values meet it."""
    apple = {
        "kind": "fruit",
        "count": 3,
        "ripe": True,
        "origin": {"country": "Peru", "farm": 7},
        "tags": ["red", "sweet"],
    }
    store.put(ADA, "apple", apple)
    store.put(ADA, "fig", {"kind": "fruit", "count": 1, "ripe": False})
    store.put(BOB, "leek", {"kind": "vegetable", "count": 7, "ripe": None})
    for wanted, found in FILTERS:
        assert keys(store.search(("users",), filter=wanted)) == found, wanted


def test_a_search_has_pages(store: BaseStore) -> None:
    """`limit` and `offset` cut pages that together are all, with a filter and without; ten are the default."""
    for number in range(13):
        store.put(ADA, f"{number:02}", {"number": number, "even": number % 2 == 0})
    assert len(store.search(ADA)) == 10
    pages = [store.search(ADA, limit=5, offset=offset) for offset in (0, 5, 10, 15)]
    assert [len(page) for page in pages] == [5, 5, 3, 0]
    assert keys(item for page in pages for item in page) == [f"{number:02}" for number in range(13)]
    even = [store.search(ADA, filter={"even": True}, limit=4, offset=offset) for offset in (0, 4)]
    assert keys(item for page in even for item in page) == ["00", "02", "04", "06", "08", "10", "12"]


def test_reads_and_later_writes_do_not_move_pages(ours: RecollectStore, clock: Clock) -> None:
    """Items with a term are refreshed by each page that is read, and each item is on one page all the same."""
    for number in range(12):
        ours.put(ADA, f"{number:02}", {"number": number}, ttl=60)
        clock.pass_days(0.001)
    pages = []
    for offset in (0, 5, 10):
        pages += keys(ours.search(ADA, limit=5, offset=offset))
        clock.pass_days(0.001)
        ours.get(ADA, f"{11 - offset:02}")
        ours.put(ADA, "03", {"number": offset}, ttl=60)
        ours.put(ADA, f"new {offset}", {"number": offset})
    assert pages[:12] == [f"{number:02}" for number in range(12)]


@pytest.mark.parametrize(("name", "number"), [("limit", -1), ("offset", -1), ("limit", 2.5), ("offset", True)])
def test_a_page_of_no_size_is_refused(ours: RecollectStore, name: str, number: Any) -> None:
    """Neither a negative number nor half an item cuts something off in silence."""
    ours.put(ADA, "tea", {"drink": "tea"})
    for ask in (ours.search, ours.list_namespaces):
        arguments = (ADA,) if ask == ours.search else ()
        with pytest.raises(InvalidInput, match=f"Invalid {name}: Must be a whole number from 0"):
            ask(*arguments, **{name: number})
    assert ours.search(ADA, limit=0) == []


def test_namespaces_are_listed(store: BaseStore) -> None:
    """Namespaces are listed in order, by beginning, end, `*` and depth, a page at a time."""
    for place in PLACES:
        store.put(place, "key", {"text": "x"})
        store.put(place, "other", {"text": "y"})
    for asked, found in LISTED:
        assert store.list_namespaces(**asked) == found, asked


def test_a_batch_answers_in_order(store: BaseStore) -> None:
    """Results stand in the order of the operations; reads see what was there before the batch wrote."""
    store.put(ADA, "old", {"text": "old"})
    results = store.batch(
        [
            PutOp(ADA, "new", {"text": "new"}),
            GetOp(ADA, "new"),
            SearchOp(ADA),
            GetOp(ADA, "old"),
            PutOp(ADA, "old", None),
            ListNamespacesOp((MatchCondition("prefix", ("users",)),)),
            GetOp(ADA, "old"),
        ]
    )
    assert [type(result).__name__ for result in results] == [
        "NoneType",
        "NoneType",
        "list",
        "Item",
        "NoneType",
        "list",
        "Item",
    ]
    assert (keys(results[2]), results[5]) == (["old"], [ADA])  # type: ignore[arg-type]
    assert keys(store.search(ADA)) == ["new"]


def test_the_last_write_of_a_batch_counts(store: BaseStore) -> None:
    """Of several writes to one item in a batch only the last takes effect."""
    store.batch(
        [PutOp(ADA, "a", {"n": 1}), PutOp(ADA, "b", {"n": 1}), PutOp(ADA, "a", {"n": 2}), PutOp(ADA, "b", None)]
    )
    (item,) = store.search(ADA)
    assert (item.key, item.value) == ("a", {"n": 2})


def test_everything_can_be_awaited(store: BaseStore) -> None:
    """Each operation has its asynchronous form, and many at once do not disturb each other."""

    async def run() -> None:
        await asyncio.gather(*(store.aput(ADA, str(number), {"n": number}) for number in range(8)))
        got = await asyncio.gather(*(store.aget(ADA, str(number)) for number in range(8)))
        assert [item.value["n"] for item in got if item is not None] == list(range(8))
        assert keys(await store.asearch(ADA, filter={"n": {"$gte": 6}})) == ["6", "7"]
        await store.adelete(ADA, "7")
        assert await store.aget(ADA, "7") is None
        assert await store.alist_namespaces() == [ADA]
        assert await store.abatch([GetOp(ADA, "7"), PutOp(ADA, "9", {"n": 9})]) == [None, None]

    asyncio.run(run())
    assert len(store.search(ADA)) == 8


def test_an_unknown_operator_is_refused(store: BaseStore) -> None:
    """An operator that there is none of is an error that names it."""
    store.put(ADA, "a", {"n": 1})
    with pytest.raises(ValueError, match=r"\$near"):
        store.search(ADA, filter={"n": {"$near": 1}})


def test_a_search_by_words_ranks(ours: RecollectStore, memory: Connection) -> None:
    """A query finds items by meaning, best first with a score, in its namespace only, and nothing irrelevant."""
    ours.put(ADA, "drink", {"text": "Ada drinks green tea in the morning."})
    ours.put(ADA, "travel", {"text": "Ada takes the night train to Vienna."})
    ours.put(BOB, "drink", {"text": "Bob drinks green tea too."})
    first, *others = ours.search(ADA, query="what does she drink?")
    assert (first.key, first.namespace) == ("drink", ADA)
    assert first.score is not None
    assert all(one.namespace == ADA and one.score is not None and one.score <= first.score for one in others)
    assert ours.search(ADA, query="quarterly revenue of the shipyard") == []
    nearest = RecollectStore(memory, min_score=0.0).search(ADA, query="quarterly revenue of the shipyard")
    assert keys(nearest) == ["drink", "travel"]
    assert keys(ours.search(("users",), query="who drinks green tea?", limit=1, offset=1)) == ["drink"]


def test_a_query_and_a_filter_are_taken_together(ours: RecollectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many items answer a query, those that pass the filter are found among them."""
    monkeypatch.setattr("recollect.frameworks.langgraph.MAX_LIMIT", 3)
    for number in range(8):
        ours.put(ADA, str(number), {"text": f"Ada drinks tea number {number}.", "last": number == 0})
    assert keys(ours.search(ADA, query="what tea does Ada drink?", filter={"last": True})) == ["0"]
    assert len(ours.search(ADA, query="what tea does Ada drink?", limit=8)) == 8


def test_an_item_can_be_kept_out_of_searches(ours: RecollectStore) -> None:
    """With `index=False` no query finds an item; it is got, listed and filtered as before, until it is put again."""
    ours.put(ADA, "drink", {"text": "Ada drinks green tea."}, index=False)
    assert ours.search(ADA, query="green tea") == []
    assert keys(ours.search(ADA, filter={"text": "Ada drinks green tea."})) == ["drink"]
    ours.put(ADA, "drink", {"text": "Ada drinks green tea."})
    assert keys(ours.search(ADA, query="green tea")) == ["drink"]


@pytest.mark.parametrize(
    ("read", "refreshed"),
    [
        (lambda store: store.get(ADA, "a"), True),
        (lambda store: store.search(ADA), True),
        (lambda store: store.get(ADA, "a", refresh_ttl=False), False),
        (lambda store: store.search(ADA, refresh_ttl=False), False),
        (lambda store: store.put(ADA, "a", {"n": 2}, ttl=60), True),
        (lambda store: store.list_namespaces(), False),
    ],
    ids=["get", "search", "get unrefreshed", "search unrefreshed", "put", "namespaces"],
)
def test_a_term_begins_again_when_read(
    ours: RecollectStore, clock: Clock, read: Callable[[BaseStore], object], refreshed: bool
) -> None:
    """An item goes its term after it was last read or written, unless the read says that it is not to count."""
    ours.put(ADA, "a", {"n": 1}, ttl=60)
    before = ours.get(ADA, "a", refresh_ttl=False)
    clock.now += timedelta(minutes=40)
    read(ours)
    clock.now += timedelta(minutes=40)
    item = ours.get(ADA, "a", refresh_ttl=False)
    assert (item is not None) is refreshed
    assert keys(ours.search((), refresh_ttl=False)) == (["a"] if refreshed else [])
    assert ours.list_namespaces() == ([ADA] if refreshed else [])
    assert item is None or before is None or item.value == {"n": 2} or item.updated_at == before.updated_at


def test_a_term_is_given_by_default_and_taken_away(memory: Connection, clock: Clock) -> None:
    """The store's default is the term of what names none; a put with None, or without a default, has no end."""
    store = RecollectStore(memory, ttl={"default_ttl": 30, "refresh_on_read": False})
    store.put(ADA, "default", {"n": 1})
    store.put(ADA, "endless", {"n": 1}, ttl=None)
    store.put(ADA, "renewed", {"n": 1}, ttl=10)
    RecollectStore(memory).put(ADA, "renewed", {"n": 2})
    clock.now += timedelta(minutes=20)
    assert keys(store.search(ADA)) == ["default", "endless", "renewed"]
    clock.now += timedelta(minutes=20)
    assert keys(store.search(ADA)) == ["endless", "renewed"]


def test_an_expired_item_can_be_put_again(ours: RecollectStore, clock: Clock, app: App) -> None:
    """What has expired is gone, and its key is free."""
    ours.put(ADA, "a", {"n": 1}, ttl=1)
    clock.now += timedelta(minutes=2)
    assert ours.get(ADA, "a") is None
    ours.put(ADA, "a", {"n": 2})
    assert [item.value for item in ours.search(ADA)] == [{"n": 2}]
    assert ill(app) == []


@pytest.mark.parametrize("value", [{"n": float("nan")}, {"n": object()}, {"n": {1, 2}}])
def test_what_json_cannot_hold_is_refused(ours: RecollectStore, value: dict[str, Any]) -> None:
    """A value that would come back as another is refused, and nothing of its batch is written."""
    with pytest.raises(InvalidInput, match=r"^Invalid value: Must be a mapping of what JSON can hold"):
        ours.batch([PutOp(ADA, "good", {"n": 1}), PutOp(ADA, "a", value)])
    assert ours.search(()) == []


def test_the_gate_reads_items(ours: RecollectStore, app: App) -> None:
    """A secret in a value is refused and journalled; what a graph puts is recalled by every other door."""
    with pytest.raises(SecretFound):
        ours.put(ADA, "a", {"note": f"the token is {token()}"})
    ours.put(ADA, "drink", {"text": "Ada drinks green tea."})
    (hit,) = do(app, "recall", query="what does Ada drink?").hits
    assert hit.memory.key == "langgraph/users/ada/drink"
    assert [line.action for line in do(app, "history", id=str(hit.memory.id))] == ["insert"]


def test_stores_share_nothing(memory: Connection, app: App) -> None:
    """Stores of two names, and memories that are no items, do not see each other."""
    add(app, "The keel is iron.", key="keel")
    one, other = RecollectStore(memory, name="one"), RecollectStore(memory, name="other/one")
    one.put(ADA, "a", {"n": 1})
    other.put(ADA, "a", {"n": 2})
    assert [item.value for item in one.search(())] == [{"n": 1}]
    one.delete(ADA, "a")
    assert other.list_namespaces() == [ADA]


def test_a_text_that_was_written_by_another_door_is_read(ours: RecollectStore, app: App) -> None:
    """What somebody made of an item on the page is its `text`, and no search fails on it."""
    ours.put(ADA, "a", {"n": 1})
    (one,) = do(app, "list_memories").memories
    do(app, "update_memory", id=str(one.id), content="Ada drinks tea.")
    assert [item.value for item in ours.search(ADA)] == [{"text": "Ada drinks tea."}]
