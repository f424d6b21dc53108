"""The launcher's life: one command after the other, for as long as the worker holds the other end of the socket."""

from __future__ import annotations

import _socket
import ctypes
import gc
import os
import select
import sys
import warnings  # noqa: F401  (what runs a program by its name imports it, and can't from inside a sandbox)

from .memory import Memory
from .namespaces import NAMESPACES, OURS, SandboxNamespaces, namespace_of
from .plan import Plan
from .spawn import IGNORED, become_user, cant_enter, emptied, pass_on, private_shm, set_limits, spawn
from .tree import bury, descendants_of, kill_cgroup, signal_group, signal_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Slow to load.
    import signal as _signal
else:
    import _signal

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
REAP_MILLISECONDS = 500
"""How often orphans that ended are buried."""
WATCH_MILLISECONDS = 20
"""The same where the kernel has no pidfd to wait for."""
MEMORY_LOOKS = 5
"""At each so many looks at the result, the memory of all processes is added up, where no cgroup does it."""
RESULT_MILLISECONDS = 20
"""How often the result is looked at while a command may use only so much memory: it can grow by gigabytes in a
second."""
KILL_SECONDS = 0.002
"""How long to wait for what was killed before looking for more."""
DESCRIPTORS_MAX = 64


class Launcher:
    def __init__(self, worker: int, libc: ctypes.CDLL, *, is_outside: bool) -> None:
        self._worker = worker
        self._socket = _socket.socket(fileno=worker)
        self._libc = libc
        self._is_outside = is_outside
        """And not in a process namespace, where orphans come to its first process and all die with that."""
        self._memory: Memory | None = None
        self._looks = 0

    def serve(self) -> None:
        # A command of the same user can't attach to it, and so not make it serve the next one otherwise than it should.
        self._libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        if self._is_outside:
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # What is never looked at again is not copied after a fork.
        gc.disable()
        gc.freeze()
        while (received := receive(self._socket))[0]:
            # Without descriptors it is a word for the command before, which had ended by itself.
            if received[1]:
                self._run(Plan(received[1]))

    def _run(self, plan: Plan) -> None:
        self._memory, self._looks = Memory(plan) if plan.memory else None, 0
        sandbox = SandboxNamespaces(plan) if plan.wrapper else None
        child = self._start_within(sandbox, plan) if sandbox else self._start(plan)
        # Whoever reads the output sees its end when the command and its children have closed it.
        plan.close()
        poll = select.poll()
        poll.register(self._worker, select.POLLIN)
        verdict = self._watch_command(child, plan, poll) if child else b""
        is_over = bool(verdict) and not self._is_anything_left(sandbox)
        if verdict and not is_over:
            tell(self._worker, verdict)
            verdict = b""
            self._watch_the_rest(plan, poll)
        if not is_over:
            # A cgroup that has emptied by itself is left to the worker, who asks it what happened.
            self._end(plan)
        if sandbox:
            if is_over:
                sandbox.end()
            sandbox.close()
        for directory in plan.own_scratch:
            emptied(directory)
        plan.forget()
        tell(self._worker, verdict + b"cleared\n")

    def _start(self, plan: Plan) -> int:
        """0 if it fails."""
        if not plan.takes_a_fork and not plan.directory:
            return self._spawn(plan)
        launcher, child = os.getpid(), os.fork()
        if child == 0:
            if self._is_outside:
                self._die_with(launcher)
            plan.note_leader(os.getpid())
            self._become(plan)
        return child

    def _spawn(self, plan: Plan) -> int:
        """What `_become` does in a fork, without one. 0 if it fails."""
        # Before we know its number, it may have killed us.
        plan.note_leader(0)
        try:
            child = spawn(plan)
        except OSError as error:
            self._refuse(f"can't execute {plan.argv[0].decode(errors='replace')!r}", error)
            return 0
        plan.note_leader(child)
        return child

    def _start_within(self, sandbox: SandboxNamespaces, plan: Plan) -> int:
        """By one in between: who enters a process namespace is not in it, but its children are, and become ours. 0 if
        it fails."""
        if sandbox.refusal:
            tell(self._worker, f"refused {sandbox.refusal}\n".encode(errors="replace"))
            return 0
        launcher, between = os.getpid(), os.fork()
        if between == 0:
            self._die_with(launcher)
            try:
                sandbox.enter(self._libc)
                # It has all rights in its namespaces, and root has even more. They end with the exec, and for root with
                # becoming nobody.
                self._libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                child = os.fork() if plan.takes_a_fork else self._spawn_within(plan)
            except OSError as error:
                os._exit(error.errno or 127)
            if child == 0 and plan.takes_a_fork:
                self._become(plan)
            plan.note_leader(child)
            os._exit(0)
        number = os.waitstatus_to_exitcode(os.waitpid(between, 0)[1])
        if number:
            why = os.strerror(number) if number > 0 else f"killed by signal {-number}"
            tell(self._worker, f"refused can't enter its sandbox: {why}\n".encode())
        return plan.leader

    def _die_with(self, launcher: int) -> None:
        self._libc.prctl(PR_SET_PDEATHSIG, _signal.SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:
            # It died before that took effect.
            os._exit(127)

    def _spawn_within(self, plan: Plan) -> int:
        """By who has nothing else to do, and so may go to the directory of the command and become its user. 0 if it
        fails."""
        try:
            if plan.directory:
                os.chdir(plan.directory)
        except OSError as error:
            self._refuse(cant_enter(plan.directory), error)
            return 0
        become_user(plan)
        return self._spawn(plan)

    def _become(self, plan: Plan) -> None:
        """Turns this process into the command."""
        doing = "can't start it"
        try:
            os.setsid()
            if plan.entrance >= 0:
                doing = "can't enter its cgroup"
                os.write(plan.entrance, b"0")
            if plan.stdin >= 0:
                os.dup2(plan.stdin, 0)
            os.dup2(plan.output, 1)
            os.dup2(plan.output, 2)
            self._worker = pass_on(plan, self._worker)
            if plan.directory:
                doing = cant_enter(plan.directory)
                os.chdir(plan.directory)
            if plan.private_shm:
                private_shm(plan.private_shm, self._libc)
            doing = "can't set its limits"
            set_limits(plan)
            become_user(plan)
            doing = f"can't execute {plan.argv[0].decode(errors='replace')!r}"
            for number in IGNORED:
                _signal.signal(number, _signal.SIG_DFL)
            os.execvpe(plan.argv[0], plan.argv, plan.environment)  # noqa: S606
        except (OSError, ValueError) as error:
            self._refuse(doing, error)
        os._exit(127)

    def _refuse(self, doing: str, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else error
        tell(self._worker, f"refused {doing}: {reason}\n".encode(errors="replace"))

    def _watch_command(self, child: int, plan: Plan, poll: select.poll) -> bytes:
        try:
            ended = os.pidfd_open(child)
        except (OSError, AttributeError):
            return self._wait_for(child, plan, poll, WATCH_MILLISECONDS)
        poll.register(ended, select.POLLIN)
        verdict = self._wait_for(child, plan, poll, REAP_MILLISECONDS)
        poll.unregister(ended)
        os.close(ended)
        return verdict

    def _wait_for(self, child: int, plan: Plan, poll: select.poll, wait: int) -> bytes:
        """How it ended; nothing if its attempt did."""
        while True:
            ready = [descriptor for descriptor, _ in poll.poll(min(wait, RESULT_MILLISECONDS) if plan.memory else wait)]
            if verdict := bury(child):
                return verdict
            if exceeded := self._exceeded(plan):
                return exceeded
            if self._worker in ready:
                if receive(self._socket)[0] != b"ask":
                    return b""
                signal_group(child, _signal.SIGTERM)

    def _watch_the_rest(self, plan: Plan, poll: select.poll) -> None:
        """What the command left behind may be there until the worker has read its output."""
        while True:
            is_spoken_to = bool(poll.poll(RESULT_MILLISECONDS if plan.memory else REAP_MILLISECONDS))
            bury()
            if self._exceeded(plan):
                return
            if is_spoken_to and receive(self._socket)[0] != b"ask":
                return

    def _exceeded(self, plan: Plan) -> bytes:
        """What to tell of a command that uses more than it may."""
        if plan.is_result_too_large:
            return b"exceeded result\n"
        self._looks += 1
        is_due = self._memory is not None and self._looks % MEMORY_LOOKS == 0
        return b"exceeded memory\n" if is_due and self._memory and self._memory.is_exceeded(self._processes()) else b""

    def _is_anything_left(self, sandbox: SandboxNamespaces | None) -> bool:
        """Orphans come to us, so that without a child there is nothing; but for a namespace, where they go to its first
        process."""
        if sandbox:
            return not sandbox.is_empty
        if not self._is_outside:
            return bool(self._processes())
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def _end(self, plan: Plan) -> None:
        """Everything that came from the command dies."""
        if plan.cgroup:
            kill_cgroup(plan.cgroup)
        _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGCHLD])
        while found := self._processes():
            # Again and again: a process may fork while its like is looked for. What has no parent left comes to us, so
            # none gets away.
            for pid in found:
                signal_process(pid, _signal.SIGKILL)
            _signal.sigtimedwait([_signal.SIGCHLD], KILL_SECONDS)
            bury()
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGCHLD])

    def _processes(self) -> list[int]:
        """All that came from the command. In a namespace of our own that is all there is, but for the first and
        ourselves."""
        if self._is_outside:
            return descendants_of(os.getpid())
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]  # noqa: PTH208


