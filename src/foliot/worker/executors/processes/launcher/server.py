"""The launcher's main loop: serves one command after another until the worker closes the socket."""

from __future__ import annotations

import _socket
import ctypes
import gc
import os
import select
import sys
import warnings  # noqa: F401  (os.execvpe imports it, which fails inside a sandbox)

from .memory import Memory
from .namespaces import NAMESPACES, OURS, SandboxNamespaces, namespace_of
from .plan import Plan
from .spawn import IGNORED, become_user, cant_enter, emptied, pass_on, private_shm, set_limits, spawn
from .tree import descendants_of, kill_cgroup, reap, signal_group, signal_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `signal` is slow to import.
    import signal as _signal
else:
    import _signal

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
REAP_MILLISECONDS = 500
"""The interval at which ended orphans are reaped."""
WATCH_MILLISECONDS = 20
"""The same interval on kernels without pidfd."""
CHECKS_PER_MEMORY_SUM = 5
"""The memory of all processes is summed at every fifth check of the result, where no cgroup limits it."""
RESULT_MILLISECONDS = 20
"""The interval of checks of the result while memory is limited: it can grow by gigabytes in a second."""
KILL_SECONDS = 0.002
"""How long to wait for killed processes before looking for more."""
DESCRIPTORS_MAX = 64


class Launcher:
    def __init__(self, worker: int, libc: ctypes.CDLL, *, is_outside: bool) -> None:
        self._worker = worker
        self._socket = _socket.socket(fileno=worker)
        self._libc = libc
        self._is_outside = is_outside
        """False in a process namespace, whose first process adopts orphans and takes all with it when it dies."""
        self._memory: Memory | None = None
        self._checks = 0

    def serve(self) -> None:
        # Keeps commands of the same user from attaching to the launcher and tampering with the next command.
        self._libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        if self._is_outside:
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        # Memory that the collector never touches is not copied after a fork.
        gc.disable()
        gc.freeze()
        while (received := receive(self._socket))[0]:
            # A message without descriptors was meant for the previous command, which has ended.
            if received[1]:
                self._run(Plan(received[1]))

    def _run(self, plan: Plan) -> None:
        self._memory, self._checks = Memory(plan) if plan.memory else None, 0
        sandbox = SandboxNamespaces(plan) if plan.wrapper else None
        child = self._start_within(sandbox, plan) if sandbox else self._start(plan)
        # The worker sees the end of the output when the command and its children have closed it.
        plan.close()
        poll = select.poll()
        poll.register(self._worker, select.POLLIN)
        verdict = self._watch_command(child, plan, poll) if child else b""
        is_over = bool(verdict) and not self._is_anything_left(sandbox)
        if verdict and not is_over:
            send(self._worker, verdict)
            verdict = b""
            self._watch_survivors(plan, poll)
        if not is_over:
            # An empty cgroup is left to the worker, which reads its memory events.
            self._end(plan)
        if sandbox:
            if is_over:
                sandbox.end()
            sandbox.close()
        for directory in plan.own_scratch:
            emptied(directory)
        plan.forget()
        send(self._worker, verdict + b"cleared\n")

    def _start(self, plan: Plan) -> int:
        """Starts the command. Returns its process, or 0 on failure."""
        if not plan.needs_fork and not plan.directory:
            return self._spawn(plan)
        launcher, child = os.getpid(), os.fork()
        if child == 0:
            if self._is_outside:
                self._die_with(launcher)
            plan.note_leader(os.getpid())
            self._become(plan)
        return child

    def _spawn(self, plan: Plan) -> int:
        """Does the work of `_become` without a fork. Returns 0 on failure."""
        # The command may kill this launcher before its number is noted.
        plan.note_leader(0)
        try:
            child = spawn(plan)
        except OSError as error:
            self._refuse(f"can't execute {plan.argv[0].decode(errors='replace')!r}", error)
            return 0
        plan.note_leader(child)
        return child

    def _start_within(self, sandbox: SandboxNamespaces, plan: Plan) -> int:
        """Starts the command from an intermediate process: only children of a process that enters a process namespace
        are inside it. This launcher then adopts the command. Returns 0 on failure."""
        if sandbox.refusal:
            send(self._worker, f"refused {sandbox.refusal}\n".encode(errors="replace"))
            return 0
        launcher, between = os.getpid(), os.fork()
        if between == 0:
            self._die_with(launcher)
            try:
                sandbox.enter(self._libc)
                # The process has all capabilities in its namespaces. They end with the exec, or when root becomes
                # nobody.
                self._libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
                child = os.fork() if plan.needs_fork else self._spawn_within(plan)
            except OSError as error:
                os._exit(error.errno or 127)
            if child == 0 and plan.needs_fork:
                self._become(plan)
            plan.note_leader(child)
            os._exit(0)
        number = os.waitstatus_to_exitcode(os.waitpid(between, 0)[1])
        if number:
            why = os.strerror(number) if number > 0 else f"killed by signal {-number}"
            send(self._worker, f"refused can't enter its sandbox: {why}\n".encode())
        return plan.leader

    def _die_with(self, launcher: int) -> None:
        self._libc.prctl(PR_SET_PDEATHSIG, _signal.SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:
            # The launcher died before prctl took effect.
            os._exit(127)

    def _spawn_within(self, plan: Plan) -> int:
        """Runs in the intermediate process, which may change its directory and user. Returns 0 on failure."""
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
        send(self._worker, f"refused {doing}: {reason}\n".encode(errors="replace"))

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
        """How the command ended; empty if the worker ended the attempt."""
        while True:
            ready = [descriptor for descriptor, _ in poll.poll(min(wait, RESULT_MILLISECONDS) if plan.memory else wait)]
            if verdict := reap(child):
                return verdict
            if exceeded := self._exceeded(plan):
                return exceeded
            if self._worker in ready:
                if receive(self._socket)[0] != b"terminate":
                    return b""
                signal_group(child, _signal.SIGTERM)

    def _watch_survivors(self, plan: Plan, poll: select.poll) -> None:
        """Lets surviving processes run until the worker has read their output."""
        while True:
            is_spoken_to = bool(poll.poll(RESULT_MILLISECONDS if plan.memory else REAP_MILLISECONDS))
            reap()
            if self._exceeded(plan):
                return
            if is_spoken_to and receive(self._socket)[0] != b"terminate":
                return

    def _exceeded(self, plan: Plan) -> bytes:
        """The message about a limit that the command exceeds; empty if none."""
        if plan.is_result_too_large:
            return b"exceeded result\n"
        self._checks += 1
        is_due = self._memory is not None and self._checks % CHECKS_PER_MEMORY_SUM == 0
        return b"exceeded memory\n" if is_due and self._memory and self._memory.is_exceeded(self._processes()) else b""

    def _is_anything_left(self, sandbox: SandboxNamespaces | None) -> bool:
        """An outer launcher adopts orphans, so it checks for children. In a namespace, the first process adopts
        them."""
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
        """Kills every process of the command."""
        if plan.cgroup:
            kill_cgroup(plan.cgroup)
        _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGCHLD])
        while found := self._processes():
            # Repeat, since processes may fork meanwhile. The launcher adopts orphans, so none escapes.
            for pid in found:
                signal_process(pid, _signal.SIGKILL)
            _signal.sigtimedwait([_signal.SIGCHLD], KILL_SECONDS)
            reap()
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGCHLD])

    def _processes(self) -> list[int]:
        """Every process of the command. In a namespace: all processes except the first and the launcher."""
        if self._is_outside:
            return descendants_of(os.getpid())
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]  # noqa: PTH208


