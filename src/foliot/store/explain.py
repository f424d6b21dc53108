"""Reads what decides whether a run or a queue waits. `model/explanation.py` puts it into words."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model import explanation
from foliot.model.concurrency import Concurrency
from foliot.model.explanation import COUNT_MAX, Explanation, Gate, summed_up
from foliot.model.namespace import bare
from foliot.model.rate_limit import RateLimit
from foliot.model.run import RunOptions
from foliot.store import queries
from foliot.store.postgres import Database, Record

SHOWN = 10
decode_options = msgspec.json.Decoder(RunOptions).decode


class Explain:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("explain")

    async def run(self, run_id: UUID) -> Explanation | None:
        """Returns None if there is no live run with this id."""
        row = await self._database.fetch_row(self._queries["explain_run"], run_id=run_id, now=self._now())
        if row is None:
            return None
        options = decode_options(row["options"]) if row["options"] else RunOptions()
        kind = row["task"] if row["is_parent"] else "run"
        if row["is_parent"]:
            gates = [await self._children(row)]
        elif row["state"] == "running":
            gates = [await self._worker(row)]
        else:
            gates = await self._gates(row, options)
        summary = summed_up(gates, "it may start at any moment: it is next in its queue")
        return Explanation(str(row["id"]), kind, row["name"] or row["step"], row["state"], summary, gates)

    async def queue(self, name: str, task: str = "") -> Explanation:
        row = await self._line(name, task, COUNT_MAX * 2**40)
        pauses = await self._pauses(name, task)
        gates = [
            *pauses,
            explanation.queue_limit_gate(row),
            explanation.worker_gate(row, name, task),
            explanation.depth_gate(row),
        ]
        return Explanation(
            bare(name),
            "queue",
            bare(name),
            "paused" if pauses else "active",
            summed_up(gates, f"{row['before']} of its runs are ready"),
            gates,
        )

    async def _gates(self, row: Record, options: RunOptions) -> list[Gate]:
        """The gates in the order in which a run passes them."""
        gates = [
            explanation.cancelled_gate(row),
            await self._dependencies(row),
            explanation.condition_gate(row, options),
            None if row["awaits"] else explanation.due_gate(row),
            explanation.signal_gate(row, options),
            explanation.function_gate(row),
            await self._overlap(row),
        ]
        if options.concurrency is not None:
            gates.append(await self._concurrency(row, options.concurrency))
        if options.rate is not None:
            gates.append(await self._rate(row, options.rate))
        gates += await self._pauses(row["queue"], row["task"])
        gates.append(await self._circuit(row))
        line = await self._line(row["queue"], row["task"], row["rank"])
        gates += [
            explanation.queue_limit_gate(line),
            explanation.worker_gate(line, row["queue"], row["task"]),
            explanation.expiry_gate(row),
            explanation.line_gate(row, line),
        ]
        return [gate for gate in gates if gate is not None]

    async def _dependencies(self, row: Record) -> Gate | None:
        if row["state"] != "waiting" or row["awaits"]:
            return None
        upstream = await self._database.fetch(self._queries["explain_upstream"], run_id=row["id"], limit=SHOWN)
        return explanation.dependencies_gate(row, upstream)

    async def _children(self, row: Record) -> Gate:
        children = await self._database.fetch(self._queries["explain_children"], run_id=row["id"], limit=SHOWN)
        return explanation.children_gate(children)

    async def _overlap(self, row: Record) -> Gate | None:
        if row["held_by"] != "overlap":
            return None
        other = await self._database.fetch_row(self._queries["explain_overlap"], job_id=row["job_id"], run_id=row["id"])
        return explanation.overlap_gate(other)

    async def _concurrency(self, row: Record, limit: Concurrency) -> Gate:
        found = await self._database.fetch_row(
            self._queries["explain_concurrency"], key=limit.key, rank=row["rank"], most=COUNT_MAX
        )
        taken, holders, before = found if found is not None else (0, [], 0)
        return explanation.concurrency_gate(row, limit, taken, holders, before)

    async def _rate(self, row: Record, limit: RateLimit) -> Gate:
        found = await self._database.fetch_row(
            self._queries["explain_rate"],
            key=limit.key,
            period_seconds=limit.period_seconds,
            rank=row["rank"],
            most=COUNT_MAX,
            now=self._now(),
        )
        started, free_at, before = found if found is not None else (0, None, 0)
        return explanation.rate_gate(row, limit, started, free_at, before)

    async def _pauses(self, queue: str, task: str) -> list[Gate]:
        rows = await self._database.fetch(self._queries["explain_pauses"], queue=queue, task=task, now=self._now())
        return [explanation.pause_gate(*row) for row in rows]

    async def _circuit(self, row: Record) -> Gate | None:
        found = await self._database.fetch_row(self._queries["explain_circuit"], task=row["task"])
        return None if found is None else explanation.circuit_gate(row, found)

    async def _line(self, queue: str, task: str, rank: int) -> Record:
        return await self._database.fetch_row(
            self._queries["explain_queue"], queue=queue, task=task, rank=rank, most=COUNT_MAX, now=self._now()
        )

    async def _worker(self, row: Record) -> Gate:
        found = await self._database.fetch_row(
            self._queries["explain_worker"], worker_id=row["worker_id"], now=self._now()
        )
        return explanation.running_gate(row, found)

    def _now(self) -> datetime | None:
        return self._database.clock.sql_now()
