"""Runs that are due, and leases that end, on a clock that tests move by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.model.ids import new_id
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.new_runs import QUEUES, claim, run


class TestFakeClock:
    @pytest.fixture
    def clock(self, fake_clock: FakeClock) -> Clock:
        return fake_clock

    @pytest.mark.parametrize(
        "fields",
        [
            {},
            {"name": "n", "priority": -3, "payload": '{"a": 1}', "expires_at": datetime(2026, 3, 2, tzinfo=UTC)},
            {"delay_seconds": 7.5, "priority": 2},
            {"due_at": datetime(2026, 3, 1, 11, tzinfo=UTC)},
            {"due_at": datetime(2026, 3, 1, 13, tzinfo=UTC), "options": '{"concurrency": {"key": "k", "max": 1}}'},
            {"options": '{"concurrency": {"key": "k", "max": 1}}'},
            {"options": '{"rate": {"key": "k", "limit": 1, "per_seconds": 1}}', "priority": 9},
            {"options": '{"signal": {"timeout_seconds": 60}}'},
            {"options": '{"signal": {}}'},
            {"options": '{"retries": 1}'},
        ],
        ids=lambda fields: " ".join(fields) or "plain",
    )
    async def test_equal_runs_are_stored_as_if_one_by_one(self, store: Store, sql: Any, fields: dict[str, Any]) -> None:
        alike = [run(**fields) for _ in range(3)]
        stored = await store.run_inserts.insert_runs(alike)
        columns = "state, held_by, due_at, created_at, rank, priority, queue, task, name, payload, options, expires_at"
        at_once = [tuple(row) for row in await sql.fetch(f"select {columns} from foliot.runs order by id")]
        await sql.execute("truncate foliot.runs")
        # Inside a transaction, the careful variant is used.
        carefully = await store.database.in_transaction(
            "insert", lambda within: store.run_inserts.insert_runs(alike, within=within)
        )
        assert [tuple(row) for row in await sql.fetch(f"select {columns} from foliot.runs order by id")] == at_once
        assert stored == carefully

    async def test_a_delayed_run_is_ready_exactly_when_it_is_due(self, store: Store, fake_clock: FakeClock) -> None:
        given = run(delay_seconds=10.0)
        stored = await store.run_inserts.insert_runs([given])
        assert (stored[given.id].state, stored[given.id].due_at) == (
            RunState.SCHEDULED,
            fake_clock.now() + timedelta(seconds=10),
        )
        assert await store.due_runs.seconds_until_due() == 10.0
        await fake_clock.advance(9.999)
        assert await store.due_runs.promote_due_runs(10) == []
        await fake_clock.advance(0.001)
        assert await store.due_runs.promote_due_runs(10) == ["default"]
        assert await store.due_runs.seconds_until_due() is None

    async def test_a_worker_dies_when_its_lease_ends_and_not_before(self, store: Store, fake_clock: FakeClock) -> None:
        worker = new_id()
        await store.workers.register_worker(worker, "w", QUEUES, ["t"])
        await store.run_inserts.insert_runs([run()])
        await claim(store, worker_id=worker)
        await fake_clock.advance(14.9)
        assert (await store.lost_runs.lose_runs(10, 3)).requeued == 0
        assert (await store.workers.beat(worker, [])).is_renewed
        await fake_clock.advance(14.9)
        assert (await store.lost_runs.lose_runs(10, 3)).requeued == 0
        await fake_clock.advance(0.2)
        assert await store.workers.remove_dead_workers() == 1
        assert (await store.lost_runs.lose_runs(10, 3)).requeued == 1
        assert not (await store.workers.beat(worker, [])).is_renewed

    async def test_a_worker_claims_nothing_after_its_lease(self, store: Store, fake_clock: FakeClock) -> None:
        """Its claims would be released unstarted, and at-most-once runs would fail."""
        worker = new_id()
        await store.run_inserts.insert_runs([run() for _ in range(3)])
        assert await store.claims.claim_runs(worker, QUEUES, ["t"]) == []
        await store.workers.register_worker(worker, "w", QUEUES, ["t"])
        assert len(await store.claims.claim_runs(worker, {"default": 1}, ["t"])) == 1
        await fake_clock.advance(15.1)
        assert await store.claims.claim_runs(worker, QUEUES, ["t"]) == []
        assert await store.claims.claim_limited_runs(worker, "default", 10, ["t"]) == []
        assert (await store.workers.beat(worker, [])).is_renewed
        assert len(await store.claims.claim_runs(worker, {"default": 1}, ["t"])) == 1
        await fake_clock.advance(15.1)
        await store.workers.remove_dead_workers()
        assert await store.claims.claim_runs(worker, QUEUES, ["t"]) == []
