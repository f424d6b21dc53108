"""Installs a rival on demand, with the machine's own pip or npm and their configuration."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = ROOT / ".rivals"
SIDES = Path(__file__).resolve().parent / "sides"


class Unavailable(Exception):
    """The reason why a rival can't be installed here."""


async def with_pip(name: str, packages: tuple[str, ...]) -> list[str]:
    """The command that starts its program."""
    python = HOME / name / "bin" / "python"
    ready = HOME / name / ".installed"
    if not ready.exists() or ready.read_text() != json.dumps(packages):
        await _run(sys.executable, "-m", "venv", "--without-pip", str(HOME / name))
        # The measuring environment may have no pip of its own.
        pip = shutil.which("pip3") or shutil.which("pip")
        if pip is None:
            raise Unavailable("there is no pip on this machine")
        await _run(pip, "--python", str(python), "install", "-q", "--disable-pip-version-check", *packages)
        ready.write_text(json.dumps(packages))
    return [str(python), str(SIDES / f"{name}_side.py")]


async def with_npm(name: str, packages: tuple[str, ...]) -> list[str]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Unavailable("there is no node with npm on this machine")
    home = HOME / name
    ready = home / ".installed"
    if not ready.exists() or ready.read_text() != json.dumps(packages):
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true, "type": "module"}')
        await _run(npm, "install", "--prefix", str(home), "--no-audit", "--no-fund", "--loglevel", "error", *packages)
        ready.write_text(json.dumps(packages))
    # Node looks for modules next to the program.
    side = home / f"{name}_side.mjs"
    side.write_text((SIDES / side.name).read_text())
    return [node, str(side)]


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=sys.stderr)
    if await process.wait() != 0:
        raise Unavailable(f"{' '.join(command[:4])} ... failed with exit code {process.returncode}")
