"""What a load falls on: a PostgreSQL database and a Chroma server, filled with the memories of one team.

Each memory has a text of its own. Its vector is what the model makes of its first words, and seeded noise, so that a
store fills fast and real queries find near and far vectors in it. All of it is people's own.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import sqlalchemy
from rich.console import Console
from rich.progress import Progress
from sqlalchemy import text

import recollect
from chroma_process import ChromaProcess
from costs.generated import GeneratedEmbedder
from evaluation.others import import_own
from recollect import App, Caller, Draft, Settings
from recollect.auth.administration import administer, operator_principal
from recollect.auth.authenticate import authenticate
from recollect.domain.enums import Scope
from recollect.domain.search import ModelCard
from recollect.engines.embedder import Embedder, TokenEmbeddings
from recollect.engines.embedding import open_embedder
from team_process import TeamProcess as TeamProcess

TEAM: Final = "crew"
PROJECTS: Final = 20
USERS: Final = 64
SERVER: Final = os.environ.get("RECOLLECT_TEST_POSTGRES_URL", "postgresql://postgres@127.0.0.1:5432/test")
_BATCH: Final = 1_000
_NOISE: Final = 0.5  # length beside the vector of the first words: memories of the same words have a cosine of 0.8
_KEPT: Final = "load.json"


class NearEmbedder(GeneratedEmbedder):
    """Says that it is the `real` model, and reads only the first words of a document with it."""

    def __init__(self, real: Embedder) -> None:
        super().__init__()
        self._real = real
        self._heads: dict[str, Any] = {}
        self._dice = np.random.default_rng(23)

    @property
    def card(self) -> ModelCard:
        """Return the card of the real model."""
        return self._real.card

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[TokenEmbeddings]:
        """Return for each text a unit vector near that of its first words."""
        read = super().read(texts, kind)
        return [replace(one, vector=self._near(given)) for one, given in zip(read, texts, strict=True)]

    def _near(self, given: str) -> Any:
        head = given.partition(" of ")[0]
        if head not in self._heads:
            self._heads[head] = self._real.read([head], "document")[0].vector
        noise = self._dice.standard_normal(self.card.dimensions, dtype=np.float32)
        vector = self._heads[head] + noise * (_NOISE / np.linalg.norm(noise))
        return (vector / np.linalg.norm(vector)).astype(np.float32)


@dataclass(frozen=True)
class Stage:
    """Servers that run, and the settings of a store in them with so many memories."""

    settings: Settings
    chroma: ChromaProcess
    folder: Path
    memories: int
    filling_seconds: float


def user(number: int) -> str:
    """Return the name of a user."""
    return f"user{number % USERS:02}"


def project(number: int) -> str:
    """Return the name of a project."""
    return f"project{number % PROJECTS:02}"


@contextmanager
def staged(folder: Path, texts: Sequence[str], *, keep: bool) -> Iterator[Stage]:
    """Give a filled store: what an earlier run kept in `folder`, or a new one, which goes at the end unless kept."""
    file = folder / _KEPT
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    if known is not None and known["memories"] != len(texts):
        sys.exit(f"{folder} holds {known['memories']} memories: give --memories {known['memories']} or another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    name = known["database"] if known else f"recollect_load_{uuid.uuid4().hex}"
    url = sqlalchemy.make_url(SERVER).set(database=name).render_as_string(hide_password=False)
    chroma = ChromaProcess(folder / "chroma")
    settings = Settings(
        home=folder / "home",
        database_url=url,
        chroma_url=chroma.url,
        user=user(0),
        team=TEAM,
        project=project(0),
        requests_per_minute=0,
    )
    finished = False
    try:
        chroma.start()
        if known is None:
            _on_server(f"CREATE DATABASE {name}")
            known = {"database": name, "memories": len(texts), "seconds": fill(settings, texts)}
            _on_server("VACUUM ANALYZE", url)
            file.write_text(json.dumps(known), encoding="utf-8")
        finished = True
        yield Stage(settings, chroma, folder, len(texts), known["seconds"])
    finally:
        chroma.kill()
        if not (keep and finished):
            _on_server(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            file.unlink(missing_ok=True)


def fill(settings: Settings, texts: Sequence[str]) -> float:
    """Import a memory for each of `texts`; return the seconds: a tenth personal, a tenth of the team, else projects."""
    began = time.perf_counter()
    real = open_embedder(settings.model, settings.models_dir)
    parts: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for number, one in enumerate(texts):
        scope = {0: "personal", 1: "team"}.get(number % 10, "project")
        parts.setdefault((scope, 0 if scope == "team" else number // 10), []).append((number, one))
    whole: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for (scope, place), some in parts.items():
        whole.setdefault((scope, {"personal": user, "project": project}.get(scope, lambda _: "")(place)), []).extend(
            some
        )
    with (
        recollect.open_app(settings, embedder=NearEmbedder(real), background=False) as app,
        Progress(console=Console(stderr=True)) as progress,
    ):
        bar = progress.add_task(f"Importing {len(texts)} memories", total=len(texts))
        for (scope, name), some in whole.items():
            caller = Caller(
                user=name if scope == "personal" else user(0), team=TEAM, project=name if scope == "project" else "none"
            )
            for start in range(0, len(some), _BATCH):
                drafts = [
                    Draft(content=one, scope=Scope(scope), category=f"area-{number % 100}")
                    for number, one in some[start : start + _BATCH]
                ]
                import_own(app, drafts, caller, start)
                progress.advance(bar, len(drafts))
        app.vectors.sync()
    return round(time.perf_counter() - began, 1)


def tokens(app: App, clients: int) -> list[str]:
    """Return a token for each client, all of them writers of the team; those of an earlier run end."""
    root = operator_principal("load")
    if not administer(app, "list_teams", {}, root).teams:
        administer(app, "add_team", {"team": TEAM}, root)
    known = {one.user for one in administer(app, "list_users", {}, root).users}
    made = []
    for number in range(min(clients, USERS)):
        named = {"user": user(number)}
        if named["user"] in known:
            invited = administer(app, "invite_user", named, root)
        else:
            invited = administer(app, "add_user", named | {"team": TEAM, "role": "writer"}, root)
        made.append(administer(app, "accept_invitation", {}, authenticate(app, invited.token)).token)
    return [made[number % len(made)] for number in range(clients)]


def backends(settings: Settings) -> list[int]:
    """Return the process ids of PostgreSQL's connections to the store's database."""
    name = sqlalchemy.make_url(settings.database_url).database
    return _on_server(f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}'")


def _on_server(statement: str, url: str = SERVER) -> list[int]:
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        done = connection.execute(text(statement))
        return [int(row[0]) for row in done] if done.returns_rows else []
