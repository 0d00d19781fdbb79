"""The budget of a language model's tokens, in one row of the database, so that restarts and other processes count."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from recollect.engines.chat import Reserved, TokenUse
from recollect.store.sql import store_metadata
from recollect.store.sql.database import Database

_ROW: Final = "chat.tokens"
_LOCK: Final = "chat tokens"
"""A name in place of a namespace, so that one replica at a time counts; no namespace has this name."""


class SqlTokenLedger:
    """At most so many tokens in an hour and in a day of UTC."""

    def __init__(self, database: Database, clock: Callable[[], datetime], most_hour: int, most_day: int) -> None:
        self._database = database
        self._clock = clock
        self._most = (most_hour, most_day)

    def reserve(self, tokens: int) -> Reserved | None:
        """Take tokens out of the budget of this hour and day; None where either has fewer left."""
        with self._database.writing(_LOCK) as connection:
            known = self._current_row(connection)
            if known["hour_tokens"] + tokens > self._most[0] or known["day_tokens"] + tokens > self._most[1]:
                return None
            self._add_tokens(connection, known, tokens, hour=True, day=True, questions=1)
            return Reserved(tokens, known["hour"], known["day"])

    def settle(self, reserved: Reserved, used: int) -> None:
        """Put what was used in the place of what was reserved, in the hour and day that it was reserved in."""
        with self._database.writing(_LOCK) as connection:
            known = self._current_row(connection)
            same_hour, same_day = known["hour"] == reserved.hour, known["day"] == reserved.day
            self._add_tokens(connection, known, used - reserved.tokens, hour=same_hour, day=same_day)

    def used(self) -> TokenUse:
        """Return what was used so far, what is reserved included."""
        with self._database.reading() as connection:
            known = self._current_row(connection)
        return TokenUse(known["hour_tokens"], known["day_tokens"], *self._most, known["questions"], known["tokens"])

    def _current_row(self, connection: Connection) -> dict[str, Any]:
        """Return the row as it counts now. A clock that goes back opens no new hour."""
        now = self._clock()
        hour, day = f"{now:%Y-%m-%dT%H}", f"{now:%Y-%m-%d}"
        new = {"hour": hour, "day": day, "hour_tokens": 0, "day_tokens": 0, "questions": 0, "tokens": 0}
        known: dict[str, Any] = new | json.loads(store_metadata.read(connection).get(_ROW, "{}"))
        if known["hour"] < hour:
            known |= {"hour": hour, "hour_tokens": 0}
        if known["day"] < day:
            known |= {"day": day, "day_tokens": 0}
        return known

    def _add_tokens(
        self, connection: Connection, known: dict[str, Any], tokens: int, *, hour: bool, day: bool, questions: int = 0
    ) -> None:
        """Add tokens and questions to the row, and to its hour and day where asked for, and write it."""
        known["hour_tokens"] += tokens if hour else 0
        known["day_tokens"] += tokens if day else 0
        known["tokens"] += tokens
        known["questions"] += questions
        store_metadata.write(connection, {_ROW: json.dumps(known)})
