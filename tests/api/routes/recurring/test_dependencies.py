"""Recurring jobs that depend on each other, with a scheduler node that tests run step by step."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from foliot.config import Config
from foliot.events import EventBus
from foliot.model.namespace import Namespace
from foliot.model.outcome import Ending, Outcome
from foliot.model.states import RunState
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.sdk.context import Context
from foliot.store.store import Store
from foliot.submission.child_runs import ChildRuns
from foliot.worker.executors.workflow import workflow
from foliot.worker.identity import WorkerIdentity
from tests.support.dependencies import WORKER, create, end
from tests.support.fake_clock import FakeClock
from tests.support.runs import claim_runs
from tests.support.schedulers import Node
from tests.support.waiting import until

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


@pytest.fixture
async def node(store: Store, config: Config, events: EventBus, fake_clock: FakeClock) -> Node:
    keeper = ShardKeeper(store=store, config=config, clock=fake_clock, events=events)
    await keeper.run_once()
    return Node(store, keeper, events, fake_clock)


async def ticks(client: httpx.AsyncClient, name: str) -> list[str]:
    items = (await client.get(f"/v1/jobs/{name}/ticks")).json()["items"]
    return [item["outcome"] for item in items][::-1]


class TestByInstant:
    async def test_a_run_waits_for_the_upstream_run_of_the_same_instant(
        self, client: httpx.AsyncClient, store: Store, node: Node
    ) -> None:
        for name in ("a", "b"):
            await create(client, name=name, every="10s")
        await create(client, name="down", every="10s", dependencies=["a", "b"])
        await node.pass_time(10)
        await node.turn()
        assert await ticks(client, "down") == ["waiting"]
        assert await end(store) == ["a", "b"]
        assert await end(store) == ["down"]
        assert await ticks(client, "down") == ["succeeded"]

    async def test_a_run_waits_for_the_latest_run_of_a_slower_upstream(
        self, client: httpx.AsyncClient, store: Store, node: Node
    ) -> None:
        await create(client, name="slow", every="30s")
        await create(client, name="down", every="10s", dependencies=["slow"])
        # The upstream had no tick yet, so there is nothing to wait for.
        await node.pass_time(10)
        await node.turn()
        assert await end(store) == ["down"]
        await node.pass_time(10)
        await node.turn()
        assert await end(store) == ["down"]
        await node.pass_time(10)
        await node.turn()
        assert await end(store) == ["slow"]
        assert await end(store) == ["down"]
        # The previous upstream run has succeeded.
        await node.pass_time(10)
        await node.turn()
        assert await end(store) == ["down"]

    async def test_a_failed_upstream_skips_the_run_of_that_instant_only(
        self, client: httpx.AsyncClient, store: Store, node: Node
    ) -> None:
        await create(client, name="up", every="10s")
        await create(client, name="down", every="10s", dependencies=["up"])
        await node.pass_time(10)
        await node.turn()
        assert await end(store, RunState.FAILED) == ["up"]
        await node.pass_time(10)
        await node.turn()
        assert await end(store) == ["up"]
        assert await end(store) == ["down"]
        assert await ticks(client, "down") == ["skipped", "succeeded"]

    async def test_a_paused_upstream_delays_nothing(self, client: httpx.AsyncClient, store: Store, node: Node) -> None:
        await create(client, name="up", every="10s")
        await create(client, name="down", every="10s", dependencies=["up"])
        assert (await client.post("/v1/jobs/up/pause", json={})).status_code == 200
        await node.pass_time(10)
        await node.turn()
        assert await end(store) == ["down"]

    async def test_a_job_that_others_depend_on_is_not_deleted(self, client: httpx.AsyncClient) -> None:
        await create(client, name="up", every="10s")
        await create(client, name="down", every="10s", dependencies=["up"])
        answer = await client.delete("/v1/jobs/up")
        assert answer.status_code == 409
        assert "'down'" in answer.json()["detail"]
        assert (await client.delete("/v1/jobs/down")).status_code == 204
        assert (await client.delete("/v1/jobs/up")).status_code == 204


class TestBySuccess:
    async def test_a_job_fires_when_each_upstream_has_succeeded_since_its_last_firing(
        self, client: httpx.AsyncClient, store: Store, node: Node
    ) -> None:
        for name in ("a", "b"):
            await create(client, name=name, every="10s")
        down = await create(client, name="down", dependencies=["a", "b"])
        assert down["status"] == "active"
        await node.pass_time(10)
        assert await end(store, count=1) in (["a"], ["b"])
        assert await ticks(client, "down") == []
        await end(store, count=1)
        assert await end(store) == ["down"]
        await node.pass_time(10)
        assert await end(store, RunState.FAILED, count=1) in (["a"], ["b"])
        await end(store, count=1)
        assert await ticks(client, "down") == ["succeeded"]
        await node.pass_time(10)
        await end(store, count=2)
        assert await end(store) == ["down"]

    async def test_paused_and_overlapping(self, client: httpx.AsyncClient, store: Store, node: Node) -> None:
        await create(client, name="up", every="10s")
        await create(client, name="down", dependencies=["up"])
        await node.pass_time(10)
        await end(store, count=1)
        await node.pass_time(10)
        (claim, other) = await claim_runs(store, WORKER, {"default": 2}, ["simulate"])
        up = claim if (await store.runs.get_run(claim.run_id)).name == "up" else other  # type: ignore[union-attr]
        await store.outcomes.finish_runs(WORKER, [Outcome(up.run_id, up.token, RunState.SUCCEEDED)])
        assert await ticks(client, "down") == ["running", "overlap"]
        await client.post("/v1/jobs/down/pause", json={})
        await node.pass_time(10)
        await end(store, count=1)
        assert await ticks(client, "down") == ["running", "overlap"]

    async def test_many_simultaneous_ends_fire_the_job_once(
        self, client: httpx.AsyncClient, store: Store, node: Node
    ) -> None:
        names = [f"up{number}" for number in range(8)]
        for name in names:
            await create(client, name=name, every="10s")
        await create(client, name="down", dependencies=names)
        await node.pass_time(10)
        claims = await claim_runs(store, WORKER, {"default": 100}, ["simulate"])
        done = [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED) for claim in claims]
        await asyncio.gather(*(store.outcomes.finish_runs(WORKER, [outcome]) for outcome in done))
        assert await ticks(client, "down") == ["ready"]

    async def test_ends_in_concurrent_transactions_fire_the_job(
        self, client: httpx.AsyncClient, store: Store, node: Node, sql: Any
    ) -> None:
        for name in ("a", "b"):
            await create(client, name=name, every="10s")
        await create(client, name="down", dependencies=["a", "b"])
        await node.pass_time(10)
        assert [await end(store), await end(store)] == [["a", "b"], ["down"]]
        await node.pass_time(10)
        first, second = (
            Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)
            for claim in await claim_runs(store, WORKER, {"default": 2}, ["simulate"])
        )
        async with store.database.transaction() as session:
            assert await store.outcomes.finish_in(session, WORKER, first)
            ending = asyncio.create_task(store.outcomes.finish_runs(WORKER, [second]))

            async def waits_or_has_ended() -> bool:
                return ending.done() or bool(await sql.fetchval(WAITING))

            await until(waits_or_has_ended)
        assert await ending == 1
        assert await ticks(client, "down") == ["succeeded", "ready"]

    async def test_an_upstream_may_be_a_workflow(self, client: httpx.AsyncClient, store: Store, node: Node) -> None:
        """The run of a workflow ends with its last step, in the middle of settling that step."""
        await store.workers.announce_tasks({"simulate": "default", "workflow": "default"})
        steps = [{"key": "first", "task": "simulate"}, {"key": "last", "task": "simulate", "after": ["first"]}]
        await create(client, name="up", task="workflow", payload={"steps": steps}, every="10s")
        await create(client, name="down", dependencies=["up"])
        await node.pass_time(10)
        (claim,) = await claim_runs(store, WORKER, {"default": 1}, ["workflow"])
        context = Context(run_id=claim.run_id, token=claim.token, attempt=1, task="workflow", on_output=lambda _: None)
        expand = workflow(ChildRuns(store, aging_seconds=300), Namespace(), WorkerIdentity(WORKER))
        assert (await expand({"steps": steps}, context)).ending is Ending.EXPANDED
        await end(store)
        assert await ticks(client, "down") == []
        await end(store)
        assert await ticks(client, "up") == ["succeeded"]
        assert await ticks(client, "down") == ["ready"]

    async def test_a_redriven_workflow_fires_its_dependents(
        self, client: httpx.AsyncClient, store: Store, node: Node
    ) -> None:
        await store.workers.announce_tasks({"simulate": "default", "workflow": "default"})
        steps = [{"key": "only", "task": "simulate"}]
        up = await create(client, name="up", task="workflow", payload={"steps": steps}, every="1h")
        await create(client, name="down", dependencies=["up"])
        await node.pass_time(3600)
        (claim,) = await claim_runs(store, WORKER, {"default": 1}, ["workflow"])
        context = Context(run_id=claim.run_id, token=claim.token, attempt=1, task="workflow", on_output=lambda _: None)
        await workflow(ChildRuns(store, aging_seconds=300), Namespace(), WorkerIdentity(WORKER))(
            {"steps": steps}, context
        )
        await end(store, RunState.FAILED)
        assert await ticks(client, "up") == ["failed"]
        answer = await client.post(f"/v1/workflows/{claim.run_id}/redrive")
        assert (answer.status_code, answer.json()["job_id"]) == (201, up["id"])
        await end(store)
        assert await ticks(client, "down") == ["ready"]

    async def test_a_job_that_loses_its_schedule_is_fired_by_its_upstreams(
        self, client: httpx.AsyncClient, store: Store, node: Node
    ) -> None:
        await create(client, name="up", every="10s")
        await create(client, name="down", every="10s", dependencies=["up"])
        assert (await client.patch("/v1/jobs/down", json={"every": None})).status_code == 200
        await node.pass_time(10)
        assert await end(store) == ["up"]
        assert await ticks(client, "down") == ["ready"]

    async def test_a_job_that_gets_a_schedule_is_no_longer_fired_by_its_upstreams(
        self, client: httpx.AsyncClient, store: Store, node: Node
    ) -> None:
        await create(client, name="up", every="10s")
        await create(client, name="down", dependencies=["up"])
        assert (await client.patch("/v1/jobs/down", json={"every": "1h"})).status_code == 200
        await node.pass_time(10)
        assert await end(store) == ["up"]
        assert await ticks(client, "down") == []
