"""Programs that a test needs beside Python: installed if we are root on Debian, else the test is skipped with one line that says so."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest


@functools.cache
def require(program: str, package: str) -> str:
    """The program's path."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = shutil.which(program, path=search)
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
            environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(["apt-get", "-qq", *command], env=environment, check=False, capture_output=True, timeout=300)
        found = shutil.which(program, path=search)
    if found is None:
        pytest.skip(f"{program} is missing: install the Debian package {package}")
    return str(Path(found))
