"""Replacement: what a person says is gone, and which memories are about it."""

from __future__ import annotations

import pytest

from recollect.policy.observations.replacement import is_about, replaced

OLD = "docker-compose.yml says: only for tests: docker compose --profile test up -d db-test (port 5433)"


@pytest.mark.parametrize(
    "said",
    [
        "the database is in testcontainers now, so forget the compose db-test thing",
        "db-test is gone, tests bring their own database",
        "we no longer use db-test, tests bring their own database",
        "I replaced db-test with testcontainers",
        "so make proto and db-test are history",
    ],
)
def test_what_is_gone_is_known_again(said: str) -> None:
    """An older memory that has every name of what is gone is about it."""
    assert is_about(OLD, replaced(said))


@pytest.mark.parametrize(
    "said",
    [
        "forget it",
        "use db-test for the suite",
        "the thing is gone",
        "forget the compose redis-test thing",
        "never forget that db-test must run",
        "the error is gone",
    ],
)
def test_what_is_not_sure_replaces_nothing(said: str) -> None:
    """No words of replacement, no name, or another name: nothing is hidden."""
    assert not is_about(OLD, replaced(said))
