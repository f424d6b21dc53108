"""Pins every dependency, with hashes and without naming a host, into requirements/*.txt. Needs `uv` on the PATH or in
.venv."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Made by `make lock` from pyproject.toml. Do not edit.\n"
# The build backend is pinned with the runtime, so that `make up` builds without fetching anything unpinned.
LOCKS = {
    "runtime.txt": ["--extra", "embedded", "requirements/build.in"],
    "dev.txt": ["--extra", "all", "--group", "dev"],
    # At the versions that the tests run with.
    "image.txt": [
        "--extra",
        "embedded",
        "--extra",
        "otel",
        "--constraint",
        "requirements/dev.txt",
        "requirements/build.in",
    ],
}


def main() -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        sys.exit("make lock needs uv: pip install uv")
    for name, arguments in LOCKS.items():
        target = ROOT / "requirements" / name
        command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", "pyproject.toml", *arguments]
        pinned = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        target.write_text(HEADER + pinned)


if __name__ == "__main__":
    main()
