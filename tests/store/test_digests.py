"""Vectors and the digests beside them: a deep look finds every wrong one, and embeds only what these do not prove."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import create_engine, text

import recollect
from callers import ADA
from recollect import Draft, Settings
from recollect.domain.requests import Inspect
from recollect.domain.results import Check
from recollect.memory.reports import doctor
from recollect.store import integrity
from stores import open_app

LONG = " ".join(f"The pump of hall {number} is greased on day {number * 3}." for number in range(60))
TEXTS = ("We deploy on Fridays", "The mascot is a quokka", "Lunch is at noon", LONG)
SWAPPED = (
    "UPDATE vector SET memory_id = 99 WHERE memory_id = 1",
    "UPDATE vector SET memory_id = 1 WHERE memory_id = 2",
    "UPDATE vector SET memory_id = 2 WHERE memory_id = 99",
)
HARM = {
    "vector changed": (["UPDATE vector SET embedding = (SELECT embedding FROM vector WHERE memory_id = 3) "
                        "WHERE memory_id = 1"], "memory 1 are"),
    "ids swapped": (SWAPPED, "memory 1; 2 are"),
    "text changed": (["UPDATE memory SET content = 'The door is red' WHERE id = 1"], "memory 1 are"),
    "text and its hash changed": (
        ["UPDATE memory SET content = 'The door is red', content_hash = 'x' WHERE id = 1"], "memory 1 are"
    ),
    "text longer": (["UPDATE memory SET content = content || ' and on Mondays' WHERE id = 1"], "memory 1 are"),
    "stretch lost": (["DELETE FROM vector WHERE memory_id = 4 AND ordinal = 1"], "memory 4 are"),
    "stretches swapped": (
        [f"UPDATE vector SET ordinal = {new} WHERE memory_id = 4 AND ordinal = {old}" for old, new in
         ((0, 99), (1, 0), (99, 1))], "memory 4 are"
    ),
}  # fmt: skip


@pytest.fixture(params=["embedded", pytest.param("server", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Return the settings of a store over SQLite and embedded Chroma, or over PostgreSQL and a Chroma server."""
    return request.getfixturevalue("deployed") if request.param == "server" else settings


def by_hand(settings: Settings, statements: Sequence[str]) -> None:
    """Change the database behind Recollect's back, where no reference is looked at."""
    url = settings.database_url.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(url or f"sqlite:///{settings.database}")
    with engine.begin() as connection:
        if url:
            connection.execute(text("SET session_replication_role = replica"))
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def embeddings(app: Any) -> Check:
    """Return what a deep look says of the vectors and their texts."""
    return next(one for one in doctor(app, Inspect(deep=True), ADA) if one.name == "embeddings")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that a look embeds, as it goes on."""
    taken: list[str] = []

    def noting(embed: Callable[[str], Any]) -> Callable[[str], Any]:
        return lambda content: (taken.append(content), embed(content))[1]

    examine = integrity.examine
    monkeypatch.setattr(
        "recollect.wiring.examine", lambda *given, embed, **more: examine(*given, embed=noting(embed), **more)
    )
    return taken


@pytest.mark.full_cases(
    "embedded-text longer",
    "embedded-stretch lost",
    "embedded-stretches swapped",
    *(f"server-{name}" for name in HARM if name != "vector changed"),
)
@pytest.mark.parametrize(("statements", "named"), HARM.values(), ids=HARM)
def test_a_deep_look_finds_it(store: Settings, statements: Sequence[str], named: str) -> None:
    """A vector that was changed, exchanged or lost, and a text that was changed, are named, by any number of looks."""
    with open_app(store) as app:
        for content in TEXTS:
            recollect.remember(app, Draft(content=content), ADA)
        app.vectors.sync()
        assert embeddings(app).well
        by_hand(store, statements)
        for _ in range(2):
            found = embeddings(app)
            assert (found.well, named in found.seen) == (False, True), found.seen


def test_only_what_no_digest_proves_is_embedded(
    store: Settings, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what has its digests some are drawn; what an older version wrote is embedded once, and then has them."""
    monkeypatch.setattr(integrity, "_DRAWN", 1)
    monkeypatch.setattr(integrity, "_AT_ONCE", 3)
    with open_app(store) as app:
        for content in TEXTS:
            recollect.remember(app, Draft(content=content), ADA)
        app.vectors.sync()
        for statements, expected in (((), 1), (["UPDATE vector SET digest = NULL"], len(TEXTS)), ((), 1)):
            by_hand(store, statements)
            read.clear()
            assert embeddings(app).well
            assert len(read) == expected
