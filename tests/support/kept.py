"""Things that take long to get, kept between test runs outside the repository."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DIRECTORY = Path.home() / ".cache" / "foliot-tests"


@contextmanager
def one_at_a_time(name: str) -> Iterator[Path]:
    """The directory of this name, for this process alone: tests of several processes may want the same."""
    directory = DIRECTORY / name
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory
