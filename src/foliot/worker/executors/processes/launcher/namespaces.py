"""The bubblewrap sandbox of one command, seen as a set of namespaces to enter."""

from __future__ import annotations

import _socket
import ctypes
import os

from .plan import Plan
from .tree import descendants_of, signal_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Slow to load.
    import signal as _signal
else:
    import _signal

NAMESPACES = {
    "cgroup": 0x02000000, "ipc": 0x08000000, "mnt": 0x00020000, "net": 0x40000000, "pid": 0x20000000,
    "user": 0x10000000, "uts": 0x04000000,
}  # fmt: skip
"""The flags of setns."""
OURS: dict[str, str] = {}
"""The namespaces of the launcher."""
KEEPER = (b"--", b"/bin/sh", b"-c", b"echo; read -r nothing")
"""The idle shell inside the sandbox. It reports that the sandbox is ready, and ends with the launcher."""
PROCESSES_OF_A_SANDBOX = 2
"""The first process of the namespace, and the shell."""
ERROR_BYTES = 4096


class SandboxNamespaces:
    """The namespaces of an idle shell, which ends with the launcher."""

    def __init__(self, plan: Plan) -> None:
        self._ours, theirs = _socket.socketpair()
        said = os.memfd_create("foliot")
        places = [
            (os.POSIX_SPAWN_DUP2, descriptor, number)
            for number, descriptor in enumerate((theirs.fileno(), theirs.fileno(), said))
        ]
        self._process = self._flags = 0
        self._pidfd = -1
        try:
            self._process = os.posix_spawn(plan.wrapper[0], [*plan.wrapper, *KEEPER], plan.mark, file_actions=places)
        except OSError as error:
            os.write(said, f"can't execute {plan.wrapper[0].decode(errors='replace')!r}: {error.strerror}".encode())
        theirs.close()
        is_there = self._ours.recv(1) == b"\n"
        found = descendants_of(self._process) if is_there else []
        self.refusal = ""
        if len(found) == PROCESSES_OF_A_SANDBOX:
            self._first, self._keeper = found
            self._find_namespaces()
        else:
            lines = os.pread(said, ERROR_BYTES, 0).decode(errors="replace").split("\n")
            self.refusal = "; ".join(filter(None, lines)) or "bubblewrap made no sandbox"
        os.close(said)

    @property
    def is_empty(self) -> bool:
        """Processes that entered are children of the launcher. They must be reaped too, or the sandbox cannot end."""
        return descendants_of(os.getpid()) == [self._process, self._first, self._keeper]

    def enter(self, libc: ctypes.CDLL) -> None:
        """Enters all namespaces at once, since other users than root cannot enter them one by one. Forks are inside
        too."""
        if libc.setns(self._pidfd, self._flags) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def end(self) -> None:
        """Ends an empty sandbox by killing its first process."""
        signal_process(self._first, _signal.SIGKILL)
        try:
            os.waitpid(self._process, 0)
        except ChildProcessError:
            # It has already ended.
            return

    def close(self) -> None:
        self._ours.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)

    def _find_namespaces(self) -> None:
        """Runs before the fork, since the fork would pay for it with copied pages."""
        try:
            self._pidfd = os.pidfd_open(self._keeper)
            for name, flag in NAMESPACES.items():
                if namespace_of(self._keeper, name) != OURS[name]:
                    self._flags |= flag
        except OSError as error:
            self.refusal = f"can't find the namespaces of its sandbox: {error.strerror}"


def namespace_of(process: int | str, name: str) -> str:
    return os.readlink(f"/proc/{process}/ns/{name}")  # noqa: PTH115
