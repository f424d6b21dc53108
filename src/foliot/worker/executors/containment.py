"""By what means the tree of a command's processes is held together, so that all of it ends with the attempt.

In order of strength: a process namespace made by bubblewrap, which the kernel empties when the attempt or the worker ends, however they do;
a cgroup (version 2), killed as one; a launcher that adopts orphans and kills what it finds. Nothing leaves a namespace; a cgroup is left by
who may write to others; the launcher by a process that gets out of the command's session and kills the launcher.

bubblewrap forbids gaining rights (`sudo` does nothing in there); a worker whose commands need that is told `containment = "cgroup"`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from foliot.config import Config
from foliot.errors import ConfigurationError

PROBE_SECONDS = 5.0
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
    why_weak: str = ""
    """Why it is no stronger one."""
    mark: Mapping[str, str] = field(default_factory=dict)
    """What a worker's guard knows its processes by; see `guard.py`."""

    def namespace(self) -> tuple[str, ...]:
        """What makes a process namespace with everything else as it is. A worker that is root lets its commands be."""
        return (self.bubblewrap or "bwrap", *NAMESPACE, *(("--cap-add", "ALL") if os.geteuid() == 0 else ()))


def choose(config: Config) -> Containment:
    """The strongest there is here, or the one that is configured. Asks bubblewrap once whether it works."""
    bubblewrap, no_bubblewrap = find_bubblewrap()
    cgroup, no_cgroup = find_cgroup()
    wanted = config.containment
    if bubblewrap and wanted in ("auto", "bubblewrap"):
        return Containment(Means.BUBBLEWRAP, bubblewrap, cgroup)
    if cgroup and wanted in ("auto", "cgroup"):
        return Containment(Means.CGROUP, bubblewrap, cgroup)
    if wanted in ("auto", "launcher"):
        why = f"{no_bubblewrap}; {no_cgroup}" if wanted == "auto" else "configured so"
        return Containment(Means.LAUNCHER, bubblewrap, cgroup, why_weak=why)
    raise ConfigurationError(f"containment = {wanted!r} can't be had: {no_bubblewrap if wanted == 'bubblewrap' else no_cgroup}")


def find_bubblewrap() -> tuple[str | None, str]:
    """The program, if it works here; and why not."""
    found = shutil.which("bwrap")
    if found is None:
        return None, "there is no bubblewrap (the Debian package `bubblewrap`)"
    command = [found, *NAMESPACE, "true"]
    try:
        tried = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"bubblewrap does not work here: {error}"
    if tried.returncode != 0:
        # In many containers: no user namespaces, or a /proc that may not be mounted anew.
        return None, f"bubblewrap does not work here: {tried.stderr.decode(errors='replace').strip()}"
    return found, ""


def find_cgroup() -> tuple[Path | None, str]:
    """Our own cgroup, if we may make others below it; and why not."""
    try:
        mounted = re.search(r"^(?:\S+ ){4}(\S+) .* - cgroup2 ", Path("/proc/self/mountinfo").read_text(), re.MULTILINE)
        ours = re.search(r"^0::(/.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    except OSError as error:
        return None, f"no cgroups here: {error}"
    if mounted is None or ours is None:
        return None, "no cgroups of version 2 here"
    directory = Path(mounted[1]) / ours[1].lstrip("/")
    probe = directory / f"foliot-probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError as error:
        return None, f"cgroup {directory} can't be written to: {error.strerror}"
    can_kill = (probe / "cgroup.kill").exists()
    probe.rmdir()
    return (directory, "") if can_kill else (None, "cgroups can't be killed as one before Linux 5.14")
