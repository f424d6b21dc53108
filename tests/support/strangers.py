"""Runs Foliot as a user other than root, when the tests run as root."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

NOBODY = 65_534
ROOT = Path(__file__).resolve().parents[2]
CANDIDATES = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3")


@functools.cache
def python_of_nobody() -> tuple[str, str]:
    """An interpreter that `nobody` may execute and that finds Foliot, and its PYTHONPATH. Skips the test where there is
    none."""
    if os.geteuid() != 0:
        pytest.skip("takes root to become another user")
    path = f"{ROOT}:{ROOT / 'src'}:{sysconfig.get_path('purelib')}"
    for candidate in CANDIDATES:
        try:
            tried = subprocess.run(
                [candidate, "-c", "import foliot.cli.main, asyncpg, msgspec, uvloop"],
                env={"PYTHONPATH": path, "PATH": os.environ["PATH"]},
                cwd="/",
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if tried.returncode == 0:
            return candidate, path
    pytest.skip("there is no interpreter here that nobody may execute")
