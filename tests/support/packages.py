"""The wheel and the sdist of this checkout, and empty environments to install them into."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.processes import ROOT

UI_BUILT = (ROOT / "src" / "foliot" / "ui" / "dist" / "index.html").is_file()


def build(source: Path, directory: Path, *targets: str) -> list[Path]:
    """Builds the packages. Without a built UI it builds them without the UI, which needs no Node.js."""
    environment = os.environ | ({} if UI_BUILT else {"FOLIOT_WITHOUT_UI": "1"})
    chosen = [part for target in targets for part in ("--target", target)]
    command = [str(Path(sys.executable).parent / "hatchling"), "build", "--directory", str(directory), *chosen]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(directory.iterdir())


def empty_environment(directory: Path) -> Path:
    """Makes a virtual environment without any package, and returns its python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    return directory / "bin" / "python"


def install(python: Path, *requirements: str) -> None:
    """Installs with the pip of the machine, at the pinned versions."""
    pins = re.sub(r" *\\\n *--hash=\S+", "", (ROOT / "requirements" / "runtime.txt").read_text())
    constraints = python.parent.parent / "constraints.txt"
    constraints.write_text(pins)
    command = [*pip(), "--python", str(python), "install", "--quiet", "--constraint", str(constraints), *requirements]
    done = subprocess.run(command, env=without_paths(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def pip() -> list[str]:
    """The machine's own pip: the environment of the tests has none."""
    home = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return [str(home), "-m", "pip", "--disable-pip-version-check"]


def without_paths() -> dict[str, str]:
    """The environment of a user who has not set Python up in any way."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FOLIOT_"))}
