"""Stores output and progress of attempts while they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import none_finished_before, not_finished_before
from foliot.model.log_text import capped
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.arrays import columns
from foliot.store.postgres import Database

decode_json = msgspec.json.Decoder().decode
PART_MAX_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class LogPart:
    run_id: UUID
    token: int
    part: int
    """The position of the chunk in the attempt's output."""
    chunk: bytes


@dataclass(frozen=True, slots=True)
class ProgressNote:
    run_id: UUID
    token: int
    progress: str
    """JSON text."""


@dataclass(frozen=True, slots=True)
class Followed:
    state: RunState
    reason: str | None
    token: int
    attempt: int
    progress: Any


class Logs:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("logs")

    async def write_logs(self, worker_id: UUID, parts: Sequence[LogPart], notes: Sequence[ProgressNote]) -> None:
        given = columns([(p.run_id, p.token, p.part, p.chunk) for p in parts], 4)
        noted = columns([(n.run_id, n.token, n.progress) for n in notes], 3)
        arguments = (worker_id, *given, self._database.clock.sql_now(), *noted)
        await self._database.execute(self._queries["write_logs"], *arguments)

    async def read_logs(self, run_id: UUID, token: int, position: int, *, parts: int) -> bytes:
        """Returns the output from a position up to the first gap, from at most `parts` parts."""
        found = bytearray()
        for part, chunk in await self._database.fetch(
            self._queries["read_logs"],
            run_id=run_id,
            token=token,
            written_from=not_finished_before(run_id),
            position=position,
            limit=parts,
            part_max_bytes=PART_MAX_BYTES,
        ):
            at = position + len(found)
            if part > at:
                break
            found += chunk[at - part :]
        return bytes(found)

    async def read_parts(self, attempts: Sequence[tuple[UUID, int]]) -> dict[tuple[UUID, int], bytes]:
        """Returns the output of each attempt up to the first gap. Attempts without output are left out."""
        found: dict[tuple[UUID, int], bytearray] = {}
        for run_id, token, part, chunk in await self._database.fetch(
            self._queries["read_parts"], *columns(attempts, 2), _earliest(attempts)
        ):
            output = found.setdefault((run_id, token), bytearray())
            if part <= len(output):
                output += chunk[len(output) - part :]
        return {attempt: bytes(output) for attempt, output in found.items()}

    async def keep_streamed(self, attempts: Sequence[tuple[UUID, int]], most_bytes: int) -> None:
        """Stores what these lost attempts had streamed as their output, unless that has been done."""
        if streamed := await self.read_parts(attempts):
            await self.keep_lost_outputs({attempt: capped(text, most_bytes) for attempt, text in streamed.items()})
            await self.delete_logs(list(streamed))

    async def keep_lost_outputs(self, outputs: Mapping[tuple[UUID, int], bytes]) -> None:
        given = columns([(run_id, token, output) for (run_id, token), output in outputs.items()], 3)
        await self._database.execute(self._queries["keep_lost_outputs"], *given, _earliest(list(outputs)))

    async def get_output(self, run_id: UUID, token: int) -> bytes | None:
        output: bytes | None = await self._database.fetch_value(
            self._queries["get_output"], run_id=run_id, token=token, finished_from=not_finished_before(run_id)
        )
        return output

    async def follow_run(self, run_id: UUID) -> Followed | None:
        row = await self._database.fetch_row(
            self._queries["follow_run"], run_id=run_id, finished_from=not_finished_before(run_id)
        )
        return (
            Followed(RunState(row[0]), row[1], row[2], row[3], decode_json(row[4]) if row[4] else None) if row else None
        )

    async def delete_logs(self, attempts: Sequence[tuple[UUID, int]]) -> int:
        return await self._database.execute(self._queries["delete_logs"], *columns(attempts, 2), _earliest(attempts))


def _earliest(attempts: Sequence[tuple[UUID, int]]) -> datetime:
    return none_finished_before([run_id for run_id, _ in attempts])
