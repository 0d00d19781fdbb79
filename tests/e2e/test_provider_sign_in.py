"""People sign in to a team's server through a real provider: in a browser, from a terminal, from a client of MCP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
import pytest
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from playwright.sync_api import expect
from pydantic import AnyUrl

from headless_browser import CHROMIUM, launched
from oidc_provider import LOGIN_CLIENT, PAGE_CLIENT, PAGE_SECRET, PASSWORD, OidcProvider, Visitor, running
from team_process import EXECUTABLE, TeamProcess


class Place(NamedTuple):
    """A server as a process of its own, with its provider."""

    server: TeamProcess
    provider: OidcProvider


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return a server whose people sign in at a provider."""
    folder = tmp_path_factory.mktemp("sign-in")
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    with running(folder) as provider:
        server = TeamProcess(theirs | {"RECOLLECT_HOME": str(folder / "home")}, folder / "server.log")
        server.set(
            RECOLLECT_PUBLIC_ADDRESS=server.url,
            RECOLLECT_OIDC_ISSUER=provider.issuer,
            RECOLLECT_OIDC_CLIENT_ID=PAGE_CLIENT,
            RECOLLECT_OIDC_CLIENT_SECRET=PAGE_SECRET,
            RECOLLECT_OIDC_LOGIN_CLIENT_ID=LOGIN_CLIENT,
            RECOLLECT_OIDC_GROUPS='{"engineers": {"crew": "writer"}}',
        )
        provider.client(PAGE_CLIENT, f"{server.url}/page/sign-in/done", secret=PAGE_SECRET)
        provider.client(LOGIN_CLIENT, "http://127.0.0.1/")
        server.start()
        try:
            yield Place(server, provider)
        finally:
            server.kill()


@pytest.mark.slow
def test_a_browser_signs_in(place: Place) -> None:
    """Without JavaScript too: one link, the form of the provider, and the screen that was asked for."""
    if not CHROMIUM:
        pytest.skip("no Chromium is installed: `scripts/programs` installs it")
    place.provider.person("lise", "engineers")
    with launched() as chromium:
        for scripts in (True, False):
            context = chromium.new_context(java_script_enabled=scripts)
            page = context.new_page()
            page.goto(f"{place.server.url}/page/browse")
            page.get_by_role("link", name="Sign in with 127.0.0.1").click()
            page.get_by_label("Username").fill("lise")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url(f"{place.server.url}/page/browse")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            kept = {cookie["name"] for cookie in context.cookies(f"{place.server.url}/page/")}
            assert kept & {"recollect_page", "recollect_sign_in"} == {"recollect_page"}
            context.close()


class Terminal:
    """A machine of a person: its commands, with a home of its own."""

    def __init__(self, home: Path, url: str) -> None:
        theirs = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
        self.file = home / "token"
        self.environment = theirs | {
            "HOME": str(home),
            "RECOLLECT_URL": url,
            "RECOLLECT_TOKEN_FILE": str(self.file),
            "PYTHONUNBUFFERED": "1",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        command = [EXECUTABLE, *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def login(self, follow: Any, *options: str) -> tuple[int, str]:
        """Run `login`; `follow` gets what it prints for a person."""
        command = [EXECUTABLE, "login", *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=self.environment, text=True, **pipes) as process:
            assert process.stderr is not None
            assert process.stdout is not None
            threading.Thread(target=follow, args=(process.stderr.readline(),)).start()
            printed = process.stdout.read()
        return process.returncode, printed


def test_a_terminal_signs_in_and_out(place: Place, tmp_path: Path) -> None:
    """`login` waits for the browser; its token is in a file of one's own, until `logout` revokes it and removes it."""
    place.provider.person("emmy", "engineers")
    terminal = Terminal(tmp_path, place.server.url)

    def follow(line: str) -> None:
        back = Visitor("emmy").follow(line.split()[-1])
        assert "signed in" in httpx2.get(back).text

    code, printed = terminal.login(follow, "--no-browser", "--json")
    assert code == 0
    assert json.loads(printed)["user"] == "emmy"
    assert terminal.file.stat().st_mode & 0o777 == 0o600
    token = terminal.file.read_text().strip()
    assert re.fullmatch(r"rec_\w{8}_[\w-]{43}", token)
    assert token not in printed
    assert terminal.run("remember", "--scope", "team", "Kites fly on Fridays").returncode == 0
    listed = json.loads(terminal.run("token", "list", "--json").stdout)["tokens"]
    assert any(each["label"].startswith("login on ") for each in listed)
    assert terminal.run("logout").returncode == 0
    assert not terminal.file.exists()
    gone = httpx2.post(f"{place.server.url}/v1/recall", json={}, headers={"Authorization": f"Bearer {token}"})
    assert gone.status_code == 401
    assert terminal.run("logout").returncode == 2


def test_a_person_who_refuses_is_not_signed_in(place: Place, tmp_path: Path) -> None:
    """What the browser brings back decides: an error of the provider, and the state of another sign-in, end it."""
    terminal = Terminal(tmp_path, place.server.url)

    def refuse(line: str) -> None:
        back = re.search(r"redirect_uri=(http%3A%2F%2F127\.0\.0\.1%3A\d+%2F)", line)
        assert back is not None
        httpx2.get(back[1].replace("%3A", ":").replace("%2F", "/"), params={"error": "access_denied"})

    def forge(line: str) -> None:
        back = re.search(r"redirect_uri=(http%3A%2F%2F127\.0\.0\.1%3A\d+%2F)", line)
        assert back is not None
        forged = {"code": "x", "state": "of another"}
        httpx2.get(back[1].replace("%3A", ":").replace("%2F", "/"), params=forged)

    for follow in (refuse, forge):
        assert terminal.login(follow, "--no-browser")[0] == 10
    assert not terminal.file.exists()


class _Kept:
    """What a hosted client of MCP keeps."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def test_a_client_of_mcp_finds_its_own_way_in(place: Place) -> None:
    """It knows the address alone: metadata, registration, the person's consent and the tool follow by the standards."""
    place.provider.person("sofja", "engineers")
    sent: list[str] = []

    async def redirect(address: str) -> None:
        sent.append(Visitor("sofja").follow(address))

    async def callback() -> AuthorizationCodeResult:
        query = httpx2.URL(sent[-1]).params
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))

    async def work() -> tuple[list[str], str]:
        about = OAuthClientMetadata(
            client_name="A hosted client",
            redirect_uris=[AnyUrl("https://client.example/callback")],
            token_endpoint_auth_method="client_secret_post",
        )
        flow = OAuthClientProvider(f"{place.server.url}/mcp", about, _Kept(), redirect, callback)
        async with (
            httpx2.AsyncClient(auth=flow, timeout=60) as client,
            streamable_http_client(f"{place.server.url}/mcp", http_client=client) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            asked = {"action": "remember", "content": "Tides turn twice a day", "scope": "team"}
            answer = await session.call_tool("memory", asked)
            return tools, str(answer.content[0].text)  # type: ignore[union-attr]

    tools, stored = anyio.run(work)
    assert tools == ["memory"]
    assert "Memory stored successfully" in stored
