"""Write docs/deploy/compose.yaml and docs/deploy/kubernetes from the chart in docs/deploy/helm, their only source.

The chart's values fill the template of the Compose file; Helm renders the manifests for clusters without Helm.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import jinja2
import yaml

ROOT: Final = Path(__file__).parents[1]
DEPLOY: Final = ROOT / "docs" / "deploy"
CHART: Final = DEPLOY / "helm"
MANIFESTS: Final = ("chroma", "network", "postgres", "prepare", "recollect")
_NOTE: Final = "# Written by scripts/deployment.py from docs/deploy/helm; change it there.\n"


def helm() -> str | None:
    """Return the path of Helm: that beside this Python, which `scripts/programs` installs, else that of the system."""
    beside = Path(sys.executable).with_name("helm")
    return str(beside) if beside.exists() else shutil.which("helm")


def render(*options: str, release: str = "recollect") -> str:
    """Return the chart's manifests; raise `SystemExit` with Helm's reason where it refuses the values."""
    program = helm()
    if program is None:
        sys.exit("deployment: Helm is not installed; scripts/programs installs it.")
    command = [program, "template", release, str(CHART), "--namespace", "recollect", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def manifests() -> dict[Path, str]:
    """Return the text of each manifest in docs/deploy/kubernetes that comes from the chart."""
    options = ["--values", str(CHART / "kubernetes-values.yaml")]
    written: dict[Path, str] = {}
    for name in MANIFESTS:
        text = render(*options, "--show-only", f"templates/{name}.yaml")
        text = re.sub(r"^# Source: .*\n", "", text, flags=re.MULTILINE)
        written[DEPLOY / "kubernetes" / f"{name}.yaml"] = _NOTE + text
    return written


def compose() -> dict[Path, str]:
    """Return the text of the Compose file."""
    chart, values = (
        yaml.safe_load((CHART / name).read_text(encoding="utf-8")) for name in ("Chart.yaml", "values.yaml")
    )
    image = f"{values['image']['repository']}:{values['image']['tag'] or chart['appVersion']}"
    given: dict[str, Any] = values | {"image": image}
    source = (CHART / "compose.yaml.jinja").read_text(encoding="utf-8")
    template = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True).from_string(source)
    return {DEPLOY / "compose.yaml": _NOTE + template.render(given)}


def main(arguments: Sequence[str]) -> int:
    """Write what differs; with `--check` only name it, and return 1 where anything does."""
    stale = [
        (file, text)
        for file, text in (compose() | manifests()).items()
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]
    for file, text in stale:
        print(file.relative_to(ROOT))
        if "--check" not in arguments:
            file.write_text(text, encoding="utf-8")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
