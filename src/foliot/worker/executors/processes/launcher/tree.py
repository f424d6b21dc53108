"""Finds, signals and reaps the processes of a command."""

from __future__ import annotations

import os
import select


def descendants_of(pid: int) -> list[int]:
    children = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123
                children += [int(word) for word in file.read().split()]
    except OSError:
        # It ended meanwhile.
        return children
    return children + [deeper for found in children for deeper in descendants_of(found)]


def signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except OSError:
        # Not yet a group leader, or gone.
        signal_process(leader, number)


def signal_process(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def reap(child: int = 0) -> bytes:
    """Reaps ended processes. Returns how the command ended, if it is among them."""
    found = b""
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = b"signal %d\n" % os.WTERMSIG(code) if os.WIFSIGNALED(code) else b"exit %d\n" % os.WEXITSTATUS(code)


def kill_cgroup(cgroup: bytes) -> None:
    try:
        write_to(cgroup + b"/cgroup.kill", b"1")
    except OSError:
        return
    for _ in range(1000):
        reap()
        if is_removed(cgroup):
            return
        select.select([], [], [], 0.005)


def is_removed(cgroup: bytes) -> bool:
    """Removes a cgroup. Fails while it holds processes."""
    try:
        os.rmdir(cgroup)  # noqa: PTH106
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def write_to(path: bytes, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)
