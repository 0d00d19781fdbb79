"""Replacement: what a person says is gone, and which memories are about it."""

from __future__ import annotations

import pytest

from recollect.sessions.observations.statements import is_about, replaced

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


@pytest.mark.parametrize(
    ("said", "memory", "hidden"),
    [
        ("8787 is dead from today", "RStudio Server always listens on port 8787.", False),
        ("port 8787 is dead from today", "RStudio Server always listens on port 8787.", False),
        ("8787 is dead from today", "The firewall must let 8787 through.", False),
        ("db-test is gone", "The pipeline took two days because of a lock in db-test.", False),
        ("db-test is gone", "Always start db-test before the suite.", True),
        ("db-test is gone", "db-test listens on port 5433.", True),
        ("we no longer support Python 3.10", "CI runs on Python 3.10 and 3.12.", True),
        ("The weather data comes no longer from Open-Meteo", "Weather data comes from Open-Meteo.", True),
        ("Forecasts are no longer from Open-Meteo since June", "The tide tables come from Open-Meteo.", False),
        ("The weather data comes no longer from Open-Meteo", "Open-Meteo allows 10,000 weather calls a day.", False),
    ],
)
def test_only_what_says_to_use_it_is_replaced(said: str, memory: str, hidden: bool) -> None:
    """A memory that names the thing beside its own subject stays, and so does one with another subject."""
    assert is_about(memory, replaced(said)) is hidden