def main(descriptor: int, role: str) -> None:
    """`role`: `outside` of all namespaces, or in a reused `namespace`."""
    close_all_but(descriptor)
    OURS.update((name, namespace_of("self", name)) for name in NAMESPACES)
    Launcher(descriptor, ctypes.CDLL(None, use_errno=True), is_outside=role == "outside").serve()


def close_all_but(ours: int) -> None:
    """Closes descriptors that leaked from the worker's event loop (uvloop leaks some)."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if (descriptor := int(name)) > 2 and descriptor != ours:
            try:
                os.close(descriptor)
            except OSError:
                # The descriptor of the directory listing itself.
                continue
    os.set_inheritable(ours, False)


def receive(worker: _socket.socket) -> tuple[bytes, list[int]]:
    message, attached, _, _ = worker.recvmsg(64, _socket.CMSG_SPACE(4 * DESCRIPTORS_MAX), _socket.MSG_CMSG_CLOEXEC)
    content = b"".join(
        data for level, kind, data in attached if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS)
    )
    return message, [int.from_bytes(content[at : at + 4], sys.byteorder) for at in range(0, len(content), 4)]


def send(worker: int, message: bytes) -> None:
    try:
        os.write(worker, message)
    except OSError:
        # The worker died. The launcher must still clean up, and sees the end of the socket next.
        return
