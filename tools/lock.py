"""Pins every dependency, with hashes and without naming a host, into requirements/*.txt. Needs `uv` on the PATH or in
.venv."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Made by `make lock` from pyproject.toml. Do not edit.\n"
SAME_AS_TESTED = ["--constraint", "requirements/dev.txt"]
# The build backend is pinned with the runtime, so that `make up` builds without fetching anything unpinned. The image
# is built with it, and does not contain it.
LOCKS = {
    "dev.txt": ["pyproject.toml", "--extra", "all", "--group", "dev"],
    "runtime.txt": ["pyproject.toml", "--extra", "embedded", "requirements/build.in"],
    "image.txt": ["pyproject.toml", "--extra", "embedded", "--extra", "otel", *SAME_AS_TESTED],
    "build.txt": ["requirements/build.in", *SAME_AS_TESTED],
}


def main() -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        sys.exit("make lock needs uv: pip install uv")
    for name, arguments in LOCKS.items():
        target = ROOT / "requirements" / name
        command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", *arguments]
        pinned = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        target.write_text(HEADER + pinned)


if __name__ == "__main__":
    main()
