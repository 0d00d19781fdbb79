"""A daemon over a deployment: clients use it as they use a local store's, and nobody sees its password."""

from __future__ import annotations

import subprocess

import psutil
import pytest

from command_line import EXECUTABLE
from recollect import Settings


@pytest.fixture
def environment_of_deployment(deployed: Settings, environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of a client of a deployment."""
    url = deployed.database_url.replace("postgres@", "postgres:hush-hush@")
    more = {"RECOLLECT_DATABASE_URL": url, "RECOLLECT_CHROMA_URL": deployed.chroma_url, "RECOLLECT_DAEMON": "1"}
    return environment | more


def test_the_command_line_works_on_servers(environment_of_deployment: dict[str, str], deployed: Settings) -> None:
    """What one client remembers another recalls; the password stands in no process's arguments and in no answer."""

    def run(*words: str) -> str:
        command = [EXECUTABLE, *words]
        return subprocess.run(command, env=environment_of_deployment, capture_output=True, text=True, check=True).stdout

    try:
        run("remember", "The quokka of the harbour deploys on Fridays.")
        assert "quokka" in run("recall", "which marsupial releases before the weekend?")
        said = run("doctor", "--json") + run("status")
        arguments = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
        assert any("recollect.doors.daemon" in one for one in arguments)
        assert not [one for one in (*arguments, said) if "hush-hush" in one]
    finally:
        run("stop")
