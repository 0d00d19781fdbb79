"""Make an empty virtual environment with the wheel of this checkout, as somebody new has it: `wheel.py FOLDER`."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

CHECKOUT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "--no-input"]


def required() -> Iterator[Distribution]:
    """Yield what the wheel requires without its extras, and what that requires, as it is installed here; and pip."""
    todo, seen = [Requirement("recollect"), Requirement("pip")], set()
    while todo:
        wanted = todo.pop()
        found = distribution(wanted.name)
        if (found.name, *wanted.extras) in seen:
            continue
        seen.add((found.name, *wanted.extras))
        if found.name != "recollect":
            yield found
        for requirement in map(Requirement, found.requires or ()):
            extras = ("", *wanted.extras)
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
                todo.append(requirement)


def link(found: Distribution, site: Path) -> None:
    """Put a distribution into the packages of another environment."""
    here = Path(str(found.locate_file("")))
    for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        if not (site / name).exists():
            (site / name).symlink_to(here / name)


def build(place: Path, *, with_pip: bool = False) -> Path:
    """Build the wheel in `place`/dist, make an empty environment in `place`/venv, and return the wheel."""
    subprocess.run([*PIP, "wheel", "--no-deps", "--wheel-dir", place / "dist", CHECKOUT], check=True)
    venv.create(place / "venv", with_pip=with_pip)
    [wheel] = (place / "dist").iterdir()
    return wheel


def install(place: Path, wheel: Path, *options: str) -> None:
    """Install the wheel into `place`/venv."""
    subprocess.run([*PIP, "--python", place / "venv", "install", *options, wheel], check=True)


def packages(place: Path) -> Path:
    """Return the folder of the packages of `place`/venv."""
    [site] = (place / "venv/lib").glob("python*/site-packages")
    return site


def install_linked(place: Path, wheel: Path) -> None:
    """Install the wheel without any download: what it requires is linked from the environment that runs this."""
    for found in required():
        link(found, packages(place))
    install(place, wheel, "--no-deps")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    install_linked(folder, build(folder))
