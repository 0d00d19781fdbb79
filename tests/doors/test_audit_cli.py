"""The export of the audit log on the command line: to files, standard output and syslog servers, and its check."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import Ended
from recollect.doors.cli import audit, audit_targets
from recollect.errors import InvalidInput, RecollectError, StoreUnusable
from syslog_server import taking

Typed = Callable[..., Ended]

HEAD = re.compile(
    r"<(\d+)>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z [!-~]+ recollect - (\w+) "
    r'\[origin software="recollect" swVersion="[^"]+"\] (\{.*\})'
)


@pytest.fixture
def teams(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Return what types commands where two teams were added, and an export sends two lines at once."""
    monkeypatch.setattr(audit, "_PAGE", 2)
    for name in ("crew", "dock"):
        assert typed("team", "add", name).code == 0
    assert typed("user", "add", "ada", "--team", "crew").code == 0
    return typed


def lines(text: str | bytes) -> list[Any]:
    """Return the records in JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


def test_an_export_holds_every_line_once(teams: Typed, tmp_path: Path) -> None:
    """A file gets each line once, a later run only what is new, and another file begins anew."""
    file = tmp_path / "audit.jsonl"
    shown = teams("audit", "--json", "--limit", "500").json["lines"]
    first = teams("audit", "export", "--to", str(file))
    assert f"{len(shown)} lines exported to {file}." in first.out
    assert sorted(one["number"] for one in lines(file.read_bytes())) == sorted(one["number"] for one in shown)
    assert file.stat().st_mode & 0o077 == 0
    teams("team", "grant", "dock", "ada")
    assert teams("audit", "export", "--to", str(file), "--json").json == {"lines": 1, "to": str(file)}
    assert teams("audit", "export", "--to", str(file), "--json").json["lines"] == 0
    whole = lines(file.read_bytes())
    assert len({one["number"] for one in whole}) == len(whole) == len(shown) + 1
    assert lines(teams("audit", "export").out) == sorted(whole, key=lambda one: (one["namespace"], one["number"]))
    team = lines(teams("audit", "export", "--team", "dock").out)
    assert {one["namespace"] for one in team} == {"team:dock"}


def test_a_run_that_was_killed_is_continued(teams: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed run has written behind its cursor is written once; a file that lost something is left alone."""
    file, cursor = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.cursor"
    with monkeypatch.context() as changed:
        changed.setattr(audit_targets.Cursor, "advance", _killed_at_the_second(audit_targets.Cursor.advance))
        assert teams("audit", "export", "--to", str(file)).code == StoreUnusable.exit_code
    assert file.stat().st_size > 0
    teams("audit", "export", "--to", str(file))
    whole = file.read_bytes()
    half = json.loads(cursor.read_text()) | {"after": [], "size": 0}
    first = whole.splitlines(keepends=True)[0]
    half |= {"after": [json.loads(first)["number"]], "size": len(first)}
    cursor.write_text(json.dumps(half))
    file.write_bytes(whole[: len(first) + 30])  # a line was on its way
    teams("audit", "export", "--to", str(file))
    assert file.read_bytes() == whole
    file.write_bytes(whole[:-1])
    short = teams("audit", "export", "--to", str(file))
    assert (short.code, "is shorter than" in short.err) == (InvalidInput.exit_code, True)
    cursor.unlink()
    there = teams("audit", "export", "--to", str(file))
    assert (there.code, "is there already" in there.err) == (InvalidInput.exit_code, True)
    assert file.read_bytes() == whole[:-1]


@pytest.mark.parametrize("form", ["jsonl", "syslog"])
def test_a_changed_line_is_found(teams: Typed, tmp_path: Path, form: str) -> None:
    """An export proves itself line by line, in both formats; a change in any of its values is found."""
    file = tmp_path / "audit.log"
    teams("audit", "export", "--to", str(file), "--format", form)
    good = teams("audit", "verify", str(file))
    assert (good.code, "unchanged" in good.out, "not shown: 0." in good.out) == (0, True, True)
    whole = file.read_text()
    for before, after in (
        ('"action":"add_team"', '"action":"put_team"'),
        ('"actor":"', '"actor":"x'),
        (':"dock"', ':"x"'),
    ):
        assert before in whole
        file.write_text(whole.replace(before, after))
        bad = teams("audit", "verify", str(file))
        assert (bad.code, "was changed" in bad.err) == (RecollectError.exit_code, True), before
    crew = [line for line in whole.splitlines(keepends=True) if '"namespace":"team:crew"' in line]
    file.write_text("".join(reversed(crew)))
    assert "out of order" in teams("audit", "verify", str(file)).err
    for text in ("nothing\n", '{"number": 1}\n', re.sub(r'"hash":"\w+",', "", whole)):
        file.write_text(text)
        assert teams("audit", "verify", str(file)).code == InvalidInput.exit_code
    assert teams("audit", "verify", str(tmp_path / "none")).code == InvalidInput.exit_code


