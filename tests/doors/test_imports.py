"""What is imported when: nothing heavy before it is needed, so that every start is quick."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

HEAVY = {
    "alembic",
    "anthropic",
    "chromadb",
    "detect_secrets",
    "numpy",
    "onnxruntime",
    "openai",
    "pydantic_ai",
    "sentence_transformers",
    "sqlalchemy",
    "sqlmodel",
    "tokenizers",
    "torch",
    "transformers",
}
LISTING = """
import anyio
from mcp import Client
from recollect.doors import mcp

def run(name, arguments): ...

async def listing():
    async with Client(mcp.build(lambda _: run), mode={mode!r}) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["memory"]

anyio.run(listing)
"""
COMMAND = """
from recollect.doors.cli.main import cli
cli({arguments!r}, standalone_mode=False)
"""


def loaded_by(program: str, environment: dict[str, str]) -> set[str]:
    """Run a program in a fresh interpreter and return the packages that are loaded when it ends."""
    tail = "\nimport json, sys\nsys.stderr.write('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program + tail], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


def test_the_package_alone_loads_nothing(environment: dict[str, str]) -> None:
    """`import recollect` loads none of the libraries, and none of its own rooms' dependencies."""
    assert not loaded_by("import recollect", environment) & (HEAVY | {"pydantic", "mcp", "typer", "rich", "anyio"})


def test_the_pipe_loads_only_the_standard_library(environment: dict[str, str]) -> None:
    """What stands between an MCP client and the daemon all day loads no library at all, nor does a thin command."""
    bare = loaded_by("", environment)
    loaded = loaded_by("import recollect.doors.entry, recollect.doors.pipe, recollect.doors.cli.thin", environment)
    assert loaded - bare - sys.stdlib_module_names == {"recollect"}
    assert not loaded & {"email", "http", "ssl"}


def test_a_hook_loads_a_handful_of_modules(environment: dict[str, str]) -> None:
    """A coding agent waits for each hook: what takes long in the standard library is not imported either."""
    program = "import sys\nfrom recollect.doors import entry, hook\n"
    loaded = loaded_by(program, environment) - loaded_by("", environment)
    assert loaded - sys.stdlib_module_names == {"recollect"}
    assert not loaded & {"asyncio", "dataclasses", "getpass", "http", "inspect", "pathlib", "socket", "ssl", "typing"}


def test_the_requests_load_only_pydantic(environment: dict[str, str]) -> None:
    """The nouns can be used without any of the heavy libraries."""
    loaded = loaded_by("from recollect import Draft, Query, Caller, Settings\nDraft(content='x')", environment)
    assert "pydantic" in loaded
    assert not loaded & HEAVY


def test_connecting_loads_nothing_heavy(environment: dict[str, str]) -> None:
    """A program that asks another process gets its methods without any of the heavy libraries."""
    loaded = loaded_by("import recollect\nrecollect.connect(daemon=True), recollect.connect_async()", environment)
    assert "pydantic" in loaded
    assert not loaded & (HEAVY | {"anyio", "mcp", "typer", "starlette"})


@pytest.mark.parametrize(
    "words", [["export"], ["import", "notes.md"], ["edit", "1"], ["backup", "verify", "f"], ["rmember"]]
)
def test_a_daemon_answers_without_the_command_line(environment: dict[str, str], words: list[str]) -> None:
    """What a running daemon answers loads no library here, whichever command it is, or if it is none; nor does Tab."""
    program = f"""
from recollect.doors.cli import dispatch, tab, thin
asked = []
thin.run = lambda words, *_, **__: asked.append(words) or 0
assert dispatch.run({words!r}) == 0 and asked == [{words!r}]
assert tab.line_from_shell("bash").words == []
"""
    served = environment | {"RECOLLECT_DAEMON": "true"}
    loaded = loaded_by(program, served) - loaded_by("", served)
    assert loaded - sys.stdlib_module_names == {"recollect"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_listing_the_tool_loads_nothing_heavy(environment: dict[str, str], mode: str) -> None:
    """The MCP door answers the handshake and `tools/list` before anything heavy is imported."""
    loaded = loaded_by(LISTING.format(mode=mode), environment)
    assert "mcp" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["recall", "--help"]])
def test_help_loads_nothing_heavy(environment: dict[str, str], arguments: list[str]) -> None:
    """Reading the help costs none of the heavy libraries, nor the MCP SDK."""
    assert not loaded_by(COMMAND.format(arguments=arguments), environment) & (HEAVY | {"mcp"})


def test_a_warm_recall_loads_no_training_library(environment: dict[str, str]) -> None:
    """On a store that exists, a whole recall with the model in this process runs without torch and its kin."""
    alone = environment | {"RECOLLECT_DAEMON": "0"}
    remember, recall = (["remember", "The mascot is a quokka"], ["recall", "quokka"])
    loaded_by(COMMAND.format(arguments=remember), alone)
    loaded = loaded_by(COMMAND.format(arguments=recall), alone)
    assert {"onnxruntime", "sqlalchemy"} <= loaded
    assert not loaded & {"torch", "transformers", "sentence_transformers", "alembic", "mcp", "pydantic_ai"}


def test_a_server_without_a_provider_loads_no_oauth(environment: dict[str, str]) -> None:
    """What signs people in waits for the first of them, also where the server is set to a provider."""
    program = (
        "from recollect.doors.http.team import TeamAccess\n"
        "from recollect.doors.http.sign_in import SignIn\n"
        "from recollect.settings import Settings\n"
        "named = {'public_address': 'https://a.example', 'oidc_issuer': 'https://b.example', 'oidc_client_id': 'c'}\n"
        "SignIn(None, Settings(**named))"
    )
    assert not loaded_by(program, environment) & {"authlib", "jwt", "httpx2", "mcp"}


def test_a_server_that_sends_no_telemetry_loads_none(environment: dict[str, str]) -> None:
    """Nothing of OpenTelemetry is loaded for a server unless a variable names a receiver."""
    program = "from recollect.doors.http import server\nwith server._telemetry():\n    pass"
    wanted = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"}
    assert not loaded_by(program, environment) & {"opentelemetry", "requests", "google"}
    assert "opentelemetry" in loaded_by(program, environment | wanted | {"OTEL_METRICS_EXPORTER": "none"})
