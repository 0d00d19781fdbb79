"""A deployment in which Ada has written everywhere, so that her leaving has something to do in each place."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from recollect import App, Caller
from recollect.auth.administration import administer, operator_principal
from recollect.auth.principal import Principal
from recollect.doors.handlers import perform
from recollect.store.sql.tables import metadata

OPERATOR = operator_principal("ops")
ADA = Caller(user="ada", team="crew", project="engine")
BOB = Caller(user="bob", team="crew", project="engine")
KEYS = "Ada keeps the harbour keys in the red drawer of the office."
SALARY = "My salary talk with the captain about the lighthouse is in April."
BILLING = "The billing service is deployed on Fridays by the quokka of the harbour."
GRUDGE = "I think that the captain is wrong about the mast and the northern pine."
MAST = "The mast is made of pine from the northern forest beyond the river."
PROMPT = "Please remember that we always paint the hull blue because of the algae."
NOTED = "Run the slow tests of the rudder now, and tell me what the compass says."
HERS = (KEYS, SALARY, BILLING, GRUDGE, PROMPT)


class Leaving:
    """A store in which an operator administers, and Ada, Bob and an admin work in one team."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.administer("add_user", user="root", admin=True)
        self.administer("add_team", team="crew")
        self.tokens = {user: self.administer("add_user", user=user, team="crew").token for user in ("ada", "bob")}

    def administer(self, name: str, who: Principal = OPERATOR, **fields: Any) -> Any:
        """Run an operation of administration, as the operator unless somebody else is named."""
        return administer(self.app, name, fields, who)

    def do(self, name: str, caller: Caller = ADA, **fields: Any) -> Any:
        """Run an operation."""
        return perform(self.app, name, fields, caller)

    def fill(self) -> dict[str, int]:
        """Let Ada write in every scope and level, and Bob beside her; return the ids by the texts."""
        wanted: tuple[tuple[str, Caller, dict[str, Any]], ...] = (
            (KEYS, ADA, {"scope": "personal", "key": "keys", "tags": ["office"], "speaker": "Ada Lovelace"}),
            (SALARY, ADA, {"scope": "personal", "sensitivity": "private"}),
            (BILLING, ADA, {}),
            (GRUDGE, ADA, {"scope": "team", "sensitivity": "private"}),
            (MAST, BOB, {}),
        )
        ids = {text: int(self.do("remember", who, content=text, **more).id) for text, who, more in wanted}
        self.do("store_fact", subject="mast", predicate="is", object="pine")
        self.do("store_fact", subject="keys", predicate="lie in", object="drawer", scope="personal")
        self.do("session_start", session_id="s1", agent="claude-code", source="startup")
        for prompt in (PROMPT, NOTED):
            self.do("prompt_submit", session_id="s1", prompt=prompt)
        self.app.vectors.sync()
        return ids

    def delete(self, **choice: Any) -> Any:
        """Delete Ada."""
        return self.administer("delete_user", user="ada", **choice)

    def export(self, user: str, who: Principal = OPERATOR) -> list[dict[str, Any]]:
        """Return every line of the export of a person."""
        lines: list[dict[str, Any]] = []
        after = "account:0"
        while after:
            page = self.administer("export_user", who, user=user, after=after)
            lines += page.lines
            after = page.after
        return lines

    def written(self, *but: str) -> str:
        """Return every row of every table as text, without some tables."""
        with self.app.places.database.reading() as connection:
            tables = [table for table in metadata.sorted_tables if table.name not in but]
            return "\n".join(str(row) for table in tables for row in connection.execute(select(table)))

    def listed(self, caller: Caller, **fields: Any) -> dict[str, str]:
        """Return the namespaces of what somebody sees, by the texts."""
        found = self.do("list_memories", caller, limit=50, allow_private=True, allow_secret=True, **fields)
        return {memory.content: memory.namespace for memory in found.memories}

    def ill(self) -> list[str]:
        """Return what a deep look of the doctor finds."""
        self.app.vectors.sync()
        return [f"{check.name}: {check.seen}" for check in self.app.checks(deep=True) if not check.well]
