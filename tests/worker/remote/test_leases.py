"""The leases of many remote workers cost the database few statements, and a claim of an idle one gets a short lease."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from foliot.api.remote_workers.leases import IDLE_LEASES, Leases
from foliot.model.ids import new_id
from foliot.store.store import Store
from foliot.store.workers import Beat, RemoteBeat, Workers

TTL = 60.0


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of workers in each statement."""
    numbers: list[int] = []
    write = Workers.beat_workers

    async def counted(self: Workers, beats: Sequence[RemoteBeat]) -> dict[UUID, Beat]:
        numbers.append(len(beats))
        return await write(self, beats)

    monkeypatch.setattr(Workers, "beat_workers", counted)
    return numbers


async def registered(store: Store, number: int) -> list[UUID]:
    ids = [new_id() for _ in range(number)]
    for worker_id in ids:
        await store.workers.register_worker(worker_id, "worker", {"default": 1}, ["task"], token_id="token")
    return ids


async def lease_of(sql: Any, worker_id: UUID) -> float:
    question = "select extract(epoch from expires_at - beat_at)::float8 from foliot.workers where id = $1"
    return float(round(await sql.fetchval(question, worker_id)))


async def test_idle_workers_share_a_statement_and_are_then_answered_from_memory(
    store: Store, sql: Any, statements: list[int]
) -> None:
    leases = Leases(store=store, clock=store.database.clock, ttl_seconds=TTL)
    ids = await registered(store, 100)

    async def beat_all() -> list[Beat | None]:
        return list(await asyncio.gather(*(leases.beat(RemoteBeat(one, TTL), is_idle=True) for one in ids)))

    for _ in range(3):
        assert all(beat is not None and beat.is_renewed for beat in await beat_all())
    assert sum(statements) == 100
    assert len(statements) <= 2
    assert await lease_of(sql, ids[0]) == IDLE_LEASES * TTL
    # A hint about one of them: only its heartbeat goes to the database.
    await store.workers.drain_worker(ids[7])
    leases.ask_soon(ids[7])
    beats = await beat_all()
    assert [one for one, beat in zip(ids, beats, strict=True) if beat is not None and beat.is_draining] == [ids[7]]
    assert sum(statements) == 101


async def test_a_claim_of_an_idle_worker_shortens_its_lease_first(
    store: Store, sql: Any, statements: list[int]
) -> None:
    leases = Leases(store=store, clock=store.database.clock, ttl_seconds=TTL)
    (worker_id,) = await registered(store, 1)
    await leases.beat(RemoteBeat(worker_id, TTL), is_idle=True)
    assert await leases.begin(worker_id) == TTL
    assert await lease_of(sql, worker_id) == TTL
    # A second claim, right after it, needs no statement. Its lease counts from the first.
    again = await leases.begin(worker_id)
    assert again is not None
    assert 0 < again < TTL
    assert statements == [1, 1]


async def test_a_removed_worker_learns_of_it(store: Store) -> None:
    leases = Leases(store=store, clock=store.database.clock, ttl_seconds=TTL)
    (worker_id,) = await registered(store, 1)
    await store.workers.remove_worker(worker_id)
    assert await leases.beat(RemoteBeat(worker_id, TTL, [(new_id(), 1)]), is_idle=False) is None
    assert await leases.begin(worker_id) is None


async def test_a_heartbeat_lists_the_attempts_that_must_end_of_each_worker(store: Store) -> None:
    leases = Leases(store=store, clock=store.database.clock, ttl_seconds=TTL)
    first, second = await registered(store, 2)
    lost = new_id()
    beats = await asyncio.gather(
        leases.beat(RemoteBeat(first, TTL, [(lost, 3)]), is_idle=False),
        leases.beat(RemoteBeat(second, TTL), is_idle=False),
    )
    assert [beat.to_end if beat else None for beat in beats] == [{(lost, 3): None}, {}]
