"""Builds the web UI from `ui/` into `src/foliot/ui/dist/`, unless the last build is of the same sources.

Uses only the standard library, because a package's build runs it as well. With `--if-possible` a machine without
Node.js gets one line instead of a failure.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "ui"
TARGET = ROOT / "src" / "foliot" / "ui" / "dist"
NODE_AT_LEAST = (20, 19)
# Made by the build, by tests or by npm, or not part of what is built.
NOT_SOURCES = frozenset({"node_modules", "schema.d.ts", "coverage", "README.md", "journeys"})
INSTALLED = SOURCES / "node_modules" / ".installed"
HELP = "Foliot works without it. To build it later, run make ui."


class BuildError(Exception):
    """Says in one line why the UI was not built."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--if-possible", action="store_true", help="go on without the UI if it can't be built")
    parser.add_argument("--with-tests", action="store_true", help="install the packages for tests and types as well")
    options = parser.parse_args()
    try:
        with one_at_a_time():
            if options.with_tests:
                install(with_tests=True)
            build()
    except BuildError as error:
        print(
            f"The web UI is not built: {error}. {HELP}" if options.if_possible else f"error: {error}", file=sys.stderr
        )
        return 0 if options.if_possible else 1
    return 0


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Tests in several processes may want the same build."""
    name = hashlib.sha256(str(ROOT).encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"foliot-ui-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build() -> None:
    """Raises `BuildError`."""
    wanted = hash_of_sources()
    if built_from() == wanted:
        return
    install(with_tests=False)
    print("Building the web UI ...", flush=True)
    _run(["node", "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"], FOLIOT_UI_SOURCES=wanted)


def install(*, with_tests: bool) -> None:
    """Installs the pinned npm packages, unless they are there. Raises `BuildError`."""
    _require_node()
    wanted = hashlib.sha256((SOURCES / "package-lock.json").read_bytes()).hexdigest()
    kinds = ("all",) if with_tests else ("all", "build")
    if INSTALLED.is_file() and INSTALLED.read_text() in [f"{kind} {wanted}" for kind in kinds]:
        return
    print("Installing the packages that the web UI is built with (once, about 20 seconds) ...", flush=True)
    _run(["npm", "ci", "--prefer-offline", "--loglevel=error", *([] if with_tests else ["--omit=dev"])])
    INSTALLED.write_text(f"{kinds[-1]} {wanted}")


def hash_of_sources() -> str:
    digest = hashlib.sha256()
    for path in sources():
        digest.update(f"{path.relative_to(SOURCES).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def sources() -> Iterator[Path]:
    """Every file that the build depends on, in order."""
    for directory, names, files in os.walk(SOURCES):
        names[:] = sorted(name for name in names if name not in NOT_SOURCES)
        for name in sorted(files):
            if name not in NOT_SOURCES and ".test." not in name:
                yield Path(directory) / name


def built_from() -> str | None:
    """The hash of the sources of the last build."""
    try:
        found = json.loads((TARGET / "build.json").read_text())["sources"]
    except (OSError, ValueError, KeyError):
        return None
    return str(found)


def _require_node() -> None:
    wanted = ".".join(map(str, NODE_AT_LEAST))
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        raise BuildError(f"it needs Node.js {wanted} or newer and npm, which are not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    found = re.match(r"v(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < NODE_AT_LEAST:
        raise BuildError(f"it needs Node.js {wanted} or newer, and this is {version or 'unknown'}")


def _run(command: list[str], **environment: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=SOURCES, env=os.environ | environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BuildError(f"{command[0]} could not be started: {error.strerror}") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        print("\n".join(lines[-30:]), file=sys.stderr)
        raise BuildError(f"{' '.join(command[:3])} failed")


if __name__ == "__main__":
    sys.exit(main())
