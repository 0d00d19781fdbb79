"""Waiting: after a second a person at a terminal reads what a command waits for, and nobody else does."""

from __future__ import annotations

import io
import sys
from threading import Event

import pytest

from recollect.doors.cli import patience
from recollect.doors.cli.patience import LINE, told_after_a_second


class Screen(io.StringIO):
    """A stream that is a terminal or not, and that says when something was written."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self._tty = tty
        self.written = Event()

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return self._tty

    def write(self, text: str) -> int:
        """Keep the text."""
        count = super().write(text)
        self.written.set()
        return count


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second be over at once."""
    monkeypatch.setattr(patience, "AFTER", 0.0)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def waited(monkeypatch: pytest.MonkeyPatch, words: list[str], *, out: bool = True, err: bool = True) -> tuple[str, str]:
    """Wait with these words typed and return what stands on both streams; `out` and `err` say which are terminals."""
    streams = Screen(tty=out), Screen(tty=err)
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    with told_after_a_second(words):
        if out and err and "--json" not in words and "json" not in words:
            assert streams[1].written.wait(60)
    return streams[0].getvalue(), streams[1].getvalue()


@pytest.mark.parametrize("words", [["recall", "deploy"], ["import", "notes"], ["stats"]])
def test_who_waits_at_a_terminal_reads_one_dim_line(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    """The line goes to standard error once, dimmed, so that the answer stays alone on standard output."""
    assert waited(monkeypatch, words) == ("", f"\x1b[2m{LINE}\x1b[0m\n")


@pytest.mark.parametrize("name", ["NO_COLOR", "TERM"])
def test_a_plain_terminal_gets_a_plain_line(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where colours are off, or the terminal knows none, the line has no escape sequence."""
    monkeypatch.setenv(name, "dumb")
    assert waited(monkeypatch, ["recall", "deploy"]) == ("", f"{LINE}\n")


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        (["recall", "deploy", "--json"], True, True),
        (["recall", "deploy", "-o", "json"], True, True),
        (["--json", "recall", "deploy"], True, True),
        (["recall", "deploy"], False, True),
        (["recall", "deploy"], True, False),
        (["recall", "deploy"], False, False),
    ],
)
def test_no_program_gets_a_line(monkeypatch: pytest.MonkeyPatch, words: list[str], out: bool, err: bool) -> None:
    """Neither with `--json` nor where one of the streams is no terminal is anything printed."""
    assert waited(monkeypatch, words, out=out, err=err) == ("", "")


def test_a_quick_answer_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has the answer before the second is over reads nothing else."""
    monkeypatch.setattr(patience, "AFTER", 3_600.0)
    screen = Screen(tty=True)
    monkeypatch.setattr(sys, "stdout", Screen(tty=True))
    monkeypatch.setattr(sys, "stderr", screen)
    with told_after_a_second(["recall", "deploy"]):
        pass
    assert screen.getvalue() == ""
