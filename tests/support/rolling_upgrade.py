"""A deployment of the version before is upgraded replica by replica while clients write: nothing acknowledged is lost.

No version has been released yet, so the version before is a pinned commit of this repository. The version after is
this tree with one more, made-up revision of the tables, so that the upgrade always has tables to change.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
import pytest

from places import DEFAULT_MODEL, ROOT
from recollect.store.sql.migrations import HEAD
from replica_faults import Deployment, Load, check_answers
from team_process import EXECUTABLE

BEFORE: Final = "c538056f"
"""The commit that stands for the version before; with the first release it becomes that tag."""

_NEXT: Final = str(int(HEAD) + 1)
_REVISION: Final = f'''"""A made-up revision, which adds what replicas of the version before can do without."""

import sqlalchemy
from alembic import op

revision = "{_NEXT}"
down_revision = "{HEAD}"


def upgrade() -> None:
    op.add_column("memory", sqlalchemy.Column("of_the_next_version", sqlalchemy.Text))
    op.create_index("ix_of_the_next_version", "memory", ["of_the_next_version"])
    op.execute("UPDATE memory SET of_the_next_version = title")
    op.create_table("of_the_next_version", sqlalchemy.Column("id", sqlalchemy.BigInteger, primary_key=True))
'''


@dataclass(frozen=True)
class Upgraded:
    """How many writes were acknowledged in the upgrade, by version, and which requests were tried again and why."""

    before: int
    mixed: int
    after: int
    tried_again: dict[str, int]


def lay_previous(folder: Path) -> Path:
    """Lay the version before into a folder and return its `src`; skip where git does not have that commit."""
    folder.mkdir(parents=True)
    paths = ["src", f"models/{DEFAULT_MODEL.name}"]
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", BEFORE, *paths], capture_output=True)
    if packed.returncode:
        pytest.skip(f"git does not have the commit {BEFORE}")
    subprocess.run(["tar", "--extract", "--directory", str(folder)], input=packed.stdout, check=True)
    return folder / "src"


def lay_next(folder: Path) -> Path:
    """Lay this tree with the made-up revision into a folder and return its `src`."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "models").symlink_to(ROOT / "models")
    migrations = folder / "src/recollect/store/sql/migrations"
    text = (migrations / "__init__.py").read_text(encoding="utf-8")
    text, found = re.subn(rf'^HEAD = "{HEAD}"$', f'HEAD = "{_NEXT}"', text, flags=re.MULTILINE)
    assert found == 1
    (migrations / "__init__.py").write_text(text, encoding="utf-8")
    (migrations / "versions/made_up.py").write_text(_REVISION, encoding="utf-8")
    return folder / "src"


def upgrade_replicas(deployment: Deployment, load: Load, source: Path, threads: int = 4) -> Upgraded:
    """Stop and start one replica after the other with the code of `source` under load; return what happened.

    Each replica serves before the next one stops. Fails where a request was broken off or refused after it was begun,
    or anything acknowledged is absent, twice there or altered.
    """
    with load.running(threads):
        load.wait(20)
        assert _schema(deployment) == HEAD
        before = len(load.acknowledged)
        for at, replica in enumerate(deployment.replicas):
            assert replica.stop() == 0
            replica.set(PYTHONPATH=str(source))
            replica.start()
            assert _schema(deployment) == _NEXT
            for number in range(len(deployment.replicas)):  # those of the version before go on beside it
                load.wait(5, number)
            load.recall()
            if at == 0:
                mixed = len(load.acknowledged)
    done = Upgraded(before, mixed - before, len(load.acknowledged) - mixed, dict(load.refused))
    unheard = ("ConnectError", "RemoteProtocol")  # a replica that is stopped, or a connection that it closed unused
    assert all(why.startswith(unheard) for why in load.refused), load.refused
    check_answers(load)
    _check_store(deployment, source)
    return done


def _schema(deployment: Deployment) -> str:
    with psycopg.connect(deployment.postgres.url) as connection:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert row is not None
    return str(row[0])


def _check_store(deployment: Deployment, source: Path) -> None:
    """Let the doctor of the new version read everything, whose columns hold what the upgrade wrote."""
    servers = {"RECOLLECT_DATABASE_URL": deployment.postgres.url, "RECOLLECT_CHROMA_URL": deployment.chroma.url}
    servers |= {"RECOLLECT_HOME": str(source.with_name("home")), "PYTHONPATH": str(source)}
    command = [EXECUTABLE, "--in-process", "doctor", "--deep", "--json"]
    done = subprocess.run(command, env=os.environ | servers, capture_output=True, text=True, check=False)
    wrong = [one for one in json.loads(done.stdout) if not one["well"]]
    assert not wrong, wrong
    used = subprocess.run(
        [sys.executable, "-c", "import recollect; print(recollect.__file__)"],
        env=os.environ | servers,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(used.stdout.strip()).is_relative_to(source)
