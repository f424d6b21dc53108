"""Containment of commands, and the processes that are left of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from foliot.config import Config
from foliot.errors import ConfigurationError
from foliot.worker.executors.processes.containment import Containment, choose
from foliot.worker.executors.processes.launcher_pool import LauncherPool
from tests.support.debian import require
from tests.support.waiting import PATIENCE_SECONDS


def require_means(means: str) -> None:
    """Skips the test where the machine lacks this kind of containment."""
    if means == "bubblewrap":
        require("bwrap", "bubblewrap")
    try:
        choose(Config(containment=means))  # type: ignore[arg-type]
    except ConfigurationError as error:
        pytest.skip(str(error))


@asynccontextmanager
async def launchers_in(containment: Containment) -> AsyncIterator[LauncherPool]:
    """A worker's launchers, without the worker."""
    launchers = LauncherPool(containment)
    try:
        yield launchers
    finally:
        await launchers.close()


def sleepers(mark: str) -> list[psutil.Process]:
    """Processes of the whole machine that mention the mark, in any session, with any parent."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(mark in word for word in process.info["cmdline"] or ())
    ]


def gone(mark: str) -> bool:
    """Waits for killed processes to disappear: the kernel takes a moment."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while sleepers(mark) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    return not sleepers(mark)
