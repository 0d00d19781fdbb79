"""Moving a store between the data folder and servers, as a person does it."""

from __future__ import annotations

import json
import subprocess

import pytest

from command_line import EXECUTABLE
from recollect import Settings

pytestmark = pytest.mark.slow


@pytest.mark.full
def test_a_store_goes_to_servers_and_comes_back(environment: dict[str, str], deployed: Settings) -> None:
    """What was in the folder is recalled from the servers, and what was stored there from another folder afterwards.

    A folder with a store of its own is not overwritten.
    """
    local = environment
    server = local | {"RECOLLECT_DATABASE_URL": deployed.database_url, "RECOLLECT_CHROMA_URL": deployed.chroma_url}

    def run(where: dict[str, str], *words: str) -> str:
        command = [EXECUTABLE, *words]
        return subprocess.run(command, env=where, capture_output=True, text=True, check=True).stdout

    run(local, "remember", "The quokka of the harbour deploys on Fridays.")
    moved = json.loads(run(server, "migrate-store", "--to", "server", "--json"))
    assert moved["rows"]["memory"] == 1
    assert deployed.database_url.rpartition("/")[2] in moved["to"]
    assert "quokka" in run(server, "recall", "which marsupial releases before the weekend?")
    run(server, "remember", "The heron keeps the keys of the release cupboard.")
    elsewhere = server | {"RECOLLECT_HOME": str(deployed.folder.with_name("back"))}
    run(elsewhere, "migrate-store", "--to", "folder")
    back = {name: value for name, value in elsewhere.items() if not name.endswith("_URL")}
    assert "heron" in run(back, "recall", "which bird guards the locker?")
    run(back, "doctor")
    done = subprocess.run(
        [EXECUTABLE, "migrate-store", "--to", "folder"], env=server, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "The target holds another store" in done.stderr) == (2, True)


def test_without_a_database_it_says_what_is_missing(environment: dict[str, str]) -> None:
    """The error names the setting."""
    command = [EXECUTABLE, "migrate-store", "--to", "server"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "RECOLLECT_DATABASE_URL" in done.stderr
