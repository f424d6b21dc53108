"""Reads ended runs and attempts with the output of those that were lost with their worker.

A scheduler node stores what such an attempt had streamed some time after the attempt has ended, and never if the node
dies before. Readers that pass each row only once, as the archive does, store it themselves and then read what stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.model.archive import Kind, Place
from foliot.store.archives import Archives
from foliot.store.logs import Logs

TOGETHER = 20
"""Attempts whose output is in memory at the same time."""


class SettledRows:
    def __init__(self, archives: Archives, logs: Logs, output_max_bytes: int) -> None:
        self._archives = archives
        self._logs = logs
        self._output_max_bytes = output_max_bytes

    async def list_rows(self, kind: Kind, after: Place, until: datetime) -> Sequence[Mapping[str, Any]]:
        """As `Archives.list_rows`."""
        rows = await self._archives.list_rows(kind, after, until)
        lost = [_attempt_of(row) for row in rows if _lacks_output(row)]
        if not lost:
            return rows
        for start in range(0, len(lost), TOGETHER):
            await self._logs.keep_streamed(lost[start : start + TOGETHER], self._output_max_bytes)
        return await self._archives.list_rows(kind, after, until)


def _lacks_output(row: Mapping[str, Any]) -> bool:
    return "lost" in (row.get("outcome"), row.get("reason")) and "output" in row and row["output"] is None


def _attempt_of(row: Mapping[str, Any]) -> tuple[UUID, int]:
    return row["run_id" if "outcome" in row else "id"], row["token"]
