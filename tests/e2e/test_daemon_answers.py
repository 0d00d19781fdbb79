"""Answers through the daemon: each operation gives the same kind of answer as in this process."""

from __future__ import annotations

from daemon_place import Place
from every_operation import REQUESTS, check_schema
from recollect.domain.verbs import BY_NAME


def test_every_operation_answers_through_the_daemon(place: Place) -> None:
    """A client gets the answer of every operation back as its type, and what is shown of it meets the schema."""
    link = place.link()
    for name, fields in REQUESTS:
        check_schema(name, BY_NAME[name].answer, link.perform(name, **fields))
