"""Turns a plan into a process: by posix_spawn, or by steps that a fork takes before exec."""

from __future__ import annotations

import ctypes
import os
import resource

from .plan import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `signal` is slow to import.
    import signal as _signal
else:
    import _signal

SHM = b"/dev/shm"
CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_PRIVATE = 2, 4, 1 << 18
IGNORED = (_signal.SIGPIPE, _signal.SIGXFSZ)
"""Signals that Python ignores. A command would inherit that."""


def spawn(plan: Plan) -> int:
    """Starts the command without a fork. Searches PATH like `execvpe`."""
    given = [
        (descriptor, number)
        for descriptor, number in ((plan.stdin, 0), (plan.output, 1), (plan.output, 2))
        if descriptor >= 0
    ]
    given += zip(plan.received, plan.passed, strict=True)
    # Move through unused numbers first, so that no target overwrites a source.
    free = 1 + max(max(pair) for pair in given)
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, free + at) for at, (descriptor, _) in enumerate(given)]
    actions += [(os.POSIX_SPAWN_DUP2, free + at, number) for at, (_, number) in enumerate(given)]
    closing = [(os.POSIX_SPAWN_CLOSE, free + at) for at in range(len(given))]
    refusals: list[OSError] = []
    for path in paths_of(plan.argv[0], plan.environment):
        try:
            return os.posix_spawn(
                path, plan.argv, plan.environment, file_actions=[*actions, *closing], setsid=True, setsigdef=IGNORED
            )
        except OSError as error:
            refusals.append(error)
    # "Cannot be executed" says more than "not found".
    raise max(refusals, key=lambda error: not isinstance(error, FileNotFoundError | NotADirectoryError))


def paths_of(program: bytes, environment: dict[bytes, bytes]) -> list[bytes]:
    if b"/" in program:
        return [program]
    path = environment.get(b"PATH", os.fsencode(os.defpath))
    return [os.path.join(directory, program) for directory in path.split(b":")]  # noqa: PTH118


def pass_on(plan: Plan, worker: int) -> int:
    """Moves received descriptors to the numbers that the command expects. Descriptors in the way, the socket included,
    move first."""
    places = [*plan.received, worker]
    for index, number in enumerate(plan.passed):
        places = [os.dup(place) if place == number and at != index else place for at, place in enumerate(places)]
        if places[index] == number:
            os.set_inheritable(number, True)
        else:
            os.dup2(places[index], number)
    return places[-1]


def cant_enter(directory: bytes) -> str:
    return f"can't enter the directory {directory.decode(errors='replace')!r}"


def private_shm(size: int, libc: ctypes.CDLL) -> None:
    """Mounts a private /dev/shm for this process and its descendants. Does nothing without root."""
    if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(None, SHM, None, MS_PRIVATE, None) == 0:
        libc.mount(b"tmpfs", SHM, b"tmpfs", MS_NOSUID | MS_NODEV, b"mode=1777,size=%d" % size)


def emptied(directory: bytes) -> None:
    """Empties a directory, so that the next command finds nothing in it."""
    try:
        for entry in list(os.scandir(directory)):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)  # noqa: PTH101
                emptied(entry.path)
                os.rmdir(entry.path)  # noqa: PTH106
            else:
                os.unlink(entry.path)  # noqa: PTH108
    except OSError:
        return


def set_limits(plan: Plan) -> None:
    for name, value in plan.limits.items():
        # One second above the soft limit of CPU time, so that the command gets a SIGXCPU before it is killed.
        hard = value + 1 if name == "RLIMIT_CPU" else value
        resource.setrlimit(getattr(resource, name), (value, hard))


def become_user(plan: Plan) -> None:
    if plan.user is not None:
        os.setgroups([])
        os.setresgid(plan.user, plan.user, plan.user)
        os.setresuid(plan.user, plan.user, plan.user)
