"""The rules that `domain` states of levels and of origins, held against every operation of the table that writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from clock import Clock
from every_operation import REQUESTS
from recollect import Settings
from recollect.domain.origin import AUTHORITY, MOST_TRUST, Authority, SaidBy
from recollect.domain.verbs import BY_NAME, VERBS
from recollect.doors.handlers import perform
from recollect.doors.serializers import public_json
from recollect.errors import RecollectError
from run_operations import do, rows
from stores import open_app

WRITES = [(name, fields) for name, fields in REQUESTS if BY_NAME[name].writes]
TEXTS = ("content", "prompt", "output", "object")
CLAIMS = {"trust": 1.0, "source": "tool", "confidence": 1.0, "importance": 1.0}
BY_A_PERSON = ("decide", "drop_source_rule", "withdraw", "undo_withdrawal")
"""What a person decides with authority of their own, whoever said what they decide about."""
OF_A_SESSION = {name for name, _ in WRITES if "session" in name} | {"prompt_submit", "tool_post", "correct_observation"}
"""The events of a session stamp what they bring themselves: a prompt is the person's."""


def texts_of(fields: dict[str, Any]) -> Iterator[str]:
    """Yield what a request says."""
    yield from (fields[name] for name in TEXTS if name in fields)
    for item in (*fields.get("items", ()), *fields.get("messages", ())):
        yield from texts_of(item.get("fields", item))


def test_every_operation_that_writes_is_tried() -> None:
    """A new operation of the table is tried here too, or there is no request of it."""
    assert {name for name, _ in WRITES} == {one.name for one in VERBS if one.writes}


def test_a_writer_learns_nothing_of_a_level_that_they_do_not_name(settings: Settings, tmp_path: Path) -> None:
    """Each write is answered as in a store without the secret memories that say the same under the same keys."""
    answered = []
    for hidden in (True, False):
        place, clock = settings.model_copy(update={"home": tmp_path / str(hidden)}), Clock()
        with open_app(place, clock=clock) as app:
            said = [(text, fields.get("key")) for _, fields in WRITES for text in texts_of(fields)]
            secret = [
                do(app, "remember", content=text, sensitivity="secret", **({"key": key} if key else {})).id
                for text, key in said
            ]
            do(app, "store_fact", subject="mast", predicate="is", object="pine", sensitivity="secret", memory_id=None)
            before = stored(place)
            if not hidden:
                for one in secret:
                    do(app, "forget", id=one, allow_secret=True)
                do(app, "forget_fact", id="1", allow_secret=True)
            answers = []
            for name, fields in WRITES:
                asked = {key: shifted(value, len(secret)) if key == "id" else value for key, value in fields.items()}
                try:
                    answer = public_json(BY_NAME[name].answer, perform(app, name, asked, ADA))
                except RecollectError as error:
                    answer = {"error": str(error)}
                answers.append((name, without_times(json.dumps(answer, default=str, sort_keys=True))))
            answered.append(answers)
            if hidden:
                assert stored(place) == before
    assert answered[0] == answered[1]


def shifted(number: str, by: int) -> str:
    """Return an id behind those of the secret memories, which both stores have had."""
    return number if number == "999999" else str(int(number) + by)


def stored(settings: Settings) -> list[Any]:
    """Return the rows of what is secret."""
    secret = "SELECT * FROM {} WHERE sensitivity LIKE 'secret%' ORDER BY id"
    return [rows(settings, secret.format(name)) for name in ("memory", "fact")]


def without_times(text: str) -> str:
    """Return an answer without what is drawn anew each time."""
    return re.sub(r'"token": "[^"]*"', "", text)


@pytest.mark.parametrize("said_by", [SaidBy.WEB, SaidBy.TOOL, SaidBy.MODEL, SaidBy.FILE])
def test_nobody_claims_authority_or_trust(settings: Settings, said_by: SaidBy) -> None:
    """What any write leaves has at most the authority and trust of its origin, and replaces nothing that was told."""
    caller = ADA.saying(said_by, "https://docs.example.com/a")
    with open_app(settings, clock=Clock()) as app:
        for text in dict.fromkeys(text for _, fields in WRITES for text in texts_of(fields)):
            do(app, "remember", content=f"{text} I told you so.", key=f"told-{hash(text)}")
        told = (
            "SELECT id, content, said_by, superseded_by, merged_into, deleted_at FROM memory WHERE said_by = 'person'"
        )
        before = rows(settings, told)
        for name, fields in WRITES:
            if name in BY_A_PERSON:
                continue
            asked = {key: shifted(value, len(before)) if key == "id" else value for key, value in fields.items()}
            known = BY_NAME[name].request.model_fields
            claimed = {key: value for key, value in CLAIMS.items() if key in known}
            perform_any(app, name, asked | claimed, caller)
            for memory_id, by, trust in rows(settings, "SELECT id, said_by, trust FROM memory"):
                assert trust <= MOST_TRUST[SaidBy(by)], (name, memory_id)
            assert [row for row in rows(settings, told) if row[0] <= len(before)] == before, name
            most = AUTHORITY.get(said_by, Authority.OUTSIDE)
            ours = f"SELECT said_by FROM memory WHERE id > {len(before)}"
            made = {AUTHORITY.get(SaidBy(by), Authority.OUTSIDE) for (by,) in rows(settings, ours)}
            assert name in OF_A_SESSION or all(one <= most for one in made), name


def perform_any(app: Any, name: str, fields: dict[str, Any], caller: Any) -> None:
    """Perform an operation that may be refused."""
    try:
        perform(app, name, fields, caller)
    except RecollectError:
        return
