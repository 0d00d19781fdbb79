"""Draw docs/recollect.svg, the picture of README, from a real run: remember, recall, a secret refused, forget."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

SVG = Path(__file__).parents[2] / "docs/recollect.svg"
COMMAND = str(Path(sys.executable).with_name("recollect"))
WIDTH = 80


def main() -> None:
    """Run the commands in a new store and write what a terminal shows of them."""
    token = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    commands = (
        "recollect remember Production deploys go out on Tuesday mornings",
        "recollect recall when do we ship releases",
        f"recollect remember the deploy token is {token}",
        "recollect recall banana bread",
        "recollect forget 1",
    )
    screen = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, highlight=False)
    with tempfile.TemporaryDirectory(prefix="recollect-picture-") as home:
        given = {"RECOLLECT_HOME": home, "RECOLLECT_PROJECT": "shop", "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}

        def run(*command: str) -> str:
            done = subprocess.run(command, env=os.environ | given, capture_output=True, text=True)
            return done.stdout + done.stderr

        run(COMMAND, "recall", "anything")
        while json.loads(run(COMMAND, "status", "--json"))["model"] != "ready":
            time.sleep(0.05)
        for line in commands:
            screen.print(f"[bold green]$[/] {line.replace(token[8:], '…')}")
            screen.print(Text.from_ansi(run(COMMAND, *shlex.split(line)[1:])))
        run(COMMAND, "stop")
    SVG.write_text(screen.export_svg(title="recollect", unique_id="recollect"), encoding="utf-8")


if __name__ == "__main__":
    main()
