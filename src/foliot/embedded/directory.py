"""The directory of a server: makes and clears what lies in it around the data, and says what is wrong with it.

New files belong to their user alone from the first moment. Only the holder of the owner's lock clears the directory,
because then everything in it was left by a dead owner.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
SOCKET_PATH_MAX_BYTES = 103
# A comma parts two directories, for PostgreSQL as for its clients; other rare characters are not worth finding out
# about.
SOCKET_PATH_PATTERN = re.compile(r"[\w/.+~@-]+")
SOCKET_PREFIX = "foliot-"
UNFINISHED_PREFIX = "postgres.unfinished-"


def make_private(directory: Path) -> None:
    """Creates the directory for its user alone. A directory with contents keeps its mode, because it may be shared."""
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
    elif not any(directory.iterdir()):
        directory.chmod(0o700)


def write_private(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def make_socket_directory(directory: Path) -> Path:
    clear_socket_directory(directory)
    run = directory / "run"
    if _fits(run):
        run.mkdir(mode=0o700, exist_ok=True)
        run.chmod(0o700)
        return run
    is_short_enough = _fits(Path(tempfile.gettempdir(), "x" * 20))
    short = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir=None if is_short_enough else "/tmp"))  # noqa: S108
    with contextlib.suppress(FileNotFoundError):
        run.rmdir()
    run.symlink_to(short)
    return short


def clear_socket_directory(directory: Path) -> None:
    """No server runs here, so the remaining sockets are stale, whatever pid their lock files contain."""
    run = directory / "run"
    if run.is_symlink():
        short = run.readlink()
        if short.name.startswith(SOCKET_PREFIX):
            shutil.rmtree(short, ignore_errors=True)
        run.unlink()
    for name in (SOCKET_NAME, f"{SOCKET_NAME}.lock"):
        (run / name).unlink(missing_ok=True)


def make_unfinished(directory: Path) -> Path:
    # A name of its own each time: an initdb that is being killed still clears the directory it was given.
    return Path(tempfile.mkdtemp(prefix=UNFINISHED_PREFIX, dir=directory))


def remove_unfinished(directory: Path) -> None:
    for unfinished in directory.glob(f"{UNFINISHED_PREFIX}*"):
        shutil.rmtree(unfinished, ignore_errors=True)


def move_into_place(made: Path, data: Path) -> None:
    made.rename(data)
    parent = os.open(data.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def explain(error: OSError, directory: Path) -> str:
    where = error.filename or directory
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            what = f"the disk is full at {where}: free some space"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            what = f"{where} can't be used by user id {os.geteuid()} ({error.strerror}): change its owner or mode"
        case errno.EEXIST | errno.ENOTDIR:
            what = f"{where} is in the way: not a directory"
        case _:
            what = f"{where}: {error.strerror}"
    return f"{what}, or set FOLIOT_DATA to another directory"


def _fits(sockets: Path) -> bool:
    return (
        SOCKET_PATH_PATTERN.fullmatch(str(sockets)) is not None
        and len(os.fsencode(sockets / SOCKET_NAME)) <= SOCKET_PATH_MAX_BYTES
    )
