"""Types of tasks and handles as a user's project sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def test_mypy_finds_wrong_arguments_of_submit(tmp_path: Path) -> None:
    module = tmp_path / "shop.py"
    module.write_text((ROOT / "tests" / "typing" / "shop.py").read_text())
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        os.devnull,
        "--cache-dir",
        str(tmp_path),
        str(module),
    ]
    checked = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        check=False,
    )
    assert "Success" in checked.stdout, checked.stdout
