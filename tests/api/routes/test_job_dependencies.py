"""One-off jobs that wait for other one-off jobs."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.dependencies import WORKER, create, end, refused
from tests.support.runs import claim_runs, find_stuck


class TestSingleJobs:
    async def test_a_job_waits_until_all_its_dependencies_have_succeeded(
        self, client: httpx.AsyncClient, store: Store
    ) -> None:
        first, second = await create(client, name="first"), await create(client, name="second")
        last = await create(client, name="last", dependencies=[first["id"], second["id"]])
        assert (last["status"], last["state"]) == ("pending", "waiting")
        assert await end(store, count=1) == ["first"]
        assert await end(store, count=1) == ["second"]
        assert await end(store) == ["last"]

    async def test_a_failed_dependency_skips_the_job_and_its_dependents(
        self, client: httpx.AsyncClient, store: Store
    ) -> None:
        first = await create(client, name="first")
        second = await create(client, dependencies=[first["id"]])
        third = await create(client, dependencies=[second["id"]])
        await end(store, RunState.FAILED)
        for job in (second, third):
            shown = (await client.get(f"/v1/jobs/{job['id']}")).json()
            assert (shown["state"], shown["reason"]) == ("skipped", "dependency_failed")
            assert shown["error"]["message"] == "dependency_failed: first"

    @pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.FAILED])
    async def test_a_dependency_that_has_already_ended_counts_at_once(
        self, client: httpx.AsyncClient, store: Store, state: RunState
    ) -> None:
        first = await create(client)
        await end(store, state)
        later = await create(client, dependencies=[first["id"]])
        assert later["state"] == ("ready" if state is RunState.SUCCEEDED else "skipped")

    async def test_a_job_submitted_while_its_dependency_ends_is_not_stuck(
        self, client: httpx.AsyncClient, store: Store
    ) -> None:
        for _ in range(20):
            first = await create(client)
            (claim,) = await claim_runs(store, WORKER, {"default": 1}, ["simulate"])
            done = Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)
            _, *later = await asyncio.gather(
                store.outcomes.finish_runs(WORKER, [done]),
                *(create(client, dependencies=[first["id"]]) for _ in range(4)),
            )
            assert len(await end(store)) == 4
            assert later
        assert await find_stuck(store) == []

    async def test_impossible_dependencies_are_refused(self, client: httpx.AsyncClient, store: Store) -> None:
        first = await create(client)
        await create(client, name="hourly", every="1h")
        assert "dependencies[0]: there is no job 'nothing'" in await refused(client, dependencies=["nothing"])
        assert "there is no job" in await refused(client, dependencies=[str(new_id())])
        assert "named twice" in await refused(client, dependencies=[first["id"], first["id"]])
        assert "mixed" in await refused(client, dependencies=[first["id"], "hourly"])
        assert "no recurring job" in await refused(client, dependencies=[first["id"]], every="1h")
        assert "overlap" in await refused(client, dependencies=["hourly"], every="1h", overlap="buffer_one")
        answer = await client.post("/v1/jobs/batch", json=[{"task": "simulate", "dependencies": [first["id"]]}])
        assert "[0].dependencies" in answer.json()["detail"]

    async def test_an_idempotency_key_creates_one_job(self, client: httpx.AsyncClient, store: Store) -> None:
        first = await create(client)
        asked = {"task": "simulate", "dependencies": [first["id"]], "idempotency_key": "k"}
        answers = [await client.post("/v1/jobs", json=asked) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 200]
        assert answers[0].json()["id"] == answers[1].json()["id"]
