"""Random workflows, and claimers that run them through the store without worker processes: late, out of order, in
batches, with losses."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.outcome import Ending, Outcome
from foliot.model.run import NO_OPTIONS, Claim, NewRun
from foliot.model.states import RunState
from foliot.model.workflow import Workflow, check, plan
from foliot.sdk.context import Context
from foliot.store.store import Store
from foliot.store.upstream_results import UPSTREAM_MAX_BYTES, Before
from foliot.submission.child_runs import ChildRuns
from foliot.worker.executors.workflow import map_items, workflow
from foliot.worker.identity import WorkerIdentity
from foliot.worker.upstream_results import apply_upstream
from tests.support.runs import claim_runs, find_stuck
from tests.support.workflow_oracle import Given, Seen

RULES = (
    "all_success", "all_success", "all_success", "all_done", "all_failed", "one_success", "one_failed", "none_failed",
    "none_failed_min_one_success", "always",
)  # fmt: skip
TASKS = ["step", "map", "workflow", "wait"]
LOOKING = 0.1
"""Interval of the search for stuck runs, which is slow."""
SEEN = """
select step, state, reason, error ->> 'message' as message, started_at, finished_at, id from foliot.history
    where parent_id = $1
order by created_at, id
"""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A workflow as submitted, and as the oracle sees it."""

    definition: dict[str, Any]
    given: list[Given]

    @property
    def fails_fast(self) -> bool:
        return bool(self.definition["on_failure"] == "fail_fast")


def draw(chance: random.Random, *, most: int = 60) -> Drawn:
    number = chance.randint(1, most)
    failing = chance.choice((0.0, 0.03, 0.15, 0.4))
    breadth = chance.choice((1, 3, 8, number))
    order = list(range(number))
    steps: list[dict[str, Any]] = []
    given: list[Given] = []
    for place in order:
        key = f"s{place}"
        before = chance.sample(
            order[max(0, place - breadth) : place], k=min(place, breadth, chance.choice((0, 1, 1, 1, 2, 3)))
        )
        fails = chance.random() < failing
        payload: dict[str, Any] = {"fails": fails, "retries": int(chance.random() < 0.05)}
        step: dict[str, Any] = {
            "key": key,
            "task": "step",
            "queue": "default",
            "payload": payload,
            "after": [f"s{n}" for n in before],
        }
        step["rule"] = chance.choice(RULES) if before else "all_success"
        if chance.random() < 0.05:
            step["delay_seconds"] = chance.choice((0.001, 0.05))
        if chance.random() < 0.05:
            items = chance.randint(0, 12)
            payload["failing_items"] = (
                chance.sample(range(items), k=chance.randint(1, items)) if items and fails else []
            )
            fails = bool(payload["failing_items"])
            payload["fails"] = False
            step["map"] = {"range": {"stop": items}, "on_failure": chance.choice(("continue", "fail_fast"))}
            step["map"]["max_concurrency"] = chance.randint(1, 12)
        elif chance.random() < 0.03:
            inner = {"key": "only", "task": "step", "queue": "default", "payload": payload}
            step |= {"task": "workflow", "payload": {"steps": [inner]}}
        steps.append(step)
        given.append(Given(key, tuple(step["after"]), step["rule"], "failed" if fails else "succeeded"))
    if chance.random() < 0.2:
        steps.append(
            {"key": "teardown", "task": "step", "queue": "default", "teardown": True, "payload": {"fails": False}}
        )
        given.append(Given("teardown", tuple(f"s{n}" for n in order), "always", "succeeded"))
    chance.shuffle(steps)
    return Drawn({"steps": steps, "on_failure": chance.choice(("continue", "continue", "fail_fast"))}, given)


async def insert(store: Store, definition: dict[str, Any]) -> UUID:
    asked = msgspec.convert(definition, Workflow)
    run = NewRun(new_id(), "workflow", "default", payload=msgspec.json.encode(asked).decode())
    await store.workflows.insert_workflow(run, plan(check(asked)), asked.on_failure)
    return run.id


async def seen_of(sql: Any, workflow_id: UUID) -> dict[str, Seen]:
    rows = await sql.fetch(SEEN, workflow_id)
    found = {
        row["step"]: Seen(row["state"], row["reason"], row["message"], row["started_at"], row["finished_at"])
        for row in rows
    }
    assert len(found) == len(rows), "a step has ended twice"
    return found


