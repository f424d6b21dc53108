"""The small program between a worker and its commands: starts one, passes on the request to end, tells how it ended, takes its tree along.

It exists because a worker must not fork: a worker has threads, and code between fork and exec can hang on a lock that one of them holds.
This program has no thread, so it may. It serves one command at a time, and the next one when nothing is left of that, so that none waits
for an interpreter to start. For most it need not even fork: they are spawned, which copies none of our memory and takes half the time. A
fork is for what has limits to set, or a cgroup to enter, before it may begin. It imports next to nothing (`_signal` without the names that
`signal` gives to numbers, say), because there are many of it, and forks of it are cheap as long as it is small.

A command in a sandbox waits for bubblewrap, which makes one with a shell in it that does nothing but be there. What was forked enters the
namespaces of that shell from outside. So nobody in a sandbox has more rights than the command, and how a command ended is asked of the
kernel: bubblewrap tells 137 both for a SIGKILL and for `exit 137`.

It is given one descriptor, a socket that keeps messages apart. For a command the worker sends `run`, with descriptors: PLAN, OUTPUT, and
those that PLAN names, in its order. PLAN holds what to do, as `key=value` texts with a NUL after each (`argv`, `environment`, `descriptor`
come once for each, and so do the words of `wrapper`, which makes the sandbox); its first bytes get the number of the process, for a worker
whose launcher was killed (0 until it is known: then there is a mark in the command's environment to know it by). Then `ask` asks the
command to end, and `kill` means that the attempt is over. The socket's end does too, also by the worker's death. The worker is told
`exit CODE`, `signal NUMBER`, `refused WHY` or `exceeded memory`, and `cleared` once nothing is left of the command: a line each.
"""

from __future__ import annotations

import _socket
import ctypes
import gc
import os
import resource
import select
import sys
import warnings  # noqa: F401  (what runs a program by its name imports it, and can't from inside a sandbox)

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
NAMESPACES = {
    "cgroup": 0x02000000, "ipc": 0x08000000, "mnt": 0x00020000, "net": 0x40000000, "pid": 0x20000000, "user": 0x10000000, "uts": 0x04000000,
}  # fmt: skip
"""The flags of setns."""
OURS: dict[str, str] = {}
"""The namespaces that we are in."""
IGNORED = (_signal.SIGPIPE, _signal.SIGXFSZ)
"""By Python. What is ignored would stay so in a command."""
KEEPER = (b"--", b"/bin/sh", b"-c", b"echo; read -r nothing")
"""What a sandbox is made with. It says that the sandbox is there, and ends with us."""
REAP_MILLISECONDS = 500
"""How often orphans that ended are buried."""
WATCH_MILLISECONDS = 20
"""The same where the kernel has no pidfd to wait for."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MEMORY_MILLISECONDS = 100
"""How often the memory of all processes is added up, where no cgroup does it."""
KILL_SECONDS = 0.002
"""How long to wait for what was killed before looking for more."""
DESCRIPTORS_MAX = 64
LEADER_BYTES = 20
TOLD_BYTES = 4096
PROCESSES_OF_A_SANDBOX = 2
"""The first of its process namespace, and the shell."""


class Plan:
    def __init__(self, descriptors: list[int]) -> None:
        self.file, self.output, *self.received = descriptors
        self.argv: list[bytes] = []
        self.wrapper: list[bytes] = []
        self.mark: dict[bytes, bytes] = {}
        self.environment: dict[bytes, bytes] = {}
        self.limits: dict[str, int] = {}
        self.passed: list[int] = []
        """The numbers under which the command is to find what was received."""
        self.directory = self.cgroup = b""
        self.stdin = self.entrance = -1
        self.memory = 0
        self.user: int | None = None
        text = os.pread(self.file, os.fstat(self.file).st_size, LEADER_BYTES)
        for entry in text.split(b"\0")[:-1]:
            key, _, value = entry.partition(b"=")
            self._take(key.decode(), value)

    def _take(self, key: str, value: bytes) -> None:
        if key in ("argv", "wrapper"):
            getattr(self, key).append(value)
        elif key in ("environment", "mark"):
            name, _, content = value.partition(b"=")
            getattr(self, key)[name] = content
        elif key.startswith("RLIMIT_"):
            self.limits[key] = int(value)
        elif key == "descriptor":
            self.passed.append(int(value))
        elif key in ("stdin", "entrance"):
            # For the start only, not passed on: they come after those that are.
            setattr(self, key, self.received.pop())
        elif key in ("memory", "user"):
            setattr(self, key, int(value))
        elif key in ("directory", "cgroup"):
            setattr(self, key, value)

    @property
    def takes_a_fork(self) -> bool:
        """There is something to be done that a command must do to itself before it begins."""
        return bool(self.limits) or self.entrance >= 0

    @property
    def leader(self) -> int:
        """The process that became the command, if it was noted."""
        return int(os.pread(self.file, LEADER_BYTES, 0).strip(b"\0") or 0)

    def note_leader(self, process: int) -> None:
        os.pwrite(self.file, b"%d" % process, 0)

    def close(self) -> None:
        for descriptor in (self.file, self.output, *self.received, self.stdin, self.entrance):
            if descriptor >= 0:
                os.close(descriptor)


class Sandbox:
    """The namespaces of a shell, which ends with us."""

    def __init__(self, plan: Plan) -> None:
        self._ours, theirs = _socket.socketpair()
        said = os.memfd_create("foliot")
        places = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate((theirs.fileno(), theirs.fileno(), said))]
        self._process = self._flags = 0
        self._door = -1
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
            self._find_door()
        else:
            lines = os.pread(said, TOLD_BYTES, 0).decode(errors="replace").split("\n")
            self.refusal = "; ".join(filter(None, lines)) or "bubblewrap made no sandbox"
        os.close(said)

    @property
    def is_empty(self) -> bool:
        """Whoever entered it is our child and not one of its own. It must be buried, too, or the sandbox can't end."""
        return descendants_of(os.getpid()) == [self._process, self._first, self._keeper]

    def enter(self, libc: ctypes.CDLL) -> None:
        """All at once: to a user who is not root they open together only. The next fork is in there too."""
        if libc.setns(self._door, self._flags) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def end(self) -> None:
        """One that is empty, by its first process."""
        signal_process(self._first, _signal.SIGKILL)
        try:
            os.waitpid(self._process, 0)
        except ChildProcessError:
            # It had ended by itself.
            return

    def close(self) -> None:
        self._ours.close()
        if self._door >= 0:
            os.close(self._door)

    def _find_door(self) -> None:
        """Before the fork: what a child does costs it pages of its own."""
        try:
            self._door = os.pidfd_open(self._keeper)
            for name, flag in NAMESPACES.items():
                if namespace_of(self._keeper, name) != OURS[name]:
                    self._flags |= flag
        except OSError as error:
            self.refusal = f"can't find the way into its sandbox: {error.strerror}"


