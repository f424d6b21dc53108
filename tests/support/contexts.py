"""The context of an attempt without a worker. Tests can wait for its output."""

from __future__ import annotations

import asyncio

from foliot.model.ids import new_id
from foliot.sdk.context import Context
from foliot.worker.executors.output import CappedOutput
from tests.support.waiting import PATIENCE_SECONDS

LIMIT = 65_536


class KeptContext(Context):
    def __init__(self, *, limit: int = LIMIT, task: str = "test", attempt: int = 1) -> None:
        self._kept = CappedOutput(limit)
        self._watched: list[tuple[bytes, asyncio.Event]] = []
        super().__init__(run_id=new_id(), token=1, attempt=attempt, task=task, on_output=self._keep)

    @property
    def output(self) -> bytes:
        return self._kept.value()

    async def prints(self, expected: bytes, *, seconds: float = PATIENCE_SECONDS) -> None:
        """Returns when the output contains these bytes."""
        if expected not in self.output:
            printed = asyncio.Event()
            self._watched.append((expected, printed))
            async with asyncio.timeout(seconds):
                await printed.wait()

    def _keep(self, chunk: bytes) -> None:
        self._kept.write(chunk)
        for expected, printed in self._watched:
            if not printed.is_set() and expected in self.output:
                printed.set()
