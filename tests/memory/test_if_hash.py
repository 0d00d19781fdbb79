"""Writes that expect a text: `if_hash` says which one a memory must still have, and nothing is written over another."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from callers import ADA
from recollect import App
from recollect.domain.origin import SaidBy
from recollect.domain.results import WriteStatus
from recollect.errors import Conflict, Forbidden, InvalidInput, NotFound
from run_operations import add, do, ill, listed, recalled, shown

OLD, NEW = "The port is 8080.", "The port is 9090."
HASH = hashlib.sha256(OLD.encode()).hexdigest()


@pytest.mark.parametrize("named", ["key", "id"])
def test_what_is_unchanged_is_written_over(app: App, named: str) -> None:
    """The memory gets the new text under its id, and the earlier text is kept as a hidden memory."""
    one = add(app, OLD, key="port")
    outcome = do(app, "remember", content=NEW, if_hash=HASH.upper(), **{named: str(one) if named == "id" else "port"})
    assert (outcome.status, outcome.id) == (WriteStatus.UPDATED, str(one))
    (kept,) = shown(app, one).merged_from
    assert (shown(app, one).content, shown(app, kept).content) == (NEW, OLD)
    assert (recalled(app, "which port?"), ill(app)) == ({one}, [])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"key": "port", "if_hash": "0" * 64}, "The memory with the key `port` has changed since it was read"),
        ({"key": "port", "if_hash": "none"}, "The memory with the key `port` exists already"),
        ({"key": "host", "if_hash": HASH}, "The memory with the key `host` is not there any more"),
    ],
)
def test_what_is_not_as_expected_is_a_conflict(app: App, fields: dict[str, str], said: str) -> None:
    """A changed text, an unexpected memory and a missing one are told apart, and nothing is written."""
    one = add(app, OLD, key="port")
    with pytest.raises(Conflict) as caught:
        do(app, "remember", content=NEW, **fields)
    assert str(caught.value).startswith(said)
    assert (shown(app, one).content, listed(app)) == (OLD, [one])


def test_a_new_key_is_a_memory_of_its_own(app: App) -> None:
    """With `none` a memory is made even where another one without a key says the same."""
    told = add(app, OLD)
    new = add(app, OLD, key="port", if_hash="none")
    assert (sorted(listed(app)), new != told) == ([told, new], True)
    do(app, "memory_forget", id=str(new))
    assert add(app, NEW, key="port", if_hash="none") == new


def test_a_retry_is_no_conflict(app: App) -> None:
    """The same request again gets its first answer, although the text is another by then."""
    one = add(app, OLD, key="port")
    asked: dict[str, Any] = {"content": NEW, "key": "port", "if_hash": HASH}
    first = do(app, "remember", request_id="again", **asked)
    assert do(app, "remember", request_id="again", **asked) == first
    assert len(shown(app, one).merged_from) == 1


def test_less_authority_takes_no_place(app: App) -> None:
    """What a person said is not written over by words of a page, which wait for no decision either."""
    one = add(app, OLD, key="port")
    with pytest.raises(Forbidden, match="which this does not replace"):
        do(app, "remember", ADA.saying(SaidBy.WEB), content=NEW, key="port", if_hash=HASH)
    assert listed(app) == [one]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"if_hash": HASH}, "Invalid if_hash: Needs the `key` or the `id`"),
        ({"if_hash": HASH, "supersedes": "1"}, "Invalid if_hash: Needs the `key` or the `id`"),
        ({"if_hash": "new", "key": "port"}, "Invalid if_hash: Must be a SHA-256 of 64 hexadecimal digits, or `none`"),
    ],
)
def test_a_wrong_expectation_is_one_sentence(app: App, fields: dict[str, str], said: str) -> None:
    """What expects no known memory, or is no hash, is refused before anything is looked up."""
    with pytest.raises(InvalidInput) as caught:
        do(app, "remember", content=NEW, **fields)
    assert str(caught.value).startswith(said)
    with pytest.raises(NotFound):
        do(app, "get_memory", id="1")
