"""`recollect import --watch` as a real process: it follows a folder until Ctrl-C, and goes on when it starts again."""

from __future__ import annotations

import signal
from pathlib import Path
from subprocess import Popen

from daemon_place import Place


def line(watching: Popen[str]) -> str:
    """Return the next line that it prints."""
    assert watching.stdout is not None
    return watching.stdout.readline().rstrip("\n")


def test_a_folder_is_followed(place: Place, tmp_path: Path) -> None:
    """Each change is a line and soon a memory; Ctrl-C ends it cleanly, and the next start reads only differences."""
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "tea.md").write_text("Green tea wants 80 degrees.\n", encoding="utf-8")
    place.environment["PYTHONUNBUFFERED"] = "1"
    watching = place.begin("import", "--watch", str(vault), cwd=tmp_path)
    assert line(watching) == "+ vault/tea.md  1 new"
    (vault / "cake.md").write_text("Cake is for Sundays.\n", encoding="utf-8")
    assert line(watching) == "+ vault/cake.md  1 new"
    (vault / "tea.md").rename(vault / "green.md")
    assert line(watching) == "> vault/green.md  was vault/tea.md; 1 updated"
    assert "vault/green.md#" in place.cli("list", "--json", cwd=tmp_path)
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate()
    assert (watching.returncode, err) == (0, "")
    assert out == "Stopped. The next start reads only what has changed.\n"
    (vault / "cake.md").unlink()
    again = place.begin("import", "--watch", str(vault), cwd=tmp_path)
    assert line(again).startswith("- vault/cake.md  The section `vault/cake.md#`")
    again.send_signal(signal.SIGTERM)
    assert again.communicate()[0] == "Stopped. The next start reads only what has changed.\n"
    refused = place.cli("import", "--watch", "--dry-run", str(vault), code=2, cwd=tmp_path)
    assert "Takes one folder" in refused
