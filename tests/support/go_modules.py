"""Go modules: the files in them, and programs that are built from them."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.kept import one_at_a_time

BUILD_SECONDS = 1500


@functools.cache
def module_directory(module: str) -> Path:
    """Where the files of `MODULE@VERSION` are."""
    done = _go("mod", "download", "-json", module, directory=Path.home())
    answer = json.loads(done.stdout)
    if "Error" in answer:
        pytest.skip(f"a Go module can't be had: {answer['Error']}")
    return Path(answer["Dir"])


@functools.cache
def built_program(package: str, name: str) -> Path:
    """The program of `PACKAGE@VERSION`. Its first build takes minutes."""
    with one_at_a_time(f"go-{name}-{package.rpartition('@')[2]}") as directory:
        program = directory / name
        if not program.exists():
            done = _go("install", package, directory=directory)
            if done.returncode != 0:
                pytest.skip(f"{name} can't be built: {done.stderr.strip().splitlines()[-1]}")
    return program


def _go(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is missing, and what the test needs comes as a Go module")
    return subprocess.run(
        ["nice", go, *arguments], cwd=directory, env=os.environ | {"GOBIN": str(directory)},
        capture_output=True, text=True, check=False, timeout=BUILD_SECONDS,
    )  # fmt: skip
