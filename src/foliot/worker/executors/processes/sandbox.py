"""Chooses a command's sandbox: `none` (runs as the worker's user), `process` (limits) or `bubblewrap` (namespaces and
limits).

The configuration sets the weakest sandbox and the highest limits. A command may request a stricter sandbox, never a
weaker one. If a sandbox is not available, the command fails: it never runs without its sandbox.

`bubblewrap` gives a read-only file system, an empty /tmp and /run, only harmless devices, no view of other processes,
and no network unless it is requested and allowed. If the worker is root, the command becomes `nobody`. It is not a
virtual machine: the kernel is shared, and a command can read most files that the worker's user can read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.payloads import SandboxFields, SandboxKind
from foliot.worker.executors.processes.containment import Containment

KINDS: tuple[SandboxKind, ...] = ("none", "process", "bubblewrap")
NOBODY = 65_534
MEBIBYTE = 1_048_576
SCRATCH_BYTES = 256 * MEBIBYTE
"""The size of the private /tmp, which is in memory."""
LIMITS = {
    "memory_mb": ("RLIMIT_AS", MEBIBYTE),
    "cpu_seconds": ("RLIMIT_CPU", 1),
    "file_size_mb": ("RLIMIT_FSIZE", MEBIBYTE),
    "processes": ("RLIMIT_NPROC", 1),
}
EMPTIED = ("/tmp", "/run")  # noqa: S108
SCRATCH = (*EMPTIED, "/dev/shm")  # noqa: S108
"""The directories that a command in bubblewrap may write to. All are in memory."""


class SandboxUnavailable(Exception):
    """The command's sandbox is not available on this worker."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    kind: SandboxKind
    limits: dict[str, int] = field(default_factory=dict)
    """Limits for each process, by their names in setrlimit."""
    tree_limits: dict[str, int] = field(default_factory=dict)
    """Limits for all processes together: `memory` in bytes, `pids`."""
    wrapper: tuple[str, ...] = ()
    user: int | None = None
    scratch: tuple[str, ...] = ()
    """In-memory directories that are private to the command."""


def sandbox_for(asked: SandboxFields, config: Config, containment: Containment, hidden: Sequence[Path] = ()) -> Sandbox:
    """The sandbox of a command. `hidden`: paths that a bubblewrap sandbox must not show."""
    limits = limits_for(asked, config)
    kind = kind_for(asked, config, has_limits=bool(limits))
    tree_limits = {}
    if "RLIMIT_AS" in limits:
        tree_limits["memory"] = limits["RLIMIT_AS"]
    if "RLIMIT_NPROC" in limits and "pids" in containment.controllers:
        tree_limits["pids"] = limits.pop("RLIMIT_NPROC")
    if "RLIMIT_NPROC" in limits and kind == "process" and os.geteuid() == 0:
        advice = "use the sandbox bubblewrap, or run the worker as another user, or where it can create cgroups"
        raise SandboxUnavailable(f"the kernel does not limit the `processes` of root: {advice}")
    if kind != "bubblewrap":
        if asked.network is False:
            raise Invalid(
                f"`network` = false needs the sandbox bubblewrap; this command runs in {kind!r}",
                field="network",
            )
        return Sandbox(kind, limits, tree_limits)
    if containment.bubblewrap is None:
        raise SandboxUnavailable("the sandbox bubblewrap is not available: bubblewrap does not work on this worker")
    if asked.network and not config.sandbox_network:
        raise Invalid("`network` = true is not allowed: sandbox_network is off", field="network")
    scratch_bytes = min(SCRATCH_BYTES, tree_limits.get("memory", SCRATCH_BYTES))
    wrapper = (containment.bubblewrap, *namespaces(hidden, scratch_bytes, has_network=bool(asked.network)))
    return Sandbox(kind, limits, tree_limits, wrapper, NOBODY if os.geteuid() == 0 else None, SCRATCH)


def kind_for(asked: SandboxFields, config: Config, *, has_limits: bool) -> SandboxKind:
    least: SandboxKind = "process" if has_limits and config.sandbox == "none" else config.sandbox
    kind = asked.sandbox or least
    if KINDS.index(kind) < KINDS.index(least):
        raise Invalid(f"`sandbox`: {kind!r} is too weak here; use {least!r} or stricter", field="sandbox")
    return kind


def limits_for(asked: SandboxFields, config: Config) -> dict[str, int]:
    found = {}
    for name, (limit, unit) in LIMITS.items():
        most, wanted = getattr(config, f"sandbox_{name}"), getattr(asked, name)
        if most and wanted and wanted > most:
            raise Invalid(f"`{name}`: {wanted} is more than the {most} that sandbox_{name} allows", field=name)
        if value := wanted or most:
            found[limit] = value * unit
    return found


def namespaces(hidden: Sequence[Path], scratch_bytes: int, *, has_network: bool) -> list[str]:
    arguments = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent"]
    if not has_network:
        arguments.append("--unshare-net")
    arguments += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for directory in SCRATCH:
        arguments += ["--perms", "1777", "--size", str(scratch_bytes), "--tmpfs", directory]
    # /dev is in memory too, and the command's user owns it.
    arguments += ["--remount-ro", "/dev"]
    for path in hidden:
        if any(path.is_relative_to(directory) for directory in EMPTIED):
            continue
        if path.is_dir():
            arguments += ["--tmpfs", str(path), "--remount-ro", str(path)]
        elif path.is_file():
            arguments += ["--ro-bind", os.devnull, str(path)]
    return arguments
