"""What broke, said plainly: a sentence for the client and a place for the log, and in neither of them a value."""

from __future__ import annotations

import logging

import pytest
import sqlalchemy

from recollect.doors.http.messages import to_recollect_error
from recollect.errors import StoreUnusable

MARK = "vermilionite"


def test_a_database_error_tells_no_value(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL says which value was there twice; neither the answer nor the log repeats it."""
    engine = sqlalchemy.create_engine(postgres_url, hide_parameters=True)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE ledger (name TEXT UNIQUE)"))
    twice = sqlalchemy.text("INSERT INTO ledger VALUES (:name), (:name)")
    with pytest.raises(sqlalchemy.exc.IntegrityError) as caught, engine.begin() as connection:
        connection.execute(twice, {"name": MARK})
    engine.dispose()
    assert MARK in str(caught.value.orig)
    with caplog.at_level(logging.INFO):
        told = to_recollect_error(caught.value)
    assert isinstance(told, StoreUnusable)
    assert str(told).startswith("The store cannot be used: duplicate key value")
    assert MARK not in str(told) + caplog.text
