"""Becomes a PostgreSQL program that may run here and that does not outlive its owner.

    python -I -S launcher.py OWNER_PID DIRECTORY DATA SOCKETS PROGRAM [ARGUMENT ...]

Stand-alone (standard library only), because it must be single-threaded to enter a user namespace and must not touch the
owner's process.

PostgreSQL refuses to run as root, and initdb as a user without a name. Such a user enters a user namespace in which it
is called `nobody`: files keep their owner, and no user, mode or parent directory is changed. Where namespaces are
forbidden (Docker's seccomp profile), root gives the directories to the real `nobody` and becomes it. Everybody else
stays who they are.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import sys
from pathlib import Path
from typing import NoReturn

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
NOBODY = 65534
FAILED = 71  # EX_OSERR


def main(owner: int, directory: Path, data: Path, sockets: Path, command: list[str]) -> None:
    # Python's own handler would turn an early stop into a traceback, and a shell's background job starts with SIGINT
    # ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        become_somebody(directory, data, sockets)
        stop_with_owner(owner)
    check_reach(directory, data, sockets, Path(command[0]))
    os.execv(command[0], command)  # noqa: S606


def become_somebody(directory: Path, data: Path, sockets: Path) -> None:
    root = os.geteuid() == 0
    if not root and has_name(os.geteuid()):
        return
    nobody = find_nobody()
    if namespace_works(nobody):
        if root:
            give([directory], [data, sockets], giver=nobody, taker=(0, 0))
        enter_namespace(nobody)
    elif root:
        group = pwd.getpwuid(nobody).pw_gid if has_name(nobody) else nobody
        # A directory that others may pass needs no new owner.
        private = [] if directory.stat().st_mode & 0o001 else [directory]
        give(private, [data, sockets], giver=0, taker=(nobody, group))
        os.setgroups([])
        os.setgid(group)
        os.setuid(nobody)
    else:
        fail(
            f"PostgreSQL can't run as user id {os.geteuid()}, which has no entry in /etc/passwd, and user namespaces "
            f"are forbidden here. Add an entry for it, or set FOLIOT_DATABASE_URL to a PostgreSQL of yours"
        )


def has_name(user: int) -> bool:
    try:
        pwd.getpwuid(user)
    except KeyError:
        return False
    return True


def find_nobody() -> int:
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError:
        # An image without `nobody`: initdb asks for a user with a name and not root, no more.
        return next((entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid != 0), NOBODY)


def namespace_works(user: int) -> bool:
    """Tried in a child, because half a way in there is no way back."""
    child = os.fork()
    if child == 0:
        try:
            enter_namespace(user)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def enter_namespace(user: int) -> None:
    outer_user, outer_group = os.geteuid(), os.getegid()
    library = ctypes.CDLL(None, use_errno=True)
    if library.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    # The kernel's rule: groups of an unprivileged namespace can be mapped only once setgroups is off.
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{user} {outer_group} 1", encoding="ascii")


def give(directories: list[Path], trees: list[Path], *, giver: int, taker: tuple[int, int]) -> None:
    """Changes the owner of what `giver` owns, and of nothing else: what belongs to a third user stays theirs."""
    for path in directories:
        if path.stat().st_uid == giver:
            os.chown(path, *taker)
    for tree in trees:
        if tree.stat().st_uid != giver:
            continue
        # The root of a tree last: it is what the next start looks at, should this one be killed on the way.
        for parent, children, files in os.walk(tree):
            for name in children + files:
                os.chown(Path(parent, name), *taker, follow_symlinks=False)
        os.chown(tree, *taker)


def stop_with_owner(owner: int) -> None:
    """SIGINT is a fast shutdown. Set only now, because a change of user clears it."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT) != 0:
        fail("prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != owner:
        fail("the process that wanted PostgreSQL is gone")


def check_reach(directory: Path, data: Path, sockets: Path, program: Path) -> None:
    who = f"PostgreSQL runs as user id {os.geteuid()} here and"
    if not os.access(program, os.X_OK):
        fail(
            f"{who} can't run {program}: install Foliot where others may read it, or set FOLIOT_PG_BIN, or run as "
            f"another user"
        )
    for path, mode in ((directory, os.X_OK), (data, os.R_OK | os.W_OK | os.X_OK), (sockets, os.W_OK | os.X_OK)):
        if not os.access(path, mode):
            fail(
                f"{who} can't use {path}: it, or a directory above it, belongs to another user. Set FOLIOT_DATA to a "
                "directory whose parents it may pass (such as /var/lib/foliot), or run Foliot as the owner"
            )


def fail(message: str) -> NoReturn:
    sys.stderr.write(f"foliot: {message}\n")
    sys.exit(FAILED)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), sys.argv[5:])
