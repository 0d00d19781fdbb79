"""What people type before they have read the help: which of these guesses are understood, and how long each takes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

TABLE = Path(__file__).parent / "data" / "guesses.toml"
STORED = (
    "Deploys go out on Tuesday at ten",
    "The office in Zürich opens at eight",
    "Use tabs in Makefiles, spaces elsewhere",
    *(f"Service {number} keeps its log for {number + 7} days" for number in range(4, 12)),
    "The old mail server is called walnut",
)
"""The memories 1 to 12, which the table names by their ids."""
CHAT = [
    {
        "uuid": "c1",
        "name": "Trip",
        "created_at": "2026-03-01T10:00:00Z",
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "My sister is called Ida", "created_at": "2026-03-01T10:00:00Z"}
        ],
    }
]


class Tried(NamedTuple):
    """What became of a guess."""

    typed: str
    code: int
    seconds: float
    succeeded: bool
    said: str


def try_all(work: Path, environment: Mapping[str, str]) -> list[Tried]:
    """Make a store in a new folder below `work`, type each guess there, and return what became of it.

    `recollect` is what the PATH of the environment finds.
    """
    folder = work / "shop"
    folder.mkdir(parents=True)
    _fill(folder, environment)
    return [_tried(one, folder, environment) for one in tomllib.loads(TABLE.read_text(encoding="utf-8"))["guess"]]


def _fill(folder: Path, environment: Mapping[str, str]) -> None:
    (folder / "note.txt").write_text("Tests run on every push\n", encoding="utf-8")
    (folder / "notes.md").write_text("# Ops\n\n## Logs\n\nThey are rotated at night.\n", encoding="utf-8")
    (folder / "notes").mkdir()
    (folder / "notes/house.md").write_text("# House\n\n## Style\n\nTwo spaces.\n", encoding="utf-8")
    with ZipFile(folder / "chats.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps(CHAT))
    for text in STORED:
        command = ["recollect", "remember", text, *(["--tag", "house"] if "tabs" in text else [])]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def _tried(guess: dict[str, Any], folder: Path, environment: Mapping[str, str]) -> Tried:
    began = time.perf_counter()
    done = subprocess.run(
        ["/bin/bash", "-c", f"{guess['typed']}\nexit $?"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    seconds, said = time.perf_counter() - began, done.stdout + done.stderr
    succeeded = done.returncode == guess.get("code", 0) and re.search(guess["shows"], said) is not None
    return Tried(guess["typed"], done.returncode, seconds, succeeded, said)


def main() -> None:
    """Try the guesses on the `recollect` of the PATH, with an empty home, and print those that failed."""
    with tempfile.TemporaryDirectory(prefix="recollect-guesses-") as place:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
        models = {name: os.environ[name] for name in ("RECOLLECT_MODELS_DIR",) if name in os.environ}
        environment = kept | models | {"HOME": place, "COLUMNS": "80"}
        try:
            tried = try_all(Path(place), environment)
        finally:
            subprocess.run(["recollect", "stop"], env=environment, check=False, capture_output=True)
    for one in tried:
        if not one.succeeded:
            print(f"--- {one.typed}  → {one.code}\n{one.said[:300]}")
    print(f"{sum(one.succeeded for one in tried)} of {len(tried)} succeed")
    for one in sorted(tried, key=lambda each: -each.seconds)[:15]:
        print(f"{one.seconds:6.2f}  {one.typed}")


if __name__ == "__main__":
    main()
