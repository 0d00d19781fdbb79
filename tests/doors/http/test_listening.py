"""How the server listens: TLS from two files, and signals that come before it serves."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import recollect
from recollect import App, Settings
from recollect.doors.http import server
from recollect.doors.http.listening import Listening
from recollect.doors.http.team import TeamAccess
from recollect.errors import StoreUnusable
from team_server import TeamServer, listening


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return the files of a certificate for this machine, signed by itself, and of its key."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def signals() -> Iterator[None]:
    """Let signals do afterwards what they did before."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


def test_tls_is_spoken_with_the_files_that_are_given(app: App, settings: Settings, pair: tuple[Path, Path]) -> None:
    """A client that trusts the certificate is answered, one that does not refuses, and plain HTTP gets nothing."""
    begun = threading.Event()
    listening = Listening(host="127.0.0.1", port=0, tls_cert=pair[0], tls_key=pair[1])
    process = server.TeamProcess(TeamAccess(app, settings), listening, begun.set)
    serving = threading.Thread(target=process.run)
    serving.start()
    assert begun.wait(60)
    address = f"127.0.0.1:{process.servers[0].sockets[0].getsockname()[1]}/healthz"
    try:
        trusting = ssl.create_default_context(cafile=pair[0])
        assert httpx.get(f"https://{address}", verify=trusting).json() == {"ready": True}
        for stranger in ("https", "http"):
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{stranger}://{address}")
    finally:
        process.should_exit = True
        serving.join()


@pytest.mark.usefixtures("signals")
def test_files_that_are_no_pair_are_refused(settings: Settings, pair: tuple[Path, Path], tmp_path: Path) -> None:
    """A key that is absent, or a certificate that is none, ends the start with a sentence."""
    for key in (tmp_path / "absent.pem", pair[0]):
        with pytest.raises(StoreUnusable, match="The store cannot be used"):
            server.serve(settings, Listening(host="127.0.0.1", port=0, tls_cert=pair[0], tls_key=key))


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_one_that_is_told_to_end_while_it_starts_closes_in_order(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, told: signal.Signals
) -> None:
    """A signal that comes while the store is being opened ends the process with 0, and what is open is closed."""
    closed: list[bool] = []

    @contextmanager
    def opening(*_: object, **__: object) -> Iterator[None]:
        try:
            os.kill(os.getpid(), told)
            yield
        finally:
            closed.append(True)

    monkeypatch.setattr(recollect, "open_app", opening)
    with pytest.raises(SystemExit) as ended:
        server.serve(settings, Listening(host="127.0.0.1", port=0))
    assert (ended.value.code, closed) == (0, [True])


def test_one_behind_a_proxy_says_that_it_leaves_and_still_answers(team: TeamServer) -> None:
    """Told to end it is not ready any more, so that the proxy asks another, and takes what comes until then."""
    assert Listening(host="0.0.0.0", port=0, behind_proxy=True).leaving > 1
    with listening(team, leaving=60.0) as served:
        assert httpx.get(f"{served.url}/readyz").status_code == 200
        served.process.should_exit = True
        while httpx.get(f"{served.url}/readyz").status_code == 200:
            time.sleep(0.01)
        asked = httpx.post(f"{served.url}/v1/stats", headers={"Authorization": f"Bearer {team.tokens['ada']}"}, json={})
        assert asked.status_code == 200
        served.process.force_exit = True
