"""Random calls of a team by its tokens, over REST and MCP: nothing shows or changes that its roles do not allow."""

from __future__ import annotations

import pytest

from clock import Clock
from random_team_calls import judged_team
from recollect import Settings
from stores import open_app


@pytest.fixture(params=["folder", "servers"])
def place(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Return the settings of a store in a folder, and of one on PostgreSQL and a Chroma server."""
    chosen: Settings = settings if request.param == "folder" else request.getfixturevalue("deployed")
    return chosen.model_copy(update={"requests_per_minute": 0})


@pytest.mark.parametrize("seed", [1])
def test_nobody_sees_or_changes_what_their_role_does_not_allow(place: Settings, seed: int) -> None:
    """An independent model of roles, projects and tokens agrees with every answer and every changed row."""
    time = Clock()
    with open_app(place, clock=time) as app:
        model, deployment = judged_team(app, place, time, seed, 160)
    assert model.breaches == []
    assert deployment.odd == []
    assert min(model.changes, model.names, model.marks, model.counts) >= 2


@pytest.mark.full_cases("reads")
@pytest.mark.parametrize("part", ["reads", "writes"])
def test_the_model_notices_a_right_too_many(settings: Settings, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Where the server forgets who may read or write what, the model says so as soon as a call shows it."""
    caller = "recollect.auth.principal.Caller"

    def careless(**fields: object) -> object:
        from recollect import Caller

        return Caller(**{name: value for name, value in fields.items() if name != part})

    monkeypatch.setattr(caller, careless)
    time = Clock()
    quiet = settings.model_copy(update={"requests_per_minute": 0})
    with open_app(quiet, clock=time) as app:
        model, deployment = judged_team(app, quiet, time, 1, 1_000)
    assert model.breaches or deployment.odd