def main(descriptor: int, role: str) -> None:
    """`outside` of all namespaces, or in a `namespace` that is used again."""
    close_all_but(descriptor)
    OURS.update((name, namespace_of("self", name)) for name in NAMESPACES)
    Launcher(descriptor, ctypes.CDLL(None, use_errno=True), is_outside=role == "outside").serve()


def close_all_but(ours: int) -> None:
    """What the worker's event loop left open by mistake (uvloop does), or we would hold it for as long as we live."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if (descriptor := int(name)) > 2 and descriptor != ours:
            try:
                os.close(descriptor)
            except OSError:
                # The one that the directory was read with.
                continue
    os.set_inheritable(ours, False)


def receive(worker: _socket.socket) -> tuple[bytes, list[int]]:
    message, attached, _, _ = worker.recvmsg(64, _socket.CMSG_SPACE(4 * DESCRIPTORS_MAX), _socket.MSG_CMSG_CLOEXEC)
    content = b"".join(
        data for level, kind, data in attached if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)
    )
    return message, [int.from_bytes(content[at : at + 4], sys.byteorder) for at in range(0, len(content), 4)]


def tell(worker: int, message: bytes) -> None:
    try:
        os.write(worker, message)
    except OSError:
        # The worker died. That ends the socket too, and we are still needed for what comes then.
        return
