"""By what means the tree of a command's processes is held together, so that all of it ends with the attempt.

In order of strength: a process namespace made by bubblewrap, which the kernel empties when the attempt or the worker
ends, however they do; a cgroup (version 2), killed as one; a launcher that adopts orphans and kills what it finds.
Nothing leaves a namespace; a cgroup is left by who may write to others; the launcher by a process that gets out of the
command's session, sheds its environment and kills the launcher.

Limits of memory and of the number of processes hold for the whole tree where a cgroup with these controllers can be
made. Elsewhere the launcher adds up the memory of the tree, ten times a second (`launcher/memory.py` says what counts),
and the number of processes is one of the user's, as setrlimit has it.

A launcher, and the namespace that it is in, serve one command after the other: the next one begins when nothing is left
of the one before. What a command of root mounted in its namespace is there for the next one, as it would be without a
namespace. Sandboxes are never shared.

bubblewrap forbids gaining rights (`sudo` does nothing in there); a worker whose commands need that is told `containment
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
LEFT_BEHIND_SECONDS = 60
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
    """Where the program is, if it works here."""
    cgroup: Path | None = None
    """The cgroup below which each command gets one of its own, if it may be written to."""
    controllers: frozenset[str] = frozenset()
    """Of `memory` and `pids`: what such a cgroup limits for all processes in it together."""
    why_weak: str = ""
    """Why it is no stronger one."""
    mark: str = field(default_factory=lambda: str(new_id()))
    """What a worker's guard knows its processes by; see `guard.py`."""

    @property
    def marking(self) -> dict[str, str]:
        """What the environment of those processes has of it."""
        return {MARK_VARIABLE: self.mark}

    @property
    def tree_limits(self) -> str:
        """In words: what limits all processes of a command together."""
        memory = "memory by a cgroup" if "memory" in self.controllers else "memory by a look ten times a second"
        return f"{memory}, processes by {'a cgroup' if 'pids' in self.controllers else 'those of their user'}"

    def namespace(self, own_shm_bytes: int = 0) -> tuple[str, ...]:
        """What makes a process namespace with everything else as it is, but for a /dev/shm of this size if one is
        wanted. A worker that is root lets its commands be."""
        shm = ("--perms", "1777", "--size", str(own_shm_bytes), "--tmpfs", "/dev/shm") if own_shm_bytes else ()  # noqa: S108
        return (self.bubblewrap or "bwrap", *NAMESPACE, *shm, *(("--cap-add", "ALL") if os.geteuid() == 0 else ()))


def choose(config: Config) -> Containment:
    """The strongest there is here, or the one that is configured. Asks bubblewrap once whether it works."""
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
        f"containment = {wanted!r} can't be had: {no_bubblewrap if wanted == 'bubblewrap' else no_cgroup}"
    )


def find_bubblewrap() -> tuple[str | None, str]:
    """The program, if it works here; and why not."""
    found = shutil.which("bwrap")
    if found is None:
        return None, "there is no bubblewrap (the Debian package `bubblewrap`)"
    command = [found, *NAMESPACE, "true"]
    try:
        tried = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"bubblewrap does not work here: {error}"
    if tried.returncode != 0:
        # In many containers: no user namespaces, or a /proc that may not be mounted anew.
        return None, f"bubblewrap does not work here: {tried.stderr.decode(errors='replace').strip()}"
    return found, ""


def find_cgroup() -> tuple[Path | None, frozenset[str], str]:
    """Where we may make cgroups, what those limit; and why not. Our own, or the one around it where systemd has given
    us that."""
    try:
        mounted = re.search(r"^(?:\S+ ){4}(\S+) .* - cgroup2 ", Path("/proc/self/mountinfo").read_text(), re.MULTILINE)
        ours = re.search(r"^0::(/.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    except OSError as error:
        return None, frozenset(), f"no cgroups here: {error}"
    if mounted is None or ours is None:
        return None, frozenset(), "no cgroups of version 2 here"
    directory = Path(mounted[1]) / ours[1].lstrip("/")
    around = (directory.parent,) if is_delegated(directory.parent) else ()
    found = [tried_cgroup(candidate) for candidate in (directory, *around)]
    # The one that limits most; of equals our own.
    return max(found, key=lambda one: (one[0] is not None, len(one[1])))


def is_delegated(directory: Path) -> bool:
    """Whether systemd has handed this cgroup over to its service (`Delegate=yes` with `DelegateSubgroup=`)."""
    try:
        return os.getxattr(directory, "user.delegate") == b"1"
    except OSError:
        return False


def tried_cgroup(directory: Path) -> tuple[Path | None, frozenset[str], str]:
    enable_limits(directory)
    remove_left_behind(directory)
    probe = directory / f"foliot-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError as error:
        return None, frozenset(), f"cgroup {directory} can't be written to: {error.strerror}"
    can_kill = (probe / "cgroup.kill").exists()
    limits = frozenset(name for name, file in LIMIT_FILES.items() if (probe / file).exists())
    probe.rmdir()
    return (
        (directory, limits, "") if can_kill else (None, frozenset(), "cgroups can't be killed as one before Linux 5.14")
    )


def remove_left_behind(directory: Path) -> None:
    """Cgroups of workers that were killed. One that is in use can't be removed; one that is about to be is younger."""
    before = SystemClock().now().timestamp() - LEFT_BEHIND_SECONDS
    for path in directory.glob("foliot-*"):
        with suppress(OSError):
            if path.stat().st_ctime < before:
                path.rmdir()


def enable_limits(directory: Path) -> None:
    """For the cgroups below. The kernel refuses it where processes are in this one itself, but for the first of all."""
    for name in LIMIT_FILES:
        with suppress(OSError):
            (directory / "cgroup.subtree_control").write_text(f"+{name}")
