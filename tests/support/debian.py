"""Programs that a test needs: installed if we are root on Debian, otherwise the test is skipped with the reason."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

LOCK = Path(tempfile.gettempdir()) / "foliot-tests-install.lock"


@functools.cache
def require(program: str, package: str) -> str:
    """Returns the path of the program."""
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/lib/cni"
    found = shutil.which(program, path=search)
    if found is None and os.getuid() == 0 and shutil.which("apt-get"):
        with LOCK.open("w") as lock:
            # Tests run in parallel, and the second of two apt-gets fails at once.
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = shutil.which(program, path=search) or _install(program, package, search)
    if found is None:
        pytest.skip(f"{program} is missing: install the Debian package {package}")
    return str(Path(found))


def _install(program: str, package: str, search: str) -> str | None:
    for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "-qq", *command], env=environment, check=False, capture_output=True, timeout=300)
    return shutil.which(program, path=search)
