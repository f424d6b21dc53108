"""The small program between a worker and a command: starts it, passes on the request to end, tells how it ended, and takes its tree along.

Run as `python -I -S launcher.py CONTROL STATUS OUTPUT PLAN`, four descriptors. It exists because a worker must not fork: a worker has
threads, and code between fork and exec can hang on a lock that one of them holds. This program has no thread, so it may, and sets the
limits there. It imports next to nothing, since every command waits for it.

- PLAN holds what to do, as `key=value` texts with a NUL after each (`argv` and `environment` come once for each word).
- STATUS gets one line each: `started PID`, then `exit CODE`, `signal NUMBER` or `refused WHY`.
- CONTROL: any byte asks the command to end. Its end means that the attempt is over, or that the worker died: everything is killed.
"""

from __future__ import annotations

import os
import select
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
REAP_MILLISECONDS = 500
"""How often orphans that ended are buried."""
WATCH_MILLISECONDS = 20
"""The same where the kernel has no pidfd to wait for."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MEMORY_MILLISECONDS = 100
"""How often the memory of all processes is added up, where no cgroup does it."""


class Plan:
    def __init__(self, text: bytes) -> None:
        self.argv: list[bytes] = []
        self.environment: dict[bytes, bytes] = {}
        self.limits: dict[str, int] = {}
        self.descriptors: list[int] = []
        self.directory = self.cgroup = b""
        self.adopts = False
        self.entrance = -1
        self.memory = 0
        self.user: int | None = None
        for entry in text.split(b"\0")[:-1]:
            key, _, value = entry.partition(b"=")
            self._take(key.decode(), value)

    def _take(self, key: str, value: bytes) -> None:
        if key == "argv":
            self.argv.append(value)
        elif key == "environment":
            name, _, content = value.partition(b"=")
            self.environment[name] = content
        elif key.startswith("RLIMIT_"):
            self.limits[key] = int(value)
        elif key == "descriptor":
            self.descriptors.append(int(value))
        elif key == "directory":
            self.directory = value
        elif key == "cgroup":
            self.cgroup = value
        elif key == "adopts":
            self.adopts = True
        elif key in ("entrance", "memory", "user"):
            setattr(self, key, int(value))


def main() -> None:
    control, status, output, planned = (int(word) for word in sys.argv[1:5])
    plan = Plan(read_all(planned))
    keep_from_the_command(plan.descriptors)
    if plan.adopts:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    launcher, child = os.getpid(), os.fork()
    if child == 0:
        become(plan, status, output, launcher)
    tell(status, b"started %d\n" % child)
    # Whoever reads the output sees its end when the command and its children have closed it.
    os.close(output)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    watch(child, control, status, plan)
    end(plan, child)


def keep_from_the_command(passed: list[int]) -> None:
    """All descriptors but the three and those passed on: ours, and what the worker's event loop left open by mistake (uvloop does)."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if (descriptor := int(name)) > 2 and descriptor not in passed:
            try:
                os.set_inheritable(descriptor, False)
            except OSError:
                # The one that the directory was read with.
                continue


def become(plan: Plan, status: int, output: int, launcher: int) -> None:
    """Turns this process into the command."""
    doing = "can't start it"
    try:
        os.setsid()
        if plan.adopts:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != launcher:
                # It died before that took effect.
                os._exit(127)
        if plan.entrance >= 0:
            doing = "can't enter its cgroup"
            os.write(plan.entrance, b"0")
        os.dup2(output, 1)
        os.dup2(output, 2)
        if plan.directory:
            doing = f"can't enter the directory {plan.directory.decode(errors='replace')!r}"
            os.chdir(plan.directory)
        doing = "can't set its limits"
        set_limits(plan)
        doing = f"can't execute {plan.argv[0].decode(errors='replace')!r}"
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            # Python ignores these two, and what is ignored stays so in a command.
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(plan.argv[0], plan.argv, plan.environment)  # noqa: S606
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        os.write(status, f"refused {doing}: {reason}\n".encode(errors="replace"))
    os._exit(127)


def set_limits(plan: Plan) -> None:
    if plan.limits:
        import resource

        for name, value in plan.limits.items():
            # One second more than the soft limit of CPU time, so that the command is told (SIGXCPU) before it is killed.
            hard = value + 1 if name == "RLIMIT_CPU" else value
            resource.setrlimit(getattr(resource, name), (value, hard))
    if plan.user is not None:
        os.setgroups([])
        os.setresgid(plan.user, plan.user, plan.user)
        os.setresuid(plan.user, plan.user, plan.user)


def watch(child: int, control: int, status: int, plan: Plan) -> None:
    """Returns when the control pipe has ended, or more memory was used than may be."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    try:
        ended = os.pidfd_open(child)
        poll.register(ended, select.POLLIN)
        wait = REAP_MILLISECONDS
    except (OSError, AttributeError):
        ended, wait = -1, WATCH_MILLISECONDS
    if plan.memory:
        wait = min(wait, MEMORY_MILLISECONDS)
    is_over = False
    while True:
        ready = [descriptor for descriptor, _ in poll.poll(wait)]
        if not is_over and (verdict := reap(child)) is not None:
            is_over = True
            wait = MEMORY_MILLISECONDS if plan.memory else REAP_MILLISECONDS
            if ended >= 0:
                poll.unregister(ended)
            tell(status, verdict)
        if plan.memory and uses_more_than(plan.memory, processes(plan)):
            tell(status, b"exceeded memory\n")
            return
        if control in ready:
            if not os.read(control, 64):
                return
            if not is_over:
                signal_group(child, signal.SIGTERM)


def processes(plan: Plan) -> list[int]:
    """All that came from the command. In a namespace of our own that is all there is, but for the first and ourselves."""
    if plan.adopts:
        return descendants_of(os.getpid())
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]  # noqa: PTH208


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


def tell(status: int, line: bytes) -> None:
    try:
        os.write(status, line)
    except OSError:
        # The worker died. That ends the control pipe too, and we are still needed for what comes then.
        return


def reap(child: int) -> bytes | None:
    """Buries whatever has ended; how the command did, if that is among it."""
    found = None
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = b"signal %d\n" % os.WTERMSIG(code) if os.WIFSIGNALED(code) else b"exit %d\n" % os.WEXITSTATUS(code)


def end(plan: Plan, child: int) -> None:
    """Everything that came from the command dies. In a process namespace it does so with the end of this process."""
    if plan.cgroup:
        kill_cgroup(plan.cgroup, child)
    elif plan.adopts:
        while descendants := descendants_of(os.getpid()):
            # Again and again: a process may fork while its like is looked for. What has no parent left comes to us, so none gets away.
            for pid in descendants:
                signal_process(pid, signal.SIGKILL)
            reap(child)
            select.select([], [], [], 0.002)


def kill_cgroup(cgroup: bytes, child: int) -> None:
    try:
        write_to(cgroup + b"/cgroup.kill", b"1")
    except OSError:
        return
    for _ in range(1000):
        reap(child)
        if is_removed(cgroup):
            return
        select.select([], [], [], 0.005)


def is_removed(cgroup: bytes) -> bool:
    """A cgroup can be removed when nothing is in it any more."""
    try:
        os.rmdir(cgroup)  # noqa: PTH106
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


def prctl(option: int, value: int) -> None:
    import ctypes  # slow to load, and needed where there is no process namespace only

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=True) as file:
        return file.read()


def write_to(path: bytes, text: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main()
