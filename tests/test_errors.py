"""Errors: the tree in the docstring is the tree in the code, and each error knows how it ends."""

from __future__ import annotations

import inspect
import re

import pytest

from recollect import errors
from recollect.errors import InvalidInput, RecollectError, SecretFound

CLASSES = {
    name: one
    for name, one in vars(errors).items()
    if inspect.isclass(one) and issubclass(one, RecollectError) and one.__module__ == errors.__name__
}
DRAWN = re.compile(r"^(?:[├└]── )?(\w+)(?: \((\w+)\))?\s+(\d{3})\s+exit (\d+)\s+\S", re.MULTILINE)


def test_the_docstring_draws_the_tree() -> None:
    """The module's docstring lists exactly the errors there are, with their status and exit code."""
    drawn = {name: (int(status), int(code)) for name, _, status, code in DRAWN.findall(errors.__doc__ or "")}
    assert drawn == {name: (one.status, one.exit_code) for name, one in CLASSES.items()}


def test_the_docstring_names_the_builtins() -> None:
    """Where the docstring names a builtin, the error can be caught as that builtin."""
    named = {name: builtin for name, builtin, *_ in DRAWN.findall(errors.__doc__ or "") if builtin}
    assert named
    for name, builtin in named.items():
        assert builtin in [base.__name__ for base in CLASSES[name].__mro__]


def test_exit_codes_differ() -> None:
    """No two errors end with the same exit code, and none with success."""
    codes = [one.exit_code for one in CLASSES.values()]
    assert len(set(codes)) == len(codes)
    assert 0 not in codes


@pytest.mark.parametrize("error", CLASSES.values(), ids=CLASSES)
def test_every_error_is_ours(error: type[RecollectError]) -> None:
    """One `except RecollectError` catches whatever a user may see, and an HTTP door finds an error status."""
    assert issubclass(error, RecollectError)
    assert 400 <= error.status < 600
    assert error.__doc__


def test_invalid_input_names_the_field() -> None:
    """An invalid field is named for machines, the sentence is for people."""
    error = InvalidInput("limit", "Invalid limit: Must be a whole number")
    assert (error.field, str(error)) == ("limit", "Invalid limit: Must be a whole number")


def test_a_found_secret_is_never_repeated() -> None:
    """The refusal names the field and the kinds, opens as the seed says, and says what to do instead."""
    error = SecretFound("content", ("GitHub Token", "Private Key"))
    assert str(error).startswith("Secret detection: Blocks storage of API keys, tokens, and passwords")
    assert "`content`: GitHub Token, Private Key" in str(error)
    assert "Nothing was stored" in str(error)
    assert (error.field, error.kinds) == ("content", ("GitHub Token", "Private Key"))