@pytest.mark.parametrize("kind", ["tcp", "udp", "tls"])
def test_a_syslog_server_gets_every_line(teams: Typed, tmp_path: Path, kind: str) -> None:
    """Each line is a message of RFC 5424 whose text is the line as JSON; with a cursor each comes once."""
    context, trusted = _certified(tmp_path) if kind == "tls" else (None, {})
    scheme = {"tcp": "syslog", "udp": "syslog+udp", "tls": "syslog+tls"}[kind]
    cursor = str(tmp_path / "cursor")
    with taking("udp" if kind == "udp" else "tcp", context) as server:
        address = f"{scheme}://localhost:{server.port}" if kind == "tls" else f"{scheme}://127.0.0.1:{server.port}"
        sent = teams("audit", "export", "--to", address, "--cursor", cursor, "--json", **trusted).json["lines"]
        teams("team", "grant", "dock", "ada")
        assert teams("audit", "export", "--to", address, "--cursor", cursor, "--json", **trusted).json["lines"] == 1
        _wait(lambda: len(server.messages) == sent + 1)
    parts = [HEAD.fullmatch(message.decode("ascii")) for message in server.messages]
    assert all(parts)
    told = [(one[1], one[2], json.loads(one[3])) for one in parts if one]
    assert {priority for priority, *_ in told} == {str(13 * 8 + 5)}
    assert [(kind, record["number"]) for _, kind, record in told] == [
        (one["action"], one["number"]) for *_, one in told
    ]
    assert len({record["number"] for *_, record in told}) == sent + 1


def test_a_server_that_is_away_loses_no_line(teams: Typed, tmp_path: Path) -> None:
    """A run that nobody listens to says so and notes nothing; a connection that was closed is made anew."""
    cursor = tmp_path / "cursor"
    away = teams("audit", "export", "--to", "syslog://127.0.0.1:9", "--cursor", str(cursor))
    assert (away.code, "127.0.0.1:9 takes nothing" in away.err) == (StoreUnusable.exit_code, True)
    assert not cursor.exists()
    with taking("tcp") as server:
        sent = teams("audit", "export", "--to", f"syslog://127.0.0.1:{server.port}", "--json").json["lines"]
        _wait(lambda: len(server.messages) == sent)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--to", "ftp://logs.example.com"), "--to"),
        (("--to", "syslog://"), "--to"),
        (("--to", "syslog://logs.example.com:x"), "--to"),
        (("--to", "syslog://logs.example.com/path"), "--to"),
        (("--to", "syslog://logs.example.com", "--format", "jsonl"), "format"),
        (("--to", "syslog://logs.example.com", "--follow"), "cursor"),
        (("--since", "never ever"), "since"),
    ],
)
def test_wrong_words_are_refused(typed: Typed, words: tuple[str, ...], field: str) -> None:
    """What no export can do is refused by the option's name, before a store is opened."""
    ended = typed("audit", "export", *words)
    assert (ended.code, field.removeprefix("--") in ended.err) == (InvalidInput.exit_code, True), ended.err


def test_a_foreign_cursor_is_left_alone(teams: Typed, tmp_path: Path) -> None:
    """A file that is no cursor is named, and not written over."""
    (tmp_path / "notes").write_text("mine")
    ended = teams("audit", "export", "--cursor", str(tmp_path / "notes"))
    assert (ended.code, "no cursor" in ended.err) == (InvalidInput.exit_code, True)
    assert (tmp_path / "notes").read_text() == "mine"


def _killed_at_the_second(advance: Callable[..., None]) -> Callable[..., None]:
    """Return what notes the beginning of an export, and fails where it should note that lines were written."""

    def advancing(cursor: audit_targets.Cursor, after: tuple[int, ...], size: int) -> None:
        if size:
            raise StoreUnusable("The process ends here.")
        advance(cursor, after, size)

    return advancing


def _wait(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.02)


def _certified(folder: Path) -> tuple[ssl.SSLContext, dict[str, str]]:
    """Return the context of a server with a certificate for `localhost`, and the variable by which it is trusted."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*made, *named, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, {"SSL_CERT_FILE": str(certificate)}
