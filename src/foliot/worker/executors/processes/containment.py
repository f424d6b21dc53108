"""Chooses how to hold a command's process tree together, so that all of it ends with the attempt.

In order of strength: a process namespace made by bubblewrap, which the kernel empties however the attempt or the worker
ends; a cgroup (version 2), killed as a whole; a launcher that adopts orphans and kills them. No process can leave a
namespace. A process that may write to other cgroups can leave its own. A process can escape a launcher if it leaves the
command's session, clears its environment and kills the launcher.

Where a cgroup with these controllers is available, limits of memory and process count hold for the whole tree.
Elsewhere the launcher adds up the tree's memory ten times a second (`launcher/memory.py` says what counts), and
setrlimit limits the number of processes of the user.

A launcher and its namespace serve one command after another; the next command starts when nothing is left of the
previous one. Mounts that a command of root made in its namespace stay for the next command, as they would without a
namespace. Sandboxes are never shared.

bubblewrap forbids gaining privileges, so `sudo` does not work inside. A worker whose commands need it sets `containment
= "cgroup"`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from foliot.clock import SystemClock
from foliot.config import Config
from foliot.errors import ConfigurationError
from foliot.model.ids import new_id
from foliot.worker.executors.processes.sweeper import MARK_VARIABLE

PROBE_SECONDS = 5.0
STALE_SECONDS = 60
LIMIT_FILES = {"memory": "memory.max", "pids": "pids.max"}
NAMESPACE = ("--unshare-pid", "--die-with-parent", "--dev-bind", "/", "/", "--proc", "/proc")


class Means(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    CGROUP = "cgroup"
    LAUNCHER = "launcher"


@dataclass(frozen=True, slots=True)
class Containment:
    means: Means
    bubblewrap: str | None = None
    """The path of the program, if it works here."""
    cgroup: Path | None = None
    """The parent of each command's cgroup, if it is writable."""
    controllers: frozenset[str] = frozenset()
    """Which of `memory` and `pids` a command's cgroup can limit."""
    why_weak: str = ""
    """Why no stronger means is available. Empty if this is the strongest."""
    mark: str = field(default_factory=lambda: str(new_id()))
    """Marks the worker's processes for `orphan_cleanup.py`."""

    @property
    def marking(self) -> dict[str, str]:
        """The environment variable that holds the mark."""
        return {MARK_VARIABLE: self.mark}

    @property
    def tree_limits(self) -> str:
        """A description of the limits for all processes of a command together."""
        memory = "memory by a cgroup" if "memory" in self.controllers else "memory by a check ten times a second"
        return f"{memory}, processes by {'a cgroup' if 'pids' in self.controllers else 'a limit on their user'}"

    def namespace(self, own_shm_bytes: int = 0) -> tuple[str, ...]:
        """The bubblewrap command that makes a process namespace, with a private /dev/shm of this size if requested, and
        changes nothing else. Commands of a root worker stay root."""
        shm = ("--perms", "1777", "--size", str(own_shm_bytes), "--tmpfs", "/dev/shm") if own_shm_bytes else ()  # noqa: S108
        return (self.bubblewrap or "bwrap", *NAMESPACE, *shm, *(("--cap-add", "ALL") if os.geteuid() == 0 else ()))


def choose(config: Config) -> Containment:
    """The configured means, or the strongest one available. Runs bubblewrap once to see whether it works."""
    bubblewrap, no_bubblewrap = find_bubblewrap()
    cgroup, controllers, no_cgroup = find_cgroup()
    wanted = config.containment
    if bubblewrap and wanted in ("auto", "bubblewrap"):
        return Containment(Means.BUBBLEWRAP, bubblewrap, cgroup, controllers)
    if cgroup and wanted in ("auto", "cgroup"):
        return Containment(Means.CGROUP, bubblewrap, cgroup, controllers)
    if wanted in ("auto", "launcher"):
        why = f"{no_bubblewrap}; {no_cgroup}" if wanted == "auto" else "configured so"
        return Containment(Means.LAUNCHER, bubblewrap, cgroup, controllers, why_weak=why)
    raise ConfigurationError(
        f"containment = {wanted!r} is not available: {no_bubblewrap if wanted == 'bubblewrap' else no_cgroup}"
    )


def find_bubblewrap() -> tuple[str | None, str]:
    """The program if it works here, else the reason."""
    found = shutil.which("bwrap")
    if found is None:
        return None, "bubblewrap is not installed (Debian package `bubblewrap`)"
    command = [found, *NAMESPACE, "true"]
    try:
        tried = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"bubblewrap does not work here: {error}"
    if tried.returncode != 0:
        # In many containers: no user namespaces, or no permission to mount /proc.
        return None, f"bubblewrap does not work here: {tried.stderr.decode(errors='replace').strip()}"
    return found, ""


def find_cgroup() -> tuple[Path | None, frozenset[str], str]:
    """A cgroup below which this worker may create others, their controllers, and the reason if there is none. It is the
    worker's own cgroup, or the parent if systemd has delegated that."""
    try:
        mounted = re.search(r"^(?:\S+ ){4}(\S+) .* - cgroup2 ", Path("/proc/self/mountinfo").read_text(), re.MULTILINE)
        ours = re.search(r"^0::(/.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    except OSError as error:
        return None, frozenset(), f"cgroups are not available: {error}"
    if mounted is None or ours is None:
        return None, frozenset(), "cgroups of version 2 are not mounted"
    directory = Path(mounted[1]) / ours[1].lstrip("/")
    around = (directory.parent,) if is_delegated(directory.parent) else ()
    found = [try_cgroup(candidate) for candidate in (directory, *around)]
    # The one with the most controllers; our own cgroup wins ties.
    return max(found, key=lambda one: (one[0] is not None, len(one[1])))


def is_delegated(directory: Path) -> bool:
    """Whether systemd delegates this cgroup to its service (`Delegate=yes` with `DelegateSubgroup=`)."""
    try:
        return os.getxattr(directory, "user.delegate") == b"1"
    except OSError:
        return False


def try_cgroup(directory: Path) -> tuple[Path | None, frozenset[str], str]:
    enable_limits(directory)
    remove_stale_cgroups(directory)
    probe = directory / f"foliot-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError as error:
        return None, frozenset(), f"cgroup {directory} is not writable: {error.strerror}"
    can_kill = (probe / "cgroup.kill").exists()
    limits = frozenset(name for name, file in LIMIT_FILES.items() if (probe / file).exists())
    probe.rmdir()
    return (directory, limits, "") if can_kill else (None, frozenset(), "killing a whole cgroup needs Linux 5.14")


def remove_stale_cgroups(directory: Path) -> None:
    """Removes cgroups of killed workers. The kernel refuses to remove one in use; a new one is too young."""
    before = SystemClock().now().timestamp() - STALE_SECONDS
    for path in directory.glob("foliot-*"):
        with suppress(OSError):
            if path.stat().st_ctime < before:
                path.rmdir()


def enable_limits(directory: Path) -> None:
    """Enables the controllers for child cgroups. Except in the root cgroup, the kernel refuses if the cgroup holds
    processes."""
    for name in LIMIT_FILES:
        with suppress(OSError):
            (directory / "cgroup.subtree_control").write_text(f"+{name}")