class Launcher:
    def __init__(self, worker: int, libc: ctypes.CDLL, *, is_outside: bool) -> None:
        self._worker = worker
        self._socket = _socket.socket(fileno=worker)
        self._libc = libc
        self._is_outside = is_outside
        """And not in a process namespace, where orphans come to its first process and all die with that."""

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
        sandbox = Sandbox(plan) if plan.wrapper else None
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

    def _start_within(self, sandbox: Sandbox, plan: Plan) -> int:
        """By one in between: who enters a process namespace is not in it, but its children are, and become ours. 0 if it fails."""
        if sandbox.refusal:
            tell(self._worker, f"refused {sandbox.refusal}\n".encode(errors="replace"))
            return 0
        launcher, between = os.getpid(), os.fork()
        if between == 0:
            self._die_with(launcher)
            try:
                sandbox.enter(self._libc)
                # It has all rights in its namespaces, and root has even more. They end with the exec, and for root with becoming nobody.
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
        """By who has nothing else to do, and so may go to the directory of the command and become its user. 0 if it fails."""
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
            ready = [descriptor for descriptor, _ in poll.poll(min(wait, MEMORY_MILLISECONDS) if plan.memory else wait)]
            if verdict := bury(child):
                return verdict
            if plan.memory and uses_more_than(plan.memory, self._processes()):
                return b"exceeded memory\n"
            if self._worker in ready:
                if receive(self._socket)[0] != b"ask":
                    return b""
                signal_group(child, _signal.SIGTERM)

    def _watch_the_rest(self, plan: Plan, poll: select.poll) -> None:
        """What the command left behind may be there until the worker has read its output."""
        while True:
            is_spoken_to = bool(poll.poll(MEMORY_MILLISECONDS if plan.memory else REAP_MILLISECONDS))
            bury()
            if plan.memory and uses_more_than(plan.memory, self._processes()):
                return
            if is_spoken_to and receive(self._socket)[0] != b"ask":
                return

    def _is_anything_left(self, sandbox: Sandbox | None) -> bool:
        """Orphans come to us, so that without a child there is nothing; but for a namespace, where they go to its first process."""
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
            # Again and again: a process may fork while its like is looked for. What has no parent left comes to us, so none gets away.
            for pid in found:
                signal_process(pid, _signal.SIGKILL)
            _signal.sigtimedwait([_signal.SIGCHLD], KILL_SECONDS)
            bury()
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGCHLD])

    def _processes(self) -> list[int]:
        """All that came from the command. In a namespace of our own that is all there is, but for the first and ourselves."""
        if self._is_outside:
            return descendants_of(os.getpid())
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]  # noqa: PTH208


def main(descriptor: int, role: str) -> None:
    """`outside` of all namespaces, or in a `namespace` that is used again."""
    close_all_but(descriptor)
    OURS.update((name, namespace_of("self", name)) for name in NAMESPACES)
    Launcher(descriptor, ctypes.CDLL(None, use_errno=True), is_outside=role == "outside").serve()


