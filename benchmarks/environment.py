"""The machine on which the figures were measured, as far as it is visible from inside."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks.bench import Bench

SHOWN = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "shared_buffers",
    "max_wal_size",
    "wal_level",
    "jit",
    "max_connections",
)


async def describe(bench: Bench) -> dict[str, Any]:
    settings = {name: await bench.session.fetchval("select current_setting($1)", name) for name in SHOWN}
    return {
        "scenario": "environment",
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "fdatasync_per_second": round(bench.disk.usual_syncs),
        "postgres": settings,
        "size": "tiny" if bench.is_tiny else "full" if bench.is_full else "usual",
    }


def _commit() -> str:
    asked = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()
