"""A directory in memory. A cloned database is a thousand small files; on a disk they cost more than the test."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MEMORY = Path("/dev/shm")
# A test process needs about 100 MB, at most 400. Containers often have only 64 MB here.
ROOM_BYTES = 2_000_000_000
PREFIX = "foliot-tests-"


@contextmanager
def directory_in_memory(otherwise: Path, *, memory: Path = MEMORY, room_bytes: int = ROOM_BYTES) -> Iterator[Path]:
    """A new directory in memory, removed at the end; where there is no room, `otherwise`."""
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < room_bytes:
        yield otherwise
        return
    _clear_up_after_the_killed(memory)
    # Locked before it gets the name by which other runs look for abandoned directories.
    unnamed = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}", dir=memory))
    lock = os.open(unnamed, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    directory = unnamed.rename(unnamed.with_name(unnamed.name.removeprefix("new-")))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def _clear_up_after_the_killed(memory: Path) -> None:
    """A killed run could not remove its directory, and nothing else frees that memory."""
    for left in memory.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(lock)
