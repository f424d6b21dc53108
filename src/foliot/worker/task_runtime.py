"""The threads, processes and launchers that a worker's tasks run in."""

from __future__ import annotations

from foliot.config import Config
from foliot.worker.executors.processes.containment import choose
from foliot.worker.executors.processes.launcher_pool import LauncherPool
from foliot.worker.executors.processes.orphan_cleanup import OrphanCleanup
from foliot.worker.executors.processes.process_pool import ProcessPool
from foliot.worker.executors.threads import TaskThreads


class TaskRuntime:
    def __init__(self, config: Config, *, slots: int) -> None:
        self.containment = choose(config)
        self.threads = TaskThreads(slots)
        self.launchers = LauncherPool(self.containment)
        self.processes = ProcessPool(self.launchers)
        self._orphan_cleanup = OrphanCleanup(self.containment.mark)

    async def start(self) -> None:
        await self._orphan_cleanup.start()

    async def close(self) -> None:
        await self.processes.close()
        await self.launchers.close()
        await self._orphan_cleanup.stop()
        self.threads.close()
