"""Keeps a process's secrets from other processes of the same user, such as the commands that a worker runs.

Linux shows the environment that a process was started with in /proc/PID/environ for the whole life of the process:
deleting a variable from `os.environ` changes nothing there. Two measures complement each other:

- The process marks itself as not dumpable. Its environment, memory and descriptors in /proc then belong to root, only
  root can attach a debugger, and it writes no core dump. An exec clears the mark, so each process marks itself.
- The process overwrites the memory behind /proc/PID/environ with zeros, so that commands of root read nothing either.
  The variables themselves stay elsewhere in its memory.

Root can still read the memory of every process. Nothing is hidden between the exec of the interpreter and the call of
`harden`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
ENVIRONMENT_BEGINS = 50 - 3
"""The field of /proc/self/stat, counted from the first one after the program's name."""

failures: list[str] = []
"""Why a measure failed. Long-running parts log it when they start."""


def harden() -> None:
    """Call it first, before any thread starts. A measure that fails adds its reason to `failures`."""
    if sys.platform != "linux":
        failures.append(f"Foliot can't hide the environment of a process on {sys.platform}")
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for measure in (_wipe_environment, lambda: _prctl(libc, PR_SET_DUMPABLE, 0)):
        try:
            measure()
        except OSError as error:
            failures.append(str(error))


def die_with_parent(signal_number: int) -> None:
    """The kernel sends this process the signal when its parent ends. Raises `OSError`."""
    _prctl(ctypes.CDLL(None, use_errno=True), PR_SET_PDEATHSIG, signal_number)


def _prctl(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}, {value}): {os.strerror(number)}")


def _wipe_environment() -> None:
    begin, end = _environment_in_memory()
    for name, value in os.environb.items():
        if name:
            # Setting it to the same value makes the C library copy it, out of the memory that is wiped below.
            os.environb[name] = value
    ctypes.memset(begin, 0, end - begin)


def _environment_in_memory() -> tuple[int, int]:
    # A program's name may contain spaces and parentheses.
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = (int(word) for word in fields[ENVIRONMENT_BEGINS : ENVIRONMENT_BEGINS + 2])
    if not 0 < begin <= end:
        raise OSError("the kernel does not say where the environment of this process is")
    return begin, end
