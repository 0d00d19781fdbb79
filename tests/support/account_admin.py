"""What administers the accounts of one store in tests, without an app around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, cast

from sqlalchemy import select

from recollect.app import App
from recollect.auth.administration import administer
from recollect.auth.authenticate import authenticate
from recollect.auth.principal import Principal
from recollect.domain.accounts import IssuedToken
from recollect.store.sql.accounts import Accounts
from recollect.store.sql.limits import UsageLimits
from recollect.store.sql.tables import metadata


@dataclass
class Office:
    """What administration needs of an app, over one store."""

    store: Any
    clock: Callable[[], datetime]
    token_days_max: float = 0.0

    @cached_property
    def limits(self) -> UsageLimits:
        """Return the limits of the store, with none in the settings."""
        return UsageLimits(self.store.database, self.clock, {})

    @cached_property
    def accounts(self) -> Accounts:
        """Return the accounts of the store; like a process, this keeps what it has read of a token."""
        return Accounts(self.store.database, self.clock)

    @property
    def app(self) -> App:
        return cast(App, self)

    def do(self, name: str, who: Principal, **fields: Any) -> Any:
        return administer(self.app, name, fields, who)

    def enter(self, text: str) -> Principal:
        return authenticate(self.app, text)

    def join(self, root: Principal, user: str, **fields: Any) -> IssuedToken:
        """Add a user and accept the invitation."""
        invited = self.do("add_user", root, user=user, **fields)
        issued: IssuedToken = self.do("accept_invitation", self.enter(invited.token))
        return issued

    def written(self) -> str:
        """Return every row of every table as text."""
        with self.store.database.reading() as connection:
            return "\n".join(str(row) for one in metadata.sorted_tables for row in connection.execute(select(one)))