def namespace_of(process: int | str, name: str) -> str:
    return os.readlink(f"/proc/{process}/ns/{name}")  # noqa: PTH115


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
    content = b"".join(data for level, kind, data in attached if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS))
    return message, [int.from_bytes(content[at : at + 4], sys.byteorder) for at in range(0, len(content), 4)]


def pass_on(plan: Plan, worker: int) -> int:
    """Gives what was received the numbers that it is to have. Whatever is in the way, the socket also, moves first."""
    places = [*plan.received, worker]
    for index, number in enumerate(plan.passed):
        places = [os.dup(place) if place == number and at != index else place for at, place in enumerate(places)]
        if places[index] == number:
            os.set_inheritable(number, True)
        else:
            os.dup2(places[index], number)
    return places[-1]


def spawn(plan: Plan) -> int:
    """Without a fork. A program without a slash is looked for as `execvpe` does."""
    given = [(descriptor, number) for descriptor, number in ((plan.stdin, 0), (plan.output, 1), (plan.output, 2)) if descriptor >= 0]
    given += zip(plan.received, plan.passed, strict=True)
    # By way of numbers that nobody has, or one would be in the way of another.
    free = 1 + max(max(pair) for pair in given)
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, free + at) for at, (descriptor, _) in enumerate(given)]
    actions += [(os.POSIX_SPAWN_DUP2, free + at, number) for at, (_, number) in enumerate(given)]
    closing = [(os.POSIX_SPAWN_CLOSE, free + at) for at in range(len(given))]
    refusals: list[OSError] = []
    for path in paths_of(plan.argv[0], plan.environment):
        try:
            return os.posix_spawn(path, plan.argv, plan.environment, file_actions=[*actions, *closing], setsid=True, setsigdef=IGNORED)
        except OSError as error:
            refusals.append(error)
    # That it can't be executed here says more than that it is not there.
    raise max(refusals, key=lambda error: not isinstance(error, FileNotFoundError | NotADirectoryError))


def paths_of(program: bytes, environment: dict[bytes, bytes]) -> list[bytes]:
    if b"/" in program:
        return [program]
    return [os.path.join(directory, program) for directory in environment.get(b"PATH", os.fsencode(os.defpath)).split(b":")]  # noqa: PTH118


def cant_enter(directory: bytes) -> str:
    return f"can't enter the directory {directory.decode(errors='replace')!r}"


def become_user(plan: Plan) -> None:
    if plan.user is not None:
        os.setgroups([])
        os.setresgid(plan.user, plan.user, plan.user)
        os.setresuid(plan.user, plan.user, plan.user)


def set_limits(plan: Plan) -> None:
    for name, value in plan.limits.items():
        # One second more than the soft limit of CPU time, so that the command is told (SIGXCPU) before it is killed.
        hard = value + 1 if name == "RLIMIT_CPU" else value
        resource.setrlimit(getattr(resource, name), (value, hard))


def uses_more_than(limit: int, pids: list[int]) -> bool:
    """The quick look counts what processes share after a fork once for each; only where that is too much is it added up exactly."""
    return sum(map(unshared_memory, pids)) > limit and sum(map(share_of_memory, pids)) > limit


def unshared_memory(pid: int) -> int:
    """In bytes, without what is in files."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123
            words = file.read().split()
    except OSError:
        return 0
    return (int(words[1]) - int(words[2])) * PAGE_BYTES


def share_of_memory(pid: int) -> int:
    """The same, with an equal part of what it shares with others."""
    found = 0
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123
            for line in file:
                if line.startswith(b"Pss_Anon:"):
                    found = int(line.split()[1]) * 1024
    except PermissionError:
        return unshared_memory(pid)
    except OSError:
        # It ended while it was looked at.
        return 0
    return found or unshared_memory(pid)


def tell(worker: int, message: bytes) -> None:
    try:
        os.write(worker, message)
    except OSError:
        # The worker died. That ends the socket too, and we are still needed for what comes then.
        return


def bury(child: int = 0) -> bytes:
    """Whatever has ended; says how the command did, if that is among it."""
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
        bury()
        if is_removed(cgroup):
            return
        select.select([], [], [], 0.005)


def is_removed(cgroup: bytes) -> bool:
    """A cgroup can be removed when nothing is in it any more."""
    try:
        os.rmdir(cgroup)  # noqa: PTH106
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def descendants_of(pid: int) -> list[int]:
    children = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children") as file:  # noqa: PTH123
                children += [int(word) for word in file.read().split()]
    except OSError:
        # It ended while it was looked at.
        return children
    return children + [deeper for found in children for deeper in descendants_of(found)]


def signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except OSError:
        # Not yet the leader of a group, or gone.
        signal_process(leader, number)


def signal_process(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        return


def write_to(path: bytes, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)
