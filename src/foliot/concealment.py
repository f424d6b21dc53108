"""Keeps a process's secrets from other processes of the same user, such as the commands that a worker runs.

Linux shows the environment that a process was started with in /proc/PID/environ, and does so for the whole life of the
process: deleting a variable from `os.environ` changes nothing there. Two measures, each of which holds where the other
one does not:

- The process is marked as not dumpable. Its environment, memory and descriptors in /proc then belong to root, and nobody but root can
  attach a debugger to it. It also writes no core dump. An exec undoes the mark, so each process marks itself.
- The memory that /proc/PID/environ shows is overwritten with zeros, which root's commands read as well. The variables themselves live on
  elsewhere in the process's memory.

Root can still read the memory of every process. Between the exec of the interpreter and the call of `conceal` nothing
is hidden yet.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
ENVIRONMENT_BEGINS = 50 - 3
"""The field of /proc/self/stat, counted from the first one behind the name of the program."""

failures: list[str] = []
"""Why this process could not be concealed. A part that runs on logs it when it starts."""


def conceal() -> None:
    """To be called first thing, before there are threads. What can't be done here is noted in `failures`."""
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
            # Sets it to what it is. The C library then keeps a copy of its own and no longer refers to the memory that
            # is wiped below.
            os.environb[name] = value
    ctypes.memset(begin, 0, end - begin)


def _environment_in_memory() -> tuple[int, int]:
    # A program's name may hold blanks and brackets.
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = (int(word) for word in fields[ENVIRONMENT_BEGINS : ENVIRONMENT_BEGINS + 2])
    if not 0 < begin <= end:
        raise OSError("the kernel does not say where the environment of this process is")
    return begin, end
