"""Pyright sees the types of tasks and handles as mypy does: see tests/typing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(300)]


def test_pyright_finds_wrong_arguments_of_submit(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is missing: install Node.js 20 or newer")
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "pyright@1.1"]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (tmp_path / "shop.py").write_text((ROOT / "tests" / "typing" / "shop.py").read_text())
    # An error that is expected carries a comment, which must be needed.
    settings = {
        "reportUnnecessaryTypeIgnoreComment": "error",
        "extraPaths": [str(ROOT / "src")],
        "include": ["shop.py"],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = ["node_modules/.bin/pyright", "--pythonpath", sys.executable]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    assert "0 errors" in checked.stdout