class Claimers:
    """Several claimers that work at once until nothing is left or they are stopped. One of them is dead and loses its
    runs."""

    def __init__(
        self, store: Store, chance: random.Random, *, number: int = 4, most: int = 60, loses: bool = True
    ) -> None:
        self._store = store
        self._chance = chance
        self._number = number
        self._most = most
        self._loses = loses
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False
        self.started: dict[tuple[UUID, int], str] = {}
        self.stuck: list[tuple[str, UUID]] = []

    async def __aenter__(self) -> Claimers:
        works = [self._claim(await self._register()) for _ in range(self._number)]
        self._tasks = [asyncio.create_task(work, name="claimer") for work in (*works, self._tend())]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        await asyncio.gather(*self._tasks)

    async def _register(self) -> UUID:
        worker_id = new_id()
        await self._store.workers.register_worker(worker_id, str(worker_id), {"default": 1000}, TASKS, {})
        return worker_id

    async def _tend(self) -> None:
        """The services of a scheduler node, and the search for stuck runs."""
        ghost = new_id()
        while not self._is_over:
            await self._store.due_runs.promote_due_runs(1000)
            await self._store.cancellation.end_cancelled()
            await self._store.signals.time_out_signals(1000)
            if self._loses:
                await claim_runs(self._store, ghost, {"default": self._chance.randint(1, 3)}, TASKS)
                await self._store.workers.remove_worker(ghost)
                await self._store.lost_runs.lose_runs(1000, 1_000_000)
            if self._chance.random() < LOOKING:
                self.stuck += await find_stuck(self._store)
            await asyncio.sleep(0.02)

    async def _claim(self, worker_id: UUID) -> None:
        held: list[Claim] = []
        chance = self._chance
        while not self._is_over:
            claims = await claim_runs(self._store, worker_id, {"default": chance.randint(1, self._most)}, TASKS)
            for claim in claims:
                assert (claim.run_id, claim.token) not in self.started, "claimed twice"
                self.started[claim.run_id, claim.token] = claim.task
            held += claims
            chance.shuffle(held)
            number = chance.randint(0, len(held)) if claims else len(held)
            batch, held = held[:number], held[number:]
            if batch:
                await self._end(worker_id, batch)
            elif not claims:
                await asyncio.sleep(0.005)

    async def _end(self, worker_id: UUID, batch: Sequence[Claim]) -> None:
        plain = [claim for claim in batch if claim.task == "step"]
        outcomes = [outcome_of(claim) for claim in plain] + [
            outcome for claim in batch if claim.task != "step" for outcome in await self._expand(worker_id, claim)
        ]
        if finished := [outcome for outcome in outcomes if outcome.state is not RunState.SCHEDULED]:
            await self._store.outcomes.finish_runs(worker_id, finished)
        if retried := [outcome for outcome in outcomes if outcome.state is RunState.SCHEDULED]:
            await self._store.outcomes.retry_runs(worker_id, retried)

    async def _expand(self, worker_id: UUID, claim: Claim) -> list[Outcome]:
        """Expanded by the executor that workers use."""
        context = Context(
            run_id=claim.run_id, token=claim.token, attempt=claim.attempt, task=claim.task, on_output=lambda _: None
        )
        payload = msgspec.json.decode(claim.payload) if claim.payload else {}
        if claim.has_upstream:
            before = await self._store.upstream_results.read_upstream([claim.run_id], UPSTREAM_MAX_BYTES)
            payload = apply_upstream(before.get(claim.run_id, Before()), context, NO_OPTIONS, payload)
        child_runs = ChildRuns(self._store, aging_seconds=300)
        known = {
            "map": map_items(child_runs, Namespace(), WorkerIdentity(worker_id)),
            "workflow": workflow(child_runs, Namespace(), WorkerIdentity(worker_id)),
        }
        if claim.task not in known:
            return [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)]
        attempted = await known[claim.task](payload, context)
        if attempted.ending is Ending.EXPANDED:
            return []
        return [
            Outcome(claim.run_id, claim.token, RunState(attempted.ending), attempted.reason, result=attempted.result)
        ]


def outcome_of(claim: Claim) -> Outcome:
    payload = msgspec.json.decode(claim.payload) if claim.payload else {}
    if claim.attempt - claim.lost <= payload.get("retries", 0):
        return Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error", 0.001)
    if payload.get("fails") or payload.get("item") in payload.get("failing_items", ()):
        return Outcome(
            claim.run_id, claim.token, RunState.FAILED, "error", error='{"kind": "ValueError", "message": "no"}'
        )
    return Outcome(claim.run_id, claim.token, RunState.SUCCEEDED, result='{"done": true}')
